/* SPDX-License-Identifier: Apache-2.0
 * Carries the mailboxes of one pair of ranks of different hosts. */
#include "executor/cuda/proxy_link.h"

#include "base/atomic.h"
#include "base/result.h"

#include <stdlib.h>
#include <string.h>

int tutti_cuda_proxy_link_init(struct tutti_cuda_proxy_link *link,
                               const struct tutti_cuda_proxy_args *args,
                               const struct tutti_cuda_proxy_pair *pair)
{
    size_t channels = args->layout.channels;

    *link = (struct tutti_cuda_proxy_link){.pair = *pair, .layout = args->layout,
                                           .fabric = args->fabric};
    link->filled = calloc(channels, sizeof *link->filled);
    link->emptied = calloc(channels, sizeof *link->emptied);
    link->arrived = calloc(channels, sizeof *link->arrived);
    if (link->filled == NULL || link->emptied == NULL || link->arrived == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "rank %d: no memory for the proxy of its GPU",
                          args->rank);
    return tutti_fabric_connect(args->fabric, pair->rank, TUTTI_CHANNEL_COLLECTIVE, &link->conn);
}

void tutti_cuda_proxy_link_fini(struct tutti_cuda_proxy_link *link)
{
    free(link->filled);
    free(link->emptied);
    free(link->arrived);
    *link = (struct tutti_cuda_proxy_link){.conn = NULL};
}

/* ---- mailboxes ------------------------------------------------------------------------------- */

/* These are the functions of fifo.cuh, for CPUs. */

static struct tutti_kernel_fifo *fifo_at(const struct tutti_cuda_proxy_link *link, uint8_t *mailbox,
                                         uint32_t number)
{
    return (struct tutti_kernel_fifo *)(void *)(mailbox + link->layout.fifo_at +
                                                number * link->layout.fifo_stride);
}

static struct tutti_kernel_header *header_of(const struct tutti_cuda_proxy_link *link,
                                             struct tutti_kernel_fifo *fifo, uint64_t slot)
{
    return (struct tutti_kernel_header *)(fifo + 1) + slot % link->layout.slots;
}

static uint8_t *data_of(const struct tutti_cuda_proxy_link *link, struct tutti_kernel_fifo *fifo,
                        uint64_t slot)
{
    struct tutti_kernel_header *headers = (struct tutti_kernel_header *)(fifo + 1);

    return (uint8_t *)(headers + link->layout.slots) +
           slot % link->layout.slots * link->layout.slot_bytes;
}

static struct tutti_kernel_greeting *greeting_at(uint8_t *mailbox, uint32_t place)
{
    return &((struct tutti_kernel_mail *)(void *)mailbox)->greetings[place];
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Adds a frame to those that are sent next. */
static void add_frame(struct tutti_cuda_proxy_link *link,
                      const struct tutti_cuda_proxy_frame *frame)
{
    tutti_assert(link->frame_bytes + sizeof *frame <= sizeof link->frames && link->data == NULL);
    memcpy((uint8_t *)link->frames + link->frame_bytes, frame, sizeof *frame);
    link->frame_bytes += sizeof *frame;
}

static bool has_room(const struct tutti_cuda_proxy_link *link)
{
    return link->frame_bytes + sizeof *link->frames <= sizeof link->frames;
}

/* Reads a greeting that the kernel has stored. Its values arrive one by one, and each half of a
 * value with the flag of the epoch. Returns false unless all of it is of one epoch. */
static bool read_greeting(const struct tutti_kernel_greeting *greeting,
                          struct tutti_cuda_proxy_frame *frame)
{
    const uint64_t *halves = (const uint64_t *)(const void *)greeting->words;
    uint32_t flag = 0;

