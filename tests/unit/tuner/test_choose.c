/* SPDX-License-Identifier: Apache-2.0
 * Tests choices: the order of the sources, that the cheapest candidate is the cheapest, and the
 * prices. */
#include "base/result.h"
#include "tuner/assumed.h"
#include "tuner/candidates.h"
#include "tuner/explain.h"
#include "tuner/memo.h"
#include "tuner/policy.h"
#include "tuner/price.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct tutti_machine *machine_of(const char *text, uint32_t nranks)
{
    struct tutti_machine *machine;

    if (tutti_machine_load(text, nranks, &machine) != TUTTI_OK)
        fail_msg("%s: %s", text, tutti_message_last());
    return machine;
}

static struct tutti_tuner_view view_of(const struct tutti_machine *machine)
{
    return (struct tutti_tuner_view){.nranks = machine->places.nranks, .machine = machine,
                                     .places = &machine->places};
}

/* ---- authorities --------------------------------------------------------------------------- */

static void expect(const struct tutti_tuner_view *view, size_t bytes, const char *name,
                   enum tutti_authority by)
{
    struct tutti_tuner_query query = {.collective = TUTTI_ALLREDUCE, .block_bytes = bytes};
    enum tutti_authority who = TUTTI_BY_NONE;
    struct tutti_choice choice;

    assert_int_equal(tutti_tuner_choose(view, &query, &choice, &who), TUTTI_OK);
    if (strcmp(choice.algorithm->name, name) != 0 || who != by)
        fail_msg("%zu bytes: %s by %d, not %s by %d", bytes, choice.algorithm->name, (int)who,
                 name, (int)by);
}

static void authorities_are_asked_in_their_order(void **state)
{
    const char *text[TUTTI_POLICY_TEXTS] = {"allreduce:one_shot", "allreduce 0-100 swing",
                                            ("on here; allreduce 0-200 pat; on there; "
                                             "allreduce 0-1000 multi_ring")};
    struct tutti_machine *machine = machine_of("flat", 8);
    struct tutti_tuner_view view = view_of(machine);
    struct tutti_policy *policy;

    (void)state;
    assert_int_equal(tutti_policy_create(text, &policy), TUTTI_OK);
    view.fingerprint = "here";
    expect(&view, 100, "recursive_doubling", TUTTI_BY_PRICE);
    view.policy = policy;
    expect(&view, 100, "swing", TUTTI_BY_RULE);
    expect(&view, 200, "pat", TUTTI_BY_TABLE);
    expect(&view, 201, "recursive_doubling", TUTTI_BY_PRICE);
    view.machine = NULL;
    expect(&view, 201, "recursive_doubling", TUTTI_BY_DEFAULT);
    view.is_one_domain = view.all_read = true;
    view.half_bytes = 1 << 18;
    expect(&view, 100, "one_shot", TUTTI_BY_VARIABLE);
    view.policy = NULL;
    expect(&view, 201, "one_shot", TUTTI_BY_HOST);
    expect(&view, 1 << 20, "two_shot", TUTTI_BY_HOST);
    tutti_policy_release(policy);
    tutti_machine_destroy(machine);
}

/* One question to the built-in table; `cores` 0: one per rank. */
struct habit {
    enum tutti_collective collective;
    size_t bytes; /* of the larger buffer */
    uint32_t nranks, cores;
    bool is_process;
    const char *algorithm;
};

/* Threads read each other's buffers without a system call. With more ranks than cores small rooted
 * calls use messages. */
