/* SPDX-License-Identifier: Apache-2.0
 * Reads the words of the items `cpus`, `switches` and `nics` in a line, and provides functions for
 * the words of all items. */
#include "topology/formats/line_words.h"

#include "base/result.h"

#include <string.h>

/* Upper bounds: threads of a core, and ports of a card. */
enum { MOST_THREADS = 8, MOST_PORTS = 16 };

/* ---- options --------------------------------------------------------------------------------- */

/* Fails with a message that lists the words of all options. */
static int expected_option(const struct tutti_line_reader *reader,
                           const struct tutti_line_option *options)
{
    char what[TUTTI_MESSAGE_BYTES];
    size_t used = 0;

    for (; options->word != NULL && used < sizeof what; options++)
        used += (size_t)snprintf(what + used, sizeof what - used, "%s, ", options->word);
    if (used < sizeof what)
        snprintf(what + used, sizeof what - used, "\",\" or the end");
    return tutti_line_expected(reader, what);
}

int tutti_line_options(struct tutti_line_reader *reader, const struct tutti_line_option *options,
                       struct tutti_line_host *host)
{
    uint32_t seen = 0;

    while (!tutti_line_item_ends(reader)) {
        const struct tutti_line_option *option = options;
        struct tutti_word at = reader->word;

        while (option->word != NULL && !(option->fits != NULL ? option->fits(at)
                                                              : tutti_word_is(at, option->word)))
            option++;
        if (option->word == NULL)
            return expected_option(reader, options);
        if ((seen & 1u << option->group) != 0)
            return tutti_words_fail(&reader->words, at,
                                    "\"%.*s\" repeats or contradicts an "
                                    "earlier word of this item; give one of them",
                                    (int)at.length, at.at);
        seen |= 1u << option->group;
        tutti_line_take(reader);
        TUTTI_TRY(option->read(reader, at, host));
    }
    return TUTTI_OK;
}

bool tutti_line_fits_count(struct tutti_word word)
{
    return word.length > 0 && word.at[0] >= '0' && word.at[0] <= '9';
}

/* Returns the part of a word after its first `letters` characters. */
static struct tutti_word after_letters(struct tutti_word word, size_t letters)
{
    word.at += letters;
    word.length -= letters;
    word.column += letters;
    return word;
}

bool tutti_line_fits_generation(struct tutti_word word)
{
    return word.length > 3 && memcmp(word.at, "gen", 3) == 0 &&
           tutti_line_fits_count(after_letters(word, 3));
}

bool tutti_line_fits_lanes(struct tutti_word word)
{
    return word.length > 1 && word.at[0] == 'x' && tutti_line_fits_count(after_letters(word, 1));
}

int tutti_line_read_generation(const struct tutti_line_reader *reader, struct tutti_word at,
                               struct tutti_line_pci *pci)
{
    return tutti_word_number(&reader->words, after_letters(at, 3), 1, TUTTI_LINE_MOST_GENERATIONS,
                             &pci->generation);
}

int tutti_line_read_lanes(const struct tutti_line_reader *reader, struct tutti_word at,
                          struct tutti_line_pci *pci)
{
    pci->has_lanes = true;
    return tutti_word_number(&reader->words, after_letters(at, 1), 0, TUTTI_LINE_MOST_LANES,
                             &pci->lanes);
}

int tutti_line_read_place(struct tutti_line_reader *reader, enum tutti_line_placing how,
                          const char *what, struct tutti_line_place *place)
{
    if (!tutti_word_is(reader->word, what))
        return tutti_line_expected(reader, how == TUTTI_LINE_ON_CPU ? "cpu, as in \"on cpu 0\""
                                                                    : "gpu, as in \"near gpu 0\"");
    tutti_line_take(reader);
    place->how = how;
    do {
        uint32_t number;

        if (place->count == TUTTI_LINE_MOST_NICS)
            return tutti_line_expected(reader, "the end of the list, which has as many "
                                               "numbers as are allowed");
        TUTTI_TRY(tutti_line_number(reader, 0, TUTTI_LINE_MOST_NICS - 1, &number));
        place->number[place->count++] = (uint16_t)number;
    } while (tutti_line_fits_count(reader->word));
    return TUTTI_OK;
}

/* ---- cpus ------------------------------------------------------------------------------------ */

static const struct tutti_line_cpu_model *find_cpu_model(struct tutti_word word)
{
    const struct tutti_line_cpu_model *model = tutti_line_cpu_models;

    while (model->word != NULL && !tutti_word_is(word, model->word))
        model++;
    return model->word != NULL ? model : NULL;
}

static bool fits_cpu_model(struct tutti_word word)
{
    return find_cpu_model(word) != NULL;
}

