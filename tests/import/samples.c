/* SPDX-License-Identifier: Apache-2.0
 * Reads sample files. */
#include "import/samples.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

const char *sample_name(size_t index)
{
    static const char *const names[] = {
        "all_pairs_allreduce.xml",    "all_pairs_packets.json",
        "all_pairs_signals.json",     "binomial_broadcast.tutti",
        "hierarchical_allgather.xml", "hierarchical_allgather_in_place.xml",
        "one_shot_reads.json",        "one_to_all_packets.json",
        "ring_allreduce.xml",         "ring_reduce_scatter.xml",
    };

    return index < sizeof names / sizeof *names ? names[index] : NULL;
}

char *sample_read(const char *name, size_t *ret_size_bytes)
{
    enum { MOST = 1 << 20 };
    char path[1024], *text = malloc(MOST);
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", SAMPLES, name);
    file = fopen(path, "rb");
    if (file == NULL || text == NULL)
        fail_msg("cannot read %s", path);
    *ret_size_bytes = fread(text, 1, MOST - 1, file);
    text[*ret_size_bytes] = '\0';
    fclose(file);
    return text;
}
