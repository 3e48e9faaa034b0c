/* SPDX-License-Identifier: Apache-2.0
 * Makes streams from seeds. */
#include "flow.h"

#include "base/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest that is sent or received as the first of two places: more than a record of the
 * smallest ring holds. Most are no longer than the largest element. */
#define HEAD_BYTES 2048
#define SHORT_HEAD_BYTES 64

static uint64_t draw(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint8_t byte_at(uint64_t seed, uint64_t position)
{
    return (uint8_t)((position * UINT64_C(0x9e3779b97f4a7c15) + seed) >> 37);
}

static void next_message(struct flow *flow)
{
    static const size_t leasts[] = {1, 2, 4, 8, 16, 64, 12, 3};
    uint64_t scale = draw(&flow->shape) % 4;
    uint64_t size = draw(&flow->shape) % (flow->most_bytes >> (4 * scale)) + 1;

    flow->least = leasts[draw(&flow->shape) % (sizeof leasts / sizeof leasts[0])];
    flow->mode = draw(&flow->shape) % 3;
    flow->size = (size + flow->least - 1) / flow->least * flow->least;
    flow->done = flow->offered = 0;
}

void flow_start(struct flow *flow, uint64_t seed, uint64_t whim, uint32_t nmessages,
                size_t most_bytes)
{
    *flow = (struct flow){.shape = seed, .seed = seed, .whim = whim, .nmessages = nmessages,
                          .most_bytes = most_bytes};
    flow->buffer = malloc(most_bytes + 64);
    if (flow->buffer == NULL)
        abort();
    next_message(flow);
}

void flow_end(struct flow *flow)
{
    free(flow->buffer);
    flow->buffer = NULL;
}

static void moved(struct flow *flow, size_t size)
{
    flow->done += size;
    flow->position += size;
    if (flow->done < flow->size)
        return;
    flow->index++;
    next_message(flow);
}

static int complain(const struct flow *flow, const char *what)
{
    fprintf(stderr, "seed %llu, message %u of %zu bytes (elements of %zu), byte %zu: %s\n",
            (unsigned long long)flow->seed, flow->index, flow->size, flow->least, flow->done, what);
    return -2;
}

/* A random part of what is left, in elements; often all of it. */
static size_t part_of(struct flow *flow, size_t left, size_t least)
{
    size_t count = (left + least - 1) / least;
    size_t part;

    if (draw(&flow->whim) % 2 == 0)
        return left;
    part = (size_t)(draw(&flow->whim) % count + 1) * least;
    return part < left ? part : left;
}

/* A random length of a head, of what is left. */
static size_t head_of(struct flow *flow, size_t left)
{
    bool is_long = draw(&flow->whim) % 4 == 0;
    size_t size = draw(&flow->whim) % (is_long ? HEAD_BYTES : SHORT_HEAD_BYTES) + 1;

    return size < left ? size : left;
}

/* In one place, or in two if the transport takes that. */
static int offer(struct flow *flow, struct tutti_conn *conn, size_t *ret_taken)
{
    const uint8_t *at = flow->buffer + flow->done;
    size_t size = flow->offered - flow->done, head_size;
    uint8_t head[HEAD_BYTES];

    if (conn->ops->send_two == NULL || size == 0 || draw(&flow->whim) % 2 == 0)
        return conn->ops->send(conn, at, size, ret_taken);
    head_size = head_of(flow, size);
    memcpy(head, at, head_size);
    return conn->ops->send_two(conn, head, head_size, size > head_size ? at + head_size : NULL,
                               size - head_size, ret_taken);
}

int flow_send(struct flow *flow, struct tutti_conn *conn)
{
    size_t taken = 0, left = flow->size - flow->done;

    if (flow_is_done(flow))
        return 0;
    if (flow->offered <= flow->done || draw(&flow->whim) % 2 == 0) {
        size_t more = flow->size - flow->offered;

        if (more > 0) {
            size_t grown = part_of(flow, more, flow->least);

            for (size_t i = flow->offered; i < flow->offered + grown; i++)
                flow->buffer[i] = byte_at(flow->seed, flow->position - flow->done + i);
            flow->offered += grown;
        }
    }
    if (offer(flow, conn, &taken) != TUTTI_OK)
        return -1;
    if (taken > left || taken > flow->offered - flow->done)
        return complain(flow, "more taken than offered");
    /* The bytes that were taken belong to the test again. */
    memset(flow->buffer + flow->done, 0xee, taken);
    moved(flow, taken);
    return taken > 0;
}

static int compare(const struct flow *flow, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != byte_at(flow->seed, flow->position + i))
            return complain(flow, "wrong byte");
    return 0;
}

