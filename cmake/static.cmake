# SPDX-License-Identifier: Apache-2.0
# Defines the static library. It contains one object, into which the linker joins all others. The
# object is optimized as a whole, as the shared library is. Therefore users of the library need
# neither this compiler nor its plugin for link-time optimization. Only the public names are global
# in the object, so that no other name can clash with a name of the user's program.
set(static_object ${CMAKE_CURRENT_BINARY_DIR}/tutti-$<CONFIG>.o)
separate_arguments(flags UNIX_COMMAND "${CMAKE_C_FLAGS}")
set(optimized -flto=auto -flinker-output=nolto-rel -O3 -ffp-contract=off)
add_custom_command(OUTPUT ${static_object}
    COMMAND ${CMAKE_C_COMPILER} ${flags} -r -nostdlib "$<${whole}:${optimized}>" -o ${static_object}
        $<TARGET_OBJECTS:tutti-objects> $<TARGET_OBJECTS:tutti-cuda-image> $<TARGET_FILE:tutti-machines>
    COMMAND ${CMAKE_OBJCOPY} --wildcard "--keep-global-symbol=tutti[A-Z]*" ${static_object}
    DEPENDS $<TARGET_OBJECTS:tutti-objects> $<TARGET_OBJECTS:tutti-cuda-image> tutti-machines
    COMMENT "Linking the objects into one, for libtutti.a" COMMAND_EXPAND_LISTS VERBATIM)

add_library(tutti-static STATIC ${static_object})
add_dependencies(tutti-static tutti-objects tutti-cuda-image tutti-machines)
set_target_properties(tutti-static PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME tutti EXPORT_NAME static)
target_link_libraries(tutti-static PRIVATE PkgConfig::TUTTI_NEEDS Threads::Threads m ${CMAKE_DL_LIBS})
target_include_directories(tutti-static INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
if(NOT is_static_wanted)
    set_target_properties(tutti-static PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
