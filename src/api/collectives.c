/* SPDX-License-Identifier: Apache-2.0
 * The collectives and point-to-point calls of tutti.h. Each fills in its arguments; call.c does the
 * rest. */
#include "api/api.h"

tuttiResult_t tuttiAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                             tuttiDataType_t datatype, tuttiRedOp_t op, tuttiComm_t comm,
                             tuttiStream_t stream)
{
    return tutti_api_call(&(struct tutti_args){
        .function = __func__, .collective = TUTTI_ALLREDUCE, .comm = comm,
        .stream = stream, .type = datatype, .op = (int)op, .count = count, .send = sendbuff,
        .recv = recvbuff});
}

tuttiResult_t tuttiReduce(const void *sendbuff, void *recvbuff, size_t count,
                          tuttiDataType_t datatype, tuttiRedOp_t op, int root, tuttiComm_t comm,
                          tuttiStream_t stream)
{
    return tutti_api_call(&(struct tutti_args){
        .function = __func__, .collective = TUTTI_REDUCE, .comm = comm,
        .stream = stream, .type = datatype, .op = (int)op, .root = root, .count = count,
        .send = sendbuff, .recv = recvbuff});
}

tuttiResult_t tuttiScan(const void *sendbuff, void *recvbuff, size_t count,
                        tuttiDataType_t datatype, tuttiRedOp_t op, tuttiComm_t comm,
                        tuttiStream_t stream)
{
    return tutti_api_call(&(struct tutti_args){
        .function = __func__, .collective = TUTTI_SCAN, .comm = comm, .stream = stream,
        .type = datatype, .op = (int)op, .count = count, .send = sendbuff, .recv = recvbuff});
}

tuttiResult_t tuttiExclusiveScan(const void *sendbuff, void *recvbuff, size_t count,
                                 tuttiDataType_t datatype, tuttiRedOp_t op, tuttiComm_t comm,
                                 tuttiStream_t stream)
{
    return tutti_api_call(&(struct tutti_args){
        .function = __func__, .collective = TUTTI_EXCLUSIVE_SCAN, .comm = comm, .stream = stream,
        .type = datatype, .op = (int)op, .count = count, .send = sendbuff, .recv = recvbuff});
}

tuttiResult_t tuttiBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                             tuttiDataType_t datatype, int root, tuttiComm_t comm,
                             tuttiStream_t stream)
{
    return tutti_api_call(&(struct tutti_args){
        .function = __func__, .collective = TUTTI_BROADCAST, .comm = comm,
        .stream = stream, .type = datatype, .root = root, .count = count, .send = sendbuff,
        .recv = recvbuff});
}

tuttiResult_t tuttiAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
                             tuttiDataType_t datatype, tuttiComm_t comm, tuttiStream_t stream)
{
    return tutti_api_call(&(struct tutti_args){
        .function = __func__, .collective = TUTTI_ALLGATHER, .comm = comm,
        .stream = stream, .type = datatype, .count = sendcount, .send = sendbuff,
        .recv = recvbuff});
}

tuttiResult_t tuttiAllGatherV(const void *sendbuff, void *recvbuff, const size_t *recvcounts,
                              const size_t *displs, tuttiDataType_t datatype, tuttiComm_t comm,
                              tuttiStream_t stream)
{
    return tutti_api_call(&(struct tutti_args){
        .function = __func__, .kind = TUTTI_CALL_VECTOR, .collective = TUTTI_ALLGATHER,
        .comm = comm, .stream = stream, .type = datatype, .send = sendbuff, .recv = recvbuff,
        .recv_counts = recvcounts, .recv_displs = displs});
}

tuttiResult_t tuttiReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
                                 tuttiDataType_t datatype, tuttiRedOp_t op, tuttiComm_t comm,
                                 tuttiStream_t stream)
{
    return tutti_api_call(&(struct tutti_args){
        .function = __func__, .collective = TUTTI_REDUCE_SCATTER, .comm = comm, .stream = stream,
        .type = datatype, .op = (int)op, .count = recvcount, .send = sendbuff, .recv = recvbuff});
}

tuttiResult_t tuttiReduceScatterV(const void *sendbuff, void *recvbuff, const size_t *recvcounts,
                                  const size_t *displs, tuttiDataType_t datatype, tuttiRedOp_t op,
                                  tuttiComm_t comm, tuttiStream_t stream)
{
    return tutti_api_call(&(struct tutti_args){
        .function = __func__, .kind = TUTTI_CALL_VECTOR, .collective = TUTTI_REDUCE_SCATTER,
        .comm = comm, .stream = stream, .type = datatype, .op = (int)op, .send = sendbuff,
        .recv = recvbuff, .send_counts = recvcounts, .send_displs = displs});
}

