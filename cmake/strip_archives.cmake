# SPDX-License-Identifier: Apache-2.0
# Before packing: CPack strips programs and shared libraries, but leaves archives with all symbols of
# their debug information, ten times what the code takes.
file(GLOB_RECURSE archives ${CPACK_TEMPORARY_DIRECTORY}/*.a)
foreach(archive ${archives})
    execute_process(COMMAND strip --strip-debug ${archive} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
