/* SPDX-License-Identifier: Apache-2.0
 * The host executor: makes a bound schedule happen on CPU cores.
 *
 * An engine belongs to one communicator: its fabric, the counters that one-sided
 * schedules synchronise by, and memory that runs share. A run is one collective
 * on its way: begin it, then call progress until it is done. Nothing blocks.
 *
 * Two-sided steps move in lanes (plan.h): each lane works on its first
 * unfinished step as soon as the steps that one depends on are complete. Local
 * and one-sided steps run in program order.
 *
 * Rounds. One run of a one-sided schedule over one piece is a round. All ranks
 * of a domain count rounds alike. Round e uses post e modulo TUTTI_POSTS, and
 * for its window that post, its slot, or half e & 1. The reuse rule: who has
 * given his first signal of a round has left the one before. So before a rank
 * writes to its post or slot in round e, every other rank must have given its
 * first signal of round e - TUTTI_POSTS + 1, and that of round e - 1 if it writes
 * to a window half: it has then left the last round that used what is written.
 */
#ifndef TUTTI_EXECUTOR_HOST_HOST_H
#define TUTTI_EXECUTOR_HOST_HOST_H

#include "base/result.h"
#include "device/cpu/cpu.h"
#include "executor/call.h"
#include "executor/history.h"
#include "executor/plan.h"
#include "schedule/bind.h"
#include "transport/fabric.h"
#include "transport/shm/lend.h"

/* Where a round has its window: domain.h. */
enum tutti_window_place { TUTTI_IN_POST, TUTTI_IN_SLOT, TUTTI_IN_HALF };

/* A collective call with its plan and sizes: made once per kind of call, then cached. */
struct tutti_program {
    const struct tutti_plan *plan;
    /* Elements per block of one piece; all pieces but the last are full. */
    size_t piece_count;
    size_t npieces;
    struct tutti_bound full, last;
    /* Narrow floats of two-sided reductions run as float32, so that they are rounded once. */
    enum tutti_type run_type;
    bool widens;         /* INPUT and OUTPUT are staged as run_type */
    bool stages_input;   /* widened, pre-multiplied, or copied out of the way */
    bool scales_output;  /* an average that GATHER_REDUCE does not take care of */
    size_t input_blocks, output_blocks;
    /* Memory of the communicator's own that a piece takes: staged INPUT and OUTPUT, SCRATCH. */
    size_t staged_input_bytes, staged_output_bytes, scratch_bytes;
    enum tutti_window_place window_place;
    bool may_stream;     /* results are large enough to bypass the cache */
    bool is_one_round;   /* of copies and sums through windows, with nothing before or after it */
    /* By what this call runs if all ranks lend each other what it reads and writes; NULL: by
     * nothing else, so nobody asks. Owned. It stages what this one does. */
    struct tutti_program *lent;
};

/* Words of a header; and with more ranks counts do not travel behind headers: a difference is still
 * found, by the hash in the signature, but is not named. */
enum { TUTTI_HEADER_WORDS = 4, TUTTI_MOST_COUNTS = 128 };
_Static_assert(sizeof(struct tutti_header) == TUTTI_HEADER_WORDS * sizeof(uint64_t), "whole words");

struct tutti_lane_state {
    struct tutti_conn *conn;
    uint32_t position;    /* index of its current step among the lane's */
    uint32_t segment;     /* of that step */
    size_t offset;        /* bytes done of that segment */
    size_t moved;         /* bytes done of that step */
    uint32_t header_bytes; /* done, of this operation's header and the counts behind it */
    struct tutti_header header; /* received; in a run whose headers have counts behind them: */
    uint64_t *words;       /* the header and those, sent or received */
    uint32_t word_capacity;
    /* RECV_REDUCE_SEND: reduced bytes on their way; [drained, filled) wait to be sent. */
    uint8_t *bounce;
    size_t filled, drained;
};

