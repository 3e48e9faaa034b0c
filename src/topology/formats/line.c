/* SPDX-License-Identifier: Apache-2.0
 * Reads the text that line.h defines: its hosts, each with its items. Hosts are built as they are
 * read, so a line with too many hosts stops as soon as the inventory is full. */
#include "topology/formats/line.h"

#include "base/result.h"
#include "topology/formats/line_words.h"

#include <stdlib.h>
#include <string.h>

#define EXAMPLE "such as \"8 gpus h100 nvswitch, 8 nics 400G, 2 cpus\""
/* Error messages show at most this many characters of a bad word. */
#define SHOWN 40

/* ---- words ----------------------------------------------------------------------------------- */

void tutti_line_take(struct tutti_line_reader *reader)
{
    struct tutti_word *word = &reader->word;
    size_t length;

    tutti_words_next(&reader->words, word);
    for (length = 0; length < word->length && word->at[length] != ','; length++)
        ;
    if (length == 0 && word->length > 0)
        length = 1;
    word->length = length;
    reader->words.at = word->at + length;
}

int tutti_line_expected(const struct tutti_line_reader *reader, const char *what)
{
    struct tutti_word word = reader->word;

    if (tutti_line_item_ends(reader))
        return tutti_words_fail(&reader->words, word, "the %s ends here; expected %s",
                                word.length == 0 ? "line" : "item", what);
    return tutti_words_fail(&reader->words, word, "\"%.*s\"; expected %s",
                            (int)(word.length < SHOWN ? word.length : SHOWN), word.at, what);
}

int tutti_line_number(struct tutti_line_reader *reader, uint32_t least, uint32_t most,
                      uint32_t *ret_number)
{
    char what[64];

    snprintf(what, sizeof what, "a number from %u to %u", least, most);
    if (tutti_line_item_ends(reader))
        return tutti_line_expected(reader, what);
    TUTTI_TRY(tutti_word_number(&reader->words, reader->word, least, most, ret_number));
    tutti_line_take(reader);
    return TUTTI_OK;
}

/* ---- items ----------------------------------------------------------------------------------- */

/* A kind of item. */
struct item {
    const char *one, *many; /* names */
    uint32_t most;          /* largest count */
    /* Reads the words after the name. */
    int (*read)(struct tutti_line_reader *reader, struct tutti_word at,
                struct tutti_line_host *host);
};

enum { ITEM_CPUS, ITEM_SWITCHES, ITEM_GPUS, ITEM_NICS, ITEMS };

static const struct item items[ITEMS] = {
    [ITEM_CPUS] = {"cpu", "cpus", TUTTI_LINE_MOST_SOCKETS, tutti_line_read_cpus},
    [ITEM_SWITCHES] = {"switch", "switches", TUTTI_LINE_MOST_SWITCHES, tutti_line_read_switches},
    [ITEM_GPUS] = {"gpu", "gpus", TUTTI_LINE_MOST_GPUS, tutti_line_read_gpus},
    [ITEM_NICS] = {"nic", "nics", TUTTI_LINE_MOST_NICS, tutti_line_read_nics},
};

/* Returns the place for the count of an item; NULL: the host has the item already, or too many
 * items of nics. Begins a new item of nics. */
static uint32_t *count_of(struct tutti_line_host *host, int item)
{
    uint32_t *count = item == ITEM_CPUS       ? &host->cpus.sockets
                      : item == ITEM_SWITCHES ? &host->switches.count
                                              : &host->gpus.count;

    if (item == ITEM_NICS)
        return host->nnics < TUTTI_LINE_MOST_NIC_ITEMS ? &host->nics[host->nnics++].count : NULL;
    return *count == 0 ? count : NULL;
}

/* Reads an item: its count, its name and its words. */
static int read_item(struct tutti_line_reader *reader, struct tutti_line_host *host)
{
    struct tutti_word number = reader->word;
    uint32_t *count;
    int item = 0;

    if (tutti_line_item_ends(reader) || strchr("0123456789", *number.at) == NULL)
        return tutti_line_expected(reader, "a count and a kind of device, " EXAMPLE);
    tutti_line_take(reader);
    while (item < ITEMS && !tutti_word_is(reader->word, items[item].one) &&
           !tutti_word_is(reader->word, items[item].many))
        item++;
    if (item == ITEMS)
        return tutti_line_expected(reader, "cpus, switches, gpus or nics");
    count = count_of(host, item);
    if (count == NULL && item == ITEM_NICS)
        return tutti_words_fail(&reader->words, reader->word, "a host has at most %u items of nics",
                                TUTTI_LINE_MOST_NIC_ITEMS);
    if (count == NULL)
        return tutti_words_fail(&reader->words, reader->word, "\"%s\" again; a host has them once",
                                items[item].many);
    TUTTI_TRY(tutti_word_number(&reader->words, number, 1, items[item].most, count));
    tutti_line_take(reader);
    return items[item].read(reader, number, host);
}

/* Takes a comma, after which the text may continue in the next line. */
static void take_comma(struct tutti_line_reader *reader)
{
    tutti_line_take(reader);
    while (reader->word.length == 0 && tutti_words_next_line(&reader->words))
        tutti_line_take(reader);
}

/* ---- hosts ----------------------------------------------------------------------------------- */

/* Returns true if a word begins with a text. */
static bool starts_with(struct tutti_word word, const char *text)
{
    return word.length >= strlen(text) && memcmp(word.at, text, strlen(text)) == 0;
}

