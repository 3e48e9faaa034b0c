/* SPDX-License-Identifier: Apache-2.0
 * Rules are lines of text that name the algorithms of calls. docs/tuning.md describes the format
 * for users:
 *
 *   # collective [bytes] [ranks ...] [nodes ...] algorithm [option=value ...]
 *   allreduce 0-64K ranks 2-16 recursive_doubling
 *   allreduce 64K-inf hybrid segments=8
 *   on MACHINE                   the lines below are for this machine only ("on any": for all)
 *
 * '#' begins a comment, and ';' ends a line. The first rule that fits a call is used.
 */
#ifndef TUTTI_TUNER_RULES_H
#define TUTTI_TUNER_RULES_H

#include "tuner/tuner.h"

struct tutti_rule {
    enum tutti_collective collective;
    struct tutti_choice choice;
    size_t least_bytes, most_bytes;   /* of the larger buffer; all ranges include both ends */
    uint32_t least_ranks, most_ranks;
    uint32_t least_nodes, most_nodes;
    char *machine;                    /* fingerprint; NULL: any */
    uint32_t line;                    /* of the text, from 1 on, for messages */
};

struct tutti_rules {
    struct tutti_rule *rules;
    size_t count;
    uint32_t capacity;
};

/* Parses lines of rules. `name` is the name of the file or variable, for messages. The caller frees
 * *ret_rules with tutti_rules_fini. TUTTI_ERR_USAGE: the text is malformed. The message begins with
 * "name:line:column:", and says what is wrong and what would be right. TUTTI_ERR_SYSTEM: there is
 * no memory. */
int tutti_rules_parse(const char *name, const char *text, struct tutti_rules *ret_rules);

/* Parses the short form, such as "allreduce:hybrid[doublings=3],broadcast:knomial". Its rules are
 * for all sizes. Ownership and errors are those of tutti_rules_parse. */
int tutti_rules_parse_short(const char *name, const char *text, struct tutti_rules *ret_rules);

/* Frees the rules. A zeroed object is ignored. */
void tutti_rules_fini(struct tutti_rules *rules);

/* Returns the first rule that fits the call and names an algorithm that can serve it. Returns NULL
 * if there is none. */
const struct tutti_rule *tutti_rules_find(const struct tutti_rules *rules,
                                          const struct tutti_tuner_view *view,
                                          const struct tutti_tuner_query *query);

#endif