static void memory_is_used_as_threads_have_it(void **state)
{
    static const struct habit habits[] = {
        {TUTTI_BROADCAST, 1 << 10, 4, 0, false, "direct"},
        {TUTTI_BROADCAST, 1 << 10, 4, 4, false, "direct"},
        {TUTTI_BROADCAST, 64, 4, 3, false, "tree"},
        {TUTTI_BROADCAST, 1 << 10, 4, 3, false, "circulant_pipeline"},
        {TUTTI_BROADCAST, 16 << 10, 4, 3, true, "direct"},
        {TUTTI_BROADCAST, 1 << 10, 2, 2, false, "direct"},
        {TUTTI_BROADCAST, 128 << 10, 4, 3, false, "direct"},
        {TUTTI_BROADCAST, 64 << 10, 4, 0, true, "shared"},
        {TUTTI_BROADCAST, 32 << 10, 4, 3, false, "direct"},
        {TUTTI_BROADCAST, 64 << 10, 4, 3, false, "direct"},
        {TUTTI_BROADCAST, 2 << 20, 4, 4, false, "direct"},
        {TUTTI_BROADCAST, 2 << 20, 4, 3, false, "direct"},
        {TUTTI_BROADCAST, 2 << 20, 4, 3, true, "mapped"},
        {TUTTI_BROADCAST, 8 << 20, 2, 2, false, "direct"},
        {TUTTI_BROADCAST, 64 << 20, 2, 2, false, "mapped"},
        {TUTTI_REDUCE, 16 << 10, 2, 2, false, "chain"},
        {TUTTI_REDUCE, 16 << 10, 3, 4, false, "direct"},
        {TUTTI_REDUCE, 16 << 10, 4, 2, false, "direct_one_shot"},
        {TUTTI_REDUCE, 4 << 10, 4, 0, false, "direct_one_shot"},
        {TUTTI_REDUCE, 64 << 10, 4, 2, false, "direct"},
        {TUTTI_REDUCE, 64 << 10, 2, 2, false, "tree"},
        {TUTTI_GATHER, 128 << 10, 4, 2, false, "direct"},
        {TUTTI_GATHER, 128 << 10, 4, 4, false, "direct"},
        {TUTTI_SCATTER, 4 << 10, 4, 2, false, "knomial"},
        {TUTTI_GATHER, 4 << 10, 4, 2, false, "knomial"},
        {TUTTI_ALLTOALL, 8 << 20, 2, 2, false, "mapped"},
        {TUTTI_ALLTOALL, 8 << 20, 4, 4, true, "mapped"},
        {TUTTI_ALLTOALL, 8 << 20, 8, 3, false, "direct"},
        {TUTTI_SCATTER, 512 << 10, 4, 2, false, "mapped"},
        {TUTTI_ALLGATHER, 1 << 20, 4, 2, false, "direct"},
        {TUTTI_ALLGATHER, 512 << 10, 4, 2, true, "mapped"},
        {TUTTI_ALLGATHER, 1 << 20, 4, 2, true, "stored"},
        {TUTTI_ALLTOALL, 512 << 10, 2, 2, false, "direct"},
        {TUTTI_ALLREDUCE, 32 << 10, 4, 2, false, "one_shot"},
        {TUTTI_ALLREDUCE, 64 << 10, 4, 2, false, "two_shot"},
        {TUTTI_ALLREDUCE, 64 << 10, 2, 2, false, "one_shot"},
        {TUTTI_ALLREDUCE, 64 << 10, 4, 2, true, "mapped"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++) {
        const struct habit *habit = &habits[i];
        struct tutti_machine machine;
        struct tutti_tuner_view view = {
            .nranks = habit->nranks, .is_one_domain = true, .all_read = true,
            .all_store = habit->is_process, .half_bytes = 1 << 18, .machine = &machine};
        bool has_blocks = habit->collective == TUTTI_GATHER ||
                          habit->collective == TUTTI_SCATTER ||
                          habit->collective == TUTTI_ALLGATHER ||
                          habit->collective == TUTTI_ALLTOALL;
        struct tutti_tuner_query query = {
            .collective = habit->collective,
            .block_bytes = habit->bytes / (has_blocks ? habit->nranks : 1)};
        struct tutti_choice choice;
        enum tutti_authority by;

        tutti_tuner_assume_machine(true, habit->cores, 0, &machine);
        assert_int_equal(tutti_tuner_choose(&view, &query, &choice, &by), TUTTI_OK);
        if (by != TUTTI_BY_HOST || strcmp(choice.algorithm->name, habit->algorithm) != 0)
            fail_msg("question %zu: %s, not %s", i, choice.algorithm->name, habit->algorithm);
        /* Processes that lend each other memory use it as threads do. */
        view.all_store = false;
        query.is_lent = habit->is_process;
        assert_int_equal(tutti_tuner_choose(&view, &query, &choice, &by), TUTTI_OK);
        assert_string_equal(choice.algorithm->name, habit->algorithm);
    }
}

/* Two ranks reduce narrow floats through windows. Such a run can give way to one on lent buffers. */
static void narrow_floats_are_reduced_through_windows(void **state)
{
    struct tutti_machine machine;
    struct tutti_tuner_view view = {.nranks = 2, .is_one_domain = true, .all_read = true,
                                    .half_bytes = 1 << 18, .machine = &machine};
    struct tutti_tuner_query query = {.collective = TUTTI_REDUCE, .block_bytes = 64 << 10,
                                      .widening = 2};
    struct tutti_choice choice;

    (void)state;
    tutti_tuner_assume_machine(true, 2, 0, &machine);
    assert_int_equal(tutti_tuner_choose(&view, &query, &choice, NULL), TUTTI_OK);
    assert_string_equal(choice.algorithm->name, "direct");
    query.is_lent = true;
    assert_int_equal(tutti_tuner_choose(&view, &query, &choice, NULL), TUTTI_OK);
    assert_string_equal(choice.algorithm->name, "mapped");
}

/* Options in a rule are those that run; those it leaves out are the usual ones. */
static void a_choice_has_all_its_options(void **state)
{
    const char *text[TUTTI_POLICY_TEXTS] = {"allreduce:pat,allgather:pat[aggregate=2]"};
    struct tutti_tuner_view view = {.nranks = 8};
    struct tutti_tuner_query query = {.collective = TUTTI_ALLGATHER};
    struct tutti_policy *policy;
    struct tutti_choice choice;
    char name[96];

    (void)state;
    assert_int_equal(tutti_policy_create(text, &policy), TUTTI_OK);
    view.policy = policy;
    assert_int_equal(tutti_tuner_choose(&view, &query, &choice, NULL), TUTTI_OK);
    assert_int_equal(choice.options.value[TUTTI_AGGREGATE], 2);
    tutti_choice_format(&choice, name, sizeof name);
    assert_string_equal(name, "pat[aggregate=2]");
    query.collective = TUTTI_ALLREDUCE;
    assert_int_equal(tutti_tuner_choose(&view, &query, &choice, NULL), TUTTI_OK);
    assert_int_equal(choice.options.value[TUTTI_AGGREGATE],
                     choice.algorithm->options[TUTTI_AGGREGATE].usual);
    tutti_choice_format(&choice, name, sizeof name);
    assert_string_equal(name, "pat");
    tutti_policy_release(policy);
}

/* ---- prices -------------------------------------------------------------------------------- */

/* Of one algorithm, over every value up to this that options may have, one by one and in pairs. */
enum { VALUES = 16 };

static double least_of(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query,
                       const struct tutti_algorithm *algorithm)
{
    struct tutti_choice choice = {.algorithm = algorithm};
    double least = INFINITY;

    for (int a = 0; a < TUTTI_OPTION_COUNT; a++)
        for (int b = a; b < TUTTI_OPTION_COUNT; b++)
            for (uint32_t one = 0; one <= algorithm->options[a].most; one++)
                for (uint32_t two = 0; two <= algorithm->options[b].most; two++) {
                    struct tutti_choice resolved = choice;
                    struct tutti_options options = {{0}};
                    double seconds;

                    options.value[a] = one;
                    options.value[b] = two;
                    if (one > VALUES || two > VALUES || (a == b && one != two) ||
                        (one != 0 && one < algorithm->options[a].least) ||
                        (two != 0 && two < algorithm->options[b].least))
                        continue;
                    assert_int_equal(tutti_algorithm_options(algorithm, &options,
                                                             &resolved.options), TUTTI_OK);
                    seconds = tutti_price(view, query, &resolved);
                    least = seconds < least ? seconds : least;
                }
    return least;
}

static double price_on(const char *text, const char *algorithm)
{
    struct tutti_machine *machine = machine_of(text, 4);
    struct tutti_tuner_view view = view_of(machine);
    struct tutti_tuner_query query = {.collective = TUTTI_ALLREDUCE, .block_bytes = 1 << 20};
    struct tutti_choice choice = {.algorithm = tutti_algorithm_find(TUTTI_ALLREDUCE, algorithm)};
    double seconds = tutti_price(&view, &query, &choice);

    tutti_machine_destroy(machine);
    return seconds;
}

static void a_price_knows_cores_and_footprints(void **state)
{
    double plain = price_on("node 4; level node bandwidth 10GB/s", "ring");

    (void)state;
    assert_true(plain > 0);
    /* Both ways on one core; and on half a core. */
    assert_float_equal(price_on("node 4; level node bandwidth 10GB/s core 10GB/s", "ring"),
                       2 * plain, 1e-9);
    assert_float_equal(price_on("node 4; cores 2; level node bandwidth 10GB/s core 10GB/s", "ring"),
                       4 * plain, 1e-9);
    assert_float_equal(price_on("node 4; level node bandwidth 10GB/s core 20GB/s", "ring"), plain,
                       1e-9);
    /* INPUT and OUTPUT are 2 MiB together. */
    assert_float_equal(price_on("node 4; level node bandwidth 10GB/s beyond 1.9MiB 5GB/s", "ring"),
                       2 * plain, 1e-9);
    assert_float_equal(price_on("node 4; level node bandwidth 10GB/s beyond 2MiB 5GB/s", "ring"),
                       plain, 1e-9);
}

/* Powers of two represent the sizes between them. */
static void the_cheapest_is_as_cheap_as_any(void **state)
{
    static const char *const machines[] = {"flat", "nodes8", "fattree", "ethernet"};
    static const uint32_t ranks[] = {2, 3, 7, 24};
    static const size_t sizes[] = {0, 5000, 1 << 18, 1 << 24};

    (void)state;
    for (size_t at = 0; at < 4 * 4 * 4 * TUTTI_COLLECTIVE_COUNT; at++) {
        struct tutti_machine *machine = machine_of(machines[at % 4], ranks[at / 4 % 4]);
        struct tutti_tuner_view view = view_of(machine);
        struct tutti_tuner_query query = {.block_bytes = sizes[at / 16 % 4],
                                          .collective = (enum tutti_collective)(at / 64)};
        double least = INFINITY, seconds = INFINITY;
        struct tutti_choice choice;

        for (size_t i = 0; i < tutti_algorithm_count(); i++)
            if (tutti_algorithm(i)->collective == query.collective &&
                tutti_tuner_can_serve(&view, &query, tutti_algorithm(i)))
                least = fmin(least, least_of(&view, &query, tutti_algorithm(i)));
        if (tutti_candidate_cheapest(&view, &query, &choice, &seconds) != (least < INFINITY))
            fail_msg("%s on %s: priced by one way only",
                     tutti_collective_name(query.collective), machines[at % 4]);
        if (least < INFINITY &&
            (seconds > 1.07 * least || seconds != tutti_price(&view, &query, &choice)))
            fail_msg("%s of %zu bytes, %u ranks on %s: %s costs %g, something costs %g",
                     tutti_collective_name(query.collective), query.block_bytes, view.nranks,
                     machines[at % 4], choice.algorithm->name, seconds, least);
        tutti_machine_destroy(machine);
    }
}

static double seconds_of(const struct tutti_tuner_view *view, size_t bytes, const char *name)
{
    struct tutti_tuner_query query = {.collective = TUTTI_ALLREDUCE, .block_bytes = bytes};
    struct tutti_choice choice = {.algorithm = tutti_algorithm_find(TUTTI_ALLREDUCE, name)};

    assert_non_null(choice.algorithm);
    assert_int_equal(tutti_algorithm_options(choice.algorithm, &choice.options, &choice.options),
                     TUTTI_OK);
    return tutti_price(view, &query, &choice);
}

static void close_to(double seconds, double expected)
{
    if (!(fabs(seconds - expected) <= 1e-9 * expected))
        fail_msg("%.12g s, expected %.12g", seconds, expected);
}

/* Eight ranks, recursive doubling: three rounds of the whole vector. */
static void a_price_is_rounds_and_bytes_and_work(void **state)
{
    static const struct {
        const char *machine;
        double expected;
    } cases[] = {
        {"level top overhead 5us bandwidth 1GB/s", 3 * (5e-6 + 1e-3)},
        {"level top latency 1us overhead 5us bandwidth 1GB/s", 3 * (6e-6 + 1e-3)},
        {"node 8; level node overhead 1us bandwidth 10GB/s; level top bandwidth 1GB/s",
         3 * (1e-6 + 1e-4)},
        {"level top overhead 5us bandwidth 1GB/s; reduce 2GB/s", 3 * (5e-6 + 1e-3 + 5e-4)},
        {"node 4; cores 2; level top overhead 5us bandwidth 1GB/s; reduce 2GB/s",
         3 * (10e-6 + 1e-3 + 1e-3)},
        {"node 4; level node overhead 1us bandwidth 10GB/s; level top overhead 5us bandwidth 1GB/s",
         2 * (1e-6 + 1e-4) + 5e-6 + 1e-3},
        {"node 4; nics 1; level top overhead 5us bandwidth 1GB/s", 3 * 5e-6 + (1 + 1 + 4) * 1e-3},
        {"node 2; group 2; level top overhead 5us bandwidth 1GB/s; trunk 2GB/s",
         3 * 5e-6 + (1 + 1 + 2) * 1e-3},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tutti_machine *machine = machine_of(cases[i].machine, 8);
        struct tutti_tuner_view view = view_of(machine);

        close_to(seconds_of(&view, 1000000, "recursive_doubling"), cases[i].expected);
        tutti_machine_destroy(machine);
    }
}

/* A message that follows others without a wait has no latency of its own. */
static void a_price_counts_posted_messages(void **state)
{
    struct tutti_machine *machine =
        machine_of("level top latency 1us overhead 5us bandwidth 1GB/s", 8);
    struct tutti_tuner_view view = view_of(machine);
    struct tutti_tuner_query query = {.collective = TUTTI_ALLTOALL, .block_bytes = 1000};
    struct tutti_choice choice = {.algorithm = tutti_algorithm_find(TUTTI_ALLTOALL, "spread_out"),
                                  .options = {.value = {[TUTTI_WINDOW] = 4}}};

    (void)state;
    close_to(tutti_price(&view, &query, &choice), 2 * 1e-6 + 7 * (5e-6 + 1e-6));
    tutti_machine_destroy(machine);
}

/* Of 16 ranks on two nodes three rounds of four stay inside, as long as nodes begin at multiples of
 * their size, counted from the root. */
static void messages_inside_a_node_cost_what_they_cost_there(void **state)
{
    static const struct {
        enum tutti_collective collective;
        const char *name;
        uint32_t root;
        double seconds; /* of blocks of 1 kB */
    } cases[] = {
        {TUTTI_BROADCAST, "knomial", 0, 3 * (1e-6 + 1e-7) + 5e-6 + 1e-6},
        {TUTTI_REDUCE, "knomial", 8, 3 * (1e-6 + 1e-7) + 5e-6 + 1e-6},
        {TUTTI_REDUCE, "knomial", 4, 2 * (1e-6 + 1e-7) + 2 * (5e-6 + 1e-6)},
        {TUTTI_BROADCAST, "knomial", 3, 4 * (5e-6 + 1e-6)},
        {TUTTI_ALLGATHER, "recursive_doubling", 0, 3e-6 + 7e-7 + 5e-6 + 8e-6},
        {TUTTI_REDUCE_SCATTER, "recursive_halving", 0, 3e-6 + 7e-7 + 5e-6 + 8e-6},
    };
    struct tutti_machine *machine = machine_of("node 8; level node latency 1us bandwidth 10GB/s; "
                                               "level top overhead 5us bandwidth 1GB/s", 16);
    struct tutti_tuner_view view = view_of(machine);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tutti_tuner_query query = {.collective = cases[i].collective,
                                          .root = cases[i].root, .block_bytes = 1000};
        struct tutti_choice choice = {
            .algorithm = tutti_algorithm_find(cases[i].collective, cases[i].name)};

        assert_int_equal(tutti_algorithm_options(choice.algorithm, &choice.options,
                                                 &choice.options), TUTTI_OK);
        close_to(tutti_price(&view, &query, &choice), cases[i].seconds);
    }
    tutti_machine_destroy(machine);
}

