/* SPDX-License-Identifier: Apache-2.0
 * The communicator's internal state, for the upper layers of the library. The layers below
 * (executor, transport, algorithms, ...) do not use it.
 *
 * A tuttiComm_t is a small handle whose memory is never freed, so that the use of a stale handle is
 * recognized and refused. The state itself is in struct tutti_comm.
 *
 * Operations are collected in batches (queue/batch.h). A batch holds the operations of one call, or
 * of one group, on one communicator. Batches run strictly in the order of their tickets. The thread
 * that runs the batch whose turn it is owns the communicator's fabric and engine meanwhile.
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
    TUTTI_COMM_FORMING,   /* tutti_comm_form has not finished */
    TUTTI_COMM_READY,     /* all calls are allowed */
    TUTTI_COMM_FINALIZED, /* only queries and tuttiCommDestroy are allowed */
    TUTTI_COMM_FAILED,    /* calls that need a ready communicator return the recorded failure */
};

/* The record that each rank sends in the second exchange of forming. It holds the verdict of the
 * rank's fabric and the header of the files that rank 0 shares (share.h). In the last bytes, each
 * byte is 1 if the rank has a GPU, and 0 if not. */
#define TUTTI_GPU_VERDICT_BYTES 8
#define TUTTI_COMM_VERDICT_BYTES \
    (TUTTI_FABRIC_VERDICT_BYTES + TUTTI_SHARE_HEAD_BYTES + TUTTI_GPU_VERDICT_BYTES)

/* A reduction made by tuttiRedOpCreatePreMulSum. */
struct tutti_redop {
    bool is_used;
    uint8_t use; /* counts the operations that had this entry; part of the number (redop.c) */
    tuttiDataType_t type; /* the only type of the calls that may use it */
    const void *address;  /* of the scalar, read when a call runs; NULL: use `scalar` */
    uint8_t scalar[8];    /* one element of `type` */
};

#define TUTTI_NAME_BYTES 64 /* size of a communicator's name, with its terminating zero */

struct tutti_cache;
struct tutti_gpu_comm;

struct tutti_comm {
    int nranks, rank;
    uint32_t serial;          /* unique in this process; distinguishes user-defined operations */
    tuttiComm_t handle;       /* the handle that the caller holds */
    const char **pass;        /* gate pass of the thread inside (base/gate.h) */
    /* Open groups that refer to the communicator number `groups` - `groups_dropped`. The thread
     * inside changes `groups`. A thread that is not inside counts the groups that it drops in
     * `groups_dropped`, which is atomic. */
    uint32_t groups, groups_dropped;
    uint8_t secret[TUTTI_SECRET_BYTES]; /* known to all ranks; zero until they have met */
    char name[TUTTI_NAME_BYTES];        /* "": none */
    struct tutti_log_scope scope; /* prefix of log lines about this communicator */
    int init_timeout_ms;
    int timeout_ms;           /* of operations; 0: none; atomic, since any thread may set it */
    bool is_blocking;         /* false: tuttiCommGetAsyncError continues to form it */

    int state;                /* enum tutti_comm_state; release/acquire */

    /* Forming: form.c. */
    size_t phase;              /* index of the current phase */
    uint64_t begun_ns, noticed_ns; /* start of forming; last log line about missing ranks */
    uint64_t deadline_ns;      /* of forming */
    struct tutti_bootstrap *boot; /* owned; NULL once the communicator is formed */
    struct tutti_claim *claim; /* rank 0's claim of the meeting place, or NULL */
    uint8_t *gathered;         /* records of all ranks, of the exchange under way */
    int declines;              /* why this rank cannot take part, for all ranks; or TUTTI_OK */
    char why_declines[TUTTI_MESSAGE_BYTES];
    struct tutti_share share;  /* files that rank 0 has read */

    /* Device memory: comm_gpu.h. */
    const struct tutti_cu_driver *cuda; /* NULL: this process has not loaded CUDA */
    struct tutti_gpu_comm *gpu;         /* NULL: this rank is on the CPU */
    bool all_have_gpus;                 /* all ranks are on GPUs */

    struct tutti_fabric *fabric;        /* the connections and the shared memory */
    struct tutti_engine engine;         /* state of the host executor */
    struct tutti_engine_numbers numbering; /* of sends and receives, per peer */
    /* The inputs of algorithm choices, the same on all ranks: choices.c. `view` points to the
     * fields after it. */
    struct tutti_tuner_view view;
    struct tutti_memo memo;
    struct tutti_policy *policy;       /* NULL: none was given */
    struct tutti_machine *machine;     /* described or assumed */
    struct tutti_placement places;
    uint32_t *hosts;                   /* [nranks]: host of each rank */
    uint32_t *cells;                   /* [nranks]: cell of each rank, if hosts have cells */
    char fingerprint[TUTTI_FINGERPRINT_BYTES];
    const struct tutti_choice *trial;  /* overrides the tuner while tuning measures; else NULL */
    struct tutti_cache *cache;         /* plans and programs */
    struct tutti_calls_known known[1 << TUTTI_KNOWN_BITS]; /* used by the thread inside */
    struct tutti_schedules *schedules; /* from files */