static int look_in_place(struct flow *flow, struct tutti_conn *conn, size_t least)
{
    size_t left = flow->size - flow->done, size = 0;
    size_t alignment = least & (~least + 1);
    const void *data = NULL;
    int rc;

    if (conn->ops->peek(conn, least, left, &data, &size) != TUTTI_OK)
        return -1;
    if (size == 0)
        return 0;
    if (size > left || size % least != 0)
        return complain(flow, "peek shows no multiple of its elements, or too much");
    if ((uintptr_t)data % (alignment < 8 ? alignment : 8) != 0)
        return complain(flow, "peek shows misaligned elements");
    rc = compare(flow, data, size);
    if (rc != 0)
        return rc;
    size = part_of(flow, size, least);
    conn->ops->consume(conn, size);
    moved(flow, size);
    return 1;
}

/* Into two places; `looks`: what follows the head is left to be peeked at. */
static int receive_two(struct flow *flow, struct tutti_conn *conn, bool looks)
{
    size_t left = flow->size - flow->done, size = looks ? flow->least : head_of(flow, left);
    size_t got = 0, in_head;
    uint8_t head[HEAD_BYTES];
    int rc;

    if (conn->ops->recv_two(conn, head, size, looks ? NULL : flow->buffer, left - size, &got) !=
        TUTTI_OK)
        return -1;
    if (got > left || (looks && got > size))
        return complain(flow, "more got in two places than asked for");
    in_head = got < size ? got : size;
    rc = compare(flow, head, in_head);
    if (rc != 0)
        return rc;
    moved(flow, in_head);
    if (got == in_head)
        return got > 0;
    rc = compare(flow, flow->buffer, got - in_head);
    if (rc != 0)
        return rc;
    moved(flow, got - in_head);
    return 1;
}

int flow_recv(struct flow *flow, struct tutti_conn *conn)
{
    static const size_t small[] = {1, 2, 4, 8};
    size_t least = flow->least, asked, got = 0;
    bool looks;
    int rc;

    if (flow_is_done(flow))
        return 0;
    if (flow->mode == FLOW_MIXES)
        least = small[draw(&flow->whim) % 4];
    /* A head may have come in part: then the rest of that element is received, too. */
    looks = flow->mode == FLOW_LOOKS && flow->done % flow->least == 0;
    if (conn->ops->recv_two != NULL && (looks || flow->mode != FLOW_LOOKS) &&
        draw(&flow->whim) % 2 == 0)
        return receive_two(flow, conn, looks);
    if (looks ||
        (flow->mode == FLOW_MIXES && draw(&flow->whim) % 2 == 0 &&
         least <= flow->size - flow->done))
        return look_in_place(flow, conn, least);
    asked = part_of(flow, flow->size - flow->done, flow->mode == FLOW_MIXES ? 1 : least);
    if (conn->ops->recv(conn, flow->buffer, asked, &got) != TUTTI_OK)
        return -1;
    if (got > asked)
        return complain(flow, "more got than asked for");
    rc = compare(flow, flow->buffer, got);
    if (rc != 0)
        return rc;
    moved(flow, got);
    return got > 0;
}
