/* SPDX-License-Identifier: Apache-2.0
 * Checks of a communication call, one line each, before anything is started. */
#include "api.h"
#include "group.h"
#include "stream.h"

#include <string.h>

static int check_type(const struct tutti_args *args)
{
    if ((unsigned)args->type < tuttiNumTypes)
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: datatype %d is unknown; use a tuttiDataType_t",
                      args->function, (int)args->type);
}

static bool has_root(const struct tutti_args *args)
{
    return args->kind >= TUTTI_CALL_SEND || tutti_collective_has_root(args->collective);
}

static int check_root(const struct tutti_comm *comm, const struct tutti_args *args)
{
    if (!has_root(args) || (args->root >= 0 && args->root < comm->nranks))
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_ARGUMENT,
                      "%s: %s %d is not a rank; rank %d's communicator has ranks "
                      "0 to %d",
                      args->function, args->kind >= TUTTI_CALL_SEND ? "peer" : "root", args->root,
                      comm->rank, comm->nranks - 1);
}

/* Elements from the start of a buffer to the end of its last block; or SIZE_MAX. */
static size_t extent_of(size_t blocks, size_t count, const size_t *counts, const size_t *displs)
{
    size_t end = 0, total = 0;

    if (counts == NULL)
        return __builtin_mul_overflow(blocks, count, &end) ? SIZE_MAX : end;
    for (size_t block = 0; block < blocks; block++) {
        size_t last;

        if (__builtin_add_overflow(displs ? displs[block] : total, counts[block], &last) ||
            __builtin_add_overflow(total, counts[block], &total))
            return SIZE_MAX;
        if (counts[block] > 0 && last > end)
            end = last;
    }
    return end;
}

static int check_buffer(const struct tutti_comm *comm, const struct tutti_args *args,
                        const char *name, const void *buffer, size_t elements)
{
    size_t size = tutti_type_size((enum tutti_type)args->type), bytes;

    if (__builtin_mul_overflow(elements, size, &bytes) || bytes > (size_t)PTRDIFF_MAX)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: rank %d's count is negative or overflows: %s "
                          "would hold more than %td bytes", args->function, comm->rank, name,
                          PTRDIFF_MAX);
    if (elements > 0 && buffer == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "%s: %s is NULL on rank %d; it must hold %zu elements", args->function,
                          name, comm->rank, elements);
    if (((uintptr_t)buffer & (size - 1)) != 0 && elements > 0) /* sizes are powers of two */
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: %s %p on rank %d is not aligned to its %zu-byte "
                          "elements", args->function, name, buffer, comm->rank, size);
    return TUTTI_OK;
}

/* Buffers may coincide only as the in-place form says. */
static int check_overlap(const struct tutti_comm *comm, const struct tutti_args *args,
                         size_t send_elements, size_t recv_elements)
{
    size_t size = tutti_type_size((enum tutti_type)args->type);
    uintptr_t send = (uintptr_t)args->send, recv = (uintptr_t)args->recv, expected = send;
    size_t before = args->count * (size_t)comm->rank;

    if (send_elements == 0 || recv_elements == 0)
        return TUTTI_OK;
    if (send + send_elements * size <= recv || recv + recv_elements * size <= send)
        return TUTTI_OK;
    if (args->is_vector && args->collective == TUTTI_ALLGATHER)
        before = args->recv_displs ? args->recv_displs[comm->rank]
                                   : extent_of((size_t)comm->rank, 0, args->recv_counts, NULL);
    if (args->is_vector && args->collective == TUTTI_REDUCE_SCATTER)
        before = args->send_displs ? args->send_displs[comm->rank]
                                   : extent_of((size_t)comm->rank, 0, args->send_counts, NULL);
    switch (args->collective) {
    case TUTTI_ALLGATHER:
    case TUTTI_GATHER: expected = recv + before * size; break;
    case TUTTI_REDUCE_SCATTER:
    case TUTTI_SCATTER: expected = recv - before * size; break;
    default: expected = recv; break;
    }
    if (send == expected)
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_ARGUMENT,
                      "%s: sendbuff and recvbuff overlap on rank %d other than in "
                      "place; move one of them",
                      args->function, comm->rank);
}

/* In place, a block is overwritten by the one of the same place. */
static int check_in_place(const struct tutti_comm *comm, const struct tutti_args *args)
{
    size_t send_at = 0, recv_at = 0;

    if (!args->is_vector || args->collective != TUTTI_ALLTOALL || args->send != args->recv)
        return TUTTI_OK;
    for (int rank = 0; rank < comm->nranks; rank++) {
        size_t from = args->send_displs ? args->send_displs[rank] : send_at;
        size_t to = args->recv_displs ? args->recv_displs[rank] : recv_at;

        if (args->send_counts[rank] != args->recv_counts[rank] ||
            (from != to && args->send_counts[rank] > 0))
            return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: in place on rank %d, but counts or "
                              "displacements for rank %d differ between sending and receiving; use "
                              "two buffers", args->function, comm->rank, rank);
        send_at += args->send_counts[rank];
        recv_at += args->recv_counts[rank];
    }
    return TUTTI_OK;
}

static int check_vectors(const struct tutti_comm *comm, const struct tutti_args *args)
{
    bool sends = args->collective != TUTTI_ALLGATHER;
    bool receives = args->collective != TUTTI_REDUCE_SCATTER;

    if (!args->is_vector)
        return TUTTI_OK;
    if ((sends && args->send_counts == NULL) || (receives && args->recv_counts == NULL))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: the array of counts is NULL on rank %d; it must "
                          "have %d entries", args->function, comm->rank, comm->nranks);
    if (args->collective != TUTTI_ALLTOALL)
        return TUTTI_OK;
    if (args->send_counts[comm->rank] != args->recv_counts[comm->rank])
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: rank %d sends itself %zu elements and receives "
                          "%zu; the two must be equal", args->function, comm->rank,
                          args->send_counts[comm->rank], args->recv_counts[comm->rank]);
    return TUTTI_OK;
}