/* Reads "2 hosts:", or nothing; a blank after the colon is optional. */
static int read_host_count(struct tutti_line_reader *reader, uint32_t *ret_hosts)
{
    struct tutti_line_reader ahead = *reader;
    bool is_many;

    *ret_hosts = 1;
    tutti_line_take(&ahead);
    is_many = starts_with(ahead.word, "hosts");
    if (!is_many && !starts_with(ahead.word, "host"))
        return TUTTI_OK;
    TUTTI_TRY(tutti_word_number(&reader->words, reader->word, 1, UINT32_MAX, ret_hosts));
    if (!starts_with(ahead.word, is_many ? "hosts:" : "host:"))
        return tutti_line_expected(&ahead, "\"hosts:\", and what each of them has");
    ahead.words.at = ahead.word.at + strlen(is_many ? "hosts:" : "host:");
    tutti_line_take(&ahead);
    *reader = ahead;
    return TUTTI_OK;
}

/* Returns true if all numbers of a place are below a limit; else *ret_bad is the first one that is
 * not. */
static bool are_below(const struct tutti_line_place *place, uint32_t limit, uint32_t *ret_bad)
{
    for (uint32_t i = 0; i < place->count; i++)
        if (place->number[i] >= limit) {
            *ret_bad = place->number[i];
            return false;
        }
    return true;
}

/* Checks that the NUMA nodes or GPUs that a place names exist. `at` is a position for the error. */
static int check_place(const struct tutti_line_reader *reader, struct tutti_word at,
                       const struct tutti_line_host *host, const struct tutti_line_place *place)
{
    bool is_gpu = place->how == TUTTI_LINE_NEAR_GPU;
    uint32_t limit = is_gpu ? host->gpus.count : host->cpus.sockets * host->cpus.nodes, bad;

    if (place->how == TUTTI_LINE_DEALT || are_below(place, limit, &bad))
        return TUTTI_OK;
    if (limit == 0)
        return tutti_words_fail(&reader->words, at, "near gpu %u, but this host has no gpus", bad);
    return tutti_words_fail(&reader->words, at, "%s %u, but this host has %u, from 0 to %u",
                            is_gpu ? "near gpu" : "on cpu", bad, limit, limit - 1);
}

/* Completes and checks the parts that depend on several items of the host. */
static int check_host(const struct tutti_line_reader *reader, struct tutti_word at,
                      struct tutti_line_host *host)
{
    struct tutti_line_cpus *cpus = &host->cpus;

    if (cpus->sockets == 0)
        *cpus = (struct tutti_line_cpus){
            .model = tutti_line_cpu_models, .sockets = 1, .threads = 1, .nodes = 1,
            .cores = tutti_line_cpu_models[0].cores,
        };
    TUTTI_TRY(check_place(reader, at, host, &host->gpus.place));
    for (uint32_t i = 0; i < host->nnics; i++)
        TUTTI_TRY(check_place(reader, at, host, &host->nics[i].place));
    return TUTTI_OK;
}

/* Reads the items of one host, or of several equal hosts, to the end of the line. */
static int read_host(struct tutti_line_reader *reader, struct tutti_line_host *host)
{
    struct tutti_word at = reader->word;

    TUTTI_TRY(read_item(reader, host));
    while (tutti_word_is(reader->word, ",")) {
        take_comma(reader);
        TUTTI_TRY(read_item(reader, host));
    }
    tutti_assert(reader->word.length == 0);
    return check_host(reader, at, host);
}

/* The hosts that were built so far. */
struct cluster {
    struct tutti_inventory *inventory;
    uint32_t hosts, ranks; /* their number, and that of their GPUs */
};

/* Reads a line, and builds its hosts. */
static int add_hosts(struct tutti_line_reader *reader, struct cluster *cluster)
{
    struct tutti_line_host host = {0};
    struct tutti_word at = reader->word;
    uint32_t hosts;
    int rc;

    TUTTI_TRY(read_host_count(reader, &hosts));
    rc = read_host(reader, &host);
    for (uint32_t i = 0; i < hosts && rc == TUTTI_OK; i++) {
        rc = tutti_line_build(cluster->inventory, &host, cluster->hosts++, cluster->ranks);
        cluster->ranks += host.gpus.count;
        if (rc == TUTTI_ERR_ARGUMENT)
            rc = tutti_words_fail(&reader->words, at, "%u of these hosts are too many: an "
                                  "inventory holds %u devices, which is full at host %u of the "
                                  "line", hosts, TUTTI_INVENTORY_DEVICES, cluster->hosts);
    }
    tutti_line_host_fini(&host);
    return rc;
}

int tutti_line_read(const char *name, const char *text, struct tutti_inventory **ret_inventory)
{
    struct tutti_line_reader reader = {
        .words = tutti_words_of(name, text),
    };
    struct cluster cluster = {0};
    int rc;

    TUTTI_TRY(tutti_inventory_create(&cluster.inventory));
    do {
        tutti_line_take(&reader);
        if (reader.word.length > 0)
            TUTTI_TRY_OR(drop_inventory, rc, add_hosts(&reader, &cluster));
    } while (tutti_words_next_line(&reader.words));
    if (cluster.hosts == 0) {
        rc = tutti_words_fail(&reader.words, reader.word, "the text describes nothing; give a line "
                              EXAMPLE);
        goto drop_inventory;
    }
    if (cluster.hosts > 1)
        tutti_line_hash_hosts(cluster.inventory);
    *ret_inventory = cluster.inventory;
    return TUTTI_OK;

drop_inventory:
    tutti_inventory_destroy(cluster.inventory);
    return rc;
}
