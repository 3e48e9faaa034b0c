/* SPDX-License-Identifier: Apache-2.0
 * The host executor: runs bound schedules on CPU cores.
 *
 * An engine belongs to one communicator. It holds the communicator's fabric, the
 * round counters by which one-sided schedules synchronize, and memory that
 * successive runs share. A run is one collective under way. The caller begins it,
 * and then calls progress until it is complete. No function waits for other ranks.
 * Only one thread at a time may use an engine.
 *
 * Pieces. A call that does not fit the memory that it needs is cut into pieces. The
 * pieces run one after the other, and each runs the whole schedule.
 *
 * Two-sided steps are sorted into lanes (plan.h). Each lane works on its first
 * unfinished step once the steps that this step depends on are complete. A fused
 * step has two halves: its receiving half is in one lane, and its sending half in
 * another. Local and one-sided steps run in the order of the schedule.
 *
 * Rounds. One run of a one-sided schedule over one piece is a round. The exchange by
 * which ranks agree to use lent memory (lend.c) is a round too. All ranks of a domain
 * number rounds alike. Round e uses post e % TUTTI_POSTS. Its window is in that
 * post, in the slot of that post, or in window half e & 1.
 *
 * The reuse rule: a rank that has given its first signal of a round has left the
 * round before. So two conditions hold before a rank writes in round e:
 * - To write to its post or slot, every other rank must have given its first
 *   signal of round e - TUTTI_POSTS + 1.
 * - To write to its window half, every other rank must have given its first
 *   signal of round e - 1.
 * The others have then left the last round that used the memory to be written.
 */
#ifndef TUTTI_EXECUTOR_HOST_HOST_H
#define TUTTI_EXECUTOR_HOST_HOST_H

#include "base/result.h"
#include "device/cpu/cpu.h"
#include "executor/call.h"
#include "executor/call_history.h"
#include "executor/plan.h"
#include "schedule/bind.h"
#include "transport/fabric.h"
#include "transport/shm/lend.h"

#include <string.h>

/* Where the window of a round is (domain.h). */
enum tutti_run_window_location { TUTTI_IN_POST, TUTTI_IN_SLOT, TUTTI_IN_HALF };

/* A program is the plan and the sizes for one kind of call. It is made once per kind and cached. */
struct tutti_program {
    const struct tutti_plan *plan;
    /* Elements per block of one piece; all pieces but the last are full. */
    size_t piece_count;
    size_t npieces;
    struct tutti_bound full, last;
    /* Type of the data in flight. Narrow floats are reduced as float32 where a result would
     * otherwise be rounded more than once: in two-sided schedules, and in sums of sums. */
    enum tutti_type run_type;
    bool widens;         /* INPUT and OUTPUT are staged as float32, which is then run_type */
    bool stages_input;   /* INPUT is a copy, which may be widened or pre-multiplied */
    bool scales_output;  /* OUTPUT is averaged at the end, because GATHER_REDUCE does not do it */
    bool makes_truth;    /* OUTPUT is made truth values at the end (tutti_call_makes_truth) */
    bool finishes_output; /* widens, scales_output or makes_truth */
    size_t input_blocks, output_blocks; /* 0 if this rank has no such buffer */
    /* Memory of the communicator that a piece takes: staged INPUT and OUTPUT, SCRATCH. */
    size_t staged_input_bytes, staged_output_bytes, scratch_bytes;
    enum tutti_run_window_location window_place;
    bool may_stream;     /* results are large enough to bypass the cache */
    /* True if the whole call is one round through windows: one piece, nothing staged, streamed
     * or changed at the end, no SCRATCH, no agreement on lent memory. */
    bool is_one_round;
    /* The program that runs instead if all ranks lend each other the buffers that the call reads
     * and writes. It is owned, and stages the same buffers as this program. NULL: there is none, so
     * ranks do not ask. */
    struct tutti_program *lent;
};

/* TUTTI_HEADER_WORDS is the number of 64-bit words of a header. TUTTI_MOST_COUNTS is the most ranks
 * for which all counts travel behind headers. With more ranks the hash in the signature still shows
 * that counts differ, but the message cannot name the count. */
