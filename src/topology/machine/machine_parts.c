/* SPDX-License-Identifier: Apache-2.0
 * Finds the ranks and links of like parts of a machine (machine.h). The links of all parts are
 * numbered part by part, so the links of two parts of a kind differ by a constant:
 *
 *   parts 3 ranks 2 links 4             path 0 3 via 1 6 stands for
 *   [ranks 0 1] [ranks 2 3] [ranks 4 5]      path 0 5 via 1 10
 *   [links 0-3] [links 4-7] [links 8-11]     path 4 1 via 9 2, ...
 */
#include "topology/machine/machine_draft.h"

#include "base/array.h"
#include "base/result.h"

/* ---- numbers --------------------------------------------------------------------------------- */

uint32_t tutti_machine_link_count(const struct tutti_machine_links *links)
{
    const struct tutti_machine_parts *last;

    if (links->nkinds == 0)
        return links->nlinks;
    last = &links->kinds[links->nkinds - 1];
    return last->first_link + last->nparts * last->nlinks;
}

const struct tutti_machine_link *tutti_machine_link(const struct tutti_machine_links *links,
                                                    uint32_t number)
{
    const struct tutti_machine_parts *kind = links->kinds;

    if (links->nkinds == 0)
        return &links->links[number];
    while (number >= kind->first_link + kind->nparts * kind->nlinks)
        kind++;
    return &links->links[kind->first_described + (number - kind->first_link) % kind->nlinks];
}

const struct tutti_machine_parts *tutti_machine_part_of(const struct tutti_machine_links *links,
                                                        uint32_t rank, uint32_t *ret_part)
{
    const struct tutti_machine_parts *kind = links->kinds;

    if (links->nkinds == 0)
        return NULL;
    while (rank >= kind->first_rank + kind->nparts * kind->nranks)
        kind++;
    *ret_part = (rank - kind->first_rank) / kind->nranks;
    return kind;
}

/* The parts of two ranks, and those that are described in their place. Numbers count within a
 * kind. */
struct pair {
    const struct tutti_machine_parts *from, *to; /* kinds */
    uint32_t from_part, to_part;
    uint32_t described_to; /* the described sender is in part 0 */
};

static struct pair find_pair(const struct tutti_machine_links *links, uint32_t from, uint32_t to)
{
    struct pair pair = {.from = NULL};

    pair.from = tutti_machine_part_of(links, from, &pair.from_part);
    pair.to = tutti_machine_part_of(links, to, &pair.to_part);
    pair.described_to = pair.from == pair.to && pair.from_part != pair.to_part;
    return pair;
}

struct tutti_machine_shift tutti_machine_shift_of(const struct tutti_machine_links *links,
                                                  uint32_t from, uint32_t to)
{
    struct pair pair;

    if (links->nkinds == 0)
        return (struct tutti_machine_shift){.first = 0};
    pair = find_pair(links, from, to);
    return (struct tutti_machine_shift){
        .first = pair.from->first_link, .end = pair.from->first_link + pair.from->nlinks,
        .from_difference = (int64_t)pair.from_part * pair.from->nlinks,
        .to_difference = ((int64_t)pair.to_part - pair.described_to) * pair.to->nlinks};
}

