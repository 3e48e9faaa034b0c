/* SPDX-License-Identifier: Apache-2.0
 * The communicator's internal state, for the upper layers of the library. The layers below
 * (executor, transport, algorithms, ...) do not use it.
 *
 * A tuttiComm_t is a small handle that is never given back to the allocator, so that a stale
 * handle is recognized and refused. The state itself lives in struct tutti_comm.
 *
 * Operations are collected in batches (batch.h). A batch holds what one call, or one group, asks of
 * one communicator. Batches run strictly in the order of their tickets. The thread that owns the
 * batch whose turn it is also owns the communicator's fabric and engine.
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
#include "queue/calls.h"
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

/* Second-round record of a rank: its fabric's verdict, the header of the files that rank 0 shares
 * (share.h), and whether the rank has a GPU. */
#define TUTTI_GPU_VERDICT_BYTES 8
#define TUTTI_COMM_VERDICT_BYTES \
    (TUTTI_FABRIC_VERDICT_BYTES + TUTTI_SHARE_HEAD_BYTES + TUTTI_GPU_VERDICT_BYTES)

/* A reduction made by tuttiRedOpCreatePreMulSum. */
struct tutti_redop {
    bool is_used;
    tuttiDataType_t type;
    const void *address; /* of the scalar, read when the operation runs; NULL: use `scalar` */
    uint8_t scalar[8];
};

#define TUTTI_NAME_BYTES 64

struct tutti_cache;
struct tutti_comm_gpu;

struct tutti_comm {
    int nranks, rank;
    uint32_t serial;          /* unique in this process; distinguishes user-defined operations */
    tuttiComm_t handle;       /* the handle that the caller holds */
    const char **pass;        /* gate pass of the thread inside (base/gate.h) */
    /* Open groups that refer to the communicator number `groups` - `groups_dropped`. The thread
     * inside changes `groups`. A thread that is not inside counts the groups that it drops in
     * `groups_dropped`, which is atomic. */
    uint32_t groups, groups_dropped;
    uint8_t secret[TUTTI_SECRET_BYTES];
    char name[TUTTI_NAME_BYTES];
    struct tutti_log_scope scope; /* prefix of log lines about this communicator */
    int init_timeout_ms;
    int timeout_ms;           /* of operations; 0: none. Atomic: a thread may change it */
    bool is_blocking;

    int state;                /* enum tutti_comm_state; release/acquire */

    /* Forming: form.c. */
    size_t phase;
    uint64_t begun_ns, noticed_ns; /* the second: when the log last named the missing ranks */
    uint64_t deadline_ns;
    struct tutti_bootstrap *boot;
    struct tutti_claim *claim; /* rank 0's claim of the meeting place, or NULL */
    uint8_t *gathered;         /* records of all ranks, of the exchange under way */
    int declines;              /* TUTTI_OK, or why this rank cannot take part; all ranks learn it */
    char why_declines[TUTTI_MESSAGE_BYTES];
    struct tutti_share share;  /* files that rank 0 has read */

    /* Device memory: comm_gpu.h. */
    const struct tutti_cuda *cuda;     /* NULL: this process has not loaded CUDA */
    struct tutti_comm_gpu *gpu;        /* NULL: this rank is on the CPU */
    bool all_have_gpus;

    struct tutti_fabric *fabric;
    struct tutti_engine engine;
    struct tutti_numbering numbering;
    /* The inputs of algorithm choices, the same on all ranks: choices.c. `view` points to the
     * fields after it. */
    struct tutti_tuner_view view;
    struct tutti_memo memo;
    struct tutti_policy *policy;       /* NULL: none was given */
    struct tutti_machine *machine;     /* described or assumed */
    struct tutti_places places;
    uint32_t *hosts;                   /* [nranks]: host of each rank */
    uint32_t *cells;                   /* [nranks]: cell of each rank, if hosts have cells */
    char fingerprint[TUTTI_FINGERPRINT_BYTES];
    const struct tutti_choice *trial;  /* overrides the tuner while tuning measures; else NULL */
    struct tutti_cache *cache;         /* plans and programs */
    struct tutti_known known[1 << TUTTI_KNOWN_BITS]; /* used by the thread inside */
    struct tutti_schedules *schedules; /* from files */

