/* SPDX-License-Identifier: Apache-2.0
 * Starts the threads of host streams and mailboxes, on the CPUs that the user sets aside for them.
 */
#include "queue/stream_cpus.h"

#include "base/param.h"
#include "base/result.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Reads a CPU number at *at, and moves *at behind it. Returns false if there is no number, or if it
 * is too large. */
static bool read_cpu(const char **at, long *ret_cpu)
{
    char *end;

    if (**at < '0' || **at > '9')
        return false;
    *ret_cpu = strtol(*at, &end, 10);
    *at = end;
    return *ret_cpu < CPU_SETSIZE;
}

/* Reads a list such as "0-3,8". Returns false if the text is not such a list. */
static bool read_list(const char *at, cpu_set_t *ret_cpus)
{
    CPU_ZERO(ret_cpus);
    for (;;) {
        long first, last;

        if (!read_cpu(&at, &first))
            return false;
        last = first;
        if (*at == '-' && (at++, !read_cpu(&at, &last) || last < first))
            return false;
        for (long cpu = first; cpu <= last; cpu++)
            CPU_SET((size_t)cpu, ret_cpus);
        if (*at == '\0')
            return true;
        if (*at++ != ',')
            return false;
    }
}

/* Restricts a thread with these attributes to the CPUs of `list`, if there is a list. */
static int set_cpus(const char *list, pthread_attr_t *attributes)
{
    cpu_set_t cpus;

    if (*list == '\0')
        return TUTTI_OK;
    if (!read_list(list, &cpus))
        return tutti_fail(TUTTI_ERR_USAGE, "TUTTI_STREAM_CPUS=%s is not a list of CPUs below %d, "
                          "such as 0-3,8", list, CPU_SETSIZE);
    if (pthread_attr_setaffinity_np(attributes, sizeof cpus, &cpus) != 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the attributes of a stream's thread");
    return TUTTI_OK;
}

int tutti_stream_thread(void *(*run)(void *), void *argument, pthread_t *ret_thread)
{
    const char *list = tutti_param_text(TUTTI_PARAM_STREAM_CPUS);
    pthread_attr_t attributes;
    int rc;

    if (pthread_attr_init(&attributes) != 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the attributes of a stream's thread");
    TUTTI_TRY_OR(out, rc, set_cpus(list, &attributes));
    errno = pthread_create(ret_thread, &attributes, run, argument);
    if (errno == EINVAL && *list != '\0')
        rc = tutti_fail(TUTTI_ERR_USAGE, "TUTTI_STREAM_CPUS=%s: this process may run on none of "
                        "these CPUs", list);
    else if (errno != 0)
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "cannot start a thread of a host stream or mailbox: %s",
                        strerror(errno));
    else
        pthread_setname_np(*ret_thread, "tutti-stream");
out:
    pthread_attr_destroy(&attributes);
    return rc;
}
