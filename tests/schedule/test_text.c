/* SPDX-License-Identifier: Apache-2.0
 * Tests the text form. Writing and reading again changes nothing, and errors are refused with
 * their position. */
#include "base/result.h"
#include "describe/ensemble.h"
#include "schedule/support.h"
#include "schedule/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_same_span(const struct tutti_span *a, const struct tutti_span *b)
{
    assert_int_equal(a->buffer, b->buffer);
    assert_int_equal(a->first, b->first);
    assert_int_equal(a->count, b->count);
}

static void assert_same_schedule(const struct tutti_schedule *a, const struct tutti_schedule *b)
{
    assert_int_equal(a->collective, b->collective);
    assert_int_equal(a->scratch_like, b->scratch_like);
    assert_int_equal(a->nchannels, b->nchannels);
    assert_int_equal(a->needs, b->needs);
    assert_int_equal(a->nranks, b->nranks);
    assert_int_equal(a->rank, b->rank);
    assert_int_equal(a->root, b->root);
    assert_int_equal(a->chunks_per_block, b->chunks_per_block);
    assert_int_equal(a->scratch_chunks, b->scratch_chunks);
    assert_int_equal(a->window_chunks, b->window_chunks);
    assert_int_equal(a->nsignals, b->nsignals);
    assert_int_equal(a->is_one_sided, b->is_one_sided);
    assert_int_equal(a->nsteps, b->nsteps);
    assert_int_equal(a->ndeps, b->ndeps);
    for (uint32_t i = 0; i < a->nsteps; i++) {
        const struct tutti_step *one = &a->steps[i], *other = &b->steps[i];

        assert_int_equal(one->kind, other->kind);
        assert_int_equal(one->channel, other->channel);
        assert_int_equal(one->signal, other->signal);
        assert_int_equal(one->queue, other->queue);
        assert_int_equal(one->from, other->from);
        assert_int_equal(one->to, other->to);
        assert_same_span(&one->src, &other->src);
        assert_same_span(&one->dst, &other->dst);
        assert_same_span(&one->remote, &other->remote);
        assert_same_span(&one->also, &other->also);
        assert_same_span(&one->remote_dst, &other->remote_dst);
        assert_int_equal(one->dep_first, other->dep_first);
        assert_int_equal(one->dep_count, other->dep_count);
        assert_int_equal(one->among_count, other->among_count);
        if (one->among_count > 0)
            assert_memory_equal(a->among + one->among_first, b->among + other->among_first,
                                one->among_count * sizeof(*a->among));
    }
    if (a->ndeps > 0)
        assert_memory_equal(a->deps, b->deps, a->ndeps * sizeof(*a->deps));
}

static void round_trip(struct tutti_schedule **schedules, uint32_t nranks, const char *name)
{
    struct tutti_ensemble ensemble = {.nranks = nranks, .schedules = schedules}, back;
    char *text, *again;

    snprintf(ensemble.name, sizeof ensemble.name, "%s", name);
    assert_int_equal(tutti_describe_ensemble(&ensemble, &text), TUTTI_OK);
    if (tutti_ensemble_read("test", text, &back) != TUTTI_OK)
        fail_msg("%s over %u ranks: %s", name, nranks, tutti_message_last());
    assert_string_equal(back.name, name);
    assert_int_equal(back.nranks, nranks);
    for (uint32_t rank = 0; rank < nranks; rank++)
        assert_same_schedule(schedules[rank], back.schedules[rank]);
    assert_int_equal(tutti_describe_ensemble(&back, &again), TUTTI_OK);
    assert_string_equal(text, again);
    tutti_ensemble_fini(&back);
    free(text);
    free(again);
}

static void every_algorithm_survives_a_round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < tutti_algorithm_count(); i++)
        for (uint32_t nranks = 1; nranks <= 33; nranks++)
            for (int is_fused = 0; is_fused < 2; is_fused++) {
                const struct tutti_algorithm *algorithm = tutti_algorithm(i);
                uint32_t root = tutti_collective_has_root(algorithm->collective) ? nranks / 2 : 0;
                struct team team = team_create(algorithm, nranks, root, is_fused);

                round_trip(team.schedules, nranks, algorithm->name);
                team_destroy(&team);
            }
}

static void steps_that_go_by_some_ranks_survive_a_round_trip(void **state)
{
    static const uint32_t node[9] = {0}, cell[9] = {0, 1, 0, 0, 2, 1, 0, 2, 2};
    size_t namong = 0;

    (void)state;
    for (size_t i = 0; i < tutti_algorithm_count(); i++)
        for (uint32_t nranks = 5; nranks <= 9; nranks++) {
            const struct tutti_algorithm *algorithm = tutti_algorithm(i);
            struct tutti_placement places = {.nranks = nranks, .node = node, .nnodes = 1,
                                             .cell = cell, .ncells = 3};
            struct tutti_shape shape = {.nranks = nranks, .places = &places};
            struct team team;

            if (!(algorithm->uses & TUTTI_USES_CELLS))
                continue;
            team = team_of_shape(algorithm, &shape, true);
            for (uint32_t rank = 0; rank < nranks; rank++)
                namong += team.schedules[rank]->namong;
            round_trip(team.schedules, nranks, algorithm->name);
            team_destroy(&team);
        }
    assert_true(namong > 0);
}

