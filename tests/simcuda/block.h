/* SPDX-License-Identifier: Apache-2.0
 * The machine's view of a running kernel: launches, blocks, warps and threads. */
#ifndef TUTTI_TESTS_SIMCUDA_BLOCK_H
#define TUTTI_TESTS_SIMCUDA_BLOCK_H

#include "simcuda/cache.h"
#include "simcuda/fiber.h"
#include "simcuda/launch.h"
#include "simcuda/thread.h"
#include "simcuda/weak.h"

enum {
    SIM_WARP = 32,
    SIM_SHARED = 64,                /* most declarations of shared memory that a program has */
    SIM_SHARED_BYTES = 48 << 10,    /* of a block, as GPUs have it for such declarations */
    SIM_SEEN = 16,                  /* what a thread remembers of what it polled */
    SIM_RELAXED = 64,               /* and of its relaxed loads, until it fences */
    SIM_TORN = 16,                  /* and of lines that others see in parts */
    SIM_CACHES = 2,                 /* of multiprocessors, over which a launch spreads its blocks */
};

struct runner;

/* A meeting at which threads wait for each other. Rounds follow each other. The data of a round is
 * stored by its parity, because no thread begins a round while others have not left the one
 * before. */
struct meeting {
    uint64_t round;
    uint32_t nmembers, narrived, nended;
    enum sim_meeting_kind kind; /* of the round, from the first who came */
    struct runner *waiting;
    uint64_t clocks[2]; /* for the thread sanitizer: an address for each parity */
};

struct warp {
    struct meeting meeting;
    struct sim_word words[2][SIM_WARP];
    void *addresses[2][SIM_WARP]; /* of lines; NULL: that lane has nothing */
};

/* A thread's part of a line that is not all there yet. */
struct sim_torn {
    uint64_t *at;
    struct sim_word word;
    uint64_t due_ns;
};

/* A thread: known to kernels by its first member. */
struct runner {
    struct sim_thread self;
    struct block *block;
    struct warp *warp;
    struct sim_fiber *fiber;
    struct runner *next; /* ready, or waiting in a meeting */
    const char *waits_in; /* NULL: it does not */
    bool has_ended;

    /* A wait is in vain if the thread has seen nothing new between two pauses. */
    bool is_idle, has_seen_new;
    uint32_t npolls;
    struct {
        const void *at;
        uint64_t value;
    } seen[SIM_SEEN];
    uint32_t nseen;

    struct sim_weak_buffer kept;
    const void *relaxed[SIM_RELAXED];
    uint32_t nrelaxed;
    struct sim_torn torn[SIM_TORN]; /* oldest first */
    uint32_t ntorn;
};

struct block {
    struct run *run;
    uint32_t index, nthreads, nrunning, nended;
    struct runner *runners;
    struct warp *warps;
    struct meeting meeting;
    uint32_t ntrue[2]; /* of the meeting's rounds: who brought it */
    unsigned char *shared;
    uint32_t shared_bytes;          /* in use */
    uint32_t shared_at[SIM_SHARED + 1]; /* by number; 0: not yet, else one more than where */
    struct sim_weak_buffer kept;
    struct sim_cache *cache; /* of its multiprocessor */
    struct block *next;
};

struct run {
    const struct sim_launch *launch;
    struct block *blocks; /* that have begun and not ended */
    uint32_t nbegun, nended;
    struct runner *first_ready, *last_ready;
    uint32_t nready;
    bool is_weak;
    struct sim_cache caches[SIM_CACHES];
    uint64_t random;
    uint64_t begin_clock, end_clock; /* addresses for the thread sanitizer */
};

static inline struct runner *runner_self(void)
{
    return (struct runner *)(void *)sim_self;
}

/* Never 0. */
static inline uint64_t run_random(struct run *run)
{
    run->random ^= run->random << 13;
    run->random ^= run->random >> 7;
    run->random ^= run->random << 17;
    return run->random;
}

/* At the end of those who have something to do. */
void runner_make_ready(struct runner *runner);
/* The same, and let others get on. */
void runner_give_way(struct runner *self);
/* Wait until another thread makes this one ready. If no thread of its block is left that could, the
 * process ends with a message. */
void runner_wait(struct runner *self, const char *where);
/* A mistake of the kernel, with the thread that made it. */
_Noreturn void runner_die(const struct runner *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A thread ends. No thread may be waiting for it. */
void meeting_leave(struct runner *self);

/* Lines that have been torn long enough are whole from now on. */
void runner_mend(struct runner *self);

/* A watched thread loads or stores its 16 bytes of a line. Its stores before are published. */
void runner_touch_line(struct runner *self, const void *at, bool is_store);

/* Kept stores: what a block's threads stored is known to them all; one more may get to memory; a
 * thread, and a block, ends. */
void runner_share(struct runner *self);
void runner_drain(struct runner *self);
void runner_drain_end(struct runner *self);
void block_drain_end(struct block *block);

#endif