    /* Ticket of the next batch. The thread inside takes tickets. With a GPU, threads of the CUDA
     * driver take them too. In that case the field is atomic, and issue_lock keeps tickets and
     * message numbers in step. */
    uint64_t next_ticket;
    pthread_mutex_t issue_lock;
    uint64_t turn; /* ticket whose turn it is; released by its owner, acquired by the next owner */

    struct tutti_redop *redops;
    int redop_count;
    uint64_t splits; /* number of splits so far, from which the secrets of children are derived */

    /* The first failure. */
    pthread_mutex_t error_lock;
    int error;                /* 0, or a negative result; release/acquire */
    char error_text[TUTTI_MESSAGE_BYTES];
};

/* ---- handles (handle.c) ---------------------------------------------------------- */

/* Makes the handle of `comm`, and sets comm->handle and comm->serial. NULL: out of memory. All
 * functions of this section are thread-safe. */
tuttiComm_t tutti_handle_create(struct tutti_comm *comm);
/* Refuses the handle from now on, then waits until no visitor is left. */
void tutti_handle_close(tuttiComm_t handle);
/* Frees the handle for another communicator. Call it after tutti_handle_close. */
void tutti_handle_release(tuttiComm_t handle);
/* Returns a number that grows in each child of fork. An object that carries another number was made
 * before the fork, by the parent process. */
uint32_t tutti_comm_fork_generation(void);

/* The following functions name `function`, the public function that calls them, in their messages.
 * `function` is a constant string. They attach the thread's log lines to the communicator.
 * TUTTI_ERR_ARGUMENT: the handle is NULL or destroyed, or the address is not a handle.
 * TUTTI_ERR_USAGE: the handle was inherited by fork. */

/* Begins a visit: a short call, which any thread may make at any time, also while another thread is
 * inside. The communicator is not freed until tutti_handle_unvisit. */
int tutti_handle_visit(tuttiComm_t handle, const char *function, struct tutti_comm **ret_comm);
void tutti_handle_unvisit(tuttiComm_t handle);

/* Gives the calling thread exclusive use of the communicator until tutti_comm_leave. The thread is
 * then "inside" the communicator. Does not wait. TUTTI_ERR_USAGE: another thread is inside, and the
 * message names its call. */
int tutti_handle_enter(tuttiComm_t handle, const char *function, struct tutti_comm **ret_comm);
/* The same, and the communicator must be ready. TUTTI_ERR_USAGE: it still forms, or is finalized.
 * A failed communicator returns its recorded error. */
int tutti_handle_enter_ready(tuttiComm_t handle, const char *function,
                             struct tutti_comm **ret_comm);
/* As tutti_handle_enter, for a communicator that cannot be destroyed meanwhile. */
int tutti_comm_enter(struct tutti_comm *comm, const char *function);
/* Ends the exclusive use that one of the three functions above began. */
void tutti_comm_leave(struct tutti_comm *comm);
/* For visitors: enters without setting a message, comm->pass, or the log scope. Returns the pass
 * for tutti_gate_leave, or NULL if another thread is inside. */
const char **tutti_comm_try_enter(struct tutti_comm *comm, const char *function);

/* ---- life (form.c, end.c) ---------------------------------------------------------- */

struct tutti_settings {
    const struct tutti_comm *parent;   /* source of the policy; NULL: rank 0's environment */
    bool is_blocking;
    int init_timeout_ms, timeout_ms;   /* for forming; for each operation (0: none) */
    int device;                        /* as config.device of tutti.h */
    char name[TUTTI_NAME_BYTES];
};

/* Determines the settings of a new communicator. If the environment sets a timeout, the one in
 * `config` is ignored. Fields that `config` does not set come from `parent`, or are the defaults
 * if `parent` is NULL. `config` may be NULL. Also raises the process's limits, before any socket
 * is opened. TUTTI_ERR_ARGUMENT: `config` was not initialized, or has a field out of range. */
int tutti_settings_read(const tuttiConfig_t *config, const struct tutti_comm *parent,
                        struct tutti_settings *ret_settings);

/* Makes a communicator that is still to be formed over `boot`. Takes ownership of `boot`, also on
 * failure. TUTTI_ERR_ARGUMENT: `settings` has a wrong argument. TUTTI_ERR_SYSTEM: out of memory.
 * If this rank cannot take part for another reason, such as a wrong variable, the result is still
 * TUTTI_OK. The rank then fails when it forms, and all other ranks fail with its reason. */
