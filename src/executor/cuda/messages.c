/* SPDX-License-Identifier: Apache-2.0
 * Encodes messages for GPUs. A batch of sends and receives becomes a program whose steps have no
 * dependencies, so that kernels run messages and schedules by the same code. A message from a rank
 * to itself becomes a copy. */
#include "executor/cuda/image.h"

#include "base/result.h"

#include <stdlib.h>
#include <string.h>

/* The messages of a batch, sorted into lanes. */
struct batch {
    const struct tutti_cuda_message *messages; /* [count] */
    size_t count;
    int rank; /* this rank */
    /* Per message. For a message to or from another rank, it is the lane. For a send to this rank
     * itself, it is the index of the matching receive. */
    uint32_t *places;
    struct tutti_kernel_lane lanes[TUTTI_KERNEL_LANES]; /* lanes[nlanes] is for copies */
    uint32_t nlanes;
    uint32_t nhalves, ncopies; /* messages to or from other ranks; messages to this rank itself */
};

/* ---- sorting --------------------------------------------------------------------------- */

/* Matches the k-th send of the rank to itself with the k-th receive from itself. */
static int match_copies(struct batch *batch)
{
    size_t receive = 0, send = 0;

    for (;;) {
        const struct tutti_cuda_message *from, *to;

        while (send < batch->count && (batch->messages[send].peer != batch->rank ||
                                       !batch->messages[send].sends))
            send++;
        while (receive < batch->count && (batch->messages[receive].peer != batch->rank ||
                                          batch->messages[receive].sends))
            receive++;
        if (send == batch->count && receive == batch->count)
            return TUTTI_OK;
        if (send == batch->count || receive == batch->count)
            return tutti_fail(TUTTI_ERR_USAGE, "rank %d %s itself what it does not %s in the same "
                              "group", batch->rank, send < batch->count ? "sends" : "receives from",
                              send < batch->count ? "receive" : "send");
        from = &batch->messages[send];
        to = &batch->messages[receive];
        if (!tutti_signature_equal(&from->header.signature, &to->header.signature))
            return tutti_signature_mismatch(&to->header, batch->rank, &from->header);
        batch->places[send++] = (uint32_t)receive++;
        batch->ncopies++;
    }
}

/* Returns the block that moves the first share of a message. The two directions of a pair begin at
 * different blocks, and so do a rank's neighboring peers, which spreads the load. */
static uint32_t rotation_of(const struct batch *batch, const struct tutti_cuda_message *message,
                            uint32_t nblocks)
{
    uint32_t from = (uint32_t)(message->sends ? batch->rank : message->peer);
    uint32_t to = (uint32_t)(message->sends ? message->peer : batch->rank);

    return (2 * (from ^ to) + (from < to)) % nblocks;
}

/* Assigns each message to or from another rank to the lane of its peer and direction. The lane of
 * copies comes last. */
static int sort_into_lanes(struct batch *batch, const struct tutti_cuda_grid *grid)
{
    uint32_t fifo = tutti_cuda_grid_channels(grid), first = 0; /* after those of schedules */

    for (size_t i = 0; i < batch->count; i++) {
        const struct tutti_cuda_message *message = &batch->messages[i];
        uint32_t lane = 0;

        if (message->peer == batch->rank)
            continue;
        while (lane < batch->nlanes && (batch->lanes[lane].peer != message->peer ||
                                        batch->lanes[lane].is_receive == message->sends))
            lane++;
        if (lane + 1 >= TUTTI_KERNEL_LANES)
            return tutti_fail(TUTTI_ERR_USAGE, "rank %d: the messages of a group have more than "
                              "%d peers, counting those to which it sends and those from which it "
                              "receives; use several groups", batch->rank,
                              TUTTI_KERNEL_LANES - 1);
        if (lane == batch->nlanes)
            batch->lanes[batch->nlanes++] = (struct tutti_kernel_lane){
                .peer = message->peer, .is_receive = !message->sends, .fifo = fifo,
                .rotation = rotation_of(batch, message, grid->nblocks)};
        batch->places[i] = lane;
        batch->lanes[lane].count++;
        batch->nhalves++;
    }
    for (uint32_t lane = 0; lane < batch->nlanes; lane++) {
        batch->lanes[lane].first = first;
        first += batch->lanes[lane].count;
    }
    batch->lanes[batch->nlanes] = (struct tutti_kernel_lane){
        .peer = TUTTI_NO_RANK, .first = first, .count = batch->ncopies};
    return TUTTI_OK;
}

/* ---- encoding --------------------------------------------------------------------------- */

/* Returns the step of a message. For a message of the rank to itself, the step of the send does the
 * copy. The step of the receive is in no lane's list, so it never runs. */
static struct tutti_kernel_step step_for(const struct batch *batch, size_t index)
{
    const struct tutti_cuda_message *message = &batch->messages[index];
    bool is_copy = message->peer == batch->rank;
    uint32_t lane = is_copy ? batch->nlanes : batch->places[index];

