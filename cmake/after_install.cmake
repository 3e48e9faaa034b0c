# SPDX-License-Identifier: Apache-2.0
# Runs at the end of an installation. Updates the cache of the dynamic loader, because a program
# finds libtutti.so.0 in a folder of the system only if the cache has it. If that is not possible,
# says how programs find the library. The variable libdir is the folder of libraries, relative to
# the prefix.
if(NOT "$ENV{DESTDIR}" STREQUAL "")
    return() # The files are for another system, such as a package.
endif()
get_filename_component(folder "${libdir}" ABSOLUTE BASE_DIR "${CMAKE_INSTALL_PREFIX}")

# The loader looks in these folders and in those of ld.so.conf.
set(known /lib /usr/lib /lib64 /usr/lib64)
file(GLOB lists /etc/ld.so.conf /etc/ld.so.conf.d/*.conf)
foreach(list ${lists})
    file(STRINGS ${list} lines REGEX "^/")
    list(APPEND known ${lines})
endforeach()
find_program(ldconfig ldconfig PATHS /sbin /usr/sbin NO_CACHE)
if(NOT folder IN_LIST known)
    message(STATUS "Programs find the library with LD_LIBRARY_PATH=${folder}, or with -Wl,-rpath,${folder} "
        "when they are linked")
    return()
endif()
execute_process(COMMAND id -u OUTPUT_VARIABLE user OUTPUT_STRIP_TRAILING_WHITESPACE)
if(ldconfig AND user STREQUAL "0")
    execute_process(COMMAND ${ldconfig})
    message(STATUS "Updated the loader's cache (ldconfig): programs find the library in ${folder}")
else()
    message(STATUS "Run ldconfig as root before you start a program, so that it finds the library in ${folder}")
endif()
