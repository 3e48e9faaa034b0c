/* SPDX-License-Identifier: Apache-2.0
 * The communicator, as the library proper sees it. Nothing below this level does.
 *
 * A tuttiComm_t is a small handle that is never given back to the allocator, so
 * that a stale one is recognised and refused. What it holds lives in struct tutti_comm.
 *
 * Operations are put together in batches (batch.h): a batch is what one call, or
 * one group, asks of one communicator. Batches run strictly in the order of
 * their tickets; whichever thread owns the batch whose turn it is owns the
 * communicator's fabric and engine.
 */
#ifndef TUTTI_COMM_COMM_H
#define TUTTI_COMM_COMM_H

#include "base/gate.h"
#include "base/log.h"
#include "base/result.h"
#include "bootstrap/bootstrap.h"
#include "comm/schedules.h"
#include "comm/share.h"
#include "executor/host/message.h"
#include "executor/host/program.h"
#include "queue/ready.h"
#include "tuner/memo.h"
#include "tuner/policy.h"
#include "tuner/table.h"
#include "tutti.h"
#include "wrap/cuda.h"

#include <pthread.h>

enum tutti_comm_state {
    TUTTI_COMM_FORMING,
    TUTTI_COMM_READY,
    TUTTI_COMM_FINALIZED,
    TUTTI_COMM_FAILED,
};

/* What a rank says in the second round of forming: its fabric's verdict, what rank 0 will share,
 * has it a GPU. */
#define TUTTI_GPU_VERDICT_BYTES 8
#define TUTTI_COMM_VERDICT_BYTES \
    (TUTTI_FABRIC_VERDICT_BYTES + TUTTI_SHARE_HEAD_BYTES + TUTTI_GPU_VERDICT_BYTES)

struct tutti_redop {
    bool is_used;
    tuttiDataType_t type;
    const void *address; /* NULL: the scalar is here */
    uint8_t scalar[8];
};

#define TUTTI_NAME_BYTES 64

struct tutti_cache;
struct tutti_comm_gpu;

struct tutti_comm {
    int nranks, rank;
    uint32_t serial;          /* of this process: tells apart the operations of communicators */
    tuttiComm_t handle;       /* of the caller */
    const char **pass;        /* of the thread inside, through the handle's gate */
    /* Groups that have not ended refer to the communicator: their number, counted by the thread
     * inside, and how many of these were dropped by a thread that was not inside; atomic. */
    uint32_t groups, groups_dropped;
    uint8_t secret[TUTTI_SECRET_BYTES];
    char name[TUTTI_NAME_BYTES];
    struct tutti_log_scope scope; /* of lines about it */
    int init_timeout_ms;
    int timeout_ms;           /* of operations; 0: none. Atomic: a thread may change it */
    bool is_blocking;

    int state;                /* enum tutti_comm_state; release/acquire */

    /* Forming: form.c. */
    size_t phase;
    uint64_t begun_ns, noticed_ns; /* the log last told whom it waits for */
    uint64_t deadline_ns;
    struct tutti_bootstrap *boot;
    struct tutti_claim *claim; /* rank 0's on the place where the ranks have met, or NULL */
    uint8_t *gathered;
    int declines;              /* TUTTI_OK, or why this rank cannot take part; all are told */
    char why_declines[TUTTI_MESSAGE_BYTES];
    struct tutti_share share; /* files that rank 0 has read */

    /* Device memory: comm_gpu.h. */
    const struct tutti_cuda *cuda;     /* NULL: there is none in this process */
    struct tutti_comm_gpu *gpu;        /* NULL: this rank is on the CPU */
    bool all_have_gpus;

    struct tutti_fabric *fabric;
    struct tutti_engine engine;
    struct tutti_numbering numbering;
    /* What choices depend on, alike on all ranks: choices.c. The view refers to the rest. */
    struct tutti_tuner_view view;
    struct tutti_memo memo;
    struct tutti_policy *policy;       /* NULL: nobody has said anything */
    struct tutti_machine *machine;     /* described or assumed */
    struct tutti_places places;
    uint32_t *hosts;                   /* [nranks] */
    uint32_t *cells;                   /* [nranks]: of the hosts, where these are divided */
    char fingerprint[TUTTI_FINGERPRINT_BYTES];
    const struct tutti_choice *trial;  /* runs instead of what the tuner chooses; NULL: none */
    struct tutti_cache *cache;         /* plans and programs */
    struct tutti_ready ready[TUTTI_READY_CALLS]; /* the calling thread's */
    struct tutti_schedules *schedules; /* from files */

