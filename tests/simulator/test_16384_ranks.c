/* SPDX-License-Identifier: Apache-2.0
 * Builds and plays all schedules with 16,384 ranks in the memory of a laptop. It prints CPU time
 * and peak memory. Only the memory is asserted, because the time depends on the machine. */
#include "simulator/stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

enum { RANKS = 16384, MIB = 1024 * 1024, MOST_MIB = 4096 };

static double play(const char *machine, const char *algorithm, size_t bytes)
{
    clock_t begin = clock();
    double seconds = stage_seconds(machine, RANKS, TUTTI_ALLREDUCE, algorithm, bytes);
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    print_message("%s: %.1f us simulated, %.1f s of processor time, peak %ld MiB\n", algorithm,
                  seconds * 1e6, (double)(clock() - begin) / CLOCKS_PER_SEC,
                  usage.ru_maxrss / 1024);
    assert_true(usage.ru_maxrss / 1024 < MOST_MIB);
    return seconds;
}

static void logarithmic_algorithms_of_16384_ranks_take_what_the_textbook_says(void **state)
{
    const char *flat = "ranks 4; level top overhead 5us bandwidth 50GB/s";
    const double alpha = 5e-6, n_s = 4.0 * MIB / 50e9;

    (void)state;
    assert_close(play(flat, "circulant", 4 * MIB), 28 * alpha + 2 * n_s * (RANKS - 1) / RANKS);
    assert_close(play(flat, "recursive_doubling", 4 * MIB), 14 * (alpha + n_s));
    assert_true(play(flat, "hybrid", 4 * MIB) <= 14 * (alpha + n_s));
}

/* 2,048 nodes of 8 in groups of 64, tapered to a half: flows share trunks. */
static void tapered_fabrics_of_16384_ranks_are_played(void **state)
{
    const char *fabric = "ranks 4; node 8; group 64; trunk 12800GB/s;"
                         "level node latency 1us bandwidth 300GB/s;"
                         "level group latency 2us overhead 2us bandwidth 50GB/s;"
                         "level top latency 3us overhead 2us bandwidth 50GB/s";
    double flat_s = play(fabric, "circulant", 64 * MIB);

    (void)state;
    /* Every rank sends and receives nearly two vectors, most of them through half of the links. */
    assert_true(flat_s > 2 * 64.0 * MIB / 50e9);
    assert_true(play(fabric, "hierarchical", 64 * MIB) < flat_s / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithmic_algorithms_of_16384_ranks_take_what_the_textbook_says),
        cmocka_unit_test(tapered_fabrics_of_16384_ranks_are_played),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
