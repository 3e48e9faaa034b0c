/* SPDX-License-Identifier: Apache-2.0
 * Reads TUTTI_SCHEDULE and the schedule files that it names, shares them with the other ranks, and
 * finds the schedule for a call. */
#include "comm/schedules.h"

#include "base/file.h"
#include "base/log.h"
#include "base/param.h"
#include "base/result.h"
#include "base/sizes.h"
#include "schedule/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tutti_schedules {
    struct tutti_plan *plan;
    char *path; /* of the file; owned */
    uint64_t least_bytes, most_bytes; /* of a rank's larger buffer */
    struct tutti_schedules *next;
};

/* One entry of TUTTI_SCHEDULE, between two colons. */
struct entry {
    char text[512]; /* verbatim, for messages and for the other ranks */
    const char *path;
    int collective; /* -1: not given */
    bool has_limits;
    uint64_t least_bytes, most_bytes;
};

/* ---- the variable -------------------------------------------------------------------------- */

/* Reads a size such as "64K" at *at, and moves *at behind it. If *at has no digit, the size is
 * `fallback`. Returns false if the size is malformed. */
static bool read_size(const char **at, uint64_t fallback, uint64_t *ret_size)
{
    *ret_size = fallback;
    return **at < '0' || **at > '9' || tutti_size_read(at, *at + strlen(*at), ret_size);
}

/* Reads "=" or "[64K-1M]=", which follows the name of a collective. TUTTI_ERR_USAGE, without a
 * message: the text is neither. */
static int read_limits(const char *at, struct entry *entry)
{
    entry->has_limits = *at == '[';
    if (entry->has_limits) {
        at++;
        if (!read_size(&at, 0, &entry->least_bytes) || *at++ != '-' ||
            !read_size(&at, UINT64_MAX, &entry->most_bytes) || *at++ != ']' ||
            entry->least_bytes > entry->most_bytes)
            return TUTTI_ERR_USAGE;
    }
    return *at == '=' ? TUTTI_OK : TUTTI_ERR_USAGE;
}

/* Reads one entry of the variable. ret_entry->path points into the entry itself, so the entry must
 * not be copied. */