struct tutti_run {
    const struct tutti_program *program;
    const struct tutti_bound *bound;   /* of the current piece */
    const struct tutti_call *call;     /* the caller's, until it is done */
    const struct tutti_header *header; /* of the history */
    bool is_active;
    bool moved;                        /* set by any progress; the caller clears it */
    bool streams;                      /* results bypass the cache */
    /* Of a v-form: a header goes before every message, also before one of no bytes, since only the
     * header tells ranks that their counts differ. */
    bool is_vector;
    /* Words of counts behind each header, so that ranks without a domain can name the counts that
     * differ. In an all-to-all-v one: how many elements the sender expects of the receiver, while
     * the header has how many it sends. In other v-forms all counts. */
    uint32_t ncounts;
    uint32_t header_bytes;             /* of header and counts */
    struct tutti_post *post;           /* mine, of the round */
    bool lends;                        /* all have agreed to run on lent memory, mine by: */
    uint32_t input_lent, output_lent;
    int phase;
    size_t piece;
    uint8_t *base[TUTTI_BUF_COUNT];    /* of this piece */
    uint8_t *staged_input, *staged_output, *scratch;
    struct tutti_scale scale;          /* what GATHER_REDUCE applies */
    /* local and one-sided steps */
    uint32_t local_position, local_segment;
    uint32_t wait_index;
    uint32_t signals_given;
    /* two-sided steps */
    uint32_t lanes_left;
    struct tutti_lane_state *lanes;
    uint8_t *halves_left;              /* per step; 0: complete */
    size_t *received;                  /* per step: bytes of its receiving half */
    uint32_t lane_capacity, step_capacity;
};

/* With less, nothing is won by bypassing the cache. */
#define TUTTI_LEAST_STREAMED_BYTES ((size_t)32 << 10)

/* Results of late, by their addresses, each with how many bytes calls had moved by then. */
struct tutti_recent {
    uint64_t moved_bytes;
    struct {
        uintptr_t address;
        uint64_t moved_bytes;
    } results[128];
};

struct tutti_engine {
    struct tutti_fabric *fabric;
    struct tutti_domain *domain;       /* of all ranks of the communicator, or NULL */
    int nranks, rank;
    /* rounds */
    uint64_t round;                    /* number of the last round begun */
    uint64_t all_entered; /* last round of which I have seen everybody's first signal */
    struct tutti_history history;      /* collectives begun */
    uint32_t looks;                    /* at the peers, while this run waits */
    uint64_t told;                     /* the number of the last run that the next rank was told */
    /* memory shared by successive runs */
    uint8_t *arena;
    size_t arena_bytes;
    const void **sources;              /* [nranks], for GATHER_REDUCE */
    void **sinks;                      /* [nranks + 2] */
    size_t cache_bytes;                /* of the last level */
    struct tutti_lend *lend;           /* the fabric's; NULL: not all of the ranks can use it */
    struct tutti_recent recent;        /* what is likely to be in it */
    struct tutti_run run;
};

int tutti_engine_init(struct tutti_engine *engine, struct tutti_fabric *fabric, int nranks,
                      int rank);
void tutti_engine_fini(struct tutti_engine *engine);

/* Heap held, for the memory report. */
size_t tutti_engine_bytes(const struct tutti_engine *engine);

/* Begin `call` by `program` (both kept by the caller until done); engine->run must be idle. */
int tutti_run_begin(struct tutti_engine *engine, const struct tutti_program *program,
                    const struct tutti_call *call);

/* Begin, and go on at once. TUTTI_AGAIN: it has begun, and tutti_run_progress goes on. */
int tutti_run_start(struct tutti_engine *engine, const struct tutti_program *program,
                    const struct tutti_call *call);

/* Go on. TUTTI_OK: complete. */
int tutti_run_progress(struct tutti_engine *engine);

/* Drop the run, in whatever state: after an error that peers have been told. Returns when no rank
 * of this process touches the caller's buffers any more. */
void tutti_run_cancel(struct tutti_engine *engine);

/* The active run could not go on, with result `rc`, because a peer has gone: had that peer said
 * before that the two of us call different things? Then TUTTI_ERR_USAGE and the message for it,
 * else `rc` and the message that there was. */
int tutti_run_explain(struct tutti_engine *engine, int rc);

/* The rank that the active run waits for, -1 if none in particular: for messages. */
int tutti_run_waits_for(const struct tutti_engine *engine);

/* While a run waits, every few milliseconds: has a rank of the domain begun a different operation
 * under a number that I have had? TUTTI_ERR_USAGE names both. Without a domain, who waits for long
 * tells the rank after it, and hears the rank before. */
int tutti_run_check_peers(struct tutti_engine *engine);

/* ---- inside the executor ------------------------------------------------------ */

/* `theirs` is not `mine`, which I expected of `rank`: say where the two parted. */
int tutti_run_mismatch(const struct tutti_engine *engine, const struct tutti_header *mine,
                       int rank, const struct tutti_header *theirs);
int tutti_run_bad_post(const struct tutti_engine *engine, const struct tutti_post *mine,
                       int rank, const struct tutti_post *theirs);
/* Of a run with counts behind its headers: `words`, of which `bytes` have come from `rank`, the
 * header among them, against mine. TUTTI_OK also where the rest must tell. */
int tutti_run_check_counts(const struct tutti_engine *engine, int rank, const uint64_t *words,
                           size_t bytes);

