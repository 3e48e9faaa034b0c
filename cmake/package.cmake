# SPDX-License-Identifier: Apache-2.0
# Defines the packages that `cpack` makes: Debian packages, one for each component of
# cmake/install.cmake, or archives if there is no dpkg. Configure with -DCMAKE_INSTALL_PREFIX=/usr,
# so that the libraries are in the folder of Debian's own libraries.
set(library_package libtutti${TUTTI_SOVERSION})
set(same_version "${library_package} (= ${PROJECT_VERSION}-1)")

find_program(DPKG dpkg)
mark_as_advanced(DPKG)
set(CPACK_GENERATOR TGZ)
if(DPKG)
    set(CPACK_GENERATOR DEB)
endif()
set(CPACK_PACKAGE_NAME tutti)
set(CPACK_PACKAGE_CONTACT "The Tutti developers" CACHE STRING "Maintainer of the packages: Name <address>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/strip_archives.cmake)
set(CPACK_COMPONENTS_ALL library development programs)
set(CPACK_COMPONENTS_GROUPING IGNORE)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library_package})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
# It is loaded at run time, to find the links between GPUs.
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS libhwloc15)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "${PROJECT_DESCRIPTION}: the shared library")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtutti-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${same_version}")
# Only users of the static library and of pkg-config need these.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS
    "pkg-config, libsodium-dev, libexpat1-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "${PROJECT_DESCRIPTION}: header, static library, CMake package, pages and examples")

set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME tutti-tools)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_DEPENDS "${same_version}")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_RECOMMENDS libhwloc15)
# dpkg-shlibdeps finds libtutti.so here. It belongs to another of these packages.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
set(CPACK_COMPONENT_PROGRAMS_DESCRIPTION
    "${PROJECT_DESCRIPTION}: launcher, tools and measuring programs")

# Debian requires the license in a folder with the name of each package. Other installations have it
# only once.
set(package_library ${library_package})
set(package_development libtutti-dev)
set(package_programs tutti-tools)
foreach(component ${CPACK_COMPONENTS_ALL})
    install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package_${component}}
        RENAME copyright COMPONENT ${component} EXCLUDE_FROM_ALL)
endforeach()
include(CPack)
