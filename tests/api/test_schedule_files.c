/* SPDX-License-Identifier: Apache-2.0
 * TUTTI_SCHEDULE: some calls run by a schedule from a file, and all ranks refuse wrong files. */
#include "algorithms/algorithm.h"
#include "describe/ensemble.h"
#include "import/load.h"
#include "import/samples.h"
#include "support/trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

struct sample {
    const char *file;
    enum act act;
    int nranks;
};

static const struct sample samples[] = {
    {"ring_allreduce.xml", ALL_REDUCE, 4},
    {"all_pairs_allreduce.xml", ALL_REDUCE, 4},
    {"ring_reduce_scatter.xml", REDUCE_SCATTER, 3},
    {"hierarchical_allgather.xml", ALL_GATHER, 4},
    {"hierarchical_allgather_in_place.xml", ALL_GATHER, 4},
    {"all_pairs_packets.json", ALL_REDUCE, 4},
    {"all_pairs_signals.json", ALL_REDUCE, 3},
    {"one_shot_reads.json", ALL_REDUCE, 4},
    {"binomial_broadcast.tutti", BROADCAST, 3},
};

static const char *const transports[] = {"self,shm", "self,tcp"};

/* ---- the samples, as tutti-sched import writes them ------------------------------------------ */

static char folder[] = "/tmp/tutti_samples_XXXXXX";

static void write_text(const char *path, const struct tutti_ensemble *ensemble)
{
    FILE *file = fopen(path, "w");
    char *text;

    assert_non_null(file);
    assert_int_equal(tutti_describe_ensemble(ensemble, &text), 0);
    fputs(text, file);
    fclose(file);
    free(text);
}

static void name_translated(const char *sample, char *ret_path, size_t size_bytes)
{
    snprintf(ret_path, size_bytes, "%s/%s.tutti", folder, sample);
}

static int translate_samples(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; sample_name(i) != NULL; i++) {
        struct tutti_ensemble ensemble;
        char path[1024];
        size_t size;
        char *text = sample_read(sample_name(i), &size);

        assert_int_equal(tutti_import_prove(sample_name(i), text, size, &ensemble), 0);
        name_translated(sample_name(i), path, sizeof path);
        write_text(path, &ensemble);
        tutti_ensemble_fini(&ensemble);
        free(text);
    }
    return 0;
}

static int remove_translated(void **state)
{
    (void)state;
    for (size_t i = 0; sample_name(i) != NULL; i++) {
        char path[1024];

        name_translated(sample_name(i), path, sizeof path);
        unlink(path);
    }
    return rmdir(folder);
}

static void use(const char *prefix, const char *sample)
{
    char path[1024], value[2048];

    name_translated(sample, path, sizeof path);
    snprintf(value, sizeof value, "%s%s", prefix, path);
    setenv("TUTTI_SCHEDULE", value, 1);
}

/* ---- calls that files serve ------------------------------------------------------------------ */

static void run(struct member *member, struct trial trial)
{
    for (int way = 0; way < (act_can_be_in_place(trial.act) ? 2 : 1); way++) {
        if (member_is_unhappy(member)) {
            tuttiCommAbort(member->comm);
            return;
        }
        trial.in_place = way == 1;
        trial_run(member, &trial);
    }
}

static void play(struct member *member)
{
    static const size_t counts[] = {0, 1, 2, 3, 5, 7, 8, 31, 257, 1021, 65537, 300007};
    const struct sample *sample = member->context;

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct trial trial = {.act = sample->act,
                              .count = counts[i],
                              .type = tuttiInt32,
                              .op = tuttiSum,
                              .root = act_has_root(sample->act) ? 1 : 0};

        run(member, trial);
        trial.type = i % 2 ? tuttiBfloat16 : tuttiFloat64;
        trial.op = act_op(sample->act, trial.type, i);
        run(member, trial);
    }
    /* Another root is not the file's: the tuner's choice. */
    if (act_has_root(sample->act))
        run(member,
            (struct trial){
                .act = sample->act, .count = 1021, .type = tuttiInt32, .root = member->nranks - 1});
}

