/* SPDX-License-Identifier: Apache-2.0
 * The fuzzer's entry without the fuzzer: every file of a corpus, and changes of them that are the
 * same in every run. For compilers that have no libFuzzer, and for each build's tests.
 *
 *     fuzz_topology_replay CHANGES FOLDER... */
#include "fuzz/fuzz.h"

#include <dirent.h>

#define FILES 256
#define FILE_BYTES 65536

struct text {
    char *bytes;
    size_t size;
};

/* ---- the corpus ------------------------------------------------------------------------------ */

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static struct text load(const char *folder, const char *name)
{
    struct text text = {.bytes = malloc(FILE_BYTES)};
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (file == NULL || text.bytes == NULL) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    text.size = fread(text.bytes, 1, FILE_BYTES, file);
    fclose(file);
    return text;
}

/* In the order of their names, so that every run is the same. Returns how many `texts` has now. */
static size_t load_folder(const char *folder, struct text texts[FILES], size_t before)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_visible, by_name);

    if (count <= 0 || before + (size_t)count > FILES) {
        fprintf(stderr, "%s has %d files; there should be 1 to %zu\n", folder, count,
                FILES - before);
        exit(1);
    }
    for (int i = 0; i < count; i++) {
        texts[before + (size_t)i] = load(folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return before + (size_t)count;
}

/* ---- changes --------------------------------------------------------------------------------- */

static uint64_t random_state = 0x9e3779b97f4a7c15;

static size_t draw(size_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return below == 0 ? 0 : (size_t)(random_state % below);
}

/* Put `size` bytes in the place of `gone` at `at`, as far as there is room. */
static void replace(struct text *text, size_t at, size_t gone, const char *bytes, size_t size)
{
    if (text->size - gone + size > FILE_BYTES)
        return;
    memmove(text->bytes + at + size, text->bytes + at + gone, text->size - at - gone);
    memcpy(text->bytes + at, bytes, size);
    text->size = text->size - gone + size;
}

static void change(struct text *text, const struct text *other)
{
    static const char *const words[] = {
        "<", "/>", "</cpu>", "<pci>", "<gpu dev=\"0\"/>", "\"", "\" class=\"0x030200", "&lt;",
        "&x;", "<!--", "-->", "<![CDATA[", "]]>", "9223372036854775807", "0x8000000000000000",
        "-1", "1e308", "fffffff:ff:ff.0", "\xff", "\xc3\xa4", "\xef\xbf\xbf", "<cache cpus=\"f\"/>",
        "&#10;", "",
    };
    const char *word = words[draw(sizeof words / sizeof words[0])];
    size_t at = draw(text->size + 1), gone = draw(text->size - at + 1), from, size;
    char copy[256];

    switch (draw(5)) {
    case 0: /* another byte */
        copy[0] = (char)draw(256);
        replace(text, at, gone > 0, copy, 1);
        break;
    case 1: /* a word */
        replace(text, at, gone < 16 ? gone : 0, word, strlen(word));
        break;
    case 2: /* a piece less */
        replace(text, at, gone < 64 ? gone : gone / 8, "", 0);
        break;
    case 3: /* a piece twice */
        size = gone < sizeof copy ? gone : sizeof copy;
        memcpy(copy, text->bytes + at, size);
        replace(text, draw(text->size + 1), 0, copy, size);
        break;
    default: /* a piece of another */
        from = draw(other->size + 1);
        size = draw(other->size - from + 1);
        replace(text, at, 0, other->bytes + from, size < 256 ? size : 256);
    }
}

/* In memory of its own size, so that a sanitizer sees every byte that is read too much. */
static void run(const struct text *text)
{
    uint8_t *bytes = malloc(text->size > 0 ? text->size : 1);

    if (bytes == NULL)
        exit(1);
    memcpy(bytes, text->bytes, text->size);
    LLVMFuzzerTestOneInput(bytes, text->size);
    free(bytes);
}

int main(int argc, char **argv)
{
    struct text texts[FILES], changed = {.bytes = malloc(FILE_BYTES)};
    long nchanges = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    size_t count = 0;

    if (argc < 3 || changed.bytes == NULL) {
        fprintf(stderr, "usage: %s CHANGES FOLDER...\n", argv[0]);
        return 2;
    }
    for (int i = 2; i < argc; i++)
        count = load_folder(argv[i], texts, count);
    for (size_t i = 0; i < count; i++)
        run(&texts[i]);
    for (long i = 0; i < nchanges; i++) {
        const struct text *text = &texts[draw(count)];

        memcpy(changed.bytes, text->bytes, text->size);
        changed.size = text->size;
        for (size_t times = 1 + draw(4); times > 0; times--)
            change(&changed, &texts[draw(count)]);
        run(&changed);
    }
    printf("%zu files and %ld changes of them\n", count, nchanges);
    for (size_t i = 0; i < count; i++)
        free(texts[i].bytes);
    free(changed.bytes);
    return 0;
}
