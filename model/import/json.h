/* SPDX-License-Identifier: Apache-2.0
 * What the two halves of reading a JSON plan share: the plan and its gpus (json.c), ops
 * (json_ops.c). */
#ifndef TUTTI_IMPORT_JSON_H
#define TUTTI_IMPORT_JSON_H

#include "import/program.h"

#include <jansson.h>

enum tutti_json_channel_type { TUTTI_JSON_MEMORY, TUTTI_JSON_PORT, TUTTI_JSON_CHANNEL_TYPES };

/* One end of a channel: the signals that are sent here, and those that are received. */
struct tutti_json_channel {
    uint32_t out, in; /* indices of objects of the program */
};

struct tutti_json_gpu {
    json_t *json;
    struct tutti_json_channel *channels[TUTTI_JSON_CHANNEL_TYPES];
    uint32_t nchannels[TUTTI_JSON_CHANNEL_TYPES], capacity[TUTTI_JSON_CHANNEL_TYPES];
};

struct tutti_json_plan {
    struct tutti_import_program program;
    struct tutti_json_gpu *gpus; /* per rank */
    uint32_t refined;            /* number of chunks that each chunk of the plan is cut into */
    /* The current position, for messages; `word` is NULL outside of ops. */
    uint32_t rank;
    json_t *block;
    uint32_t step;
    const char *word;
};

/* Record a failure with its position as far as it is known: "plan.json: gpu 1, threadblock 2, op 3
 * (put): ...". */
void tutti_json_record(const struct tutti_json_plan *plan, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));
/* The same, and returns TUTTI_ERR_ARGUMENT; it is a macro for the same reason as tutti_fail. */
#define tutti_json_refuse(plan, ...) \
    tutti_recorded((tutti_json_record(plan, __VA_ARGS__), TUTTI_ERR_ARGUMENT))

/* Read a member that is a whole number from 0 to `most`. If it is missing: `fallback`, or an error
 * if `fallback` is negative. */
int tutti_json_number(const struct tutti_json_plan *plan, const json_t *json, const char *name,
                      double fallback, double most, double *ret_value);
int tutti_json_count(const struct tutti_json_plan *plan, const json_t *json, const char *name,
                     double fallback, uint32_t most, uint32_t *ret_value);
/* Read an array; if it is missing, *ret_array is NULL, which counts as empty. */
int tutti_json_array(const struct tutti_json_plan *plan, const json_t *json, const char *name,
                     json_t **ret_array);
/* Read item i of an array of whole numbers. */
int tutti_json_item(const struct tutti_json_plan *plan, const json_t *array, size_t i,
                    uint32_t most, uint32_t *ret_value);
/* Read a member that is "memory" or "port"; memory if it is missing. */
int tutti_json_channel_type(const struct tutti_json_plan *plan, const json_t *json,
                            const char *member, enum tutti_json_channel_type *ret_type);

/* A group of threadblocks divides each op's chunks among them. Raise *refined to a multiple of what
 * this op needs for that. */
int tutti_json_refine(struct tutti_json_plan *plan, const json_t *op, uint32_t *refined);

/* Append to the program what one op of the current block does. */
int tutti_json_read_op(struct tutti_json_plan *plan, const json_t *op);

#endif