/* A call that is run in pieces pays the rounds of each. */
static void a_price_counts_pieces(void **state)
{
    struct tutti_machine *machine = machine_of("level top overhead 5us bandwidth 1GB/s", 8);
    struct tutti_tuner_view view = view_of(machine);
    struct tutti_tuner_query query = {.collective = TUTTI_ALLREDUCE, .block_bytes = 1000000,
                                      .widening = 4};
    struct tutti_choice choice = {
        .algorithm = tutti_algorithm_find(TUTTI_ALLREDUCE, "recursive_doubling")};

    (void)state;
    view.stage_bytes = 400000;
    view.scratch_bytes = 500000;
    close_to(seconds_of(&view, 1000000, "recursive_doubling"), 3 * (2 * 5e-6 + 1e-3));
    close_to(seconds_of(&view, 1000001, "recursive_doubling"), 3 * (3 * 5e-6 + 1.000001e-3));
    close_to(tutti_price(&view, &query, &choice), 3 * (10 * 5e-6 + 4e-3));
    query.widening = 1;
    query.is_scaled = true;
    close_to(tutti_price(&view, &query, &choice), 3 * (3 * 5e-6 + 1e-3));
    choice.algorithm = tutti_algorithm_find(TUTTI_ALLREDUCE, "circulant");
    close_to(tutti_price(&view, &query, &choice), 3 * 6 * 5e-6 + 2 * 7.0 / 8 * 1e-3);
    query.is_scaled = false;
    close_to(tutti_price(&view, &query, &choice), 6 * 5e-6 + 2 * 7.0 / 8 * 1e-3);
    tutti_machine_destroy(machine);
}

