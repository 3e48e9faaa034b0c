/* SPDX-License-Identifier: Apache-2.0
 * The cache of plans and programs. Both are made at first need and kept, because the same calls
 * repeat. Programs are in a direct-mapped table: if two calls have the same entry, the program of
 * the later call replaces that of the earlier one. Plans are in a list. */
#include "comm/comm.h"

#include "base/hot.h"
#include "tuner/builtin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 7, ENTRIES = 1 << BITS };

struct plan_entry {
    struct tutti_choice choice;
    int root;
    struct tutti_plan *plan;
    struct plan_entry *next;
};

struct entry {
    struct tutti_calls_key key;
    const struct tutti_choice *trial; /* the choice that was measured; NULL: the tuner chose */
    struct tutti_program *program; /* NULL: free */
    struct tutti_call *vector;     /* a copy of a v-form, whose counts are part of the key */
};

/* The kinds of log lines about choices. */
enum { TOLD_CHOICE, TOLD_LENT, TOLD_FILE, TOLD_COUNT };

struct tutti_cache {
    struct entry entries[ENTRIES];
    struct plan_entry *plans;
    size_t plan_bytes;   /* heap memory of all plans */
    uint64_t generation; /* grows whenever a program is dropped */
    /* Sizes whose algorithm has been logged, one bit for each power of two. */
    uint64_t logged_sizes[TOLD_COUNT][TUTTI_COLLECTIVE_COUNT];
};

int tutti_cache_create(struct tutti_cache **ret_cache)
{
    *ret_cache = calloc(1, sizeof **ret_cache);
    if (*ret_cache != NULL)
        (*ret_cache)->generation = 1;
    return *ret_cache ? TUTTI_OK : tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a schedule cache");
}

static void free_entry(struct entry *entry)
{
    tutti_program_destroy(entry->program);
    if (entry->vector != NULL)
        tutti_call_fini(entry->vector);
    free(entry->vector);
    *entry = (struct entry){.program = NULL};
}

void tutti_cache_forget(struct tutti_cache *cache)
{
    for (size_t i = 0; i < ENTRIES; i++)
        free_entry(&cache->entries[i]);
    cache->generation++;
    while (cache->plans != NULL) {
        struct plan_entry *next = cache->plans->next;

        tutti_plan_destroy(cache->plans->plan);
        free(cache->plans);
        cache->plans = next;
    }
    cache->plan_bytes = 0;
}

void tutti_cache_destroy(struct tutti_cache *cache)
{
    if (cache == NULL)
        return;
    tutti_cache_forget(cache);
    free(cache);
}

size_t tutti_cache_bytes(const struct tutti_cache *cache)
{
    size_t bytes = sizeof *cache + cache->plan_bytes;

    for (size_t i = 0; i < ENTRIES; i++)
        if (cache->entries[i].program != NULL)
            bytes += tutti_program_bytes(cache->entries[i].program);
    return bytes;
}

/* ---- counts of v-forms ------------------------------------------------------------- */

/* The key of a v-form has only a hash of its counts, so the counts are compared, too. */
static bool same_counts(const struct entry *entry, const struct tutti_call *call, uint32_t nranks)
{
    return !tutti_call_is_vector(call) || tutti_call_same_counts(entry->vector, call, (int)nranks);
}

