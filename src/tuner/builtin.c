/* SPDX-License-Identifier: Apache-2.0
 * The built-in table of choices. The first row that fits a call is used.
 *
 * Prices are made of counts, which do not include the effects of memory, caches and scheduling. So
 * rows for ranks that share memory, or have to share cores, take precedence over prices. These rows
 * were measured on a two-core host with 2 to 16 ranks (bench/choices). Only those for ranks of one
 * process were derived from the others. The size limits are exact only to about a factor of 2.
 * General rows are used if there is no price. They follow from rounds and bytes alone. */
#include "tuner/builtin.h"

#define ANY SIZE_MAX
#define AS_USUAL TUTTI_SEGMENTS, 0 /* every option has its usual value */

/* Conditions on a communicator and a call. A row fits only if all of its conditions hold. */
enum {
    ALL = 0,           /* a general row */
    IN_MEMORY = 1,     /* all ranks share memory */
    IN_PROCESS = 2,    /* ranks read and write each other's buffers: threads of a process, or
                          processes that lend each other memory */
    /* All ranks are on one host, which has fewer cores than ranks. There a signal to all ranks
     * costs context switches, because it waits for all of them. A message waits in a FIFO, and its
     * sender can continue. */
    CROWDED = 4,
    PAIR = 8,          /* two ranks, which share memory */
    /* A two-sided run of the call keeps sums in a type that is wider than that of the call. Such a
     * run cannot be replaced by a run on lent buffers, but a run through windows can. */
    NARROW = 16,
};

struct rule {
    enum tutti_collective collective;
    size_t most_bytes; /* of the larger buffer of a rank */
    uint32_t least_ranks;
    int conditions; /* bits of the enum above */
    const char *algorithm;
    enum tutti_option option;
    uint32_t value; /* of that option; 0: all options are as usual */
};

