/* SPDX-License-Identifier: Apache-2.0
 * Reads the library's environment variables. Each is parsed at its first use, and its value is kept
 * for the life of the process. */
#include "base/param.h"

#include "base/atomic.h"
#include "base/sizes.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct tutti_param_info infos[TUTTI_PARAM_COUNT] = {
#define TUTTI_PARAM_INT(id, env_name, fall, lo, hi, text) \
    [TUTTI_PARAM_##id] = {.name = env_name, .kind = TUTTI_PARAM_KIND_INT, .fallback = fall, \
                          .low = lo, .high = hi, .help = text},
#define TUTTI_PARAM_TEXT(id, env_name, fall, text) \
    [TUTTI_PARAM_##id] = {.name = env_name, .kind = TUTTI_PARAM_KIND_TEXT, .fallback = fall, \
                          .help = text},
#define TUTTI_PARAM_CHOICE(id, env_name, fall, names, text) \
    [TUTTI_PARAM_##id] = {.name = env_name, .kind = TUTTI_PARAM_KIND_CHOICE, .fallback = fall, \
                          .choices = names, .help = text},
#include "base/param_table.h"
#undef TUTTI_PARAM_INT
#undef TUTTI_PARAM_TEXT
#undef TUTTI_PARAM_CHOICE
};

struct value {
    bool is_read; /* release: pairs with the acquire in lookup(), publishes the rest */
    int64_t number;
    char *text; /* NULL is "" */
};

static struct value values[TUTTI_PARAM_COUNT];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool parse_int(const char *text, int64_t low, int64_t high, int64_t *ret_number)
{
    const char *at = text + strspn(text, " \t"), *end = at + strlen(at);
    bool is_negative = *at == '-';
    int64_t number;
    uint64_t size;

    at += is_negative || *at == '+';
    if (!tutti_size_read(&at, end, &size) || at != end || size > INT64_MAX)
        return false;
    number = is_negative ? -(int64_t)size : (int64_t)size;
    if (number < low || number > high)
        return false;
    *ret_number = number;
    return true;
}

/* The comparison ignores case, because users of other libraries write WARN. */
static bool parse_choice(const char *text, const char *choices, int64_t *ret_index)
{
    size_t length = strlen(text);
    int64_t index = 0;

    for (const char *at = choices; at != NULL; index++) {
        const char *bar = strchr(at, '|');
        size_t size = bar ? (size_t)(bar - at) : strlen(at);

        if (size == length && strncasecmp(at, text, length) == 0) {
            *ret_index = index;
            return true;
        }
        at = bar ? bar + 1 : NULL;
    }
    return false;
}

static bool parse(const struct tutti_param_info *info, const char *text, int64_t *ret_number)
{
    switch (info->kind) {
    case TUTTI_PARAM_KIND_INT: return parse_int(text, info->low, info->high, ret_number);
    case TUTTI_PARAM_KIND_CHOICE: return parse_choice(text, info->choices, ret_number);
    default: return true;
    }
}

bool tutti_param_accepts(const struct tutti_param_info *info, const char *text)
{
    int64_t number;

    return *text == '\0' || parse(info, text, &number);
}

/* The log itself reads parameters, so a bad value is reported directly to stderr. */
static void report(const struct tutti_param_info *info, const char *text)
{
    if (info->kind == TUTTI_PARAM_KIND_CHOICE)
        fprintf(stderr, "tutti: %s=%s is not one of %s; using %s\n", info->name, text,
                info->choices, info->fallback);
    else
        fprintf(stderr, "tutti: %s=%s is not a number from %lld to %lld; using %s\n", info->name,
                text, (long long)info->low, (long long)info->high, info->fallback);
}

const char *tutti_variable_given(const char *name)
{
    const char *text = getenv(name);

    return text != NULL && *text != '\0' ? text : NULL;
}

const char *tutti_param_given(enum tutti_param param)
{
    return tutti_variable_given(infos[param].name);
}

static void read_value(enum tutti_param param, struct value *value)
{
    const struct tutti_param_info *info = &infos[param];
    const char *text = tutti_variable_given(info->name);

    if (text == NULL)
        text = info->fallback;
    if (!parse(info, text, &value->number)) {
        report(info, text);
        text = info->fallback;
        parse(info, text, &value->number);
    }
    /* A copy, because the program may change the environment later. */
    value->text = info->kind == TUTTI_PARAM_KIND_TEXT && *text != '\0' ? strdup(text) : NULL;
}

static const struct value *lookup(enum tutti_param param)
{
    struct value *value = &values[param];

    /* acquire: pairs with the release below; the value is complete */
    if (tutti_load_acquire(&value->is_read))
        return value;

    pthread_mutex_lock(&lock);
    if (!value->is_read) {
        read_value(param, value);
        /* release: pairs with the acquire above */
        tutti_store_release(&value->is_read, true);
    }
    pthread_mutex_unlock(&lock);
    return value;
}

int64_t tutti_param_int(enum tutti_param param)
{
    return lookup(param)->number;
}

const char *tutti_param_text(enum tutti_param param)
{
    const char *text = lookup(param)->text;

    return text ? text : "";
}

const struct tutti_param_info *tutti_param_info(enum tutti_param param)
{
    return &infos[param];
}

void tutti_param_reset(void)
{
    for (int param = 0; param < TUTTI_PARAM_COUNT; param++) {
        free(values[param].text);
        values[param] = (struct value){.is_read = false};
    }
}