static void every_sample_gives_right_results(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof transports / sizeof *transports; t++)
        for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
            struct sample sample = samples[i];

            setenv("TUTTI_TRANSPORTS", transports[t], 1);
            use("", sample.file);
            world_run(t == 0 ? LAUNCH_PROCESSES : LAUNCH_MIXED, sample.nranks, play, &sample);
            /* As many ranks as no file is for. */
            if (i == 0)
                world_run(LAUNCH_PROCESSES, 3, play, &sample);
        }
}

/* Ranks that talk to every other one have a connection to each. */
static void count_connections(struct member *member)
{
    tuttiMemStats_t stats = {.size = sizeof stats};
    int expected = *(int *)member->context;

    run(member,
        (struct trial){.act = ALL_REDUCE, .count = 999, .type = tuttiInt32, .op = tuttiSum});
    EXPECT_OK(member, tuttiCommMemStats(member->comm, &stats));
    if (member->rank == 1 && stats.connections != expected)
        member_complain(member, "rank 1 has %d connections, not %d", (int)stats.connections,
                        expected);
}

static void a_file_is_used_for_the_calls_that_it_is_for(void **state)
{
    static const struct {
        const char *prefix;
        int connections; /* of rank 1: with all by the file, with two by recursive doubling */
    } cases[] = {
        {"", 3},
        {"allreduce=", 3},
        {"allreduce[1K-4K]=", 3},
        {"allreduce[-3996]=", 3},
        {"allreduce[3997-]=", 2},
        {"allreduce[1M-2M]=", 2},
        {"allreduce[0-1K]=", 2},
    };

    (void)state;
    setenv("TUTTI_TRANSPORTS", "self,tcp", 1);
    setenv("TUTTI_ALGORITHM", "allreduce:recursive_doubling", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int connections = cases[i].connections;

        use(cases[i].prefix, "all_pairs_allreduce.xml");
        world_run(LAUNCH_PROCESSES, 4, count_connections, &connections);
    }
    unsetenv("TUTTI_ALGORITHM");
}

static void several_files_serve_side_by_side(void **state)
{
    struct sample reduce = samples[0], gather = samples[3];
    char value[2048];

    (void)state;
    setenv("TUTTI_TRANSPORTS", "self,shm", 1);
    snprintf(value, sizeof value,
             "%s/ring_allreduce.xml.tutti:allgather[1K-]=%s/hierarchical_allgather.xml.tutti",
             folder, folder);
    setenv("TUTTI_SCHEDULE", value, 1);
    world_run(LAUNCH_PROCESSES, 4, play, &reduce);
    world_run(LAUNCH_PROCESSES, 4, play, &gather);
}

/* ---- our own algorithms, from files ---------------------------------------------------------- */

/* False: it uses more than the one channel that collectives run on. */
static bool write_algorithm(const struct tutti_algorithm *algorithm, uint32_t nranks, uint32_t root,
                            const char *path)
{
    struct tutti_ensemble ensemble;
    bool has_one_channel = true;

    assert_int_equal(tutti_ensemble_init(&ensemble, nranks), 0);
    for (uint32_t rank = 0; rank < nranks; rank++) {
        struct tutti_shape shape = {.nranks = nranks, .rank = rank, .root = root};

        assert_int_equal(tutti_algorithm_schedule(algorithm, &shape, &ensemble.schedules[rank]), 0);
        has_one_channel = has_one_channel && ensemble.schedules[rank]->nchannels == 1;
    }
    write_text(path, &ensemble);
    tutti_ensemble_fini(&ensemble);
    return has_one_channel;
}