static int read_cpu_model(struct tutti_line_reader *reader, struct tutti_word at,
                          struct tutti_line_host *host)
{
    (void)reader;
    host->cpus.model = find_cpu_model(at);
    return TUTTI_OK;
}

static int read_cores(struct tutti_line_reader *reader, struct tutti_word at,
                      struct tutti_line_host *host)
{
    (void)at;
    return tutti_line_number(reader, 1, TUTTI_LINE_MOST_CORES, &host->cpus.cores);
}

static int read_threads(struct tutti_line_reader *reader, struct tutti_word at,
                        struct tutti_line_host *host)
{
    (void)at;
    return tutti_line_number(reader, 1, MOST_THREADS, &host->cpus.threads);
}

static int read_nodes(struct tutti_line_reader *reader, struct tutti_word at,
                      struct tutti_line_host *host)
{
    (void)at;
    return tutti_line_number(reader, 1, TUTTI_LINE_MOST_NODES, &host->cpus.nodes);
}

static int read_caches(struct tutti_line_reader *reader, struct tutti_word at,
                       struct tutti_line_host *host)
{
    (void)at;
    return tutti_line_number(reader, 1, TUTTI_LINE_MOST_CACHES, &host->cpus.caches);
}

static const struct tutti_line_option cpu_options[] = {
    {"a model such as amd or milan", fits_cpu_model, 0, read_cpu_model},
    {"cores", NULL, 1, read_cores},
    {"threads", NULL, 2, read_threads},
    {"nodes", NULL, 3, read_nodes},
    {"caches", NULL, 4, read_caches},
    {NULL, NULL, 0, NULL},
};

int tutti_line_read_cpus(struct tutti_line_reader *reader, struct tutti_word at,
                         struct tutti_line_host *host)
{
    struct tutti_line_cpus *cpus = &host->cpus;

    cpus->model = tutti_line_cpu_models; /* the first of the table is the default */
    cpus->threads = cpus->nodes = 1;
    TUTTI_TRY(tutti_line_options(reader, cpu_options, host));
    if (cpus->cores == 0)
        cpus->cores = cpus->model->cores;
    if (cpus->sockets * cpus->cores * cpus->threads > TUTTI_LINE_MOST_CORES)
        return tutti_words_fail(&reader->words, at, "%u cpus of %u cores with %u threads "
                                "are %u CPUs; a host has at most %u", cpus->sockets, cpus->cores,
                                cpus->threads, cpus->sockets * cpus->cores * cpus->threads,
                                TUTTI_LINE_MOST_CORES);
    if (cpus->sockets * cpus->nodes > TUTTI_LINE_MOST_NODES)
        return tutti_words_fail(&reader->words, at, "%u cpus of %u nodes are %u NUMA "
                                "nodes; a host has at most %u", cpus->sockets, cpus->nodes,
                                cpus->sockets * cpus->nodes, TUTTI_LINE_MOST_NODES);
    if (cpus->cores % cpus->nodes != 0)
        return tutti_words_fail(&reader->words, at, "%u cores do not divide evenly among %u "
                                "nodes", cpus->cores, cpus->nodes);
    if (cpus->caches != 0 && (cpus->caches % cpus->nodes != 0 || cpus->cores % cpus->caches != 0))
        return tutti_words_fail(&reader->words, at, "%u caches do not divide evenly among "
                                "%u nodes, or %u cores among the caches", cpus->caches, cpus->nodes,
                                cpus->cores);
    return TUTTI_OK;
}

/* ---- switches -------------------------------------------------------------------------------- */

static int read_under(struct tutti_line_reader *reader, struct tutti_word at,
                      struct tutti_line_host *host)
{
    (void)at;
    return tutti_line_number(reader, 1, host->switches.count, &host->switches.upper);
}

static int read_switch_generation(struct tutti_line_reader *reader, struct tutti_word at,
                                  struct tutti_line_host *host)
{
    return tutti_line_read_generation(reader, at, &host->switches.pci);
}

static int read_switch_lanes(struct tutti_line_reader *reader, struct tutti_word at,
                             struct tutti_line_host *host)
{
    return tutti_line_read_lanes(reader, at, &host->switches.pci);
}

static const struct tutti_line_option switch_options[] = {
    {"under", NULL, 0, read_under},
    {"gen4", tutti_line_fits_generation, 1, read_switch_generation},
    {"x16", tutti_line_fits_lanes, 2, read_switch_lanes},
    {NULL, NULL, 0, NULL},
};

int tutti_line_read_switches(struct tutti_line_reader *reader, struct tutti_word at,
                             struct tutti_line_host *host)
{
    (void)at;
    return tutti_line_options(reader, switch_options, host);
}

/* ---- nics ------------------------------------------------------------------------------------ */