enum { TUTTI_HEADER_WORDS = 4, TUTTI_MOST_COUNTS = 128 };
_Static_assert(sizeof(struct tutti_header) == TUTTI_HEADER_WORDS * sizeof(uint64_t), "whole words");

/* The state of a lane in the active run. */
struct tutti_run_lane_state {
    struct tutti_conn *conn; /* NULL until the lane moves its first byte; not owned */
    uint32_t position;    /* index of the current step among the steps of the lane */
    uint32_t segment;     /* index of the current segment of that step */
    size_t offset;        /* bytes moved of that segment */
    size_t moved;         /* bytes moved of that step */
    uint32_t header_bytes; /* bytes moved of this operation's header and the counts behind it */
    struct tutti_header header; /* received, in a run without counts behind headers */
    uint64_t *words;       /* header and counts, sent or received, in a run with such counts */
    uint32_t word_capacity; /* words for which there is room in `words` */
    /* RECV_REDUCE_SEND: buffer for reduced bytes, of which [drained, filled) wait to be sent. */
    uint8_t *bounce;
    size_t filled, drained;
};

struct tutti_run {
    const struct tutti_program *program;
    const struct tutti_bound *bound;   /* of the current piece */
    const struct tutti_call *call;     /* borrowed until the run is complete */
    const struct tutti_header *header; /* of the call, in the history */
    bool is_active;
    bool moved;                        /* set by any progress; cleared by the caller */
    bool streams;                      /* results bypass the cache */
    /* True for v-forms: a lane moves its header even if it has no bytes to move, because only the
     * header tells ranks that their counts differ. */
    bool is_vector;
    /* Number of counts, 64 bits each, behind each header. They let ranks name the counts that
     * differ. If counts are by pair (collective.h) there is one: the elements that the sender
     * expects from the receiver. The header itself has the elements that the sender sends. In other
     * v-forms all counts follow. There are none if the ranks can compare counts in a domain, or are
     * more than TUTTI_MOST_COUNTS. */
    uint32_t ncounts;
    uint32_t header_bytes;             /* size of a header and its counts */
    struct tutti_post *post;           /* this rank's post of the round */
    bool lends;                        /* true if all ranks agreed to run on lent memory */
    uint32_t input_lent, output_lent;  /* the numbers under which this rank offers its buffers */
    int phase;                         /* enum phase of run.c */
    size_t piece;                      /* index of the current piece */
    uint8_t *base[TUTTI_BUF_COUNT];    /* start of each buffer for this piece */
    uint8_t *staged_input, *staged_output, *scratch; /* places in the engine's arena */
    struct tutti_scale scale;          /* applied by GATHER_REDUCE */

    /* These are for local and one-sided steps. */
    uint32_t local_position;           /* steps complete, of those that local.c runs in order */
    uint32_t wait_index;               /* the next member that a wait for all members checks */
    uint32_t signals_given;            /* in the current round */

    /* These are for two-sided steps. */
    uint32_t lanes_left;               /* lanes that have steps left in this piece */
    struct tutti_run_lane_state *lanes; /* [lane_capacity] */
    uint8_t *halves_left;              /* per step: halves to do; 0: the step is complete */
    size_t *received;                  /* per step: bytes that its receiving half has moved */
    uint32_t lane_capacity, step_capacity;
};

/* Smaller results gain nothing from bypassing the cache. */
#define TUTTI_LEAST_STREAMED_BYTES ((size_t)32 << 10)

/* A table of recent results, hashed by address (stream.c). Each entry has the value of the count of
 * moved bytes at the time when the result was written. */
struct tutti_recent {
    uint64_t moved_bytes; /* estimated bytes that calls have moved through the cache so far */
    struct {
        uintptr_t address;
        uint64_t moved_bytes;
    } results[128];
};

struct tutti_engine {
    struct tutti_fabric *fabric;
    struct tutti_domain *domain;       /* of all ranks of the communicator, or NULL */
    int nranks, rank;
    uint64_t round;                    /* number of the last round begun */
    uint64_t all_entered; /* last round whose first signals this rank has seen from all ranks */
    struct tutti_call_history history; /* of the collectives begun */
    uint32_t nchecks;                  /* checks of the peers since this run began */
    uint64_t told_sequence;            /* last call whose chain was sent to the next rank */

