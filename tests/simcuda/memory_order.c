/* SPDX-License-Identifier: Apache-2.0
 * Implements fences, and accesses of threads that are observed. It moves stores from a thread to
 * its block and to all threads, lets plain loads see old data, and reports accesses to the driver
 * and the thread sanitizer. */
#include "simcuda/block.h"
#include "simcuda/sanitizers.h"

static void check(struct runner *self, const void *at, size_t size_bytes, bool is_store)
{
    const struct sim_launch *launch = self->block->run->launch;

    if (launch->check != NULL)
        launch->check(launch->context, at, size_bytes, is_store);
}

/* Words of 8 bytes are never seen half written. */
static void load_memory(void *ret_value, const void *at, size_t size_bytes)
{
    uint8_t *to = ret_value;
    const uint8_t *from = at;

    for (size_t i = 0; i < size_bytes;) {
        size_t left = size_bytes - i;
        uintptr_t place = (uintptr_t)(from + i);

        if (left >= 8 && place % 8 == 0) {
            uint64_t value = __atomic_load_n((const uint64_t *)place, __ATOMIC_ACQUIRE);

            __builtin_memcpy(to + i, &value, 8);
            i += 8;
        } else if (left >= 4 && place % 4 == 0) {
            uint32_t value = __atomic_load_n((const uint32_t *)place, __ATOMIC_RELAXED);

            __builtin_memcpy(to + i, &value, 4);
            i += 4;
        } else if (left >= 2 && place % 2 == 0) {
            uint16_t value = __atomic_load_n((const uint16_t *)place, __ATOMIC_RELAXED);

            __builtin_memcpy(to + i, &value, 2);
            i += 2;
        } else {
            to[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
            i++;
        }
    }
}

static void store_memory(void *at, const void *value, size_t size_bytes)
{
    uint8_t *to = at;
    const uint8_t *from = value;

    for (size_t i = 0; i < size_bytes;) {
        if (size_bytes - i >= 8 && (uintptr_t)(to + i) % 8 == 0) {
            uint64_t whole;

            __builtin_memcpy(&whole, from + i, 8);
            __atomic_store_n((uint64_t *)(void *)(to + i), whole, __ATOMIC_RELAXED);
            i += 8;
        } else {
            __atomic_store_n(to + i, from[i], __ATOMIC_RELAXED);
            i++;
        }
    }
}

static void load_kept(const struct runner *self, void *ret_value, const void *at, size_t size_bytes)
{
    if (!self->block->run->is_weak)
        return;
    sim_weak_load(&self->block->kept, ret_value, at, size_bytes);
    sim_weak_load(&self->kept, ret_value, at, size_bytes);
}

/* Memory is read in any case, for the address sanitizer. */
void sim_load(void *ret_value, const void *at, size_t size_bytes)
{
    struct runner *self = runner_self();
    struct run *run = self->block->run;

    check(self, at, size_bytes, false);
    load_memory(ret_value, at, size_bytes);
    if (run->is_weak && !sim_is_private(at))
        sim_cache_load(self->block->cache, ret_value, at, size_bytes, run_random(run) >> 8);
    load_kept(self, ret_value, at, size_bytes);
}

void sim_load_strong(void *ret_value, const void *at, size_t size_bytes)
{
    struct runner *self = runner_self();

    check(self, at, size_bytes, false);
    load_memory(ret_value, at, size_bytes);
    load_kept(self, ret_value, at, size_bytes);
}

void sim_store(void *at, const void *value, size_t size_bytes)
{
    struct runner *self = runner_self();
    struct run *run = self->block->run;

    check(self, at, size_bytes, true);
    if (!run->is_weak) {
        store_memory(at, value, size_bytes);
        return;
    }
    sim_weak_store(&self->kept, &self->block->kept, at, value, size_bytes, run_random(run));
    if (run_random(run) % 16 == 0)
        runner_give_way(self);
}

void sim_publish(const void *at)
{
    struct runner *self = runner_self();
    struct run *run = self->block->run;

    if (at != NULL)
        check(self, at, sizeof(uint64_t), true);
    if (!run->is_weak)
        return;
    sim_weak_drain_all(&self->kept, &self->block->kept, run_random(run));
    sim_weak_drain_all(&self->block->kept, NULL, run_random(run));
    if (at != NULL) /* its new value goes to memory past the cache */
        sim_cache_forget(self->block->cache, at);
}

void sim_acquire(void)
{
    struct block *block = runner_self()->block;

    if (block->run->is_weak)
        sim_cache_drop(block->cache);
}

void runner_touch_line(struct runner *self, const void *at, bool is_store)
{
    check(self, at, sizeof(struct sim_word), is_store);
    sim_publish(NULL);
}

/* ---- kept stores ----------------------------------------------------------------------------- */

void runner_share(struct runner *self)
{
    struct run *run = self->block->run;

    if (run->is_weak)
        sim_weak_sink(&self->kept, &self->block->kept, run_random(run));
}

/* Whatever a thread of the block keeps may be what others wait for. */
void runner_drain(struct runner *self)
{
    struct block *block = self->block;
    struct run *run = block->run;
    struct runner *other = &block->runners[run_random(run) % block->nthreads];

    if (!run->is_weak)
        return;
    if (run_random(run) % 2 == 0)
        sim_weak_drain(&self->kept, &block->kept, run_random(run));
    if (run_random(run) % 2 == 0)
        sim_weak_drain(&other->kept, &block->kept, run_random(run));
    if (run_random(run) % 2 == 0)
        sim_weak_drain(&block->kept, NULL, run_random(run));
}

void runner_drain_end(struct runner *self)
{
    runner_share(self);
}

void block_drain_end(struct block *block)
{
    if (block->run->is_weak)
        sim_weak_drain_all(&block->kept, NULL, run_random(block->run));
}

/* ---- fences, for the thread sanitizer -------------------------------------------------------- */

void sim_relaxed_load_was(const void *at)
{
#if defined(SIM_TSAN)
    struct runner *self = runner_self();

    self->relaxed[self->nrelaxed++ % SIM_RELAXED] = at;
#else
    (void)at;
#endif
}

void sim_relaxed_store_is(const void *at)
{
    sim_tsan_release(at);
}

/* This acquires the values that relaxed loads have seen. Relaxed stores from here on release. */
void sim_fence(void)
{
    struct runner *self = runner_self();
    uint32_t n = self->nrelaxed < SIM_RELAXED ? self->nrelaxed : SIM_RELAXED;

    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < n; i++)
        sim_tsan_acquire(self->relaxed[i]);
    self->nrelaxed = 0;
#if defined(SIM_TSAN)
    self->self.has_fenced = true;
#endif
}