int tutti_comm_create(struct tutti_bootstrap *boot, const struct tutti_settings *settings,
                      struct tutti_comm **ret_comm);
/* Continues forming. TUTTI_AGAIN: not finished, call again. TUTTI_OK: ready. Any other result is an
 * error that has been recorded with tutti_comm_fail. */
int tutti_comm_form(struct tutti_comm *comm);
/* Waits a little between two calls of tutti_comm_form. */
void tutti_comm_form_idle(struct tutti_comm *comm);
/* Frees the communicator in any state; NULL is ignored. Leaves the last message as it is. */
void tutti_comm_free(struct tutti_comm *comm);

/* Records a failure, and aborts the fabric and the GPU, which tells the peers. Wakes the threads
 * that sleep in the fabric. Does nothing if a failure is recorded already. Returns `rc`. Any
 * thread. */
int tutti_comm_fail(struct tutti_comm *comm, int rc, const char *message);

/* Sets the state, unless a failure is recorded, for example by tuttiCommAbort in another thread.
 * In that case the state stays TUTTI_COMM_FAILED, and the result is the failure. */
int tutti_comm_set_state(struct tutti_comm *comm, int state);

/* Returns a value of enum tutti_comm_state. Any thread. */
static inline int tutti_comm_state(const struct tutti_comm *comm)
{
    /* acquire: pairs with the release in tutti_comm_set_state and tutti_comm_fail; all that the
     * state promises is in place */
    return tutti_load_acquire(&comm->state);
}

/* Returns the recorded failure without its text; 0: none. Any thread. */
static inline int tutti_comm_failure(const struct tutti_comm *comm)
{
    /* acquire: pairs with the release in tutti_comm_fail; error_text is complete */
    return tutti_load_acquire(&comm->error);
}

/* Returns the recorded failure, and makes its text the thread's last message. Returns 0 if there is
 * none. Any thread. */
int tutti_comm_error(struct tutti_comm *comm);

/* Returns the timeout of operations in ms; 0: none. The operations by which a communicator forms
 * have the time that forming has. Any thread. */
static inline int tutti_comm_timeout_ms(const struct tutti_comm *comm)
{
    return tutti_load_relaxed(&comm->state) == TUTTI_COMM_FORMING
               ? comm->init_timeout_ms : tutti_load_relaxed(&comm->timeout_ms);
}
/* Returns the name of the variable that sets this timeout. Any thread. */
static inline const char *tutti_comm_timeout_variable(const struct tutti_comm *comm)
{
    return tutti_load_relaxed(&comm->state) == TUTTI_COMM_FORMING ? "TUTTI_INIT_TIMEOUT_MS"
                                                                  : "TUTTI_TIMEOUT_MS";
}
/* Changes the timeout of operations. TUTTI_ERR_ARGUMENT: it is negative. Any thread. */
int tutti_comm_set_timeout(struct tutti_comm *comm, const char *function, int timeout_ms);

/* ---- splitting (split.c) ----------------------------------------------------------------- */

/* Does what tuttiCommSplit does, for the public function `caller`, which messages name. Inside a
 * group, *ret_child is set when the group ends. The caller destroys *ret_child. */
int tutti_comm_split(tuttiComm_t handle, int color, int key, enum tutti_caller caller,
                     const tuttiConfig_t *config, tuttiComm_t *ret_child);

/* ---- log lines (report.c): rank 0 logs the facts that are the same on all ranks -------------- */

/* Logs the version once per process, and variables that are unknown. Call it before forming. */
void tutti_comm_report_begin(const struct tutti_comm *comm);
/* Call it in each pass of forming that has to wait. Every TUTTI_INIT_NOTICE_MS it logs which ranks
 * are missing. `phase` names the phase. */
void tutti_comm_report_missing(struct tutti_comm *comm, const char *phase);
/* Logs the hosts of the ranks, the transports and the settings. Call it when the communicator is
 * ready, and before the bootstrap is destroyed. */
void tutti_comm_report_formed(const struct tutti_comm *comm);
/* Logs how many operations ran, and the failure if there was one. Call it before the user's destroy
 * frees the communicator. */
void tutti_comm_report_end(const struct tutti_comm *comm);
/* Logs which algorithm will run the calls of this kind. `runs_by` names the algorithm with its
 * options, and `by` names the authority that chose it. `is_new` is true for the first call of its
 * collective in its size class (tutti_call_is_new_size). Other calls are logged only at TRACE. */
void tutti_comm_report_choice(const struct tutti_comm *comm, const struct tutti_tuner_query *query,
                              const char *runs_by, const char *by, bool is_new);

/* Returns the number of hosts of the ranks. Call it after tutti_choices_fill_view. */
int tutti_comm_host_count(const struct tutti_comm *comm);

/* ---- choices (choices.c, tune/tune.c) ----------------------------------------------------- */

