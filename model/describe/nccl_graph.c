/* SPDX-License-Identifier: Apache-2.0
 * Collects the graphs, channels and stops of a search in three growing arrays, and writes them in
 * NCCL's XML format. Each new channel or stop belongs to the graph or channel that was added
 * last. */
#include "describe/nccl_graph.h"

#include "base/array.h"
#include "base/result.h"
#include "topology/formats/xml.h"
#include "topology/inventory/inventory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- adding ---------------------------------------------------------------------------------- */

int tutti_nccl_graphs_create(struct tutti_nccl_graphs **ret_graphs)
{
    struct tutti_nccl_graphs *graphs = calloc(1, sizeof *graphs);

    if (graphs == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for graphs");
    *ret_graphs = graphs;
    return TUTTI_OK;
}

void tutti_nccl_graphs_destroy(struct tutti_nccl_graphs *graphs)
{
    if (graphs == NULL)
        return;
    free(graphs->graphs);
    free(graphs->channels);
    free(graphs->stops);
    free(graphs);
}

static int check_count(uint32_t count, uint32_t most, const char *what)
{
    if (count < most)
        return TUTTI_OK;
    return tutti_note(TUTTI_ERR_ARGUMENT, "more than %u %s; no search finds so many", most, what);
}

int tutti_nccl_graphs_add(struct tutti_nccl_graphs *graphs, const struct tutti_nccl_graph *graph)
{
    TUTTI_TRY(check_count(graphs->ngraphs, TUTTI_NCCL_GRAPHS, "graphs"));
    TUTTI_TRY(TUTTI_ARRAY_ROOM(graphs->graphs, graphs->ngraphs, graphs->graph_capacity, "graphs"));
    graphs->graphs[graphs->ngraphs] = *graph;
    graphs->graphs[graphs->ngraphs].first_channel = graphs->nchannels;
    graphs->graphs[graphs->ngraphs++].nchannels = 0;
    return TUTTI_OK;
}

int tutti_nccl_graphs_add_channel(struct tutti_nccl_graphs *graphs)
{
    tutti_assert(graphs->ngraphs > 0);
    TUTTI_TRY(check_count(graphs->nchannels, TUTTI_NCCL_GRAPH_CHANNELS, "channels"));
    TUTTI_TRY(TUTTI_ARRAY_ROOM(graphs->channels, graphs->nchannels, graphs->channel_capacity,
                               "channels"));
    graphs->channels[graphs->nchannels++] =
        (struct tutti_nccl_channel){.first_stop = graphs->nstops};
    graphs->graphs[graphs->ngraphs - 1].nchannels++;
    return TUTTI_OK;
}

int tutti_nccl_graphs_add_stop(struct tutti_nccl_graphs *graphs, struct tutti_nccl_stop stop)
{
    tutti_assert(graphs->nchannels > 0);
    TUTTI_TRY(check_count(graphs->nstops, TUTTI_NCCL_GRAPH_STOPS, "gpus and nets"));
    TUTTI_TRY(
        TUTTI_ARRAY_ROOM(graphs->stops, graphs->nstops, graphs->stop_capacity, "gpus and nets"));
    graphs->stops[graphs->nstops++] = stop;
    graphs->channels[graphs->nchannels - 1].nstops++;
    return TUTTI_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_number(FILE *out, const char *name, int64_t number)
{
    fprintf(out, " %s=\"%" PRId64 "\"", name, number);
}

static void put_real(FILE *out, const char *name, double real)
{
    char text[40];

    tutti_real_write(real, text, sizeof text);
    fprintf(out, " %s=\"%s\"", name, text);
}

static void write_graph(FILE *out, const struct tutti_nccl_graph *graph)
{
    fputs("  <graph", out);
    put_number(out, "id", graph->id);
    put_number(out, "pattern", graph->pattern);
    put_number(out, "crossnic", graph->crossnic);
    put_number(out, "nchannels", graph->nchannels);
    put_real(out, "speedintra", graph->speedintra);
    put_real(out, "speedinter", graph->speedinter);
    put_real(out, "latencyinter", graph->latencyinter);
    if (graph->typeintra[0] != '\0')
        tutti_xml_put(out, "typeintra", graph->typeintra);
    if (graph->typeinter[0] != '\0')
        tutti_xml_put(out, "typeinter", graph->typeinter);
    put_number(out, "samechannels", graph->samechannels);
    fputs(graph->nchannels == 0 ? "/>\n" : ">\n", out);
}

static void write_channel(FILE *out, const struct tutti_nccl_graphs *graphs,
                          const struct tutti_nccl_channel *channel)
{
    fputs(channel->nstops == 0 ? "    <channel/>\n" : "    <channel>\n", out);
    for (uint32_t i = 0; i < channel->nstops; i++) {
        const struct tutti_nccl_stop *stop = &graphs->stops[channel->first_stop + i];

        fputs(stop->is_net ? "      <net" : "      <gpu", out);
        put_number(out, "dev", stop->dev);
        if (stop->rank != TUTTI_NCCL_NO_RANK)
            put_number(out, "rank", stop->rank);
        fputs("/>\n", out);
    }
    if (channel->nstops > 0)
        fputs("    </channel>\n", out);
}

static void write_graphs(FILE *out, const struct tutti_nccl_graphs *graphs)
{
    fputs(graphs->ngraphs == 0 ? "<graphs version=\"1\"/>\n" : "<graphs version=\"1\">\n", out);
    for (uint32_t i = 0; i < graphs->ngraphs; i++) {
        const struct tutti_nccl_graph *graph = &graphs->graphs[i];

        write_graph(out, graph);
        for (uint32_t j = 0; j < graph->nchannels; j++)
            write_channel(out, graphs, &graphs->channels[graph->first_channel + j]);
        if (graph->nchannels > 0)
            fputs("  </graph>\n", out);
    }
    if (graphs->ngraphs > 0)
        fputs("</graphs>\n", out);
}

int tutti_nccl_graphs_write(const struct tutti_nccl_graphs *graphs, char **ret_text)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    bool is_whole = out != NULL;

    if (out != NULL) {
        write_graphs(out, graphs);
        is_whole = ferror(out) == 0;
        is_whole = fclose(out) == 0 && is_whole;
    }
    if (!is_whole) {
        free(text);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to write %u graphs", graphs->ngraphs);
    }
    *ret_text = text;
    return TUTTI_OK;
}
