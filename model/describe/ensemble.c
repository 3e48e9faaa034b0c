/* SPDX-License-Identifier: Apache-2.0
 * Writes schedules as text. Lines that all ranks share are written once, before the first rank.
 */
#include "describe/ensemble.h"

#include "base/result.h"
#include "schedule/access.h"
#include "schedule/derive.h"
#include "schedule/text_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The lines that are written once if all ranks share them, and otherwise for each rank. */
enum line { LINE_CHUNKS, LINE_SCRATCH, LINE_WINDOW, LINE_NEEDS, LINE_SIGNALS, LINE_COUNT };

static bool is_same(const struct tutti_schedule *a, const struct tutti_schedule *b, enum line line)
{
    switch (line) {
    case LINE_CHUNKS: return a->chunks_per_block == b->chunks_per_block;
    case LINE_SCRATCH:
        return a->scratch_like == b->scratch_like && a->scratch_chunks == b->scratch_chunks;
    case LINE_WINDOW: return a->window_chunks == b->window_chunks;
    case LINE_NEEDS: return a->needs == b->needs;
    default: return a->nsignals == b->nsignals;
    }
}

/* True if all ranks share the line. */
static bool is_common(const struct tutti_ensemble *ensemble, enum line line)
{
    for (uint32_t rank = 1; rank < ensemble->nranks; rank++)
        if (!is_same(ensemble->schedules[rank], ensemble->schedules[0], line))
            return false;
    return true;
}

/* Writes a line, unless it states the default. */
static void write_line(FILE *file, const struct tutti_schedule *schedule, enum line line,
                       const char *indent)
{
    if (line == LINE_CHUNKS && schedule->chunks_per_block != 1)
        fprintf(file, "%schunks %u\n", indent, schedule->chunks_per_block);
    if (line == LINE_SCRATCH && schedule->scratch_like != TUTTI_SCRATCH_NONE)
        fprintf(file, "%sscratch %s %u\n", indent,
                schedule->scratch_like == TUTTI_SCRATCH_VECTOR ? "vector" : "uniform",
                schedule->scratch_chunks);
    if (line == LINE_WINDOW && schedule->window_chunks > 0)
        fprintf(file, "%swindow %u\n", indent, schedule->window_chunks);
    if (line == LINE_SIGNALS && schedule->nsignals > 0)
        fprintf(file, "%ssignals %u\n", indent, schedule->nsignals);
    if (line != LINE_NEEDS || schedule->needs == 0)
        return;
    fprintf(file, "%sneeds", indent);
    for (unsigned i = 0; tutti_text_need_name(i) != NULL; i++)
        if (schedule->needs & (1u << i))
            fprintf(file, " %s", tutti_text_need_name(i));
    fprintf(file, "\n");
}

static void write_rank(FILE *file, int32_t rank)
{
    if (rank == TUTTI_ALL_RANKS)
        fprintf(file, " all");
    else
        fprintf(file, " %d", rank);
}

static void write_span(FILE *file, const struct tutti_span *span)
{
    fprintf(file, " %s[%u", tutti_buffer_name((enum tutti_buffer)span->buffer), span->first);
    if (span->count != 1)
        fprintf(file, "+%u", span->count);
    fprintf(file, "]");
}

/* Writes a field of a step, unless it states the default. `lists_deps` is true if the text
 * lists dependencies. */
static void write_field(FILE *file, const struct tutti_schedule *schedule, struct tutti_step step,
                        enum tutti_text_field field, bool lists_deps)
{
    const struct tutti_span *span = tutti_text_span(&step, field);
    bool is_there = span != NULL                  ? span->buffer != TUTTI_BUF_NONE
                    : field == TUTTI_TEXT_TO      ? step.to != TUTTI_NO_RANK
                    : field == TUTTI_TEXT_FROM    ? step.from != TUTTI_NO_RANK
                    : field == TUTTI_TEXT_CHANNEL ? step.channel != 0
                    : field == TUTTI_TEXT_QUEUE   ? step.queue != 0
                    : field == TUTTI_TEXT_AMONG   ? step.among_count > 0
                    : field == TUTTI_TEXT_AFTER   ? lists_deps && step.dep_count > 0
                                                  : true;

    if (!is_there)
        return;
    fprintf(file, " %s", tutti_text_field_name(field));
    if (span != NULL)
        write_span(file, span);
    else if (field == TUTTI_TEXT_FROM || field == TUTTI_TEXT_TO)
        write_rank(file, field == TUTTI_TEXT_FROM ? step.from : step.to);
    else if (field != TUTTI_TEXT_AFTER && field != TUTTI_TEXT_AMONG)
        fprintf(file, " %u",
                field == TUTTI_TEXT_SIGNAL  ? step.signal
                : field == TUTTI_TEXT_QUEUE ? step.queue
                                            : step.channel);
    for (uint32_t m = 0; field == TUTTI_TEXT_AMONG && m < step.among_count; m++)
        fprintf(file, " %u", schedule->among[step.among_first + m]);
    for (uint32_t d = 0; field == TUTTI_TEXT_AFTER && d < step.dep_count; d++)
        fprintf(file, " %u", schedule->deps[step.dep_first + d]);
}

/* Finds out whether tutti_schedule_derive gives the same dependencies and the same number of
 * channels. The reader derives them, so the text need not list them then. */
