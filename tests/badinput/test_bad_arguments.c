/* SPDX-License-Identifier: Apache-2.0
 * Every argument of every call on a communicator is wrong once. The call returns a code and one
 * line that names the function and the error, and the communicator works as before. */
#include "tutti.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NRANKS = 2, ELEMENTS = 64 };

static tuttiComm_t comms[NRANKS];
static tuttiComm_t other;             /* a communicator of one rank */
static tuttiStream_t dead_stream;
static tuttiRedOp_t int_op, other_op, dead_op, later_op; /* later_op has the entry of dead_op */
static int32_t in[ELEMENTS], out[ELEMENTS];
static size_t counts[NRANKS] = {1, 1}, huge[NRANKS] = {SIZE_MAX / 2, SIZE_MAX / 2};
static size_t negative[NRANKS] = {(size_t)-1, 1}, far_away[NRANKS] = {0, SIZE_MAX - 4};
static size_t overflowing[NRANKS] = {1, SIZE_MAX};

#define ODD ((void *)((uintptr_t)in + 1))
#define BAD_TYPE ((tuttiDataType_t)77)
#define NEGATIVE_TYPE ((tuttiDataType_t)-1)
#define BAD_OP ((tuttiRedOp_t)77)
#define GARBAGE_STREAM ((tuttiStream_t)(void *)in)
#define NO_STREAM ((tuttiStream_t)(uintptr_t)0x10)
#define GARBAGE_COMM ((tuttiComm_t)(void *)in)
#define NO_COMM ((tuttiComm_t)(uintptr_t)0x10)

/* One call with one mistake, by rank 0. */
struct mistake {
    const char *text;
    tuttiResult_t (*make)(tuttiComm_t comm);
    tuttiResult_t expected;
    const char *words[2];             /* the function, and what is wrong */
};

#define MISTAKE(name, call) static tuttiResult_t name(tuttiComm_t c) { (void)c; return call; }
#define TABLE_ROW(name, result, function, word) {#name, name, result, {function, word}}

/* ---- what collectives share: one macro makes the mistakes of a call with these arguments ----- */

