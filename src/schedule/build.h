/* SPDX-License-Identifier: Apache-2.0
 * How an algorithm writes a schedule. It emits steps in an order that is correct if each completes
 * before the next begins; the builder derives which steps must really wait for which.
 *
 * A lane is a peer, a direction and a channel. A two-sided step runs as soon as its turn in its
 * lane comes and the steps that it depends on are complete. Local and one-sided steps run in
 * program order, and also wait for their dependencies. A step depends on the earlier steps that
 * touch the same chunks of this rank's memory, if one of the two writes them. INPUT and OUTPUT
 * count as the same memory where an in-place call overlays them, so one schedule serves both forms.
 * An algorithm can limit the number of peers that are served at a time by putting steps in queues:
 * in a queue a send waits for the send before it, and a receive for the receive before it.
 *
 * A builder belongs to one thread. Its functions return TUTTI_ERR_SYSTEM if memory runs out, and
 * TUTTI_ERR_INTERNAL if a step names a peer or a chunk that does not exist.
 */
#ifndef TUTTI_SCHEDULE_BUILD_H
#define TUTTI_SCHEDULE_BUILD_H

#include "schedule/shape.h"
#include "schedule/step.h"

struct tutti_build {
    struct tutti_schedule *schedule; /* under construction, owned */
    uint32_t step_capacity;          /* of schedule->steps */
    /* Channel of the two-sided steps emitted next, modulo `channels`. */
    uint8_t channel;
    uint16_t queue;                  /* their queue; 0, the usual case: none */
    uint32_t channels;               /* number of channels (shape.h) */
    /* The ranks that tutti_build_among has set, in schedule->among; count 0: all ranks. */
    uint32_t among_first, among_count;
    uint32_t among_capacity;         /* of schedule->among */
};

/* Begin a schedule of rank shape->rank. The caller calls tutti_build_finish,
 * tutti_build_finish_fused or tutti_build_fini. */
int tutti_build_init(struct tutti_build *build, enum tutti_collective collective,
                     const struct tutti_shape *shape);
/* Free an unfinished build; a zeroed or finished one is ignored. */
void tutti_build_fini(struct tutti_build *build);

/* Declarations. Chunks, scratch and window must be declared before the first step. If
 * tutti_build_chunks is not called, a block has one chunk. */
void tutti_build_chunks(struct tutti_build *build, uint32_t chunks_per_block);
void tutti_build_scratch(struct tutti_build *build, enum tutti_scratch_like like, uint32_t chunks);
/* Reduce the declared scratch size. An algorithm that learns its scratch size only while emitting
 * declares an upper bound first and trims it here at the end. */
void tutti_build_trim_scratch(struct tutti_build *build, uint32_t chunks);
void tutti_build_window(struct tutti_build *build, uint32_t chunks);
/* Declare the signal numbers that one run uses: the largest number of SIGNALs that any rank
 * gives. */
void tutti_build_signals(struct tutti_build *build, uint32_t nsignals);
/* Declare the accesses to other ranks' memory: TUTTI_NEEDS_* bits (step.h). */
void tutti_build_needs(struct tutti_build *build, uint32_t needs);
/* Declare that all data goes up one tree. On every rank all sends must go to one peer, the parent,
 * on one channel. The k-th send must depend only on the k-th receives of their lanes, and these
 * only on other k-th receives. No step may depend on a send. */
void tutti_build_one_tree(struct tutti_build *build);

/* Restrict the steps emitted next to these ranks: PUTs to all ranks, and GATHER_REDUCEs. The list
 * is ascending and contains this rank; it is copied. count 0: all ranks again. */
int tutti_build_among(struct tutti_build *build, const uint32_t *ranks, uint32_t count);

static inline struct tutti_span tutti_span(enum tutti_buffer buffer, uint32_t first, uint32_t count)
{
    return (struct tutti_span){.buffer = buffer, .first = first, .count = count};
}

/* Emit one step; step.h says what each kind does. A span of count 0 emits nothing. */
int tutti_build_send(struct tutti_build *build, uint32_t to, struct tutti_span src);
int tutti_build_recv(struct tutti_build *build, uint32_t from, struct tutti_span dst);
int tutti_build_recv_reduce(struct tutti_build *build, uint32_t from, struct tutti_span own,
                            struct tutti_span dst);
int tutti_build_copy(struct tutti_build *build, struct tutti_span src, struct tutti_span dst);
int tutti_build_reduce(struct tutti_build *build, struct tutti_span src, struct tutti_span dst);
int tutti_build_put(struct tutti_build *build, uint32_t to, struct tutti_span src,
                    struct tutti_span remote);
/* Store to the memory of all other ranks, and to this rank's own. */
int tutti_build_put_all(struct tutti_build *build, struct tutti_span src, struct tutti_span dst,
                        struct tutti_span remote);
int tutti_build_get(struct tutti_build *build, uint32_t from, struct tutti_span remote,
                    struct tutti_span dst);
/* `remote_dst` is a span of every other rank. `also` and `remote_dst` may be TUTTI_NO_SPAN. */
int tutti_build_gather_reduce(struct tutti_build *build, struct tutti_span own,
                              struct tutti_span remote, struct tutti_span dst,
                              struct tutti_span also, struct tutti_span remote_dst);
/* The result is stored to another rank's memory only. */
int tutti_build_gather_reduce_to(struct tutti_build *build, struct tutti_span own,
                                 struct tutti_span remote, uint32_t to,
                                 struct tutti_span remote_dst);
int tutti_build_signal(struct tutti_build *build);
/* `from` is a rank or TUTTI_ALL_RANKS. Emits nothing if `from` is this rank or there is only one
 * rank. */
int tutti_build_wait(struct tutti_build *build, int32_t from, uint32_t signal);

/* Emit any step as it is, even a fused one; `step` has no dependencies. */
int tutti_build_step(struct tutti_build *build, const struct tutti_step *step);

/* Derive the dependencies and pass the schedule to the caller, who destroys it. On success the
 * build is finished. On an error it is not, and the caller calls tutti_build_fini. */
int tutti_build_finish(struct tutti_build *build, struct tutti_schedule **ret_schedule);

/* The same, but fuse first; the dependencies of the unfused steps would be of no use. Fuses boldly
 * if tutti_build_one_tree was called. */
int tutti_build_finish_fused(struct tutti_build *build, struct tutti_schedule **ret_schedule);

/* Join each receive with the send that passes the same chunks on into one step, so that data flows
 * through slice by slice. Changes `schedule` in place and derives its dependencies anew. The
 * schedule stays correct whatever the other ranks do. If `is_bold`, more pairs are joined. A store
 * to SCRATCH is then dropped if no step reads the data again, and so is scratch memory that is no
 * longer used. Set `is_bold` only if all data goes up one tree (tutti_build_one_tree) or if the
 * result is proved for all ranks (check.h). Other schedules may deadlock; see fuse.c. */
int tutti_schedule_fuse(struct tutti_schedule *schedule, bool is_bold);

#endif
