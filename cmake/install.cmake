# SPDX-License-Identifier: Apache-2.0
# Defines the files that `cmake --install` installs. The three components library, development and
# programs are also the three Debian packages. Every path in an installed file is relative, so that
# the installed tree may be moved. Other projects can also use the CMake package from the build
# tree.
if(NOT TUTTI_INSTALL)
    return()
endif()
include(CMakePackageConfigHelpers)

# ---- the CMake package ---------------------------------------------------------------------------
# Each library has an export file of its own, because only users of the static library need the
# libraries that it links.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tutti)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tuttiConfig.cmake.in
    ${PROJECT_BINARY_DIR}/tuttiConfig.cmake INSTALL_DESTINATION ${package_dir}
    NO_SET_AND_CHECK_MACRO)
# A program runs with every later library of the same major version. The soname libtutti.so.0
# promises the same.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tuttiConfigVersion.cmake
    COMPATIBILITY SameMajorVersion)

# ---- libraries -----------------------------------------------------------------------------------
foreach(kind shared static)
    if(is_${kind}_wanted)
        set(target tutti)
        if(kind STREQUAL static)
            set(target tutti-static)
        endif()
        install(TARGETS ${target} EXPORT tutti-${kind}
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
                COMPONENT library NAMELINK_COMPONENT development
            ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
        install(EXPORT tutti-${kind} NAMESPACE tutti:: DESTINATION ${package_dir}
            COMPONENT development)
        export(EXPORT tutti-${kind} NAMESPACE tutti::
            FILE ${PROJECT_BINARY_DIR}/tutti-${kind}.cmake)
    endif()
endforeach()
install(FILES include/tutti.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/tuttiConfig.cmake ${PROJECT_BINARY_DIR}/tuttiConfigVersion.cmake
    DESTINATION ${package_dir} COMPONENT development)

# ---- pkg-config ----------------------------------------------------------------------------------
# The path from the folder of tutti.pc to the prefix.
file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(pc_prefix "\${pcfiledir}/${to_prefix}")
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
# The compiler searches the folders of /usr anyway. pkg-config omits them only if the prefix is
# spelled "/usr".
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(pc_prefix /usr)
endif()
# tutti.pc lists flags for the static library, not modules. For a module, pkg-config would also
# require the modules that this module needs. A program that links the module's shared library does
# not need the packages of those.
set(folders ${TUTTI_NEEDS_LIBRARY_DIRS})
list(REMOVE_ITEM folders ${CMAKE_C_IMPLICIT_LINK_DIRECTORIES})
list(REMOVE_DUPLICATES folders)
list(TRANSFORM folders PREPEND -L)
list(TRANSFORM TUTTI_NEEDS_LIBRARIES PREPEND -l OUTPUT_VARIABLE needs)
list(JOIN folders " " folders)
list(JOIN needs " " needs)
string(STRIP "${folders} ${needs} -lpthread -lm -ldl" pc_private)
set(pc_public "")
if(NOT is_shared_wanted)
    set(pc_public " ${pc_private}") # Every user links the static library, so nothing is private.
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/tutti.pc.in ${PROJECT_BINARY_DIR}/tutti.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tutti.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT development)

# ---- pages and examples --------------------------------------------------------------------------
foreach(page README.md CHANGELOG.md SECURITY.md LICENSE)
    if(EXISTS ${PROJECT_SOURCE_DIR}/${page})
        install(FILES ${page} DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)
    endif()
endforeach()
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development
    FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN reference EXCLUDE)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development
    FILES_MATCHING PATTERN "*.c" PATTERN "*.py" PATTERN "*.md")
# The pages show these pictures of measurements.
foreach(picture latest/shm2-ratios optimum pytorch)
    set(picture bench/results/${picture}.svg)
    get_filename_component(folder ${picture} DIRECTORY)
    install(FILES ${picture} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder} COMPONENT development)
endforeach()

# ---- what `make install` builds ------------------------------------------------------------------
# The folders of the tools and of the measuring programs have the rules that install these programs.
set(programs "")
foreach(room perf tools)
    string(TOUPPER ${room} option)
    if(TUTTI_BUILD_${option})
        get_property(targets DIRECTORY ${room} PROPERTY BUILDSYSTEM_TARGETS)
        list(APPEND programs ${targets})
    endif()
endforeach()
add_custom_target(tutti-installable DEPENDS ${programs}
    $<$<BOOL:${is_shared_wanted}>:tutti> $<$<BOOL:${is_static_wanted}>:tutti-static>)

install(CODE "set(libdir \"${CMAKE_INSTALL_LIBDIR}\")" COMPONENT library)
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/after_install.cmake COMPONENT library)
