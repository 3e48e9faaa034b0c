/* SPDX-License-Identifier: Apache-2.0
 * Bootstrap: how the ranks of a communicator find each other. A bootstrap is an all-gather of one
 * small record per rank, and it works before any transport exists.
 *
 * A bootstrap is made for one rank of one communicator. It runs a few rounds of all-gather, and is
 * destroyed when the transports are connected. Nothing here blocks, except the callback of an
 * embedder and the resolution of a host name. A bootstrap is used by one thread at a time.
 */
#ifndef TUTTI_BOOTSTRAP_H
#define TUTTI_BOOTSTRAP_H

#include "base/handshake.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Largest record of one rank, in bytes. */
#define TUTTI_BOOTSTRAP_RECORD_MAX 4096

struct tutti_bootstrap;
struct tutti_claim;

/* The functions of one kind of bootstrap. */
struct tutti_bootstrap_ops {
    const char *name; /* for log lines */

    /* Continue the current round: contribute `size` bytes at `mine` (the same size on all ranks, at
     * most TUTTI_BOOTSTRAP_RECORD_MAX), and fill `all` with the records of all ranks, rank 0 first.
     * TUTTI_AGAIN: call again with the same arguments. After TUTTI_OK the next call begins the next
     * round. Errors end the bootstrap:
     * TUTTI_ERR_USAGE: ranks disagree on nranks or size, or two ranks claim the same number.
     * TUTTI_ERR_TIMEOUT: the message names the missing ranks as far as this rank knows them.
     * TUTTI_ERR_REMOTE: a rank gave up; its reason is passed on. */
    int (*allgather)(struct tutti_bootstrap *boot, const void *mine, size_t size, void *all);

    /* Get the descriptor that the caller polls for POLLIN after TUTTI_AGAIN, before it calls
     * allgather again. If the result is -1, the caller calls again soon instead. */
    int (*wait_fd)(struct tutti_bootstrap *boot);

    /* Write a clause that names the missing ranks, such as "rank 2 of 3 has not joined at
     * 10.0.0.1:4711". May be called only after allgather has returned TUTTI_AGAIN. True: no other
     * rank knows more. False: this rank has reached the root, and the root knows more. The pointer
     * is NULL in bootstraps that cannot know which ranks are missing. */
    bool (*describe_missing)(struct tutti_bootstrap *boot, char *ret_text, size_t size);

    /* Leave and free the bootstrap; `boot` may be NULL. `reason` is NULL after success. Otherwise
     * it is sent to peers that still wait, if that is possible without blocking. */
    void (*destroy)(struct tutti_bootstrap *boot, const char *reason);
};

/* The first member of the struct of every kind of bootstrap. */
struct tutti_bootstrap {
    const struct tutti_bootstrap_ops *ops;
    int nranks, rank;
    uint64_t deadline_ns; /* a time of tutti_now_ns(), or TUTTI_NEVER */
    /* The communicator's secret, from which the transports derive their secrets. A store gives each
     * communicator a new secret, which is valid once the first round is complete. The secret of any
     * other bootstrap is valid at once. */
    uint8_t secret[TUTTI_SECRET_BYTES];
    /* Rank 0's claim on the meeting place (claim.h), or NULL. The communicator takes it over by
     * setting this to NULL, and releases it at its own end. Otherwise the bootstrap releases it. */
    struct tutti_claim *claim;
};

/* ---- the kinds -------------------------------------------------------------- */

/* Each of the functions below that makes a bootstrap sets *ret_boot only if it returns TUTTI_OK.
 * The caller then owns the bootstrap, and frees it with ops->destroy. `deadline_ns` is a time of
 * tutti_now_ns(). */

/* Make a unique id, which contains the addresses of its root and a secret (unique_id.c). Opens the
 * listener for the root, and keeps it until the first rank of this process starts with this id.
 * TUTTI_ERR_SYSTEM or TUTTI_ERR_USAGE: this host has no usable address, or cannot listen.
 * Thread-safe. */
