/* SPDX-License-Identifier: Apache-2.0
 * Inside the exchange over a directory: what members (exchange_file.c) and rank 0
 * (exchange_file_leader.c) share. The protocol is told at the head of exchange_file.c. */
#ifndef TUTTI_BOOTSTRAP_EXCHANGE_FILE_H
#define TUTTI_BOOTSTRAP_EXCHANGE_FILE_H

#include "bootstrap/directory.h"
#include "bootstrap/exchange.h"

#define TUTTI_NOTE_NAME_BYTES 80

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
    char *secret_text;
    uint64_t begun_ns;
    uint64_t poll_ns; /* when to look at the directory next */
    uint64_t pace_ns; /* and how long after that again */

    uint64_t nonce;
    bool is_in; /* the session is known */
    uint64_t session;
    int overwritten; /* how often another process has taken our number */

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

/* ---- rank 0 ---- */

int tutti_file_leader_create(struct file_boot *boot);
int tutti_file_leader_step(struct file_boot *boot, const void *mine, size_t size, void *all);
void tutti_file_leader_give_up(struct file_boot *boot, const char *reason);
void tutti_file_leader_destroy(struct file_boot *boot);

#endif