/* The rows of a collective are ordered by preference. Rows with stricter conditions come first. */
static const struct rule rules[] = {
    {TUTTI_BARRIER, ANY, 2, IN_MEMORY, "direct", AS_USUAL},
    {TUTTI_BARRIER, ANY, 1, ALL, "dissemination", AS_USUAL},

    {TUTTI_ALLREDUCE, 32 << 10, 2, IN_MEMORY, "one_shot", AS_USUAL},
    {TUTTI_ALLREDUCE, ANY, 2, IN_PROCESS, "mapped", AS_USUAL},
    {TUTTI_ALLREDUCE, ANY, 2, PAIR, "one_shot", AS_USUAL},
    {TUTTI_ALLREDUCE, ANY, 2, IN_MEMORY, "two_shot", AS_USUAL},
    {TUTTI_ALLREDUCE, 8 << 10, 3, CROWDED, "recursive_doubling", AS_USUAL},
    {TUTTI_ALLREDUCE, 256 << 10, 16, CROWDED, "circulant_pipeline", TUTTI_SEGMENTS, 1},
    {TUTTI_ALLREDUCE, 32 << 10, 3, CROWDED, "recursive_doubling", AS_USUAL},
    {TUTTI_ALLREDUCE, 256 << 10, 8, CROWDED, "circulant_pipeline", TUTTI_SEGMENTS, 1},
    {TUTTI_ALLREDUCE, 256 << 10, 3, CROWDED, "recursive_doubling", AS_USUAL},
    {TUTTI_ALLREDUCE, 3 << 20, 3, CROWDED, "rabenseifner", AS_USUAL},
    {TUTTI_ALLREDUCE, ANY, 8, CROWDED, "ring", AS_USUAL},
    {TUTTI_ALLREDUCE, ANY, 3, CROWDED, "walecki", TUTTI_CHANNELS, 2},
    {TUTTI_ALLREDUCE, 64 << 10, 2, ALL, "recursive_doubling", AS_USUAL},
    {TUTTI_ALLREDUCE, ANY, 1, ALL, "circulant", AS_USUAL},

    {TUTTI_REDUCE, 128, 16, IN_MEMORY | CROWDED, "linear", AS_USUAL},
    {TUTTI_REDUCE, 128, 3, IN_MEMORY | CROWDED, "knomial", TUTTI_RADIX, 4},
    {TUTTI_REDUCE, 8 << 10, 16, IN_MEMORY | CROWDED, "tree", TUTTI_SEGMENTS, 1},
    {TUTTI_REDUCE, 8 << 10, 2, IN_MEMORY | CROWDED, "circulant_pipeline", TUTTI_SEGMENTS, 1},
    {TUTTI_REDUCE, 32 << 10, 16, IN_MEMORY | CROWDED, "chain", TUTTI_SEGMENTS, 2},
    {TUTTI_REDUCE, 32 << 10, 2, IN_MEMORY | CROWDED, "direct_one_shot", AS_USUAL},
    {TUTTI_REDUCE, 4 << 10, 2, IN_MEMORY, "direct_one_shot", AS_USUAL},
    {TUTTI_REDUCE, 32 << 10, 2, PAIR, "chain", TUTTI_SEGMENTS, 2},
    {TUTTI_REDUCE, ANY, 2, IN_PROCESS, "mapped", AS_USUAL},
    {TUTTI_REDUCE, ANY, 2, PAIR | NARROW, "direct", AS_USUAL},
    {TUTTI_REDUCE, ANY, 2, PAIR, "tree", AS_USUAL},
    {TUTTI_REDUCE, ANY, 2, IN_MEMORY, "direct", AS_USUAL},
    {TUTTI_REDUCE, 8 << 10, 16, CROWDED, "linear", AS_USUAL},
    {TUTTI_REDUCE, 8 << 10, 8, CROWDED, "knomial", TUTTI_RADIX, 8},
    {TUTTI_REDUCE, 64, 3, CROWDED, "knomial", TUTTI_RADIX, 4},
    {TUTTI_REDUCE, 8 << 10, 3, CROWDED, "linear", AS_USUAL},
    {TUTTI_REDUCE, 32 << 10, 3, CROWDED, "knomial", TUTTI_RADIX, 4},
    {TUTTI_REDUCE, 256 << 10, 8, CROWDED, "circulant_pipeline", TUTTI_SEGMENTS, 1},
    {TUTTI_REDUCE, 3 << 20, 8, CROWDED, "knomial", TUTTI_RADIX, 4},
    {TUTTI_REDUCE, ANY, 16, CROWDED, "chain", TUTTI_SEGMENTS, 16},
    {TUTTI_REDUCE, ANY, 8, CROWDED, "circulant_pipeline", TUTTI_SEGMENTS, 16},
    {TUTTI_REDUCE, 512 << 10, 3, CROWDED, "knomial", TUTTI_RADIX, 4},
    {TUTTI_REDUCE, 3 << 20, 3, CROWDED, "circulant_pipeline", TUTTI_SEGMENTS, 4},
    {TUTTI_REDUCE, ANY, 3, CROWDED, "hierarchical", TUTTI_SEGMENTS, 2},
    {TUTTI_REDUCE, 64 << 10, 2, ALL, "knomial", AS_USUAL},
    {TUTTI_REDUCE, ANY, 1, ALL, "chain", AS_USUAL},

    {TUTTI_BROADCAST, 64, 3, CROWDED, "tree", TUTTI_SEGMENTS, 1},
    {TUTTI_BROADCAST, 8 << 10, 3, CROWDED, "circulant_pipeline", TUTTI_SEGMENTS, 1},
    {TUTTI_BROADCAST, 32 << 10, 2, IN_MEMORY, "direct", AS_USUAL},
    {TUTTI_BROADCAST, 512 << 10, 3, IN_PROCESS | CROWDED, "direct", AS_USUAL},
    {TUTTI_BROADCAST, 4 << 20, 3, IN_PROCESS | CROWDED, "mapped", AS_USUAL},
    {TUTTI_BROADCAST, ANY, 2, IN_PROCESS, "shared", AS_USUAL},
    {TUTTI_BROADCAST, 12 << 20, 2, PAIR, "direct", AS_USUAL},
    {TUTTI_BROADCAST, ANY, 2, PAIR, "mapped", AS_USUAL},
    {TUTTI_BROADCAST, ANY, 2, IN_MEMORY, "direct", AS_USUAL},
    {TUTTI_BROADCAST, 512 << 10, 3, CROWDED, "circulant_pipeline", TUTTI_SEGMENTS, 1},
    {TUTTI_BROADCAST, 3 << 20, 3, CROWDED, "chain", TUTTI_SEGMENTS, 4},
    {TUTTI_BROADCAST, 16 << 20, 3, CROWDED, "chain", AS_USUAL},
    {TUTTI_BROADCAST, 64 << 10, 2, ALL, "knomial", AS_USUAL},
    {TUTTI_BROADCAST, ANY, 1, ALL, "chain", AS_USUAL},

    {TUTTI_ALLGATHER, 64 << 10, 2, IN_MEMORY, "direct", AS_USUAL},
    {TUTTI_ALLGATHER, 512 << 10, 8, IN_PROCESS | CROWDED, "direct", AS_USUAL},
    {TUTTI_ALLGATHER, 512 << 10, 2, IN_PROCESS, "mapped", AS_USUAL},
    {TUTTI_ALLGATHER, ANY, 2, IN_PROCESS, "stored", AS_USUAL},
    {TUTTI_ALLGATHER, ANY, 2, IN_PROCESS, "mapped", AS_USUAL}, /* the v-form */
    {TUTTI_ALLGATHER, ANY, 2, IN_MEMORY, "direct", AS_USUAL},
    {TUTTI_ALLGATHER, ANY, 2, PAIR, "mapped", AS_USUAL}, /* the v-form, too */
    {TUTTI_ALLGATHER, 3 << 20, 3, CROWDED, "recursive_doubling", AS_USUAL},
    {TUTTI_ALLGATHER, ANY, 3, CROWDED, "ring", AS_USUAL},
    {TUTTI_ALLGATHER, ANY, 1, ALL, "circulant", AS_USUAL},

    {TUTTI_REDUCE_SCATTER, 16 << 10, 2, IN_MEMORY, "direct", AS_USUAL},
    {TUTTI_REDUCE_SCATTER, ANY, 2, IN_PROCESS, "mapped", AS_USUAL},
    {TUTTI_REDUCE_SCATTER, ANY, 2, IN_MEMORY, "direct", AS_USUAL},
    {TUTTI_REDUCE_SCATTER, 3 << 20, 3, CROWDED, "recursive_halving", AS_USUAL},
    {TUTTI_REDUCE_SCATTER, ANY, 16, CROWDED, "walecki", TUTTI_CHANNELS, 1},
    {TUTTI_REDUCE_SCATTER, ANY, 3, CROWDED, "walecki", AS_USUAL},
    {TUTTI_REDUCE_SCATTER, ANY, 1, ALL, "circulant", AS_USUAL},

    {TUTTI_ALLTOALL, 64 << 10, 2, IN_MEMORY, "direct", AS_USUAL},
    {TUTTI_ALLTOALL, ANY, 2, IN_PROCESS, "mapped", AS_USUAL},
    {TUTTI_ALLTOALL, 512 << 10, 2, PAIR, "direct", AS_USUAL},
    {TUTTI_ALLTOALL, ANY, 2, PAIR, "mapped", AS_USUAL},
    {TUTTI_ALLTOALL, ANY, 2, IN_MEMORY, "direct", AS_USUAL},
    {TUTTI_ALLTOALL, 32 << 10, 3, CROWDED, "bruck", AS_USUAL},
    {TUTTI_ALLTOALL, 256 << 10, 8, CROWDED, "bruck", TUTTI_RADIX, 4},
    {TUTTI_ALLTOALL, ANY, 3, CROWDED, "spread_out", TUTTI_WINDOW, 4},
    {TUTTI_ALLTOALL, 2 << 10, 8, ALL, "bruck", AS_USUAL},
    {TUTTI_ALLTOALL, ANY, 1, ALL, "spread_out", AS_USUAL},

    {TUTTI_GATHER, 64 << 10, 8, IN_MEMORY | CROWDED, "linear", AS_USUAL},
    {TUTTI_GATHER, 64 << 10, 3, IN_MEMORY | CROWDED, "knomial", TUTTI_RADIX, 4},
    {TUTTI_GATHER, 8 << 10, 2, IN_MEMORY, "direct", AS_USUAL},
    {TUTTI_GATHER, 256 << 10, 2, PAIR, "linear", AS_USUAL},
    {TUTTI_GATHER, 64 << 10, 2, IN_MEMORY, "direct", AS_USUAL},
    {TUTTI_GATHER, ANY, 2, IN_PROCESS, "mapped", AS_USUAL},
    {TUTTI_GATHER, 16 << 20, 2, IN_MEMORY, "direct", AS_USUAL},
    {TUTTI_GATHER, ANY, 2, IN_MEMORY, "mapped", AS_USUAL},
    {TUTTI_GATHER, ANY, 2, IN_MEMORY, "direct", AS_USUAL},
    {TUTTI_GATHER, ANY, 3, CROWDED, "linear", AS_USUAL},
    {TUTTI_GATHER, 16 << 10, 2, ALL, "knomial", AS_USUAL},
    {TUTTI_GATHER, ANY, 1, ALL, "linear", AS_USUAL},

    {TUTTI_SCATTER, 8 << 10, 8, IN_MEMORY | CROWDED, "knomial", TUTTI_RADIX, 4},
    {TUTTI_SCATTER, 8 << 10, 3, IN_MEMORY | CROWDED, "knomial", AS_USUAL},
    {TUTTI_SCATTER, 32 << 10, 3, IN_MEMORY | CROWDED, "direct", AS_USUAL},
    {TUTTI_SCATTER, 256 << 10, 3, IN_MEMORY | CROWDED, "linear", AS_USUAL},
    {TUTTI_SCATTER, 32 << 10, 2, IN_MEMORY, "direct", AS_USUAL},
    {TUTTI_SCATTER, 2 << 20, 2, PAIR, "linear", AS_USUAL},
    {TUTTI_SCATTER, 256 << 10, 2, IN_MEMORY, "direct", AS_USUAL},
    {TUTTI_SCATTER, ANY, 2, IN_MEMORY, "mapped", AS_USUAL},
    {TUTTI_SCATTER, ANY, 2, IN_MEMORY, "direct", AS_USUAL},
    {TUTTI_SCATTER, 256 << 10, 3, CROWDED, "knomial", AS_USUAL},
    {TUTTI_SCATTER, ANY, 3, CROWDED, "linear", AS_USUAL},
    {TUTTI_SCATTER, 16 << 10, 2, ALL, "knomial", AS_USUAL},
    {TUTTI_SCATTER, ANY, 1, ALL, "linear", AS_USUAL},

    {TUTTI_SCAN, 64 << 10, 1, ALL, "doubling", AS_USUAL},
    {TUTTI_SCAN, ANY, 1, ALL, "chain", AS_USUAL},

    {TUTTI_EXCLUSIVE_SCAN, 64 << 10, 1, ALL, "doubling", AS_USUAL},
    {TUTTI_EXCLUSIVE_SCAN, ANY, 1, ALL, "chain", AS_USUAL},
};

