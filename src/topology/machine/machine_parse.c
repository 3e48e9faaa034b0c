/* SPDX-License-Identifier: Apache-2.0
 * Reads a machine's description (machine.h), line by line, into a draft. Each line is checked by
 * itself here, and machine_places.c checks the lines against each other. */
#include "topology/machine/machine_draft.h"

#include "base/array.h"
#include "base/locale.h"
#include "base/result.h"

#include <stdlib.h>
#include <string.h>

/* The dimensions of a torus that a placement has room for. */
enum { MOST_DIMS = sizeof((struct tutti_placement){0}.dims) / sizeof(uint32_t) };

/* ---- pieces of lines ------------------------------------------------------------------------- */

static int refuse_rest(struct tutti_draft *draft, struct tutti_word word)
{
    return tutti_words_fail(&draft->words, word, "\"%.*s\" is more than this line takes; "
                            "remove it, or begin a new line or a comment (#) before it",
                            TUTTI_WORD(word));
}

/* Fails if the line has another word. */
static int expect_end(struct tutti_draft *draft)
{
    struct tutti_word word;

    return tutti_words_next(&draft->words, &word) ? refuse_rest(draft, word) : TUTTI_OK;
}

static int add_number(struct tutti_numbers *numbers, uint32_t value)
{
    TUTTI_TRY(TUTTI_ARRAY_ROOM(numbers->values, numbers->count, numbers->capacity,
                               "numbers of a machine"));
    numbers->values[numbers->count++] = value;
    return TUTTI_OK;
}

/* Reads numbers of at least `least` up to the end of the line; `word` is the first of them. If
 * has_root is set, -1 is allowed and becomes UINT32_MAX. */
static int read_numbers(struct tutti_draft *draft, struct tutti_word word, uint32_t least,
                        bool has_root, struct tutti_numbers *numbers)
{
    numbers->at = word;
    do {
        uint32_t value = UINT32_MAX;

        if (numbers->count == TUTTI_MACHINE_RANKS)
            return tutti_words_fail(&draft->words, word, "more than %u numbers in a line",
                                    TUTTI_MACHINE_RANKS);
        if (!has_root || !tutti_word_is(word, "-1"))
            TUTTI_TRY(tutti_word_number(&draft->words, word, least, TUTTI_MACHINE_RANKS, &value));
        TUTTI_TRY(add_number(numbers, value));
    } while (tutti_words_next(&draft->words, &word));
    return TUTTI_OK;
}

/* Reads the only number of a line. */
static int read_count(struct tutti_draft *draft, uint32_t *ret_number)
{
    struct tutti_word word;

    tutti_words_next(&draft->words, &word);
    TUTTI_TRY(tutti_word_number(&draft->words, word, 1, TUTTI_MACHINE_RANKS, ret_number));
    return expect_end(draft);
}

/* Takes the next word of the line and returns true if this word is `text`. */
static bool take_word(struct tutti_draft *draft, const char *text, struct tutti_word *ret_word)
{
    struct tutti_words ahead = draft->words;

    if (!tutti_words_next(&ahead, ret_word) || !tutti_word_is(*ret_word, text))
        return false;
    draft->words = ahead;
    return true;
}

/* Reads "12GB/s beyond 1MiB 5GB/s"; the part from "beyond" on may be repeated or missing. */
static int read_speed(struct tutti_draft *draft, double *ret_rate,
                      struct tutti_footprint_rate ret_beyond[TUTTI_MACHINE_FOOTPRINTS])
{
    struct tutti_word word;

    tutti_words_next(&draft->words, &word);
    TUTTI_TRY(tutti_unit_read_rate(&draft->words, word, ret_rate));
    for (int i = 0; take_word(draft, "beyond", &word); i++) {
        if (i == TUTTI_MACHINE_FOOTPRINTS)
            return tutti_words_fail(&draft->words, word, "beyond number %d; a rate has at most %d",
                                    i + 1, TUTTI_MACHINE_FOOTPRINTS);
        tutti_words_next(&draft->words, &word);
        TUTTI_TRY(tutti_unit_read_bytes(&draft->words, word, &ret_beyond[i].bytes));
        if (i > 0 && ret_beyond[i].bytes <= ret_beyond[i - 1].bytes)
            return tutti_words_fail(&draft->words, word, "\"%.*s\" is not above the size before "
                                    "it; let them ascend",
                                    TUTTI_WORD(word));
        tutti_words_next(&draft->words, &word);
        TUTTI_TRY(tutti_unit_read_rate(&draft->words, word, &ret_beyond[i].bytes_per_s));
    }
    return TUTTI_OK;
}

