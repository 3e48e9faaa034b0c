/* SPDX-License-Identifier: Apache-2.0
 * Checks the arguments of a communication call before anything is started, and passes the call on
 * to the group or the queue. The result of the checks is kept for calls that repeat. */
#include "api/api.h"
#include "base/hot.h"
#include "gpu/comm_gpu.h"
#include "queue/group.h"
#include "queue/stream.h"

#include <string.h>

static int check_type(const struct tutti_args *args)
{
    if ((unsigned)args->type < tuttiNumTypes)
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: datatype %d is unknown; use a tuttiDataType_t",
                      args->function, (int)args->type);
}

static bool is_message(const struct tutti_args *args)
{
    return tutti_call_kind_is_message(args->kind);
}

static bool is_vector(const struct tutti_args *args)
{
    return args->kind == TUTTI_CALL_VECTOR;
}

static bool has_root(const struct tutti_args *args)
{
    return is_message(args) || tutti_collective_has_root(args->collective);
}

static int check_root(const struct tutti_comm *comm, const struct tutti_args *args)
{
    if (!has_root(args) || (args->root >= 0 && args->root < comm->nranks))
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_ARGUMENT,
                      "%s: %s %d is not a rank; rank %d's communicator has ranks "
                      "0 to %d",
                      args->function, is_message(args) ? "peer" : "root", args->root,
                      comm->rank, comm->nranks - 1);
}

/* Returns the elements from the start of a buffer to the end of its last block; SIZE_MAX if their
 * number overflows. */
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

/* ---- size and addresses of the buffers --------------------------------------------------- */

static int check_count(const struct tutti_comm *comm, const struct tutti_args *args,
                       const char *name, size_t elements)
{
    if (elements <= (size_t)PTRDIFF_MAX / tutti_type_size((enum tutti_type)args->type))
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: rank %d's count is negative or overflows: %s "
                      "would hold more than %td bytes", args->function, comm->rank, name,
                      PTRDIFF_MAX);
}

/* Returns the offset from recvbuff to sendbuff in the in-place form, in elements. */
static ptrdiff_t in_place_offset(const struct tutti_comm *comm, const struct tutti_args *args)
{
    size_t rank = (size_t)comm->rank, before = args->count * rank;
    bool collects = tutti_output_is_per_rank(args->collective);
    const size_t *counts = collects ? args->recv_counts : args->send_counts;
    const size_t *displs = collects ? args->recv_displs : args->send_displs;

    if (tutti_collective_in_place(args->collective) != TUTTI_AT_OWN_BLOCK)
        return 0;
    if (counts != NULL)
        before = displs != NULL ? displs[rank] : extent_of(rank, 0, counts, NULL);
    return collects ? (ptrdiff_t)before : -(ptrdiff_t)before;
}

/* Measures both buffers. A size is 0 if this rank does not use the buffer. */
static int measure(const struct tutti_comm *comm, const struct tutti_args *args,
                   struct tutti_calls_extent *ret_reach)
{
    uint32_t nranks = (uint32_t)comm->nranks, rank = (uint32_t)comm->rank;
    bool is_collective = !is_message(args);
    bool sends = is_collective
                     ? tutti_collective_has_input(args->collective, rank, (uint32_t)args->root)
                     : args->kind == TUTTI_CALL_SEND;
    bool receives = is_collective
                        ? tutti_collective_has_output(args->collective, rank, (uint32_t)args->root)
                        : args->kind == TUTTI_CALL_RECV;
    size_t inputs = is_collective ? tutti_input_blocks(args->collective, nranks) : 1;
    size_t outputs = is_collective ? tutti_output_blocks(args->collective, nranks) : 1;
    size_t size = tutti_type_size((enum tutti_type)args->type), send_elements = 0;
    size_t recv_elements = 0;

