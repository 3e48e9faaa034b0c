/* SPDX-License-Identifier: Apache-2.0
 * Does the work of one rank. Measures every type, reduction, root and size in turn, first out of
 * place and then in place. */
#include "measure.h"
#include "report.h"
#include "types.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Initializes a case with what all cases of this rank have in common. The caller releases it with
 * fini_case. */
static void init_case(const struct perf_rank *rank, struct perf_case *c)
{
    size_t *lists = calloc((size_t)rank->nranks * 4, sizeof(size_t));

    if (lists == NULL)
        perf_die(rank, "no memory for the counts of %d ranks", rank->nranks);
    *c = (struct perf_case){.root = -1, .nranks = rank->nranks, .rank = rank->rank,
                            .op = PERF_NO_OP, .type = tuttiUint8, .element_bytes = 1};
    c->send_counts = lists;
    c->send_displs = lists + rank->nranks;
    c->recv_counts = lists + rank->nranks * 2;
    c->recv_displs = lists + rank->nranks * 3;
}

static void fini_case(struct perf_case *c)
{
    free(c->send_counts);
}

/* Returns the number of forms to measure: 1 is out of place only, 2 is also in place. */
static int count_places(const struct perf_options *options)
{
    return perf_collective.has_in_place && !options->is_out_of_place_only ? PERF_PLACES : 1;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void register_arena(const struct perf_rank *rank, const struct perf_arena *arena,
                           void **ret_registration)
{
    perf_must(rank, "tuttiCommRegister",
              tuttiCommRegister(rank->comm, arena->target, arena->capacity_bytes,
                                ret_registration));
}

/* Allocates arenas for the largest case, over all types, sizes and places. It is enough to try one
 * reduction: reductions differ only in whether each in-place call needs its own region. Here c->op
 * is PERF_NO_OP, for which in-place reductions need these regions. Sizes do not depend on the root,
 * so c->root is not set either. */
static void allocate(struct perf_rank *rank, struct perf_case *c)
{
    const struct perf_options *o = rank->options;
    size_t input = 1, output = 1;
    enum perf_memory memory;

    for (int type = 0; type < tuttiNumTypes; type++) {
        size_t bytes = o->min_bytes;

        if (perf_collective.has_data && !(o->types >> type & 1))
            continue;
        c->element_bytes = perf_type_bytes((tuttiDataType_t)type);
        do {
            perf_collective.plan(bytes / c->element_bytes, c);
            for (int place = 0; place < count_places(o); place++) {
                struct perf_field field = {
                    .collective = &perf_collective, .call = c,
                    .is_in_place = place == PERF_IN_PLACE};

                perf_measure_plan(o, &field);
                input = larger(input, perf_field_input_need(&field));
                output = larger(output, perf_field_output_need(&field));
            }
            bytes = perf_options_next_size(o, bytes);
        } while (bytes != 0);
    }
    if (rank->gpu.context != NULL)
        memory = o->registration == PERF_WINDOWS ? PERF_MEMORY_GPU_LIBRARY : PERF_MEMORY_GPU;
    else
        memory = o->registration == PERF_UNREGISTERED ? PERF_MEMORY_HEAP : PERF_MEMORY_LIBRARY;
    if (perf_arena_init(&rank->input, input, memory, &rank->gpu) != 0 ||
        perf_arena_init(&rank->output, output, memory, &rank->gpu) != 0)
        perf_die(rank, "no memory for buffers of %zu and %zu bytes: lower -e", input, output);
    if (memory == PERF_MEMORY_GPU && o->registration == PERF_REGISTERED) {
        register_arena(rank, &rank->input, &rank->registrations[0]);
        register_arena(rank, &rank->output, &rank->registrations[1]);
    }
}

static void release(struct perf_rank *rank)
{
    for (int i = 0; i < 2; i++)
        if (rank->registrations[i] != NULL)
            perf_must(rank, "tuttiCommDeregister",
                      tuttiCommDeregister(rank->comm, rank->registrations[i]));
    perf_arena_fini(&rank->input);
    perf_arena_fini(&rank->output);
}

/* Handles the alarm of -T. It may call only functions that are safe in signal handlers. */
static void timed_out(int number)
{
    static const char line[] = "perf: a row took longer than -T allows; giving up\n";

    ssize_t written = write(STDERR_FILENO, line, sizeof(line) - 1);

    (void)number;
    (void)written; /* the process ends in any case */
    _exit(EXIT_FAILURE);
}

/* Sets the alarm of the option -T; 0 seconds turns it off. A process has only one alarm, so its
 * first rank sets it for all of them. */
static void set_alarm(const struct perf_rank *rank, int seconds)
{
    if (rank->options->timeout_seconds > 0 && rank->thread == 0) {
        signal(SIGALRM, timed_out);
        alarm((unsigned)seconds);
    }
}

/* Measures and reports one row of the table: one type, reduction, root and size. */
static void measure_row(struct perf_rank *rank, struct perf_report *report, struct perf_case *c,
                        const struct perf_pattern *pattern, size_t bytes)
{
    const struct perf_options *o = rank->options;
    struct perf_result results[PERF_PLACES];
    struct perf_overlap overlap;

    memset(results, 0, sizeof(results));
    perf_collective.plan(bytes / c->element_bytes, c);
    set_alarm(rank, o->timeout_seconds);
    for (int place = 0; place < count_places(o); place++) {
        struct perf_field field = {.collective = &perf_collective,
                                   .call = c,
                                   .pattern = pattern,
                                   .input = &rank->input,
                                   .output = &rank->output,
                                   .is_in_place = place == PERF_IN_PLACE,
                                   .is_misaligned = o->misalign};

        perf_measure_plan(o, &field);
        perf_measure(rank, &field, perf_report_progress, &results[place]);
        if (o->show_overlap && place == PERF_OUT_OF_PLACE)
            perf_overlap_measure(rank, &field, &overlap, &results[0].wrong, &results[0].overruns);
    }
    set_alarm(rank, 0);
    perf_report_row(report, rank, c, results, count_places(o), o->show_overlap ? &overlap : NULL);
}

/* Returns the library's handle of a reduction. That of PERF_MULSUM is created here, and the caller
 * destroys it. */
static tuttiRedOp_t make_op(const struct perf_rank *rank, tuttiDataType_t type, enum perf_op op)
{
    tuttiRedOp_t handle = tuttiSum;
    uint64_t scalar = 0;

    if (op != PERF_MULSUM)
        return op == PERF_NO_OP ? tuttiSum : (tuttiRedOp_t)op;
    perf_pattern_encode(type, perf_pattern_scalar(rank->rank), &scalar);
    perf_must(rank, "tuttiRedOpCreatePreMulSum",
              tuttiRedOpCreatePreMulSum(&handle, &scalar, type, tuttiScalarHostImmediate,
                                        rank->comm));
    return handle;
}

/* Measures all roots and sizes of one type and reduction. */
static void sweep(struct perf_rank *rank, struct perf_report *report, struct perf_case *c)
{
    const struct perf_options *o = rank->options;
    int summands = perf_collective.summands ? perf_collective.summands(rank->rank) : rank->nranks;
    struct perf_pattern *pattern = perf_pattern_create(c->type, c->op, summands, rank->nranks);
    int first = o->root < 0 ? 0 : o->root, last = o->root < 0 ? rank->nranks - 1 : o->root;

    if (pattern == NULL)
        perf_die(rank, "no memory for the inputs of %d ranks", rank->nranks);
    c->op_handle = make_op(rank, c->type, c->op);
    for (int root = first; root <= last; root++) {
        size_t bytes = perf_collective.has_data ? o->min_bytes : 0;

        c->root = perf_collective.has_root ? root : -1;
        do {
            measure_row(rank, report, c, pattern, bytes);
            bytes = perf_collective.has_data ? perf_options_next_size(o, bytes) : 0;
        } while (bytes != 0);
        if (!perf_collective.has_root)
            break;
    }
    if (c->op == PERF_MULSUM)
        perf_must(rank, "tuttiRedOpDestroy", tuttiRedOpDestroy(c->op_handle, rank->comm));
    perf_pattern_destroy(pattern);
}

/* True if the command line gives several types or reductions, and this type does not have this
 * reduction. If it names just these two, the library says why it refuses them. An average is left
 * out where the ranks combine different numbers of inputs. */
static bool is_left_out(const struct perf_options *o, int type, int op)
{
    bool is_one_pair = (o->types & (o->types - 1)) == 0 && (o->ops & (o->ops - 1)) == 0;

    if (op == PERF_AVG && perf_collective.summands != NULL)
        return true;
    return !is_one_pair && !perf_type_has_op((tuttiDataType_t)type, (enum perf_op)op);
}

/* Measures all types and reductions. */
static void sweep_all(struct perf_rank *rank, struct perf_report *report, struct perf_case *c)
{
    const struct perf_options *o = rank->options;

    for (int type = 0; type < tuttiNumTypes; type++) {
        if (perf_collective.has_data && !(o->types >> type & 1))
            continue;
        c->type = (tuttiDataType_t)type;
        c->element_bytes = perf_type_bytes(c->type);
        for (int op = 0; op < PERF_OP_COUNT; op++) {
            if (perf_collective.has_op && (!(o->ops >> op & 1) || is_left_out(o, type, op)))
                continue;
            c->op = perf_collective.has_op ? (enum perf_op)op : PERF_NO_OP;
            sweep(rank, report, c);
            if (!perf_collective.has_op)
                break;
        }
        if (!perf_collective.has_data)
            break;
    }
}

/* Ends the program if the collective cannot run with these options on so many ranks. */
static void refuse_unfit(const struct perf_rank *rank)
{
    const char *why = perf_collective.refuse ? perf_collective.refuse(rank->nranks) : NULL;

    if (why != NULL)
        perf_die(rank, "%s, not %d", why, rank->nranks);
    if (perf_collective.has_op && rank->options->ops == 1u << PERF_AVG &&
        perf_collective.summands != NULL)
        perf_die(rank, "-o avg: %s has no averages; name another operation", perf_collective.name);
    if (perf_collective.has_root && rank->options->root >= rank->nranks)
        perf_die(rank, "-r %d: there are only %d ranks", rank->options->root, rank->nranks);
    if (perf_collective.is_many_groups && rank->options->aggregate > 1)
        perf_die(rank, "-m %d: its steps depend on each other and cannot be one group",
                 rank->options->aggregate);
    if (perf_collective.tunes == NULL && rank->options->tune_path != NULL)
        perf_die(rank, "--tune: %s has no algorithms to choose from", perf_collective.name);
}

/* Tunes the collective for the option --tune. The measurements that follow use the new table. */
static void tune(const struct perf_rank *rank)
{
    tuttiTuneConfig_t config = TUTTI_TUNE_CONFIG_INITIALIZER;
    tuttiResult_t result;

    config.collectives = perf_collective.tunes;
    config.minBytes = rank->options->min_bytes;
    config.maxBytes = rank->options->max_bytes;
    config.onDevice = rank->options->use_gpu;
    result = tuttiCommTune(rank->comm, rank->options->tune_path, &config);
    /* If kernels do not reach each other, calls go through the host, and are chosen there. */
    if (result == tuttiInvalidUsage && config.onDevice) {
        config.onDevice = 0;
        result = tuttiCommTune(rank->comm, rank->options->tune_path, &config);
    }
    perf_must(rank, "tuttiCommTune", result);
}

int perf_rank_main(struct perf_rank *rank)
{
    struct perf_report report;
    struct perf_case c;
    int code;

    refuse_unfit(rank);
    if (rank->options->tune_path != NULL)
        tune(rank);
    init_case(rank, &c);
    allocate(rank, &c);
    perf_report_open(&report, rank);
    for (int cycle = 0; rank->options->cycles == 0 || cycle < rank->options->cycles; cycle++)
        sweep_all(rank, &report, &c);
    code = perf_report_close(&report, rank);
    release(rank);
    fini_case(&c);
    return code;
}