/* Call it before the exchanges. The policy and the rates of the machine come from `parent`. If
 * `parent` is NULL, rank 0 reads the policy from its environment and offers it to the others. A
 * wrong policy is not an error here, because all ranks fail with it in the exchange of verdicts. */
int tutti_choices_read(struct tutti_comm *comm, const struct tutti_comm *parent);
/* Fills in comm->view and the objects that it points to. Call it when the fabric is settled and the
 * shared policy has arrived. */
int tutti_choices_fill_view(struct tutti_comm *comm);
/* Replaces the policy by `policy`, and drops all plans and programs. Takes ownership of `policy`.
 * No operation may be running. */
int tutti_choices_set_policy(struct tutti_comm *comm, struct tutti_policy *policy);
/* Frees all that the functions above have made. */
void tutti_choices_fini(struct tutti_comm *comm);
/* Returns the bytes of heap that the choices hold, for the memory report. A policy counts for each
 * communicator that shares it. */
size_t tutti_choices_bytes(const struct tutti_comm *comm);
/* Returns one word for the transports between the ranks: "threads", "cma", "shm", "shm+tcp" or
 * "tcp". The text is constant. */
const char *tutti_choices_transports(const struct tutti_comm *comm);

/* ---- programs (cache.c) ---------------------------------------------------------------- */

/* Makes an empty cache, which the caller destroys. TUTTI_ERR_SYSTEM: out of memory. */
int tutti_cache_create(struct tutti_cache **ret_cache);
/* Destroys the cache with its plans and programs. NULL is ignored. */
void tutti_cache_destroy(struct tutti_cache *cache);
/* Returns the bytes of heap that the cache holds, for the memory report. */
size_t tutti_cache_bytes(const struct tutti_cache *cache);
/* Drops all plans and programs. No run may be active. */
void tutti_cache_forget(struct tutti_cache *cache);

/* Returns the tuner's query for `call`. */
struct tutti_tuner_query tutti_cache_query(const struct tutti_comm *comm,
                                           const struct tutti_call *call);
/* Where the schedules of a cache run. */
struct tutti_cache_site {
    const struct tutti_placement *places; /* of the ranks; borrowed */
    uint32_t channels;                    /* that the executor has */
};
/* Finds the plan of `choice`, whose options must be resolved. The plan is made at first need, and
 * lives in `cache` until tutti_cache_forget. `cache` need not be comm->cache, but all plans of a
 * cache must have the same site. */
int tutti_cache_plan(const struct tutti_comm *comm, struct tutti_cache *cache,
                     const struct tutti_choice *choice, int root,
                     const struct tutti_cache_site *site, const struct tutti_plan **ret_plan);
/* Finds the choice that replaces `choice` in a run in which all ranks lend each other the call's
 * buffers. Returns false if `choice` remains in that case too. Always sets query->is_lent. */
bool tutti_cache_lent_choice(const struct tutti_comm *comm, const struct tutti_call *call,
                             struct tutti_tuner_query *query, const struct tutti_choice *choice,
                             struct tutti_choice *ret_lent);

/* Finds the program for `call`, which is made at first need. The cache owns the program. The next
 * call of this function may drop it, and tutti_cache_forget drops it. */
int tutti_cache_program(struct tutti_comm *comm, const struct tutti_call *call,
                        const struct tutti_program **ret_program);
/* The same for a call that repeats. The caller keeps `found` for repeats of the same call, and
 * zeroes it before its first use. The look-up is skipped while no program has been dropped. */
int tutti_cache_recall(struct tutti_comm *comm, const struct tutti_call *call,
                       struct tutti_calls_recalled *found);

/* ---- structs that grow (versioned.c) ----------------------------------------------------- */

/* Some structs of tutti.h begin with a member `size`, in which the caller gives the size of its
 * version of the struct. */

/* True if a caller can have meant `size`. */
bool tutti_public_is_size(size_t size);
/* Checks the member `size` of the struct that `function` got as `argument`, of the type `type`.
 * TUTTI_ERR_ARGUMENT: the caller has not set the member. */
int tutti_public_check_size(const char *function, const char *argument, const char *type,
                            size_t size);
/* Copies the members of `known`, which has known_bytes, to the caller's struct at `ret_struct`, as
 * far as the caller's version has them. The caller's `size` stays, and must have been checked. */
void tutti_public_copy(const void *known, size_t known_bytes, void *ret_struct);

/* ---- results ---------------------------------------------------------------------------- */

/* Ends every public function: detaches the thread's log lines from the communicator, and converts
 * `rc` (0, a negative error, or TUTTI_AGAIN) to the public result. */
static inline tuttiResult_t tutti_public_result(int rc)
{
    tutti_log_enter(NULL);
    return rc == TUTTI_AGAIN ? tuttiInProgress : (tuttiResult_t)-rc;
}

#endif