    if (sends)
        send_elements = extent_of(inputs, args->count, args->send_counts, args->send_displs);
    if (receives)
        recv_elements = extent_of(outputs, args->count, args->recv_counts, args->recv_displs);
    TUTTI_TRY(check_count(comm, args, "sendbuff", send_elements));
    TUTTI_TRY(check_count(comm, args, "recvbuff", recv_elements));
    *ret_reach = (struct tutti_calls_extent){.send_bytes = send_elements * size,
                                             .recv_bytes = recv_elements * size};
    if (send_elements > 0 && recv_elements > 0)
        ret_reach->in_place = in_place_offset(comm, args) * (ptrdiff_t)size;
    return TUTTI_OK;
}

static int check_address(const struct tutti_comm *comm, const struct tutti_args *args,
                         const char *name, const void *buffer, size_t bytes)
{
    size_t size = tutti_type_size((enum tutti_type)args->type); /* a power of two */

    if (bytes == 0 || (buffer != NULL && ((uintptr_t)buffer & (size - 1)) == 0))
        return TUTTI_OK;
    if (buffer == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "%s: %s is NULL on rank %d; it must hold %zu elements", args->function,
                          name, comm->rank, bytes / size);
    return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: %s %p on rank %d is not aligned to its %zu-byte "
                      "elements", args->function, name, buffer, comm->rank, size);
}

/* Buffers may overlap only as the in-place form defines. */
static int check_addresses(const struct tutti_comm *comm, const struct tutti_args *args,
                           const struct tutti_calls_extent *reach)
{
    uintptr_t send = (uintptr_t)args->send, recv = (uintptr_t)args->recv;

    TUTTI_TRY(check_address(comm, args, "sendbuff", args->send, reach->send_bytes));
    TUTTI_TRY(check_address(comm, args, "recvbuff", args->recv, reach->recv_bytes));
    if (send + reach->send_bytes <= recv || recv + reach->recv_bytes <= send ||
        reach->send_bytes == 0 || reach->recv_bytes == 0 ||
        send == recv + (uintptr_t)reach->in_place)
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_ARGUMENT,
                      "%s: sendbuff and recvbuff overlap on rank %d other than in "
                      "place; move one of them",
                      args->function, comm->rank);
}

/* An all-to-all-v in place overwrites each block that it sends with the one that it receives from
 * the same rank, so both must have the same place and size. */
static int check_in_place(const struct tutti_comm *comm, const struct tutti_args *args)
{
    size_t send_at = 0, recv_at = 0;

    if (!is_vector(args) || args->send != args->recv ||
        tutti_collective_in_place(args->collective) != TUTTI_AFTER_COPY)
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

/* Checks the arrays of a v-form. If only the root has a buffer of many blocks, the arrays of the
 * other ranks are ignored, and removed from `args`. */
static int check_vectors(const struct tutti_comm *comm, struct tutti_args *args)
{
    uint32_t rank = (uint32_t)comm->rank, root = (uint32_t)args->root;
    bool sends = tutti_collective_has_input(args->collective, rank, root);
    bool receives = tutti_collective_has_output(args->collective, rank, root);
    size_t given, taken;

    if (!is_vector(args))
        return TUTTI_OK;
    if (!sends)
        args->send_counts = args->send_displs = NULL;
    if (!receives)
        args->recv_counts = args->recv_displs = NULL;
    if ((sends && tutti_input_is_per_rank(args->collective) && args->send_counts == NULL) ||
        (receives && tutti_output_is_per_rank(args->collective) && args->recv_counts == NULL))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: the array of counts is NULL on rank %d; it must "
                          "have %d entries", args->function, comm->rank, comm->nranks);
    if (!tutti_collective_counts_by_pair(args->collective) || !sends || !receives)
        return TUTTI_OK;
    given = args->send_counts != NULL ? args->send_counts[rank] : args->count;
    taken = args->recv_counts != NULL ? args->recv_counts[rank] : args->count;
    if (given != taken)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: rank %d sends itself %zu elements and receives "
                          "%zu; the two must be equal", args->function, comm->rank, given, taken);
    return TUTTI_OK;
}