    uint64_t next_ticket;     /* of the batch issued next: the calling thread's, and with GPUs: */
    pthread_mutex_t issue_lock;
    uint64_t turn; /* ticket whose turn it is; release by its owner, acquired by the next */

    struct tutti_redop *redops;
    int redop_count;
    uint64_t splits;

    /* The first failure. */
    pthread_mutex_t error_lock;
    int error;                /* 0, or a negative result; release/acquire */
    char error_text[TUTTI_MESSAGE_BYTES];
};

/* ---- handles (handle.c) ---------------------------------------------------------- */

tuttiComm_t tutti_handle_create(struct tutti_comm *comm);
/* From now on the handle is refused; returns when no visitor is left. */
void tutti_handle_close(tuttiComm_t handle);
/* The handle may be used for another communicator. */
void tutti_handle_release(tuttiComm_t handle);
/* Grows in a child of fork: what was made with another number is the parent's. */
uint32_t tutti_fork_generation(void);

/* All of these name `function` in their messages. TUTTI_ERR_ARGUMENT: the handle is NULL, garbage
 * or destroyed. TUTTI_ERR_USAGE: it was inherited by fork. */

/* A short call that any thread may make at any time; the communicator lives until unvisit. */
int tutti_handle_visit(tuttiComm_t handle, const char *function, struct tutti_comm **ret_comm);
void tutti_handle_unvisit(tuttiComm_t handle);

/* Have the communicator for this thread alone, until tutti_comm_leave. TUTTI_ERR_USAGE: another
 * thread is inside a call on it, which the message names. */
int tutti_handle_enter(tuttiComm_t handle, const char *function, struct tutti_comm **ret_comm);
/* The same, and ready to communicate: TUTTI_ERR_USAGE while it forms or when finalized, its error
 * when it has failed. */
int tutti_handle_enter_ready(tuttiComm_t handle, const char *function,
                             struct tutti_comm **ret_comm);
/* The same of a communicator that is known to live. */
int tutti_comm_enter(struct tutti_comm *comm, const char *function);
void tutti_comm_leave(struct tutti_comm *comm);
/* The same without a message: the pass, or NULL. For visitors. */
const char **tutti_comm_try_enter(struct tutti_comm *comm, const char *function);

/* ---- life (form.c, end.c) ---------------------------------------------------------- */

struct tutti_settings {
    const struct tutti_comm *parent;   /* whose policy it has; NULL: rank 0's environment */
    bool is_blocking;
    int init_timeout_ms, timeout_ms;
    int device;                        /* as config.device */
    char name[TUTTI_NAME_BYTES];
};

/* Settings from a configuration (NULL: `parent`'s or the default) and the environment. */
int tutti_settings_read(const tuttiConfig_t *config, const struct tutti_comm *parent,
                        struct tutti_settings *ret_settings);

/* A communicator that is yet to be formed over `boot`, which it takes, also on failure. A rank that
 * cannot take part (a wrong variable, say) fails when it forms, and with it all others; but a wrong
 * argument is TUTTI_ERR_ARGUMENT here. */
int tutti_comm_create(struct tutti_bootstrap *boot, const struct tutti_settings *settings,
                      struct tutti_comm **ret_comm);
/* Go on forming. TUTTI_OK: ready. An error has been recorded with tutti_comm_fail. */
int tutti_comm_form(struct tutti_comm *comm);
/* Wait a little between calls of tutti_comm_form. */
void tutti_comm_form_idle(struct tutti_comm *comm);
void tutti_comm_free(struct tutti_comm *comm);

/* Record the first failure, tell the peers, wake who sleeps. Returns `rc`. Any thread. */
int tutti_comm_fail(struct tutti_comm *comm, int rc, const char *message);

/* The recorded failure as this thread's last message; 0 if there is none. */
int tutti_comm_error(struct tutti_comm *comm);

/* The deadline of operations in ms; 0: none. Any thread. And change it; TUTTI_ERR_ARGUMENT: it is
 * negative. */
static inline int tutti_comm_timeout_ms(const struct tutti_comm *comm)
{
    return tutti_load_relaxed(&comm->timeout_ms);
}
int tutti_comm_set_timeout(struct tutti_comm *comm, const char *function, int timeout_ms);

