/* SPDX-License-Identifier: Apache-2.0
 * Runs a kernel. Blocks begin when there is a place for them, and their threads take turns. If all
 * threads only wait for others, the thread yields the CPU. */
#include "simcuda/launch.h"

#include "simcuda/block.h"
#include "simcuda/die.h"
#include "simcuda/sanitizers.h"

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    POLLS_A_TURN = 64,   /* of a thread that polls without a pause */
    YIELDS = 16,         /* rounds without progress before the thread sleeps */
    LEAST_SLEEP_US = 20, MOST_SLEEP_US = 200,
    THREAD_KEEPS = 24,   /* cells of stores that others do not see yet */
    BLOCK_KEEPS = 96,
};

__thread struct sim_thread *sim_self;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t weak_seed;
static uint64_t nlaunches;

static void read_environment(void)
{
    const char *seed = getenv("SIMCUDA_WEAK");

    if (seed != NULL)
        __atomic_store_n(&weak_seed, strtoull(seed, NULL, 0), __ATOMIC_RELAXED);
}

void sim_weak_set(uint64_t seed)
{
    pthread_once(&once, read_environment);
    __atomic_store_n(&weak_seed, seed, __ATOMIC_RELAXED);
}

uint64_t sim_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- mistakes -------------------------------------------------------------------------------- */

void runner_die(const struct runner *self, const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sim_die("kernel %s, block %u, thread %u: %s", self->block->run->launch->kernel->name,
            self->self.block, self->self.thread, text);
}

void sim_misaligned(const void *at, size_t size_bytes)
{
    runner_die(runner_self(), "an access to %zu bytes at %p, which is not aligned", size_bytes, at);
}

/* One line for each block: where its first threads are that wait in different places. */
static void describe(const struct run *run)
{
    for (const struct block *block = run->blocks; block != NULL; block = block->next) {
        const char *last = "";

        fprintf(stderr, "kernel %s, block %u:", run->launch->kernel->name, block->index);
        for (uint32_t i = 0; i < block->nthreads; i++) {
            const struct runner *runner = &block->runners[i];
            const char *where = runner->has_ended         ? "ended"
                                : runner->waits_in != NULL ? runner->waits_in
                                                           : "runs or polls";

            if (strcmp(where, last) != 0)
                fprintf(stderr, " from thread %u on: %s;", i, where);
            last = where;
        }
        fputc('\n', stderr);
    }
}

/* ---- turns ----------------------------------------------------------------------------------- */

void runner_make_ready(struct runner *runner)
{
    struct run *run = runner->block->run;

    runner->next = NULL;
    if (run->first_ready == NULL)
        run->first_ready = runner;
    else
        run->last_ready->next = runner;
    run->last_ready = runner;
    run->nready++;
    if (runner->waits_in != NULL)
        runner->block->nrunning++;
    runner->waits_in = NULL;
}

void runner_give_way(struct runner *self)
{
    runner_drain(self);
    runner_mend(self);
    self->npolls = 0;
    runner_make_ready(self);
    sim_fiber_give_way();
}

void runner_wait(struct runner *self, const char *where)
{
    self->waits_in = where;
    if (--self->block->nrunning == 0) {
        describe(self->block->run);
        runner_die(self, "waits in %s, and all others of the block wait elsewhere", where);
    }
    sim_fiber_give_way();
}

void sim_progress(void)
{
    struct runner *self = runner_self();

    self->has_seen_new = true;
    self->is_idle = false;
}

void sim_poll(const void *at, uint64_t value)
{
    struct runner *self = runner_self();
    uint32_t slot = 0;

    while (slot < SIM_SEEN && self->seen[slot].at != at)
        slot++;
    if (slot == SIM_SEEN)
        slot = self->nseen++ % SIM_SEEN;
    if (self->seen[slot].at != at || self->seen[slot].value != value) {
        self->seen[slot].at = at;
        self->seen[slot].value = value;
        sim_progress();
    }
    if (++self->npolls >= POLLS_A_TURN)
        sim_pause();
}

void sim_pause(void)
{
    struct runner *self = runner_self();

    self->is_idle = !self->has_seen_new;
    self->has_seen_new = false;
    runner_give_way(self);
}

