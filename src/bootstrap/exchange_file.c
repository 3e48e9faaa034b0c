/* SPDX-License-Identifier: Apache-2.0
 * The exchange over a directory that all ranks can access.
 *
 * Ranks write notes (directory.h) for each other. These are their names and contents:
 *
 *   join.R             rank R is here; contains a new random nonce of R, and its process
 *   welcome.R          rank 0 answers: R's nonce, the session's number and key
 *   sS.K.R             record of rank R in round K of session S
 *   sS.K.table         rank 0 answers with all records
 *   sS.left.R          rank R gives up; contains the reason
 *   sS.error           rank 0 gives up; contains the reason
 *
 * Notes of an earlier run cannot be mistaken for those of this one. Rank 0 chooses the session's
 * number S at random, and a member accepts a welcome only if it repeats the member's own nonce.
 * Rank 0 may welcome a stale join, but no process answers that welcome. The living member's join
 * replaces the stale one and is welcomed in turn. A member that finds its join overwritten writes
 * the join again. If two processes claim one rank, its join therefore changes after that rank has
 * already written a record. Rank 0 sees this change and tells all ranks. Once all ranks have
 * written a record, no rank can still be in an older session, so rank 0 removes the notes of older
 * sessions.
 *
 * A join stays until its rank leaves, and the last rank to leave removes the session's notes. Ranks
 * do not prove their identity here. They are trusted because they can write to the directory, which
 * must not be writable by everybody. Only their user can read the notes. The death of a rank of the
 * same host is noticed within about 100 ms, and the death of any other rank at the deadline.
 *
 * A communicator with a name is formed in a subdirectory of its own, so that several may be formed
 * at once. Rank 0 claims the directory (claim.h), so that the directory serves one job of a host at
 * a time.
 */
#include "bootstrap/exchange_file.h"

#include "base/clock.h"
#include "bootstrap/claim.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The time between two looks at the directory: at first, and at most. */
#define PACE_FIRST_NS (1 * TUTTI_NS_PER_MS)
#define PACE_MOST_NS (20 * TUTTI_NS_PER_MS)

/* Hexadecimal digits of a session's number in the name of a note. */
enum { SESSION_DIGITS = 16 };

static struct tutti_filestore *file_of(struct tutti_bootstrap *boot)
{
    return (struct tutti_filestore *)boot;
}

/* ---- names ------------------------------------------------------------------------ */

const char *tutti_filestore_session_name(uint64_t session, char name[TUTTI_NOTE_NAME_BYTES],
                                         const char *what, ...)
{
    int length = snprintf(name, TUTTI_NOTE_NAME_BYTES, "s%0*" PRIx64 ".", SESSION_DIGITS, session);
    va_list args;

    va_start(args, what);
    vsnprintf(name + length, (size_t)(TUTTI_NOTE_NAME_BYTES - length), what, args);
    va_end(args);
    return name;
}

const char *tutti_filestore_of_session(uint64_t session, const char *name, bool is_other)
{
    char prefix[TUTTI_NOTE_NAME_BYTES];
    size_t length = strlen(tutti_filestore_session_name(session, prefix, "%s", ""));

    if (strncmp(name, prefix, length) == 0)
        return is_other ? NULL : name + length;
    if (!is_other || name[0] != 's' || strspn(name + 1, "0123456789abcdef") != SESSION_DIGITS ||
        name[1 + SESSION_DIGITS] != '.')
        return NULL;
    return name + length;
}

