/* SPDX-License-Identifier: Apache-2.0
 * Writes Tutti's algorithms as MSCCL programs in the most scattered form: a threadblock for each
 * step, and a flag for each dependency. After reading them again they must still be right, send as
 * much, and sum in the same order. */
#include "base/result.h"
#include "import/load.h"
#include "schedule/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_STEPS = 1000, MOST_RANKS = 13, MOST_DEPS = 64 };

/* The last step before `at` that sends, or receives, in the same lane; of local steps, any local.
 */
static uint32_t find_before(const struct tutti_schedule *schedule, uint32_t at, bool is_send)
{
    const struct tutti_step *step = &schedule->steps[at];
    int32_t peer = is_send ? step->to : step->from;

    for (uint32_t i = at; i-- > 0;) {
        const struct tutti_step *other = &schedule->steps[i];
        bool is_local = step->to < 0 && step->from < 0;

        if (is_local ? other->to < 0 && other->from < 0
                     : peer >= 0 && (is_send ? other->to : other->from) == peer &&
                           other->channel == step->channel)
            return i;
    }
    return UINT32_MAX;
}

static uint32_t list_waits(const struct tutti_schedule *schedule, uint32_t at,
                           uint32_t waits[MOST_DEPS])
{
    const struct tutti_step *step = &schedule->steps[at];
    uint32_t count = 0;

    assert_true(step->dep_count < MOST_DEPS - 2);
    for (uint32_t d = 0; d < step->dep_count; d++)
        waits[count++] = schedule->deps[step->dep_first + d];
    for (int is_send = 0; is_send < 2; is_send++) {
        uint32_t before = find_before(schedule, at, is_send);

        if (before != UINT32_MAX)
            waits[count++] = before;
    }
    return count;
}

static void write_span(FILE *file, const char *name, const char *offset,
                       const struct tutti_span *span)
{
    static const char buffers[TUTTI_BUF_COUNT] = {'i', 'i', 'o', 's', 'x'};

    fprintf(file, " %s='%c' %s='%d'", name, buffers[span->buffer], offset,
            span->buffer == TUTTI_BUF_NONE ? -1 : (int)span->first);
}

static void write_step(FILE *file, const struct tutti_schedule *schedule, uint32_t at)
{
    static const char *const types[TUTTI_STEP_KIND_COUNT] = {
        [TUTTI_STEP_SEND] = "s", [TUTTI_STEP_RECV] = "r", [TUTTI_STEP_RECV_REDUCE] = "rrc",
        [TUTTI_STEP_COPY] = "cpy", [TUTTI_STEP_REDUCE] = "re",
        [TUTTI_STEP_RECV_COPY_SEND] = "rcs", [TUTTI_STEP_RECV_REDUCE_SEND] = "rrs",
        [TUTTI_STEP_RECV_REDUCE_COPY_SEND] = "rrcs"};
    const struct tutti_step *step = &schedule->steps[at];
    uint32_t waits[MOST_DEPS], nwaits = list_waits(schedule, at, waits), ignored[MOST_DEPS];

    fprintf(file, "<tb id='%u' send='%d' recv='%d' chan='%u'>", at, step->to, step->from,
            step->channel);
    for (uint32_t w = 0; w < nwaits; w++)
        fprintf(file, "<step s='%u' type='nop' cnt='0' depid='%u' deps='%u' hasdep='0'/>", w,
                waits[w], list_waits(schedule, waits[w], ignored));
    fprintf(file, "<step s='%u' type='%s' cnt='%u'", nwaits, types[step->kind],
            step->src.count > step->dst.count ? step->src.count : step->dst.count);
    write_span(file, "srcbuf", "srcoff", &step->src);
    write_span(file, "dstbuf", "dstoff", &step->dst);
    fprintf(file, " depid='-1' deps='-1' hasdep='1'/></tb>\n");
}

static char *write_xml(const struct team *team, bool is_in_place)
{
    const struct tutti_schedule *first = team->schedules[0];
    enum tutti_collective collective = (enum tutti_collective)first->collective;
    uint32_t p = team->nranks, k = first->chunks_per_block;
    bool has_parts = collective == TUTTI_ALLGATHER || collective == TUTTI_ALLTOALL ||
                     collective == TUTTI_REDUCE_SCATTER;
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    assert_non_null(file);
    fprintf(file, "<algo name='x' ngpus='%u' coll='%s' nchunksperloop='%u' nchannels='9' root='%u' "
            "inplace='%d' outofplace='%d' minBytes='0' maxBytes='1'>\n", p,
            tutti_collective_name(collective), has_parts ? k * p : k, first->root, is_in_place,
            !is_in_place);
    for (uint32_t rank = 0; rank < p; rank++) {
        fprintf(file, "<gpu id='%u' i_chunks='%u' o_chunks='%u' s_chunks='%u'>\n", rank,
                tutti_input_blocks(collective, p) * k, tutti_output_blocks(collective, p) * k,
                team->schedules[rank]->scratch_chunks);
        for (uint32_t at = 0; at < team->schedules[rank]->nsteps; at++)
            write_step(file, team->schedules[rank], at);
        fprintf(file, "</gpu>\n");
    }
    fprintf(file, "</algo>\n");
    fclose(file);
    return text;
}

static bool can_be_written(const struct team *team)
{
    for (uint32_t rank = 0; rank < team->nranks; rank++)
        if (team->schedules[rank]->nsteps > MOST_STEPS ||
            team->schedules[rank]->scratch_like == TUTTI_SCRATCH_UNIFORM)
            return false;
    return true;
}

static void read_again(const struct team *team, const char *name, bool is_in_place)
{
    const struct tutti_schedule *const *schedules =
        (const struct tutti_schedule *const *)team->schedules;
    struct tutti_check_report before, after;
    struct tutti_ensemble ensemble;
    char *text = write_xml(team, is_in_place);

    if (tutti_import_prove(name, text, strlen(text), &ensemble) != TUTTI_OK)
        fail_msg("%s of %u ranks, root %u%s: %s", name, team->nranks, schedules[0]->root,
                 is_in_place ? ", in place" : "", tutti_message_last());
    assert_int_equal(tutti_check_schedule(schedules, team->nranks, &before), TUTTI_OK);
    schedules = (const struct tutti_schedule *const *)ensemble.schedules;
    assert_int_equal(tutti_check_schedule(schedules, team->nranks, &after), TUTTI_OK);
    assert_int_equal(before.sent, after.sent);
    assert_int_equal(before.received, after.received);
    assert_true(before.order_hash == after.order_hash);
    tutti_ensemble_fini(&ensemble);
    free(text);
}

static void every_algorithm_is_right_when_read_from_xml(void **state)
{
    size_t count = 0;

    (void)state;
    for (size_t i = 0; i < tutti_algorithm_count(); i++) {
        const struct tutti_algorithm *algorithm = tutti_algorithm(i);

        if (algorithm->needs != 0 || algorithm->collective == TUTTI_BARRIER)
            continue;
        for (uint32_t nranks = 2; nranks <= MOST_RANKS; nranks++)
            for (int form = 0; form < 4; form++) {
                uint32_t root = tutti_collective_has_root(algorithm->collective) ? nranks - 1 : 0;
                struct team team = team_create(algorithm, nranks, root, form & 1);

                /* Of an all-to-all the input is never the output. */
                if (can_be_written(&team) &&
                    ((form & 2) == 0 || algorithm->collective != TUTTI_ALLTOALL)) {
                    read_again(&team, algorithm->name, form & 2);
                    count++;
                }
                team_destroy(&team);
            }
    }
    assert_true(count > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_is_right_when_read_from_xml),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