    /* Successive runs share this memory. */
    uint8_t *arena;                    /* for staged INPUT and OUTPUT, and for SCRATCH */
    size_t arena_bytes;
    const void **sources;              /* [nranks]: addresses that GATHER_REDUCE and PUT read */
    void **sinks;                      /* [nranks + 2]: addresses that these steps write */
    size_t cache_bytes;                /* size of the last level of cache */
    struct tutti_lend *lend;           /* the fabric's; NULL: not used, or not by all ranks */
    struct tutti_recent recent;        /* results that are likely to be in the cache */
    struct tutti_run run;
};

/* Initializes `engine`, which borrows `fabric`. Every initialized or zeroed engine may be passed to
 * tutti_engine_fini. TUTTI_ERR_SYSTEM: no memory. */
int tutti_engine_init(struct tutti_engine *engine, struct tutti_fabric *fabric, int nranks,
                      int rank);
void tutti_engine_fini(struct tutti_engine *engine);

/* Returns the bytes of memory that the engine holds, for the memory report. */
size_t tutti_engine_bytes(const struct tutti_engine *engine);

/* Begins `call` with `program`. The caller keeps both until the run is complete or canceled. No
 * run may be active. TUTTI_ERR_SYSTEM: no memory; no run has begun. */
int tutti_run_begin(struct tutti_engine *engine, const struct tutti_program *program,
                    const struct tutti_call *call);

/* Does the same as tutti_run_begin followed by tutti_run_progress. TUTTI_OK: complete. TUTTI_AGAIN:
 * the run has begun; call tutti_run_progress. */
int tutti_run_start(struct tutti_engine *engine, const struct tutti_program *program,
                    const struct tutti_call *call);

/* Moves the active run forward as far as it can go. TUTTI_OK: complete. TUTTI_AGAIN: call again.
 * After any other result, abort the fabric and cancel the run. */
int tutti_run_progress(struct tutti_engine *engine);

/* Drops the run, in any state. Call tutti_fabric_abort first. Returns once no rank of this process
 * touches the caller's buffers any more. */
void tutti_run_cancel(struct tutti_engine *engine);

/* Call it when the active run failed with result `rc` because a peer has gone. Reads the headers
 * that peers had sent before. TUTTI_ERR_USAGE: a header shows that its sender made a different
 * call, and the message names both calls. Otherwise returns `rc` and keeps the message that was
 * set. */
int tutti_run_explain(struct tutti_engine *engine, int rc);

/* Returns a rank that the active run waits for, for use in messages. TUTTI_NO_RANK: no rank in
 * particular. */
int tutti_run_awaited_rank(const struct tutti_engine *engine);

/* Call it every few milliseconds while a run waits. Compares the calls of this rank with those of
 * all ranks of the domain. Without a domain, a rank that has waited for long sends its number of
 * calls and its chain to the next rank. It compares those that the previous rank has sent.
 * TUTTI_ERR_USAGE: a rank has begun a different call under a number that this rank has used too;
 * the message names both calls. TUTTI_OK: no difference was found, or no run is active. */
int tutti_run_check_peers(struct tutti_engine *engine);

/* ---- inside the executor ------------------------------------------------------ */

/* mismatch.c: call one of these if `rank` has sent a header, or written a post, that differs from
 * this rank's. Sets a message that names the first call in which the two ranks differ, as far as
 * known. Returns TUTTI_ERR_USAGE. */
int tutti_run_mismatch(const struct tutti_engine *engine, const struct tutti_header *mine,
                       int rank, const struct tutti_header *theirs);
int tutti_run_post_mismatch(const struct tutti_engine *engine, const struct tutti_header *mine,
                            int rank, const struct tutti_post *theirs);
/* mismatch.c: for a run with counts behind its headers. Compares the header and counts of `rank`
 * with those that this rank expects. The first `bytes` bytes have arrived at `words`, at least a
 * whole header. TUTTI_OK: no difference has arrived yet. TUTTI_ERR_USAGE: the message names the
 * difference. */
