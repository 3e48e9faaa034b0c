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

/* The number of like hosts, and of the racks that each have so many hosts. */
struct counts {
    uint32_t racks; /* 0: the hosts are in no rack */
    uint32_t hosts;
};

/* Takes a count and a word such as "hosts:" or "host:", after which a blank is optional. If the
 * words are others, *ret_is_there is false, and nothing is taken. `word` is the word in the plural
 * without its colon, and `after` is the colon, or "". */
static int take_count(struct tutti_line_reader *reader, const char *word, const char *after,
                      uint32_t *ret_count, bool *ret_is_there)
{
    struct tutti_line_reader ahead = *reader;
    size_t length = strlen(word);
    bool is_many;

    tutti_line_take(&ahead);
    is_many = starts_with(ahead.word, word);
    length -= is_many ? 0 : 1;
    *ret_is_there = is_many || (ahead.word.length >= length &&
                                memcmp(ahead.word.at, word, length) == 0);
    if (!*ret_is_there)
        return TUTTI_OK;
    TUTTI_TRY(tutti_word_number(&reader->words, reader->word, 1, TUTTI_LINE_ALL_HOSTS, ret_count));
    if (strncmp(ahead.word.at + length, after, strlen(after)) != 0)
        return tutti_line_expected(&ahead, "\"hosts:\", and what each of them has");
    ahead.words.at = ahead.word.at + length + strlen(after);
    tutti_line_take(&ahead);
    *reader = ahead;
    return TUTTI_OK;
}

/* Reads "2 hosts:" or "32 racks of 18 hosts:", or nothing. */
static int read_counts(struct tutti_line_reader *reader, struct counts *ret_counts)
{
    bool has_racks, has_hosts;

    *ret_counts = (struct counts){.racks = 0, .hosts = 1};
    TUTTI_TRY(take_count(reader, "racks", "", &ret_counts->racks, &has_racks));
    if (has_racks) {
        if (!tutti_word_is(reader->word, "of"))
            return tutti_line_expected(reader, "\"of\" and the hosts of a rack, such as \"32 racks "
                                       "of 18 hosts: 4 gpus gb200 nvswitch, 4 nics 400G\"");
        tutti_line_take(reader);
    }
    TUTTI_TRY(take_count(reader, "hosts", ":", &ret_counts->hosts, &has_hosts));
    if (has_racks && !has_hosts)
        return tutti_line_expected(reader, "\"hosts:\", and what each of them has");
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
    uint32_t hosts, racks; /* their numbers */
    uint32_t ranks;        /* GPUs of the whole cluster so far */
};

/* Builds `hosts` hosts that stand for `copies` times as many. */
static int add_part(struct cluster *cluster, const struct tutti_line_host *host, uint32_t hosts,
                    uint32_t copies)
{
    struct tutti_inventory *inventory = cluster->inventory;
    uint32_t before = inventory->count;

    for (uint32_t i = 0; i < hosts; i++) {
        TUTTI_TRY(tutti_line_build(inventory, host, cluster->hosts++, cluster->ranks));
        cluster->ranks += host->gpus.count;
    }
    cluster->ranks += (copies - 1) * hosts * host->gpus.count;
    for (uint32_t i = before; i < inventory->count && copies > 1; i++)
        if (inventory->devices[i].kind == TUTTI_DEVICE_CPU)
            tutti_device_set_number(inventory, i, TUTTI_PROPERTY_COPIES, TUTTI_SOURCE_FILE, copies);
    return TUTTI_OK;
}

/* Builds like hosts. Of many hosts it builds two, of which the second one stands for the others.
 * Hosts of a fabric are a single part of the cluster, so each of them is built. */
static int add_like_hosts(struct cluster *cluster, const struct tutti_line_host *host,
                          uint32_t hosts)
{
    uint32_t built = hosts > TUTTI_LINE_MOST_HOSTS && host->gpus.fabric == 0 ? 2 : hosts;

    for (uint32_t i = 0; i < built; i++)
        TUTTI_TRY(add_part(cluster, host, 1, i + 1 == built ? hosts - i : 1));
    return TUTTI_OK;
}

/* Builds like racks, at most two. The hosts of a rack share an NVSwitch, whose number no line can
 * give. */
static int add_like_racks(struct cluster *cluster, struct tutti_line_host *host, uint32_t racks,
                          uint32_t hosts)
{
    for (uint32_t i = 0; i < racks && i < 2; i++) {
        host->gpus.fabric = (int64_t)UINT32_MAX + ++cluster->racks;
        TUTTI_TRY(add_part(cluster, host, hosts, i == 1 ? racks - 1 : 1));
    }
    return TUTTI_OK;
}

/* Reads a line, and builds its hosts. */
static int add_hosts(struct tutti_line_reader *reader, struct cluster *cluster)
{
    struct tutti_line_host host = {0};
    struct tutti_word at = reader->word;
    struct counts counts;
    int rc;

    TUTTI_TRY(read_counts(reader, &counts));
    TUTTI_TRY_OR(leave, rc, read_host(reader, &host));
    if (counts.racks > 0 && (host.gpus.count == 0 || host.gpus.shape != TUTTI_LINE_NVSWITCH)) {
        rc = tutti_words_fail(&reader->words, at, "the gpus of a rack share an NVSwitch; say "
                              "nvswitch, or give hosts without racks");
        goto leave;
    }
    rc = counts.racks > 0 ? add_like_racks(cluster, &host, counts.racks, counts.hosts)
                          : add_like_hosts(cluster, &host, counts.hosts);
    if (rc == TUTTI_ERR_ARGUMENT)
        rc = tutti_words_fail(&reader->words, at, "%u of these hosts are too many: an inventory "
                              "holds %u devices, which is full at host %u of the line",
                              counts.hosts, TUTTI_INVENTORY_DEVICES, cluster->hosts);

leave:
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