bool tutti_builtin_is_crowded(const struct tutti_tuner_view *view)
{
    uint32_t cores = view->machine ? view->machine->cores : 0;
    bool is_one_host = view->is_one_domain || (view->places && view->places->nnodes == 1);

    return is_one_host && cores > 0 && view->nranks > cores;
}

/* Returns the conditions that hold for this view and this call. */
static int conditions_of(const struct tutti_tuner_view *view, const struct tutti_tuner_query *query)
{
    int held = tutti_builtin_is_crowded(view) ? CROWDED : ALL;

    if (view->is_one_domain)
        held |= IN_MEMORY | (view->all_store || query->is_lent ? IN_PROCESS : 0) |
                (view->nranks == 2 ? PAIR : 0);
    return held | (query->widening > 1 ? NARROW : 0);
}

bool tutti_builtin_find(const struct tutti_tuner_view *view,
                        const struct tutti_tuner_query *query, bool is_measured,
                        struct tutti_choice *ret_choice)
{
    size_t bytes = tutti_tuner_bytes(view, query);
    int held = conditions_of(view, query);

    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *rule = &rules[i];
        const struct tutti_algorithm *algorithm;

        if (rule->collective != query->collective || bytes > rule->most_bytes ||
            view->nranks < rule->least_ranks || (rule->conditions & ~held) != 0 ||
            (rule->conditions != ALL) != is_measured)
            continue;
        algorithm = tutti_algorithm_find(rule->collective, rule->algorithm);
        if (algorithm == NULL || !tutti_tuner_can_serve(view, query, algorithm))
            continue;
        *ret_choice = (struct tutti_choice){.algorithm = algorithm};
        ret_choice->options.value[rule->option] = rule->value;
        return true;
    }
    return false;
}

