/* SPDX-License-Identifier: Apache-2.0
 * Rank 0 of the exchange over a directory. Rank 0 welcomes ranks, collects their records and
 * answers with the table of all records. The head of exchange_file.c describes the protocol. */
#include "bootstrap/exchange_file.h"

#include "base/clock.h"
#include "bootstrap/claim.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The facts that rank 0 has read about one rank. */
struct known {
    uint64_t join_inode; /* of the join last read; usually differs if the join was rewritten */
    uint64_t nonce;      /* of the join that was welcomed; 0: not yet */
    uint32_t pid;        /* if the process is of this host; else 0 */
    bool is_akin;        /* its fingerprint (kin.c) equals that of rank 0 */
    bool has_answered;   /* has written a record in this session */
    bool has_record;     /* its record of the current round has been read */
};

struct file_leader {
    uint8_t key[TUTTI_SECRET_BYTES];
    struct known *known; /* [nranks] */
    int records; /* read in the current round, without rank 0's own */
    size_t size; /* of a record in the current round, in bytes */
    uint64_t complete_ns; /* when the last record of round 0 was read; 0: some are missing */
    int failure; /* 0, or the error after which no round completes */
    char reason[TUTTI_MESSAGE_BYTES];
    uint64_t linger_ns; /* after a failure: until when other ranks are told the reason */
};

