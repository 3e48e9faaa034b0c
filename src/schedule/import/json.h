/* SPDX-License-Identifier: Apache-2.0
 * What the two halves of reading a JSON plan share: the plan and its gpus (json.c), ops
 * (json_ops.c). */
#ifndef TUTTI_SCHEDULE_IMPORT_JSON_H
#define TUTTI_SCHEDULE_IMPORT_JSON_H

#include "schedule/import/program.h"

#include <jansson.h>

enum tutti_json_channel_type { TUTTI_JSON_MEMORY, TUTTI_JSON_PORT, TUTTI_JSON_CHANNEL_TYPES };

/* One end of a channel: the signals that leave here, and those that come. */
struct tutti_json_channel {
    uint32_t out, in; /* objects of the program */
};

struct tutti_json_gpu {
    json_t *json;
    struct tutti_json_channel *channels[TUTTI_JSON_CHANNEL_TYPES];
    uint32_t nchannels[TUTTI_JSON_CHANNEL_TYPES];
};

struct tutti_json_plan {
    struct tutti_import_program program;
    struct tutti_json_gpu *gpus; /* per rank */
    uint32_t refined;            /* chunks that each chunk of the plan is cut into */
    /* At hand. */
    uint32_t rank;
    json_t *block;
    uint32_t step;
    const char *word;
};

/* "plan.json: gpu 1, threadblock 2, op 3 (put): ...", as far as these are known. */
void tutti_json_record(const struct tutti_json_plan *plan, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));
/* The same, and TUTTI_ERR_ARGUMENT; a macro for the reason that tutti_fail is one. */
#define tutti_json_refuse(plan, ...) \
    tutti_recorded((tutti_json_record(plan, __VA_ARGS__), TUTTI_ERR_ARGUMENT))

/* A member that is a whole number; `fallback` where it is missing, or an error if that is < 0. */
int tutti_json_number(const struct tutti_json_plan *plan, const json_t *json, const char *name,
                      double fallback, double most, double *ret_value);
int tutti_json_count(const struct tutti_json_plan *plan, const json_t *json, const char *name,
                     double fallback, uint32_t most, uint32_t *ret_value);
/* An array, which may be missing (then it is empty). */
int tutti_json_array(const struct tutti_json_plan *plan, const json_t *json, const char *name,
                     json_t **ret_array);
/* The i-th of an array of whole numbers. */
int tutti_json_item(const struct tutti_json_plan *plan, const json_t *array, size_t i,
                    uint32_t most, uint32_t *ret_value);
/* "memory" or "port"; `member` is missing: memory. */
int tutti_json_channel_type(const struct tutti_json_plan *plan, const json_t *json,
                            const char *member, enum tutti_json_channel_type *ret_type);

/* The part of each op's chunks that a group of threadblocks divides among them: *refined becomes a
 * multiple of what this op needs. */
int tutti_json_refine(struct tutti_json_plan *plan, const json_t *op, uint32_t *refined);

/* Append what one op of the block at hand does. */
int tutti_json_read_op(struct tutti_json_plan *plan, const json_t *op);

#endif