/* 1,024 ranks, 5 us and 50 GB/s: a machine to compare with by. */
static void prices_of_a_thousand_ranks_are_low(void **state)
{
    static const struct {
        size_t bytes;
        double most;
    } targets[] = {{8 << 10, 55e-6}, {256 << 10, 80e-6}, {4 << 20, 270e-6}, {64 << 20, 2.8e-3}};
    struct tutti_machine *machine = machine_of("flat", 1024);
    struct tutti_tuner_view view = view_of(machine);

    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        struct tutti_tuner_query query = {.collective = TUTTI_ALLREDUCE,
                                          .block_bytes = targets[i].bytes};
        struct tutti_choice choice;
        double seconds;
        char name[96];

        assert_true(tutti_candidate_cheapest(&view, &query, &choice, &seconds));
        tutti_choice_format(&choice, name, sizeof name);
        print_message("%zu bytes: %.1f us by %s\n", targets[i].bytes, seconds * 1e6, name);
        if (seconds > targets[i].most)
            fail_msg("%zu bytes cost %g s", targets[i].bytes, seconds);
    }
    tutti_machine_destroy(machine);
}

/* All-reduces of two processes over sockets, as bench/results/latest/cells.txt had them; the
 * two algorithms changed places at 64 KiB, here within a factor of two. */
