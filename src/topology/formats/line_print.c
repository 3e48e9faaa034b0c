/* SPDX-License-Identifier: Apache-2.0
 * The items of a host as text: most of what has its default value is left out. */
#include "topology/formats/line_parts.h"

#include <inttypes.h>

static void print_pci(FILE *out, struct tutti_line_pci pci)
{
    if (pci.generation != 0)
        fprintf(out, " gen%u", pci.generation);
    if (pci.has_lanes)
        fprintf(out, " x%u", pci.lanes);
}

static void print_answer(FILE *out, enum tutti_line_answer answer, const char *what)
{
    if (answer != TUTTI_LINE_UNSAID)
        fprintf(out, " %s%s", answer == TUTTI_LINE_NO ? "no-" : "", what);
}

static void print_place(FILE *out, const struct tutti_line_place *place)
{
    if (place->how == TUTTI_LINE_DEALT)
        return;
    fputs(place->how == TUTTI_LINE_ON_CPU ? " on cpu" : " near gpu", out);
    for (uint32_t i = 0; i < place->count; i++)
        fprintf(out, " %u", place->number[i]);
}

static void print_list(FILE *out, const struct tutti_line_gpus *gpus)
{
    for (uint32_t a = 0; a < gpus->count; a++)
        for (uint32_t b = a + 1; b < gpus->count; b++)
            if (gpus->between[a * gpus->count + b] != 0)
                fprintf(out, " %u-%u:%u", a, b, gpus->between[a * gpus->count + b]);
}

static void print_gpus(FILE *out, const struct tutti_line_gpus *gpus)
{
    fprintf(out, "%u gpu%s", gpus->count, gpus->count == 1 ? "" : "s");
    if (gpus->model->word != NULL)
        fprintf(out, " %s", gpus->model->word);
    else if (gpus->gcn[0] != '\0')
        fprintf(out, " gcn %s", gpus->gcn);
    else
        fprintf(out, " sm %u", gpus->sm);
    print_pci(out, gpus->pci);
    print_answer(out, gpus->gdr, "gdr");
    if (gpus->shape != TUTTI_LINE_PCIE)
        fprintf(out, " %s", tutti_line_shape_name(gpus->shape));
    if (gpus->shape == TUTTI_LINE_LIST)
        print_list(out, gpus);
    else if (gpus->shape != TUTTI_LINE_PCIE && gpus->shape != TUTTI_LINE_CUBE)
        fprintf(out, " %u", gpus->links);
    if (gpus->hives > 1)
        fprintf(out, " hives %u", gpus->hives);
    if (gpus->cpu_links != 0)
        fprintf(out, " cpu-links %u", gpus->cpu_links);
    if (gpus->c2c_mb != 0)
        fprintf(out, " c2c %" PRId64 "%s", gpus->c2c_mb % 1000 == 0 ? gpus->c2c_mb / 1000
                                                                   : gpus->c2c_mb,
                gpus->c2c_mb % 1000 == 0 ? "GB/s" : "MB/s");
    if (gpus->fabric != 0)
        fprintf(out, " fabric %" PRId64, gpus->fabric);
    print_place(out, &gpus->place);
    fputs(", ", out);
}

static void print_nics(FILE *out, const struct tutti_line_nics *nics)
{
    bool is_round = nics->mbits % 1000 == 0;

    fprintf(out, "%u nic%s %" PRId64 "%c %s", nics->count, nics->count == 1 ? "" : "s",
            is_round ? nics->mbits / 1000 : nics->mbits, is_round ? 'G' : 'M', nics->kind->word);
    if (nics->ports != 1)
        fprintf(out, " ports %u", nics->ports);
    print_answer(out, nics->rails, "rails");
    print_answer(out, nics->gdr, "gdr");
    print_pci(out, nics->pci);
    print_place(out, &nics->place);
    fputs(", ", out);
}

static void print_cpus(FILE *out, const struct tutti_line_cpus *cpus)
{
    fprintf(out, "%u cpu%s %s cores %u", cpus->sockets, cpus->sockets == 1 ? "" : "s",
            cpus->model->word, cpus->cores);
    if (cpus->threads != 1)
        fprintf(out, " threads %u", cpus->threads);
    if (cpus->nodes != 1)
        fprintf(out, " nodes %u", cpus->nodes);
    if (cpus->caches != 0)
        fprintf(out, " caches %u", cpus->caches);
}

void tutti_line_print(FILE *out, const struct tutti_line_host *parts)
{
    const struct tutti_line_switches *switches = &parts->switches;

    if (parts->gpus.count > 0)
        print_gpus(out, &parts->gpus);
    for (uint32_t i = 0; i < parts->nnics; i++)
        print_nics(out, &parts->nics[i]);
    print_cpus(out, &parts->cpus);
    if (switches->count > 0) {
        fprintf(out, ", %u switch%s", switches->count, switches->count == 1 ? "" : "es");
        if (switches->upper > 0)
            fprintf(out, " under %u", switches->upper);
        print_pci(out, switches->pci);
    }
}
