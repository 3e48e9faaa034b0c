/* SPDX-License-Identifier: Apache-2.0
 * Runs one collective or exchange. A call is described by two lists of blocks: the data that a rank
 * gives, and the data that it must get. Filling and verifying use only these lists. */
#include "support/trial.h"

#include "support/gpus.h"
#include "support/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *collective; /* of the function; of the library's table, NULL: in none */
    bool reduces, has_root, is_vector, can_be_in_place, averages;
} acts[ACT_COUNT] = {
    [ALL_REDUCE] = {"tuttiAllReduce", "allreduce", true, false, false, true, true},
    [REDUCE] = {"tuttiReduce", "reduce", true, true, false, true, true},
    [BROADCAST] = {"tuttiBroadcast", "broadcast", false, true, false, true, false},
    [ALL_GATHER] = {"tuttiAllGather", "allgather", false, false, false, true, false},
    [ALL_GATHER_V] = {"tuttiAllGatherV", "allgather", false, false, true, true, false},
    [REDUCE_SCATTER] = {"tuttiReduceScatter", "reduce_scatter", true, false, false, true, true},
    [REDUCE_SCATTER_V] = {"tuttiReduceScatterV", "reduce_scatter", true, false, true, true, true},
    [ALLTOALL] = {"tuttiAlltoAll", "alltoall", false, false, false, true, false},
    [ALLTOALL_V] = {"tuttiAlltoAllV", "alltoall", false, false, true, true, false},
    [GATHER] = {"tuttiGather", "gather", false, true, false, true, false},
    [GATHER_V] = {"tuttiGatherV", "gather", false, true, true, true, false},
    [SCATTER] = {"tuttiScatter", "scatter", false, true, false, true, false},
    [SCATTER_V] = {"tuttiScatterV", "scatter", false, true, true, true, false},
    [BARRIER] = {"tuttiBarrier", "barrier", false, false, false, false, false},
    [SCAN] = {"tuttiScan", "scan", true, false, false, true, false},
    [EXCLUSIVE_SCAN] = {"tuttiExclusiveScan", "exclusive_scan", true, false, false, true, false},
    [RING_EXCHANGE] = {"ring exchange", NULL, false, false, false, false, false},
    [ALL_EXCHANGE] = {"exchange of all", NULL, false, false, false, false, false},
    [PASS_ON] = {"passing on", NULL, false, false, false, false, false},
};

enum act act_find(const char *collective, bool is_vector)
{
    int act = 0;

    while (act < ACT_COUNT && (acts[act].collective == NULL || acts[act].is_vector != is_vector ||
                               strcmp(acts[act].collective, collective) != 0))
        act++;
    return (enum act)act;
}

const char *act_name(enum act act)
{
    return acts[act].name;
}

bool act_reduces(enum act act)
{
    return acts[act].reduces;
}

bool act_has_op(enum act act, int op)
{
    return op == tuttiAvg ? acts[act].averages : acts[act].reduces || op == tuttiSum;
}

int act_op(enum act act, tuttiDataType_t type, size_t number)
{
    int op = value_op(type, number);

    return act_has_op(act, op) ? op : tuttiSum;
}

bool act_has_root(enum act act)
{
    return acts[act].has_root;
}

bool act_is_vector(enum act act)
{
    return acts[act].is_vector;
}

bool act_can_be_in_place(enum act act)
{
    return acts[act].can_be_in_place;
}

static void describe(const struct trial *trial, const char *buffer, char *text, size_t size)
{
    static const char *const counts[] = {"equal", "no", "some zero", "one big", "ramp of"};
    static const char *const places[] = {"packed", "with gaps", "reversed"};
    bool is_vector = acts[trial->act].is_vector;
    int length = snprintf(text, size, "%s%s%s of %zu %s%s%s", buffer,
                          *buffer ? " of " : "", acts[trial->act].name, trial->count,
                          value_type_names[trial->type], trial->in_place ? " in place" : "",
                          trial->is_shifted ? " shifted" : "");

    if (acts[trial->act].reduces)
        length += snprintf(text + length, size - (size_t)length, ", %s",
                           value_op_names[trial->op]);
    if (acts[trial->act].has_root)
        length += snprintf(text + length, size - (size_t)length, ", root %d", trial->root);
    if (is_vector)
        snprintf(text + length, size - (size_t)length, ", %s counts, %s", counts[trial->counts],
                 places[trial->places]);
}

/* ---- calls --------------------------------------------------------------------------------- */

