/* SPDX-License-Identifier: Apache-2.0
 * Reads the words of the item `gpus` in a line, and derives the links between the GPUs. */
#include "topology/formats/line_words.h"

#include "base/result.h"

#include <stdlib.h>
#include <string.h>

/* ---- models and properties ------------------------------------------------------------------- */

static const struct tutti_line_gpu_model *find_model(struct tutti_word word)
{
    const struct tutti_line_gpu_model *model = tutti_line_gpu_models;

    while (model->word != NULL && !tutti_word_is(word, model->word))
        model++;
    return model->word != NULL ? model : NULL;
}

static bool fits_model(struct tutti_word word)
{
    return find_model(word) != NULL;
}

static int read_model(struct tutti_line_reader *reader, struct tutti_word at,
                      struct tutti_line_host *host)
{
    (void)reader;
    host->gpus.model = find_model(at);
    return TUTTI_OK;
}

static int read_sm(struct tutti_line_reader *reader, struct tutti_word at,
                   struct tutti_line_host *host)
{
    (void)at;
    host->gpus.model = &tutti_line_other_nvidia;
    return tutti_line_number(reader, 10, 999, &host->gpus.sm);
}

static int read_gcn(struct tutti_line_reader *reader, struct tutti_word at,
                    struct tutti_line_host *host)
{
    struct tutti_line_gpus *gpus = &host->gpus;
    struct tutti_word word = reader->word;

    (void)at;
    if (tutti_line_item_ends(reader) || word.length >= sizeof gpus->gcn)
        return tutti_line_expected(reader, "an architecture of AMD's, such as gfx90a");
    for (size_t i = 0; i < word.length; i++)
        if (strchr("abcdefghijklmnopqrstuvwxyz0123456789", word.at[i]) == NULL)
            return tutti_line_expected(reader, "an architecture of AMD's, such as gfx90a");
    gpus->model = &tutti_line_other_amd;
    memcpy(gpus->gcn, word.at, word.length);
    gpus->gcn[word.length] = '\0';
    tutti_line_take(reader);
    return TUTTI_OK;
}

static int read_generation(struct tutti_line_reader *reader, struct tutti_word at,
                           struct tutti_line_host *host)
{
    return tutti_line_read_generation(reader, at, &host->gpus.pci);
}

static int read_lanes(struct tutti_line_reader *reader, struct tutti_word at,
                      struct tutti_line_host *host)
{
    return tutti_line_read_lanes(reader, at, &host->gpus.pci);
}

static int read_gdr(struct tutti_line_reader *reader, struct tutti_word at,
                    struct tutti_line_host *host)
{
    (void)reader;
    host->gpus.gdr = tutti_word_is(at, "gdr") ? TUTTI_LINE_YES : TUTTI_LINE_NO;
    return TUTTI_OK;
}

static int read_on(struct tutti_line_reader *reader, struct tutti_word at,
                   struct tutti_line_host *host)
{
    (void)at;
    return tutti_line_read_place(reader, TUTTI_LINE_ON_CPU, "cpu", &host->gpus.place);
}

/* ---- links ----------------------------------------------------------------------------------- */

/* Reads the number of links after the name of a shape, if there is one. */
static int read_shape(struct tutti_line_reader *reader, struct tutti_word at,
                      struct tutti_line_host *host)
{
    struct tutti_line_gpus *gpus = &host->gpus;
    int shape = 0;

    while (!tutti_word_is(at, tutti_line_shape_name((enum tutti_line_shape)shape)))
        shape++;
    gpus->shape = (enum tutti_line_shape)shape;
    gpus->links = shape == TUTTI_LINE_NVSWITCH ? 0 : 1; /* 0: those of the model */
    if (shape == TUTTI_LINE_PCIE || shape == TUTTI_LINE_CUBE ||
        !tutti_line_fits_count(reader->word))
        return TUTTI_OK;
    return tutti_line_number(reader, 1, TUTTI_LINE_MOST_LINKS, &gpus->links);
}

