/* SPDX-License-Identifier: Apache-2.0
 * The words of the text form (text.h), and the fields that each kind of step has. The reader and
 * the writer of the form share them.
 */
#ifndef TUTTI_SCHEDULE_TEXT_FIELDS_H
#define TUTTI_SCHEDULE_TEXT_FIELDS_H

#include "schedule/step.h"

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
    TUTTI_TEXT_AMONG, /* the ranks that the step addresses instead of all */
    TUTTI_TEXT_AFTER, /* last: the steps that this step waits for, if the file lists them */
    TUTTI_TEXT_FIELD_COUNT
};

/* The word that begins a field: "from", "remote_dst", ... */
const char *tutti_text_field_name(enum tutti_text_field field);

/* Sets of bits 1 << field: the fields that a kind of step may have, and those that it must have. */
uint32_t tutti_text_fields(enum tutti_step_kind kind);
uint32_t tutti_text_required(enum tutti_step_kind kind);

/* The span of a field; NULL if the field is not a span. */
struct tutti_span *tutti_text_span(struct tutti_step *step, enum tutti_text_field field);

/* Names of the bits of schedule->needs, from the lowest: "window", "peer_read", "peer_store"; NULL
 * past the end. */
const char *tutti_text_need_name(unsigned index);

#endif
