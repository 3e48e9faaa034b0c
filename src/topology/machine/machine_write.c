/* SPDX-License-Identifier: Apache-2.0
 * Writes a machine as text, in the shortest form that reads as the same machine again. */
#include "topology/machine/machine_cells.h"

#include "base/locale.h"
#include "base/result.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- quantities ------------------------------------------------------------------------------ */

static void write_beyond(FILE *out,
                         const struct tutti_footprint_rate beyond[TUTTI_MACHINE_FOOTPRINTS])
{
    for (int i = 0; i < TUTTI_MACHINE_FOOTPRINTS && beyond[i].bytes_per_s > 0; i++) {
        fputs(" beyond ", out);
        tutti_unit_write(out, tutti_size_units, beyond[i].bytes);
        fputc(' ', out);
        tutti_unit_write(out, tutti_rate_units, beyond[i].bytes_per_s);
    }
}

static void write_rate(FILE *out, const char *keyword, double bytes_per_s,
                       const struct tutti_footprint_rate *beyond)
{
    if (bytes_per_s == 0)
        return;
    fprintf(out, "%s ", keyword);
    tutti_unit_write(out, tutti_rate_units, bytes_per_s);
    if (beyond != NULL)
        write_beyond(out, beyond);
    fputc('\n', out);
}

static void write_level(FILE *out, const char *name, const struct tutti_rate *rate)
{
    fprintf(out, "level %-5s latency ", name);
    tutti_unit_write(out, tutti_time_units, rate->latency_s);
    fputs(" overhead ", out);
    tutti_unit_write(out, tutti_time_units, rate->overhead_s);
    fputs(" bandwidth ", out);
    tutti_unit_write(out, tutti_rate_units, rate->bytes_per_s);
    write_beyond(out, rate->beyond);
    if (rate->core_bytes_per_s > 0) {
        fputs(" core ", out);
        tutti_unit_write(out, tutti_rate_units, rate->core_bytes_per_s);
        write_beyond(out, rate->core_beyond);
    }
    fputc('\n', out);
}

static void write_bridge(FILE *out, const struct tutti_machine *machine)
{
    if (machine->bridge_latency_s == 0 && machine->bridge_bytes_per_s == 0)
        return;
    fputs("bridge latency ", out);
    tutti_unit_write(out, tutti_time_units, machine->bridge_latency_s);
    if (machine->bridge_bytes_per_s > 0) {
        fputs(" bandwidth ", out);
        tutti_unit_write(out, tutti_rate_units, machine->bridge_bytes_per_s);
    }
    fputc('\n', out);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Finds the sizes of places; `sizes` has room for nplaces. Returns false if the items of some place
 * are not consecutive. */
static bool find_sizes(const uint32_t *of, uint32_t count, uint32_t nplaces, uint32_t *sizes)
{
    for (uint32_t i = 0; i < nplaces; i++)
        sizes[i] = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && of[i] != of[i - 1] && of[i] != of[i - 1] + 1)
            return false;
        sizes[of[i]]++;
    }
    return true;
}

/* Returns the length of the shortest list that gives the sizes when repeated; the last place need
 * not be full. The search uses the failure function of Knuth, Morris and Pratt, because a machine
 * may have a million nodes. `border` has room for nplaces. */
static uint32_t find_period(const uint32_t *sizes, uint32_t nplaces, uint32_t *border)
{
    uint32_t whole = nplaces - 1, period;

    if (whole == 0)
        return 1;
    border[0] = 0;
    for (uint32_t i = 1, matched = 0; i < whole; i++) {
        while (matched > 0 && sizes[i] != sizes[matched])
            matched = border[matched - 1];
        matched += sizes[i] == sizes[matched];
        border[i] = matched;
    }
    period = whole - border[whole - 1];
    return sizes[whole] <= sizes[whole % period] ? period : nplaces;
}

/* Returns true if rank r is on node r mod nplaces, where the reader places ranks for "place
 * cyclic". */
static bool is_cyclic(const uint32_t *of, uint32_t count, uint32_t nplaces)
{
    uint32_t size = (count + nplaces - 1) / nplaces;

    for (uint32_t i = 0; i < count; i++)
        if (of[i] != i % nplaces)
            return false;
    return (count + size - 1) / size == nplaces;
}

static void write_list(FILE *out, const uint32_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        fprintf(out, " %u", values[i]);
    fputc('\n', out);
}

