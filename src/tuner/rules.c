/* SPDX-License-Identifier: Apache-2.0
 * Parses tuning rules in both of their forms, and finds the rule that fits a call. */
#include "tuner/rules.h"

#include "base/array.h"
#include "base/result.h"
#include "base/sizes.h"
#include "base/words.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct tutti_words words;
    struct tutti_word word; /* the last word read; its length is 0 at the end of the line */
};

/* Records a message about the last word read, and returns TUTTI_ERR_USAGE. */
#define complain(reader, ...)                                                                      \
    tutti_words_refuse(TUTTI_ERR_USAGE, &(reader)->words, (reader)->word, __VA_ARGS__)

static void read_word(struct reader *reader)
{
    tutti_words_next(&reader->words, &reader->word);
}

static bool is_word(const struct reader *reader, const char *text)
{
    return tutti_word_is(reader->word, text);
}

/* ---- the parts of a rule ------------------------------------------------------------------- */

static int parse_collective(const struct reader *reader, struct tutti_rule *rule)
{
    char list[TUTTI_COLLECTIVE_LIST_BYTES];

    rule->collective = tutti_collective_find(reader->word.at, reader->word.length);
    if (rule->collective == TUTTI_COLLECTIVE_COUNT)
        return complain(reader, "\"%.*s\" is no collective; they are %s", TUTTI_WORD(reader->word),
                        tutti_collective_list(0, list));
    return TUTTI_OK;
}

/* Parses the name of a protocol, which ends the word. */
static int parse_protocol(const struct reader *reader, const char *name, struct tutti_rule *rule)
{
    size_t length = (size_t)(reader->word.at + reader->word.length - name);

    for (int i = 0; i < TUTTI_PROTOCOL_COUNT; i++) {
        const char *known = tutti_protocol_name((enum tutti_protocol)i);

        if (strlen(known) != length || memcmp(known, name, length) != 0)
            continue;
        if (i != TUTTI_PROTOCOL_STEPS &&
            tutti_protocol_form((enum tutti_protocol)i, rule->collective) !=
                rule->choice.algorithm)
            return complain(reader, "no kernel runs %s by %s as a whole; docs/tuning.md lists the "
                            "protocols", tutti_collective_name(rule->collective),
                            rule->choice.algorithm->name);
        rule->choice.protocol = (enum tutti_protocol)i;
        return TUTTI_OK;
    }
    return complain(reader, "\"%.*s\" is no protocol; they are steps, ll, ll128, direct and copies",
                    (int)length, name);
}

static int parse_algorithm(const struct reader *reader, struct tutti_rule *rule)
{
    const char *slash = memchr(reader->word.at, '/', reader->word.length);
    size_t length = slash != NULL ? (size_t)(slash - reader->word.at) : reader->word.length;
    char name[64];

    snprintf(name, sizeof name, "%.*s", (int)length, reader->word.at);
    rule->choice.algorithm =
        length < sizeof name ? tutti_algorithm_find(rule->collective, name) : NULL;
    if (rule->choice.algorithm == NULL)
        return complain(reader, "%s has no algorithm \"%.60s\"; docs/algorithms.md lists them",
                        tutti_collective_name(rule->collective), name);
    return slash != NULL ? parse_protocol(reader, slash + 1, rule) : TUTTI_OK;
}

/* Returns the option whose name is the `length` bytes at `name`, or TUTTI_OPTION_COUNT. */
static int find_option(const char *name, size_t length)
{
    int option = 0;

    for (; option < TUTTI_OPTION_COUNT; option++) {
        const char *known = tutti_option_name((enum tutti_option)option);

        if (strlen(known) == length && memcmp(known, name, length) == 0)
            break;
    }
    return option;
}

/* Parses "option=value" into the rule's choice. */
static int parse_option(const struct reader *reader, struct tutti_rule *rule)
{
    const char *equals = memchr(reader->word.at, '=', reader->word.length);
    struct tutti_options only = {{0}}, ignored;
    unsigned long value = 0;
    char *end = NULL;
    int option = equals != NULL ? find_option(reader->word.at, (size_t)(equals - reader->word.at))
                                : TUTTI_OPTION_COUNT;

    if (option == TUTTI_OPTION_COUNT)
        return complain(reader,
                        "\"%.*s\" is no option; an option is segments=, radix=, window=, "
                        "aggregate=, doublings= or channels= and a number",
                        TUTTI_WORD(reader->word));
    if (isdigit((unsigned char)equals[1]))
        value = strtoul(equals + 1, &end, 10);
    if (end != reader->word.at + reader->word.length || value == 0 || value > UINT32_MAX)
        return complain(reader, "\"%.*s\" is no value of an option; give a number from 1 on",
                        TUTTI_WORD(reader->word));
    only.value[option] = (uint32_t)value;
    if (tutti_algorithm_options(rule->choice.algorithm, &only, &ignored) != TUTTI_OK) {
        char why[TUTTI_MESSAGE_BYTES / 2];

        snprintf(why, sizeof why, "%s", tutti_message_last());
        return complain(reader, "%s", why);
    }
    rule->choice.options.value[option] = (uint32_t)value;
    return TUTTI_OK;
}