    /* Ticket of the next batch. Taken by the thread inside; with a GPU also by driver threads, so
     * then it is atomic, and issue_lock keeps tickets and message numbers in step. */
    uint64_t next_ticket;
    pthread_mutex_t issue_lock;
    uint64_t turn; /* ticket whose turn it is; released by its owner, acquired by the next owner */

    struct tutti_redop *redops;
    int redop_count;
    uint64_t splits;

    /* The first failure. */
    pthread_mutex_t error_lock;
    int error;                /* 0, or a negative result; release/acquire */
    char error_text[TUTTI_MESSAGE_BYTES];
};

/* ---- handles (handle.c) ---------------------------------------------------------- */

/* Makes the handle of `comm` and sets comm->handle and comm->serial. NULL: out of memory.
 * Thread-safe, as are the other functions of this section. */
tuttiComm_t tutti_handle_create(struct tutti_comm *comm);
/* Refuses the handle from now on, then waits until no visitor is left. */
void tutti_handle_close(tuttiComm_t handle);
/* Frees the handle for another communicator. Call it after tutti_handle_close. */
void tutti_handle_release(tuttiComm_t handle);
/* A number that grows in each child of fork. An object that carries another number was made by the
 * parent process. */
uint32_t tutti_fork_generation(void);

/* The following functions name `function`, the public function that calls them, in their messages.
 * `function` is a constant string. They attach the thread's log lines to the
 * communicator. TUTTI_ERR_ARGUMENT: the handle is NULL, no handle, or destroyed. TUTTI_ERR_USAGE:
 * it was inherited by fork. */

/* Begins a short call, which any thread may make at any time, also while another thread is inside.
 * The communicator is not freed until tutti_handle_unvisit. */
int tutti_handle_visit(tuttiComm_t handle, const char *function, struct tutti_comm **ret_comm);
void tutti_handle_unvisit(tuttiComm_t handle);

/* Gives the calling thread exclusive use of the communicator until tutti_comm_leave. Does not wait.
 * TUTTI_ERR_USAGE: another thread is inside a call on it, which the message names. */
int tutti_handle_enter(tuttiComm_t handle, const char *function, struct tutti_comm **ret_comm);
/* The same, and the communicator must be ready. TUTTI_ERR_USAGE: it still forms, or is finalized.
 * A failed communicator returns its recorded error. */
int tutti_handle_enter_ready(tuttiComm_t handle, const char *function,
                             struct tutti_comm **ret_comm);
/* As tutti_handle_enter, for a communicator that cannot be destroyed meanwhile. */
int tutti_comm_enter(struct tutti_comm *comm, const char *function);
void tutti_comm_leave(struct tutti_comm *comm);
/* For visitors: enters without setting a message, comm->pass, or the log scope. Returns the pass
 * for tutti_gate_leave, or NULL if another thread is inside. */
const char **tutti_comm_try_enter(struct tutti_comm *comm, const char *function);

/* ---- life (form.c, end.c) ---------------------------------------------------------- */

struct tutti_settings {
    const struct tutti_comm *parent;   /* source of the policy; NULL: rank 0's environment */
    bool is_blocking;
    int init_timeout_ms, timeout_ms;
    int device;                        /* as config.device */
    char name[TUTTI_NAME_BYTES];
};

/* Settings of a new communicator. The timeouts in the environment override those in `config`.
 * Fields that neither sets, and all of them if `config` is NULL, come from `parent`, or are the
 * defaults if that is NULL. Also raises the process's limits, before any socket is opened.
 * TUTTI_ERR_ARGUMENT: a field of `config` is out of range, or it was not initialized. */