    return (struct tutti_kernel_step){
        .kind = (uint8_t)(is_copy ? TUTTI_STEP_COPY
                          : message->sends ? TUTTI_STEP_SEND : TUTTI_STEP_RECV),
        .src = TUTTI_BUF_INPUT, .dst = TUTTI_BUF_OUTPUT,
        .from = message->peer, .to = message->peer,
        .receive_lane = message->sends && !is_copy ? TUTTI_KERNEL_NO_LANE : lane,
        .send_lane = message->sends || is_copy ? lane : TUTTI_KERNEL_NO_LANE,
    };
}

static struct tutti_kernel_segment segment_for(const struct batch *batch, size_t index)
{
    const struct tutti_cuda_message *message = &batch->messages[index];
    struct tutti_kernel_segment segment = {.bytes = message->size_bytes};

    segment.at[message->sends ? TUTTI_AT_SRC : TUTTI_AT_DST] = message->address;
    if (message->sends && message->peer == batch->rank)
        segment.at[TUTTI_AT_DST] = batch->messages[batch->places[index]].address;
    return segment;
}

static struct tutti_kernel_signature signature_for(const struct tutti_header *header)
{
    struct tutti_kernel_signature signature = {.number = header->sequence, .chain = header->chain};

    memcpy(signature.signature, &header->signature, sizeof signature.signature);
    return signature;
}

/* Encodes the tables that have an entry for each message. */
static void encode_messages(struct tutti_cuda_writer *writer, const struct batch *batch)
{
    struct tutti_kernel_program *head = tutti_cuda_writer_head(writer);
    uint32_t count = (uint32_t)batch->count;
    struct tutti_kernel_step *steps =
        tutti_cuda_writer_table(writer, &head->steps, count, sizeof *steps);
    struct tutti_kernel_bound_step *bound =
        tutti_cuda_writer_table(writer, &head->last.steps, count, sizeof *bound);
    struct tutti_kernel_segment *segments =
        tutti_cuda_writer_table(writer, &head->last.segments, count, sizeof *segments);
    struct tutti_kernel_signature *signatures =
        tutti_cuda_writer_table(writer, &head->signatures, count, sizeof *signatures);

    head->full = head->last;
    for (uint32_t i = 0; steps != NULL && i < count; i++) {
        steps[i] = step_for(batch, i);
        bound[i] = (struct tutti_kernel_bound_step){i, 1, batch->messages[i].size_bytes};
        segments[i] = segment_for(batch, i);
        signatures[i] = signature_for(&batch->messages[i].header);
    }
}

/* Encodes the lanes, and the list of the steps of each lane. */
static void encode_lanes(struct tutti_cuda_writer *writer, const struct batch *batch)
{
    struct tutti_kernel_program *head = tutti_cuda_writer_head(writer);
    const struct tutti_kernel_column column = {0, batch->nlanes + 1};
    uint32_t filled[TUTTI_KERNEL_LANES] = {0};
    uint32_t *steps;

    tutti_cuda_writer_copy(writer, &head->columns, &column, 1, sizeof column);
    tutti_cuda_writer_copy(writer, &head->lanes, batch->lanes, batch->nlanes + 1,
                           sizeof *batch->lanes);
    steps = tutti_cuda_writer_table(writer, &head->lane_steps, batch->nhalves + batch->ncopies,
                                    sizeof *steps);
    for (size_t i = 0; steps != NULL && i < batch->count; i++) {
        const struct tutti_cuda_message *message = &batch->messages[i];
        uint32_t lane = message->peer == batch->rank ? batch->nlanes : batch->places[i];

        if (message->peer != batch->rank || message->sends)
            steps[batch->lanes[lane].first + filled[lane]++] = (uint32_t)i;
    }
}

static int encode(const struct batch *batch, const struct tutti_cuda_grid *grid,
                  struct tutti_cuda_program_image *ret_image)
{
    struct tutti_cuda_writer writer = {.bytes = NULL};

    do {
        TUTTI_TRY(tutti_cuda_writer_begin(&writer));
        *tutti_cuda_writer_head(&writer) = (struct tutti_kernel_program){
            .magic = TUTTI_KERNEL_PROGRAM_MAGIC,
            .nranks = grid->layout.nranks, .rank = (uint32_t)batch->rank,
            .nblocks = grid->nblocks, .ncolumns = 1, .ncopies = grid->nblocks, .fifo_step = 1,
            .nsteps = (uint32_t)batch->count,
            .is_messages = 1, .run_type = TUTTI_UINT8,
            .npieces = grid->nblocks, /* each block moves its shares */
            .share_bytes = grid->least_share_bytes,
        };
        encode_messages(&writer, batch);
        encode_lanes(&writer, batch);
    } while (!tutti_cuda_writer_end(&writer, grid, ret_image));
    return TUTTI_OK;
}

int tutti_cuda_messages_encode(const struct tutti_cuda_message *messages, size_t count, int rank,
                               const struct tutti_cuda_grid *grid,
                               struct tutti_cuda_program_image *ret_image)
{
    struct batch batch = {.messages = messages, .count = count, .rank = rank};
    int rc;

    batch.places = calloc(count + 1, sizeof *batch.places);
    if (batch.places == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu messages", count);
    TUTTI_TRY_OR(done, rc, match_copies(&batch));
    TUTTI_TRY_OR(done, rc, sort_into_lanes(&batch, grid));
    rc = encode(&batch, grid, ret_image);

done:
    free(batch.places);
    return rc;
}
