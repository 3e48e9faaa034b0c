/* SPDX-License-Identifier: Apache-2.0
 * The policy: what people and measurements say about choices. Rank 0's is distributed while a
 * communicator forms, so that choices depend on nothing else that could differ between ranks.
 *
 * A policy travels as bytes and is read alike everywhere: strings one after the other, each with
 * its NUL, in the order of enum tutti_policy_text. Immutable; shared by a communicator and those
 * that are split from it.
 */
#ifndef TUTTI_TUNER_POLICY_H
#define TUTTI_TUNER_POLICY_H

#include "tuner/rules.h"

/* As authorities come: TUTTI_BY_VARIABLE + i. */
enum { TUTTI_POLICY_RULES = 3 };

/* More is refused: what rank 0 reads comes from files. */
#define TUTTI_POLICY_MOST_BYTES ((size_t)1 << 20)

enum tutti_policy_text {
    TUTTI_POLICY_VARIABLE, /* TUTTI_ALGORITHM */
    TUTTI_POLICY_RULE,     /* TUTTI_TUNE */
    TUTTI_POLICY_TABLE,    /* TUTTI_TUNE_TABLE */
    TUTTI_POLICY_RULE_NAME,  /* their names, for messages */
    TUTTI_POLICY_TABLE_NAME,
    TUTTI_POLICY_MACHINE,  /* TUTTI_MACHINE, as tutti_machine_write has it */
    TUTTI_POLICY_HOST,     /* tutti_host_describe of rank 0 */
    TUTTI_POLICY_TEXTS
};

struct tutti_policy {
    uint32_t references;     /* atomic */
    struct tutti_rules rules[TUTTI_POLICY_RULES];
    const char *text[TUTTI_POLICY_TEXTS]; /* in `bytes` */
    size_t size;
    char bytes[];
};

/* From the environment of this process, for a communicator of `nranks`; NULL when it says nothing.
 * TUTTI_ERR_USAGE: malformed, or a file cannot be read; named with the cure. */
int tutti_policy_read(uint32_t nranks, struct tutti_policy **ret_policy);

/* From texts; NULL entries are empty. */
int tutti_policy_create(const char *const text[TUTTI_POLICY_TEXTS],
                        struct tutti_policy **ret_policy);

/* From the bytes of another rank's policy. TUTTI_ERR_USAGE: they are no policy. */
int tutti_policy_unpack(const char *bytes, size_t size, struct tutti_policy **ret_policy);

/* NULL is ignored, and given back. */
struct tutti_policy *tutti_policy_share(struct tutti_policy *policy);
void tutti_policy_release(struct tutti_policy *policy);

/* The text of a file, or `given` itself when it is text: when it has a blank, ';' or a line end in
 * it. The caller frees it. `variable` is named in messages. */
int tutti_policy_load(const char *variable, const char *given, char **ret_text);

#endif
