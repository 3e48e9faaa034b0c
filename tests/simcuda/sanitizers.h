/* SPDX-License-Identifier: Apache-2.0
 * Tells sanitizers about fibers and meetings. Without sanitizers it does nothing. The machine
 * itself is compiled without TSan, so only these calls order the threads of kernels. */
#ifndef TUTTI_TESTS_SIMCUDA_SANITIZERS_H
#define TUTTI_TESTS_SIMCUDA_SANITIZERS_H

#include <stddef.h>

/* SIM_TSAN comes from the build. */
#if defined(SIM_TSAN)
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *at);
void __tsan_release(void *at);
static inline void *sim_tsan_current(void) { return __tsan_get_current_fiber(); }
static inline void *sim_tsan_create(void) { return __tsan_create_fiber(0); }
/* 1: the one does not see by this what the other did. */
static inline void sim_tsan_switch(void *fiber) { __tsan_switch_to_fiber(fiber, 1); }
/* The same, but it does; and it goes away. */
static inline void sim_tsan_abandon(void *fiber)
{
    void *self = __tsan_get_current_fiber();

    __tsan_switch_to_fiber(fiber, 0);
    __tsan_switch_to_fiber(self, 0);
    __tsan_destroy_fiber(fiber);
}
/* A thread that acquires sees everything that other threads did before they released the same
 * address. */
static inline void sim_tsan_acquire(const void *at) { __tsan_acquire((void *)(size_t)at); }
static inline void sim_tsan_release(const void *at) { __tsan_release((void *)(size_t)at); }
#else
static inline void *sim_tsan_current(void) { return NULL; }
static inline void *sim_tsan_create(void) { return NULL; }
static inline void sim_tsan_switch(void *fiber) { (void)fiber; }
static inline void sim_tsan_abandon(void *fiber) { (void)fiber; }
static inline void sim_tsan_acquire(const void *at) { (void)at; }
static inline void sim_tsan_release(const void *at) { (void)at; }
#endif

#if defined(__SANITIZE_ADDRESS__)
#define SIM_NO_ASAN __attribute__((no_sanitize_address))
void __sanitizer_start_switch_fiber(void **ret_fake, const void *bottom, size_t size_bytes);
void __sanitizer_finish_switch_fiber(void *fake, const void **ret_bottom, size_t *ret_size_bytes);
void __asan_poison_memory_region(const volatile void *at, size_t size_bytes);
void __asan_unpoison_memory_region(const volatile void *at, size_t size_bytes);
static inline void sim_asan_leave(void **ret_fake, const void *bottom, size_t size_bytes)
{
    __sanitizer_start_switch_fiber(ret_fake, bottom, size_bytes);
}
static inline void sim_asan_arrive(void *fake, const void **ret_bottom, size_t *ret_size_bytes)
{
    __sanitizer_finish_switch_fiber(fake, ret_bottom, ret_size_bytes);
}
static inline void sim_asan_close(const void *at, size_t size_bytes)
{
    __asan_poison_memory_region(at, size_bytes);
}
static inline void sim_asan_open(const void *at, size_t size_bytes)
{
    __asan_unpoison_memory_region(at, size_bytes);
}
#else
#define SIM_NO_ASAN
static inline void sim_asan_leave(void **ret_fake, const void *bottom, size_t size_bytes)
{
    (void)ret_fake, (void)bottom, (void)size_bytes;
}
static inline void sim_asan_arrive(void *fake, const void **ret_bottom, size_t *ret_size_bytes)
{
    (void)fake, (void)ret_bottom, (void)ret_size_bytes;
}
static inline void sim_asan_close(const void *at, size_t size_bytes) { (void)at, (void)size_bytes; }
static inline void sim_asan_open(const void *at, size_t size_bytes) { (void)at, (void)size_bytes; }
#endif

#endif
