/* SPDX-License-Identifier: Apache-2.0
 * Reading NCCL's XML of a search's result. */
#include "describe/nccl_graph.h"

#include "base/log.h"
#include "base/result.h"
#include "topology/formats/xml.h"
#include "topology/inventory/inventory.h"

#include <string.h>

struct reader {
    const char *name;
    struct tutti_nccl_graphs *graphs;
    int64_t nchannels; /* that the graph at hand says it has; -1: it does not say */
    uint32_t depth;    /* of known elements that are open */
    uint32_t skipped;  /* open elements that are passed over */
};

/* ---- attributes: what is not there leaves the output as it is -------------------------------- */

static int read_number(struct tutti_xml *xml, const struct tutti_xml_element *element,
                       const char *name, int64_t *number)
{
    const char *value = tutti_xml_value(element, name);
    int64_t read;

    if (value == NULL)
        return TUTTI_OK;
    if (!tutti_number_parse(value, &read))
        return tutti_xml_fail(xml, "<%s>: %s=\"%.40s\" is no number, such as 8; correct it",
                              element->name, name, value);
    *number = read;
    return TUTTI_OK;
}

static int read_needed(struct tutti_xml *xml, const struct tutti_xml_element *element,
                       const char *name, int64_t *ret_number)
{
    if (tutti_xml_value(element, name) == NULL)
        return tutti_xml_fail(xml, "<%s> without %s; give it, such as %s=\"0\"", element->name,
                              name, name);
    return read_number(xml, element, name, ret_number);
}

static int read_real(struct tutti_xml *xml, const struct tutti_xml_element *element,
                     const char *name, double *real)
{
    const char *value = tutti_xml_value(element, name);
    double read;

    if (value == NULL)
        return TUTTI_OK;
    if (!tutti_real_parse(value, &read) || read < 0)
        return tutti_xml_fail(xml, "<%s>: %s=\"%.40s\" is no number from 0 on, such as 2.4; "
                              "correct it", element->name, name, value);
    *real = read;
    return TUTTI_OK;
}

static int read_type(struct tutti_xml *xml, const struct tutti_xml_element *element,
                     const char *name, char ret_type[8])
{
    const char *value = tutti_xml_value(element, name);

    if (value == NULL)
        return TUTTI_OK;
    if (strlen(value) > 7 ||
        strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != strlen(value))
        return tutti_xml_fail(xml, "<%s>: %s=\"%.40s\" is no type of path, such as NVL or PIX; "
                              "correct it", element->name, name, value);
    memcpy(ret_type, value, strlen(value) + 1);
    return TUTTI_OK;
}

/* ---- elements -------------------------------------------------------------------------------- */

/* What was noted gets its place. */
static int add(struct tutti_xml *xml, int rc)
{
    return rc == TUTTI_ERR_ARGUMENT ? tutti_xml_fail(xml, "%s", tutti_last_message()) : rc;
}

static int begin_graphs(struct tutti_xml *xml, const struct tutti_xml_element *element)
{
    int64_t version = 1;

    if (strcmp(element->name, "graphs") != 0)
        return tutti_xml_fail(xml, "<%.40s>, where a file of graphs has <graphs>; is it the right "
                              "file?", element->name);
    TUTTI_TRY(read_number(xml, element, "version", &version));
    if (version != 1)
        return tutti_xml_fail(xml, "<graphs>: version=\"%lld\"; 1 is known", (long long)version);
    return TUTTI_OK;
}

static int begin_graph(struct reader *reader, struct tutti_xml *xml,
                       const struct tutti_xml_element *element)
{
    struct tutti_nccl_graph graph = {.id = 0};

    TUTTI_TRY(read_needed(xml, element, "id", &graph.id));
    TUTTI_TRY(read_needed(xml, element, "pattern", &graph.pattern));
    TUTTI_TRY(read_number(xml, element, "crossnic", &graph.crossnic));
    TUTTI_TRY(read_real(xml, element, "speedintra", &graph.speedintra));
    graph.speedinter = graph.speedintra;
    TUTTI_TRY(read_real(xml, element, "speedinter", &graph.speedinter));
    TUTTI_TRY(read_real(xml, element, "latencyinter", &graph.latencyinter));
    TUTTI_TRY(read_type(xml, element, "typeintra", graph.typeintra));
    TUTTI_TRY(read_type(xml, element, "typeinter", graph.typeinter));
    TUTTI_TRY(read_number(xml, element, "samechannels", &graph.samechannels));
    reader->nchannels = -1;
    TUTTI_TRY(read_number(xml, element, "nchannels", &reader->nchannels));
    return add(xml, tutti_nccl_graphs_add(reader->graphs, &graph));
}

