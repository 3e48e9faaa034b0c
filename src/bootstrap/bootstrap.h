/* SPDX-License-Identifier: Apache-2.0
 * How ranks find each other: an all-gather of one small record per rank, over
 * whatever they can reach before any transport exists.
 *
 * A bootstrap is made for one rank of one communicator, used for a few rounds
 * of all-gather and destroyed when the transports have taken over. Nothing here blocks, but for the
 * callback of an embedder and the name resolution of a host given by name.
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

struct tutti_bootstrap_ops {
    const char *name;

    /* Go on with the current round: give `size` bytes at `mine` (the same size
     * on all ranks), fill `all` with those of all ranks, rank 0 first. Called
     * again with the same arguments while TUTTI_AGAIN; after TUTTI_OK the next
     * call begins the next round. Errors end the bootstrap: TUTTI_ERR_USAGE (ranks disagree on
     * nranks or size, or claim one number), TUTTI_ERR_TIMEOUT (names who is missing, as far as
     * this rank can know), TUTTI_ERR_REMOTE (a rank gave up; its reason is passed on). */
    int (*allgather)(struct tutti_bootstrap *boot, const void *mine, size_t size, void *all);

    /* Poll descriptor to sleep on between calls while TUTTI_AGAIN, or -1: call again soon. */
    int (*wait_fd)(struct tutti_bootstrap *boot);

    /* Between calls while TUTTI_AGAIN: write a clause that names the missing ranks, such as "rank 2
     * of 3 has not joined at 10.0.0.1:4711". True: no other rank knows more. False: this rank has
     * reached the root, and the root knows more. The member is NULL where nothing is known. */
    bool (*describe_missing)(struct tutti_bootstrap *boot, char *ret_text, size_t size);

    /* Leave. `reason` is NULL after success; else peers that still wait are told it where possible.
     * NULL object is ignored. */
    void (*destroy)(struct tutti_bootstrap *boot, const char *reason);
};

/* The first member of every kind of bootstrap. */
struct tutti_bootstrap {
    const struct tutti_bootstrap_ops *ops;
    int nranks, rank;
    uint64_t deadline_ns;
    /* Of the communicator; transports derive theirs from it. Over a store it is new for each
     * communicator, and valid once the first round is complete; otherwise at once. */
    uint8_t secret[TUTTI_SECRET_BYTES];
    /* Rank 0's claim on the place (claim.h), or NULL. The communicator takes it and releases
     * it at its own end; a claim that nobody has taken ends with the bootstrap. */
    struct tutti_claim *claim;
};

/* ---- the kinds -------------------------------------------------------------- */

/* unique_id.c: 128 bytes = magic, version, addresses, secret, checksum. Opens the listener and
 * keeps it in the process until a rank of this process starts with this id. */
#define TUTTI_UNIQUE_ID_SIZE 128
int tutti_unique_id_create(uint8_t ret_id[TUTTI_UNIQUE_ID_SIZE]);

/* Over a unique id. TUTTI_ERR_ARGUMENT: corrupted id (checksum, magic, version). TUTTI_ERR_USAGE:
 * this process made the id, and it has been used. The first rank to start in the process that made
 * the id serves as root; a child made by fork is another process. */
int tutti_bootstrap_from_id(const uint8_t id[TUTTI_UNIQUE_ID_SIZE], int nranks, int rank,
                            uint64_t deadline_ns, struct tutti_bootstrap **ret_boot);

/* Where the ranks of a job meet, and what tells them from others. All but `store` may be NULL,
 * which is as good as "". All ranks give the same texts. */
struct tutti_meeting {
    /* "tcp:HOST:PORT" (rank 0 listens), "tcp:HOST:FIRST-LAST" (at the first free port of at most
     * 32), "unix:NAME" (a socket in the abstract namespace of one host) or "file:DIRECTORY". */
    const char *store;
    const char *secret; /* what ranks prove to hold */
    const char *job;    /* an identity that no other job has, as far as the launcher knows */
    const char *name;   /* of the communicator: several of different names may form at once */
};

/* Over a store. A store serves any number of communicators of one job. Those of one name are formed
 * one after the other.
 * A port in use on rank 0, an unwritable directory, a place that another job holds: an error that
 * names it and the cure. */
int tutti_bootstrap_meet(const struct tutti_meeting *meeting, int nranks, int rank,
                         uint64_t deadline_ns, struct tutti_bootstrap **ret_boot);

/* The calling thread forms the communicators of this name at this store, and no other thread that
 * lives does (owner.c). TUTTI_ERR_USAGE: another one does. Thread-safe. */
int tutti_meeting_own(const struct tutti_meeting *meeting, int nranks, int rank);

/* tutti_bootstrap_meet without a job and a name. */
int tutti_bootstrap_from_store(const char *url, const char *secret_text, int nranks, int rank,
                               uint64_t deadline_ns, struct tutti_bootstrap **ret_boot);

/* Over the embedder's own all-gather. The secret is rank 0's, shared in a first round. */
typedef int (*tutti_allgather_fn)(void *context, const void *input, void *output, size_t bytes);
int tutti_bootstrap_from_callback(tutti_allgather_fn allgather, void *context, int nranks, int rank,
                                  uint64_t deadline_ns, struct tutti_bootstrap **ret_boot);

/* A communicator of one rank needs nobody. */
int tutti_bootstrap_alone(struct tutti_bootstrap **ret_boot);

/* ---- the environment ---------------------------------------------------------- */

/* What a launcher's variables say (launcher.c). `store`, `secret` and `job` are those of a
 * tutti_meeting. `store` may be "" when nranks is 1, the others when there is none. Erase `secret`
 * after use. */
struct tutti_launch {
    const char *launcher; /* "tutti-run", "torchrun", "Open MPI", "MPICH", "Slurm", "none" */
    int nranks, rank;
    char store[512];
    char secret[256];
    char job[512];
};

/* Read the environment. TUTTI_ERR_USAGE names the variable that is missing or malformed.
 * No launcher: one rank, rank 0. */
int tutti_launch_detect(struct tutti_launch *ret_launch);

#endif