static void assumptions_agree_with_what_was_measured(void **state)
{
    static const struct {
        size_t bytes;
        double microseconds;
    } measured[] = {{8, 6.46}, {1 << 10, 6.61}, {8 << 10, 9.91}, {64 << 10, 32.8},
                    {512 << 10, 169}, {1 << 20, 240}, {4 << 20, 986}, {32 << 20, 10305}};
    struct tutti_machine machine;
    struct tutti_placement places = {.nranks = 2, .node = (const uint32_t[]){0, 0}, .nnodes = 1};
    struct tutti_tuner_view view = {.nranks = 2, .machine = &machine, .places = &places,
                                    .stage_bytes = 16 << 20, .scratch_bytes = 64 << 20};

    (void)state;
    tutti_tuner_assume_machine(false, 2, 0, &machine);
    assert_true(seconds_of(&view, 32 << 10, "recursive_doubling") <
                seconds_of(&view, 32 << 10, "circulant"));
    assert_true(seconds_of(&view, 128 << 10, "recursive_doubling") >
                seconds_of(&view, 128 << 10, "circulant"));
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        const char *name = measured[i].bytes <= 64 << 10 ? "recursive_doubling" : "circulant";
        double price = 1e6 * seconds_of(&view, measured[i].bytes, name);

        if (price < measured[i].microseconds / 1.3 || price > measured[i].microseconds * 1.3)
            fail_msg("%zu bytes cost %g us, measured were %g", measured[i].bytes, price,
                     measured[i].microseconds);
    }
}