static int begin_stop(struct reader *reader, struct tutti_xml *xml,
                      const struct tutti_xml_element *element)
{
    struct tutti_nccl_stop stop = {
        .is_net = strcmp(element->name, "net") == 0, .rank = TUTTI_NCCL_NO_RANK,
    };

    TUTTI_TRY(read_needed(xml, element, "dev", &stop.dev));
    TUTTI_TRY(read_number(xml, element, "rank", &stop.rank));
    return add(xml, tutti_nccl_graphs_add_stop(reader->graphs, stop));
}

/* TUTTI_AGAIN: there is no such element here. */
static int begin_known(struct reader *reader, struct tutti_xml *xml,
                       const struct tutti_xml_element *element)
{
    const char *name = element->name;

    if (reader->depth == 0)
        return begin_graphs(xml, element);
    if (reader->depth == 1 && strcmp(name, "graph") == 0)
        return begin_graph(reader, xml, element);
    if (reader->depth == 2 && strcmp(name, "channel") == 0)
        return add(xml, tutti_nccl_graphs_add_channel(reader->graphs));
    if (reader->depth == 3 && (strcmp(name, "gpu") == 0 || strcmp(name, "net") == 0))
        return begin_stop(reader, xml, element);
    return TUTTI_AGAIN;
}

static int on_begin(void *context, struct tutti_xml *xml, const struct tutti_xml_element *element)
{
    static const char *const parents[] = {"", "graphs", "graph", "channel", "gpu or net"};
    struct reader *reader = context;
    int rc = reader->skipped > 0 ? TUTTI_AGAIN : begin_known(reader, xml, element);

    if (rc == TUTTI_AGAIN) {
        if (reader->skipped++ == 0)
            tutti_log(TUTTI_LOG_DEBUG, "%s:%zu: <%.40s> in <%s>; passed over with all inside",
                      reader->name, tutti_xml_line(xml), element->name, parents[reader->depth]);
        return TUTTI_OK;
    }
    TUTTI_TRY(rc);
    reader->depth++;
    return TUTTI_OK;
}

static int on_end(void *context, struct tutti_xml *xml, const char *name, const char *text)
{
    struct reader *reader = context;
    const struct tutti_nccl_graphs *graphs = reader->graphs;

    (void)name, (void)text;
    if (reader->skipped > 0) {
        reader->skipped--;
        return TUTTI_OK;
    }
    reader->depth--;
    if (reader->depth == 1 && reader->nchannels >= 0 &&
        reader->nchannels != graphs->graphs[graphs->ngraphs - 1].nchannels)
        return tutti_xml_fail(xml, "the graph says nchannels=\"%lld\", but has %u; correct it",
                              (long long)reader->nchannels,
                              graphs->graphs[graphs->ngraphs - 1].nchannels);
    return TUTTI_OK;
}

int tutti_nccl_graphs_read(const char *name, const char *text, size_t length,
                           struct tutti_nccl_graphs **ret_graphs)
{
    static const struct tutti_xml_handler handler = {.begin = on_begin, .end = on_end};
    struct reader reader = {.name = name};
    int rc;

    TUTTI_TRY(tutti_nccl_graphs_create(&reader.graphs));
    rc = tutti_xml_read(name, text, length, &handler, &reader);
    if (rc != TUTTI_OK) {
        tutti_nccl_graphs_destroy(reader.graphs);
        return rc;
    }
    *ret_graphs = reader.graphs;
    return TUTTI_OK;
}
