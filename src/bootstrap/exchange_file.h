/* SPDX-License-Identifier: Apache-2.0
 * Inside the exchange over a directory: what members (exchange_file.c) and rank 0
 * (exchange_file_leader.c) share. The protocol is told at the head of exchange_file.c. */
#ifndef TUTTI_BOOTSTRAP_EXCHANGE_FILE_H
#define TUTTI_BOOTSTRAP_EXCHANGE_FILE_H

#include "bootstrap/directory.h"
#include "bootstrap/exchange.h"

#define TUTTI_NOTE_NAME_BYTES 80

/* The body of a join: which process it is, for those who can look whether it lives, and which ranks
 * seem to be of one job, at a place that does not tell. */
struct file_process {
    uint8_t kernel[16]; /* names the running kernel and the namespace of its process numbers */
    uint8_t pid[4];
    uint8_t kin[8];
};

/* The body of a welcome. */
struct file_welcome {
    uint8_t session[8];
    uint8_t key[TUTTI_SECRET_BYTES];
};

struct file_leader;

struct file_boot {
    struct tutti_bootstrap base;
    struct tutti_watch watch; /* only its alarm */
    struct tutti_directory dir;
    char *parent;        /* the path that we were given; the directory, or the one above it */
    bool is_parent_ours; /* it is above ours, and goes when nothing is in it any more */
    char *secret_text;
    uint64_t begun_ns;
    uint64_t poll_ns; /* when to look at the directory next */
    uint64_t pace_ns; /* and how long after that again */

    uint64_t nonce;
    bool has_joined; /* our join stands in the directory */
    bool is_in; /* the session is known */
    uint64_t session;
    int overwritten; /* how often another process has taken our number */

    struct file_process self;
    bool is_vague; /* neither a secret nor a launcher tells the job */
    uint32_t root_pid;       /* of rank 0, once its join was read; 0: unknown, or not of our host */
    uint64_t liveness_ns;    /* when to look next whether others live */

    uint32_t round;
    bool is_given; /* our part of this round is in the directory */
    bool is_over;  /* the failure is known to the others */
    uint64_t conclude_ns;
    uint8_t *table;
    size_t table_capacity;

    struct file_leader *leader; /* of rank 0 */
};

/* The note of a session named by `what`: "error", "left.3", "0.table", "0.3". */
const char *tutti_file_session_name(uint64_t session, char name[TUTTI_NOTE_NAME_BYTES],
                                    const char *what, ...) __attribute__((format(printf, 3, 4)));

/* Is `name` of this session? Then what follows the session's number, else NULL. With `is_other`:
 * of any other session. */
const char *tutti_file_of_session(uint64_t session, const char *name, bool is_other);

/* The number in "join.3" when `prefix` is "join."; false when it is something else. */
bool tutti_file_number(const char *name, const char *prefix, uint32_t *ret_number);

/* The communicator's secret, from the session's key and the text that ranks share. */
void tutti_file_adopt_key(struct file_boot *boot, const uint8_t key[TUTTI_SECRET_BYTES]);

/* Room for a table; on failure the old one stays. */
int tutti_file_reserve_table(struct file_boot *boot, size_t size_bytes);

/* True when it is time to check that the other ranks live. This is due less often than a look at
 * the directory. */
bool tutti_file_is_liveness_due(struct file_boot *boot);

/* What this process writes into its join. */
void tutti_file_name_self(struct file_process *ret_self);

/* The process of a join, if it is of our kernel and our namespace; else 0. */
uint32_t tutti_file_pid(const struct file_boot *boot, const struct file_process *process);

/* False only if that process of ours has ended. */
bool tutti_file_is_alive(uint32_t pid);

/* ---- rank 0 ---- */

int tutti_file_leader_create(struct file_boot *boot);
int tutti_file_leader_step(struct file_boot *boot, const void *mine, size_t size, void *all);
void tutti_file_leader_describe_missing(const struct file_boot *boot, char *ret_text, size_t size);
void tutti_file_leader_give_up(struct file_boot *boot, const char *reason);
void tutti_file_leader_destroy(struct file_boot *boot);

#endif