#define TUTTI_UNIQUE_ID_SIZE 128
int tutti_unique_id_create(uint8_t ret_id[TUTTI_UNIQUE_ID_SIZE]);

/* Make a bootstrap from a unique id. The first rank to start in the process that made the id
 * becomes the root; a child made by fork is another process.
 * TUTTI_ERR_ARGUMENT: the id is corrupted (checksum, magic, version), or nranks or rank is out of
 * range. TUTTI_ERR_USAGE: this process made the id, and it has been used. */
int tutti_bootstrap_from_id(const uint8_t id[TUTTI_UNIQUE_ID_SIZE], int nranks, int rank,
                            uint64_t deadline_ns, struct tutti_bootstrap **ret_boot);

/* The place where the ranks of a job meet, and the texts that distinguish them from ranks of other
 * jobs. All fields but `store` may be NULL, which means the same as "". All ranks must give the
 * same texts. */
struct tutti_meeting {
    /* "tcp:HOST:PORT" (rank 0 listens there), "tcp:HOST:FIRST-LAST" (rank 0 listens on the first
     * free port of at most 32), "unix:NAME" (a socket in the abstract namespace of one host) or
     * "file:DIRECTORY". */
    const char *store;
    const char *secret; /* shared secret; each rank proves that it knows the secret */
    const char *job;    /* the launcher's identity of the job, which differs from other jobs' */
    const char *name;   /* of the communicator; several with different names may form at once */
};

/* Make a bootstrap over a store. A store serves any number of communicators of one job. Those with
 * the same name are formed one after the other.
 * TUTTI_ERR_ARGUMENT: the URL is malformed, a host cannot be resolved, or nranks or rank is out of
 * range. TUTTI_ERR_SYSTEM: rank 0's port is in use, or the directory cannot be used.
 * TUTTI_ERR_USAGE: another job holds the place. Messages name the place and the cure. */
int tutti_bootstrap_meet(const struct tutti_meeting *meeting, int nranks, int rank,
                         uint64_t deadline_ns, struct tutti_bootstrap **ret_boot);

/* Make the calling thread the only one that may form communicators of this name at this store, for
 * this rank and nranks, until the thread ends (owner.c). TUTTI_ERR_USAGE: another living thread of
 * this process already has this right. Thread-safe. */
int tutti_meeting_own(const struct tutti_meeting *meeting, int nranks, int rank);

/* Make a bootstrap over the embedder's own all-gather, which may block and returns 0 on success.
 * This call already runs a first round, to share rank 0's secret. TUTTI_ERR_REMOTE: the all-gather
 * failed. TUTTI_ERR_USAGE: its results show that ranks disagree on nranks, or are not in order. */
typedef int (*tutti_allgather_fn)(void *context, const void *input, void *output, size_t bytes);
int tutti_bootstrap_from_callback(tutti_allgather_fn allgather, void *context, int nranks, int rank,
                                  uint64_t deadline_ns, struct tutti_bootstrap **ret_boot);

/* Make the bootstrap of a communicator of one rank, which needs no peers. */
int tutti_bootstrap_alone(struct tutti_bootstrap **ret_boot);

/* ---- the environment ---------------------------------------------------------- */

/* The contents of a launcher's variables (launcher.c). `store`, `secret` and `job` are those of a
 * tutti_meeting. `store` may be "" if nranks is 1. `secret` and `job` are "" if there is none. The
 * caller erases `secret` after use. */
struct tutti_launch {
    const char *launcher; /* "tutti-run", "torchrun", "Open MPI", "MPICH", "Slurm", "none" */
    int nranks, rank;
    char store[512];
    char secret[256];
    char job[512];
};

/* Read the environment. Without a launcher the result is one rank, rank 0. TUTTI_ERR_USAGE: the
 * message names the variable that is missing or malformed. */
int tutti_launch_detect(struct tutti_launch *ret_launch);

#endif
