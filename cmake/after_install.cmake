# SPDX-License-Identifier: Apache-2.0
# Runs at the end of an installation: a program finds libtutti.so.0 only if the loader's cache has it.
# Variable: libdir, the folder of libraries below the prefix.
if(NOT "$ENV{DESTDIR}" STREQUAL "")
    return() # for another system
endif()
get_filename_component(folder "${libdir}" ABSOLUTE BASE_DIR "${CMAKE_INSTALL_PREFIX}")

# The folders of ld.so.conf, and those that the loader looks at anyway.
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