static int pair_expected(const struct tutti_line_reader *reader, struct tutti_word word,
                         uint32_t count)
{
    return tutti_words_fail(&reader->words, word, "\"%.*s\"; expected two different GPUs from 0 to "
                            "%u and their links, at most %u, such as 0-1:4", (int)word.length,
                            word.at, count - 1, TUTTI_LINE_MOST_LINKS);
}

/* Takes digits off the beginning of a word, and then the character `behind`, unless `behind` is
 * zero. Returns false if the digits or the character are missing. */
static bool take_digits(struct tutti_word *word, char behind, uint32_t *ret_number)
{
    uint32_t number = 0;
    size_t used = 0;

    for (; used < word->length && used < 5 && strchr("0123456789", word->at[used]) != NULL; used++)
        number = number * 10 + (uint32_t)(word->at[used] - '0');
    if (used == 0 || (behind != '\0' && (used == word->length || word->at[used] != behind)))
        return false;
    used += behind != '\0';
    word->at += used;
    word->length -= used;
    *ret_number = number;
    return true;
}

/* Reads "0-1" or "0-1:4". */
static int read_pair(struct tutti_line_reader *reader, struct tutti_line_gpus *gpus)
{
    struct tutti_word word = reader->word;
    uint32_t a, b, links = 1, count = gpus->count;
    bool is_valid = take_digits(&word, '-', &a) && take_digits(&word, '\0', &b);

    if (is_valid && word.length > 0 && word.at[0] == ':') {
        word.at++;
        word.length--;
        is_valid = take_digits(&word, '\0', &links);
    }
    if (!is_valid || word.length > 0 || a == b || a >= count || b >= count || links == 0 ||
        links > TUTTI_LINE_MOST_LINKS)
        return pair_expected(reader, reader->word, count);
    if (gpus->between[a * count + b] != 0)
        return tutti_words_fail(&reader->words, reader->word, "GPUs %u and %u are joined again; "
                                "give all their links at once", a, b);
    gpus->between[a * count + b] = gpus->between[b * count + a] = (uint8_t)links;
    tutti_line_take(reader);
    return TUTTI_OK;
}

static int read_links(struct tutti_line_reader *reader, struct tutti_word at,
                      struct tutti_line_host *host)
{
    (void)at;
    host->gpus.shape = TUTTI_LINE_LIST;
    if (tutti_line_item_ends(reader) || !tutti_line_fits_count(reader->word))
        return tutti_line_expected(reader, "pairs of GPUs with their links, such as 0-1:4 1-2:2");
    while (tutti_line_fits_count(reader->word))
        TUTTI_TRY(read_pair(reader, &host->gpus));
    return TUTTI_OK;
}

static int read_hives(struct tutti_line_reader *reader, struct tutti_word at,
                      struct tutti_line_host *host)
{
    (void)at;
    return tutti_line_number(reader, 1, host->gpus.count, &host->gpus.hives);
}

static int read_cpu_links(struct tutti_line_reader *reader, struct tutti_word at,
                          struct tutti_line_host *host)
{
    (void)at;
    return tutti_line_number(reader, 1, TUTTI_LINE_MOST_LINKS, &host->gpus.cpu_links);
}

static int read_c2c(struct tutti_line_reader *reader, struct tutti_word at,
                    struct tutti_line_host *host)
{
    struct tutti_word word = reader->word;
    double bytes_per_s;

    (void)at;
    if (tutti_line_item_ends(reader))
        return tutti_line_expected(reader, "a rate such as 450GB/s");
    TUTTI_TRY(tutti_unit_read_rate(&reader->words, word, &bytes_per_s));
    if (bytes_per_s < 1e6 || bytes_per_s > 1e15)
        return tutti_line_expected(reader, "a rate from 1MB/s to 1000TB/s");
    host->gpus.c2c_mb = (int64_t)(bytes_per_s / 1e6);
    tutti_line_take(reader);
    return TUTTI_OK;
}

static int read_fabric(struct tutti_line_reader *reader, struct tutti_word at,
                       struct tutti_line_host *host)
{
    uint32_t fabric = 1;

