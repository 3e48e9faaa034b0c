# SPDX-License-Identifier: Apache-2.0
# Removes the debug information from static libraries before cpack packs them. CPack strips only
# programs and shared libraries. The debug information is ten times as large as the code.
file(GLOB_RECURSE archives ${CPACK_TEMPORARY_DIRECTORY}/*.a)
foreach(archive ${archives})
    execute_process(COMMAND strip --strip-debug ${archive} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