/* Parses a size, or "inf" as SIZE_MAX, and moves *at past it. Returns false if there is neither. */
static bool parse_number(const char **at, const char *end, size_t *ret_number)
{
    uint64_t number;

    if (end - *at >= 3 && strncmp(*at, "inf", 3) == 0) {
        *at += 3;
        *ret_number = SIZE_MAX;
        return true;
    }
    if (!tutti_size_read(at, end, &number))
        return false;
    *ret_number = number;
    return true;
}

/* Parses a range such as "64K-inf", or one number. Both ends are limited to `most`. */
static int parse_range(const struct reader *reader, size_t most, size_t *ret_low, size_t *ret_high)
{
    const char *at = reader->word.at, *end = reader->word.at + reader->word.length;
    size_t low = 0, high = 0;
    bool is_good = parse_number(&at, end, &low);

    high = low;
    if (is_good && at < end && *at == '-') {
        at++;
        is_good = parse_number(&at, end, &high);
    }
    if (!is_good || at != end)
        return complain(reader, "\"%.*s\" is no range; give one such as 0-64K, 1M-inf or 8",
                        TUTTI_WORD(reader->word));
    if (low > high || low == SIZE_MAX)
        return complain(reader, "the range %.*s is empty; give the lower end first",
                        TUTTI_WORD(reader->word));
    *ret_low = low < most ? low : most;
    *ret_high = high < most ? high : most;
    return TUTTI_OK;
}

/* Parses "ranks 2-16" and "nodes 2-inf", in any order. */
static int parse_conditions(struct reader *reader, struct tutti_rule *rule)
{
    for (;;) {
        bool is_ranks = is_word(reader, "ranks");
        size_t low, high;

        if (!is_ranks && !is_word(reader, "nodes"))
            return TUTTI_OK;
        read_word(reader);
        TUTTI_TRY(parse_range(reader, UINT32_MAX, &low, &high));
        *(is_ranks ? &rule->least_ranks : &rule->least_nodes) = (uint32_t)low;
        *(is_ranks ? &rule->most_ranks : &rule->most_nodes) = (uint32_t)high;
        read_word(reader);
    }
}

/* Appends the rule. `machine` is "" for any machine. */
static int add_rule(struct tutti_rules *rules, struct tutti_rule *rule, const char *machine)
{
    TUTTI_TRY(TUTTI_ARRAY_ROOM(rules->rules, rules->count, rules->capacity, "tuning rules"));
    if (*machine != '\0') {
        rule->machine = strdup(machine);
        if (rule->machine == NULL)
            return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a tuning rule");
    }
    rules->rules[rules->count++] = *rule;
    return TUTTI_OK;
}

/* Returns a rule that has no conditions yet. */
static struct tutti_rule any_call(uint32_t line)
{
    return (struct tutti_rule){.most_bytes = SIZE_MAX, .most_ranks = UINT32_MAX,
                               .most_nodes = UINT32_MAX, .line = line};
}

/* ---- lines --------------------------------------------------------------------------------- */

enum { FINGERPRINT_BYTES = 256 };

/* Parses the rest of "on MACHINE". Sets `machine` to "" if the rules are for any machine. */
static int parse_machine(struct reader *reader, char machine[FINGERPRINT_BYTES])
{
    read_word(reader);
    if (reader->word.length == 0 || reader->word.length >= FINGERPRINT_BYTES)
        return complain(reader, "\"on\" needs the name of a machine, as tuttiCommTune writes it, "
                        "or \"any\"");
    snprintf(machine, FINGERPRINT_BYTES, "%.*s", (int)reader->word.length, reader->word.at);
    if (is_word(reader, "any"))
        machine[0] = '\0';
    read_word(reader);
    if (reader->word.length > 0)
        return complain(reader, "\"%.*s\" follows the name of the machine; it has no blanks",
                        TUTTI_WORD(reader->word));
    return TUTTI_OK;
}