void tutti_links_described(const struct tutti_machine_links *links, uint32_t *from, uint32_t *to)
{
    struct pair pair;

    if (links->nkinds == 0)
        return;
    pair = find_pair(links, *from, *to);
    *from -= pair.from_part * pair.from->nranks;
    *to -= pair.to_part * pair.to->nranks;
    *to += pair.described_to * pair.to->nranks;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool has_link(const struct tutti_machine_parts *kind, uint32_t part, uint32_t link)
{
    uint32_t first = kind->first_link + part * kind->nlinks;

    return link >= first && link < first + kind->nlinks;
}

bool tutti_links_may_cross(const struct tutti_machine_links *links, uint32_t from, uint32_t to,
                           uint32_t link)
{
    struct pair pair;

    if (links->nkinds == 0)
        return true;
    pair = find_pair(links, from, to);
    return has_link(pair.from, pair.from_part, link) || has_link(pair.to, pair.to_part, link);
}

int tutti_links_number_parts(struct tutti_machine_parts *kinds, uint32_t nkinds, uint32_t nranks,
                       uint32_t nlinks)
{
    uint64_t ranks = 0, links = 0, described = 0;

    for (uint32_t i = 0; i < nkinds; i++) {
        struct tutti_machine_parts *kind = &kinds[i];

        kind->first_rank = (uint32_t)ranks;
        kind->first_link = (uint32_t)links;
        kind->first_described = (uint32_t)described;
        ranks += (uint64_t)kind->nparts * kind->nranks;
        links += (uint64_t)kind->nparts * kind->nlinks;
        described += kind->nlinks;
        if (links > TUTTI_MACHINE_ALL_LINKS)
            return tutti_fail(TUTTI_ERR_ARGUMENT, "the like parts have %llu links; there may be %u",
                              (unsigned long long)links, TUTTI_MACHINE_ALL_LINKS);
        if (kind->nparts == 0 || kind->nranks == 0)
            return tutti_fail(TUTTI_ERR_ARGUMENT, "%u like parts of %u ranks; there is at least "
                              "one part, and one rank in it", kind->nparts, kind->nranks);
        if (ranks > nranks)
            break;
    }
    if (nkinds > 0 && ranks != nranks)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "the like parts have %llu ranks, and the machine has "
                          "%u; let each rank be in one of them", (unsigned long long)ranks, nranks);
    if (nkinds > 0 && described != nlinks)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "one part of each kind has %llu links together, and "
                          "%u are described", (unsigned long long)described, nlinks);
    return TUTTI_OK;
}

/* ---- text ------------------------------------------------------------------------------------ */

int tutti_draft_read_parts(struct tutti_draft *draft, struct tutti_word keyword)
{
    struct tutti_draft_links *links = &draft->links;
    struct tutti_machine_parts kind = {.nparts = 0};
    const struct {
        const char *before; /* the word before the number, or NULL */
        uint32_t least, most;
        uint32_t *number;
    } parts[] = {{NULL, 1, TUTTI_MACHINE_RANKS, &kind.nparts},
                 {"ranks", 1, TUTTI_MACHINE_RANKS, &kind.nranks},
                 {"links", 0, TUTTI_MACHINE_LINKS, &kind.nlinks}};
    struct tutti_word word;

    if (links->nkinds == TUTTI_MACHINE_KINDS)
        return tutti_words_fail(&draft->words, keyword, "parts of kind number %u; there may be %u",
                                links->nkinds + 1, TUTTI_MACHINE_KINDS);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        tutti_words_next(&draft->words, &word);
        if (parts[i].before != NULL && !tutti_word_is(word, parts[i].before))
            return tutti_words_fail(&draft->words, word, "expected \"%s\", as in \"parts 128 ranks "
                                    "8 links 40\"", parts[i].before);
        if (parts[i].before != NULL)
            tutti_words_next(&draft->words, &word);
        TUTTI_TRY(tutti_word_number(&draft->words, word, parts[i].least, parts[i].most,
                                    parts[i].number));
    }
    if (tutti_words_next(&draft->words, &word))
        return tutti_words_fail(&draft->words, word, "\"%.*s\" is more than this line takes",
                                TUTTI_WORD(word));
    TUTTI_TRY(TUTTI_ARRAY_ROOM(links->kinds, links->nkinds, links->kind_capacity,
                               "parts of a machine"));
    links->kinds[links->nkinds++] = kind;
    links->parts_at = keyword;
    return TUTTI_OK;
}

void tutti_links_write_parts(FILE *out, const struct tutti_machine_links *links)
{
    for (uint32_t i = 0; i < links->nkinds; i++)
        fprintf(out, "parts %u ranks %u links %u\n", links->kinds[i].nparts,
                links->kinds[i].nranks, links->kinds[i].nlinks);
}