#define I32 tuttiInt32
#define COMMON(id, CALL)                                                                 \
    MISTAKE(id##_without_comm, CALL(in, out, 1, I32, NULL, NULL))                        \
    MISTAKE(id##_on_garbage, CALL(in, out, 1, I32, GARBAGE_COMM, NULL))                  \
    MISTAKE(id##_on_no_address, CALL(in, out, 1, I32, NO_COMM, NULL))                    \
    MISTAKE(id##_on_garbage_stream, CALL(in, out, 1, I32, c, GARBAGE_STREAM))            \
    MISTAKE(id##_on_no_stream, CALL(in, out, 1, I32, c, NO_STREAM))                      \
    MISTAKE(id##_on_dead_stream, CALL(in, out, 1, I32, c, dead_stream))
#define COMMON_ROWS(id, f)                                                               \
    TABLE_ROW(id##_without_comm, tuttiInvalidArgument, f, "comm is NULL"),               \
    TABLE_ROW(id##_on_garbage, tuttiInvalidArgument, f, "not a communicator"),           \
    TABLE_ROW(id##_on_no_address, tuttiInvalidArgument, f, "not a communicator"),        \
    TABLE_ROW(id##_on_garbage_stream, tuttiInvalidArgument, f, "stream"),                \
    TABLE_ROW(id##_on_no_stream, tuttiInvalidArgument, f, "stream"),                     \
    TABLE_ROW(id##_on_dead_stream, tuttiInvalidArgument, f, "stream")
#define DATA(id, CALL)                                                                   \
    COMMON(id, CALL)                                                                     \
    MISTAKE(id##_of_unknown_type, CALL(in, out, 1, BAD_TYPE, c, NULL))                   \
    MISTAKE(id##_of_negative_type, CALL(in, out, 1, NEGATIVE_TYPE, c, NULL))             \
    MISTAKE(id##_of_negative_count, CALL(in, out, (size_t)-1, I32, c, NULL))             \
    MISTAKE(id##_of_overflowing_count, CALL(in, out, SIZE_MAX / 4 + 2, I32, c, NULL))
#define DATA_ROWS(id, f)                                                                 \
    COMMON_ROWS(id, f),                                                                  \
    TABLE_ROW(id##_of_unknown_type, tuttiInvalidArgument, f, "datatype 77"),             \
    TABLE_ROW(id##_of_negative_type, tuttiInvalidArgument, f, "datatype -1"),            \
    TABLE_ROW(id##_of_negative_count, tuttiInvalidArgument, f, "count is negative"),     \
    TABLE_ROW(id##_of_overflowing_count, tuttiInvalidArgument, f, "overflows")
#define SENDS(id, CALL)                                                                  \
    MISTAKE(id##_without_input, CALL(NULL, out, 1, I32, c, NULL))                        \
    MISTAKE(id##_of_odd_input, CALL(ODD, out + 8, 1, I32, c, NULL))
#define SENDS_ROWS(id, f)                                                                \
    TABLE_ROW(id##_without_input, tuttiInvalidArgument, f, "sendbuff is NULL"),          \
    TABLE_ROW(id##_of_odd_input, tuttiInvalidArgument, f, "aligned")
#define RECEIVES(id, CALL)                                                               \
    MISTAKE(id##_without_output, CALL(in, NULL, 1, I32, c, NULL))                        \
    MISTAKE(id##_to_odd_output, CALL(in + 16, ODD, 1, I32, c, NULL))
#define RECEIVES_ROWS(id, f)                                                             \
    TABLE_ROW(id##_without_output, tuttiInvalidArgument, f, "recvbuff is NULL"),         \
    TABLE_ROW(id##_to_odd_output, tuttiInvalidArgument, f, "aligned")
#define BOTH(id, CALL) DATA(id, CALL) SENDS(id, CALL) RECEIVES(id, CALL)                 \
    MISTAKE(id##_overlapping, CALL(in, in + 1, 4, I32, c, NULL))
#define BOTH_ROWS(id, f) DATA_ROWS(id, f), SENDS_ROWS(id, f), RECEIVES_ROWS(id, f),      \
    TABLE_ROW(id##_overlapping, tuttiInvalidArgument, f, "overlap")

#define ALLREDUCE(i, o, n, t, c, s) tuttiAllReduce(i, o, n, t, tuttiSum, c, s)
#define REDUCE(i, o, n, t, c, s) tuttiReduce(i, o, n, t, tuttiSum, 0, c, s)
#define BROADCAST(i, o, n, t, c, s) tuttiBroadcast(i, o, n, t, 0, c, s)
#define ALLGATHER(i, o, n, t, c, s) tuttiAllGather(i, o, n, t, c, s)
#define REDUCESCATTER(i, o, n, t, c, s) tuttiReduceScatter(i, o, n, t, tuttiSum, c, s)
#define ALLTOALL(i, o, n, t, c, s) tuttiAlltoAll(i, o, n, t, c, s)
#define GATHER(i, o, n, t, c, s) tuttiGather(i, o, n, t, 0, c, s)
#define SCATTER(i, o, n, t, c, s) tuttiScatter(i, o, n, t, 0, c, s)
#define SCAN(i, o, n, t, c, s) tuttiScan(i, o, n, t, tuttiSum, c, s)
#define EXCLUSIVE_SCAN(i, o, n, t, c, s) tuttiExclusiveScan(i, o, n, t, tuttiSum, c, s)
#define SEND(i, o, n, t, c, s) tuttiSend(i, n, t, 1, c, s)
#define RECV(i, o, n, t, c, s) tuttiRecv(o, n, t, 1, c, s)
#define BARRIER(i, o, n, t, c, s) tuttiBarrier(c, s)
#define GATHERV(i, o, n, t, c, s) tuttiAllGatherV(i, o, counts, NULL, t, c, s)
#define SCATTERV(i, o, n, t, c, s) tuttiReduceScatterV(i, o, counts, NULL, t, tuttiSum, c, s)
#define ALLTOALLV(i, o, n, t, c, s) tuttiAlltoAllV(i, counts, NULL, o, counts, NULL, t, c, s)

#define ROOTED_GATHERV(i, o, n, t, c, s) tuttiGatherV(i, 1, o, counts, NULL, t, 0, c, s)
#define ROOTED_SCATTERV(i, o, n, t, c, s) tuttiScatterV(i, counts, NULL, o, 1, t, 0, c, s)

BOTH(allreduce, ALLREDUCE)
BOTH(reduce, REDUCE)
BOTH(broadcast, BROADCAST)
BOTH(allgather, ALLGATHER)
BOTH(reducescatter, REDUCESCATTER)
BOTH(alltoall, ALLTOALL)
BOTH(gather, GATHER)
BOTH(scatter, SCATTER)
BOTH(scan, SCAN)
DATA(exclusive_scan, EXCLUSIVE_SCAN) SENDS(exclusive_scan, EXCLUSIVE_SCAN)
DATA(send, SEND) SENDS(send, SEND)
DATA(recv, RECV) RECEIVES(recv, RECV)
COMMON(barrier, BARRIER)
COMMON(gatherv, GATHERV) SENDS(gatherv, GATHERV) RECEIVES(gatherv, GATHERV)
COMMON(scatterv, SCATTERV) SENDS(scatterv, SCATTERV) RECEIVES(scatterv, SCATTERV)
COMMON(alltoallv, ALLTOALLV) SENDS(alltoallv, ALLTOALLV) RECEIVES(alltoallv, ALLTOALLV)
COMMON(rooted_gatherv, ROOTED_GATHERV) SENDS(rooted_gatherv, ROOTED_GATHERV)
RECEIVES(rooted_gatherv, ROOTED_GATHERV)
COMMON(rooted_scatterv, ROOTED_SCATTERV) SENDS(rooted_scatterv, ROOTED_SCATTERV)
RECEIVES(rooted_scatterv, ROOTED_SCATTERV)

/* ---- what is particular ---------------------------------------------------------------------- */

MISTAKE(allreduce_of_unknown_op, tuttiAllReduce(in, out, 1, I32, BAD_OP, c, NULL))
MISTAKE(allreduce_of_negative_op, tuttiAllReduce(in, out, 1, I32, (tuttiRedOp_t)-1, c, NULL))
MISTAKE(allreduce_of_anothers_op, tuttiAllReduce(in, out, 1, I32, other_op, c, NULL))
MISTAKE(allreduce_of_dead_op, tuttiAllReduce(in, out, 1, I32, dead_op, c, NULL))
MISTAKE(allreduce_of_op_of_type, tuttiAllReduce(in, out, 1, tuttiFloat32, int_op, c, NULL))
MISTAKE(allreduce_of_bits_of_floats, tuttiAllReduce(in, out, 1, tuttiFloat32, tuttiBand, c, NULL))
MISTAKE(reduce_of_truth_of_floats, tuttiReduce(in, out, 1, tuttiBfloat16, tuttiLxor, 0, c, NULL))
MISTAKE(reducescatter_of_average_of_bool,
        tuttiReduceScatter(in, out, 1, tuttiBool, tuttiAvg, c, NULL))
MISTAKE(reduce_of_unknown_op, tuttiReduce(in, out, 1, I32, BAD_OP, 0, c, NULL))
MISTAKE(reducescatter_of_unknown_op, tuttiReduceScatter(in, out, 1, I32, BAD_OP, c, NULL))
MISTAKE(scatterv_of_unknown_op, tuttiReduceScatterV(in, out, counts, NULL, I32, BAD_OP, c, NULL))
MISTAKE(scan_of_unknown_op, tuttiScan(in, out, 1, I32, BAD_OP, c, NULL))
MISTAKE(scan_of_average, tuttiScan(in, out, 1, I32, tuttiAvg, c, NULL))
MISTAKE(exclusive_scan_of_average, tuttiExclusiveScan(in, out, 1, I32, tuttiAvg, c, NULL))
MISTAKE(reduce_to_rank_2, tuttiReduce(in, out, 1, I32, tuttiSum, NRANKS, c, NULL))
MISTAKE(reduce_to_rank_minus_1, tuttiReduce(in, out, 1, I32, tuttiSum, -1, c, NULL))
MISTAKE(broadcast_from_rank_2, tuttiBroadcast(in, out, 1, I32, NRANKS, c, NULL))
MISTAKE(broadcast_from_rank_minus_1, tuttiBroadcast(in, out, 1, I32, -1, c, NULL))
MISTAKE(gather_to_rank_2, tuttiGather(in, out, 1, I32, NRANKS, c, NULL))
MISTAKE(scatter_from_rank_2, tuttiScatter(in, out, 1, I32, NRANKS, c, NULL))
MISTAKE(send_to_rank_2, tuttiSend(in, 1, I32, NRANKS, c, NULL))
MISTAKE(send_to_rank_minus_1, tuttiSend(in, 1, I32, -1, c, NULL))
MISTAKE(recv_from_rank_2, tuttiRecv(out, 1, I32, NRANKS, c, NULL))
MISTAKE(gatherv_without_counts, tuttiAllGatherV(in, out, NULL, NULL, I32, c, NULL))
MISTAKE(gatherv_of_huge_counts, tuttiAllGatherV(in, out, huge, NULL, I32, c, NULL))
MISTAKE(gatherv_of_negative_count, tuttiAllGatherV(in, out, negative, NULL, I32, c, NULL))
MISTAKE(gatherv_of_far_displs, tuttiAllGatherV(in, out, counts, far_away, I32, c, NULL))
MISTAKE(gatherv_of_unknown_type, tuttiAllGatherV(in, out, counts, NULL, BAD_TYPE, c, NULL))
MISTAKE(gatherv_overlapping, tuttiAllGatherV(in + 1, in, counts, NULL, I32, c, NULL))
MISTAKE(scatterv_without_counts, tuttiReduceScatterV(in, out, NULL, NULL, I32, tuttiSum, c, NULL))
MISTAKE(scatterv_of_huge_counts, tuttiReduceScatterV(in, out, huge, NULL, I32, tuttiSum, c, NULL))
MISTAKE(scatterv_of_far_displs,
        tuttiReduceScatterV(in, out, counts, far_away, I32, tuttiSum, c, NULL))
MISTAKE(alltoallv_without_sendcounts,
        tuttiAlltoAllV(in, NULL, NULL, out, counts, NULL, I32, c, NULL))
MISTAKE(alltoallv_without_recvcounts,
        tuttiAlltoAllV(in, counts, NULL, out, NULL, NULL, I32, c, NULL))
MISTAKE(alltoallv_of_huge_sends, tuttiAlltoAllV(in, huge, NULL, out, huge, NULL, I32, c, NULL))
MISTAKE(alltoallv_of_far_displs,
        tuttiAlltoAllV(in, counts, far_away, out, counts, NULL, I32, c, NULL))

static size_t two_one[NRANKS] = {2, 1}, one_two[NRANKS] = {1, 2};
MISTAKE(alltoallv_unequal_to_itself,
        tuttiAlltoAllV(in, two_one, NULL, out, counts, NULL, I32, c, NULL))
MISTAKE(alltoallv_in_place_unequal,
        tuttiAlltoAllV(in, counts, NULL, in, one_two, NULL, I32, c, NULL))
MISTAKE(alltoallv_in_place_displaced,
        tuttiAlltoAllV(in, counts, NULL, in, counts, one_two, I32, c, NULL))

/* Blocks of an output that overlap, in ascending order and in another one. */
static size_t three_three[NRANKS] = {3, 3}, zero_two[NRANKS] = {0, 2}, two_zero[NRANKS] = {2, 0};
MISTAKE(gatherv_of_overlapping_blocks,
        tuttiAllGatherV(in, out, three_three, zero_two, I32, c, NULL))
MISTAKE(gatherv_of_overlapping_blocks_backwards,
        tuttiAllGatherV(in, out, three_three, two_zero, I32, c, NULL))
MISTAKE(alltoallv_of_overlapping_blocks,
        tuttiAlltoAllV(in, three_three, NULL, out, three_three, zero_two, I32, c, NULL))
MISTAKE(alltoallv_of_overlapping_blocks_backwards,
        tuttiAlltoAllV(in, three_three, NULL, out, three_three, two_zero, I32, c, NULL))

/* The root of these is rank 0, or rank 1, whose arrays nobody reads here. */
#define GATHER_OF(n, counts, displs, t, root) \
    tuttiGatherV(in, n, out, counts, displs, t, root, c, NULL)
#define SCATTER_OF(n, counts, displs, t, root) \
    tuttiScatterV(in, counts, displs, out, n, t, root, c, NULL)
MISTAKE(rooted_gatherv_without_counts, GATHER_OF(1, NULL, NULL, I32, 0))
MISTAKE(rooted_gatherv_of_huge_counts, GATHER_OF(SIZE_MAX / 2, huge, NULL, I32, 0))
MISTAKE(rooted_gatherv_of_negative_count, GATHER_OF((size_t)-1, negative, NULL, I32, 0))
MISTAKE(rooted_gatherv_of_own_negative_count, GATHER_OF((size_t)-1, NULL, NULL, I32, 1))
MISTAKE(rooted_gatherv_of_overflowing_sum, GATHER_OF(1, overflowing, NULL, I32, 0))
MISTAKE(rooted_gatherv_of_far_displs, GATHER_OF(1, counts, far_away, I32, 0))
MISTAKE(rooted_gatherv_of_unknown_type, GATHER_OF(1, counts, NULL, BAD_TYPE, 0))
MISTAKE(rooted_gatherv_unequal_to_itself, GATHER_OF(2, counts, NULL, I32, 0))
MISTAKE(rooted_gatherv_of_overlapping_blocks, GATHER_OF(3, three_three, zero_two, I32, 0))
MISTAKE(rooted_gatherv_overlapping,
        tuttiGatherV(in + 1, 1, in, counts, NULL, I32, 0, c, NULL))
MISTAKE(rooted_gatherv_without_input_elsewhere,
        tuttiGatherV(NULL, 1, NULL, NULL, NULL, I32, 1, c, NULL))
MISTAKE(rooted_gatherv_to_rank_2, GATHER_OF(1, counts, NULL, I32, NRANKS))
MISTAKE(rooted_gatherv_to_rank_minus_1, GATHER_OF(1, counts, NULL, I32, -1))
MISTAKE(rooted_scatterv_without_counts, SCATTER_OF(1, NULL, NULL, I32, 0))
MISTAKE(rooted_scatterv_of_huge_counts, SCATTER_OF(SIZE_MAX / 2, huge, NULL, I32, 0))
MISTAKE(rooted_scatterv_of_own_negative_count, SCATTER_OF((size_t)-1, NULL, NULL, I32, 1))
MISTAKE(rooted_scatterv_of_overflowing_sum, SCATTER_OF(1, overflowing, NULL, I32, 0))
MISTAKE(rooted_scatterv_of_far_displs, SCATTER_OF(1, counts, far_away, I32, 0))
MISTAKE(rooted_scatterv_of_unknown_type, SCATTER_OF(1, counts, NULL, BAD_TYPE, 0))
MISTAKE(rooted_scatterv_unequal_to_itself, SCATTER_OF(2, counts, NULL, I32, 0))
MISTAKE(rooted_scatterv_overlapping,
        tuttiScatterV(in, counts, NULL, in + 1, 1, I32, 0, c, NULL))
MISTAKE(rooted_scatterv_without_output_elsewhere,
        tuttiScatterV(NULL, NULL, NULL, NULL, 1, I32, 1, c, NULL))
MISTAKE(rooted_scatterv_from_rank_2, SCATTER_OF(1, counts, NULL, I32, NRANKS))
MISTAKE(rooted_scatterv_from_rank_minus_1, SCATTER_OF(1, counts, NULL, I32, -1))

static int number;
static void *pointer;
static tuttiResult_t state;
static tuttiMemStats_t stats;
static tuttiMemStats_t no_stats;      /* size 0 */
static tuttiComm_t made;
static float one = 1.0f;

MISTAKE(count_without_comm, tuttiCommCount(NULL, &number))
MISTAKE(count_on_garbage, tuttiCommCount(GARBAGE_COMM, &number))
MISTAKE(count_to_null, tuttiCommCount(c, NULL))
MISTAKE(userrank_without_comm, tuttiCommUserRank(NULL, &number))
MISTAKE(userrank_to_null, tuttiCommUserRank(c, NULL))
MISTAKE(async_without_comm, tuttiCommGetAsyncError(NULL, &state))
MISTAKE(async_on_garbage, tuttiCommGetAsyncError(NO_COMM, &state))
MISTAKE(async_to_null, tuttiCommGetAsyncError(c, NULL))
MISTAKE(stats_without_comm, tuttiCommMemStats(NULL, &stats))
MISTAKE(stats_to_null, tuttiCommMemStats(c, NULL))
MISTAKE(stats_of_no_size, tuttiCommMemStats(c, &no_stats))
MISTAKE(finalize_without_comm, tuttiCommFinalize(NULL))
MISTAKE(finalize_garbage, tuttiCommFinalize(GARBAGE_COMM))
MISTAKE(destroy_garbage, tuttiCommDestroy(GARBAGE_COMM))
MISTAKE(destroy_no_address, tuttiCommDestroy(NO_COMM))
MISTAKE(abort_without_comm, tuttiCommAbort(NULL))
MISTAKE(abort_garbage, tuttiCommAbort(GARBAGE_COMM))
MISTAKE(split_without_comm, tuttiCommSplit(NULL, 0, 0, &made, NULL))
MISTAKE(split_to_null, tuttiCommSplit(c, 0, 0, NULL, NULL))
MISTAKE(split_of_color_minus_2, tuttiCommSplit(c, -2, 0, &made, NULL))
MISTAKE(op_to_null,
        tuttiRedOpCreatePreMulSum(NULL, &one, tuttiFloat32, tuttiScalarHostImmediate, c))
MISTAKE(op_of_null, tuttiRedOpCreatePreMulSum(&int_op, NULL, tuttiFloat32, tuttiScalarDevice, c))
MISTAKE(op_of_bool, tuttiRedOpCreatePreMulSum(&int_op, &one, tuttiBool, tuttiScalarDevice, c))
MISTAKE(op_of_type, tuttiRedOpCreatePreMulSum(&int_op, &one, BAD_TYPE, tuttiScalarDevice, c))
MISTAKE(op_of_residence,
        tuttiRedOpCreatePreMulSum(&int_op, &one, tuttiFloat32, (tuttiScalarResidence_t)7, c))
MISTAKE(op_without_comm,
        tuttiRedOpCreatePreMulSum(&int_op, &one, tuttiFloat32, tuttiScalarDevice, NULL))
MISTAKE(destroy_unknown_op, tuttiRedOpDestroy(BAD_OP, c))
MISTAKE(destroy_builtin_op, tuttiRedOpDestroy(tuttiSum, c))
MISTAKE(destroy_dead_op, tuttiRedOpDestroy(dead_op, c))
MISTAKE(destroy_anothers_op, tuttiRedOpDestroy(other_op, c))
MISTAKE(destroy_op_without_comm, tuttiRedOpDestroy(int_op, NULL))
MISTAKE(version_to_null, tuttiGetVersion(NULL))
MISTAKE(id_to_null, tuttiGetUniqueId(NULL))
MISTAKE(alloc_to_null, tuttiMemAlloc(NULL, 1))
MISTAKE(alloc_negative, tuttiMemAlloc(&pointer, (size_t)-1))
MISTAKE(free_garbage, tuttiMemFree(in))
MISTAKE(end_without_start, tuttiGroupEnd())
MISTAKE(stream_to_null, tuttiHostStreamCreate(NULL))
MISTAKE(destroy_garbage_stream, tuttiHostStreamDestroy(GARBAGE_STREAM))
MISTAKE(destroy_no_stream, tuttiHostStreamDestroy(NO_STREAM))
MISTAKE(destroy_dead_stream, tuttiHostStreamDestroy(dead_stream))
MISTAKE(synchronize_null, tuttiStreamSynchronize(NULL))
MISTAKE(synchronize_garbage, tuttiStreamSynchronize(GARBAGE_STREAM))
MISTAKE(synchronize_dead, tuttiStreamSynchronize(dead_stream))
MISTAKE(query_null, tuttiStreamQuery(NULL))
MISTAKE(query_dead, tuttiStreamQuery(dead_stream))
MISTAKE(event_of_null, tuttiStreamEventFd(NULL, &number))
MISTAKE(event_of_dead, tuttiStreamEventFd(dead_stream, &number))

#define ARGUMENT tuttiInvalidArgument
#define ROW TABLE_ROW

static const struct mistake mistakes[] = {
    BOTH_ROWS(allreduce, "tuttiAllReduce"), BOTH_ROWS(reduce, "tuttiReduce"),
    BOTH_ROWS(broadcast, "tuttiBroadcast"), BOTH_ROWS(allgather, "tuttiAllGather"),
    BOTH_ROWS(reducescatter, "tuttiReduceScatter"), BOTH_ROWS(alltoall, "tuttiAlltoAll"),
    BOTH_ROWS(gather, "tuttiGather"), BOTH_ROWS(scatter, "tuttiScatter"),
    BOTH_ROWS(scan, "tuttiScan"), DATA_ROWS(exclusive_scan, "tuttiExclusiveScan"),
    SENDS_ROWS(exclusive_scan, "tuttiExclusiveScan"),
    DATA_ROWS(send, "tuttiSend"), SENDS_ROWS(send, "tuttiSend"),
    DATA_ROWS(recv, "tuttiRecv"), RECEIVES_ROWS(recv, "tuttiRecv"),
    COMMON_ROWS(barrier, "tuttiBarrier"),
    COMMON_ROWS(gatherv, "tuttiAllGatherV"), SENDS_ROWS(gatherv, "tuttiAllGatherV"),
    RECEIVES_ROWS(gatherv, "tuttiAllGatherV"),
    COMMON_ROWS(scatterv, "tuttiReduceScatterV"), SENDS_ROWS(scatterv, "tuttiReduceScatterV"),
    RECEIVES_ROWS(scatterv, "tuttiReduceScatterV"),
    COMMON_ROWS(alltoallv, "tuttiAlltoAllV"), SENDS_ROWS(alltoallv, "tuttiAlltoAllV"),
    RECEIVES_ROWS(alltoallv, "tuttiAlltoAllV"),
    COMMON_ROWS(rooted_gatherv, "tuttiGatherV"), SENDS_ROWS(rooted_gatherv, "tuttiGatherV"),
    RECEIVES_ROWS(rooted_gatherv, "tuttiGatherV"),
    COMMON_ROWS(rooted_scatterv, "tuttiScatterV"), SENDS_ROWS(rooted_scatterv, "tuttiScatterV"),
    RECEIVES_ROWS(rooted_scatterv, "tuttiScatterV"),

    ROW(allreduce_of_unknown_op, ARGUMENT, "tuttiAllReduce", "op 77"),
    ROW(allreduce_of_negative_op, ARGUMENT, "tuttiAllReduce", "op -1"),
    ROW(allreduce_of_anothers_op, ARGUMENT, "tuttiAllReduce", "no operation of"),
    ROW(allreduce_of_dead_op, ARGUMENT, "tuttiAllReduce", "no operation of"),
    ROW(allreduce_of_op_of_type, ARGUMENT, "tuttiAllReduce", "was made for"),
    ROW(allreduce_of_bits_of_floats, ARGUMENT, "tuttiAllReduce", "(band) on rank 0 is not defined"),
    ROW(reduce_of_truth_of_floats, ARGUMENT, "tuttiReduce", "(bfloat16); use bool, a type of"),
    ROW(reducescatter_of_average_of_bool, ARGUMENT, "tuttiReduceScatter", "(avg) on rank 0"),
    ROW(reduce_of_unknown_op, ARGUMENT, "tuttiReduce", "op 77"),
    ROW(reducescatter_of_unknown_op, ARGUMENT, "tuttiReduceScatter", "op 77"),
    ROW(scatterv_of_unknown_op, ARGUMENT, "tuttiReduceScatterV", "op 77"),
    ROW(scan_of_unknown_op, ARGUMENT, "tuttiScan", "op 77"),
    ROW(scan_of_average, ARGUMENT, "tuttiScan", "op tuttiAvg on rank"),
    ROW(exclusive_scan_of_average, ARGUMENT, "tuttiExclusiveScan", "use tuttiSum and divide"),
    ROW(reduce_to_rank_2, ARGUMENT, "tuttiReduce", "root 2"),
    ROW(reduce_to_rank_minus_1, ARGUMENT, "tuttiReduce", "root -1"),
    ROW(broadcast_from_rank_2, ARGUMENT, "tuttiBroadcast", "root 2"),
    ROW(broadcast_from_rank_minus_1, ARGUMENT, "tuttiBroadcast", "root -1"),
    ROW(gather_to_rank_2, ARGUMENT, "tuttiGather", "root 2"),
    ROW(scatter_from_rank_2, ARGUMENT, "tuttiScatter", "root 2"),
    ROW(send_to_rank_2, ARGUMENT, "tuttiSend", "peer 2"),
    ROW(send_to_rank_minus_1, ARGUMENT, "tuttiSend", "peer -1"),
    ROW(recv_from_rank_2, ARGUMENT, "tuttiRecv", "peer 2"),
    ROW(gatherv_without_counts, ARGUMENT, "tuttiAllGatherV", "counts is NULL"),
    ROW(gatherv_of_huge_counts, ARGUMENT, "tuttiAllGatherV", "overflows"),
    ROW(gatherv_of_negative_count, ARGUMENT, "tuttiAllGatherV", "negative"),
    ROW(gatherv_of_far_displs, ARGUMENT, "tuttiAllGatherV", "overflows"),
    ROW(gatherv_of_unknown_type, ARGUMENT, "tuttiAllGatherV", "datatype 77"),
    ROW(gatherv_overlapping, ARGUMENT, "tuttiAllGatherV", "overlap"),
    ROW(gatherv_of_overlapping_blocks, ARGUMENT, "tuttiAllGatherV",
        "displs[0] = 0 with recvcounts[0] = 3, displs[1] = 2 with recvcounts[1] = 3"),
    ROW(gatherv_of_overlapping_blocks_backwards, ARGUMENT, "tuttiAllGatherV",
        "displs[0] = 2 with recvcounts[0] = 3, displs[1] = 0 with recvcounts[1] = 3"),
    ROW(scatterv_without_counts, ARGUMENT, "tuttiReduceScatterV", "counts is NULL"),
    ROW(scatterv_of_huge_counts, ARGUMENT, "tuttiReduceScatterV", "overflows"),
    ROW(scatterv_of_far_displs, ARGUMENT, "tuttiReduceScatterV", "overflows"),
    ROW(alltoallv_without_sendcounts, ARGUMENT, "tuttiAlltoAllV", "counts is NULL"),
    ROW(alltoallv_without_recvcounts, ARGUMENT, "tuttiAlltoAllV", "counts is NULL"),
    ROW(alltoallv_of_huge_sends, ARGUMENT, "tuttiAlltoAllV", "overflows"),
    ROW(alltoallv_of_far_displs, ARGUMENT, "tuttiAlltoAllV", "overflows"),
    ROW(alltoallv_of_overlapping_blocks, ARGUMENT, "tuttiAlltoAllV",
        "rdispls[0] = 0 with recvcounts[0] = 3, rdispls[1] = 2 with recvcounts[1] = 3"),
    ROW(alltoallv_of_overlapping_blocks_backwards, ARGUMENT, "tuttiAlltoAllV",
        "rdispls[0] = 2 with recvcounts[0] = 3, rdispls[1] = 0 with recvcounts[1] = 3"),
    ROW(alltoallv_unequal_to_itself, ARGUMENT, "tuttiAlltoAllV", "sends itself"),
    ROW(alltoallv_in_place_unequal, ARGUMENT, "tuttiAlltoAllV", "in place"),
    ROW(alltoallv_in_place_displaced, ARGUMENT, "tuttiAlltoAllV", "in place"),

    ROW(rooted_gatherv_without_counts, ARGUMENT, "tuttiGatherV", "counts is NULL on rank 0"),
    ROW(rooted_gatherv_of_huge_counts, ARGUMENT, "tuttiGatherV", "overflows"),
    ROW(rooted_gatherv_of_negative_count, ARGUMENT, "tuttiGatherV", "negative"),
    ROW(rooted_gatherv_of_own_negative_count, ARGUMENT, "tuttiGatherV", "negative"),
    ROW(rooted_gatherv_of_overflowing_sum, ARGUMENT, "tuttiGatherV", "overflows"),
    ROW(rooted_gatherv_of_far_displs, ARGUMENT, "tuttiGatherV", "overflows"),
    ROW(rooted_gatherv_of_unknown_type, ARGUMENT, "tuttiGatherV", "datatype 77"),
    ROW(rooted_gatherv_unequal_to_itself, ARGUMENT, "tuttiGatherV",
        "rank 0 sends itself 2 elements and receives 1"),
    ROW(rooted_gatherv_of_overlapping_blocks, ARGUMENT, "tuttiGatherV",
        "displs[0] = 0 with recvcounts[0] = 3, displs[1] = 2 with recvcounts[1] = 3"),
    ROW(rooted_gatherv_overlapping, ARGUMENT, "tuttiGatherV", "overlap"),
    ROW(rooted_gatherv_without_input_elsewhere, ARGUMENT, "tuttiGatherV", "sendbuff is NULL"),
    ROW(rooted_gatherv_to_rank_2, ARGUMENT, "tuttiGatherV", "root 2"),
    ROW(rooted_gatherv_to_rank_minus_1, ARGUMENT, "tuttiGatherV", "root -1"),
    ROW(rooted_scatterv_without_counts, ARGUMENT, "tuttiScatterV", "counts is NULL on rank 0"),
    ROW(rooted_scatterv_of_huge_counts, ARGUMENT, "tuttiScatterV", "overflows"),
    ROW(rooted_scatterv_of_own_negative_count, ARGUMENT, "tuttiScatterV", "negative"),
    ROW(rooted_scatterv_of_overflowing_sum, ARGUMENT, "tuttiScatterV", "overflows"),
    ROW(rooted_scatterv_of_far_displs, ARGUMENT, "tuttiScatterV", "overflows"),
    ROW(rooted_scatterv_of_unknown_type, ARGUMENT, "tuttiScatterV", "datatype 77"),
    ROW(rooted_scatterv_unequal_to_itself, ARGUMENT, "tuttiScatterV",
        "rank 0 sends itself 1 elements and receives 2"),
    ROW(rooted_scatterv_overlapping, ARGUMENT, "tuttiScatterV", "overlap"),
    ROW(rooted_scatterv_without_output_elsewhere, ARGUMENT, "tuttiScatterV", "recvbuff is NULL"),
    ROW(rooted_scatterv_from_rank_2, ARGUMENT, "tuttiScatterV", "root 2"),
    ROW(rooted_scatterv_from_rank_minus_1, ARGUMENT, "tuttiScatterV", "root -1"),

    ROW(count_without_comm, ARGUMENT, "tuttiCommCount", "comm is NULL"),
    ROW(count_on_garbage, ARGUMENT, "tuttiCommCount", "not a communicator"),
    ROW(count_to_null, ARGUMENT, "tuttiCommCount", "count is NULL"),
    ROW(userrank_without_comm, ARGUMENT, "tuttiCommUserRank", "comm is NULL"),
    ROW(userrank_to_null, ARGUMENT, "tuttiCommUserRank", "rank is NULL"),
    ROW(async_without_comm, ARGUMENT, "tuttiCommGetAsyncError", "comm is NULL"),
    ROW(async_on_garbage, ARGUMENT, "tuttiCommGetAsyncError", "not a communicator"),
    ROW(async_to_null, ARGUMENT, "tuttiCommGetAsyncError", "asyncError is NULL"),
    ROW(stats_without_comm, ARGUMENT, "tuttiCommMemStats", "comm is NULL"),
    ROW(stats_to_null, ARGUMENT, "tuttiCommMemStats", "stats is NULL"),
    ROW(stats_of_no_size, ARGUMENT, "tuttiCommMemStats", "sizeof"),
    ROW(finalize_without_comm, ARGUMENT, "tuttiCommFinalize", "comm is NULL"),
    ROW(finalize_garbage, ARGUMENT, "tuttiCommFinalize", "not a communicator"),
    ROW(destroy_garbage, ARGUMENT, "tuttiCommDestroy", "not a communicator"),
    ROW(destroy_no_address, ARGUMENT, "tuttiCommDestroy", "not a communicator"),
    ROW(abort_without_comm, ARGUMENT, "tuttiCommAbort", "comm is NULL"),
    ROW(abort_garbage, ARGUMENT, "tuttiCommAbort", "not a communicator"),
    ROW(split_without_comm, ARGUMENT, "tuttiCommSplit", "comm is NULL"),
    ROW(split_to_null, ARGUMENT, "tuttiCommSplit", "newcomm is NULL"),
    ROW(split_of_color_minus_2, ARGUMENT, "tuttiCommSplit", "color -2"),
    ROW(op_to_null, ARGUMENT, "tuttiRedOpCreatePreMulSum", "op is NULL"),
    ROW(op_of_null, ARGUMENT, "tuttiRedOpCreatePreMulSum", "scalar is NULL"),
    ROW(op_of_bool, ARGUMENT, "tuttiRedOpCreatePreMulSum", "(bool) has no pre-multiplied sums"),
    ROW(op_of_type, ARGUMENT, "tuttiRedOpCreatePreMulSum", "datatype 77"),
    ROW(op_of_residence, ARGUMENT, "tuttiRedOpCreatePreMulSum", "residence 7"),
    ROW(op_without_comm, ARGUMENT, "tuttiRedOpCreatePreMulSum", "comm is NULL"),
    ROW(destroy_unknown_op, ARGUMENT, "tuttiRedOpDestroy", "op 77"),
    ROW(destroy_builtin_op, ARGUMENT, "tuttiRedOpDestroy", "op 0"),
    ROW(destroy_dead_op, ARGUMENT, "tuttiRedOpDestroy", "destroyed"),
    ROW(destroy_anothers_op, ARGUMENT, "tuttiRedOpDestroy", "was not made"),
    ROW(destroy_op_without_comm, ARGUMENT, "tuttiRedOpDestroy", "comm is NULL"),
    ROW(version_to_null, ARGUMENT, "tuttiGetVersion", "version is NULL"),
    ROW(id_to_null, ARGUMENT, "tuttiGetUniqueId", "uniqueId is NULL"),
    ROW(alloc_to_null, ARGUMENT, "tuttiMemAlloc", "ptr is NULL"),
    ROW(alloc_negative, ARGUMENT, "tuttiMemAlloc", "negative"),
    ROW(free_garbage, ARGUMENT, "tuttiMemFree", "not from"),
    ROW(end_without_start, tuttiInvalidUsage, "tuttiGroupEnd", "without"),
    ROW(stream_to_null, ARGUMENT, "tuttiHostStreamCreate", "stream is NULL"),
    ROW(destroy_garbage_stream, ARGUMENT, "tuttiHostStreamDestroy", "stream"),
    ROW(destroy_no_stream, ARGUMENT, "tuttiHostStreamDestroy", "stream"),
    ROW(destroy_dead_stream, ARGUMENT, "tuttiHostStreamDestroy", "destroyed"),
    ROW(synchronize_null, ARGUMENT, "tuttiStreamSynchronize", "stream"),
    ROW(synchronize_garbage, ARGUMENT, "tuttiStreamSynchronize", "stream"),
    ROW(synchronize_dead, ARGUMENT, "tuttiStreamSynchronize", "destroyed"),
    ROW(query_null, ARGUMENT, "tuttiStreamQuery", "stream"),
    ROW(query_dead, ARGUMENT, "tuttiStreamQuery", "destroyed"),
    ROW(event_of_null, ARGUMENT, "tuttiStreamEventFd", "stream"),
    ROW(event_of_dead, ARGUMENT, "tuttiStreamEventFd", "destroyed"),
};

/* ---- the tests ------------------------------------------------------------------------------- */

enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

static void check_works(const char *after)
{
    int32_t values[NRANKS];
    tuttiResult_t result;

    tuttiGroupStart();
    for (int rank = 0; rank < NRANKS; rank++) {
        values[rank] = rank + 1;
        tuttiAllReduce(&values[rank], &values[rank], 1, I32, tuttiSum, comms[rank], NULL);
    }
    result = tuttiGroupEnd();
    if (result != tuttiSuccess || values[0] != 3 || values[1] != 3)
        fail_msg("after %s: result %d, %d, %d: %s", after, (int)result, values[0], values[1],
                 tuttiGetLastError(NULL));
}

static void check_message(const struct mistake *mistake, tuttiResult_t result)
{
    const char *text = tuttiGetLastError(NULL);

    if (result != mistake->expected)
        fail_msg("%s: result %d, not %d: %s", mistake->text, (int)result, (int)mistake->expected,
                 text);
    if (strchr(text, '\n') != NULL || strstr(text, mistake->words[0]) == NULL ||
        strstr(text, mistake->words[1]) == NULL)
        fail_msg("%s: \"%s\" is not one line with \"%s\" and \"%s\"", mistake->text, text,
                 mistake->words[0], mistake->words[1]);
}

static void every_mistake_has_a_code_and_a_line_and_does_no_harm(void **unused)
{
    (void)unused;
    for (int i = 0; i < MISTAKES; i++) {
        check_message(&mistakes[i], mistakes[i].make(comms[0]));
        check_works(mistakes[i].text);
    }
}

/* True if a group collects this call. */
static bool is_collected(const struct mistake *mistake)
{
    static const char *const names[] = {"tuttiAll", "tuttiReduce", "tuttiBroadcast", "tuttiGather",
                                        "tuttiScatter", "tuttiSend", "tuttiRecv", "tuttiBarrier",
                                        "tuttiCommSplit"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(mistake->words[0], names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static void a_mistake_inside_a_group_spoils_it_and_nothing_runs(void **unused)
{
    (void)unused;
    for (int i = 0; i < MISTAKES; i++) {
        int32_t values[NRANKS] = {10, 20}, sums[NRANKS] = {-1, -1};
        tuttiResult_t result;

        if (!is_collected(&mistakes[i]))
            continue;
        tuttiGroupStart();
        for (int rank = 0; rank < NRANKS; rank++)
            tuttiAllReduce(&values[rank], &sums[rank], 1, I32, tuttiSum, comms[rank], NULL);
        check_message(&mistakes[i], mistakes[i].make(comms[0]));
        result = tuttiGroupEnd();
        check_message(&mistakes[i], result);
        assert_int_equal(sums[0], -1);
        assert_int_equal(sums[1], -1);
        check_works(mistakes[i].text);
    }
}

/* ---- communicators that are no more -------------------------------------------------------- */

static tuttiResult_t call_by_number(int which, tuttiComm_t comm)
{
    tuttiStream_t none = NULL;

    switch (which) {
    case 0: return ALLREDUCE(in, out, 1, I32, comm, none);
    case 1: return REDUCE(in, out, 1, I32, comm, none);
    case 2: return BROADCAST(in, out, 1, I32, comm, none);
    case 3: return ALLGATHER(in, out, 1, I32, comm, none);
    case 4: return REDUCESCATTER(in, out, 1, I32, comm, none);
    case 5: return ALLTOALL(in, out, 1, I32, comm, none);
    case 6: return GATHER(in, out, 1, I32, comm, none);
    case 7: return SCATTER(in, out, 1, I32, comm, none);
    case 8: return BARRIER(in, out, 1, I32, comm, none);
    case 9: return GATHERV(in, out, 1, I32, comm, none);
    case 10: return SCATTERV(in, out, 1, I32, comm, none);
    case 11: return ALLTOALLV(in, out, 1, I32, comm, none);
    case 12: return SEND(in, out, 1, I32, comm, none);
    case 13: return RECV(in, out, 1, I32, comm, none);
    case 14: return tuttiCommSplit(comm, 0, 0, &made, NULL);
    case 15: return tuttiCommFinalize(comm);
    case 16: return tuttiRedOpCreatePreMulSum(&int_op, &one, I32, tuttiScalarHostImmediate, comm);
    default: return tuttiSuccess;
    }
}
enum { CALLS = 17 };

static void a_destroyed_communicator_is_refused_by_every_call(void **unused)
{
    tuttiComm_t comm;

    (void)unused;
    assert_int_equal(tuttiCommInitAll(&comm, 1, NULL), tuttiSuccess);
    assert_int_equal(tuttiCommDestroy(comm), tuttiSuccess);
    for (int which = 0; which < CALLS; which++) {
        assert_int_equal(call_by_number(which, comm), tuttiInvalidArgument);
        assert_non_null(strstr(tuttiGetLastError(NULL), "destroyed"));
    }
    assert_int_equal(tuttiCommDestroy(comm), tuttiInvalidArgument);
    assert_int_equal(tuttiCommAbort(comm), tuttiInvalidArgument);
    assert_int_equal(tuttiCommCount(comm, &number), tuttiInvalidArgument);
    assert_non_null(strstr(tuttiGetLastError(comm), "destroyed"));
}

static void an_aborted_communicator_tells_every_call_why(void **unused)
{
    tuttiComm_t pair[NRANKS];

    (void)unused;
    assert_int_equal(tuttiCommInitAll(pair, NRANKS, NULL), tuttiSuccess);
    assert_int_equal(tuttiCommAbort(pair[0]), tuttiSuccess);
    for (int which = 0; which < CALLS; which++) {
        assert_int_equal(call_by_number(which, pair[0]), tuttiInvalidUsage);
        assert_non_null(strstr(tuttiGetLastError(NULL), "tuttiCommAbort"));
        assert_non_null(strstr(tuttiGetLastError(pair[0]), "tuttiCommAbort"));
    }
    assert_int_equal(tuttiCommGetAsyncError(pair[0], &state), tuttiSuccess);
    assert_int_equal(state, tuttiInvalidUsage);
    /* The other rank, without having called anything. */
    assert_int_equal(tuttiCommGetAsyncError(pair[1], &state), tuttiSuccess);
    assert_int_equal(state, tuttiInvalidUsage);
    assert_non_null(strstr(tuttiGetLastError(pair[1]), "rank 0"));
    for (int rank = 0; rank < NRANKS; rank++) {
        assert_int_equal(tuttiCommCount(pair[rank], &number), tuttiSuccess);
        assert_int_equal(tuttiCommDestroy(pair[rank]), tuttiSuccess);
    }
}

static void a_finalized_communicator_only_answers_queries(void **unused)
{
    tuttiComm_t comm;

    (void)unused;
    assert_int_equal(tuttiCommInitAll(&comm, 1, NULL), tuttiSuccess);
    assert_int_equal(tuttiCommFinalize(comm), tuttiSuccess);
    for (int which = 0; which < CALLS; which++) {
        assert_int_equal(call_by_number(which, comm), tuttiInvalidUsage);
        assert_non_null(strstr(tuttiGetLastError(NULL), "finalized"));
    }
    assert_int_equal(tuttiCommCount(comm, &number), tuttiSuccess);
    assert_int_equal(tuttiCommGetAsyncError(comm, &state), tuttiSuccess);
    assert_int_equal(state, tuttiSuccess);
    assert_int_equal(tuttiCommDestroy(comm), tuttiSuccess);
}

/* ---- what is no mistake ---------------------------------------------------------------------- */

static void a_count_of_zero_needs_no_buffer(void **unused)
{
    static size_t none[NRANKS], second[NRANKS] = {0, 2};
    int32_t all[4] = {0}, mine[2] = {5, 6};

    (void)unused;
    for (int which = 0; which < 2; which++) {
        tuttiGroupStart();
        for (int rank = 0; rank < NRANKS; rank++) {
            tuttiComm_t comm = comms[rank];

            assert_int_equal(ALLREDUCE(NULL, NULL, 0, I32, comm, NULL), tuttiSuccess);
            assert_int_equal(ALLTOALL(ODD, ODD, 0, I32, comm, NULL), tuttiSuccess);
            assert_int_equal(tuttiAllGatherV(NULL, NULL, none, NULL, I32, comm, NULL),
                             tuttiSuccess);
            /* Rank 0 gives nothing, from wherever. */
            assert_int_equal(tuttiAllGatherV(rank == 0 ? all + 1 : mine, rank == 0 ? all : all + 2,
                                             second, NULL, I32, comm, NULL), tuttiSuccess);
        }
        assert_int_equal(tuttiGroupEnd(), tuttiSuccess);
        assert_int_equal(all[0], 5);
        assert_int_equal(all[1], 6);
    }
}

/* ---- set up ---------------------------------------------------------------------------------- */

static int open_all(void **unused)
{
    float scalar = 2.0f;
    int32_t factor = 3;

    (void)unused;
    stats.size = sizeof stats;
    if (tuttiCommInitAll(comms, NRANKS, NULL) != tuttiSuccess ||
        tuttiCommInitAll(&other, 1, NULL) != tuttiSuccess)
        return -1;
    for (int rank = 0; rank < NRANKS; rank++)
        if (tuttiRedOpCreatePreMulSum(&int_op, &factor, I32, tuttiScalarHostImmediate,
                                      comms[NRANKS - 1 - rank]) != tuttiSuccess)
            return -1;
    tuttiRedOpCreatePreMulSum(&other_op, &factor, I32, tuttiScalarHostImmediate, other);
    tuttiRedOpCreatePreMulSum(&dead_op, &scalar, I32, tuttiScalarHostImmediate, comms[0]);
    if (tuttiRedOpDestroy(dead_op, comms[0]) != tuttiSuccess ||
        tuttiRedOpCreatePreMulSum(&later_op, &scalar, I32, tuttiScalarHostImmediate,
                                  comms[0]) != tuttiSuccess ||
        tuttiHostStreamCreate(&dead_stream) != tuttiSuccess ||
        tuttiHostStreamDestroy(dead_stream) != tuttiSuccess)
        return -1;
    return 0;
}

static int close_all(void **unused)
{
    (void)unused;
    for (int rank = 0; rank < NRANKS; rank++)
        tuttiCommDestroy(comms[rank]);
    tuttiCommDestroy(other);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mistake_has_a_code_and_a_line_and_does_no_harm),
        cmocka_unit_test(a_mistake_inside_a_group_spoils_it_and_nothing_runs),
        cmocka_unit_test(a_count_of_zero_needs_no_buffer),
        cmocka_unit_test(a_destroyed_communicator_is_refused_by_every_call),
        cmocka_unit_test(an_aborted_communicator_tells_every_call_why),
        cmocka_unit_test(a_finalized_communicator_only_answers_queries),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
