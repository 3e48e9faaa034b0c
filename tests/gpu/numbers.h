/* SPDX-License-Identifier: Apache-2.0
 * Numbers in the memory of ranks, on a GPU or on the host. It also says how the ranks of the tests
 * are placed. */
#ifndef TUTTI_TESTS_GPU_NUMBERS_H
#define TUTTI_TESTS_GPU_NUMBERS_H

#include "support/crowd.h"
#include "support/gpus.h"

#include <stdint.h>

/* How ranks are placed. */
struct place {
    enum launch launch;
    int nranks, ndevices;
    int on_cpu; /* as of gpus_use */
};

/* Ranks that share a GPU, have one each, are processes; and such that go through the host. */
extern const struct place all_places[];
extern const int all_place_count;

/* Run `fn` with a communicator in each of them. */
void at_all_places(member_fn fn);
/* The same in one; with a communicator or without. */
void at_place(const struct place *place, bool forms_world, member_fn fn);

/* `count` numbers on the rank's GPU, or on the host if it has none: first, first + step, ... */
int32_t *numbers_make(struct member *member, size_t count, int32_t first, int32_t step);
void numbers_write(struct member *member, int32_t *at, size_t count, int32_t first, int32_t step);
/* Complain unless that is what is there; what was enqueued must be complete. */
void numbers_expect(struct member *member, const int32_t *at, size_t count, int32_t first,
                    int32_t step, const char *what);
void numbers_drop(struct member *member, int32_t *at, size_t count);

/* A stream, NULL for a rank on the CPU; and until all that is on it is done. */
tuttiStream_t numbers_stream(struct member *member);
void numbers_settle(struct member *member, tuttiStream_t stream);
void numbers_drop_stream(struct member *member, tuttiStream_t stream);

/* 1 + 2 + ... + n: what ranks that give rank + 1 sum up to. */
int32_t triangle(int n);

#endif