/* Does `rank` do in this round what I do? Once its counter was acquired. */
static inline int tutti_run_check_post(const struct tutti_engine *engine, uint32_t rank,
                                       const struct tutti_post *theirs)
{
    const struct tutti_post *mine = engine->run.post;

    if (theirs->chain == mine->chain && theirs->signature[0] == mine->signature[0] &&
        theirs->signature[1] == mine->signature[1])
        return TUTTI_OK;
    return tutti_run_bad_post(engine, mine, (int)rank, theirs);
}

/* Has `rank` given that signal of this round? Then it must be doing what I do. */
static inline int tutti_run_wait_for(const struct tutti_engine *engine, uint32_t rank,
                                     uint32_t signal)
{
    const struct tutti_post *theirs = tutti_domain_post(engine->domain, rank, engine->round);
    uint32_t patience = engine->domain->patience;

    while (!tutti_domain_gave(theirs, engine->round, signal))
        if (patience-- == 0)
            return TUTTI_AGAIN;
    return tutti_run_check_post(engine, rank, theirs);
}

/* The same of a round before the current one, whose post may be written anew at any time: nothing
 * is said of what has changed meanwhile. */
static inline int tutti_run_check_past(const struct tutti_engine *engine, uint32_t rank,
                                       uint64_t round)
{
    const struct tutti_domain *domain = engine->domain;
    const struct tutti_post *mine = tutti_domain_post(domain, domain->me, round);
    const struct tutti_post *post = tutti_domain_post(domain, rank, round);
    struct tutti_post theirs;

    /* acquire, all: pairs with tutti_domain_open */
    theirs.signature[0] = tutti_load_acquire(&post->signature[0]);
    theirs.signature[1] = tutti_load_acquire(&post->signature[1]);
    theirs.chain = tutti_load_acquire(&post->chain);
    if (tutti_load_acquire(&post->counter) >> TUTTI_SIGNAL_BITS != round ||
        (theirs.chain == mine->chain && theirs.signature[0] == mine->signature[0] &&
         theirs.signature[1] == mine->signature[1]))
        return TUTTI_OK;
    return tutti_run_bad_post(engine, mine, (int)rank, &theirs);
}

/* Where member `index` has its window of the current round. */
static inline uint8_t *tutti_run_window(const struct tutti_engine *engine, uint32_t index)
{
    switch (engine->run.program->window_place) {
    case TUTTI_IN_POST: return tutti_domain_post(engine->domain, index, engine->round)->window;
    case TUTTI_IN_SLOT: return tutti_domain_slot(engine->domain, index, engine->round);
    default: return tutti_domain_window(engine->domain, index, engine->round);
    }
}

int tutti_run_local(struct tutti_engine *engine);  /* local.c */
/* run.c: begin my post of the round, once all others have entered the one `behind` rounds
 * before. */
int tutti_run_open_post(struct tutti_engine *engine, uint64_t behind);
/* lend.c: offer my buffers in my post; agree by what to run; where I see a member's buffer,
 * NULL: nowhere. */
void tutti_run_offer(struct tutti_engine *engine, struct tutti_post *post);
int tutti_run_agree(struct tutti_engine *engine);
uint8_t *tutti_run_lent(const struct tutti_engine *engine, uint32_t index, uint32_t buffer);
size_t tutti_last_cache_bytes(void);
bool tutti_run_streams(struct tutti_engine *engine); /* stream.c; once per run that may */
/* Of a message, once. */
bool tutti_message_streams(struct tutti_engine *engine, const void *output, size_t size_bytes,
                           bool is_mutual);
int tutti_run_lanes(struct tutti_engine *engine);  /* lanes.c */
void tutti_lanes_begin_piece(struct tutti_run *run);
/* Room for a run of that plan whose headers have so many counts behind them. */
int tutti_lanes_reserve(struct tutti_run *run, const struct tutti_plan *plan, uint32_t ncounts);
/* Looks for a header of a peer that does not go on, and compares it. TUTTI_ERR_USAGE names the
 * difference, TUTTI_OK: no. */
int tutti_lanes_read_headers(struct tutti_engine *engine);
void tutti_lanes_fini(struct tutti_run *run);
size_t tutti_lanes_bytes(const struct tutti_run *run);
/* A rank that itself keeps a lane from going on; TUTTI_NO_RANK when all wait for other lanes. */
int tutti_lanes_wait_for(const struct tutti_run *run);

static inline bool tutti_run_deps_done(const struct tutti_run *run, const struct tutti_step *step)
{
    const uint32_t *deps = tutti_step_deps(run->program->plan->schedule, step);

    for (uint32_t i = 0; i < step->dep_count; i++)
        if (run->halves_left[deps[i]] != 0)
            return false;
    return true;
}

#endif
