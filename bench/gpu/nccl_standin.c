/* SPDX-License-Identifier: Apache-2.0
 * The names of NCCL that nccl_peer uses, implemented with Tutti's calls. With this library
 * nccl_peer can be tested without NCCL. */
#include <tutti.h>

#define EXPORT __attribute__((visibility("default")))

_Static_assert(sizeof(tuttiUniqueId) == 128, "as ncclUniqueId");

EXPORT int ncclGetVersion(int *ret_version);
EXPORT int ncclGetUniqueId(tuttiUniqueId *ret_id);
EXPORT int ncclCommInitRank(tuttiComm_t *ret_comm, int nranks, tuttiUniqueId id, int rank);
EXPORT int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op,
                         tuttiComm_t comm, tuttiStream_t stream);
EXPORT int ncclCommDestroy(tuttiComm_t comm);
EXPORT const char *ncclGetLastError(tuttiComm_t comm);

int ncclGetVersion(int *ret_version)
{
    return tuttiGetVersion(ret_version);
}

int ncclGetUniqueId(tuttiUniqueId *ret_id)
{
    return tuttiGetUniqueId(ret_id);
}

int ncclCommInitRank(tuttiComm_t *ret_comm, int nranks, tuttiUniqueId id, int rank)
{
    return tuttiCommInitRank(ret_comm, nranks, id, rank);
}

int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, tuttiComm_t comm,
                  tuttiStream_t stream)
{
    return tuttiAllReduce(send, recv, count, (tuttiDataType_t)type, (tuttiRedOp_t)op, comm,
                          stream);
}

int ncclCommDestroy(tuttiComm_t comm)
{
    return tuttiCommDestroy(comm);
}

const char *ncclGetLastError(tuttiComm_t comm)
{
    return tuttiGetLastError(comm);
}