/* ---- protocols of GPUs ----------------------------------------------------------------------- */

/* Lines save waiting time, but move more bytes, so they are worth their cost only for small blocks.
 * The limits are assumed: no GPU has measured them. Copy engines are asked only for calls that the
 * user leaves to them (TUTTI_GPU_COPY_ENGINE_BYTES). */
static const struct {
    size_t most_block_bytes;
    enum tutti_protocol protocol;
} protocols[] = {
    {ANY, TUTTI_PROTOCOL_COPIES},
    {16 << 10, TUTTI_PROTOCOL_LL},
    {256 << 10, TUTTI_PROTOCOL_LL128},
    {ANY, TUTTI_PROTOCOL_DIRECT},
    {ANY, TUTTI_PROTOCOL_LL}, /* a barrier */
};

bool tutti_builtin_find_protocol(const struct tutti_tuner_view *view,
                                 const struct tutti_tuner_query *query,
                                 struct tutti_choice *ret_choice)
{
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++) {
        struct tutti_choice choice = {
            .algorithm = tutti_protocol_form(protocols[i].protocol, query->collective),
            .protocol = protocols[i].protocol};

        if (query->block_bytes > protocols[i].most_block_bytes || choice.algorithm == NULL ||
            !tutti_tuner_can_run(view, query, &choice))
            continue;
        *ret_choice = choice;
        return true;
    }
    return false;
}
