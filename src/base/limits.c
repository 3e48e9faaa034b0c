/* SPDX-License-Identifier: Apache-2.0
 * Raises the process's limit of open files, and describes the errors that come from reaching it. */
#include "base/limits.h"

#include "base/log.h"
#include "base/param.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static void raise_once(void)
{
    struct rlimit limit;
    rlim_t before;

    if (tutti_param_int(TUTTI_PARAM_RAISE_LIMITS) == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
        limit.rlim_cur >= limit.rlim_max)
        return;
    before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
        tutti_log(TUTTI_LOG_INFO, "raised the limit of open files from %llu to %llu "
                  "(TUTTI_RAISE_LIMITS=off leaves it)", (unsigned long long)before,
                  (unsigned long long)limit.rlim_cur);
}

void tutti_limits_raise(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, raise_once);
}

bool tutti_limits_are_reached(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

const char *tutti_limits_describe(int error, char text[TUTTI_LIMITS_TEXT_BYTES])
{
    struct rlimit limit;

    if (error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
        snprintf(text, TUTTI_LIMITS_TEXT_BYTES, "%s; this process may have %llu (hard limit %llu): "
                 "raise the limit with ulimit -n", strerror(error),
                 (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
    else
        snprintf(text, TUTTI_LIMITS_TEXT_BYTES, "%s", strerror(error));
    return text;
}