/* With a memo the same is chosen as without, and once per class. */
static void a_memo_changes_no_choice(void **state)
{
    struct tutti_machine *machine = machine_of("nodes8", 24);
    struct tutti_tuner_view view = view_of(machine), asks = view;
    struct tutti_memo memo = {.entries = {{.is_known = false}}};

    (void)state;
    assert_int_equal(tutti_memo_class_bytes(0), 0);
    assert_int_equal(tutti_memo_class_bytes(15), 15);
    assert_int_equal(tutti_memo_class_bytes(1 << 20), 1 << 20);
    assert_int_equal(tutti_memo_class_bytes((1 << 20) + (1 << 17)), (1 << 20) + (1 << 17));
    assert_int_equal(tutti_memo_class_bytes((1 << 20) + (1 << 17) - 1), 1 << 20);
    assert_true(tutti_memo_class_bytes(SIZE_MAX) == SIZE_MAX << (8 * sizeof(size_t) - 4));
    asks.memo = &memo;
    for (size_t turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < 400; i++) {
            struct tutti_tuner_query query = {
                .collective = (enum tutti_collective)(i % TUTTI_COLLECTIVE_COUNT),
                .block_bytes = i * i * i, .root = (uint32_t)i % 3, .widening = 1 + i % 2};
            struct tutti_choice plain, remembered;

            assert_int_equal(tutti_tuner_choose(&view, &query, &plain, NULL), TUTTI_OK);
            assert_int_equal(tutti_tuner_choose(&asks, &query, &remembered, NULL), TUTTI_OK);
            assert_ptr_equal(plain.algorithm, remembered.algorithm);
            assert_memory_equal(&plain.options, &remembered.options, sizeof plain.options);
        }
    tutti_machine_destroy(machine);
}

