/* SPDX-License-Identifier: Apache-2.0
 * The words of an item: each item has a table of the words that it accepts.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_LINE_WORDS_H
#define TUTTI_TOPOLOGY_FORMATS_LINE_WORDS_H

#include "topology/formats/line_parts.h"
#include "topology/machine/machine_words.h"

/* A text and its current word. A comma is a word by itself, also without a blank before it. */
struct tutti_line_reader {
    struct tutti_words words;
    struct tutti_word word; /* not yet taken; empty at the end of the line */
};

/* Takes the word and reads the next one into `word`. */
void tutti_line_take(struct tutti_line_reader *reader);
static inline bool tutti_line_item_ends(const struct tutti_line_reader *reader)
{
    return reader->word.length == 0 || tutti_word_is(reader->word, ",");
}
/* Fails, and says what was expected instead of the word. */
int tutti_line_expected(const struct tutti_line_reader *reader, const char *what);
/* Takes a number. */
int tutti_line_number(struct tutti_line_reader *reader, uint32_t least, uint32_t most,
                      uint32_t *ret_number);

/* A word that an item accepts, and what follows it. Words of one group exclude each other. */
struct tutti_line_option {
    const char *word; /* as shown in error messages */
    bool (*fits)(struct tutti_word word); /* NULL: exactly `word` */
    uint32_t group;                       /* below 32 */
    /* Takes what follows the word; `at` is the word, which has been taken already. */
    int (*read)(struct tutti_line_reader *reader, struct tutti_word at,
                struct tutti_line_host *host);
};

/* Takes words up to the end of the item. `options` end with an entry whose word is NULL. */
int tutti_line_options(struct tutti_line_reader *reader, const struct tutti_line_option *options,
                       struct tutti_line_host *host);

/* Words that several items accept. */
bool tutti_line_fits_generation(struct tutti_word word); /* gen4 */
bool tutti_line_fits_lanes(struct tutti_word word);      /* x16 */
bool tutti_line_fits_count(struct tutti_word word);      /* begins with a digit */
int tutti_line_read_generation(const struct tutti_line_reader *reader, struct tutti_word at,
                               struct tutti_line_pci *pci);
int tutti_line_read_lanes(const struct tutti_line_reader *reader, struct tutti_word at,
                          struct tutti_line_pci *pci);
/* Takes at least one device number, after "on cpu" or "near gpu"; `what` is the second of these
 * words. */
int tutti_line_read_place(struct tutti_line_reader *reader, enum tutti_line_placing how,
                          const char *what, struct tutti_line_place *place);

/* Take the words of an item, which follow its count and its name, and check them. `at` is the
 * count, for messages. */
int tutti_line_read_cpus(struct tutti_line_reader *reader, struct tutti_word at,
                         struct tutti_line_host *host);
int tutti_line_read_switches(struct tutti_line_reader *reader, struct tutti_word at,
                             struct tutti_line_host *host);
int tutti_line_read_gpus(struct tutti_line_reader *reader, struct tutti_word at,
                         struct tutti_line_host *host);
int tutti_line_read_nics(struct tutti_line_reader *reader, struct tutti_word at,
                         struct tutti_line_host *host);

#endif