bool sim_toss(void)
{
    return run_random(runner_self()->block->run) >> 20 & 1;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

void *sim_shared(struct sim_shared *shared)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static uint32_t nshared;
    struct runner *self = runner_self();
    struct block *block = self->block;
    uint32_t number = __atomic_load_n(&shared->number, __ATOMIC_RELAXED);
    uint32_t at;

    if (number == 0) {
        pthread_mutex_lock(&lock);
        if (shared->number == 0)
            __atomic_store_n(&shared->number, ++nshared, __ATOMIC_RELAXED);
        number = shared->number;
        pthread_mutex_unlock(&lock);
        if (number > SIM_SHARED)
            runner_die(self, "more than %d declarations of shared memory", SIM_SHARED);
    }
    if (block->shared_at[number] == 0) {
        at = (block->shared_bytes + shared->alignment_bytes - 1) & ~(shared->alignment_bytes - 1);
        if (at + shared->size_bytes > SIM_SHARED_BYTES)
            runner_die(self, "more than %d bytes of shared memory", SIM_SHARED_BYTES);
        block->shared_at[number] = at + 1;
        sim_asan_open(block->shared + at, shared->size_bytes);
        block->shared_bytes = at + shared->size_bytes + 16;
    }
    return block->shared + block->shared_at[number] - 1;
}

bool sim_is_private(const void *at)
{
    const struct runner *self = runner_self();
    const unsigned char *shared = self->block->shared, *byte = at;

    return (byte >= shared && byte < shared + SIM_SHARED_BYTES) || sim_fiber_has(self->fiber, at);
}

static void run_thread(void *argument)
{
    struct runner *self = argument;
    struct run *run = self->block->run;

    sim_tsan_acquire(&run->begin_clock);
    run->launch->kernel->run(run->launch->argument);
    meeting_leave(self);
    while (self->ntorn > 0) {
        self->is_idle = true;
        runner_give_way(self);
    }
    runner_drain_end(self);
    self->has_ended = true;
    sim_tsan_release(&run->end_clock);
}

static void prepare_thread(struct block *block, uint32_t index)
{
    struct run *run = block->run;
    struct runner *runner = &block->runners[index];

    *runner = (struct runner){
        .self = {.thread = index, .threads = block->nthreads, .block = block->index,
                 .blocks = run->launch->blocks,
                 .crew = run->launch->has_small_crews ? 1 : block->nthreads,
                 .is_watched = run->is_weak || run->launch->check != NULL},
        .block = block,
        .warp = &block->warps[index / SIM_WARP],
    };
    runner->warp->meeting.nmembers++;
    if (run->is_weak)
        sim_weak_init(&runner->kept, THREAD_KEEPS, block->cache);
}

static void begin_block(struct run *run)
{
    uint32_t nthreads = run->launch->threads;
    struct block *block = calloc(1, sizeof *block);

    if (block == NULL)
        sim_die("no memory for a block");
    *block = (struct block){.run = run, .index = run->nbegun++, .nthreads = nthreads,
                            .nrunning = nthreads, .next = run->blocks};
    run->blocks = block;
    block->runners = calloc(nthreads, sizeof *block->runners);
    block->warps = calloc((nthreads + SIM_WARP - 1) / SIM_WARP, sizeof *block->warps);
    block->shared = aligned_alloc(128, SIM_SHARED_BYTES);
    if (block->runners == NULL || block->warps == NULL || block->shared == NULL)
        sim_die("no memory for a block");
    memset(block->shared, 0xa5, SIM_SHARED_BYTES);
    sim_asan_close(block->shared, SIM_SHARED_BYTES);
    block->meeting.nmembers = nthreads;
    if (run->is_weak) {
        block->cache = &run->caches[(run_random(run) >> 16) % SIM_CACHES];
        sim_weak_init(&block->kept, BLOCK_KEEPS, block->cache);
    }
    for (uint32_t i = 0; i < nthreads; i++)
        prepare_thread(block, i);
    for (uint32_t i = 0; i < nthreads; i++) {
        struct sim_fiber *sibling =
            run->launch->has_watched_warps && i % SIM_WARP != 0 ? block->runners[i - 1].fiber : NULL;

        block->runners[i].fiber = sim_fiber_take(run_thread, &block->runners[i], sibling);
        runner_make_ready(&block->runners[i]);
    }
    sim_tsan_release(&run->begin_clock); /* with what was seen of those who had the stacks before */
}