/* Dependencies and channels that no derivation gives are listed. */
static void edited_dependencies_survive_a_round_trip(void **state)
{
    const struct tutti_algorithm *ring = tutti_algorithm_find(TUTTI_ALLREDUCE, "ring");
    struct team team = team_create(ring, 4, 0, true);
    struct tutti_schedule *clone = schedule_clone(team.schedules[2]);
    struct tutti_step *last = &clone->steps[clone->nsteps - 1];

    (void)state;
    clone->deps = realloc(clone->deps, (clone->ndeps + 1) * sizeof(*clone->deps));
    assert_non_null(clone->deps);
    last->dep_first = last->dep_count > 0 ? last->dep_first : clone->ndeps;
    last->dep_count++;
    clone->deps[clone->ndeps++] = 0;
    clone->nchannels = 3;
    tutti_schedule_destroy(team.schedules[2]);
    team.schedules[2] = clone;
    round_trip(team.schedules, 4, "edited by hand");
    team_destroy(&team);
}

#define HEAD   "tutti-schedule 1\ncollective allgather\nranks 2\n"
#define RANK_1 "rank 1\n send to 0 src input[0]\n"

static void what_is_wrong_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "f:1:1: the file does not begin with \"tutti-schedule 1\""},
        {"tutti-schedule 2", "f:1:16: \"2\" is no version"},
        {"tutti-schedule 1\ncollective allsum", "f:2:12: \"allsum\" is no collective"},
        {"tutti-schedule 1\ncollective allgather", "ends before \"ranks\""},
        {"tutti-schedule 1\nranks 0", "f:2:7: \"0\" is no number of ranks"},
        {"tutti-schedule 1\nranks 99999999999999999999", "number from 1 to 4096"},
        {"tutti-schedule 1\nchunks 2", "f:2:1: \"chunks\" before \"ranks\""},
        {"tutti-schedule 1\nranks 2\nranks 2", "f:3:1: \"ranks\" for the second time"},
        {"tutti-schedule 1\nranks 2\nrank 0", "a rank before \"collective\""},
        {HEAD "root 2", "f:4:6: \"2\" is no root"},
        {HEAD "chunks 4294967295", "f:4:8: \"4294967295\" is no count of chunks"},
        {HEAD "scratch square 2", "f:4:9: \"square\": scratch memory is"},
        {HEAD "needs money", "f:4:7: \"money\": needs are"},
        {HEAD "sing", "f:4:1: \"sing\" is no line"},
        {HEAD "chunks 2 3", "f:4:10: \"3\" is more than"},
        {HEAD "rank 2", "f:4:6: \"2\" is no rank"},
        {HEAD RANK_1 "rank 1", "f:6:6: rank 1 for the second time"},
        {HEAD RANK_1, "ends without rank 0 of 2"},
        {HEAD "rank 0\n sing", "f:5:2: \"sing\" is no step"},
        {HEAD "rank 0\n send to 1", "f:5:2: send without \"src\""},
        {HEAD "rank 0\n send to 0 src input[0]", "f:5:10: rank 0 names itself"},
        {HEAD "rank 0\n send to 7 src input[0]", "f:5:10: \"7\" is no rank"},
        {HEAD "rank 0\n send to all src input[0]", "\"all\" is no rank"},
        {HEAD "rank 0\n send to 1 to 1 src input[0]", "\"to\" twice"},
        {HEAD "rank 0\n send to 1 src input[1]", "f:5:16: chunks 1 to 1 of input, which has 1"},
        {HEAD "rank 0\n send to 1 src input[0+2]", "chunks 0 to 1 of input, which has 1"},
        {HEAD "rank 0\n send to 1 src input[0+0]", "no count of chunks"},
        {HEAD "rank 0\n send to 1 src input[4294967295+4294967295]", "which has 1 at rank 0"},
        {HEAD "rank 0\n send to 1 src input[0", "does not end with ']'"},
        {HEAD "rank 0\n send to 1 src input[]", "no chunk after '['"},
        {HEAD "rank 0\n send to 1 src elsewhere[0]", "\"elsewhere[0]\" is no span"},
        {HEAD "rank 0\n send to 1 src window[0]", "of window, which has 0"},
        {HEAD "rank 0\n send to 1 src input[0] dst output[0]", "f:5:25: send has no \"dst\""},
        {HEAD "rank 0\n send to 1 src input[0] channel 256", "\"256\" is no channel"},
        {HEAD "rank 0\n send to 1 src input[0] queue 0", "\"0\" is no queue"},
        {HEAD "rank 0\n copy src input[0] dst output[0] queue 1", "copy has no \"queue\""},
        {HEAD "rank 0\n send to 1 src input[0] after 0", "does not say \"dependencies listed\""},
        {HEAD "rank 0\n dependencies listed\n send to 1 src input[0] after 0", "waits for none"},
        {HEAD "rank 0\n copy src input[0] dst output[0+2]", "joins 1 chunks with 2"},
        {HEAD "rank 0\n wait from 1 signal 1", "a rank without signals"},
        {HEAD "signals 1\nrank 0\n wait from 1 signal 2", "\"2\" is no signal"},
        {HEAD "rank 0\n signal", "signal 1 of rank 0, which declares 0"},
        {HEAD "window 1\nrank 0\n gather_reduce from 1 src input[0] remote window[0] dst output[0]",
         "a gather_reduce is from all"},
        {HEAD "window 1\nrank 0\n gather_reduce from all src input[0] remote window[0]",
         "gather_reduce needs \"dst\""},
        {HEAD "window 1\nrank 0\n gather_reduce from all to 1 src input[0] remote window[0] "
              "dst output[0] remote_dst output[0]", "or \"to\" a rank and \"remote_dst\""},
        {HEAD "window 1\nrank 0\n put to all src input[0] remote window[0]",
         "put needs \"to all\" and \"dst\""},
        {HEAD "window 1\nrank 0\n put to 1 src input[0] remote window[0] dst output[0]",
         "put needs \"to all\" and \"dst\""},