static void fail(struct tutti_filestore *boot, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fail the bootstrap and tell all members the reason. Only the first call has an effect. */
static void fail(struct tutti_filestore *boot, int code, const char *format, ...)
{
    struct file_leader *leader = boot->leader;
    struct tutti_note_head head = {.code = code};
    char name[TUTTI_NOTE_NAME_BYTES];
    va_list args;

    if (leader->failure != TUTTI_OK)
        return;
    va_start(args, format);
    vsnprintf(leader->reason, sizeof leader->reason, format, args);
    va_end(args);
    leader->failure = code;
    leader->linger_ns = tutti_now_ns() + TUTTI_EXCHANGE_LINGER_NS;
    head.size = (uint32_t)strlen(leader->reason);
    tutti_directory_put(&boot->dir, tutti_filestore_session_name(boot->session, name, "error"),
                        &head, leader->reason);
    boot->is_over = true;
}

/* Write the ranks that the current round waits for: "rank 2 of 3 has". */
static void name_missing(const struct tutti_filestore *boot, char *ret_text, size_t size)
{
    int nranks = boot->base.nranks;
    bool *is_here = calloc((size_t)nranks, sizeof *is_here);

    snprintf(ret_text, size, "some ranks have");
    if (is_here == NULL)
        return;
    for (int rank = 0; rank < nranks; rank++)
        is_here[rank] = rank == 0 || boot->leader->known[rank].has_record;
    tutti_exchange_name_missing(is_here, nranks, ret_text, size);
    free(is_here);
}

static void fail_missing(struct tutti_filestore *boot)
{
    char missing[256];

    name_missing(boot, missing, sizeof missing);
    fail(boot, TUTTI_ERR_TIMEOUT,
         "%s not %s within %llu ms; check that they %s and see directory %s", missing,
         boot->round == 0 ? "joined" : "gone on",
         (unsigned long long)((tutti_now_ns() - boot->begun_ns) / TUTTI_NS_PER_MS),
         boot->round == 0 ? "were started" : "still run", boot->dir.path);
}

void tutti_filestore_leader_describe_missing(const struct tutti_filestore *boot, char *ret_text,
                                             size_t size)
{
    char missing[256];

    name_missing(boot, missing, sizeof missing);
    snprintf(ret_text, size, "%s not %s in directory %s", missing,
             boot->round == 0 ? "joined" : "gone on", boot->dir.path);
}

static void fail_duplicate(struct tutti_filestore *boot, uint32_t rank)
{
    fail(boot, TUTTI_ERR_USAGE,
         "two ranks of %d claim number %u; give each a number of its own, and each job a directory "
         "of its own",
         boot->base.nranks, rank);
}

/* ---- the notes in the directory -------------------------------------------------------- */

static void put_welcome(struct tutti_filestore *boot, uint32_t rank, uint64_t nonce)
{
    struct tutti_note_head head = {.nonce = nonce, .size = sizeof(struct tutti_filestore_welcome)};
    struct tutti_filestore_welcome welcome;
    char name[TUTTI_NOTE_NAME_BYTES];
    int rc;

    tutti_frame_put_u64(welcome.session, boot->session);
    memcpy(welcome.key, boot->leader->key, sizeof welcome.key);
    snprintf(name, sizeof name, "welcome.%u", rank);
    rc = tutti_directory_put(&boot->dir, name, &head, &welcome);
    sodium_memzero(&welcome, sizeof welcome);
    if (rc < 0)
        fail(boot, rc, "%s", tutti_message_last());
}

/* A join whose rank is not below our nranks may be stale, or may come from a process that was given
 * a larger nranks. Rank 0 welcomes the join, too, so that the process reports its nranks in its
 * record. The welcome in the directory shows whether rank 0 has already done so. */
static void see_surplus_join(struct tutti_filestore *boot, const char *join, uint32_t rank)
{
    struct tutti_note_head asks, given;
    struct tutti_filestore_welcome welcome = {.session = {0}};
    struct tutti_filestore_process process;
    char name[TUTTI_NOTE_NAME_BYTES];

    snprintf(name, sizeof name, "welcome.%u", rank);
    if (tutti_directory_get(&boot->dir, join, &asks, &process, sizeof process) != TUTTI_OK)
        return;
    if (tutti_directory_get(&boot->dir, name, &given, &welcome, sizeof welcome) == TUTTI_OK &&
        given.nonce == asks.nonce &&
        memcmp(welcome.key, boot->leader->key, sizeof welcome.key) == 0)
        return;
    put_welcome(boot, rank, asks.nonce);
}

/* Reads the join of `rank`, and welcomes it if it is new. */
static void see_join(struct tutti_filestore *boot, const char *name, uint32_t rank, uint64_t inode)
{
    struct known *known = &boot->leader->known[rank];
    struct tutti_filestore_process process = {.kernel = {0}};
    struct tutti_note_head head;
    uint32_t pid;

    /* A new join may have the inode of the one it replaces. So during round 0 each join is read
     * every time; later that would only cost time. */
    if ((boot->round > 0 && known->join_inode == inode) ||
        tutti_directory_get(&boot->dir, name, &head, &process, sizeof process) != TUTTI_OK)
        return;
    known->join_inode = inode;
    if (rank == 0) {
        if (head.nonce != boot->nonce)
            fail_duplicate(boot, 0);
        return;
    }
    if (head.nonce == known->nonce)
        return;
    pid = tutti_filestore_pid(boot, &process);
    if (pid != 0 && !tutti_filestore_is_alive(pid)) {
        /* An earlier run has left this join, so no process will write it again. */
        if (!known->has_answered)
            tutti_directory_remove(&boot->dir, name);
        return;
    }
    if (known->has_answered)
        fail_duplicate(boot, rank); /* and welcome the new process, so that it reads the error */
    known->nonce = head.nonce;
    known->pid = pid;
    known->is_akin = memcmp(process.kin, boot->self.kin, sizeof process.kin) == 0;
    put_welcome(boot, rank, head.nonce);
}

/* Takes the record of `rank` in the current round. */
static void see_record(struct tutti_filestore *boot, const char *name, uint32_t rank)
{
    struct file_leader *leader = boot->leader;
    uint32_t nranks = (uint32_t)boot->base.nranks;
    uint8_t record[TUTTI_BOOTSTRAP_RECORD_MAX];
    struct tutti_note_head head;

    if (rank == 0 || (rank < nranks && leader->known[rank].has_record) ||
        tutti_directory_get(&boot->dir, name, &head, record, sizeof record) != TUTTI_OK)
        return;
    if (head.nranks != nranks || rank >= nranks) {
        fail(boot, TUTTI_ERR_USAGE,
             "ranks disagree on nranks: rank 0 says %u, rank %u says %u; start all with one value",
             nranks, rank, head.nranks);
    } else if (head.nonce != leader->known[rank].nonce) {
        fail_duplicate(boot, rank);
    } else if (head.size != leader->size) {
        fail(boot, TUTTI_ERR_USAGE,
             "ranks disagree on the record of round %u: rank 0 gives %zu bytes, rank %u %u; use "
             "one version and one configuration on all ranks",
             boot->round, leader->size, rank, head.size);
    } else {
        memcpy(boot->table + rank * leader->size, record, leader->size);
        leader->known[rank].has_answered = leader->known[rank].has_record = true;
        leader->records++;
    }
}

/* Fails, because `rank` has given up. */
static void see_left(struct tutti_filestore *boot, const char *name, uint32_t rank)
{
    char text[TUTTI_MESSAGE_BYTES / 2 + 1];
    struct tutti_note_head head;

    if (tutti_directory_get(&boot->dir, name, &head, text, sizeof text - 1) != TUTTI_OK)
        return;
    tutti_message_clean(text, head.size);
    text[head.size] = '\0';
    if (head.code == TUTTI_ERR_TIMEOUT)
        fail_missing(boot);
    else
        fail(boot, TUTTI_ERR_REMOTE, "rank %u of %d gave up: %s", rank, boot->base.nranks, text);
}

/* Handles one note of the directory by its name. */
static void see(void *context, const char *name, uint64_t inode)
{
    struct tutti_filestore *boot = context;
    const char *what = tutti_filestore_of_session(boot->session, name, false);
    char due[16];
    uint32_t rank;

    snprintf(due, sizeof due, "%u.", boot->round);
    if (tutti_filestore_number(name, "join.", &rank)) {
        if (rank < (uint32_t)boot->base.nranks)
            see_join(boot, name, rank, inode);
        else if (boot->round == 0)
            see_surplus_join(boot, name, rank);
    } else if (what != NULL && tutti_filestore_number(what, due, &rank)) {
        see_record(boot, name, rank);
    } else if (what != NULL && tutti_filestore_number(what, "left.", &rank)) {
        see_left(boot, name, rank);
    }
}

/* Fail if a rank of this host has ended. Ranks that have given a record are checked, too, since
 * they must wait for the answer while records of others are missing. */
static void look_for_dead(struct tutti_filestore *boot)
{
    if (!tutti_filestore_is_liveness_due(boot))
        return;
    for (int rank = 1; rank < boot->base.nranks; rank++) {
        const struct known *known = &boot->leader->known[rank];

        if (known->pid == 0 || tutti_filestore_is_alive(known->pid))
            continue;
        /* The rank may have written its reason since the last look at the directory. */
        (void)tutti_directory_visit(&boot->dir, see, boot);
        fail(boot, TUTTI_ERR_REMOTE,
             "rank %d of %d (process %u) ended while the communicator was formed", rank,
             boot->base.nranks, known->pid);
    }
}

/* All ranks are now in this session and wait for the answer. So notes of other sessions, and drafts
 * of notes, are left over from earlier runs. */
static void remove_leftovers(void *context, const char *name, uint64_t inode)
{
    struct tutti_filestore *boot = context;
    uint32_t rank;

    (void)inode;
    if (strncmp(name, "draft.", 6) == 0 ||
        tutti_filestore_of_session(boot->session, name, true) != NULL ||
        (tutti_filestore_number(name, "join.", &rank) && rank >= (uint32_t)boot->base.nranks) ||
        (tutti_filestore_number(name, "welcome.", &rank) && rank >= (uint32_t)boot->base.nranks))
        tutti_directory_remove(&boot->dir, name);
}

/* ---- a round ----------------------------------------------------------------------------- */

/* Ends the round: writes the table of all records, and fills in `all`. */
static int answer(struct tutti_filestore *boot, void *all)
{
    struct file_leader *leader = boot->leader;
    size_t table_bytes = leader->size * (size_t)boot->base.nranks;
    struct tutti_note_head head = {.nonce = boot->nonce, .nranks = (uint32_t)boot->base.nranks,
                                   .size = (uint32_t)table_bytes};
    char name[TUTTI_NOTE_NAME_BYTES];

    if (boot->round == 0)
        TUTTI_TRY(tutti_directory_visit(&boot->dir, remove_leftovers, boot));
    else /* a rank that has given a record of this round has read the last table */
        tutti_directory_remove(&boot->dir,
                               tutti_filestore_session_name(boot->session, name, "%u.table",
                                                            boot->round - 1));
    if (boot->base.nranks > 1)
        TUTTI_TRY(tutti_directory_put(
            &boot->dir, tutti_filestore_session_name(boot->session, name, "%u.table", boot->round),
            &head, boot->table));
    if (table_bytes > 0)
        memcpy(all, boot->table, table_bytes);
    for (int rank = 0; rank < boot->base.nranks; rank++)
        leader->known[rank].has_record = false;
    leader->records = 0;
    boot->round++;
    boot->is_given = false;
    return TUTTI_OK;
}

/* True if some rank does not look akin to rank 0, so that it may belong to another job. */
static bool is_mixed(const struct tutti_filestore *boot)
{
    bool are_akin = true;

    if (!boot->is_vague || boot->round > 0)
        return false;
    for (int rank = 1; rank < boot->base.nranks; rank++)
        are_akin = are_akin && boot->leader->known[rank].is_akin;
    return !are_akin;
}

/* All records are here. TUTTI_AGAIN: rank 0 waits for other processes that claim the same ranks. */
static int settle(struct tutti_filestore *boot)
{
    if (!is_mixed(boot))
        return TUTTI_OK;
    if (tutti_now_ns() < boot->leader->complete_ns + TUTTI_EXCHANGE_DOUBT_NS)
        return TUTTI_AGAIN;
    if (tutti_claim_has_rival(boot->base.claim, boot->begun_ns))
        fail(boot, TUTTI_ERR_USAGE, TUTTI_EXCHANGE_RIVAL, boot->dir.path);
    return boot->leader->failure;
}

int tutti_filestore_leader_step(struct tutti_filestore *boot, const void *mine, size_t size,
                                void *all)
{
    struct file_leader *leader = boot->leader;
    int rc;

    if (!boot->is_given) {
        TUTTI_TRY(tutti_filestore_reserve_table(boot, size * (size_t)boot->base.nranks));
        leader->size = size;
        if (size > 0)
            memcpy(boot->table, mine, size);
        boot->is_given = true;
    }
    TUTTI_TRY(tutti_directory_visit(&boot->dir, see, boot));
    if (leader->complete_ns == 0 && leader->records == boot->base.nranks - 1)
        leader->complete_ns = tutti_now_ns();
    if (leader->failure == TUTTI_OK && leader->records == boot->base.nranks - 1 &&
        settle(boot) == TUTTI_OK) {
        rc = answer(boot, all);
        if (rc == TUTTI_OK)
            return rc;
        fail(boot, rc, "%s", tutti_message_last());
    }
    if (leader->failure == TUTTI_OK)
        look_for_dead(boot);
    if (leader->failure == TUTTI_OK && tutti_now_ns() >= boot->base.deadline_ns)
        fail_missing(boot);
    if (leader->failure == TUTTI_OK)
        return TUTTI_AGAIN;
    /* Ranks that disagree may have yet to join. So stay for a while to admit them and to tell them
     * the reason. */
    if (leader->failure == TUTTI_ERR_USAGE && tutti_now_ns() < leader->linger_ns)
        return TUTTI_AGAIN;
    return tutti_fail(leader->failure, "%s", leader->reason);
}

void tutti_filestore_leader_give_up(struct tutti_filestore *boot, const char *reason)
{
    fail(boot, TUTTI_ERR_REMOTE, "rank 0 of %d gave up: %.*s", boot->base.nranks,
         TUTTI_MESSAGE_BYTES / 2, reason);
}

int tutti_filestore_leader_create(struct tutti_filestore *boot)
{
    struct file_leader *leader = calloc(1, sizeof *leader);

    if (leader != NULL)
        leader->known = calloc((size_t)boot->base.nranks, sizeof *leader->known);
    if (leader == NULL || leader->known == NULL) {
        free(leader);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %d ranks", boot->base.nranks);
    }
    tutti_random_bytes(&boot->session, sizeof boot->session);
    tutti_random_bytes(leader->key, sizeof leader->key);
    boot->leader = leader;
    boot->is_in = true;
    tutti_filestore_adopt_key(boot, leader->key);
    return TUTTI_OK;
}

void tutti_filestore_leader_destroy(struct tutti_filestore *boot)
{
    if (boot->leader == NULL)
        return;
    free(boot->leader->known);
    sodium_memzero(boot->leader, sizeof *boot->leader);
    free(boot->leader);
    boot->leader = NULL;
}