/* What all ranks agree on, as a count: a v-form has its total. */
static uint64_t signature_count(const struct tutti_comm *comm, const struct tutti_args *args)
{
    const size_t *counts = args->recv_counts ? args->recv_counts : args->send_counts;
    uint64_t total = 0;

    if (!args->is_vector)
        return args->count;
    if (args->collective == TUTTI_ALLTOALL)
        return 0;
    for (int rank = 0; rank < comm->nranks; rank++)
        total += counts[rank];
    return total;
}

static void sign(const struct tutti_comm *comm, const struct tutti_args *args,
                 struct tutti_call *call)
{
    call->signature = (struct tutti_signature){
        .magic = TUTTI_SIGNATURE_MAGIC,
        .call = args->kind,
        .type = (uint8_t)args->type,
        .op = !tutti_collective_reduces(args->collective) ? TUTTI_OP_NONE
              : call->is_premultiplied ? TUTTI_OP_PREMULTIPLIED
              : call->is_average ? TUTTI_OP_AVERAGE : (uint8_t)call->op,
        .root = tutti_collective_has_root(args->collective) ? (uint16_t)args->root : UINT16_MAX,
        .count = signature_count(comm, args),
    };
}

static int check_buffers(const struct tutti_comm *comm, const struct tutti_args *args)
{
    uint32_t nranks = (uint32_t)comm->nranks, rank = (uint32_t)comm->rank;
    bool sends = tutti_has_input(args->collective, rank, (uint32_t)args->root);
    bool receives = tutti_has_output(args->collective, rank, (uint32_t)args->root);
    size_t inputs = tutti_input_blocks(args->collective, nranks);
    size_t outputs = tutti_output_blocks(args->collective, nranks);
    size_t send_elements = extent_of(inputs, args->count, args->send_counts, args->send_displs);
    size_t recv_elements = extent_of(outputs, args->count, args->recv_counts, args->recv_displs);

    if (sends)
        TUTTI_TRY(check_buffer(comm, args, "sendbuff", args->send, send_elements));
    if (receives)
        TUTTI_TRY(check_buffer(comm, args, "recvbuff", args->recv, recv_elements));
    if (sends && receives) {
        TUTTI_TRY(check_overlap(comm, args, send_elements, recv_elements));
        TUTTI_TRY(check_in_place(comm, args));
    }
    return TUTTI_OK;
}

/* A send or receive: one buffer, nothing to agree on but what travels in its header. */
static int run_message(const struct tutti_args *args)
{
    bool sends = args->kind == TUTTI_CALL_SEND;
    struct tutti_comm *comm;
    struct tutti_call call = {
        .kind = args->kind, .type = (enum tutti_type)args->type, .input = args->send,
        .output = args->recv, .count = args->count, .root = args->root,
        .signature = {.magic = TUTTI_SIGNATURE_MAGIC, .call = TUTTI_CALL_SEND,
                      .type = (uint8_t)args->type, .op = TUTTI_OP_NONE, .root = UINT16_MAX,
                      .count = args->count}};

    TUTTI_TRY(tutti_handle_ready(args->comm, args->function, &comm));
    if (args->stream != NULL)
        TUTTI_TRY(tutti_stream_check(args->stream, args->function));
    TUTTI_TRY(check_type(args));
    TUTTI_TRY(check_root(comm, args));
    TUTTI_TRY(check_buffer(comm, args, sends ? "sendbuff" : "recvbuff",
                           sends ? args->send : args->recv, args->count));
    return tutti_group_call(comm, &call, args->stream);
}

static int run_collective(const struct tutti_args *given)
{
    struct tutti_args args = *given;
    struct tutti_comm *comm;
    struct tutti_call call = {.kind = args.kind, .collective = args.collective};

    TUTTI_TRY(tutti_handle_ready(args.comm, args.function, &comm));
    if (args.stream != NULL)
        TUTTI_TRY(tutti_stream_check(args.stream, args.function));
    TUTTI_TRY(check_type(&args));
    TUTTI_TRY(check_root(comm, &args));
    TUTTI_TRY(check_vectors(comm, &args));
    if (args.is_vector && args.collective == TUTTI_ALLGATHER)
        args.count = args.recv_counts[comm->rank];
    if (args.is_vector && args.collective == TUTTI_REDUCE_SCATTER)
        args.count = args.send_counts[comm->rank];
    TUTTI_TRY(check_buffers(comm, &args));
    if (tutti_collective_reduces(args.collective))
        TUTTI_TRY(tutti_redop_resolve(comm, args.function, args.op, args.type, &call));

    call.type = (enum tutti_type)args.type;
    call.input = args.send;
    call.output = args.recv;
    call.count = args.count;
    call.root = has_root(&args) ? args.root : 0;
    call.input_counts = args.send_counts;
    call.input_displs = args.send_displs;
    call.output_counts = args.recv_counts;
    call.output_displs = args.recv_displs;
    sign(comm, &args, &call);
    /* Nothing to move, on any rank. Only a rank's own counts are known of an all-to-all-v. */
    if (call.signature.count == 0 && args.collective != TUTTI_BARRIER &&
        !(args.is_vector && args.collective == TUTTI_ALLTOALL))
        return TUTTI_OK;
    return tutti_group_call(comm, &call, args.stream);
}

tuttiResult_t tutti_api_call(const struct tutti_args *args)
{
    int rc = args->kind < TUTTI_CALL_SEND ? run_collective(args) : run_message(args);

    return tutti_public(tutti_group_note(rc));
}