bool tutti_filestore_number(const char *name, const char *prefix, uint32_t *ret_number)
{
    size_t length = strlen(prefix);
    unsigned long number;
    char *end;

    if (strncmp(name, prefix, length) != 0 || name[length] < '0' || name[length] > '9')
        return false;
    number = strtoul(name + length, &end, 10);
    if (*end != '\0' || number > INT32_MAX)
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

static const char *numbered(char name[TUTTI_NOTE_NAME_BYTES], const char *prefix, int number)
{
    snprintf(name, TUTTI_NOTE_NAME_BYTES, "%s%d", prefix, number);
    return name;
}

void tutti_filestore_adopt_key(struct tutti_filestore *boot, const uint8_t key[TUTTI_SECRET_BYTES])
{
    tutti_secret_derive(key, boot->secret_text, boot->session, boot->base.secret);
}

int tutti_filestore_reserve_table(struct tutti_filestore *boot, size_t size_bytes)
{
    uint8_t *table;

    if (size_bytes <= boot->table_capacity)
        return TUTTI_OK;
    table = size_bytes <= UINT32_MAX ? realloc(boot->table, size_bytes) : NULL;
    if (table == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a table of %zu bytes", size_bytes);
    boot->table = table;
    boot->table_capacity = size_bytes;
    return TUTTI_OK;
}

/* ---- a member ----------------------------------------------------------------------- */

static int put_join(struct tutti_filestore *boot)
{
    struct tutti_note_head head = {.nonce = boot->nonce, .nranks = (uint32_t)boot->base.nranks,
                                   .size = sizeof boot->self};
    char name[TUTTI_NOTE_NAME_BYTES];

    return tutti_directory_put(&boot->dir, numbered(name, "join.", boot->base.rank), &head,
                               &boot->self);
}

static uint64_t elapsed_ms(const struct tutti_filestore *boot)
{
    return (tutti_now_ns() - boot->begun_ns) / TUTTI_NS_PER_MS;
}

static int fail_unwelcome(const struct tutti_filestore *boot)
{
    if (boot->overwritten > 0)
        return tutti_fail(TUTTI_ERR_USAGE,
                          "another process claims rank %d of %d in directory %s; give each rank a "
                          "number of its own",
                          boot->base.rank, boot->base.nranks, boot->dir.path);
    return tutti_fail(TUTTI_ERR_TIMEOUT,
                      "rank 0 of %d has not appeared in directory %s within %llu ms; check that "
                      "it was started and sees this directory",
                      boot->base.nranks, boot->dir.path, (unsigned long long)elapsed_ms(boot));
}

static bool read_welcome(struct tutti_filestore *boot, uint32_t rank,
                         struct tutti_note_head *ret_head,
                         struct tutti_filestore_welcome *ret_welcome)
{
    char name[TUTTI_NOTE_NAME_BYTES];

    return tutti_directory_get(&boot->dir, numbered(name, "welcome.", (int)rank), ret_head,
                               ret_welcome, sizeof *ret_welcome) == TUTTI_OK &&
           ret_head->size == sizeof *ret_welcome;
}

/* Look for the welcome, and write this rank's join again if it is missing or overwritten. TUTTI_OK:
 * rank 0 has welcomed this rank. */
static int seek_welcome(struct tutti_filestore *boot)
{
    struct tutti_filestore_welcome welcome;
    struct tutti_filestore_process process;
    struct tutti_note_head head;
    char name[TUTTI_NOTE_NAME_BYTES];
    int rc;

    if (read_welcome(boot, (uint32_t)boot->base.rank, &head, &welcome) &&
        head.nonce == boot->nonce) {
        boot->session = tutti_frame_get_u64(welcome.session);
        tutti_filestore_adopt_key(boot, welcome.key);
        sodium_memzero(&welcome, sizeof welcome);
        boot->is_in = true;
        return TUTTI_OK;
    }

    rc = tutti_directory_get(&boot->dir, numbered(name, "join.", boot->base.rank), &head,
                             &process, sizeof process);
    if (rc < 0)
        return rc;
    if (rc == TUTTI_AGAIN || head.nonce != boot->nonce) {
        boot->overwritten += rc == TUTTI_OK;
        TUTTI_TRY(put_join(boot));
    }
    return tutti_now_ns() >= boot->base.deadline_ns ? fail_unwelcome(boot) : TUTTI_AGAIN;
}

static int give_record(struct tutti_filestore *boot, const void *mine, size_t size)
{
    struct tutti_note_head head = {.nonce = boot->nonce, .nranks = (uint32_t)boot->base.nranks,
                                   .size = (uint32_t)size};
    char name[TUTTI_NOTE_NAME_BYTES];

    tutti_filestore_session_name(boot->session, name, "%u.%d", boot->round, boot->base.rank);
    TUTTI_TRY(tutti_directory_put(&boot->dir, name, &head, mine));
    boot->is_given = true;
    return TUTTI_OK;
}

/* Tells rank 0 that this rank gives up. */
static void put_left(struct tutti_filestore *boot, int code, const char *reason)
{
    struct tutti_note_head head = {.nonce = boot->nonce, .code = code,
                                   .size = (uint32_t)strnlen(reason, TUTTI_MESSAGE_BYTES / 2)};
    char name[TUTTI_NOTE_NAME_BYTES];

    tutti_filestore_session_name(boot->session, name, "left.%d", boot->base.rank);
    tutti_directory_put(&boot->dir, name, &head, reason);
    boot->is_over = true;
}

/* Fail if rank 0 has given up. TUTTI_AGAIN: rank 0 has not given up. */
static int look_for_error(struct tutti_filestore *boot)
{
    char name[TUTTI_NOTE_NAME_BYTES], text[TUTTI_MESSAGE_BYTES];
    struct tutti_note_head head;

    if (tutti_directory_get(&boot->dir, tutti_filestore_session_name(boot->session, name, "error"),
                            &head, text, sizeof text - 1) != TUTTI_OK)
        return TUTTI_AGAIN;
    tutti_message_clean(text, head.size);
    text[head.size] = '\0';
    boot->is_over = true;
    return tutti_fail(head.code == TUTTI_ERR_USAGE || head.code == TUTTI_ERR_TIMEOUT
                          ? head.code
                          : TUTTI_ERR_REMOTE,
                      "%s", text);
}

/* Fail if rank 0 has died. TUTTI_AGAIN: rank 0 lives, as far as this rank knows. */
static int look_for_root(struct tutti_filestore *boot)
{
    struct tutti_filestore_process process;
    struct tutti_note_head head;

    if (!tutti_filestore_is_liveness_due(boot))
        return TUTTI_AGAIN;
    if (boot->root_pid == 0 &&
        tutti_directory_get(&boot->dir, "join.0", &head, &process, sizeof process) == TUTTI_OK &&
        head.size == sizeof process)
        boot->root_pid = tutti_filestore_pid(boot, &process);
    if (boot->root_pid == 0 || tutti_filestore_is_alive(boot->root_pid))
        return TUTTI_AGAIN;
    boot->is_over = true;
    return tutti_fail(TUTTI_ERR_REMOTE,
                      "rank 0 of %d (process %u) ended while the communicator was formed in "
                      "directory %s",
                      boot->base.nranks, boot->root_pid, boot->dir.path);
}

/* When this rank's deadline has passed, wait for the error of rank 0 for a short time, because rank
 * 0 knows which ranks are missing. */
static int conclude(struct tutti_filestore *boot)
{
    uint64_t now_ns = tutti_now_ns();

    if (now_ns < boot->base.deadline_ns)
        return TUTTI_AGAIN;
    if (boot->conclude_ns == 0) {
        boot->conclude_ns = now_ns + TUTTI_EXCHANGE_LINGER_NS;
        put_left(boot, TUTTI_ERR_TIMEOUT, "its deadline has passed");
    }
    if (now_ns < boot->conclude_ns)
        return TUTTI_AGAIN;
    return tutti_fail(TUTTI_ERR_TIMEOUT,
                      "rank 0 has not answered rank %d of %d in directory %s within %llu ms",
                      boot->base.rank, boot->base.nranks, boot->dir.path,
                      (unsigned long long)elapsed_ms(boot));
}

/* The `allgather` of ranks other than 0. */
static int member_step(struct tutti_filestore *boot, const void *mine, size_t size, void *all)
{
    size_t table_bytes = size * (size_t)boot->base.nranks;
    char name[TUTTI_NOTE_NAME_BYTES];
    struct tutti_note_head head;
    int rc;

    if (!boot->is_in)
        TUTTI_TRY(seek_welcome(boot));
    if (!boot->is_given)
        TUTTI_TRY(give_record(boot, mine, size));
    TUTTI_TRY(tutti_filestore_reserve_table(boot, table_bytes));

    tutti_filestore_session_name(boot->session, name, "%u.table", boot->round);
    rc = tutti_directory_get(&boot->dir, name, &head, boot->table, table_bytes);
    if (rc == TUTTI_AGAIN)
        rc = look_for_error(boot);
    if (rc == TUTTI_AGAIN)
        rc = look_for_root(boot);
    if (rc == TUTTI_AGAIN)
        rc = conclude(boot);
    TUTTI_TRY(rc);
    if (head.size != table_bytes)
        return tutti_fail(TUTTI_ERR_REMOTE, "%s/%s has %u bytes where %zu are due", boot->dir.path,
                          name, head.size, table_bytes);

    if (table_bytes > 0)
        memcpy(all, boot->table, table_bytes);
    tutti_directory_remove(&boot->dir, tutti_filestore_session_name(boot->session, name, "%u.%d",
                                                                    boot->round, boot->base.rank));
    boot->round++;
    boot->is_given = false;
    return TUTTI_OK;
}

/* ---- both ----------------------------------------------------------------------------- */

/* True if it is time to read the directory again, no matter how often the caller calls. */
static bool is_time_to_look(struct tutti_filestore *boot)
{
    return tutti_now_ns() >= boot->poll_ns;
}

/* Sets the time of the next look. The pauses grow, and end at the deadline. */
static void look_again_later(struct tutti_filestore *boot)
{
    uint64_t now_ns = tutti_now_ns();
    uint64_t wake_ns = now_ns + boot->pace_ns;

    if (now_ns < boot->base.deadline_ns && boot->base.deadline_ns < wake_ns)
        wake_ns = boot->base.deadline_ns;
    boot->poll_ns = wake_ns;
    boot->pace_ns += boot->pace_ns / 2;
    if (boot->pace_ns > PACE_MOST_NS)
        boot->pace_ns = PACE_MOST_NS;
    tutti_watch_alarm(&boot->watch, wake_ns);
}

static int file_allgather(struct tutti_bootstrap *base, const void *mine, size_t size, void *all)
{
    struct tutti_filestore *boot = file_of(base);
    int rc;

    TUTTI_TRY(tutti_exchange_check_size(size));
    if (!is_time_to_look(boot))
        return TUTTI_AGAIN;
    rc = boot->leader != NULL ? tutti_filestore_leader_step(boot, mine, size, all)
                              : member_step(boot, mine, size, all);
    if (rc == TUTTI_AGAIN) {
        look_again_later(boot);
    } else {
        boot->pace_ns = PACE_FIRST_NS;
        boot->poll_ns = 0;
    }
    return rc;
}

static int file_wait_fd(struct tutti_bootstrap *base)
{
    return file_of(base)->watch.epoll_fd;
}

static bool file_describe_missing(struct tutti_bootstrap *base, char *ret_text, size_t size)
{
    const struct tutti_filestore *boot = file_of(base);

    if (boot->leader != NULL)
        tutti_filestore_leader_describe_missing(boot, ret_text, size);
    else if (boot->is_in)
        snprintf(ret_text, size, "rank 0 in directory %s has this rank's record and waits for "
                 "other ranks", boot->dir.path);
    else
        snprintf(ret_text, size, "rank 0 has not appeared in directory %s", boot->dir.path);
    return boot->leader != NULL || !boot->is_in;
}

/* ---- leaving ---------------------------------------------------------------------------- */

struct leaving {
    struct tutti_filestore *boot;
    bool is_alone; /* no other rank has a join in the directory */
};

static void note_join(void *context, const char *name, uint64_t inode)
{
    struct leaving *leaving = context;
    uint32_t rank;

    (void)inode;
    if (tutti_filestore_number(name, "join.", &rank) && rank < (uint32_t)leaving->boot->base.nranks)
        leaving->is_alone = false;
}

/* Removes a note of this session. */
static void sweep(void *context, const char *name, uint64_t inode)
{
    struct tutti_filestore *boot = context;
    struct tutti_filestore_welcome welcome;
    struct tutti_note_head head;
    uint32_t rank;

    (void)inode;
    if (tutti_filestore_of_session(boot->session, name, false) != NULL)
        tutti_directory_remove(&boot->dir, name);
    /* The next communicator may have begun already, so leave its welcomes. */
    if (tutti_filestore_number(name, "welcome.", &rank) &&
        read_welcome(boot, rank, &head, &welcome) &&
        tutti_frame_get_u64(welcome.session) == boot->session)
        tutti_directory_remove(&boot->dir, name);
}

/* Removes this rank's join and, if no other rank is left, the notes of the session and the
 * directories. */
static void leave(struct tutti_filestore *boot)
{
    struct leaving leaving = {.boot = boot, .is_alone = true};
    char name[TUTTI_NOTE_NAME_BYTES];

    tutti_directory_remove(&boot->dir, numbered(name, "join.", boot->base.rank));
    if (tutti_directory_visit(&boot->dir, note_join, &leaving) != TUTTI_OK || !leaving.is_alone)
        return;
    if (boot->is_in)
        tutti_directory_visit(&boot->dir, sweep, boot);
    /* rmdir fails if the directory is not empty, for example if it contains a join for the next
     * communicator, whose ranks will then remove it. */
    if (boot->dir.is_ours)
        rmdir(boot->dir.path);
    if (boot->is_parent_ours)
        rmdir(boot->parent);
}

static void file_destroy(struct tutti_bootstrap *base, const char *reason)
{
    struct tutti_filestore *boot = file_of(base);

    if (boot == NULL)
        return;
    if (boot->has_joined) {
        if (reason != NULL && boot->is_in && !boot->is_over) {
            if (boot->leader != NULL)
                tutti_filestore_leader_give_up(boot, reason);
            else
                put_left(boot, TUTTI_ERR_REMOTE, reason);
        }
        leave(boot);
    }
    tutti_directory_close(&boot->dir);
    tutti_claim_release(boot->base.claim);
    tutti_filestore_leader_destroy(boot);
    tutti_watch_fini(&boot->watch);
    if (boot->secret_text != NULL)
        sodium_memzero(boot->secret_text, strlen(boot->secret_text));
    free(boot->secret_text);
    free(boot->parent);
    free(boot->table);
    sodium_memzero(boot, sizeof *boot);
    free(boot);
}

static const struct tutti_bootstrap_ops file_ops = {
    .name = "file",
    .allgather = file_allgather,
    .wait_fd = file_wait_fd,
    .describe_missing = file_describe_missing,
    .destroy = file_destroy,
};

/* Open the directory or, for a communicator with a name, the subdirectory of that name. */
static int open_directory(struct tutti_filestore *boot, const char *name, bool is_private)
{
    struct tutti_directory parent;
    uint8_t hash[TUTTI_SECRET_BYTES];
    char path[sizeof parent.path];
    int length;

    tutti_directory_close(&boot->dir);
    if (*name == '\0')
        return tutti_directory_open(boot->parent, is_private, &boot->dir);
    TUTTI_TRY(tutti_directory_open(boot->parent, is_private, &parent));
    tutti_directory_close(&parent);
    boot->is_parent_ours = parent.is_ours;
    tutti_secret_from_text(name, hash);
    length = snprintf(path, sizeof path, "%s/formed-%02x%02x%02x%02x%02x%02x%02x%02x", boot->parent,
                      hash[0], hash[1], hash[2], hash[3], hash[4], hash[5], hash[6], hash[7]);
    if (length >= (int)sizeof path)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "the path of directory %.64s... is too long",
                          boot->parent);
    return tutti_directory_open(path, is_private, &boot->dir);
}

/* Rank 0 claims the directory, so that the directory serves one job of this host at a time. The key
 * is the inode number, because several paths may lead to the directory. The claim keeps the
 * directory open, so that the inode number is not reused if the directory is removed. */
static int claim_directory(struct tutti_filestore *boot)
{
    int fd = open(boot->parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat info;
    char key[64];

    if (fd < 0 || fstat(fd, &info) != 0) {
        if (fd >= 0)
            close(fd);
        return TUTTI_OK;
    }
    snprintf(key, sizeof key, "file %llu %llu", (unsigned long long)info.st_dev,
             (unsigned long long)info.st_ino);
    return tutti_claim_take(key, boot->parent, fd, &boot->base.claim);
}

/* Open the directory and write our join into it. Between the two steps, ranks of the previous
 * communicator may remove the directory. In that case the loop makes the directory again. */
static int enter(struct tutti_filestore *boot, const char *name, bool is_private)
{
    enum { TRIES = 8 };
    int rc = TUTTI_ERR_SYSTEM;

    for (int i = 0; i < TRIES && rc != TUTTI_OK; i++) {
        rc = open_directory(boot, name, is_private);
        if (rc == TUTTI_OK && boot->base.rank == 0 && boot->base.claim == NULL)
            TUTTI_TRY(claim_directory(boot));
        if (rc == TUTTI_OK)
            rc = put_join(boot);
        boot->has_joined = boot->has_joined || rc == TUTTI_OK;
        /* Errors that do not come from the removal of a directory are final. */
        if (boot->dir.fd < 0 && access(boot->parent, F_OK) == 0)
            return rc;
        if (rc != TUTTI_OK && boot->dir.fd >= 0 && !tutti_directory_is_removed(&boot->dir))
            return rc;
    }
    return rc;
}

/* The part of tutti_exchange_file that may fail. */
static int begin(struct tutti_filestore *boot, const struct tutti_meeting *meeting)
{
    const char *secret = tutti_meeting_text(meeting->secret);
    const char *job = tutti_meeting_text(meeting->job);

    boot->parent = strdup(meeting->store + strlen("file:"));
    if (boot->parent == NULL || asprintf(&boot->secret_text, "%s\n%s", secret, job) < 0) {
        boot->secret_text = NULL;
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a bootstrap");
    }
    boot->is_vague = *secret == '\0' && *job == '\0';
    TUTTI_TRY(tutti_watch_init(&boot->watch));
    if (boot->base.rank == 0)
        TUTTI_TRY(tutti_filestore_leader_create(boot));
    return enter(boot, tutti_meeting_text(meeting->name), *secret == '\0');
}

int tutti_exchange_file(const struct tutti_meeting *meeting, int nranks, int rank,
                        uint64_t deadline_ns, struct tutti_bootstrap **ret_boot)
{
    struct tutti_filestore *boot = calloc(1, sizeof *boot);
    int rc;

    if (boot == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a bootstrap");
    boot->base = (struct tutti_bootstrap){
        .ops = &file_ops, .nranks = nranks, .rank = rank, .deadline_ns = deadline_ns};
    boot->watch = (struct tutti_watch){.epoll_fd = -1, .timer_fd = -1};
    boot->dir.fd = -1;
    boot->begun_ns = tutti_now_ns();
    boot->pace_ns = PACE_FIRST_NS;
    tutti_random_bytes(&boot->nonce, sizeof boot->nonce);
    tutti_filestore_name_self(&boot->self);
    rc = begin(boot, meeting);
    if (rc != TUTTI_OK) {
        file_destroy(&boot->base, NULL);
        return rc;
    }
    *ret_boot = &boot->base;
    return TUTTI_OK;
}