/* ---- explanations -------------------------------------------------------------------------- */

static void an_explanation_has_all_algorithms_and_one_choice(void **state)
{
    struct tutti_machine *machine = machine_of("nodes8", 32);
    struct tutti_tuner_view view = view_of(machine);

    (void)state;
    for (int collective = 0; collective < TUTTI_COLLECTIVE_COUNT; collective++) {
        struct tutti_tuner_query query = {.collective = (enum tutti_collective)collective,
                                          .block_bytes = 1 << 16};
        struct tutti_candidate *candidates;
        struct tutti_choice choice;
        size_t count, expected = 0;
        enum tutti_authority by;

        for (size_t i = 0; i < tutti_algorithm_count(); i++)
            expected += tutti_algorithm(i)->collective == query.collective;
        assert_int_equal(tutti_tuner_choose(&view, &query, &choice, &by), TUTTI_OK);
        assert_int_equal(tutti_tuner_explain(&view, &query, &candidates, &count), TUTTI_OK);
        assert_int_equal(count, expected);
        assert_ptr_equal(candidates[0].choice.algorithm, choice.algorithm);
        assert_int_equal(candidates[0].by, by);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(candidates[i].is_chosen, i == 0);
            assert_true(strlen(candidates[i].reason) > 0);
            assert_true(candidates[i].can_serve == (candidates[i].choice.algorithm->needs == 0));
            if (i > 1 && !isnan(candidates[i].seconds))
                assert_true(candidates[i].seconds >= candidates[i - 1].seconds);
        }
        free(candidates);
    }
    tutti_machine_destroy(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(authorities_are_asked_in_their_order),
        cmocka_unit_test(memory_is_used_as_threads_have_it),
        cmocka_unit_test(narrow_floats_are_reduced_through_windows),
        cmocka_unit_test(a_choice_has_all_its_options),
        cmocka_unit_test(a_price_knows_cores_and_footprints),
        cmocka_unit_test(the_cheapest_is_as_cheap_as_any),
        cmocka_unit_test(a_price_is_rounds_and_bytes_and_work),
        cmocka_unit_test(a_price_counts_posted_messages),
        cmocka_unit_test(messages_inside_a_node_cost_what_they_cost_there),
        cmocka_unit_test(a_price_counts_pieces),
        cmocka_unit_test(prices_of_a_thousand_ranks_are_low),
        cmocka_unit_test(assumptions_agree_with_what_was_measured),
        cmocka_unit_test(a_memo_changes_no_choice),
        cmocka_unit_test(an_explanation_has_all_algorithms_and_one_choice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