static int parse_rule(struct reader *reader, struct tutti_rule *rule)
{
    TUTTI_TRY(parse_collective(reader, rule));
    read_word(reader);
    if (reader->word.length > 0 && isdigit((unsigned char)*reader->word.at)) {
        TUTTI_TRY(parse_range(reader, SIZE_MAX, &rule->least_bytes, &rule->most_bytes));
        read_word(reader);
    }
    TUTTI_TRY(parse_conditions(reader, rule));
    if (reader->word.length == 0)
        return complain(reader, "the rule for %s names no algorithm; docs/algorithms.md lists them",
                        tutti_collective_name(rule->collective));
    TUTTI_TRY(parse_algorithm(reader, rule));
    for (read_word(reader); reader->word.length > 0; read_word(reader))
        TUTTI_TRY(parse_option(reader, rule));
    return TUTTI_OK;
}

int tutti_rules_parse(const char *name, const char *text, struct tutti_rules *ret_rules)
{
    struct reader reader = {.words = tutti_words_of(name, text)};
    struct tutti_rules rules = {.count = 0};
    char machine[FINGERPRINT_BYTES] = "";
    int rc;

    do {
        struct tutti_rule rule = any_call((uint32_t)reader.words.line);

        read_word(&reader);
        if (reader.word.length == 0)
            continue;
        if (is_word(&reader, "on")) {
            TUTTI_TRY_OR(fail, rc, parse_machine(&reader, machine));
            continue;
        }
        TUTTI_TRY_OR(fail, rc, parse_rule(&reader, &rule));
        TUTTI_TRY_OR(fail, rc, add_rule(&rules, &rule, machine));
    } while (tutti_words_next_line(&reader.words));
    *ret_rules = rules;
    return TUTTI_OK;

fail:
    tutti_rules_fini(&rules);
    return rc;
}

/* ---- the short form ------------------------------------------------------------------------ */

/* Parses options such as "[doublings=3,segments=2]". The unread text begins with '['. */
static int parse_bracket(struct reader *reader, struct tutti_rule *rule)
{
    do {
        reader->words.at++;
        read_word(reader);
        TUTTI_TRY(parse_option(reader, rule));
    } while (*reader->words.at == ',');
    if (*reader->words.at != ']')
        return complain(reader, "the bracket is not closed; write algorithm[option=value]");
    reader->words.at++;
    return TUTTI_OK;
}

int tutti_rules_parse_short(const char *name, const char *text, struct tutti_rules *ret_rules)
{
    struct reader reader = {.words = tutti_words_of(name, text)};
    struct tutti_rules rules = {.count = 0};
    int rc;

    reader.words.stops = ":,[]";
    while (*reader.words.at != '\0') {
        struct tutti_rule rule = any_call(1);

        read_word(&reader);
        if (*reader.words.at != ':') {
            rc = complain(&reader, "\"%.60s\" is not of the form collective:algorithm",
                          reader.word.at);
            goto fail;
        }
        TUTTI_TRY_OR(fail, rc, parse_collective(&reader, &rule));
        reader.words.at++;
        read_word(&reader);
        TUTTI_TRY_OR(fail, rc, parse_algorithm(&reader, &rule));
        if (*reader.words.at == '[')
            TUTTI_TRY_OR(fail, rc, parse_bracket(&reader, &rule));
        TUTTI_TRY_OR(fail, rc, add_rule(&rules, &rule, ""));
        if (*reader.words.at != ',' && *reader.words.at != '\0') {
            tutti_words_next(&reader.words, &reader.word);
            rc = complain(&reader, "\"%.60s\" follows an algorithm; separate them by commas",
                          reader.word.at);
            goto fail;
        }
        reader.words.at += *reader.words.at == ',';
    }
    *ret_rules = rules;
    return TUTTI_OK;

fail:
    tutti_rules_fini(&rules);
    return rc;
}

void tutti_rules_fini(struct tutti_rules *rules)
{
    for (size_t i = 0; i < rules->count; i++)
        free(rules->rules[i].machine);
    free(rules->rules);
    *rules = (struct tutti_rules){.count = 0};
}

/* ---- finding ------------------------------------------------------------------------------- */

const struct tutti_rule *tutti_rules_find(const struct tutti_rules *rules,
                                          const struct tutti_tuner_view *view,
                                          const struct tutti_tuner_query *query)
{
    uint32_t nodes = view->places && view->places->node ? view->places->nnodes : view->nranks;
    size_t bytes = tutti_tuner_bytes(view, query);

    for (size_t i = 0; i < rules->count; i++) {
        const struct tutti_rule *rule = &rules->rules[i];

        if (rule->collective == query->collective && bytes >= rule->least_bytes &&
            bytes <= rule->most_bytes && view->nranks >= rule->least_ranks &&
            view->nranks <= rule->most_ranks && nodes >= rule->least_nodes &&
            nodes <= rule->most_nodes &&
            (rule->machine == NULL || (view->fingerprint != NULL &&
                                       strcmp(rule->machine, view->fingerprint) == 0)) &&
            tutti_tuner_can_run(view, query, &rule->choice))
            return rule;
    }
    return NULL;
}
