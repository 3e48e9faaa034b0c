/* SPDX-License-Identifier: Apache-2.0
 * Parses CPU lists and binds threads to the CPUs. */
#include "cpus.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* Parses a list such as "0,2-3", which ends at `stop`. Stores the CPUs in the order of the text.
 * Returns the number of CPUs, or -1 if the text is not a valid list. */
static int parse_list(const char *text, const char *stop, int ret_list[PERF_CPUS_MOST])
{
    int count = 0;

    while (text < stop) {
        char *end;
        long first = strtol(text, &end, 10), last = first;

        if (end == text || first < 0)
            return -1;
        if (*end == '-') {
            text = end + 1;
            last = strtol(text, &end, 10);
            if (end == text)
                return -1;
        }
        if (last < first || last >= CPU_SETSIZE || last - first >= PERF_CPUS_MOST - count)
            return -1;
        for (long cpu = first; cpu <= last; cpu++)
            ret_list[count++] = (int)cpu;
        if (end != stop && (*end != ',' || end + 1 == stop))
            return -1;
        text = end == stop ? stop : end + 1;
    }
    return count;
}

/* Parses the rest of the text after "any": it is empty or ":N". */
static bool parse_any(const char *text, struct perf_cpus *ret_cpus)
{
    char *end = NULL;
    long count = *text == ':' ? strtol(text + 1, &end, 10) : INT_MAX;

    if (*text != '\0' && (*text != ':' || end == text + 1 || *end != '\0'))
        return false;
    if (count < 1 || count > INT_MAX)
        return false;
    *ret_cpus = (struct perf_cpus){.count = (int)count};
    return true;
}

bool perf_cpus_parse(const char *text, struct perf_cpus *ret_cpus)
{
    struct perf_cpus cpus = {.is_given = true};
    const char *slash = strchr(text, '/');
    int streams[PERF_CPUS_MOST], count;

    if (strncmp(text, "any", 3) == 0 && slash == NULL)
        return parse_any(text + 3, ret_cpus);
    if (slash == NULL)
        return false;
    cpus.count = parse_list(text, slash, cpus.compute);
    count = parse_list(slash + 1, text + strlen(text), streams);
    if (cpus.count <= 0 || count <= 0)
        return false;
    for (int i = 0; i < count; i++)
        CPU_SET((size_t)streams[i], &cpus.streams);
    *ret_cpus = cpus;
    return true;
}

int perf_cpus_bind_for_stream(const struct perf_cpus *cpus)
{
    if (!cpus->is_given)
        return 0;
    return sched_setaffinity(0, sizeof(cpus->streams), &cpus->streams) == 0 ? 0 : errno;
}

int perf_cpus_settle(const struct perf_cpus *cpus, int rank)
{
    cpu_set_t mine;

    if (!cpus->is_given || rank >= cpus->count)
        return 0;
    CPU_ZERO(&mine);
    CPU_SET((size_t)cpus->compute[rank], &mine);
    return sched_setaffinity(0, sizeof(mine), &mine) == 0 ? 0 : errno;
}

bool perf_cpus_computes(const struct perf_cpus *cpus, int rank)
{
    return rank < cpus->count;
}

void perf_cpus_describe(const struct perf_cpus *cpus, int nranks,
                        char ret_text[PERF_CPUS_TEXT_BYTES])
{
    char *at = ret_text, *end = ret_text + PERF_CPUS_TEXT_BYTES;
    int computing = cpus->count < nranks ? cpus->count : nranks;

    if (!cpus->is_given) {
        snprintf(ret_text, PERF_CPUS_TEXT_BYTES, "%d of %d ranks compute, nothing is bound",
                 computing, nranks);
        return;
    }
    /* snprintf returns the length of the whole text, even if it cuts the text off. So `at` reaches
     * `end` when the line is full, and all loops end. */
    for (int i = 0; i < computing && at < end; i++)
        at += snprintf(at, (size_t)(end - at), i == 0 ? "rank %d computes on CPU %d"
                                                      : ", rank %d on CPU %d", i, cpus->compute[i]);
    if (at < end)
        at += snprintf(at, (size_t)(end - at), ", streams run on CPU");
    for (size_t cpu = 0; cpu < CPU_SETSIZE && at < end; cpu++)
        if (CPU_ISSET(cpu, &cpus->streams))
            at += snprintf(at, (size_t)(end - at), " %zu", cpu);
}