/* Returns the item of nics that is being read. */
static struct tutti_line_nics *nics_of(struct tutti_line_host *host)
{
    return &host->nics[host->nnics - 1];
}

static const struct tutti_line_nic_kind *find_nic_kind(struct tutti_word word)
{
    const struct tutti_line_nic_kind *kind = tutti_line_nic_kinds;

    while (kind->word != NULL && !tutti_word_is(word, kind->word))
        kind++;
    return kind->word != NULL ? kind : NULL;
}

static bool fits_nic_kind(struct tutti_word word)
{
    return find_nic_kind(word) != NULL;
}

static int read_nic_kind(struct tutti_line_reader *reader, struct tutti_word at,
                         struct tutti_line_host *host)
{
    (void)reader;
    nics_of(host)->kind = find_nic_kind(at);
    return TUTTI_OK;
}

/* Reads a speed such as "400G" or "2500M". */
static int read_speed(struct tutti_line_reader *reader, struct tutti_word word,
                      struct tutti_line_host *host)
{
    struct tutti_word number = word;
    char unit = word.at[word.length - 1];
    uint32_t value;

    number.length--;
    if (number.length == 0 || (unit != 'G' && unit != 'M'))
        return tutti_words_fail(&reader->words, word, "\"%.*s\"; expected a speed such as 400G or "
                                "2500M", (int)word.length, word.at);
    TUTTI_TRY(tutti_word_number(&reader->words, number, 1, unit == 'G' ? 10000 : 10000000, &value));
    nics_of(host)->mbits = (int64_t)value * (unit == 'G' ? 1000 : 1);
    return TUTTI_OK;
}

static int read_ports(struct tutti_line_reader *reader, struct tutti_word at,
                      struct tutti_line_host *host)
{
    (void)at;
    return tutti_line_number(reader, 1, MOST_PORTS, &nics_of(host)->ports);
}

static int read_rails(struct tutti_line_reader *reader, struct tutti_word at,
                      struct tutti_line_host *host)
{
    (void)reader;
    nics_of(host)->rails = tutti_word_is(at, "rails") ? TUTTI_LINE_YES : TUTTI_LINE_NO;
    return TUTTI_OK;
}

static int read_nic_generation(struct tutti_line_reader *reader, struct tutti_word at,
                               struct tutti_line_host *host)
{
    return tutti_line_read_generation(reader, at, &nics_of(host)->pci);
}

static int read_nic_lanes(struct tutti_line_reader *reader, struct tutti_word at,
                          struct tutti_line_host *host)
{
    return tutti_line_read_lanes(reader, at, &nics_of(host)->pci);
}

static int read_nic_gdr(struct tutti_line_reader *reader, struct tutti_word at,
                        struct tutti_line_host *host)
{
    (void)reader;
    nics_of(host)->gdr = tutti_word_is(at, "gdr") ? TUTTI_LINE_YES : TUTTI_LINE_NO;
    return TUTTI_OK;
}

static int read_near(struct tutti_line_reader *reader, struct tutti_word at,
                     struct tutti_line_host *host)
{
    (void)at;
    return tutti_line_read_place(reader, TUTTI_LINE_NEAR_GPU, "gpu", &nics_of(host)->place);
}

static int read_nics_on(struct tutti_line_reader *reader, struct tutti_word at,
                        struct tutti_line_host *host)
{
    (void)at;
    return tutti_line_read_place(reader, TUTTI_LINE_ON_CPU, "cpu", &nics_of(host)->place);
}

static const struct tutti_line_option nic_options[] = {
    {"a speed such as 400G", tutti_line_fits_count, 0, read_speed},
    {"ib, roce, ethernet, slingshot, efa", fits_nic_kind, 1, read_nic_kind},
    {"ports", NULL, 2, read_ports},
    {"rails", NULL, 3, read_rails},
    {"no-rails", NULL, 3, read_rails},
    {"gen5", tutti_line_fits_generation, 4, read_nic_generation},
    {"x16", tutti_line_fits_lanes, 5, read_nic_lanes},
    {"gdr", NULL, 6, read_nic_gdr},
    {"no-gdr", NULL, 6, read_nic_gdr},
    {"near", NULL, 7, read_near},
    {"on", NULL, 7, read_nics_on},
    {NULL, NULL, 0, NULL},
};

int tutti_line_read_nics(struct tutti_line_reader *reader, struct tutti_word at,
                         struct tutti_line_host *host)
{
    struct tutti_line_nics *nics = nics_of(host);

    (void)at;
    /* The defaults: the first kind of the table, one port, 100 Gbit/s. */
    nics->kind = tutti_line_nic_kinds;
    nics->ports = 1;
    nics->mbits = 100000;
    return tutti_line_options(reader, nic_options, host);
}