static int read_entry(const char *text, size_t length, struct entry *ret_entry)
{
    struct entry entry = {.collective = -1};
    const char *equals;

    if (length == 0 || length >= sizeof entry.text)
        return tutti_fail(TUTTI_ERR_USAGE,
                          "TUTTI_SCHEDULE: an entry of %zu characters; write FILE or "
                          "collective[64K-1M]=FILE, separated by ':'",
                          length);
    memcpy(entry.text, text, length);
    entry.text[length] = '\0';
    *ret_entry = entry;
    ret_entry->path = ret_entry->text;
    equals = strchr(ret_entry->text, '=');
    if (equals == NULL || memchr(ret_entry->text, '/', (size_t)(equals - ret_entry->text)) != NULL)
        return TUTTI_OK;
    for (int i = 0; i < TUTTI_COLLECTIVE_COUNT; i++) {
        size_t size = strlen(tutti_collective_name(i));

        if (strncmp(ret_entry->text, tutti_collective_name(i), size) == 0 &&
            read_limits(ret_entry->text + size, ret_entry) == TUTTI_OK)
            ret_entry->collective = i;
    }
    ret_entry->path = equals + 1;
    if (ret_entry->collective < 0 || equals[1] == '\0')
        return tutti_fail(TUTTI_ERR_USAGE,
                          "TUTTI_SCHEDULE: \"%s\" is not collective=FILE or "
                          "collective[64K-1M]=FILE",
                          ret_entry->text);
    return TUTTI_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int read_file(const char *path, size_t most_bytes, char **ret_text, size_t *ret_size_bytes)
{
    switch (tutti_file_load(path, most_bytes, ret_text, ret_size_bytes)) {
    case TUTTI_FILE_NOT_OPENED:
        return tutti_fail(TUTTI_ERR_USAGE, "TUTTI_SCHEDULE: cannot open %s: %s", path,
                          strerror(errno));
    case TUTTI_FILE_NOT_READ:
        return tutti_fail(TUTTI_ERR_USAGE, "TUTTI_SCHEDULE: cannot read %s: %s", path,
                          strerror(errno));
    case TUTTI_FILE_TOO_LONG:
        return tutti_fail(TUTTI_ERR_USAGE, "TUTTI_SCHEDULE: %s has more than %zu bytes", path,
                          most_bytes);
    case TUTTI_FILE_NO_MEMORY: return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to read %s", path);
    default: return TUTTI_OK;
    }
}

/* Takes this rank's schedule out of an ensemble that has as many ranks as the communicator. */
static int keep(struct tutti_ensemble *ensemble, const struct entry *entry, uint32_t rank,
                struct tutti_schedules **list)
{
    struct tutti_schedules *schedules, **end = list;
    struct tutti_schedule *own = ensemble->schedules[rank];

    for (uint32_t other = 0; other < ensemble->nranks; other++)
        if (ensemble->schedules[other]->nchannels > 1)
            return tutti_fail(TUTTI_ERR_USAGE,
                              "TUTTI_SCHEDULE: %s uses channel 1, and collectives "
                              "run on channel 0; leave the channels out",
                              entry->path);
    if (entry->collective >= 0 && own->collective != entry->collective)
        return tutti_fail(
            TUTTI_ERR_USAGE, "TUTTI_SCHEDULE: \"%s\", but the file is for %s; name that collective",
            entry->text, tutti_collective_name((enum tutti_collective)own->collective));
    schedules = calloc(1, sizeof *schedules);
    if (schedules == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the schedule of %s", entry->path);
    schedules->least_bytes = entry->has_limits ? entry->least_bytes : ensemble->least_bytes;
    schedules->most_bytes = entry->has_limits ? entry->most_bytes : ensemble->most_bytes;
    if (!entry->has_limits && ensemble->most_bytes == 0)
        schedules->most_bytes = UINT64_MAX;
    schedules->path = strdup(entry->path);
    if (schedules->path == NULL) {
        free(schedules);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the name of %s", entry->path);
    }
    ensemble->schedules[rank] = NULL; /* tutti_plan_create takes it, also on failure */
    if (tutti_plan_create(own, &schedules->plan) != TUTTI_OK) {
        free(schedules->path);
        free(schedules);
        return TUTTI_ERR_SYSTEM;
    }
    while (*end != NULL)
        end = &(*end)->next;
    *end = schedules;
    return TUTTI_OK;
}

static int load(const struct entry *entry, const char *text, size_t size_bytes, uint32_t nranks,
                uint32_t rank, struct tutti_schedules **list)
{
    struct tutti_ensemble ensemble;
    int rc = tutti_ensemble_load(entry->path, text, size_bytes, &ensemble);

    if (rc == TUTTI_ERR_ARGUMENT)
        rc = TUTTI_ERR_USAGE;
    TUTTI_TRY(rc);
    if (ensemble.nranks == nranks)
        rc = keep(&ensemble, entry, rank, list);
    else
        tutti_log(TUTTI_LOG_INFO, "%s is for %u ranks, and this communicator has %u: not used",
                  entry->path, ensemble.nranks, nranks);
    tutti_ensemble_fini(&ensemble);
    return rc;
}

/* ---- sharing --------------------------------------------------------------------------------- */

/* Bytes of the shared item. Each entry has three parts, and a zero byte ends each part: the text of
 * the entry, the size of its file in decimal, and the file. */
struct parcel {
    char *bytes;
    size_t size;
};

static int append(struct parcel *parcel, const char *bytes, size_t size)
{
    char *grown = realloc(parcel->bytes, parcel->size + size + 1);

    if (grown == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu bytes of schedules",
                          parcel->size + size);
    memcpy(grown + parcel->size, bytes, size);
    grown[parcel->size + size] = '\0';
    parcel->bytes = grown;
    parcel->size += size + 1;
    return TUTTI_OK;
}

/* Reads the entry `text` and its file, adds the schedule of rank 0 to `list`, and appends both
 * texts to `parcel`. */
static int read_one(const char *text, size_t length, struct parcel *parcel, uint32_t nranks,
                    struct tutti_schedules **list)
{
    struct entry entry;
    char *file, number[24];
    size_t size;
    int rc;

    TUTTI_TRY(read_entry(text, length, &entry));
    TUTTI_TRY(read_file(entry.path, TUTTI_SHARE_ITEM_MAX - parcel->size, &file, &size));
    snprintf(number, sizeof number, "%zu", size);
    TUTTI_TRY_OR(release, rc, load(&entry, file, size, nranks, 0, list));
    TUTTI_TRY_OR(release, rc, append(parcel, entry.text, strlen(entry.text)));
    TUTTI_TRY_OR(release, rc, append(parcel, number, strlen(number)));
    TUTTI_TRY_OR(release, rc, append(parcel, file, size));

release:
    free(file);
    return rc;
}

int tutti_schedules_read(struct tutti_share *share, uint32_t nranks,
                         struct tutti_schedules **ret_schedules)
{
    const char *at = tutti_param_text(TUTTI_PARAM_SCHEDULE);
    struct tutti_schedules *list = NULL;
    struct parcel parcel = {.bytes = NULL};
    int rc = TUTTI_OK;

    while (rc == TUTTI_OK && *at != '\0') {
        size_t length = strcspn(at, ":");

        rc = read_one(at, length, &parcel, nranks, &list);
        at += length + (at[length] == ':');
    }
    rc = rc != TUTTI_OK
             ? rc
             : tutti_share_offer(share, TUTTI_SHARE_SCHEDULES, parcel.bytes, parcel.size);
    free(parcel.bytes);
    if (rc != TUTTI_OK) {
        tutti_schedules_destroy(list);
        return rc;
    }
    *ret_schedules = list;
    return TUTTI_OK;
}

int tutti_schedules_take(const struct tutti_share *share, uint32_t nranks, uint32_t rank,
                         struct tutti_schedules **ret_schedules)
{
    struct tutti_schedules *list = NULL;
    size_t size;
    const char *at = tutti_share_bytes(share, TUTTI_SHARE_SCHEDULES, &size);
    const char *end = at != NULL ? at + size : NULL;
    int rc = TUTTI_OK;

    while (rc == TUTTI_OK && at != NULL && at < end) {
        const char *text = at, *number = text + strlen(text) + 1, *file;
        struct entry entry;
        size_t file_bytes;

        file = number < end ? number + strlen(number) + 1 : end;
        file_bytes = number < end ? strtoul(number, NULL, 10) : 0;
        if (file > end || file_bytes >= (size_t)(end - file) || file[file_bytes] != '\0') {
            rc = tutti_fail(TUTTI_ERR_REMOTE, "rank 0 shares schedules that are cut off; use one "
                                              "version of the library on all ranks");
            break;
        }
        rc = read_entry(text, strlen(text), &entry);
        rc = rc != TUTTI_OK ? rc : load(&entry, file, file_bytes, nranks, rank, &list);
        at = file + file_bytes + 1;
    }
    if (rc != TUTTI_OK) {
        tutti_schedules_destroy(list);
        return rc;
    }
    *ret_schedules = list;
    return TUTTI_OK;
}

/* ---- using ----------------------------------------------------------------------------------- */

void tutti_schedules_destroy(struct tutti_schedules *schedules)
{
    while (schedules != NULL) {
        struct tutti_schedules *next = schedules->next;

        tutti_plan_destroy(schedules->plan);
        free(schedules->path);
        free(schedules);
        schedules = next;
    }
}

/* True if the ranks can carry out the steps of the schedule. */
static bool can_run(const struct tutti_schedule *schedule, const struct tutti_tuner_view *view,
                    const struct tutti_tuner_query *query)
{
    const struct tutti_algorithm as_if = {.collective = query->collective,
                                          .needs = schedule->needs};

    return tutti_tuner_can_serve(view, query, &as_if);
}

static bool is_other_root(const struct tutti_schedule *schedule,
                          const struct tutti_tuner_query *query)
{
    return tutti_collective_has_root(query->collective) && schedule->root != query->root;
}

const struct tutti_plan *tutti_schedules_find(const struct tutti_schedules *schedules,
                                              const struct tutti_tuner_view *view,
                                              const struct tutti_tuner_query *query)
{
    uint64_t bytes = tutti_tuner_bytes(view, query);

    for (; schedules != NULL && !query->is_vector; schedules = schedules->next) {
        const struct tutti_schedule *schedule = schedules->plan->schedule;

        if (schedule->collective == query->collective && !is_other_root(schedule, query) &&
            bytes >= schedules->least_bytes && bytes <= schedules->most_bytes &&
            can_run(schedule, view, query))
            return schedules->plan;
    }
    return NULL;
}

const char *tutti_schedules_file(const struct tutti_schedules *schedules,
                                 const struct tutti_plan *plan)
{
    while (schedules->plan != plan)
        schedules = schedules->next;
    return schedules->path;
}

bool tutti_schedules_refusal(const struct tutti_schedules *schedules,
                             const struct tutti_tuner_view *view,
                             const struct tutti_tuner_query *query, char *text, size_t size)
{
    unsigned long long bytes = tutti_tuner_bytes(view, query), least, most;
    const struct tutti_schedule *schedule;

    while (schedules != NULL && schedules->plan->schedule->collective != query->collective)
        schedules = schedules->next;
    if (schedules == NULL || tutti_schedules_find(schedules, view, query) != NULL)
        return false;
    schedule = schedules->plan->schedule;
    least = schedules->least_bytes;
    most = schedules->most_bytes;
    if (query->is_vector)
        snprintf(text, size, "%s serves no v-form", schedules->path);
    else if (is_other_root(schedule, query))
        snprintf(text, size, "%s is for root %u, not %u", schedules->path, schedule->root,
                 query->root);
    else if (bytes < least)
        snprintf(text, size, "%s serves buffers from %llu bytes on, not of %llu", schedules->path,
                 least, bytes);
    else if (bytes > most)
        snprintf(text, size, "%s serves buffers up to %llu bytes, not of %llu", schedules->path,
                 most, bytes);
    else
        snprintf(text, size, "%s uses memory that these ranks do not share", schedules->path);
    return true;
}

size_t tutti_schedules_bytes(const struct tutti_schedules *schedules)
{
    size_t bytes = 0;

    for (; schedules != NULL; schedules = schedules->next) {
        const struct tutti_schedule *schedule = schedules->plan->schedule;

        /* The plan adds about three indices for each step. */
        bytes += sizeof *schedules +
                 schedule->nsteps * (sizeof(struct tutti_step) + 3 * sizeof(uint32_t)) +
                 (schedule->ndeps + schedule->namong) * sizeof(uint32_t);
    }
    return bytes;
}
