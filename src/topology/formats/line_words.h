/* SPDX-License-Identifier: Apache-2.0
 * Reads the words of one item of a one-line machine description (line.h). Each item has a table of
 * the words that it accepts. Functions that return int fail with TUTTI_ERR_ARGUMENT if the text is
 * wrong; the message names the position. TUTTI_ERR_SYSTEM: out of memory.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_LINE_WORDS_H
#define TUTTI_TOPOLOGY_FORMATS_LINE_WORDS_H

#include "topology/formats/line_parts.h"
#include "topology/machine/machine_words.h"

/* A text and its current word. A comma is always a word of its own, even without a blank before
 * it. */
struct tutti_line_reader {
    struct tutti_words words;
    struct tutti_word word; /* the current word, not yet taken; empty at the end of the line */
};

/* Takes the current word, and reads the next word into reader->word. */
void tutti_line_take(struct tutti_line_reader *reader);
/* Returns true if the current word is a comma or the end of the line. */
static inline bool tutti_line_item_ends(const struct tutti_line_reader *reader)
{
    return reader->word.length == 0 || tutti_word_is(reader->word, ",");
}
/* Fails with TUTTI_ERR_ARGUMENT and a message that `what` was expected instead of the current
 * word. */
int tutti_line_expected(const struct tutti_line_reader *reader, const char *what);
/* Takes a number between `least` and `most`. Fails on any other word. */
int tutti_line_number(struct tutti_line_reader *reader, uint32_t least, uint32_t most,
                      uint32_t *ret_number);

/* A word that an item accepts, and a function that reads the words after it. An item may have at
 * most one word of each group. */
struct tutti_line_option {
    const char *word; /* as shown in error messages */
    bool (*fits)(struct tutti_word word); /* true if this option accepts `word`; NULL: the option
                                           * accepts only its own `word` */
    uint32_t group;                       /* number of the group, below 32 */
    /* Takes the words that belong to the option. `at` is the option's own word, which has already
     * been taken. */
    int (*read)(struct tutti_line_reader *reader, struct tutti_word at,
                struct tutti_line_host *host);
};

/* Takes all words up to the end of the item, and fails on a word that no option accepts. `options`
 * end with an entry whose word is NULL. */
int tutti_line_options(struct tutti_line_reader *reader, const struct tutti_line_option *options,
                       struct tutti_line_host *host);

/* The functions below test and read words that several items accept. */
bool tutti_line_fits_generation(struct tutti_word word); /* a PCI generation, as "gen4" */
bool tutti_line_fits_lanes(struct tutti_word word);      /* a number of PCI lanes, as "x16" */
bool tutti_line_fits_count(struct tutti_word word);      /* a word that begins with a digit */
/* Read the number in the word `at`, which has been taken already. */
int tutti_line_read_generation(const struct tutti_line_reader *reader, struct tutti_word at,
                               struct tutti_line_pci *pci);
int tutti_line_read_lanes(const struct tutti_line_reader *reader, struct tutti_word at,
                          struct tutti_line_pci *pci);
/* Takes the rest of "on cpu 0 1" or "near gpu 0 1" after its first word: `what` ("cpu" or "gpu"),
 * then at least one device number. */
int tutti_line_read_place(struct tutti_line_reader *reader, enum tutti_line_placing how,
                          const char *what, struct tutti_line_place *place);

/* Take and check the words of an item, which follow its count and its name. `at` is the word of the
 * count, for error messages. */
int tutti_line_read_cpus(struct tutti_line_reader *reader, struct tutti_word at,
                         struct tutti_line_host *host);
int tutti_line_read_switches(struct tutti_line_reader *reader, struct tutti_word at,
                             struct tutti_line_host *host);
int tutti_line_read_gpus(struct tutti_line_reader *reader, struct tutti_word at,
                         struct tutti_line_host *host);
int tutti_line_read_nics(struct tutti_line_reader *reader, struct tutti_word at,
                         struct tutti_line_host *host);

#endif