#define PUT_ALL "window 1\nrank 0\n put to all src input[0] dst output[0] remote window[0] among "
        {HEAD PUT_ALL, "\"among\" without rank 0"},
        {HEAD PUT_ALL "1", "\"among\" without rank 0"},
        {HEAD PUT_ALL "0 2", "\"2\" is no rank"},
        {HEAD PUT_ALL "1 0", "rank 0 after rank 1"},
        {HEAD PUT_ALL "0 0", "rank 0 after rank 0"},
        {HEAD PUT_ALL "0 among 0", "\"among\" twice"},
        {HEAD PUT_ALL "0 x", "put has no \"x\""},
        {HEAD "window 1\nrank 0\n put to 1 src input[0] remote window[0] among 0",
         "\"among\" in a put to one rank"},
        {HEAD "rank 0\n copy src input[0] dst output[0] among 0", "copy has no \"among\""},
        {HEAD "rank 0\n copy src input[0] dst output[0]\n chunks 2", "\"chunks\" is no step"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tutti_ensemble ensemble;

        assert_int_equal(tutti_ensemble_read("f", cases[i].text, &ensemble), TUTTI_ERR_ARGUMENT);
        if (strstr(tutti_message_last(), cases[i].message) == NULL)
            fail_msg("case %zu: \"%s\" is not about \"%s\"", i, tutti_message_last(),
                     cases[i].message);
        assert_null(strchr(tutti_message_last(), '\n'));
    }
}

static void comments_blanks_and_carriage_returns_mean_nothing(void **state)
{
    static const char plain[] = HEAD "rank 0\nsend to 1 src input[0]\nrank 1\nrecv from 0 dst "
                                     "output[0]\n";
    static const char dressed[] =
        "\ttutti-schedule 1 # first\r\n\r\n# nothing\ncollective\tallgather\nranks 2\nchunks 1\n\n"
        "rank 1#!\n  recv dst output[0+1] from 0 channel 0\nrank 0\n send src input[0] to 1";
    struct tutti_ensemble a, b;

    (void)state;
    assert_int_equal(tutti_ensemble_read("plain", plain, &a), TUTTI_OK);
    assert_int_equal(tutti_ensemble_read("dressed", dressed, &b), TUTTI_OK);
    for (uint32_t rank = 0; rank < 2; rank++)
        assert_same_schedule(a.schedules[rank], b.schedules[rank]);
    tutti_ensemble_fini(&a);
    tutti_ensemble_fini(&b);
}

static void what_a_line_cannot_hold_is_not_written(void **state)
{
    struct team team = team_create(tutti_algorithm_find(TUTTI_ALLREDUCE, "ring"), 2, 0, true);
    struct tutti_ensemble ensemble = {.nranks = 2, .schedules = team.schedules, .name = "a\nb"};
    char *text;

    (void)state;
    assert_int_equal(tutti_describe_ensemble(&ensemble, &text), TUTTI_ERR_ARGUMENT);
    ensemble.name[0] = '\0';
    team.schedules[1]->root = 1;
    assert_int_equal(tutti_describe_ensemble(&ensemble, &text), TUTTI_ERR_ARGUMENT);
    team_destroy(&team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_survives_a_round_trip),
        cmocka_unit_test(steps_that_go_by_some_ranks_survive_a_round_trip),
        cmocka_unit_test(edited_dependencies_survive_a_round_trip),
        cmocka_unit_test(what_is_wrong_is_refused_with_its_place),
        cmocka_unit_test(comments_blanks_and_carriage_returns_mean_nothing),
        cmocka_unit_test(what_a_line_cannot_hold_is_not_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