static int keep_counts(struct entry *entry, const struct tutti_call *call, uint32_t nranks)
{
    if (!tutti_call_is_vector(call))
        return TUTTI_OK;
    entry->vector = calloc(1, sizeof *entry->vector);
    if (entry->vector == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the counts of %u ranks", nranks);
    return tutti_call_copy(call, (int)nranks, entry->vector);
}

/* ---- making ------------------------------------------------------------------------- */

static bool same_choice(const struct tutti_choice *a, const struct tutti_choice *b)
{
    return a->algorithm == b->algorithm && a->protocol == b->protocol &&
           memcmp(&a->options, &b->options, sizeof a->options) == 0;
}

/* Returns about the size of a plan with its schedule. Per step, a plan has up to three indices. */
static size_t plan_bytes(const struct tutti_schedule *schedule)
{
    return schedule->nsteps * (sizeof(struct tutti_step) + 3 * sizeof(uint32_t)) +
           (schedule->ndeps + schedule->namong) * sizeof(uint32_t);
}

int tutti_cache_plan(const struct tutti_comm *comm, struct tutti_cache *cache,
                     const struct tutti_choice *choice, int root,
                     const struct tutti_cache_site *site, const struct tutti_plan **ret_plan)
{
    struct tutti_shape shape = {.nranks = (uint32_t)comm->nranks, .rank = (uint32_t)comm->rank,
                                .root = (uint32_t)root, .options = choice->options,
                                .places = site->places, .channels = site->channels};
    struct tutti_schedule *schedule;
    struct plan_entry *entry;
    int rc;

    for (entry = cache->plans; entry != NULL; entry = entry->next)
        if (entry->root == root && same_choice(&entry->choice, choice)) {
            *ret_plan = entry->plan;
            return TUTTI_OK;
        }
    entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a plan");
    TUTTI_TRY_OR(fail, rc, tutti_algorithm_schedule(choice->algorithm, &shape, &schedule));
    TUTTI_TRY_OR(fail, rc, tutti_plan_create(schedule, &entry->plan));
    entry->choice = *choice;
    entry->root = root;
    entry->next = cache->plans;
    cache->plans = entry;
    cache->plan_bytes += sizeof *entry + plan_bytes(schedule);
    *ret_plan = entry->plan;
    return TUTTI_OK;

fail:
    free(entry);
    return rc;
}

/* Returns the size of the call for the tuner: the bytes of a block, or the mean over all blocks of
 * a v-form. */
static size_t block_bytes(const struct tutti_call *call, uint32_t nranks)
{
    const size_t *counts = call->output_counts ? call->output_counts : call->input_counts;
    size_t total = 0;

    /* Choices must be the same on all ranks. If counts are by pair, no rank knows all of them. So
     * choices do not depend on the size. A v-form of tuttiCommExplain has no counts, and
     * call->count is their mean. */
    if (tutti_call_has_pairs(call))
        return 0;
    if (counts == NULL)
        return call->count * tutti_type_size(call->type);
    for (uint32_t rank = 0; rank < nranks; rank++)
        total += counts[rank];
    return total / nranks * tutti_type_size(call->type);
}

static const char *name_authority(enum tutti_authority by)
{
    switch (by) {
    case TUTTI_BY_VARIABLE: return "TUTTI_ALGORITHM";
    case TUTTI_BY_RULE: return "the rules of TUTTI_TUNE";
    case TUTTI_BY_TABLE: return "the measured table";
    case TUTTI_BY_PRICE: return "the lowest price";
    default: return "the built-in table";
    }
}

static bool is_new_size(struct tutti_cache *cache, int told, const struct tutti_tuner_query *query)
{
    return tutti_call_is_new_size(&cache->logged_sizes[told][query->collective],
                                  query->block_bytes);
}

/* Called once per kind of call. Logs the algorithm with all of its options. */
static void report_choice(const struct tutti_comm *comm, const struct tutti_tuner_query *query,
                          const struct tutti_choice *choice, const char *by)
{
    char text[256];
    int at = snprintf(text, sizeof text, "%s", choice->algorithm->name);

    for (int i = 0; i < TUTTI_OPTION_COUNT; i++)
        if (choice->options.value[i] != 0 && (size_t)at < sizeof text)
            at += snprintf(text + at, sizeof text - (size_t)at, " %s=%u",
                           tutti_option_name((enum tutti_option)i), choice->options.value[i]);
    tutti_comm_report_choice(
        comm, query, text, by,
        is_new_size(comm->cache, query->is_lent ? TOLD_LENT : TOLD_CHOICE, query));
}

/* Logs a choice that the tuner has made, and why no schedule file served the call. */
static void report_chosen(const struct tutti_comm *comm, const struct tutti_tuner_query *query,
                          const struct tutti_choice *choice, enum tutti_authority by)
{
    char refusal[640], text[700];

    snprintf(text, sizeof text, "%s", name_authority(by));
    if (tutti_schedules_refusal(comm->schedules, &comm->view, query, refusal, sizeof refusal))
        snprintf(text, sizeof text, "%s, since %s", name_authority(by), refusal);
    report_choice(comm, query, choice, text);
}

/* The sizes below which the extra round that asks for lent buffers costs more than it saves. If
 * ranks outnumber cores, each round also costs context switches. */
#define LEAST_LENT_BYTES ((size_t)64 << 10)
#define CROWDED_LEAST_LENT_BYTES ((size_t)128 << 10)

static size_t least_lent_bytes(const struct tutti_tuner_view *view)
{
    bool is_crowded = view->machine != NULL && view->machine->cores > 0 &&
                      view->nranks > view->machine->cores;

    return is_crowded ? CROWDED_LEAST_LENT_BYTES : LEAST_LENT_BYTES;
}

/* True if a two-sided run of the call stages the same buffers as a run on mapped buffers. This is
 * so if nothing is scaled, and no sums are kept in a wider type. */
static bool stage_alike(const struct tutti_call *call, const struct tutti_tuner_query *query)
{
    return !query->is_scaled && !call->is_average &&
           (query->widening == 1 || !tutti_collective_reduces(call->collective));
}

bool tutti_cache_lent_choice(const struct tutti_comm *comm, const struct tutti_call *call,
                             struct tutti_tuner_query *query, const struct tutti_choice *choice,
                             struct tutti_choice *ret_lent)
{
    struct tutti_choice lent;

    query->is_lent = true;
    if (query->is_vector || tutti_tuner_bytes(&comm->view, query) < least_lent_bytes(&comm->view) ||
        !tutti_builtin_find(&comm->view, query, true, &lent) ||
        tutti_algorithm_options(lent.algorithm, &lent.options, &lent.options) != TUTTI_OK)
        return false;
    /* An algorithm without needs exchanges messages, and has no use for lent memory. */
    if (same_choice(choice, &lent) || lent.algorithm->needs == 0 ||
        (choice->algorithm->needs == 0 && !stage_alike(call, query)))
        return false;
    *ret_lent = lent;
    return true;
}

/* Schedules on hosts have one channel, TUTTI_CHANNEL_COLLECTIVE of the fabric. */
static struct tutti_cache_site host_site(const struct tutti_comm *comm)
{
    return (struct tutti_cache_site){.places = &comm->places, .channels = 1};
}

/* Adds to `program` the program that replaces it if all ranks lend each other the call's buffers.
 * Both programs stage the same data. */
static int make_lent_program(struct tutti_comm *comm, const struct tutti_call *call,
                             struct tutti_tuner_query *query, const struct tutti_choice *choice,
                             struct tutti_program *program)
{
    const struct tutti_cache_site site = host_site(comm);
    struct tutti_choice lent;
    struct tutti_program *made;
    const struct tutti_plan *plan;

    if (!tutti_cache_lent_choice(comm, call, query, choice, &lent))
        return TUTTI_OK;
    TUTTI_TRY(tutti_cache_plan(comm, comm->cache, &lent, call->root, &site, &plan));
    report_choice(comm, query, &lent, name_authority(TUTTI_BY_HOST));
    TUTTI_TRY(tutti_program_create(plan, call, comm->rank, comm->view.half_bytes, &made));
    tutti_program_set_lent(program, made);
    return TUTTI_OK;
}

struct tutti_tuner_query tutti_cache_query(const struct tutti_comm *comm,
                                           const struct tutti_call *call)
{
    return (struct tutti_tuner_query){
        .collective = call->collective,
        .is_vector = tutti_call_is_vector(call),
        .root = (uint32_t)call->root,
        .block_bytes = block_bytes(call, (uint32_t)comm->nranks),
        .is_scaled = call->is_premultiplied,
        .widening = tutti_type_is_narrow_float(call->type)
                        ? (uint32_t)(sizeof(float) / tutti_type_size(call->type)) : 1,
    };
}

/* Returns the plan of a schedule file that serves the call; NULL: none does. A trial measures
 * another choice, whatever files there are. */
static const struct tutti_plan *find_scheduled(struct tutti_comm *comm,
                                               const struct tutti_tuner_query *query)
{
    const struct tutti_plan *plan =
        comm->trial != NULL ? NULL : tutti_schedules_find(comm->schedules, &comm->view, query);

    if (plan != NULL)
        tutti_comm_report_choice(comm, query, tutti_schedules_file(comm->schedules, plan),
                                 "TUTTI_SCHEDULE", is_new_size(comm->cache, TOLD_FILE, query));
    return plan;
}

/* Chooses the algorithm of a call. *ret_is_prescribed is true if it is a trial, or if the user has
 * named it. */
static int choose(struct tutti_comm *comm, const struct tutti_tuner_query *query,
                  struct tutti_choice *ret_choice, bool *ret_is_prescribed)
{
    enum tutti_authority by;

    *ret_is_prescribed = true;
    if (comm->trial != NULL) {
        *ret_choice = *comm->trial;
        return TUTTI_OK;
    }
    TUTTI_TRY(tutti_tuner_choose(&comm->view, query, ret_choice, &by));
    *ret_is_prescribed = by < TUTTI_BY_TABLE; /* the user's words come before all tables */
    report_chosen(comm, query, ret_choice, by);
    return TUTTI_OK;
}

/* Makes the program of a call that is not in the cache. */
static int make_program(struct tutti_comm *comm, const struct tutti_call *call,
                        struct tutti_program **ret_program)
{
    struct tutti_tuner_query query = tutti_cache_query(comm, call);
    const struct tutti_cache_site site = host_site(comm);
    const struct tutti_plan *plan = find_scheduled(comm, &query);
    struct tutti_program *program;
    struct tutti_choice choice;
    bool is_prescribed;
    int rc;

    if (plan != NULL)
        return tutti_program_create(plan, call, comm->rank, comm->view.half_bytes, ret_program);
    TUTTI_TRY(choose(comm, &query, &choice, &is_prescribed));
    TUTTI_TRY(tutti_cache_plan(comm, comm->cache, &choice, call->root, &site, &plan));
    TUTTI_TRY(tutti_program_create(plan, call, comm->rank, comm->view.half_bytes, &program));
    /* A prescribed algorithm is used for lent memory too. */
    if (comm->engine.lend != NULL && !is_prescribed) {
        rc = make_lent_program(comm, call, &query, &choice, program);
        if (rc != TUTTI_OK) {
            tutti_program_destroy(program);
            return rc;
        }
    }
    *ret_program = program;
    return TUTTI_OK;
}

/* Mixes comm->trial into the key, so that choices that are measured in turn have separate entries
 * and do not drop each other's programs. */
static struct entry *entry_of(const struct tutti_comm *comm, const struct tutti_calls_key *key)
{
    struct tutti_calls_key mixed = *key;

    mixed.count ^= (uint64_t)(uintptr_t)comm->trial;
    return &comm->cache->entries[tutti_calls_key_hash(&mixed, BITS)];
}

int tutti_cache_program(struct tutti_comm *comm, const struct tutti_call *call,
                        const struct tutti_program **ret_program)
{
    uint32_t nranks = (uint32_t)comm->nranks;
    /* Of in-place calls, only swaps have a program of their own. */
    struct tutti_calls_key key = tutti_calls_key_of(call, comm->nranks, tutti_call_is_swap(call));
    struct entry *entry = entry_of(comm, &key);
    struct entry fresh = {.key = key, .trial = comm->trial};
    int rc;

    if (entry->program != NULL && tutti_calls_key_equal(&entry->key, &key) &&
        entry->trial == comm->trial && same_counts(entry, call, nranks)) {
        *ret_program = entry->program;
        return TUTTI_OK;
    }
    TUTTI_TRY_OR(fail, rc, keep_counts(&fresh, call, nranks));
    TUTTI_TRY_OR(fail, rc, make_program(comm, call, &fresh.program));
    comm->cache->generation += entry->program != NULL;
    free_entry(entry);
    *entry = fresh;
    *ret_program = entry->program;
    return TUTTI_OK;

fail:
    free_entry(&fresh);
    return rc;
}

TUTTI_HOT
int tutti_cache_recall(struct tutti_comm *comm, const struct tutti_call *call,
                       struct tutti_calls_recalled *found)
{
    if (found->generation == comm->cache->generation)
        return TUTTI_OK;
    TUTTI_TRY(tutti_cache_program(comm, call, &found->program));
    found->generation = comm->cache->generation;
    return TUTTI_OK;
}
