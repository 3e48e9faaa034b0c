/* SPDX-License-Identifier: Apache-2.0
 * How an algorithm writes a schedule: it emits steps in an order that would be
 * right if each ran alone; the builder derives what must wait for what.
 *
 * Two-sided steps run as soon as their turn on their lanes comes (a lane is a
 * peer, a direction and a channel) and the steps they depend on are complete;
 * local and one-sided steps run in program order, and also wait for their dependencies. A step
 * depends on the earlier steps that touch the same chunks of this rank's memory, where one of the
 * two writes. INPUT and OUTPUT count as the same memory where an in-place call overlays them, so
 * one schedule serves both forms. Who would talk to too many peers at a time puts the steps in
 * queues: in each, a send waits for the send before it, and a receive for the receive.
 */
#ifndef TUTTI_SCHEDULE_BUILD_H
#define TUTTI_SCHEDULE_BUILD_H

#include "schedule/shape.h"
#include "schedule/step.h"

struct tutti_build {
    struct tutti_schedule *schedule; /* under construction, owned */
    uint32_t step_capacity;
    uint8_t channel;                 /* of the two-sided steps emitted next, modulo `channels` */
    uint16_t queue;                  /* likewise; 0: none, the usual case */
    uint32_t channels;               /* there are (shape.h) */
    /* What tutti_build_among has said. */
    uint32_t among_first, among_count, among_capacity;
};

int tutti_build_init(struct tutti_build *build, enum tutti_collective collective,
                     const struct tutti_shape *shape);
/* Frees an unfinished build; a zeroed or finished one is ignored. */
void tutti_build_fini(struct tutti_build *build);

/* Declarations, before the first step. k = 1 when not called. */
void tutti_build_chunks(struct tutti_build *build, uint32_t chunks_per_block);
void tutti_build_scratch(struct tutti_build *build, enum tutti_scratch_like like, uint32_t chunks);
/* Who finds out while emitting how much it takes declares plenty, and here, at the end, less. */
void tutti_build_trim_scratch(struct tutti_build *build, uint32_t chunks);
void tutti_build_window(struct tutti_build *build, uint32_t chunks);
/* Signal numbers one run uses up: the most SIGNALs that any rank gives. */
void tutti_build_signals(struct tutti_build *build, uint32_t nsignals);
void tutti_build_needs(struct tutti_build *build, uint32_t needs);
/* All goes up one tree. On every rank: all sends are to one peer on one channel, its parent; the
 * k-th send depends on k-th receives of their lanes alone, and these on others such; nothing
 * depends on a send. */
void tutti_build_one_tree(struct tutti_build *build);

/* PUTs to all and GATHER_REDUCEs emitted next go by these ranks alone: ascending, this one among
 * them. count 0: by all again. */
int tutti_build_among(struct tutti_build *build, const uint32_t *ranks, uint32_t count);

static inline struct tutti_span tutti_span(enum tutti_buffer buffer, uint32_t first, uint32_t count)
{
    return (struct tutti_span){.buffer = buffer, .first = first, .count = count};
}

/* Steps. A span of count 0 emits nothing. */
int tutti_build_send(struct tutti_build *build, uint32_t to, struct tutti_span src);
int tutti_build_recv(struct tutti_build *build, uint32_t from, struct tutti_span dst);
int tutti_build_recv_reduce(struct tutti_build *build, uint32_t from, struct tutti_span own,
                            struct tutti_span dst);
int tutti_build_copy(struct tutti_build *build, struct tutti_span src, struct tutti_span dst);
int tutti_build_reduce(struct tutti_build *build, struct tutti_span src, struct tutti_span dst);
int tutti_build_put(struct tutti_build *build, uint32_t to, struct tutti_span src,
                    struct tutti_span remote);
/* Into the memory of all other ranks, and the own. */
int tutti_build_put_all(struct tutti_build *build, struct tutti_span src, struct tutti_span dst,
                        struct tutti_span remote);
int tutti_build_get(struct tutti_build *build, uint32_t from, struct tutti_span remote,
                    struct tutti_span dst);
/* `also` and `remote_dst`, which is everybody's, may be TUTTI_NO_SPAN. */
int tutti_build_gather_reduce(struct tutti_build *build, struct tutti_span own,
                              struct tutti_span remote, struct tutti_span dst,
                              struct tutti_span also, struct tutti_span remote_dst);
/* The result goes to another rank, and nowhere else. */
int tutti_build_gather_reduce_to(struct tutti_build *build, struct tutti_span own,
                                 struct tutti_span remote, uint32_t to,
                                 struct tutti_span remote_dst);
int tutti_build_signal(struct tutti_build *build);
/* `from`: a rank or TUTTI_ALL_RANKS; an own rank or nranks == 1 emits nothing. */
int tutti_build_wait(struct tutti_build *build, int32_t from, uint32_t signal);

/* Any step, also a fused one, as it is; `step` has no dependencies. */
int tutti_build_step(struct tutti_build *build, const struct tutti_step *step);

/* Derive the dependencies and hand the schedule over; the build is finished. */
int tutti_build_finish(struct tutti_build *build, struct tutti_schedule **ret_schedule);

/* The same, fused first: what is derived for a schedule as emitted is of no use to the fused one.
 * Boldly where the build says that all goes up one tree. */
int tutti_build_finish_fused(struct tutti_build *build, struct tutti_schedule **ret_schedule);

/* Join a receive and the send that passes the same chunks on into one step, so that slices flow
 * through; in place. Keeps the schedule right, whatever the other ranks do.
 *
 * `is_bold`: for who knows that all goes up one tree (tutti_build_one_tree), or proves the outcome.
 * More is joined, and the store is dropped where nothing reads it again (SCRATCH only), and the
 * scratch memory where nothing uses it. In other schedules that may deadlock: see fuse.c. */
int tutti_schedule_fuse(struct tutti_schedule *schedule, bool is_bold);

#endif