static int read_speed_line(struct tutti_draft *draft, struct tutti_draft_speed *speed)
{
    TUTTI_TRY(read_speed(draft, &speed->bytes_per_s, speed->beyond));
    return expect_end(draft);
}

static int read_rate(struct tutti_draft *draft, double *ret_rate)
{
    struct tutti_word word;

    tutti_words_next(&draft->words, &word);
    TUTTI_TRY(tutti_unit_read_rate(&draft->words, word, ret_rate));
    return expect_end(draft);
}

static int read_time(struct tutti_draft *draft, double *ret_seconds)
{
    struct tutti_word word;

    tutti_words_next(&draft->words, &word);
    TUTTI_TRY(tutti_unit_read_seconds(&draft->words, word, ret_seconds));
    return expect_end(draft);
}

/* ---- kinds of lines -------------------------------------------------------------------------- */

/* Reads "8", "3 5 8" or "of 0 1 1". */
static int read_sizes(struct tutti_draft *draft, struct tutti_numbers *numbers, bool *ret_is_listed)
{
    struct tutti_word word;

    tutti_words_next(&draft->words, &word);
    *ret_is_listed = tutti_word_is(word, "of");
    if (*ret_is_listed)
        tutti_words_next(&draft->words, &word);
    return read_numbers(draft, word, *ret_is_listed ? 0 : 1, false, numbers);
}

static int read_torus(struct tutti_draft *draft)
{
    struct tutti_word word;

    tutti_words_next(&draft->words, &word);
    TUTTI_TRY(read_numbers(draft, word, 1, false, &draft->torus));
    if (draft->torus.count > MOST_DIMS)
        return tutti_words_fail(&draft->words, word, "%u dimensions of a torus, which has 1 to %d",
                                draft->torus.count, MOST_DIMS);
    return TUTTI_OK;
}

static int read_place(struct tutti_draft *draft)
{
    struct tutti_word word;

    tutti_words_next(&draft->words, &word);
    draft->is_cyclic = tutti_word_is(word, "cyclic");
    if (!draft->is_cyclic && !tutti_word_is(word, "block"))
        return tutti_words_fail(&draft->words, word, "place is block or cyclic; \"node of 0 1 1\" "
                                "gives the node of each rank");
    return expect_end(draft);
}

/* Reads the numbers of a ring or a tree. */
static int read_order(struct tutti_draft *draft, struct tutti_word keyword, bool is_tree)
{
    struct tutti_numbers *orders = is_tree ? draft->trees : draft->rings;
    uint32_t *count = is_tree ? &draft->ntrees : &draft->nrings;
    struct tutti_word word;

    if (*count == TUTTI_MACHINE_ORDERS)
        return tutti_words_fail(&draft->words, keyword, "%s number %u; there may be %d",
                                is_tree ? "tree" : "ring", *count + 1, TUTTI_MACHINE_ORDERS);
    tutti_words_next(&draft->words, &word);
    return read_numbers(draft, word, 0, is_tree, &orders[(*count)++]);
}

/* Reads "latency 1us overhead 0us bandwidth 350GB/s", in any order. */
static int read_costs(struct tutti_draft *draft, struct tutti_rate *rate)
{
    bool has_latency = false, has_overhead = false;
    struct tutti_word key, value;

    while (tutti_words_next(&draft->words, &key)) {
        if (tutti_word_is(key, "latency") && !has_latency) {
            tutti_words_next(&draft->words, &value);
            TUTTI_TRY(tutti_unit_read_seconds(&draft->words, value, &rate->latency_s));
            has_latency = true;
        } else if (tutti_word_is(key, "overhead") && !has_overhead) {
            tutti_words_next(&draft->words, &value);
            TUTTI_TRY(tutti_unit_read_seconds(&draft->words, value, &rate->overhead_s));
            has_overhead = true;
        } else if (tutti_word_is(key, "bandwidth") && rate->bytes_per_s == 0) {
            TUTTI_TRY(read_speed(draft, &rate->bytes_per_s, rate->beyond));
        } else if (tutti_word_is(key, "core") && rate->core_bytes_per_s == 0) {
            TUTTI_TRY(read_speed(draft, &rate->core_bytes_per_s, rate->core_beyond));
        } else {
            return tutti_words_fail(&draft->words, key, "\"%.*s\"; a level has latency, overhead, "
                                    "bandwidth and core, each once",
                                    TUTTI_WORD(key));
        }
    }
    if (rate->bytes_per_s == 0)
        return tutti_words_fail(&draft->words, key, "the level has no bandwidth; add one, such as "
                                "bandwidth 50GB/s");
    return TUTTI_OK;
}

