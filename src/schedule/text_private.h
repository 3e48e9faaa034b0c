/* SPDX-License-Identifier: Apache-2.0
 * Shared parts of the reader of the text form; for text*.c only.
 */
#ifndef TUTTI_SCHEDULE_TEXT_PRIVATE_H
#define TUTTI_SCHEDULE_TEXT_PRIVATE_H

#include "base/result.h"
#include "base/words.h"
#include "schedule/build.h"
#include "schedule/text.h"
#include "schedule/text_fields.h"

/* The head of a rank. Lines before the first rank apply to all ranks; lines in a rank apply to that
 * rank. */
struct tutti_text_head {
    uint32_t chunks, scratch_chunks, window_chunks, needs, nsignals;
    uint32_t nchannels; /* 0: as many as the steps use */
    enum tutti_scratch_like scratch_like;
    bool lists_dependencies;
};

struct tutti_text_reader {
    struct tutti_words words;
    struct tutti_word word; /* the last word read; its length is 0 at the end of the line */

    struct tutti_ensemble *ensemble; /* nranks is 0 until it is known */
    bool has_collective;
    enum tutti_collective collective;
    uint32_t root;
    struct tutti_text_head common, own; /* `own`: head of the current rank */
    /* The builder of the current rank; its schedule is NULL between ranks. */
    struct tutti_build build;
    uint32_t ngiven;                    /* SIGNALs of the current rank so far */
    uint64_t touches;                   /* chunks that the steps of all ranks so far touch */
    /* Dependencies of the current rank, if it lists them, and their number per step. */
    uint32_t *deps, *dep_counts;
    uint32_t ndeps, dep_capacity;       /* of `deps` */
    uint32_t count_capacity;            /* of `dep_counts` */
    uint32_t *among, namong; /* of the current step; room for nranks, or NULL */
};

/* The most channels that a file for this many ranks may use; a step's channel is one byte. */
static inline uint32_t tutti_text_most_channels(uint32_t nranks)
{
    return TUTTI_TEXT_LANES_MAX / nranks < 256 ? TUTTI_TEXT_LANES_MAX / nranks : 256;
}

/* Record a failure, with file, line and column before the message, and return
 * TUTTI_ERR_ARGUMENT. */
#define tutti_text_refuse(reader, ...)                                                             \
    tutti_words_fail(&(reader)->words, (reader)->word, __VA_ARGS__)

/* text_words.c. Functions that return an int return TUTTI_ERR_ARGUMENT if they refuse the text. */

/* Read the next word of the line. */
void tutti_text_next(struct tutti_text_reader *reader);
/* True if the current word is `text`. */
bool tutti_text_is(const struct tutti_text_reader *reader, const char *text);
/* Read a number from `least` to `most`, of 64 bits or of 32. `what` describes the number in
 * messages. */
int tutti_text_number64(struct tutti_text_reader *reader, const char *what, uint64_t least,
                        uint64_t most, uint64_t *ret_value);
int tutti_text_number(struct tutti_text_reader *reader, const char *what, uint64_t least,
                      uint32_t most, uint32_t *ret_value);
/* Read a span: "input[2]" or "input[2+3]". */
int tutti_text_read_span(struct tutti_text_reader *reader, struct tutti_span *ret_span);
/* Refuse further words in the line. */
int tutti_text_expect_end(struct tutti_text_reader *reader);
/* The current word for "%.*s" in messages. */
#define TUTTI_TEXT_WORD(reader) TUTTI_WORD((reader)->word)

/* text_step.c: read the rest of a step's line and emit the step. */
int tutti_text_read_step(struct tutti_text_reader *reader, enum tutti_step_kind kind);

#endif
