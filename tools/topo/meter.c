/* SPDX-License-Identifier: Apache-2.0
 * Measures the times of messages with tuttiSend and tuttiRecv, and of barriers. */
#include "topo/meter.h"

#include "common/memory.h"
#include "topo/timing.h"

#include <string.h>
#include <unistd.h>

/* Sizes of messages in bytes. */
enum { SMALL = 8, LARGEST = 16 << 20, LARGEST_QUICK = 1 << 20 };

/* A pair of ranks that is measured, as one of the two sees it. */
struct link {
    struct crew *crew;
    int peer;
    bool begins;       /* true for the rank that sends first */
    uint8_t *out, *in; /* buffers of LARGEST bytes; owned */
};

static void send(const struct link *link, size_t size)
{
    crew_must(link->crew, "tuttiSend",
              tuttiSend(link->out, size, tuttiUint8, link->peer, link->crew->comm, NULL));
}

static void receive(const struct link *link, size_t size)
{
    crew_must(link->crew, "tuttiRecv",
              tuttiRecv(link->in, size, tuttiUint8, link->peer, link->crew->comm, NULL));
}

/* ---- patterns -------------------------------------------------------------------------------- */

/* Each pattern sends `count` messages in each of its directions. It ends when both ranks have
 * received all of them. */

static void there_and_back(const struct link *link, size_t size, int count)
{
    for (int i = 0; i < count; i++) {
        if (link->begins)
            send(link, size);
        receive(link, size);
        if (!link->begins)
            send(link, size);
    }
}

static void one_way(const struct link *link, size_t size, int count)
{
    for (int i = 0; i < count; i++)
        if (link->begins)
            send(link, size);
        else
            receive(link, size);
    /* An answer tells the sender that all messages have arrived. */
    if (link->begins)
        receive(link, 1);
    else
        send(link, 1);
}

static void both_ways(const struct link *link, size_t size, int count)
{
    for (int i = 0; i < count; i++) {
        crew_must(link->crew, "tuttiGroupStart", tuttiGroupStart());
        send(link, size);
        receive(link, size);
        crew_must(link->crew, "tuttiGroupEnd", tuttiGroupEnd());
    }
}

/* ---- timing ---------------------------------------------------------------------------------- */

/* Returns the number of repetitions in one timed block. The block must be long enough for the
 * clock, and short enough to measure many sizes. */
static int repetitions(const struct crew *crew, size_t size)
{
    size_t most = crew->is_quick ? 8 : 64, block_bytes = crew->is_quick ? 1 << 20 : 4 << 20;
    size_t count = block_bytes / size;

    return (int)(count < 2 ? 2 : count > most ? most : count);
}

/* Returns the next size to measure. Large sizes are closer together, because caches change their
 * times. */
static size_t next_size(size_t size)
{
    return size * (size < 32768 ? 8 : 2);
}

/* Returns the median time of one message of a pattern, in seconds. */
static double time_pattern(const struct link *link, size_t size, int count,
                           void (*pattern)(const struct link *link, size_t size, int count))
{
    double blocks[TIMING_BLOCKS];
    int nblocks = timing_blocks(link->crew);

    pattern(link, size, 1); /* not timed, because the first messages take longer */
    for (int i = 0; i < nblocks; i++) {
        double begin_s;

        there_and_back(link, 1, 1); /* both ranks start at about the same time */
        begin_s = timing_now_s();
        pattern(link, size, count);
        blocks[i] = (timing_now_s() - begin_s) / count;
    }
    return timing_median(blocks, nblocks);
}

/* Measures all sizes in all patterns. */
static void time_sizes(const struct link *link, struct link_times *times)
{
    size_t largest = link->crew->is_quick ? LARGEST_QUICK : LARGEST;

    times->overhead_s = time_pattern(link, SMALL, 4 * repetitions(link->crew, SMALL), one_way);
    for (size_t size = SMALL; size <= largest; size = next_size(size)) {
        int count = repetitions(link->crew, size);

        timing_show(link->crew, "messages", size);
        samples_add(&times->one_way, (double)size, (double)size,
                    time_pattern(link, size, count, there_and_back) / 2);
        samples_add(&times->both_ways, 2.0 * (double)size, 2.0 * (double)size,
                    time_pattern(link, size, count, both_ways));
    }
}