int tutti_run_check_counts(const struct tutti_engine *engine, int rank, const uint64_t *words,
                           size_t bytes);

/* Returns TUTTI_OK if `rank` makes the same call in this round as this rank, and otherwise
 * TUTTI_ERR_USAGE. `theirs` is the post of `rank` in the round. The caller must have loaded the
 * post's counter with acquire. */
static inline int tutti_run_check_post(const struct tutti_engine *engine, uint32_t rank,
                                       const struct tutti_post *theirs)
{
    const struct tutti_header *mine = engine->run.header;

    if (theirs->chain == mine->chain &&
        memcmp(theirs->signature, &mine->signature, sizeof theirs->signature) == 0)
        return TUTTI_OK;
    return tutti_run_post_mismatch(engine, mine, (int)rank, theirs);
}

/* Gives this rank's signals of the round, up to number `nsignals`. Before the first one it writes
 * the call into its post, all at once: the peers that wait already read the line of the post again
 * and again, and each of their reads takes the line away from this core. */
static inline void tutti_run_give_signals(struct tutti_engine *engine, uint32_t nsignals)
{
    struct tutti_run *run = &engine->run;
    struct tutti_domain *domain = engine->domain;

    if (run->signals_given == 0) {
        uint64_t signature[2];

        memcpy(signature, &run->header->signature, sizeof signature);
        tutti_domain_begin_post(domain, engine->round, signature, run->header->chain);
    }
    run->signals_given = nsignals;
    tutti_domain_give_signals(domain, run->post, engine->round, nsignals);
}

/* Polls for signal number `signal` of `rank` in this round, as often as the domain's `patience`
 * says. It pauses between two polls, because each of them takes the line of the post away from its
 * owner, who is about to write it. TUTTI_OK: `rank` has given the signal. TUTTI_AGAIN: not yet.
 * TUTTI_ERR_USAGE: `rank` has given the signal, but its post shows a different call. */
static inline int tutti_run_poll_signal(const struct tutti_engine *engine, uint32_t rank,
                                        uint32_t signal)
{
    const struct tutti_post *theirs = tutti_domain_post(engine->domain, rank, engine->round);
    uint32_t polls_left = engine->domain->patience;

    while (!tutti_domain_post_has(theirs, engine->round, signal)) {
        if (polls_left-- == 0)
            return TUTTI_AGAIN;
        tutti_spin_relax();
    }
    return tutti_run_check_post(engine, rank, theirs);
}

/* Makes the check of tutti_run_check_post for an earlier round. The owner may overwrite the post of
 * that round at any time. The result is TUTTI_OK also if the owner has done so. */
static inline int tutti_run_check_earlier_post(const struct tutti_engine *engine, uint32_t rank,
                                               uint64_t round)
{
    const struct tutti_domain *domain = engine->domain;
    const struct tutti_post *own = tutti_domain_post(domain, domain->me, round);
    const struct tutti_post *post = tutti_domain_post(domain, rank, round);
    struct tutti_header mine = {.sequence = 0};
    struct tutti_post theirs;

    /* All loads acquire: they pair with the releases in tutti_domain_begin_post. */
    theirs.signature[0] = tutti_load_acquire(&post->signature[0]);
    theirs.signature[1] = tutti_load_acquire(&post->signature[1]);
    theirs.chain = tutti_load_acquire(&post->chain);
    if (tutti_load_acquire(&post->counter) >> TUTTI_SIGNAL_BITS != round ||
        (theirs.chain == own->chain && theirs.signature[0] == own->signature[0] &&
         theirs.signature[1] == own->signature[1]))
        return TUTTI_OK;
    mine.chain = own->chain;
    memcpy(&mine.signature, own->signature, sizeof mine.signature);
    return tutti_run_post_mismatch(engine, &mine, (int)rank, &theirs);
}

/* Returns the window of member `index` of the domain in the current round. */
static inline uint8_t *tutti_run_window(const struct tutti_engine *engine, uint32_t index)
{
    switch (engine->run.program->window_place) {
    case TUTTI_IN_POST: return tutti_domain_post(engine->domain, index, engine->round)->window;
    case TUTTI_IN_SLOT: return tutti_domain_slot(engine->domain, index, engine->round);
    default: return tutti_domain_window(engine->domain, index, engine->round);
    }
}

