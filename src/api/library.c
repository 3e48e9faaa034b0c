/* SPDX-License-Identifier: Apache-2.0
 * The public functions that return the version of the library and the texts of errors. */
#include "base/build_info.h"
#include "comm/comm.h"

tuttiResult_t tuttiGetVersion(int *version)
{
    if (version == NULL)
        return tutti_public_result(
            tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiGetVersion: version is NULL"));
    *version = TUTTI_VERSION_CODE;
    return tuttiSuccess;
}

const char *tuttiGetVersionString(void)
{
    return tutti_version_text();
}

const char *tuttiGetErrorString(tuttiResult_t result)
{
    switch (result) {
    case tuttiSuccess: return "no error";
    case tuttiUnhandledCudaError: return "device call failed";
    case tuttiSystemError: return "the operating system refused";
    case tuttiInternalError: return "internal error of the library";
    case tuttiInvalidArgument: return "invalid argument";
    case tuttiInvalidUsage: return "invalid usage";
    case tuttiRemoteError: return "a rank has died, left or cannot be reached";
    case tuttiInProgress: return "in progress";
    case tuttiTimeout: return "a deadline has passed";
    default: return "unknown result code";
    }
}

const char *tuttiGetLastError(tuttiComm_t handle)
{
    struct tutti_comm *comm;

    /* If the communicator has failed, tutti_comm_error makes its failure the last message of this
     * thread. Otherwise the result is the message of the last failure on this thread. */
    if (handle != NULL && tutti_handle_visit(handle, "tuttiGetLastError", &comm) == TUTTI_OK) {
        tutti_comm_error(comm);
        tutti_handle_unvisit(handle);
    }
    tutti_log_enter(NULL);
    return tutti_message_last();
}
