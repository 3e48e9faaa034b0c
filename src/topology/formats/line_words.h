/* SPDX-License-Identifier: Apache-2.0
 * The words of an item: each item has a table of those that it takes.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_LINE_WORDS_H
#define TUTTI_TOPOLOGY_FORMATS_LINE_WORDS_H

#include "topology/formats/line_parts.h"
#include "topology/machine/machine_words.h"

/* A text at a word. A comma is a word of its own, and so is what stands before it. */
struct tutti_line_reader {
    struct tutti_words words;
    struct tutti_word word; /* not yet taken; empty at the end of the line */
};

/* Take the word: the next one is `word` then. */
void tutti_line_take(struct tutti_line_reader *reader);
static inline bool tutti_line_item_ends(const struct tutti_line_reader *reader)
{
    return reader->word.length == 0 || tutti_word_is(reader->word, ",");
}
/* Say what was expected instead of the word. */
int tutti_line_expected(const struct tutti_line_reader *reader, const char *what);
/* Take a number. */
int tutti_line_number(struct tutti_line_reader *reader, uint32_t least, uint32_t most,
                      uint32_t *ret_number);

/* One word that an item takes, with what follows it. Words of one group exclude each other. */
struct tutti_line_option {
    const char *word; /* as errors list it */
    bool (*fits)(struct tutti_word word); /* NULL: it is just that word */
    uint32_t group;                       /* below 32 */
    /* Take the rest: `at` is the word, taken already. */
    int (*read)(struct tutti_line_reader *reader, struct tutti_word at,
                struct tutti_line_host *host);
};

/* Take words up to the end of the item. options end with a NULL word. */
int tutti_line_options(struct tutti_line_reader *reader, const struct tutti_line_option *options,
                       struct tutti_line_host *host);

/* Words of several items. */
bool tutti_line_fits_generation(struct tutti_word word); /* gen4 */
bool tutti_line_fits_lanes(struct tutti_word word);      /* x16 */
bool tutti_line_fits_count(struct tutti_word word);      /* it begins with a digit */
int tutti_line_read_generation(const struct tutti_line_reader *reader, struct tutti_word at,
                               struct tutti_line_pci *pci);
int tutti_line_read_lanes(const struct tutti_line_reader *reader, struct tutti_word at,
                          struct tutti_line_pci *pci);
/* Numbers of devices, at least one, after "on cpu" or "near gpu": `what` is the second word. */
int tutti_line_read_place(struct tutti_line_reader *reader, enum tutti_line_placing how,
                          const char *what, struct tutti_line_place *place);

/* Take the words of an item, after its count, at which `at` stands, and its name; check them. */
int tutti_line_read_cpus(struct tutti_line_reader *reader, struct tutti_word at,
                         struct tutti_line_host *host);
int tutti_line_read_switches(struct tutti_line_reader *reader, struct tutti_word at,
                             struct tutti_line_host *host);
int tutti_line_read_gpus(struct tutti_line_reader *reader, struct tutti_word at,
                         struct tutti_line_host *host);
int tutti_line_read_nics(struct tutti_line_reader *reader, struct tutti_word at,
                         struct tutti_line_host *host);

#endif