/* Reads "latency 100ns bandwidth 40GB/s", in any order; one of them may be missing. */
static int read_bridge(struct tutti_draft *draft)
{
    struct tutti_rate *bridge = &draft->bridge;
    bool has_latency = false;
    struct tutti_word key, value;

    while (tutti_words_next(&draft->words, &key)) {
        if (tutti_word_is(key, "latency") && !has_latency) {
            tutti_words_next(&draft->words, &value);
            TUTTI_TRY(tutti_unit_read_seconds(&draft->words, value, &bridge->latency_s));
            has_latency = true;
        } else if (tutti_word_is(key, "bandwidth") && bridge->bytes_per_s == 0) {
            tutti_words_next(&draft->words, &value);
            TUTTI_TRY(tutti_unit_read_rate(&draft->words, value, &bridge->bytes_per_s));
        } else {
            return tutti_words_fail(&draft->words, key, "\"%.*s\"; a bridge has latency and "
                                    "bandwidth, each once",
                                    TUTTI_WORD(key));
        }
    }
    if (!has_latency && bridge->bytes_per_s == 0)
        return tutti_words_fail(&draft->words, key, "the bridge has neither latency nor bandwidth; "
                                "add one, such as bandwidth 40GB/s");
    return TUTTI_OK;
}

/* ---- the lines ------------------------------------------------------------------------------- */

static const char *const keywords[TUTTI_MACHINE_LINE_COUNT] = {
    [TUTTI_MACHINE_LINE_RANKS] = "ranks",
    [TUTTI_MACHINE_LINE_NODE] = "node",
    [TUTTI_MACHINE_LINE_GROUP] = "group",
    [TUTTI_MACHINE_LINE_CELL] = "cell",
    [TUTTI_MACHINE_LINE_PLACE] = "place",
    [TUTTI_MACHINE_LINE_LEVEL_NODE] = "level node",
    [TUTTI_MACHINE_LINE_LEVEL_GROUP] = "level group",
    [TUTTI_MACHINE_LINE_LEVEL_TOP] = "level top",
    [TUTTI_MACHINE_LINE_BRIDGE] = "bridge",
    [TUTTI_MACHINE_LINE_NICS] = "nics",
    [TUTTI_MACHINE_LINE_TRUNK] = "trunk",
    [TUTTI_MACHINE_LINE_TORUS] = "torus",
    [TUTTI_MACHINE_LINE_CORES] = "cores",
    [TUTTI_MACHINE_LINE_MEMORY] = "memory",
    [TUTTI_MACHINE_LINE_COPY] = "copy",
    [TUTTI_MACHINE_LINE_REDUCE] = "reduce",
    [TUTTI_MACHINE_LINE_LOAD] = "load",
    [TUTTI_MACHINE_LINE_SIGNAL] = "signal",
};

/* Finds the line that begins with the keyword; for a level, reads the second word, too. */
static int find_line(struct tutti_draft *draft, struct tutti_word keyword,
                     enum tutti_machine_line *ret_line)
{
    struct tutti_word level = keyword;
    bool is_level = tutti_word_is(keyword, "level");

    if (is_level)
        tutti_words_next(&draft->words, &level);
    for (int line = 0; line < TUTTI_MACHINE_LINE_COUNT; line++) {
        bool names_level = strncmp(keywords[line], "level ", 6) == 0;

        if (names_level != is_level)
            continue;
        if (tutti_word_is(level, keywords[line] + (is_level ? 6 : 0))) {
            *ret_line = (enum tutti_machine_line)line;
            return TUTTI_OK;
        }
    }
    if (is_level)
        return tutti_words_fail(&draft->words, level, "a level is node, group or top");
    return tutti_words_fail(&draft->words, keyword, "\"%.*s\"; a line begins with ranks, node, "
                            "group, cell, place, level, bridge, nics, trunk, torus, cores, memory, "
                            "copy, reduce, load, signal, ring, tree, link, path or parts",
                            TUTTI_WORD(keyword));
}