int tutti_settings_read(const tuttiConfig_t *config, const struct tutti_comm *parent,
                        struct tutti_settings *ret_settings);

/* Makes a communicator that is still to be formed over `boot`. Takes ownership of `boot`, also on
 * failure. TUTTI_ERR_ARGUMENT: a wrong argument in `settings`; TUTTI_ERR_SYSTEM: out of memory. A
 * rank that cannot take part for another reason, such as a wrong variable, is no error here: it
 * fails when it forms, and all other ranks fail with its reason. */
int tutti_comm_create(struct tutti_bootstrap *boot, const struct tutti_settings *settings,
                      struct tutti_comm **ret_comm);
/* Continues forming. TUTTI_AGAIN: not finished, call again. TUTTI_OK: ready. Any other result is an
 * error that has been recorded with tutti_comm_fail. */
int tutti_comm_form(struct tutti_comm *comm);
/* Waits a little between two calls of tutti_comm_form. */
void tutti_comm_form_idle(struct tutti_comm *comm);
/* Frees the communicator in any state; NULL is ignored. Leaves the last message as it is. */
void tutti_comm_free(struct tutti_comm *comm);

/* Records a failure, aborts the fabric and the GPU, which tells the peers, and wakes the threads
 * that sleep in it. Does nothing if a failure is recorded already. Returns `rc`. Any thread. */
int tutti_comm_fail(struct tutti_comm *comm, int rc, const char *message);

/* Sets the state, unless a failure is recorded, as by an abort of another thread. Then the state
 * stays TUTTI_COMM_FAILED, and the result is that failure. */
int tutti_comm_set_state(struct tutti_comm *comm, int state);

/* A value of enum tutti_comm_state. Any thread. */
static inline int tutti_comm_state(const struct tutti_comm *comm)
{
    /* acquire: pairs with the release in tutti_comm_set_state and tutti_comm_fail; what that state
     * promises is in place */
    return tutti_load_acquire(&comm->state);
}

/* The recorded failure without its text; 0: none. Any thread. */
static inline int tutti_comm_failure(const struct tutti_comm *comm)
{
    /* acquire: pairs with the release in tutti_comm_fail; error_text is complete */
    return tutti_load_acquire(&comm->error);
}

/* Returns the recorded failure, and makes its text the thread's last message. Returns 0 if there is
 * none. Any thread. */
int tutti_comm_error(struct tutti_comm *comm);

/* The timeout of operations in ms; 0: none. Any thread. */
static inline int tutti_comm_timeout_ms(const struct tutti_comm *comm)
{
    return tutti_load_relaxed(&comm->timeout_ms);
}
/* Changes the timeout of operations. TUTTI_ERR_ARGUMENT: it is negative. Any thread. */
int tutti_comm_set_timeout(struct tutti_comm *comm, const char *function, int timeout_ms);

/* ---- splitting (split.c) ----------------------------------------------------------------- */

/* Does what tuttiCommSplit does, for the public function `caller`, which messages name. */
int tutti_comm_split(tuttiComm_t handle, int color, int key, enum tutti_caller caller,
                     const tuttiConfig_t *config, tuttiComm_t *ret_child);

/* ---- log lines (report.c): rank 0 logs the facts that are the same on all ranks -------------- */

/* Call it before forming. */
void tutti_comm_report_begin(const struct tutti_comm *comm);
/* Call it in each pass of forming that has to wait. Every TUTTI_INIT_NOTICE_MS it logs which ranks
 * are missing. `phase` names the phase. */
void tutti_comm_report_missing(struct tutti_comm *comm, const char *phase);
/* Call it when the communicator is ready, and before the bootstrap is destroyed. */
void tutti_comm_report_formed(const struct tutti_comm *comm);
/* Call it before the user's destroy frees the communicator. */
void tutti_comm_report_end(const struct tutti_comm *comm);
/* Logs which algorithm will run the calls of this kind. `runs_by` names it with its options, and
 * `by` names the authority that chose it. `is_new`: true for the first call of its collective in
 * its power of two of sizes. Other calls are logged at TRACE only. */