    for (int word = 0; word < 4; word++) {
        uint64_t low = tutti_load_relaxed(&halves[2 * word]);
        uint64_t high = tutti_load_relaxed(&halves[2 * word + 1]);

        if (word == 0)
            flag = (uint32_t)(low >> 32);
        if (low >> 32 != flag || high >> 32 != flag)
            return false;
        frame->words[word] = high << 32 | (uint32_t)low;
    }
    frame->fifo = flag;
    return true;
}

/* Adds greetings that were stored since the last time. A greeting is never missed, because a rank
 * overwrites it only after it has the next greeting of the other rank, which that rank sends after
 * it has read this one (core.cuh). */
static void add_greetings(struct tutti_cuda_proxy_link *link)
{
    for (uint32_t place = 0; place < 2; place++) {
        struct tutti_cuda_proxy_frame frame = {.kind = TUTTI_CUDA_PROXY_GREETING, .value = place};

        if (!has_room(link) ||
            !read_greeting(greeting_at(link->pair.outgoing, place), &frame) ||
            frame.fifo == link->greeted[place])
            continue;
        link->greeted[place] = frame.fifo;
        add_frame(link, &frame);
    }
}

/* Adds the counts of emptied slots that have changed since the last time. */
static void add_counts(struct tutti_cuda_proxy_link *link)
{
    for (uint32_t i = 0; i < link->layout.channels; i++) {
        struct tutti_kernel_fifo *fifo = fifo_at(link, link->pair.outgoing, i);
        /* acquire: pairs with the kernel's release in gpu_pass_slot; the slot has been read */
        uint64_t head = tutti_load_acquire(&fifo->head);

        if (!has_room(link) || head == link->emptied[i])
            continue;
        link->emptied[i] = head;
        add_frame(link, &(struct tutti_cuda_proxy_frame){.kind = TUTTI_CUDA_PROXY_EMPTIED,
                                                         .fifo = i, .value = head});
    }
}

/* Adds a slot that the kernel has filled, if there is one. FIFOs take turns. */
static void add_slot(struct tutti_cuda_proxy_link *link)
{
    for (uint32_t k = 0; k < link->layout.channels && has_room(link); k++) {
        uint32_t number = (link->turn + k) % link->layout.channels;
        struct tutti_kernel_fifo *fifo = fifo_at(link, link->pair.outgoing, number);
        const struct tutti_kernel_header *header;
        struct tutti_cuda_proxy_frame frame;

        /* acquire: pairs with the kernel's release in gpu_pass_slot; the slot is complete */
        if (tutti_load_acquire(&fifo->tail) == link->filled[number])
            continue;
        header = header_of(link, fifo, link->filled[number]);
        frame = (struct tutti_cuda_proxy_frame){
            .kind = TUTTI_CUDA_PROXY_SLOT, .fifo = number, .value = header->size_bytes,
            .words = {header->number, header->signature[0], header->signature[1], header->chain}};
        add_frame(link, &frame);
        link->data = data_of(link, fifo, link->filled[number]);
        link->data_bytes = (size_t)frame.value;
        link->total_bytes += frame.value;
        link->filled[number]++;
        link->turn = number + 1;
        return;
    }
}

/* Collects what is sent next. After LEAVE there is nothing but the answer to the other's LEAVE. */
static void collect(struct tutti_cuda_proxy_link *link)
{
    link->frame_bytes = link->data_bytes = link->sent_bytes = 0;
    link->data = NULL;
    if (!link->is_leaving && !link->has_left) {
        add_greetings(link);
        add_counts(link);
        add_slot(link);
    }
    if (link->owes_answer) {
        add_frame(link, &(struct tutti_cuda_proxy_frame){.kind = TUTTI_CUDA_PROXY_ANSWER});
        link->owes_answer = false;
    }
}

/* Offers the rest of the frames and of the data. */
static int offer(struct tutti_cuda_proxy_link *link, size_t *ret_taken)
{
    const struct tutti_conn_ops *ops = link->conn->ops;
    const uint8_t *frames = (const uint8_t *)link->frames;
    size_t at = link->sent_bytes;

    if (at >= link->frame_bytes)
        return ops->send(link->conn, link->data + (at - link->frame_bytes),
                         link->frame_bytes + link->data_bytes - at, ret_taken);
    if (link->data_bytes > 0 && ops->send_two != NULL)
        return ops->send_two(link->conn, frames + at, link->frame_bytes - at, link->data,
                             link->data_bytes, ret_taken);
    return ops->send(link->conn, frames + at, link->frame_bytes - at, ret_taken);
}

static bool is_sending(const struct tutti_cuda_proxy_link *link)
{
    return link->sent_bytes < link->frame_bytes + link->data_bytes;
}

/* Slots that are sent at once, before what has arrived is received. */
enum { SLOTS_AT_ONCE = 8 };

static int send_some(struct tutti_cuda_proxy_link *link, bool *moved)
{
    for (int i = 0; i < SLOTS_AT_ONCE; i++) {
        size_t taken = 0;

        if (!is_sending(link))
            collect(link);
        if (!is_sending(link))
            return TUTTI_OK;
        TUTTI_TRY(offer(link, &taken));
        link->sent_bytes += taken;
        *moved = *moved || taken > 0;
        if (is_sending(link))
            return TUTTI_OK;
    }
    return TUTTI_OK;
}

/* ---- receiving ------------------------------------------------------------------------------- */

static int fail_frame(const struct tutti_cuda_proxy_link *link)
{
    return tutti_fail(TUTTI_ERR_INTERNAL, "rank %d has sent a malformed frame between GPUs: kind "
                      "%u, FIFO %u, value %llu; this is a bug of the library", link->pair.rank,
                      link->frame.kind, link->frame.fifo, (unsigned long long)link->frame.value);
}

/* Returns true if the frame is one that the other proxy may send now. */
static bool is_valid(const struct tutti_cuda_proxy_link *link)
{
    const struct tutti_cuda_proxy_frame *frame = &link->frame;
    bool has_fifo = frame->fifo < link->layout.channels;

    switch (frame->kind) {
    case TUTTI_CUDA_PROXY_SLOT:
        return has_fifo && !link->has_left && frame->value <= link->layout.slot_bytes &&
               link->arrived[frame->fifo] - link->emptied[frame->fifo] < link->layout.slots;
    case TUTTI_CUDA_PROXY_EMPTIED:
        return has_fifo && !link->has_left && frame->value <= link->filled[frame->fifo];
    case TUTTI_CUDA_PROXY_GREETING: return frame->value < 2 && !link->has_left;
    case TUTTI_CUDA_PROXY_LEAVE: return !link->has_left;
    case TUTTI_CUDA_PROXY_ANSWER: return link->is_leaving && !link->is_answered;
    default: return false;
    }
}

/* True if nothing more arrives. An answer is the last frame of a proxy. A proxy that leaves sends
 * none, unless this one leaves at the same time. */
static bool has_everything(const struct tutti_cuda_proxy_link *link)
{
    return link->is_answered || (link->has_left && !link->is_leaving);
}

/* Receives at most `size` bytes. After the other proxy has left, nothing more arrives, and the end
 * of the connection is no error. */
static int receive(struct tutti_cuda_proxy_link *link, void *to, size_t size, size_t *ret_got)
{
    int rc;

    *ret_got = 0;
    if (size == 0)
        return TUTTI_OK;
    rc = link->conn->ops->recv(link->conn, to, size, ret_got);
    return link->has_left && rc == TUTTI_ERR_REMOTE ? TUTTI_OK : rc;
}

static void store_greeting(struct tutti_cuda_proxy_link *link)
{
    const struct tutti_cuda_proxy_frame *frame = &link->frame;
    struct tutti_kernel_greeting *greeting =
        greeting_at(link->pair.incoming, (uint32_t)frame->value);
    uint64_t *halves = (uint64_t *)(void *)greeting->words;

    for (int word = 0; word < 4; word++) {
        uint64_t flag = (uint64_t)frame->fifo << 32;

        tutti_store_relaxed(&halves[2 * word], flag | (uint32_t)frame->words[word]);
        tutti_store_relaxed(&halves[2 * word + 1], flag | frame->words[word] >> 32);
    }
}

static void store_slot(struct tutti_cuda_proxy_link *link)
{
    const struct tutti_cuda_proxy_frame *frame = &link->frame;
    struct tutti_kernel_fifo *fifo = fifo_at(link, link->pair.incoming, frame->fifo);
    uint64_t slot = link->arrived[frame->fifo]++;
    struct tutti_kernel_header *header = header_of(link, fifo, slot);

    header->number = frame->words[0];
    header->signature[0] = frame->words[1];
    header->signature[1] = frame->words[2];
    header->chain = frame->words[3];
    /* release: pairs with the kernel's acquire in gpu_lane_has_arrived; the slot is complete */
    tutti_store_release(&fifo->tail, slot + 1);
}

/* Does what a complete frame asks for. */
static void take(struct tutti_cuda_proxy_link *link)
{
    const struct tutti_cuda_proxy_frame *frame = &link->frame;

    switch ((enum tutti_cuda_proxy_kind)frame->kind) {
    case TUTTI_CUDA_PROXY_SLOT: store_slot(link); break;
    case TUTTI_CUDA_PROXY_EMPTIED:
        /* release: pairs with the kernel's acquire in gpu_has_credit; the slot was sent before */
        tutti_store_release(&fifo_at(link, link->pair.incoming, frame->fifo)->head, frame->value);
        break;
    case TUTTI_CUDA_PROXY_GREETING: store_greeting(link); break;
    case TUTTI_CUDA_PROXY_LEAVE: link->has_left = link->owes_answer = true; break;
    case TUTTI_CUDA_PROXY_ANSWER: link->is_answered = true; break;
    }
}

/* Receives more of a frame. *ret_is_complete is true if it is complete, and may be asked for. */
static int receive_frame(struct tutti_cuda_proxy_link *link, bool *moved, bool *ret_is_complete)
{
    size_t got, size = sizeof link->frame;

    *ret_is_complete = true;
    if (link->got_bytes >= size)
        return TUTTI_OK;
    TUTTI_TRY(receive(link, (uint8_t *)&link->frame + link->got_bytes, size - link->got_bytes,
                      &got));
    link->got_bytes += got;
    *moved = *moved || got > 0;
    *ret_is_complete = link->got_bytes == size;
    return !*ret_is_complete || is_valid(link) ? TUTTI_OK : fail_frame(link);
}

/* Receives more of the data of a slot, if the frame is one. */
static int receive_data(struct tutti_cuda_proxy_link *link, bool *moved, bool *ret_is_complete)
{
    const struct tutti_cuda_proxy_frame *frame = &link->frame;
    size_t at = link->got_bytes - sizeof *frame, got;
    struct tutti_kernel_fifo *fifo;

    *ret_is_complete = frame->kind != TUTTI_CUDA_PROXY_SLOT || at == frame->value;
    if (*ret_is_complete)
        return TUTTI_OK;
    fifo = fifo_at(link, link->pair.incoming, frame->fifo);
    TUTTI_TRY(receive(link, data_of(link, fifo, link->arrived[frame->fifo]) + at,
                      (size_t)frame->value - at, &got));
    link->got_bytes += got;
    *moved = *moved || got > 0;
    *ret_is_complete = at + got == frame->value;
    return TUTTI_OK;
}

/* Frames that are received at once, before anything is sent. */
enum { FRAMES_AT_ONCE = 32 };

static int receive_some(struct tutti_cuda_proxy_link *link, bool *moved)
{
    for (int i = 0; i < FRAMES_AT_ONCE && !has_everything(link); i++) {
        bool is_complete;

        TUTTI_TRY(receive_frame(link, moved, &is_complete));
        if (is_complete)
            TUTTI_TRY(receive_data(link, moved, &is_complete));
        if (!is_complete)
            return TUTTI_OK;
        take(link);
        link->got_bytes = 0;
    }
    return TUTTI_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* True if both proxies have all that the other one sends. */
static bool is_over(const struct tutti_cuda_proxy_link *link)
{
    return has_everything(link) && !link->owes_answer && !is_sending(link);
}

int tutti_cuda_proxy_link_move(struct tutti_cuda_proxy_link *link, bool *moved)
{
    int rc;

    /* The other side closes its end soon, or has closed it, which must not count as the loss of a
     * rank. */
    if (is_over(link)) {
        if (link->conn != NULL)
            tutti_fabric_disconnect(link->fabric, link->pair.rank, TUTTI_CHANNEL_COLLECTIVE);
        link->conn = NULL;
        return TUTTI_OK;
    }
    rc = send_some(link, moved);

    /* The other proxy has left, and has closed the connection before the answer arrived. */
    if (link->has_left && rc == TUTTI_ERR_REMOTE) {
        link->sent_bytes = link->frame_bytes + link->data_bytes;
        rc = TUTTI_OK;
    }
    return rc == TUTTI_OK ? receive_some(link, moved) : rc;
}

bool tutti_cuda_proxy_link_leave(struct tutti_cuda_proxy_link *link)
{
    if (is_sending(link) || link->owes_answer)
        return false;
    if (link->is_leaving)
        return link->is_answered;
    if (link->has_left)
        return true;
    collect(link);
    if (is_sending(link))
        return false;
    add_frame(link, &(struct tutti_cuda_proxy_frame){.kind = TUTTI_CUDA_PROXY_LEAVE});
    link->is_leaving = true;
    return false;
}
