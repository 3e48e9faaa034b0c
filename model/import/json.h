/* SPDX-License-Identifier: Apache-2.0
 * Declares the types and functions that the two files which read JSON plans share. json.c reads the
 * plan and its gpus, and json_ops.c reads the ops. A "gpu" of a plan is a rank, and a "threadblock"
 * is a block of the program (program.h). */
#ifndef TUTTI_IMPORT_JSON_H
#define TUTTI_IMPORT_JSON_H

#include "import/program.h"

#include <jansson.h>

enum tutti_json_channel_type { TUTTI_JSON_MEMORY, TUTTI_JSON_PORT, TUTTI_JSON_CHANNEL_TYPES };

/* One end of a channel: the object of the signals that are sent here, and that of the signals that
 * are received here. */
struct tutti_json_channel {
    uint32_t out, in; /* indices of objects of the program */
};

struct tutti_json_gpu {
    json_t *json; /* its entry in the plan; borrowed */
    /* The channels of each type, in the order of the plan. */
    struct tutti_json_channel *channels[TUTTI_JSON_CHANNEL_TYPES];
    uint32_t nchannels[TUTTI_JSON_CHANNEL_TYPES], capacity[TUTTI_JSON_CHANNEL_TYPES];
};

struct tutti_json_plan {
    struct tutti_import_program program;
    struct tutti_json_gpu *gpus; /* per rank */
    uint32_t refined;            /* number of chunks into which each chunk of the plan is cut */
    /* The current position: the gpu, or UINT32_MAX outside of gpus; the threadblock; the index of
     * the op in it; the name of the op, or NULL outside of ops. */
    uint32_t rank;
    json_t *block;
    uint32_t step;
    const char *word;
};

/* Records a failure with its position as far as the position is known: "plan.json: gpu 1,
 * threadblock 2, op 3 (put): ...". */
void tutti_json_record(const struct tutti_json_plan *plan, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));
/* Records a failure in the same way and returns TUTTI_ERR_ARGUMENT. This is a macro for the same
 * reason as tutti_fail. */
#define tutti_json_refuse(plan, ...) \
    tutti_message_recorded((tutti_json_record(plan, __VA_ARGS__), TUTTI_ERR_ARGUMENT))

/* The functions below return TUTTI_ERR_ARGUMENT if a value is missing, of another type or out of
 * range. They record the failure. JSON values that they return belong to the plan.
 *
 * These two read a member that is a whole number from 0 to `most`. If the member is missing, the
 * value is `fallback`, or the plan is refused if `fallback` is TUTTI_JSON_REQUIRED. */
#define TUTTI_JSON_REQUIRED (-1.0)
int tutti_json_number(const struct tutti_json_plan *plan, const json_t *json, const char *name,
                      double fallback, double most, double *ret_value);
int tutti_json_count(const struct tutti_json_plan *plan, const json_t *json, const char *name,
                     double fallback, uint32_t most, uint32_t *ret_value);
/* Reads a member that is an array. If the member is missing, *ret_array is NULL, which jansson
 * treats as an empty array. */
int tutti_json_array(const struct tutti_json_plan *plan, const json_t *json, const char *name,
                     json_t **ret_array);
/* Reads item i of an array of whole numbers from 0 to `most`. */
int tutti_json_item(const struct tutti_json_plan *plan, const json_t *array, size_t i,
                    uint32_t most, uint32_t *ret_value);
/* Reads a member that is "memory" or "port". A missing member stands for memory. */
int tutti_json_channel_type(const struct tutti_json_plan *plan, const json_t *json,
                            const char *member, enum tutti_json_channel_type *ret_type);

/* The largest *refined of tutti_json_refine that a plan may have. */
#define TUTTI_JSON_REFINED_MAX 1024u

/* Raises *refined, the number of chunks into which each chunk of the plan is cut. A group of
 * threadblocks may divide the chunks of an op among its members. So *refined becomes a multiple
 * with which this op can be divided. If *refined is more than TUTTI_JSON_REFINED_MAX on return, the
 * caller must refuse the plan; then the number itself has no meaning. */
int tutti_json_refine(struct tutti_json_plan *plan, const json_t *op, uint32_t *refined);

/* Appends to the program the ops that do the same as one op of the current block of the plan. */
int tutti_json_read_op(struct tutti_json_plan *plan, const json_t *op);

#endif