static int find_derived(const struct tutti_schedule *schedule, bool *ret_deps, bool *ret_channels)
{
    struct tutti_schedule own = *schedule; /* with its own steps and dependencies */
    bool is_same_deps;
    int rc;

    own.deps = NULL;
    own.steps = malloc((schedule->nsteps + 1) * sizeof(*own.steps));
    if (own.steps == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to write %u steps", schedule->nsteps);
    if (schedule->nsteps > 0)
        memcpy(own.steps, schedule->steps, schedule->nsteps * sizeof(*own.steps));
    rc = tutti_schedule_derive(&own);
    is_same_deps = rc == TUTTI_OK && own.ndeps == schedule->ndeps;
    for (uint32_t i = 0; is_same_deps && i < own.nsteps; i++)
        is_same_deps = own.steps[i].dep_first == schedule->steps[i].dep_first &&
                       own.steps[i].dep_count == schedule->steps[i].dep_count;
    *ret_deps = is_same_deps && (own.ndeps == 0 || memcmp(own.deps, schedule->deps,
                                                          own.ndeps * sizeof(*own.deps)) == 0);
    *ret_channels = own.nchannels == schedule->nchannels;
    free(own.steps);
    free(own.deps);
    return rc;
}

static int write_schedule(FILE *file, const struct tutti_schedule *schedule,
                          const bool common[LINE_COUNT])
{
    bool derives_deps, derives_channels;

    TUTTI_TRY(find_derived(schedule, &derives_deps, &derives_channels));
    fprintf(file, "\nrank %u\n", schedule->rank);
    for (enum line line = 0; line < LINE_COUNT; line++)
        if (!common[line])
            write_line(file, schedule, line, "  ");
    if (!derives_channels)
        fprintf(file, "  channels %u\n", schedule->nchannels);
    if (!derives_deps)
        fprintf(file, "  dependencies listed\n");
    for (uint32_t i = 0; i < schedule->nsteps; i++) {
        struct tutti_step step = schedule->steps[i];

        fprintf(file, "  %s", tutti_step_name((enum tutti_step_kind)step.kind));
        for (enum tutti_text_field field = 0; field < TUTTI_TEXT_FIELD_COUNT; field++)
            if (tutti_text_fields((enum tutti_step_kind)step.kind) & (1u << field))
                write_field(file, schedule, step, field, !derives_deps);
        fprintf(file, "\n");
    }
    return TUTTI_OK;
}

/* Checks that the schedules belong together and that the name can be written. */
static int check_heads(const struct tutti_ensemble *ensemble)
{
    const struct tutti_schedule *first = ensemble->nranks > 0 ? ensemble->schedules[0] : NULL;

    for (uint32_t rank = 0; rank < ensemble->nranks; rank++) {
        const struct tutti_schedule *own = ensemble->schedules[rank];

        if (own == NULL || own->rank != rank || own->nranks != ensemble->nranks ||
            own->collective != first->collective || own->root != first->root)
            return tutti_fail(TUTTI_ERR_ARGUMENT,
                              "the schedules of %u ranks are not of one collective and root; the "
                              "first that differs is that of rank %u",
                              ensemble->nranks, rank);
    }
    if (first == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "an ensemble without ranks; it needs at least one schedule");
    for (const char *at = ensemble->name; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20 || *at == '#' || *at == 0x7f)
            return tutti_fail(TUTTI_ERR_ARGUMENT,
                              "the name of schedule \"%s\" has a '#' or a control "
                              "character; rename it",
                              ensemble->name);
    return TUTTI_OK;
}

static int write_all(FILE *file, const struct tutti_ensemble *ensemble)
{
    const struct tutti_schedule *first = ensemble->schedules[0];
    enum tutti_collective collective = (enum tutti_collective)first->collective;
    bool common[LINE_COUNT];

    fprintf(file, "tutti-schedule 1\n");
    if (ensemble->name[0] != '\0')
        fprintf(file, "algorithm %s\n", ensemble->name);
    fprintf(file, "collective %s\nranks %u\n", tutti_collective_name(collective), ensemble->nranks);
    if (tutti_collective_has_root(collective) || first->root != 0)
        fprintf(file, "root %u\n", first->root);
    if (ensemble->most_bytes > 0)
        fprintf(file, "bytes %llu %llu\n", (unsigned long long)ensemble->least_bytes,
                (unsigned long long)ensemble->most_bytes);
    for (enum line line = 0; line < LINE_COUNT; line++) {
        common[line] = is_common(ensemble, line);
        if (common[line])
            write_line(file, first, line, "");
    }
    for (uint32_t rank = 0; rank < ensemble->nranks; rank++)
        TUTTI_TRY(write_schedule(file, ensemble->schedules[rank], common));
    return TUTTI_OK;
}

int tutti_describe_ensemble(const struct tutti_ensemble *ensemble, char **ret_text)
{
    char *text = NULL;
    size_t size;
    FILE *file;
    int rc;

    TUTTI_TRY(check_heads(ensemble));
    file = open_memstream(&text, &size);
    if (file == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to write a schedule");
    rc = write_all(file, ensemble);
    if (fclose(file) != 0 && rc == TUTTI_OK)
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory to write a schedule");
    if (rc != TUTTI_OK) {
        free(text);
        return rc;
    }
    *ret_text = text;
    return TUTTI_OK;
}