/* Returns the count in the signature, which must be the same on all ranks (signature.h). */
static uint64_t signature_count(const struct tutti_comm *comm, const struct tutti_args *args)
{
    if (!is_vector(args))
        return args->count;
    if (tutti_collective_counts_by_pair(args->collective))
        return 0;
    return tutti_counts_hash(args->recv_counts ? args->recv_counts : args->send_counts,
                             comm->nranks);
}

/* Fills in call->signature from the other members of `call`. */
static void sign(const struct tutti_comm *comm, const struct tutti_args *args,
                 struct tutti_call *call)
{
    enum tutti_collective collective = (enum tutti_collective)args->collective;
    bool is_collective = !is_message(args);
    bool reduces = is_collective && tutti_collective_reduces(collective);

    call->signature = (struct tutti_signature){
        .magic = TUTTI_SIGNATURE_MAGIC,
        .call = is_collective ? tutti_collective_call(collective, is_vector(args))
                              : TUTTI_CALL_MESSAGE,
        .type = (uint8_t)args->type,
        .op = !reduces ? TUTTI_OP_NONE
              : call->is_premultiplied ? TUTTI_OP_PREMULTIPLIED
              : call->is_average ? TUTTI_OP_AVERAGE : (uint8_t)call->op,
        .root = is_collective && tutti_collective_has_root(collective) ? (uint16_t)args->root
                                                                       : UINT16_MAX,
        .count = signature_count(comm, args),
    };
}

static bool is_to_itself(const struct tutti_comm *comm, const struct tutti_args *args)
{
    return is_message(args) && args->root == comm->rank;
}

/* A message to oneself needs both of its calls in one group: neither is complete without the
 * other. */
static int check_own_message(const struct tutti_comm *comm, const struct tutti_args *args)
{
    if (!is_to_itself(comm, args) || tutti_group_is_open())
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_USAGE, "%s: rank %d %s itself outside a group, so the call could "
                      "never end; use a group: make tuttiSend and tuttiRecv between "
                      "tuttiGroupStart and tuttiGroupEnd", args->function, comm->rank,
                      args->kind == TUTTI_CALL_SEND ? "sends to" : "receives from");
}

/* All checks that do not depend on the addresses of the buffers. */
static int check(const struct tutti_comm *comm, struct tutti_args *args,
                 struct tutti_calls_extent *ret_reach, struct tutti_call *ret_call)
{
    struct tutti_call call = {.kind = args->kind,
                              .collective = (enum tutti_collective)args->collective};

    TUTTI_TRY(check_type(args));
    TUTTI_TRY(check_root(comm, args));
    TUTTI_TRY(check_vectors(comm, args));
    if (is_vector(args) && !tutti_collective_counts_by_pair(args->collective))
        args->count = (args->recv_counts ? args->recv_counts : args->send_counts)[comm->rank];
    TUTTI_TRY(measure(comm, args, ret_reach));
    TUTTI_TRY(check_in_place(comm, args));
    TUTTI_TRY(tutti_api_check_blocks(args, comm->nranks, comm->rank));
    if (!is_message(args) && tutti_collective_reduces(args->collective))
        TUTTI_TRY(tutti_api_resolve_redop(comm, args->function, args->op, args->type, &call));

    call.type = (enum tutti_type)args->type;
    call.count = args->count;
    call.root = has_root(args) ? args->root : 0;
    call.input_counts = args->send_counts;
    call.input_displs = args->send_displs;
    call.output_counts = args->recv_counts;
    call.output_displs = args->recv_displs;
    sign(comm, args, &call);
    *ret_call = call;
    return TUTTI_OK;
}

/* True if no rank has anything to move. A v-form never counts as empty: another rank may pass other
 * counts, and only the call itself detects that. */
static bool is_empty(const struct tutti_args *args, const struct tutti_call *call)
{
    return call->signature.count == 0 && args->kind == TUTTI_CALL_COLLECTIVE &&
           tutti_collective_has_data(args->collective);
}

/* ---- repeated calls -------------------------------------------------------------------- */

