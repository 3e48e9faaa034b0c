# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where, in three components that are also the three Debian packages:
# library, development, programs. Every path in an installed file is relative, so that the installed
# tree may be moved. The same CMake package serves from the build tree.
if(NOT TUTTI_INSTALL)
    return()
endif()
include(CMakePackageConfigHelpers)

# ---- the CMake package ---------------------------------------------------------------------------
# Each library has a file of its own: a user of the shared one does not need what the static one does.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tutti)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tuttiConfig.cmake.in
    ${PROJECT_BINARY_DIR}/tuttiConfig.cmake INSTALL_DESTINATION ${package_dir}
    NO_SET_AND_CHECK_MACRO)
# Programs of one major version run with every later library of it: the name libtutti.so.0 says so.
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
# The way from tutti.pc to the prefix.
file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
set(pc_prefix "\${pcfiledir}/${to_prefix}")
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
# The compiler knows /usr, and pkg-config leaves its folders out only where they are spelled like this.
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(pc_prefix /usr)
endif()
# Flags and not modules: pkg-config would want those of a module's own modules, too, whose packages
# nobody needs who links the module's shared library.
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
    set(pc_public " ${pc_private}") # there is only one way to link it
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
# The pictures of measurements that the pages show.
foreach(picture latest/shm2-ratios optimum pytorch)
    set(picture bench/results/${picture}.svg)
    get_filename_component(folder ${picture} DIRECTORY)
    install(FILES ${picture} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder} COMPONENT development)
endforeach()

# ---- what `make install` builds ------------------------------------------------------------------
# Tools and measuring programs say in their own folders where they go.
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