static tuttiResult_t exchange(struct attempt *attempt, const void *send, void *recv,
                              tuttiStream_t stream)
{
    const struct trial *trial = &attempt->trial;
    const struct member *member = attempt->member;
    size_t size = value_size(trial->type);
    bool is_grouped = trial->act != PASS_ON;
    tuttiResult_t result = is_grouped ? tuttiGroupStart() : tuttiSuccess;

    for (size_t i = 0; i < attempt->outputs && result == tuttiSuccess && !is_grouped; i++)
        result = tuttiRecv((uint8_t *)recv + attempt->output_blocks[i].at * size,
                           attempt->output_blocks[i].count, trial->type,
                           attempt->output_blocks[i].peer, member->comm, stream);
    for (size_t i = 0; i < attempt->inputs && result == tuttiSuccess; i++)
        result = tuttiSend((const uint8_t *)send + attempt->input_blocks[i].at * size,
                           attempt->input_blocks[i].count, trial->type,
                           attempt->input_blocks[i].peer, member->comm, stream);
    for (size_t i = 0; i < attempt->outputs && result == tuttiSuccess && is_grouped; i++)
        result = tuttiRecv((uint8_t *)recv + attempt->output_blocks[i].at * size,
                           attempt->output_blocks[i].count, trial->type,
                           attempt->output_blocks[i].peer, member->comm, stream);
    if (is_grouped) {
        tuttiResult_t end = tuttiGroupEnd();

        return result != tuttiSuccess ? result : end;
    }
    return result;
}

static tuttiResult_t call(struct attempt *attempt, const void *send, void *recv, tuttiRedOp_t op,
                          tuttiStream_t stream)
{
    const struct trial *trial = &attempt->trial;
    tuttiComm_t comm = attempt->member->comm;
    struct layout_arrays of = layout_arrays(attempt->member, trial, attempt->arrays);
    tuttiDataType_t type = trial->type;
    size_t count = trial->count;

    switch (trial->act) {
    case ALL_REDUCE: return tuttiAllReduce(send, recv, count, type, op, comm, stream);
    case REDUCE: return tuttiReduce(send, recv, count, type, op, trial->root, comm, stream);
    case BROADCAST: return tuttiBroadcast(send, recv, count, type, trial->root, comm, stream);
    case ALL_GATHER: return tuttiAllGather(send, recv, count, type, comm, stream);
    case ALL_GATHER_V:
        return tuttiAllGatherV(send, recv, of.recv_counts, of.recv_displs, type, comm, stream);
    case REDUCE_SCATTER: return tuttiReduceScatter(send, recv, count, type, op, comm, stream);
    case REDUCE_SCATTER_V:
        return tuttiReduceScatterV(send, recv, of.send_counts, of.send_displs, type, op, comm,
                                   stream);
    case ALLTOALL: return tuttiAlltoAll(send, recv, count, type, comm, stream);
    case ALLTOALL_V:
        return tuttiAlltoAllV(send, of.send_counts, of.send_displs, recv, of.recv_counts,
                              of.recv_displs, type, comm, stream);
    case GATHER: return tuttiGather(send, recv, count, type, trial->root, comm, stream);
    case GATHER_V:
        return tuttiGatherV(send, of.own_count, recv, of.recv_counts, of.recv_displs, type,
                            trial->root, comm, stream);
    case SCATTER_V:
        return tuttiScatterV(send, of.send_counts, of.send_displs, recv, of.own_count, type,
                             trial->root, comm, stream);
    case SCATTER: return tuttiScatter(send, recv, count, type, trial->root, comm, stream);
    case BARRIER: return tuttiBarrier(comm, stream);
    case SCAN: return tuttiScan(send, recv, count, type, op, comm, stream);
    case EXCLUSIVE_SCAN: return tuttiExclusiveScan(send, recv, count, type, op, comm, stream);
    default: return exchange(attempt, send, recv, stream);
    }
}

/* The call with the operation that it needs, made before and freed after. */
static void issue(struct attempt *attempt, const void *send, void *recv, tuttiStream_t stream)
{
    const struct trial *trial = &attempt->trial;
    struct member *member = attempt->member;
    bool premultiplies = acts[trial->act].reduces && trial->op >= OP_PREMUL_IMMEDIATE;
    tuttiRedOp_t op = (tuttiRedOp_t)trial->op;
    char text[200];

    if (premultiplies) {
        values_scalar(&attempt->scalar, trial->type, member->rank);
        if (gpus_has(member) && trial->op == OP_PREMUL_DEVICE)
            attempt->device_scalar = gpus_put(member, &attempt->scalar, sizeof attempt->scalar);
        if (!EXPECT_OK(member, tuttiRedOpCreatePreMulSum(
                                   &op,
                                   attempt->device_scalar ? (void *)attempt->device_scalar
                                                          : &attempt->scalar,
                                   trial->type,
                                   trial->op == OP_PREMUL_DEVICE ? tuttiScalarDevice
                                                                 : tuttiScalarHostImmediate,
                                   member->comm)))
            return;
        if (trial->op == OP_PREMUL_IMMEDIATE)
            memset(&attempt->scalar, 0xee, sizeof attempt->scalar);
    }
    describe(trial, "", text, sizeof text);
    attempt->is_issued = expect_result(member, tuttiSuccess, call(attempt, send, recv, op, stream),
                                       text, __FILE__, __LINE__);
    if (premultiplies)
        EXPECT_OK(member, tuttiRedOpDestroy(op, member->comm));
}