/* Writes the line that gives the place of each of `count` items, in its shortest form: the sizes of
 * the places, "place cyclic", or a list. `work` has room for 2 * nplaces numbers. */
static void write_places(FILE *out, const char *keyword, const uint32_t *of, uint32_t count,
                         uint32_t nplaces, bool may_be_cyclic, uint32_t *work)
{
    fputs(keyword, out);
    if (find_sizes(of, count, nplaces, work)) {
        write_list(out, work, find_period(work, nplaces, work + nplaces));
    } else if (may_be_cyclic && is_cyclic(of, count, nplaces)) {
        fprintf(out, " %u\nplace cyclic\n", (count + nplaces - 1) / nplaces);
    } else {
        fputs(" of", out);
        write_list(out, of, count);
    }
}

/* Writes the lines `node`, `place` and `group`. */
static int write_nodes(FILE *out, const struct tutti_placement *places)
{
    uint32_t *work = calloc(3 * (size_t)places->nranks, sizeof *work), *of_node;

    if (work == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to write %u ranks", places->nranks);
    of_node = work + 2 * (size_t)places->nranks;
    if (places->node != NULL)
        write_places(out, "node", places->node, places->nranks, places->nnodes, true, work);
    if (places->group != NULL) {
        uint32_t nnodes = places->node != NULL ? places->nnodes : places->nranks;

        for (uint32_t rank = 0; rank < places->nranks; rank++)
            of_node[places->node != NULL ? places->node[rank] : rank] = places->group[rank];
        write_places(out, "group", of_node, nnodes, places->ngroups, false, work);
    }
    free(work);
    return TUTTI_OK;
}

static void write_orders(FILE *out, const struct tutti_placement *places)
{
    size_t n = places->nranks;

    for (uint32_t i = 0; i < places->nrings; i++) {
        fputs("ring", out);
        write_list(out, places->rings + i * n, places->nranks);
    }
    for (uint32_t i = 0; i < places->ntrees; i++) {
        fputs("tree", out);
        for (size_t rank = 0; rank < n; rank++)
            fprintf(out, " %d", places->trees[i * n + rank]);
        fputc('\n', out);
    }
}

static int write_machine(FILE *out, const struct tutti_machine *machine)
{
    const struct tutti_placement *places = &machine->places;

    fprintf(out, "tutti-machine 1\nranks %u\n", places->nranks);
    TUTTI_TRY(write_nodes(out, places));
    TUTTI_TRY(tutti_machine_write_cells(out, places));
    write_level(out, "node", &machine->level[0]);
    write_level(out, "group", &machine->level[1]);
    write_level(out, "top", &machine->level[2]);
    write_bridge(out, machine);
    if (machine->nics != 0)
        fprintf(out, "nics %u\n", machine->nics);
    write_rate(out, "trunk", machine->trunk_bytes_per_s, NULL);
    if (places->ndims > 0) {
        fputs("torus", out);
        write_list(out, places->dims, places->ndims);
    }
    if (machine->cores != 0)
        fprintf(out, "cores %u\n", machine->cores);
    write_rate(out, "memory", machine->memory_bytes_per_s, machine->memory_beyond);
    write_rate(out, "copy", machine->copy_bytes_per_s, machine->copy_beyond);
    write_rate(out, "reduce", machine->reduce_bytes_per_s, machine->reduce_beyond);
    write_rate(out, "load", machine->load_bytes_per_s, machine->load_beyond);
    if (machine->signal_s > 0) {
        fputs("signal ", out);
        tutti_unit_write(out, tutti_time_units, machine->signal_s);
        fputc('\n', out);
    }
    write_orders(out, places);
    tutti_links_write(out, &machine->links);
    return TUTTI_OK;
}

int tutti_machine_write(const struct tutti_machine *machine, char **ret_text)
{
    struct tutti_c_locale locale = tutti_c_locale_enter();
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    int rc = TUTTI_ERR_SYSTEM;

    if (out != NULL && locale.c != (locale_t)0)
        rc = write_machine(out, machine);
    tutti_c_locale_leave(locale);
    if (out == NULL || fclose(out) != 0 || rc != TUTTI_OK) {
        free(text);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to write a machine of %u ranks",
                          machine->places.nranks);
    }
    *ret_text = text;
    return TUTTI_OK;
}
