/* SPDX-License-Identifier: Apache-2.0
 * Internals of the exchange over a directory, shared by members (exchange_file.c) and rank 0
 * (exchange_file_leader.c). The head of exchange_file.c describes the protocol. */
#ifndef TUTTI_BOOTSTRAP_EXCHANGE_FILE_H
#define TUTTI_BOOTSTRAP_EXCHANGE_FILE_H

#include "bootstrap/directory.h"
#include "bootstrap/exchange.h"

#define TUTTI_NOTE_NAME_BYTES 80

/* The body of a join. It identifies the process, so that ranks of the same host can check whether
 * the process lives. It also contains the fingerprint by which ranks seem to be of one job. */
struct tutti_filestore_process {
    uint8_t kernel[16]; /* hash of the kernel's boot id and the pid namespace; zero: not known */
    uint8_t pid[4];
    uint8_t kin[8];     /* tutti_exchange_kin */
};

/* The body of a welcome: the session's number, and the key for the communicator's secret. */
struct tutti_filestore_welcome {
    uint8_t session[8];
    uint8_t key[TUTTI_SECRET_BYTES];
};

struct file_leader;

struct tutti_filestore {
    struct tutti_bootstrap base;
    struct tutti_watch watch; /* only its alarm is used */
    struct tutti_directory dir;
    char *parent;        /* the path given: of `dir`, or of its parent for a named communicator */
    bool is_parent_ours; /* `parent` is above `dir`, and is removed once it is empty */
    char *secret_text;   /* secret and job of the meeting; part of the communicator's secret */
    uint64_t begun_ns;
    uint64_t poll_ns; /* when to look at the directory next */
    uint64_t pace_ns; /* interval until the look after that */

    uint64_t nonce;  /* random number of this process */
    bool has_joined; /* our join is in the directory */
    bool is_in;      /* `session` is known */
    uint64_t session;
    int overwritten; /* how often another process has replaced our join */

    struct tutti_filestore_process self; /* the body of our join */
    bool is_vague;           /* neither a secret nor a launcher identifies the job */
    uint32_t root_pid;       /* of rank 0, once its join was read; 0: unknown, or on another host */
    uint64_t liveness_ns;    /* when to check next whether others live */

    uint32_t round; /* number of rounds that are complete */
    bool is_given; /* our record of this round is in the directory */
    bool is_over;  /* the failure has been announced to the others, or came from them */
    uint64_t conclude_ns; /* after the deadline: when to stop waiting for rank 0; 0: not yet */
    uint8_t *table; /* records of all ranks in this round */
    size_t table_capacity;

    struct file_leader *leader; /* state of rank 0; NULL on other ranks */
};

/* Write the name of a session's note. `what` is "error", "left.3", "0.table" or "0.3", given as a
 * printf format. Returns `name`. */
const char *tutti_filestore_session_name(uint64_t session, char name[TUTTI_NOTE_NAME_BYTES],
                                         const char *what, ...)
    __attribute__((format(printf, 3, 4)));

/* Check whether `name` belongs to a note of this session, or, with `is_other`, to a note of any
 * other session. Returns the part of `name` after the session's number, or NULL if `name` does not
 * belong to such a note. */
const char *tutti_filestore_of_session(uint64_t session, const char *name, bool is_other);

/* Parse the number in "join.3" if `prefix` is "join.". False: `name` does not have this form. */
bool tutti_filestore_number(const char *name, const char *prefix, uint32_t *ret_number);

/* Set the communicator's secret, which is derived from the session's number and key and from the
 * secret text that all ranks share. */
void tutti_filestore_adopt_key(struct tutti_filestore *boot, const uint8_t key[TUTTI_SECRET_BYTES]);

/* Make room for a table of size_bytes. TUTTI_ERR_SYSTEM: there is no memory, and the old table
 * stays valid. */
int tutti_filestore_reserve_table(struct tutti_filestore *boot, size_t size_bytes);

/* True if it is time to check that the other ranks live. In that case the function also sets the
 * time of the next check. These checks are less frequent than looks at the directory. */
bool tutti_filestore_is_liveness_due(struct tutti_filestore *boot);

/* Fill in the body of this process's join. */
void tutti_filestore_name_self(struct tutti_filestore_process *ret_self);

/* Return the pid of a join's process, or 0 if the process does not run under our kernel and in our
 * pid namespace. */
uint32_t tutti_filestore_pid(const struct tutti_filestore *boot,
                             const struct tutti_filestore_process *process);

/* Return false if the process `pid` of this host has ended, even if it is still a zombie. Return
 * true if it lives, or if its state cannot be determined. */
bool tutti_filestore_is_alive(uint32_t pid);

/* ---- rank 0 ---- */

/* Set boot->leader, and choose the session's number and key. TUTTI_ERR_SYSTEM: there is no
 * memory. */
int tutti_filestore_leader_create(struct tutti_filestore *boot);
/* The `allgather` and `describe_missing` of rank 0; see tutti_bootstrap_ops. */
int tutti_filestore_leader_step(struct tutti_filestore *boot, const void *mine, size_t size,
                                void *all);
void tutti_filestore_leader_describe_missing(const struct tutti_filestore *boot, char *ret_text,
                                             size_t size);
/* Write the note that tells all members the reason, unless one has already been written. */
void tutti_filestore_leader_give_up(struct tutti_filestore *boot, const char *reason);
/* Free boot->leader, which may be NULL. */
void tutti_filestore_leader_destroy(struct tutti_filestore *boot);

#endif