/* Reads the rest of a line after its keyword. */
static int read_body(struct tutti_draft *draft, enum tutti_machine_line line)
{
    switch (line) {
    case TUTTI_MACHINE_LINE_RANKS: return read_count(draft, &draft->nranks);
    case TUTTI_MACHINE_LINE_NODE: return read_sizes(draft, &draft->nodes, &draft->nodes_are_listed);
    case TUTTI_MACHINE_LINE_GROUP:
        return read_sizes(draft, &draft->groups, &draft->groups_are_listed);
    case TUTTI_MACHINE_LINE_CELL: return read_sizes(draft, &draft->cells, &draft->cells_are_listed);
    case TUTTI_MACHINE_LINE_PLACE: return read_place(draft);
    case TUTTI_MACHINE_LINE_LEVEL_NODE: return read_costs(draft, &draft->level[0]);
    case TUTTI_MACHINE_LINE_LEVEL_GROUP: return read_costs(draft, &draft->level[1]);
    case TUTTI_MACHINE_LINE_LEVEL_TOP: return read_costs(draft, &draft->level[2]);
    case TUTTI_MACHINE_LINE_BRIDGE: return read_bridge(draft);
    case TUTTI_MACHINE_LINE_NICS: return read_count(draft, &draft->nics);
    case TUTTI_MACHINE_LINE_TRUNK: return read_rate(draft, &draft->trunk_bytes_per_s);
    case TUTTI_MACHINE_LINE_TORUS: return read_torus(draft);
    case TUTTI_MACHINE_LINE_CORES: return read_count(draft, &draft->cores);
    case TUTTI_MACHINE_LINE_MEMORY: return read_speed_line(draft, &draft->memory);
    case TUTTI_MACHINE_LINE_COPY: return read_speed_line(draft, &draft->copy);
    case TUTTI_MACHINE_LINE_REDUCE: return read_speed_line(draft, &draft->reduce);
    case TUTTI_MACHINE_LINE_LOAD: return read_speed_line(draft, &draft->load);
    case TUTTI_MACHINE_LINE_SIGNAL: return read_time(draft, &draft->signal_s);
    case TUTTI_MACHINE_LINE_COUNT: break;
    }
    return tutti_fail(TUTTI_ERR_INTERNAL, "line %d of a machine has no reader", (int)line);
}

static int read_line(struct tutti_draft *draft, struct tutti_word keyword)
{
    enum tutti_machine_line line = TUTTI_MACHINE_LINE_COUNT;

    if (tutti_word_is(keyword, "ring") || tutti_word_is(keyword, "tree"))
        return read_order(draft, keyword, keyword.at[0] == 't');
    if (tutti_word_is(keyword, "link"))
        return tutti_draft_read_links(draft);
    if (tutti_word_is(keyword, "path"))
        return tutti_draft_read_path(draft);
    if (tutti_word_is(keyword, "parts"))
        return tutti_draft_read_parts(draft, keyword);
    TUTTI_TRY(find_line(draft, keyword, &line));
    if (draft->line_at[line].length != 0)
        return tutti_words_fail(&draft->words, keyword, "\"%s\" again; line %zu has it",
                                keywords[line], draft->line_at[line].line);
    draft->line_at[line] = keyword;
    return read_body(draft, line);
}

static int read_version(struct tutti_draft *draft)
{
    struct tutti_word word;

    if (!tutti_words_next(&draft->words, &word) || !tutti_word_is(word, "1"))
        return tutti_words_fail(&draft->words, word, "this reader knows \"tutti-machine 1\" only");
    return expect_end(draft);
}

/* Reads all lines. The first one may give the version of the format. */
static int read_lines(struct tutti_draft *draft)
{
    bool is_first = true;

    do {
        struct tutti_word keyword;

        if (!tutti_words_next(&draft->words, &keyword))
            continue;
        if (is_first && tutti_word_is(keyword, "tutti-machine"))
            TUTTI_TRY(read_version(draft));
        else
            TUTTI_TRY(read_line(draft, keyword));
        is_first = false;
    } while (tutti_words_next_line(&draft->words));
    return TUTTI_OK;
}

static void draft_fini(struct tutti_draft *draft)
{
    free(draft->nodes.values);
    free(draft->groups.values);
    free(draft->cells.values);
    free(draft->torus.values);
    for (uint32_t i = 0; i < draft->nrings; i++)
        free(draft->rings[i].values);
    for (uint32_t i = 0; i < draft->ntrees; i++)
        free(draft->trees[i].values);
    tutti_draft_links_fini(&draft->links);
}

int tutti_machine_parse(const char *name, const char *text, uint32_t nranks,
                        struct tutti_machine **ret_machine)
{
    struct tutti_draft draft = {.words = tutti_words_of(name, text)};
    struct tutti_machine *machine = calloc(1, sizeof *machine);
    struct tutti_c_locale locale = tutti_c_locale_enter();
    int rc;

    if (machine == NULL || locale.c == (locale_t)0)
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a machine");
    else
        rc = read_lines(&draft);
    tutti_c_locale_leave(locale);
    if (rc == TUTTI_OK)
        rc = tutti_draft_place(&draft, nranks, machine);
    if (rc == TUTTI_OK)
        rc = tutti_draft_place_links(&draft, machine);
    if (rc == TUTTI_OK)
        rc = tutti_links_find_ring_rates(machine, &machine->ring_rates);
    draft_fini(&draft);
    if (rc != TUTTI_OK) {
        tutti_machine_destroy(machine);
        return rc;
    }
    *ret_machine = machine;
    return TUTTI_OK;
}