static void every_algorithm_runs_from_a_file(void **state)
{
    char path[] = "/tmp/tutti_schedule_XXXXXX";
    int fd = mkstemp(path);
    size_t ran = 0;

    (void)state;
    assert_true(fd >= 0);
    setenv("TUTTI_SCHEDULE", path, 1);
    unsetenv("TUTTI_TRANSPORTS");
    for (size_t i = 0; i < tutti_algorithm_count(); i++) {
        const struct tutti_algorithm *algorithm = tutti_algorithm(i);
        struct sample sample = {
            .act = act_find(tutti_collective_name(algorithm->collective), false), .nranks = 3};
        uint32_t root = act_has_root(sample.act) ? 1 : 0;

        if (!write_algorithm(algorithm, 3, root, path))
            continue;
        world_run(LAUNCH_THREADS, 3, play, &sample);
        ran++;
    }
    assert_true(ran > 30);
    close(fd);
    unlink(path);
}

/* ---- what is refused ----------------------------------------------------------------------------
 */

static void expect_refusal(struct member *member)
{
    tuttiConfig_t config = crowd_config();
    tuttiUniqueId id;
    tuttiComm_t comm = NULL;
    const char *text;

    member_share_id(member, &id);
    EXPECT_RESULT(member, tuttiInvalidUsage,
                  tuttiCommInitRankConfig(&comm, member->nranks, id, member->rank, &config));
    text = tuttiGetLastError(NULL);
    if (strstr(text, member->context) == NULL || strchr(text, '\n') != NULL)
        member_complain(member, "\"%s\" is not about \"%s\"", text, (char *)member->context);
}

static void a_bad_file_fails_on_all_ranks_with_one_message(void **state)
{
    static const struct {
        const char *value, *text, *message;
    } cases[] = {
        {"/no/such/file", NULL, "cannot open /no/such/file"},
        {"allsum=/tmp", NULL, "\"allsum=/tmp\" is not collective=FILE"},
        {"allreduce[9-1]=/tmp", NULL, "is not collective=FILE"},
        {"allreduce[1Q]=/tmp", NULL, "is not collective=FILE"},
        {"/tmp", NULL, "cannot read /tmp"},
        {NULL, "sing", ":1:1: the file does not begin"},
        {SAMPLES "/ring_allreduce.xml", NULL, "ring_allreduce.xml is XML, and calls run"},
        {NULL, "\xef\xbb\xbf <algo", "with `tutti-sched import /tmp/tutti_schedule_"},
        {NULL, "{", "is JSON, and calls run"},
        {NULL, "tutti-schedule 1\ncollective allreduce\nranks 3\nrank 0\nrank 1\nrank 2",
         "not a right allreduce: rank 0"},
        {NULL,
         "tutti-schedule 1\ncollective allgather\nranks 3\nrank 0\n"
         "send to 1 src input[0] channel 1\nrank 1\nrecv from 0 dst output[0] channel 1\nrank 2",
         "not a right allgather: rank"},
    };
    char path[] = "/tmp/tutti_schedule_XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char message[200];

        if (cases[i].text != NULL) {
            assert_int_equal(ftruncate(fd, 0), 0);
            assert_int_equal(pwrite(fd, cases[i].text, strlen(cases[i].text), 0),
                             strlen(cases[i].text));
        }
        snprintf(message, sizeof message, "%s", cases[i].message);
        setenv("TUTTI_SCHEDULE", cases[i].value ? cases[i].value : path, 1);
        setenv("TUTTI_TRANSPORTS", transports[i % 2], 1);
        crowd_run(LAUNCH_PROCESSES, 3, expect_refusal, message);
    }
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_gives_right_results),
        cmocka_unit_test(a_file_is_used_for_the_calls_that_it_is_for),
        cmocka_unit_test(several_files_serve_side_by_side),
        cmocka_unit_test(every_algorithm_runs_from_a_file),
        cmocka_unit_test(a_bad_file_fails_on_all_ranks_with_one_message),
    };

    return cmocka_run_group_tests(tests, translate_samples, remove_translated);
}