    (void)at;
    if (tutti_line_fits_count(reader->word))
        TUTTI_TRY(tutti_line_number(reader, 1, INT32_MAX, &fabric));
    host->gpus.fabric = fabric;
    return TUTTI_OK;
}

/* ---- the whole item -------------------------------------------------------------------------- */

static const struct tutti_line_option options[] = {
    {"a model such as h100", fits_model, 0, read_model},
    {"sm", NULL, 0, read_sm},
    {"gcn", NULL, 0, read_gcn},
    {"nvswitch", NULL, 1, read_shape},
    {"mesh", NULL, 1, read_shape},
    {"ring", NULL, 1, read_shape},
    {"pairs", NULL, 1, read_shape},
    {"cube-mesh", NULL, 1, read_shape},
    {"links", NULL, 1, read_links},
    {"pcie", NULL, 1, read_shape},
    {"hives", NULL, 2, read_hives},
    {"cpu-links", NULL, 3, read_cpu_links},
    {"c2c", NULL, 4, read_c2c},
    {"fabric", NULL, 5, read_fabric},
    {"gen5", tutti_line_fits_generation, 6, read_generation},
    {"x16", tutti_line_fits_lanes, 7, read_lanes},
    {"gdr", NULL, 8, read_gdr},
    {"no-gdr", NULL, 8, read_gdr},
    {"on", NULL, 9, read_on},
    {NULL, NULL, 0, NULL},
};

/* Checks the words about links against each other, and sets the links between the GPUs. */
static int set_links(const struct tutti_line_reader *reader, struct tutti_word at,
                     struct tutti_line_gpus *gpus)
{
    const char *shape = tutti_line_shape_name(gpus->shape);
    bool has_hives = gpus->shape >= TUTTI_LINE_MESH && gpus->shape <= TUTTI_LINE_CUBE;

    if (gpus->hives != 0 && !has_hives)
        return tutti_words_fail(&reader->words, at, "hives need mesh, ring, pairs or cube-mesh, "
                                "not %s", shape);
    if (gpus->hives == 0)
        gpus->hives = 1;
    if (has_hives && !tutti_line_shape(gpus->shape, gpus->count, gpus->hives,
                                       (uint8_t)gpus->links, gpus->between))
        return tutti_words_fail(&reader->words, at, "%u GPUs cannot form %u hives of shape %s; "
                                "give all hives the same number of GPUs: 8 for cube-mesh, an even "
                                "number for pairs, at least 3 for ring, at least 2 for mesh",
                                gpus->count, gpus->hives, shape);
    if (gpus->fabric != 0 && gpus->shape != TUTTI_LINE_NVSWITCH)
        return tutti_words_fail(&reader->words, at, "a fabric is made of NVSwitches; say nvswitch, "
                                "too");
    if (gpus->shape != TUTTI_LINE_NVSWITCH)
        return TUTTI_OK;
    gpus->switch_links = gpus->links != 0 ? gpus->links : gpus->model->switch_links;
    if (tutti_line_is_amd(gpus))
        return tutti_words_fail(&reader->words, at, "AMD's GPUs have no NVSwitch; say mesh, ring "
                                "or links");
    if (gpus->switch_links == 0)
        return tutti_words_fail(&reader->words, at, "this GPU's usual links to NVSwitches are not "
                                "known; give their number, such as nvswitch 4");
    return TUTTI_OK;
}

int tutti_line_read_gpus(struct tutti_line_reader *reader, struct tutti_word at,
                         struct tutti_line_host *host)
{
    struct tutti_line_gpus *gpus = &host->gpus;

    gpus->model = tutti_line_gpu_models;
    gpus->between = calloc(gpus->count, gpus->count);
    if (gpus->between == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the links of %u GPUs", gpus->count);
    TUTTI_TRY(tutti_line_options(reader, options, host));
    if (gpus->cpu_links + gpus->c2c_mb > 0 && tutti_line_is_amd(gpus))
        return tutti_words_fail(&reader->words, at, "cpu-links and c2c are of NVIDIA's GPUs");
    return set_links(reader, at, gpus);
}