/* local.c: runs the local and one-sided steps of the current piece. TUTTI_OK: all are complete.
 * TUTTI_AGAIN: a step must wait. */
int tutti_run_local(struct tutti_engine *engine);
/* run.c: enforces the reuse rule. TUTTI_OK: all ranks have entered round `needed`. TUTTI_AGAIN: a
 * rank has not entered that round yet. */
int tutti_run_await_entry(struct tutti_engine *engine, uint64_t needed);

/* Sets run.post to this rank's post of the round, which this rank may then write. TUTTI_AGAIN:
 * another rank has not entered the round yet that is `behind` rounds earlier. */
static inline int tutti_run_take_post(struct tutti_engine *engine, uint64_t behind)
{
    if (engine->all_entered + behind < engine->round)
        TUTTI_TRY(tutti_run_await_entry(engine, engine->round - behind));
    engine->run.post = tutti_domain_post(engine->domain, engine->domain->me, engine->round);
    return TUTTI_OK;
}

/* lend.c: writes the numbers under which this rank offers its buffers into its post. */
void tutti_run_offer(struct tutti_engine *engine, struct tutti_post *post);
/* lend.c: agrees with all ranks whether to run on lent memory. If they do, switches the run to
 * program->lent. TUTTI_AGAIN: a rank has not answered yet. */
int tutti_run_agree_on_loan(struct tutti_engine *engine);
/* lend.c: returns the address at which this rank maps the INPUT or OUTPUT of member `index` in this
 * round. NULL: the buffer is not mapped. */
uint8_t *tutti_run_lent_buffer(const struct tutti_engine *engine, uint32_t index, uint32_t buffer);
/* stream.c: returns the size in bytes of the last level of cache that a core uses. If the size is
 * not known, the result is a guess. */
size_t tutti_engine_last_cache_bytes(void);
/* stream.c: decides whether the results of the active run should bypass the cache. Also records the
 * result as recent. So call this once per run whose program has `may_stream`. */
bool tutti_run_decide_streaming(struct tutti_engine *engine);
/* stream.c: decides the same for a message to be received in `output`. Call this once per message.
 * `is_mutual`: the batch of the message both sends and receives. */
bool tutti_engine_decide_streaming(struct tutti_engine *engine, const void *output,
                                   size_t size_bytes, bool is_mutual);
/* lanes.c: moves every lane of the current piece as far as it can go. TUTTI_OK: all are complete.
 * TUTTI_AGAIN: a lane must wait. */
int tutti_run_lanes(struct tutti_engine *engine);
/* lanes.c: resets lanes and steps for the next piece of the run. */
void tutti_lanes_begin_piece(struct tutti_engine *engine);
/* lanes.c: makes room for a run of `plan` with `ncounts` counts behind each header.
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_lanes_reserve(struct tutti_run *run, const struct tutti_plan *plan, uint32_t ncounts);
/* header.c: reads the headers that lanes still wait for, as far as they have arrived, and compares
 * them. TUTTI_ERR_USAGE: the message names a difference. TUTTI_OK: no difference was found. */
int tutti_lanes_read_headers(struct tutti_engine *engine);
/* lanes.c: frees the memory that tutti_lanes_reserve has allocated. */
void tutti_lanes_fini(struct tutti_run *run);
/* lanes.c: returns the bytes of that memory. */
size_t tutti_lanes_bytes(const struct tutti_run *run);
/* lanes.c: returns a rank that a lane waits for. TUTTI_NO_RANK: all unfinished lanes wait for other
 * steps of this rank. */
int tutti_lanes_awaited_rank(const struct tutti_run *run);

/* True if all steps that `step` depends on are complete. */
static inline bool tutti_run_deps_done(const struct tutti_run *run, const struct tutti_step *step)
{
    const uint32_t *deps = tutti_step_deps(run->program->plan->schedule, step);

    for (uint32_t i = 0; i < step->dep_count; i++)
        if (run->halves_left[deps[i]] != 0)
            return false;
    return true;
}

#endif
