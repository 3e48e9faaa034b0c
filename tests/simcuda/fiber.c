/* SPDX-License-Identifier: Apache-2.0
 * Makes fibers, with their stacks and their pool. */
#include "simcuda/fiber.h"

#include "simcuda/die.h"
#include "simcuda/fiber_switch.h"
#include "simcuda/sanitizers.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Sanitizers put much memory around each variable. Below each stack is a page that is
 * inaccessible. */
#if defined(__SANITIZE_ADDRESS__) || defined(SIM_TSAN)
#define STACK_BYTES ((size_t)256 << 10)
#else
#define STACK_BYTES ((size_t)64 << 10)
#endif
#define GUARD_BYTES ((size_t)4096)

/* A thread that resumes fibers. */
struct home {
    void *stack_pointer;
    struct sim_fiber *running;
    void *tsan, *fake_stack;
    const void *stack;
    size_t stack_bytes;
};

/* One thread in the view of TSan. Fibers share it while they are in use. */
struct watched {
    void *tsan;
    uint32_t nfibers;
    bool is_inside; /* of a function from which no thread returns */
    struct watched *next; /* in the pool */
};

struct sim_fiber {
    void *stack_pointer;
    unsigned char *stack; /* guard first */
    void (*function)(void *);
    void *argument;
    bool has_ended;
    struct home *home;
    struct sim_fiber *next; /* in the pool */
    struct watched *watched;
    void *fake_stack;
};

static __thread struct home home;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_fiber *pool;
static struct watched *watched_pool;

/* ---- switching ------------------------------------------------------------------------------- */

bool sim_fiber_resume(struct sim_fiber *fiber)
{
    struct home *here = &home;

    fiber->home = here;
    here->running = fiber;
    here->tsan = sim_tsan_current();
    sim_asan_leave(&here->fake_stack, fiber->stack + GUARD_BYTES, STACK_BYTES);
    sim_tsan_switch(fiber->watched->tsan);
    sim_switch(&here->stack_pointer, fiber->stack_pointer);
    sim_asan_arrive(here->fake_stack, NULL, NULL);
    here->running = NULL;
    return fiber->has_ended;
}

static void go_home(struct sim_fiber *fiber)
{
    struct home *back = fiber->home;

    sim_asan_leave(&fiber->fake_stack, back->stack, back->stack_bytes);
    sim_tsan_switch(back->tsan);
    sim_switch(&fiber->stack_pointer, back->stack_pointer);
    /* The next one who resumes may be another. */
    back = fiber->home;
    sim_asan_arrive(fiber->fake_stack, &back->stack, &back->stack_bytes);
}

void sim_fiber_give_way(void)
{
    go_home(home.running);
}

bool sim_fiber_has(const struct sim_fiber *fiber, const void *at)
{
    const unsigned char *byte = at;

    return byte >= fiber->stack && byte < fiber->stack + GUARD_BYTES + STACK_BYTES;
}

/* Where each fiber begins, and where it waits in the pool. */
static void enter(void)
{
    struct sim_fiber *self = home.running;

    sim_asan_arrive(NULL, &self->home->stack, &self->home->stack_bytes);
    for (;;) {
        self->function(self->argument);
        self->has_ended = true;
        go_home(self);
    }
}

/* ---- what TSan watches ------------------------------------------------------------------------- */

static struct watched *take_watched(void)
{
    struct watched *watched;

    pthread_mutex_lock(&lock);
    watched = watched_pool;
    if (watched != NULL)
        watched_pool = watched->next;
    pthread_mutex_unlock(&lock);
    if (watched == NULL) {
        watched = calloc(1, sizeof *watched);
        if (watched == NULL)
            sim_die("no memory for a fiber");
        watched->tsan = sim_tsan_create();
    }
    return watched;
}

static void destroy_watched(struct watched *watched)
{
    sim_tsan_abandon(watched->tsan);
    free(watched);
}

/* One fiber less has it. */
static void leave_watched(struct sim_fiber *fiber)
{
    struct watched *watched = fiber->watched;

    fiber->watched = NULL;
    watched->is_inside |= !fiber->has_ended;
    if (--watched->nfibers > 0)
        return;
    if (watched->is_inside) {
        destroy_watched(watched);
        return;
    }
    pthread_mutex_lock(&lock);
    watched->next = watched_pool;
    watched_pool = watched;
    pthread_mutex_unlock(&lock);
}

/* ---- life ------------------------------------------------------------------------------------ */

static struct sim_fiber *create(void)
{
    struct sim_fiber *fiber = calloc(1, sizeof *fiber);

    if (fiber == NULL)
        sim_die("no memory for a fiber");
    fiber->stack = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fiber->stack == MAP_FAILED || mprotect(fiber->stack, GUARD_BYTES, PROT_NONE) != 0)
        sim_die("no stack for a fiber: %s", strerror(errno));
    fiber->stack_pointer = sim_switch_prepare(fiber->stack + GUARD_BYTES, STACK_BYTES, enter);
    return fiber;
}

static void destroy(struct sim_fiber *fiber)
{
    sim_asan_open(fiber->stack, GUARD_BYTES + STACK_BYTES);
    munmap(fiber->stack, GUARD_BYTES + STACK_BYTES);
    free(fiber);
}

struct sim_fiber *sim_fiber_take(void (*function)(void *), void *argument, struct sim_fiber *sibling)
{
    struct sim_fiber *fiber;

    pthread_mutex_lock(&lock);
    fiber = pool;
    if (fiber != NULL)
        pool = fiber->next;
    pthread_mutex_unlock(&lock);
    if (fiber == NULL)
        fiber = create();
    fiber->function = function;
    fiber->argument = argument;
    fiber->has_ended = false;
    fiber->watched = sibling != NULL ? sibling->watched : take_watched();
    fiber->watched->nfibers++;
    return fiber;
}

void sim_fiber_give(struct sim_fiber *fiber)
{
    leave_watched(fiber);
    if (!fiber->has_ended) {
        destroy(fiber);
        return;
    }
    pthread_mutex_lock(&lock);
    fiber->next = pool;
    pool = fiber;
    pthread_mutex_unlock(&lock);
}

/* A thread's sanitizer may outlive the library, and look for leaks. At exit a thread of the machine may
 * still give a fiber back. */
__attribute__((destructor)) static void empty_pools(void)
{
    struct sim_fiber *fiber;
    struct watched *watched;

    pthread_mutex_lock(&lock);
    fiber = pool;
    watched = watched_pool;
    pool = NULL;
    watched_pool = NULL;
    pthread_mutex_unlock(&lock);
    while (fiber != NULL) {
        struct sim_fiber *next = fiber->next;

        destroy(fiber);
        fiber = next;
    }
    while (watched != NULL) {
        struct watched *next = watched->next;

        destroy_watched(watched);
        watched = next;
    }
}
