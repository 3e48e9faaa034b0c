/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes links and paths as text. A path may stand before the links that it crosses, so
 * links and ranks of paths are checked only after all lines have been read. */
#include "topology/machine/machine_draft.h"

#include "base/array.h"
#include "base/result.h"

#include <stdlib.h>
#include <string.h>

/* ---- links ----------------------------------------------------------------------------------- */

static bool begins_with_digit(struct tutti_word word)
{
    return word.length > 0 && word.at[0] >= '0' && word.at[0] <= '9';
}

/* Reads "80GB/s" or "gpu0>gpu1 80GB/s". `word` is the first word. */
static int read_link(struct tutti_draft *draft, struct tutti_word word)
{
    struct tutti_draft_links *links = &draft->links;
    struct tutti_machine_link link = {.bytes_per_s = 0};

    if (links->nlinks == TUTTI_MACHINE_LINKS)
        return tutti_words_fail(&draft->words, word, "link number %u; there may be %u",
                                links->nlinks + 1, TUTTI_MACHINE_LINKS);
    if (word.length > 0 && !begins_with_digit(word) && word.at[0] != '.') {
        if (!tutti_links_is_name(word.at, word.length))
            return tutti_words_fail(&draft->words, word,
                                    "\"%.*s\" is neither a rate such as "
                                    "50GB/s nor a link's name; a name begins with a letter and has "
                                    "at most %d characters",
                                    TUTTI_WORD(word), TUTTI_MACHINE_NAME_BYTES - 1);
        memcpy(link.name, word.at, word.length);
        tutti_words_next(&draft->words, &word);
    }
    TUTTI_TRY(tutti_unit_read_rate(&draft->words, word, &link.bytes_per_s));
    if (link.bytes_per_s < 1)
        return tutti_words_fail(&draft->words, word, "\"%.*s\"; a link carries 1B/s or more",
                                TUTTI_WORD(word));
    TUTTI_TRY(
        TUTTI_ARRAY_ROOM(links->links, links->nlinks, links->link_capacity, "links of a machine"));
    links->links[links->nlinks++] = link;
    return TUTTI_OK;
}

