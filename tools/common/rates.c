/* SPDX-License-Identifier: Apache-2.0
 * Applies hints, and describes guessed rates in one line. */
#include "common/rates.h"

#include "base/result.h"
#include "common/memory.h"
#include "common/units.h"
#include "topology/graph/speeds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rates_apply_hints(const char *command, const struct tutti_hints *hints,
                      struct tutti_inventory *inventory)
{
    char *text = NULL;
    size_t size;
    FILE *notes = must_have(open_memstream(&text, &size));
    int rc = tutti_hints_apply(hints, inventory, notes);

    if (fclose(notes) != 0)
        must_have(NULL);
    for (char *rest = text, *line; rc == TUTTI_OK && (line = strsep(&rest, "\n")) != NULL;)
        if (*line != '\0')
            fprintf(stderr, "%s: %s\n", command, line);
    free(text);
    return rc;
}

/* The guessed links of one kind. */
struct guess {
    uint32_t links; /* directed links */
    uint32_t ends;  /* nodes from which such links start, without switches */
    double bytes_per_s; /* of one of these links; for NVLinks, of each of its parallel links */
};

static struct guess find_guess(const struct tutti_graph *graph, enum tutti_graph_link_kind kind)
{
    struct guess guess = {.links = 0};
    uint32_t last = TUTTI_NO_NODE;

    for (uint32_t i = 0; i < graph->nlinks; i++) {
        const struct tutti_graph_link *link = &graph->links[i];

        /* Nothing limits the traffic between a CPU and a card that is on no bus. */
        if (link->kind != kind || link->found_by != TUTTI_SOURCE_ASSUMED ||
            link->bytes_per_s >= TUTTI_LOCAL_BYTES_PER_S)
            continue;
        guess.links++;
        guess.bytes_per_s = link->bytes_per_s / (kind == TUTTI_LINK_NVLINK ? link->count : 1);
        if (link->from != last && (graph->nodes[link->from].kind == TUTTI_NODE_GPU ||
                                   graph->nodes[link->from].kind == TUTTI_NODE_NET))
            guess.ends++;
        last = link->from;
    }
    return guess;
}

/* Writes ", " before all parts of a list but the first. */
static void begin_part(FILE *out, bool *is_first)
{
    fputs(*is_first ? "" : ", ", out);
    *is_first = false;
}

static void write_what(FILE *out, const struct guess guesses[TUTTI_LINK_COUNT])
{
    const struct guess *nvlink = &guesses[TUTTI_LINK_NVLINK], *port = &guesses[TUTTI_LINK_PORT];
    char rate[UNITS_TEXT];
    bool is_first = true;

    if (nvlink->links > 0) {
        begin_part(out, &is_first);
        fprintf(out, "NVLinks of %u gpu%s (%s each)", nvlink->ends, nvlink->ends == 1 ? "" : "s",
                units_rate(nvlink->bytes_per_s, rate));
    }
    if (port->links > 0) {
        begin_part(out, &is_first);
        fprintf(out, "%u port%s (%g Gbit/s)", port->ends, port->ends == 1 ? "" : "s",
                port->bytes_per_s * 8 / 1e9);
    }
    if (guesses[TUTTI_LINK_PCI].links > 0) {
        begin_part(out, &is_first);
        fprintf(out, "%u PCI link%s", guesses[TUTTI_LINK_PCI].links / 2,
                guesses[TUTTI_LINK_PCI].links == 2 ? "" : "s");
    }
    if (guesses[TUTTI_LINK_SYS].links > 0) {
        begin_part(out, &is_first);
        fprintf(out, "links between NUMA nodes (%s)",
                units_rate(guesses[TUTTI_LINK_SYS].bytes_per_s, rate));
    }
}

static void write_cure(FILE *out, const struct guess guesses[TUTTI_LINK_COUNT])
{
    static const struct {
        enum tutti_graph_link_kind kind;
        const char *cure;
    } cures[] = {
        {TUTTI_LINK_NVLINK, "--gpu MODEL"},
        {TUTTI_LINK_PORT, "--nic RATE"},
        {TUTTI_LINK_PCI, "link_speed and link_width in NCCL's XML"},
        {TUTTI_LINK_SYS, "--cpu MODEL"},
    };
    bool is_first = true;

    for (size_t i = 0; i < sizeof cures / sizeof cures[0]; i++)
        if (guesses[cures[i].kind].links > 0) {
            begin_part(out, &is_first);
            fputs(cures[i].cure, out);
        }
}

void rates_print_guesses(const char *command, const struct tutti_graph *graph)
{
    struct guess guesses[TUTTI_LINK_COUNT];
    uint32_t links = 0;

    for (int kind = 0; kind < TUTTI_LINK_COUNT; kind++) {
        guesses[kind] = find_guess(graph, (enum tutti_graph_link_kind)kind);
        links += kind != TUTTI_LINK_C2C && kind != TUTTI_LINK_FABRIC ? guesses[kind].links : 0;
    }
    if (links == 0)
        return;
    fprintf(stderr, "%s: guessed rates: ", command);
    write_what(stderr, guesses);
    fputs("; to say better: ", stderr);
    write_cure(stderr, guesses);
    fputc('\n', stderr);
}