/* All its threads have ended, or are thrown away. */
static void end_block(struct block *block)
{
    struct run *run = block->run;
    struct block **link = &run->blocks;

    while (*link != block)
        link = &(*link)->next;
    *link = block->next;
    run->nended++;
    block_drain_end(block);
    sim_tsan_acquire(&run->end_clock);
    for (uint32_t i = 0; i < block->nthreads; i++) {
        sim_fiber_give(block->runners[i].fiber); /* TSan now sees its stack as left */
        sim_weak_fini(&block->runners[i].kept);
    }
    sim_weak_fini(&block->kept);
    sim_asan_open(block->shared, SIM_SHARED_BYTES);
    free(block->shared);
    free(block->warps);
    free(block->runners);
    free(block);
    if (run->launch->give_place != NULL)
        run->launch->give_place(run->launch->context);
}

/* ---- the launch ------------------------------------------------------------------------------ */

static void begin_blocks(struct run *run)
{
    const struct sim_launch *launch = run->launch;

    while (run->nbegun < launch->blocks &&
           (launch->take_place == NULL || launch->take_place(launch->context)))
        begin_block(run);
}

/* One turn of the thread that is next; true when it, or the others by it, may have got on. */
static bool take_turn(struct run *run)
{
    struct runner *runner = run->first_ready;
    struct block *block = runner->block;

    run->first_ready = runner->next;
    run->nready--;
    sim_self = &runner->self;
    if (sim_fiber_resume(runner->fiber)) {
        block->nrunning--;
        if (++block->nended == block->nthreads)
            end_block(block);
        return true;
    }
    return !runner->is_idle;
}

/* Every thread that is ready once. */
static bool take_round(struct run *run)
{
    bool has_got_on = false;

    for (uint32_t n = run->nready; n > 0; n--)
        has_got_on |= take_turn(run);
    return has_got_on;
}

/* By the kernel itself: after usleep() TSan visits all threads that ever were. */
static void sleep_for_us(uint32_t us)
{
    struct timespec left = {.tv_nsec = us * 1000L};

    syscall(SYS_nanosleep, &left, NULL);
}

/* Leave the processor to others, the longer the less happens. */
static void rest(const struct run *run, uint32_t nrests, uint64_t since_ns)
{
    uint32_t sleep_us = LEAST_SLEEP_US + nrests;
    uint64_t watchdog_ns = run->launch->watchdog_ns;

    if (watchdog_ns != 0 && sim_now_ns() - since_ns > watchdog_ns) {
        describe(run);
        sim_die("kernel %s: nobody has got on for %llu ms; %u of %u blocks have not begun",
                run->launch->kernel->name, (unsigned long long)(watchdog_ns / 1000000),
                run->launch->blocks - run->nbegun, run->launch->blocks);
    }
    if (nrests < YIELDS)
        sched_yield();
    else
        sleep_for_us(sleep_us < MOST_SLEEP_US ? sleep_us : MOST_SLEEP_US);
}

static void begin_run(struct run *run, const struct sim_launch *launch)
{
    uint64_t seed;

    pthread_once(&once, read_environment);
    seed = __atomic_load_n(&weak_seed, __ATOMIC_RELAXED);
    *run = (struct run){.launch = launch, .is_weak = seed != 0};
    run->random = (seed + 1) * 0x9e3779b97f4a7c15u +
                  __atomic_add_fetch(&nlaunches, 1, __ATOMIC_RELAXED) * 2;
    run->random |= 1;
    for (uint32_t i = 0; run->is_weak && i < SIM_CACHES; i++)
        sim_cache_init(&run->caches[i]);
}

static void end_run(struct run *run)
{
    for (uint32_t i = 0; i < SIM_CACHES; i++)
        sim_cache_fini(&run->caches[i]);
}

/* Until all blocks have ended; false: `must_end` said so before. */
static bool run_blocks(struct run *run)
{
    const struct sim_launch *launch = run->launch;
    uint64_t got_on_ns = sim_now_ns();
    uint32_t nrests = 0;

    for (begin_blocks(run); run->nended < launch->blocks; begin_blocks(run)) {
        if (launch->must_end != NULL && launch->must_end(launch->context)) {
            while (run->blocks != NULL)
                end_block(run->blocks);
            return false;
        }
        if (take_round(run)) {
            nrests = 0;
            got_on_ns = launch->watchdog_ns != 0 ? sim_now_ns() : 0;
        } else {
            rest(run, nrests++, got_on_ns);
        }
    }
    return true;
}

bool sim_launch_run(const struct sim_launch *launch)
{
    struct run run;
    bool has_ended;

    begin_run(&run, launch);
    has_ended = run_blocks(&run);
    end_run(&run);
    return has_ended;
}