int tutti_draft_read_links(struct tutti_draft *draft)
{
    struct tutti_word word;

    tutti_words_next(&draft->words, &word);
    do
        TUTTI_TRY(read_link(draft, word));
    while (tutti_words_next(&draft->words, &word));
    return TUTTI_OK;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Reads "7" or "7x1.2". */
static int read_crossing(struct tutti_draft *draft, struct tutti_word word,
                         struct tutti_draft_path *path)
{
    const char *times = memchr(word.at, 'x', word.length);
    struct tutti_draft_links *links = &draft->links;
    struct tutti_draft_crossing crossing = {.weight = 1, .column = (uint32_t)word.column};
    struct tutti_word number = word, weight = word;

    if (path->count == TUTTI_MACHINE_PATH_LINKS)
        return tutti_words_fail(&draft->words, word, "link number %u of the path; there may be %u",
                                path->count + 1, TUTTI_MACHINE_PATH_LINKS);
    if (times != NULL)
        number.length = (size_t)(times - word.at);
    TUTTI_TRY(tutti_word_number(&draft->words, number, 0, TUTTI_MACHINE_ALL_LINKS - 1,
                                &crossing.link));
    if (times != NULL) {
        weight.at = times + 1;
        weight.length -= number.length + 1;
        weight.column += number.length + 1;
        TUTTI_TRY(tutti_unit_read_decimal(&draft->words, weight, TUTTI_MACHINE_WEIGHT_LEAST,
                                          TUTTI_MACHINE_WEIGHT_MOST, &crossing.weight));
    }
    for (uint32_t i = path->first; i < path->first + path->count; i++)
        if (links->crossings[i].link == crossing.link)
            return tutti_words_fail(&draft->words, word, "link %u twice; give it a weight, such as "
                                    "%ux2", crossing.link, crossing.link);
    TUTTI_TRY(TUTTI_ARRAY_ROOM(links->crossings, links->ncrossings, links->crossing_capacity,
                               "crossings of a machine"));
    links->crossings[links->ncrossings++] = crossing;
    path->count++;
    return TUTTI_OK;
}

static int read_channel(struct tutti_draft *draft, struct tutti_draft_path *path)
{
    struct tutti_word word;
    uint32_t channel;

    tutti_words_next(&draft->words, &word);
    TUTTI_TRY(tutti_word_number(&draft->words, word, 0, UINT8_MAX, &channel));
    path->has_channel = true;
    path->channel = (uint8_t)channel;
    return TUTTI_OK;
}

/* Reads "channel 3 via 3 7 latency 2us" after the ranks; the three may come in any order. */
static int read_route(struct tutti_draft *draft, struct tutti_draft_path *path)
{
    bool has_via = false, has_latency = false, is_in_via = false;
    struct tutti_word word;

    while (tutti_words_next(&draft->words, &word)) {
        if (is_in_via && begins_with_digit(word)) {
            TUTTI_TRY(read_crossing(draft, word, path));
        } else if (tutti_word_is(word, "via") && !has_via) {
            has_via = is_in_via = true;
        } else if (tutti_word_is(word, "channel") && !path->has_channel) {
            TUTTI_TRY(read_channel(draft, path));
            is_in_via = false;
        } else if (tutti_word_is(word, "latency") && !has_latency) {
            tutti_words_next(&draft->words, &word);
            TUTTI_TRY(tutti_unit_read_seconds(&draft->words, word, &path->latency_s));
            has_latency = true;
            is_in_via = false;
        } else {
            return tutti_words_fail(&draft->words, word,
                                    "\"%.*s\"; a path has latency, channel, and via with the "
                                    "numbers of its links, each once", TUTTI_WORD(word));
        }
    }
    if (!has_via)
        return tutti_words_fail(&draft->words, word, "the path has no links; add them, such as "
                                "via 3 7, or via alone where both ranks are on one device");
    return TUTTI_OK;
}

int tutti_draft_read_path(struct tutti_draft *draft)
{
    struct tutti_draft_links *links = &draft->links;
    struct tutti_draft_path path = {.first = links->ncrossings, .latency_s = -1};
    struct tutti_word from, to;

    tutti_words_next(&draft->words, &from);
    TUTTI_TRY(tutti_word_number(&draft->words, from, 0, TUTTI_MACHINE_RANKS - 1, &path.from));
    tutti_words_next(&draft->words, &to);
    TUTTI_TRY(tutti_word_number(&draft->words, to, 0, TUTTI_MACHINE_RANKS - 1, &path.to));
    if (path.from == path.to)
        return tutti_words_fail(&draft->words, to, "a path from rank %u to itself; it joins two "
                                "ranks", path.to);
    if (links->npaths == TUTTI_MACHINE_PATHS)
        return tutti_words_fail(&draft->words, from, "path number %u; there may be %u",
                                links->npaths + 1, TUTTI_MACHINE_PATHS);
    path.line = (uint32_t)from.line;
    path.from_column = (uint32_t)from.column;
    path.to_column = (uint32_t)to.column;
    TUTTI_TRY(read_route(draft, &path));
    TUTTI_TRY(
        TUTTI_ARRAY_ROOM(links->paths, links->npaths, links->path_capacity, "paths of a machine"));
    links->paths[links->npaths++] = path;
    return TUTTI_OK;
}

/* ---- all together ---------------------------------------------------------------------------- */

/* Returns a position in the line of a path, for an error. */
static struct tutti_word word_at(const struct tutti_draft_path *path, uint32_t column)
{
    return (struct tutti_word){.line = path->line, .column = column};
}

/* Orders paths by their ranks and channels. Equal ones are ordered as in the text, so that the
 * error names the later path. */
static int compare_paths(const void *a, const void *b)
{
    const struct tutti_draft_path *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    if (x->has_channel != y->has_channel)
        return x->has_channel ? 1 : -1;
    if (x->channel != y->channel)
        return x->channel < y->channel ? -1 : 1;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return (x->from_column > y->from_column) - (x->from_column < y->from_column);
}

/* Checks a link of a path. `links` has the parts of the machine. */
static int check_crossing(const struct tutti_draft *draft, const struct tutti_machine_links *links,
                          const struct tutti_draft_path *path,
                          const struct tutti_draft_crossing *crossing)
{
    uint32_t count = tutti_machine_link_count(links);

    if (crossing->link >= count)
        return tutti_words_fail(&draft->words, word_at(path, crossing->column),
                                "link %u, but there are %u; they are numbered from 0 on",
                                crossing->link, count);
    if (!tutti_links_may_cross(links, path->from, path->to, crossing->link))
        return tutti_words_fail(&draft->words, word_at(path, crossing->column),
                                "link %u is neither in the part of rank %u nor in that of rank %u; "
                                "a path crosses links of its two parts", crossing->link, path->from,
                                path->to);
    return TUTTI_OK;
}

static int check_path(const struct tutti_draft *draft, const struct tutti_machine_links *links,
                      const struct tutti_draft_path *path, uint32_t nranks)
{
    uint32_t from = path->from, to = path->to;

    if (path->from >= nranks || path->to >= nranks) {
        bool is_from = path->from >= nranks;

        return tutti_words_fail(&draft->words,
                                word_at(path, is_from ? path->from_column : path->to_column),
                                "a path of rank %u; ranks are 0 to %u",
                                is_from ? path->from : path->to, nranks - 1);
    }
    tutti_links_described(links, &from, &to);
    if (from != path->from || to != path->to)
        return tutti_words_fail(&draft->words, word_at(path, path->from_column),
                                "a path from rank %u to %u; of like parts, only the path from rank "
                                "%u to %u is described", path->from, path->to, from, to);
    for (uint32_t i = path->first; i < path->first + path->count; i++)
        TUTTI_TRY(check_crossing(draft, links, path, &draft->links.crossings[i]));
    return TUTTI_OK;
}

static int check_paths(struct tutti_draft *draft, uint32_t nranks)
{
    struct tutti_draft_links *links = &draft->links;
    const struct tutti_machine_links of_machine = {
        .nlinks = links->nlinks, .kinds = links->kinds, .nkinds = links->nkinds};

    if (tutti_links_number_parts(links->kinds, links->nkinds, nranks, links->nlinks) != TUTTI_OK)
        return tutti_words_fail(&draft->words, links->parts_at, "%s", tutti_message_last());
    for (uint32_t i = 0; i < links->npaths; i++)
        TUTTI_TRY(check_path(draft, &of_machine, &links->paths[i], nranks));
    if (links->npaths > 1)
        qsort(links->paths, links->npaths, sizeof *links->paths, compare_paths);
    for (uint32_t i = 1; i < links->npaths; i++) {
        const struct tutti_draft_path *path = &links->paths[i], *before = path - 1;

        if (path->from == before->from && path->to == before->to &&
            path->has_channel == before->has_channel && path->channel == before->channel)
            return tutti_words_fail(&draft->words, word_at(path, path->from_column),
                                    "the path from rank %u to %u again; line %u has it",
                                    path->from, path->to, before->line);
    }
    return TUTTI_OK;
}

int tutti_draft_place_links(struct tutti_draft *draft, struct tutti_machine *machine)
{
    struct tutti_draft_links *from = &draft->links;
    struct tutti_machine_path *paths;
    struct tutti_machine_crossing *crossings;

    if (from->nlinks == 0 && from->npaths == 0 && from->nkinds == 0)
        return TUTTI_OK;
    TUTTI_TRY(check_paths(draft, machine->places.nranks));
    paths = calloc((size_t)from->npaths + 1, sizeof *paths);
    crossings = calloc((size_t)from->ncrossings + 1, sizeof *crossings);
    machine->links = (struct tutti_machine_links){
        .links = from->links, .nlinks = from->nlinks, .paths = paths, .npaths = from->npaths,
        .crossings = crossings, .ncrossings = from->ncrossings,
        .kinds = from->kinds, .nkinds = from->nkinds,
    };
    from->links = NULL;
    from->kinds = NULL;
    if (paths == NULL || crossings == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %u paths of a machine", from->npaths);
    for (uint32_t i = 0; i < from->npaths; i++) {
        const struct tutti_draft_path *path = &from->paths[i];

        paths[i] = (struct tutti_machine_path){
            .from = path->from, .to = path->to, .has_channel = path->has_channel,
            .channel = path->channel, .first = path->first, .count = path->count,
            .latency_s = path->latency_s,
        };
        machine->has_channel_paths |= path->has_channel;
    }
    for (uint32_t i = 0; i < from->ncrossings; i++)
        crossings[i] = (struct tutti_machine_crossing){.link = from->crossings[i].link,
                                                       .weight = from->crossings[i].weight};
    return TUTTI_OK;
}

void tutti_draft_links_fini(struct tutti_draft_links *links)
{
    free(links->links);
    free(links->paths);
    free(links->crossings);
    free(links->kinds);
    *links = (struct tutti_draft_links){.nlinks = 0};
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_path(FILE *out, const struct tutti_machine_links *links,
                       const struct tutti_machine_path *path)
{
    fprintf(out, "path %u %u", path->from, path->to);
    if (path->has_channel)
        fprintf(out, " channel %u", path->channel);
    if (path->latency_s >= 0) {
        fputs(" latency ", out);
        tutti_unit_write(out, tutti_time_units, path->latency_s);
    }
    fputs(" via", out);
    for (uint32_t i = path->first; i < path->first + path->count; i++) {
        fprintf(out, " %u", links->crossings[i].link);
        if (links->crossings[i].weight != 1) {
            fputc('x', out);
            tutti_unit_write(out, tutti_no_units, links->crossings[i].weight);
        }
    }
    fputc('\n', out);
}

void tutti_links_write(FILE *out, const struct tutti_machine_links *links)
{
    tutti_links_write_parts(out, links);
    for (uint32_t i = 0; i < links->nlinks; i++) {
        const char *name = links->links[i].name;

        fprintf(out, "link %s%s", name, name[0] != '\0' ? " " : "");
        tutti_unit_write(out, tutti_rate_units, links->links[i].bytes_per_s);
        fputc('\n', out);
    }
    for (uint32_t i = 0; i < links->npaths; i++)
        write_path(out, links, &links->paths[i]);
}