/* False for calls with arrays or operations of the user, since those may have changed by the next
 * call, and for those with types that do not exist. */
static bool may_keep(const struct tutti_args *args)
{
    return !is_vector(args) && (unsigned)args->op < tuttiNumOps &&
           (unsigned)args->type < tuttiNumTypes;
}

static struct tutti_calls_key key_of(const struct tutti_args *args)
{
    return tutti_calls_key(args->kind, args->collective, (uint8_t)args->type, (uint8_t)args->op,
                           args->root, args->count, args->send == args->recv);
}

/* In a process with CUDA, determine whether the call is on device memory, which is an error for a
 * rank on the CPU. For such a rank, the driver is asked only about calls that were not made before,
 * because asking takes as long as a short call. */
static int find_side(struct tutti_comm *comm, const struct tutti_args *args,
                     const struct tutti_calls_known *known, bool is_known, bool *ret_is_on_gpu)
{
    *ret_is_on_gpu = false;
    if (comm->gpu != NULL || !is_known)
        TUTTI_TRY(tutti_gpu_classify_call(comm, args->function, args->send, known->reach.send_bytes,
                                          args->recv, known->reach.recv_bytes, args->stream,
                                          ret_is_on_gpu));
    if (*ret_is_on_gpu)
        return tutti_gpu_check_scalar(comm, args->function, &known->call);
    return args->stream != NULL ? tutti_stream_check(args->stream, args->function) : TUTTI_OK;
}

/* Checks a call that is not in comm->known, and fills in *ret_known. The function is not inlined,
 * so that known calls need no stack for its variables. */
static int __attribute__((noinline)) learn(const struct tutti_comm *comm, struct tutti_args *args,
                                           struct tutti_calls_known *ret_known)
{
    struct tutti_calls_known known = {.key = {.what = 0}};

    if (may_keep(args))
        known.key = key_of(args);
    TUTTI_TRY(check(comm, args, &known.reach, &known.call));
    known.is_special = is_to_itself(comm, args) || is_empty(args, &known.call);
    *ret_known = known;
    return TUTTI_OK;
}

static int check_and_run(struct tutti_comm *comm, struct tutti_args *args)
{
    struct tutti_calls_known once, *known = &once;
    bool is_known = false, is_on_gpu;
    int rc;

    if (args->stream != NULL && comm->cuda == NULL)
        TUTTI_TRY(tutti_stream_check(args->stream, args->function));
    if (may_keep(args)) {
        struct tutti_calls_key key = key_of(args);

        known = &comm->known[tutti_calls_key_hash(&key, TUTTI_KNOWN_BITS)];
        is_known = tutti_calls_key_equal(&known->key, &key);
    }
    if (!is_known)
        TUTTI_TRY(learn(comm, args, known));
    TUTTI_TRY(check_addresses(comm, args, &known->reach));
    if (known->is_special) {
        TUTTI_TRY(check_own_message(comm, args));
        if (is_empty(args, &known->call))
            return TUTTI_OK;
    }
    known->call.input = args->send;
    known->call.output = args->recv;
    if (comm->cuda == NULL)
        return tutti_group_call(comm, &known->call, &known->found, args->stream);
    rc = find_side(comm, args, known, is_known, &is_on_gpu);
    if (rc != TUTTI_OK) {
        known->key.what = 0; /* so that the next such call is checked again */
        return rc;
    }
    if (is_on_gpu)
        return tutti_group_gpu_call(comm, &known->call, args->stream);
    return tutti_group_call(comm, &known->call, &known->found, args->stream);
}

TUTTI_HOT
tuttiResult_t tutti_api_call(struct tutti_args *args)
{
    struct tutti_comm *comm;
    int rc = tutti_handle_enter_ready(args->comm, args->function, &comm);

    if (rc == TUTTI_OK) {
        rc = check_and_run(comm, args);
        tutti_comm_leave(comm);
    }
    return tutti_public_result(tutti_group_note(rc));
}