/* ---- before and after ------------------------------------------------------------------------ */

static void fill_blocks(const struct attempt *attempt, const struct area *area,
                        const struct block *blocks, size_t count, bool is_output)
{
    const struct trial *trial = &attempt->trial;
    const struct member *member = attempt->member;
    size_t size = value_size(trial->type);

    for (size_t i = 0; i < count; i++) {
        uint8_t *at = area->base + blocks[i].at * size;

        if (!acts[trial->act].reduces)
            stream_fill(at, blocks[i].count * size, blocks[i].key);
        else if (is_output)
            values_reduce(at, trial->type, trial->op, blocks[i].summands, member->nranks,
                          blocks[i].key, blocks[i].count);
        else
            values_fill(at, trial->type, trial->op, member->rank, member->nranks, blocks[i].key,
                        blocks[i].count);
    }
}

/* The bytes up to the end of the last block. */
static size_t extent(const struct trial *trial, const struct block *blocks, size_t count)
{
    size_t end = 0;

    for (size_t i = 0; i < count; i++)
        if (blocks[i].at + blocks[i].count > end)
            end = blocks[i].at + blocks[i].count;
    return end * value_size(trial->type);
}

static uint8_t *put(const struct attempt *attempt, const struct area *area)
{
    return area->memory ? gpus_put(attempt->member, area->memory, area->total) : NULL;
}

void attempt_begin(struct attempt *attempt, struct member *member, const struct trial *trial,
                   tuttiStream_t stream)
{
    size_t shift = trial->is_shifted ? value_size(trial->type) : 0, bytes, more;
    const uint8_t *send;
    uint8_t *recv;

    *attempt = (struct attempt){.trial = *trial, .member = member};
    /* Where there is no output, there is no place to be in. */
    attempt->trial.in_place = trial->in_place && layout_has_output(member, trial);
    layout_blocks(attempt);
    bytes = extent(trial, attempt->output_blocks, attempt->outputs);
    more = extent(trial, attempt->input_blocks, attempt->inputs);
    if (!attempt->trial.in_place) {
        area_open(&attempt->input, more, shift);
        fill_blocks(attempt, &attempt->input, attempt->input_blocks, attempt->inputs, false);
        more = 0;
    }
    area_open(&attempt->output, bytes > more ? bytes : more, shift);
    if (attempt->trial.in_place)
        fill_blocks(attempt, &attempt->output, attempt->input_blocks, attempt->inputs, false);

    send = attempt->trial.in_place ? attempt->output.base : attempt->input.base;
    recv = attempt->output.base;
    if (gpus_has(member)) {
        attempt->device_input = put(attempt, &attempt->input);
        attempt->device_output = put(attempt, &attempt->output);
        recv = attempt->device_output + (attempt->output.base - attempt->output.memory);
        send = attempt->trial.in_place
                   ? recv
                   : attempt->device_input + (attempt->input.base - attempt->input.memory);
    }
    if (attempt->trial.in_place)
        layout_in_place(attempt, &send, &recv);
    /* Buffers that are ignored, and empty ones, may be NULL. */
    issue(attempt, attempt->inputs == 0 && trial->count % 2 ? NULL : send,
          attempt->outputs == 0 && trial->count % 2 ? NULL : recv, stream);
}

static void verify(struct attempt *attempt)
{
    const struct trial *trial = &attempt->trial;
    struct area image;
    char text[200];

    if (!trial->in_place) {
        describe(trial, "input", text, sizeof text);
        area_open_image(&image, &attempt->input);
        fill_blocks(attempt, &image, attempt->input_blocks, attempt->inputs, false);
        area_compare(attempt->member, &attempt->input, &image, text);
        area_close(&image);
    }
    describe(trial, "output", text, sizeof text);
    area_open_image(&image, &attempt->output);
    /* In place nothing is said of input that is not output. */
    if (trial->in_place)
        memcpy(image.base, attempt->output.base, image.bytes);
    fill_blocks(attempt, &image, attempt->output_blocks, attempt->outputs, true);
    area_compare(attempt->member, &attempt->output, &image, text);
    area_close(&image);
}

void attempt_end(struct attempt *attempt)
{
    gpus_take_back(attempt->member, attempt->input.memory, attempt->device_input,
                   attempt->input.total);
    gpus_take_back(attempt->member, attempt->output.memory, attempt->device_output,
                   attempt->output.total);
    gpus_take_back(attempt->member, &attempt->scalar, attempt->device_scalar,
                   sizeof attempt->scalar);
    if (attempt->is_issued)
        verify(attempt);
    area_close(&attempt->input);
    area_close(&attempt->output);
    free(attempt->input_blocks);
    free(attempt->output_blocks);
    free(attempt->arrays);
}

void trial_run(struct member *member, const struct trial *trial)
{
    struct attempt attempt;

    attempt_begin(&attempt, member, trial, NULL);
    attempt_end(&attempt);
}