/* Allocates the buffers of a link. close_link frees them. */
static struct link open_link(struct crew *crew, int peer, bool begins)
{
    struct link link = {.crew = crew,
                        .peer = peer,
                        .begins = begins,
                        .out = must_calloc(LARGEST, 1),
                        .in = must_calloc(LARGEST, 1)};

    memset(link.out, 1, LARGEST); /* writes to all pages, so that each buffer has its own */
    memset(link.in, 2, LARGEST);
    return link;
}

static void close_link(struct link *link)
{
    free(link->out);
    free(link->in);
}

void meter_link(struct crew *crew, int a, int b, struct link_times *ret_times)
{
    struct link_times *all = must_calloc((size_t)crew->nranks, sizeof *all);

    *ret_times = (struct link_times){.overhead_s = 0};
    crew_meet(crew);
    if (crew->rank == a || crew->rank == b) {
        struct link link = open_link(crew, crew->rank == a ? b : a, crew->rank == a);

        time_sizes(&link, ret_times);
        close_link(&link);
    }
    crew_gather(crew, ret_times, sizeof *ret_times, all);
    *ret_times = all[a];
    free(all);
}

/* ---- all ranks at once ----------------------------------------------------------------------- */

/* Sends a message to the next rank and receives one from the previous rank. */
static void send_to_next(struct crew *crew, size_t size, uint8_t *out, uint8_t *in)
{
    int next = (crew->rank + 1) % crew->nranks;
    int previous = (crew->rank + crew->nranks - 1) % crew->nranks;

    crew_must(crew, "tuttiGroupStart", tuttiGroupStart());
    crew_must(crew, "tuttiSend", tuttiSend(out, size, tuttiUint8, next, crew->comm, NULL));
    crew_must(crew, "tuttiRecv", tuttiRecv(in, size, tuttiUint8, previous, crew->comm, NULL));
    crew_must(crew, "tuttiGroupEnd", tuttiGroupEnd());
}

static void barrier(struct crew *crew, size_t size, uint8_t *out, uint8_t *in)
{
    (void)size, (void)out, (void)in;
    crew_must(crew, "tuttiBarrier", tuttiBarrier(crew->comm, NULL));
}

/* Returns the time of a pattern that all ranks run at the same time. It is the median of the
 * medians of the ranks. */
static double time_all(struct crew *crew, const struct link *link, size_t size,
                       void (*pattern)(struct crew *crew, size_t size, uint8_t *out, uint8_t *in))
{
    int count = repetitions(crew, size), nblocks = timing_blocks(crew);
    double blocks[TIMING_BLOCKS], mine, *all = must_calloc((size_t)crew->nranks, sizeof *all);

    for (int i = 0; i < nblocks; i++) {
        double begin_s;

        pattern(crew, size, link->out, link->in);
        begin_s = timing_now_s();
        for (int k = 0; k < count; k++)
            pattern(crew, size, link->out, link->in);
        blocks[i] = (timing_now_s() - begin_s) / count;
    }
    mine = timing_median(blocks, nblocks);
    crew_gather(crew, &mine, sizeof mine, all);
    mine = timing_median(all, crew->nranks);
    free(all);
    return mine;
}

void meter_crowd(struct crew *crew, double turns, struct samples *ret_rounds)
{
    size_t largest = crew->is_quick ? LARGEST_QUICK : LARGEST;
    struct link link = open_link(crew, 0, false); /* only for its buffers */

    *ret_rounds = (struct samples){.count = 0};
    crew_meet(crew);
    for (size_t size = SMALL; size <= largest; size = next_size(size)) {
        timing_show(crew, "rounds", size);
        samples_add(ret_rounds, 2 * turns * (double)size, 2.0 * (double)size,
                    time_all(crew, &link, size, send_to_next));
    }
    close_link(&link);
}

double meter_signal(struct crew *crew)
{
    struct link none = {.crew = crew};

    crew_meet(crew);
    return time_all(crew, &none, SMALL, barrier);
}