tuttiResult_t tuttiAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
                            tuttiDataType_t datatype, tuttiComm_t comm, tuttiStream_t stream)
{
    return tutti_api_call(&(struct tutti_args){
        .function = __func__, .collective = TUTTI_ALLTOALL, .comm = comm,
        .stream = stream, .type = datatype, .count = count, .send = sendbuff, .recv = recvbuff});
}

tuttiResult_t tuttiAlltoAllV(const void *sendbuff, const size_t *sendcounts, const size_t *sdispls,
                             void *recvbuff, const size_t *recvcounts, const size_t *rdispls,
                             tuttiDataType_t datatype, tuttiComm_t comm, tuttiStream_t stream)
{
    return tutti_api_call(&(struct tutti_args){
        .function = __func__, .kind = TUTTI_CALL_VECTOR, .collective = TUTTI_ALLTOALL,
        .comm = comm, .stream = stream, .type = datatype, .send = sendbuff, .recv = recvbuff,
        .send_counts = sendcounts, .send_displs = sdispls, .recv_counts = recvcounts,
        .recv_displs = rdispls});
}

tuttiResult_t tuttiGather(const void *sendbuff, void *recvbuff, size_t count,
                          tuttiDataType_t datatype, int root, tuttiComm_t comm,
                          tuttiStream_t stream)
{
    return tutti_api_call(&(struct tutti_args){
        .function = __func__, .collective = TUTTI_GATHER, .comm = comm,
        .stream = stream, .type = datatype, .root = root, .count = count, .send = sendbuff,
        .recv = recvbuff});
}

tuttiResult_t tuttiGatherV(const void *sendbuff, size_t sendcount, void *recvbuff,
                           const size_t *recvcounts, const size_t *displs,
                           tuttiDataType_t datatype, int root, tuttiComm_t comm,
                           tuttiStream_t stream)
{
    return tutti_api_call(&(struct tutti_args){
        .function = __func__, .kind = TUTTI_CALL_VECTOR, .collective = TUTTI_GATHER,
        .comm = comm, .stream = stream, .type = datatype, .root = root, .count = sendcount,
        .send = sendbuff, .recv = recvbuff, .recv_counts = recvcounts, .recv_displs = displs});
}

tuttiResult_t tuttiScatter(const void *sendbuff, void *recvbuff, size_t count,
                           tuttiDataType_t datatype, int root, tuttiComm_t comm,
                           tuttiStream_t stream)
{
    return tutti_api_call(&(struct tutti_args){
        .function = __func__, .collective = TUTTI_SCATTER, .comm = comm,
        .stream = stream, .type = datatype, .root = root, .count = count, .send = sendbuff,
        .recv = recvbuff});
}

tuttiResult_t tuttiScatterV(const void *sendbuff, const size_t *sendcounts, const size_t *displs,
                            void *recvbuff, size_t recvcount, tuttiDataType_t datatype, int root,
                            tuttiComm_t comm, tuttiStream_t stream)
{
    return tutti_api_call(&(struct tutti_args){
        .function = __func__, .kind = TUTTI_CALL_VECTOR, .collective = TUTTI_SCATTER,
        .comm = comm, .stream = stream, .type = datatype, .root = root, .count = recvcount,
        .send = sendbuff, .recv = recvbuff, .send_counts = sendcounts, .send_displs = displs});
}

tuttiResult_t tuttiBarrier(tuttiComm_t comm, tuttiStream_t stream)
{
    return tutti_api_call(&(struct tutti_args){
        .function = __func__, .collective = TUTTI_BARRIER, .comm = comm, .stream = stream});
}

tuttiResult_t tuttiSend(const void *sendbuff, size_t count, tuttiDataType_t datatype, int peer,
                        tuttiComm_t comm, tuttiStream_t stream)
{
    return tutti_api_call(&(struct tutti_args){
        .function = __func__, .kind = TUTTI_CALL_SEND, .comm = comm, .stream = stream,
        .type = datatype, .root = peer, .count = count, .send = sendbuff});
}

tuttiResult_t tuttiRecv(void *recvbuff, size_t count, tuttiDataType_t datatype, int peer,
                        tuttiComm_t comm, tuttiStream_t stream)
{
    return tutti_api_call(&(struct tutti_args){
        .function = __func__, .kind = TUTTI_CALL_RECV, .comm = comm, .stream = stream,
        .type = datatype, .root = peer, .count = count, .recv = recvbuff});
}
