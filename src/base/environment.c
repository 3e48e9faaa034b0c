/* SPDX-License-Identifier: Apache-2.0
 * Finds TUTTI_* variables in the environment, and the parameter closest to a misspelled one. */
#include "base/environment.h"

#include "base/atomic.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char prefix[] = "TUTTI_";

/* Known variables that the library itself does not read: those of tutti-run and of the build. An
 * entry that ends in '_' is a prefix of variables of our tests and simulators. */
static const char *const others[] = {
    "TUTTI_LOCAL_RANK", "TUTTI_LOCAL_NRANKS", "TUTTI_PROGRESS", "TUTTI_SETUP",
    "TUTTI_CUDA_ARCHITECTURES", "TUTTI_SIM_", "TUTTI_TEST_", "TUTTI_TESTS_",
};

static bool is_of_others(const char *name)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t length = strlen(others[i]);
        bool is_family = others[i][length - 1] == '_';

        if (is_family ? strncmp(name, others[i], length) == 0 : strcmp(name, others[i]) == 0)
            return true;
    }
    return false;
}

static const struct tutti_param_info *find(const char *name)
{
    for (int param = 0; param < TUTTI_PARAM_COUNT; param++) {
        const struct tutti_param_info *info = tutti_param_info((enum tutti_param)param);

        if (strcmp(info->name, name) == 0)
            return info;
    }
    return NULL;
}

bool tutti_environment_next(size_t *at, struct tutti_variable *ret_variable)
{
    while (environ != NULL && environ[*at] != NULL) {
        const char *entry = environ[(*at)++];
        const char *equals = strchr(entry, '=');
        struct tutti_variable variable;

        if (strncmp(entry, prefix, sizeof prefix - 1) != 0 || equals == NULL || equals[1] == '\0')
            continue;
        snprintf(variable.name, sizeof variable.name, "%.*s", (int)(equals - entry), entry);
        variable.value = equals + 1;
        variable.info = find(variable.name);
        variable.is_known = variable.info != NULL || is_of_others(variable.name);
        *ret_variable = variable;
        return true;
    }
    return false;
}

const char *tutti_variable_shown(const struct tutti_variable *variable)
{
    /* Compare only a part of the name, because a misspelled variable may hold a secret, too. */
    return strstr(variable->name, "SECRET") != NULL ? "(set, not shown)" : variable->value;
}

/* ---- similar names --------------------------------------------------------------------------- */

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;

    return ab < c ? ab : c;
}

/* Levenshtein distance: how many characters to insert, remove or replace to turn one name into the
 * other. */
static size_t distance(const char *one, const char *other)
{
    size_t row[TUTTI_VARIABLE_NAME_BYTES + 1];
    size_t length = strnlen(other, TUTTI_VARIABLE_NAME_BYTES);

    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 1; one[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t above = row[j];

            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (one[i - 1] != other[j - 1]));
            diagonal = above;
        }
    }
    return row[length];
}

const char *tutti_environment_nearest(const char *name)
{
    const char *nearest = NULL;
    /* At most about a third of the name after the prefix may differ; beyond that, similarity is
     * chance. */
    size_t best = (strlen(name) > sizeof prefix ? strlen(name) - sizeof prefix : 0) / 3 + 2;

    for (int param = 0; param < TUTTI_PARAM_COUNT; param++) {
        const char *known = tutti_param_info((enum tutti_param)param)->name;
        size_t differs = distance(name, known);

        if (differs < best) {
            best = differs;
            nearest = known;
        }
    }
    return nearest;
}

/* ---- reports --------------------------------------------------------------------------------- */

void tutti_environment_format(char *ret_text, size_t size)
{
    struct tutti_variable variable;
    size_t at = 0, length = 0;

    snprintf(ret_text, size, "none");
    while (length < size && tutti_environment_next(&at, &variable))
        length += (size_t)snprintf(ret_text + length, size - length, "%s%s=%.100s",
                                   length > 0 ? " " : "", variable.name,
                                   tutti_variable_shown(&variable));
    if (length >= size && size > 4)
        memcpy(ret_text + size - 4, "...", 4);
}

void tutti_environment_report_unknown(enum tutti_log_level level)
{
    static uint32_t has_reported;
    struct tutti_variable variable;
    size_t at = 0;

    /* acquire and release: pairs with itself in other threads, of which one reports */
    if (tutti_exchange(&has_reported, 1) != 0)
        return;
    while (tutti_environment_next(&at, &variable)) {
        const char *nearest = variable.is_known ? NULL : tutti_environment_nearest(variable.name);

        if (nearest != NULL)
            tutti_log(level, "%s is not a variable of this library and has no effect; did you "
                      "mean %s?", variable.name, nearest);
        else if (!variable.is_known)
            tutti_log(level, "%s is not a variable of this library and has no effect; "
                      "docs/environment.md lists them all", variable.name);
    }
}