/* ---- splitting (split.c) ----------------------------------------------------------------- */

/* tuttiCommSplit on behalf of the public function `caller`, which messages name. */
int tutti_comm_split(tuttiComm_t handle, int color, int key, enum tutti_caller caller,
                     const tuttiConfig_t *config, tuttiComm_t *ret_child);

/* ---- log lines (report.c): rank 0 tells the facts that are alike on all ranks --------------- */

/* Call it before forming. */
void tutti_comm_report_begin(const struct tutti_comm *comm);
/* Call it in each pass of forming that has to wait. From time to time it tells which ranks are
 * missing. `phase` names the phase. */
void tutti_comm_report_missing(struct tutti_comm *comm, const char *phase);
/* Call it when the communicator is ready, and before the bootstrap is destroyed. */
void tutti_comm_report_formed(const struct tutti_comm *comm);
/* Call it before the user's destroy frees the communicator. */
void tutti_comm_report_end(const struct tutti_comm *comm);
/* Tell by which algorithm calls of this kind will run. `by` is the authority that chose it, in
 * words. `is_new` is true for the first call of its collective in its power of two of sizes. */
void tutti_comm_report_choice(const struct tutti_comm *comm, const struct tutti_tuner_query *query,
                              const char *runs_by, const char *by, bool is_new);

/* Number of hosts, once they are known. */
int tutti_comm_host_count(const struct tutti_comm *comm);

/* ---- choices (choices.c, tune/tune.c) ----------------------------------------------------- */

/* Before the exchanges: take over the parent's policy, or on rank 0 offer the environment's to be
 * shared. What is wrong with that is for all ranks to fail with, and no error yet. */
int tutti_choices_read(struct tutti_comm *comm, const struct tutti_comm *parent);
/* When all is there to look at, the shared policy too. */
int tutti_choices_look(struct tutti_comm *comm);
/* From now on `policy`, which is taken, counts. Programs made before are forgotten. */
int tutti_choices_use(struct tutti_comm *comm, struct tutti_policy *policy);
void tutti_choices_fini(struct tutti_comm *comm);
/* Heap held, for the memory report; a policy counts for each communicator that shares it. */
size_t tutti_choices_bytes(const struct tutti_comm *comm);
/* How the ranks talk, in one word: "threads", "cma", "shm", "shm+tcp", "tcp". */
const char *tutti_choices_transports(const struct tutti_comm *comm);

/* ---- programs (cache.c) ---------------------------------------------------------------- */

int tutti_cache_create(struct tutti_cache **ret_cache);
void tutti_cache_destroy(struct tutti_cache *cache);
size_t tutti_cache_bytes(const struct tutti_cache *cache);
/* Drop all plans and programs; no run may be active. */
void tutti_cache_forget(struct tutti_cache *cache);

/* What the tuner is asked about a call; and the plan of its answer, made at first need, kept in a
 * cache that is the caller's own. */
struct tutti_tuner_query tutti_cache_query(const struct tutti_comm *comm,
                                           const struct tutti_call *call);
int tutti_cache_plan(const struct tutti_comm *comm, struct tutti_cache *cache,
                     const struct tutti_choice *choice, int root,
                     const struct tutti_plan **ret_plan);
/* The call runs by *ret_lent, and not by `choice`, where all ranks lend each other its buffers.
 * False: there is no such difference. Sets query->is_lent. */
bool tutti_cache_lent(const struct tutti_comm *comm, const struct tutti_call *call,
                      struct tutti_tuner_query *query, const struct tutti_choice *choice,
                      struct tutti_choice *ret_lent);

/* The program for `call`, made at first need; the next call of this may drop it. */
int tutti_cache_program(struct tutti_comm *comm, const struct tutti_call *call,
                        const struct tutti_program **ret_program);
/* The same for a call that may have been looked up before. */
int tutti_cache_again(struct tutti_comm *comm, const struct tutti_call *call,
                      struct tutti_found *found);

/* ---- results ---------------------------------------------------------------------------- */

/* The end of every public function: this thread no longer works for a communicator. */
static inline tuttiResult_t tutti_public(int rc)
{
    tutti_log_enter(NULL);
    return rc == TUTTI_AGAIN ? tuttiInProgress : (tuttiResult_t)-rc;
}

#endif