void tutti_comm_report_choice(const struct tutti_comm *comm, const struct tutti_tuner_query *query,
                              const char *runs_by, const char *by, bool is_new);

/* Number of hosts. Call it after tutti_choices_look. */
int tutti_comm_host_count(const struct tutti_comm *comm);

/* ---- choices (choices.c, tune/tune.c) ----------------------------------------------------- */

/* Call it before the exchanges. Takes over the policy of `parent`. If `parent` is NULL, rank 0
 * reads the policy from its environment and offers it to the others. A wrong policy is no error
 * here: all ranks, rank 0 too, fail with it in the exchange of verdicts. */
int tutti_choices_read(struct tutti_comm *comm, const struct tutti_comm *parent);
/* Fills in comm->view and what it points to. Call it when the fabric is settled and the shared
 * policy has arrived. */
int tutti_choices_look(struct tutti_comm *comm);
/* Replaces the policy by `policy`, which is taken, and drops all plans and programs. No operation
 * may be running. */
int tutti_choices_use(struct tutti_comm *comm, struct tutti_policy *policy);
void tutti_choices_fini(struct tutti_comm *comm);
/* Heap held, for the memory report; a policy counts for each communicator that shares it. */
size_t tutti_choices_bytes(const struct tutti_comm *comm);
/* How the ranks communicate, in one word: "threads", "cma", "shm", "shm+tcp", "tcp". Constant
 * text. */
const char *tutti_choices_transports(const struct tutti_comm *comm);

/* ---- programs (cache.c) ---------------------------------------------------------------- */

int tutti_cache_create(struct tutti_cache **ret_cache);
/* NULL is ignored. */
void tutti_cache_destroy(struct tutti_cache *cache);
/* Heap held, for the memory report. */
size_t tutti_cache_bytes(const struct tutti_cache *cache);
/* Drops all plans and programs; no run may be active. */
void tutti_cache_forget(struct tutti_cache *cache);

/* The tuner's query for `call`. */
struct tutti_tuner_query tutti_cache_query(const struct tutti_comm *comm,
                                           const struct tutti_call *call);
/* The plan of `choice`, whose options must be resolved. It is made at first need, and lives in
 * `cache` until tutti_cache_forget. `cache` need not be comm->cache. */
int tutti_cache_plan(const struct tutti_comm *comm, struct tutti_cache *cache,
                     const struct tutti_choice *choice, int root,
                     const struct tutti_plan **ret_plan);
/* The choice that replaces `choice` in a run in which all ranks lend each other the call's buffers.
 * Returns false if `choice` stays in that case too. Sets query->is_lent in any case. */
bool tutti_cache_lent(const struct tutti_comm *comm, const struct tutti_call *call,
                      struct tutti_tuner_query *query, const struct tutti_choice *choice,
                      struct tutti_choice *ret_lent);

/* The program for `call`, made at first need. It lives until the next call of this function or of
 * tutti_cache_forget, which may drop it. */
int tutti_cache_program(struct tutti_comm *comm, const struct tutti_call *call,
                        const struct tutti_program **ret_program);
/* The same, with `found` kept by the caller for repeats of the same call: it skips the look-up
 * while no program has been dropped. Zero `found` before its first use. */
int tutti_cache_again(struct tutti_comm *comm, const struct tutti_call *call,
                      struct tutti_found *found);

/* ---- results ---------------------------------------------------------------------------- */

/* Ends every public function: detaches the thread's log lines from the communicator, and converts
 * `rc` (0, a negative error, or TUTTI_AGAIN) to the public result. */
static inline tuttiResult_t tutti_public(int rc)
{
    tutti_log_enter(NULL);
    return rc == TUTTI_AGAIN ? tuttiInProgress : (tuttiResult_t)-rc;
}

#endif
