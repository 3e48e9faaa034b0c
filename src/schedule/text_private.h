/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the text form share; inside text*.c only. */
#ifndef TUTTI_SCHEDULE_TEXT_PRIVATE_H
#define TUTTI_SCHEDULE_TEXT_PRIVATE_H

#include "base/result.h"
#include "schedule/build.h"
#include "schedule/text.h"

/* The fields that a step's line may have, in the order in which they are written. */
enum tutti_text_field {
    TUTTI_TEXT_FROM,
    TUTTI_TEXT_TO,
    TUTTI_TEXT_SRC,
    TUTTI_TEXT_DST,
    TUTTI_TEXT_REMOTE,
    TUTTI_TEXT_ALSO,
    TUTTI_TEXT_REMOTE_DST,
    TUTTI_TEXT_SIGNAL,
    TUTTI_TEXT_CHANNEL,
    TUTTI_TEXT_QUEUE,
    TUTTI_TEXT_AMONG, /* the ranks that a step goes by instead of all */
    TUTTI_TEXT_AFTER, /* last: the steps waited for, where they are listed */
    TUTTI_TEXT_FIELD_COUNT
};

const char *tutti_text_field_name(enum tutti_text_field field);

/* Bits 1 << field: those that a kind of step has, and those of them that it must have. */
uint32_t tutti_text_fields(enum tutti_step_kind kind);
uint32_t tutti_text_required(enum tutti_step_kind kind);

/* The span of a field, NULL of one that is none. */
struct tutti_span *tutti_text_span(struct tutti_step *step, enum tutti_text_field field);

/* "window", "peer_read", "peer_store": bits of schedule->needs from the lowest; NULL past the end.
 */
const char *tutti_text_need_name(unsigned index);

/* ---- reading ------------------------------------------------------------------------------- */

/* What holds for a rank: said before the first rank, or by itself. */
struct tutti_text_head {
    uint32_t chunks, scratch_chunks, window_chunks, needs, nsignals;
    uint32_t nchannels; /* 0: as many as the steps use */
    enum tutti_scratch_like scratch_like;
    bool lists_dependencies;
};

struct tutti_text_word {
    const char *text;
    size_t length;
    uint32_t column;
};

struct tutti_text_reader {
    const char *name, *line_start, *at; /* `at`: in the line, what comes after `word` */
    uint32_t line;
    struct tutti_text_word word; /* the last one read; of length 0 at the end of the line */

    struct tutti_ensemble *ensemble; /* nranks is 0 before it is known */
    bool has_collective;
    enum tutti_collective collective;
    uint32_t root;
    struct tutti_text_head common, own; /* `own`: of the rank that is being read */
    struct tutti_build build;           /* of that rank; its schedule is NULL between ranks */
    uint32_t ngiven;                    /* signals of that rank */
    uint64_t touches;                   /* chunks that all steps touch */
    /* Dependencies of the rank that lists them, and how many each step has. */
    uint32_t *deps, *dep_counts;
    uint32_t ndeps, dep_capacity, count_capacity;
    uint32_t *among, namong; /* of the step that is being read; room for nranks, or NULL */
};

static inline uint32_t tutti_text_most_channels(uint32_t nranks)
{
    return TUTTI_TEXT_LANES_MAX / nranks < 256 ? TUTTI_TEXT_LANES_MAX / nranks : 256;
}

/* text_words.c */
void tutti_text_record(const struct tutti_text_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));
/* The same, and TUTTI_ERR_ARGUMENT; a macro for the reason that tutti_fail is one. */
#define tutti_text_refuse(reader, ...) \
    tutti_recorded((tutti_text_record(reader, __VA_ARGS__), TUTTI_ERR_ARGUMENT))
void tutti_text_next(struct tutti_text_reader *reader);
bool tutti_text_is(const struct tutti_text_reader *reader, const char *text);
int tutti_text_size(struct tutti_text_reader *reader, const char *what, uint64_t least,
                    uint64_t most, uint64_t *ret_value);
int tutti_text_number(struct tutti_text_reader *reader, const char *what, uint64_t least,
                      uint32_t most, uint32_t *ret_value);
/* "input[2]" or "input[2+3]". */
int tutti_text_read_span(struct tutti_text_reader *reader, struct tutti_span *ret_span);
int tutti_text_end(struct tutti_text_reader *reader);
/* The word as messages show it: for "%.*s". */
#define TUTTI_TEXT_WORD(reader)                                                                    \
    (int)((reader)->word.length < 40 ? (reader)->word.length : 40), (reader)->word.text

/* text_step.c: the rest of a step's line. */
int tutti_text_read_step(struct tutti_text_reader *reader, enum tutti_step_kind kind);

#endif
