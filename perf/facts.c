/* SPDX-License-Identifier: Apache-2.0
 * Finds facts about the run: its date, the host's processor, and the environment variables. */
#include "facts.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

void perf_facts_date(char ret_text[PERF_FACT_BYTES])
{
    time_t now = time(NULL);
    struct tm utc;

    ret_text[0] = '\0';
    if (gmtime_r(&now, &utc) != NULL)
        strftime(ret_text, PERF_FACT_BYTES, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* Reads the line "model name : AMD EPYC ..." of /proc/cpuinfo. Only x86-64 has such a line. */
static void read_model(FILE *file, char ret_text[PERF_FACT_BYTES])
{
    char line[512];

    while (ret_text[0] == '\0' && fgets(line, sizeof(line), file) != NULL) {
        const char *value = strstr(line, ": ");

        if (strncmp(line, "model name", 10) == 0 && value != NULL)
            snprintf(ret_text, PERF_FACT_BYTES, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
    }
}

void perf_facts_cpu(char ret_text[PERF_FACT_BYTES])
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    struct utsname names;

    ret_text[0] = '\0';
    if (file != NULL) {
        read_model(file, ret_text);
        fclose(file);
    }
    if (ret_text[0] == '\0' && uname(&names) == 0)
        snprintf(ret_text, PERF_FACT_BYTES, "%s", names.machine);
}

void perf_facts_environment(void (*tell)(void *context, const char *name, size_t name_length,
                                         const char *value),
                            void *context)
{
    static const char secret[] = "TUTTI_SECRET";

    for (char **at = environ; at != NULL && *at != NULL; at++) {
        const char *equals = strchr(*at, '=');
        size_t length = equals == NULL ? 0 : (size_t)(equals - *at);

        if (strncmp(*at, "TUTTI_", 6) != 0 || equals == NULL)
            continue;
        if (length == sizeof(secret) - 1 && memcmp(*at, secret, length) == 0)
            tell(context, *at, length, "(hidden)");
        else
            tell(context, *at, length, equals + 1);
    }
}
