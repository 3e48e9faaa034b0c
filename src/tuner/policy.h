/* SPDX-License-Identifier: Apache-2.0
 * A policy holds the rules by which users and measurements influence the choice of algorithms.
 * Rank 0's policy is distributed while a communicator forms. So choices do not depend on the
 * environments of the other ranks.
 *
 * A policy travels as bytes, which all ranks parse the same way. The bytes are strings one after
 * the other, each with its NUL, in the order of enum tutti_policy_text. A policy is immutable and
 * counts its references. A communicator shares its policy with the communicators that are split
 * from it.
 */
#ifndef TUTTI_TUNER_POLICY_H
#define TUTTI_TUNER_POLICY_H

#include "tuner/rules.h"

/* Number of lists of rules in a policy. List i is read from text i of enum tutti_policy_text. */
enum { TUTTI_POLICY_RULES = 3 };

/* Largest size of a policy in bytes. There is a limit because a variable may name a wrong, huge
 * file. */
#define TUTTI_POLICY_MOST_BYTES ((size_t)1 << 20)

enum tutti_policy_text {
    TUTTI_POLICY_VARIABLE, /* value of TUTTI_ALGORITHM */
    TUTTI_POLICY_RULE,     /* the rules that TUTTI_TUNE gives or names */
    TUTTI_POLICY_TABLE,    /* the table that TUTTI_TUNE_TABLE gives or names */
    TUTTI_POLICY_RULE_NAME,  /* file name of the rules, for messages; "": not from a file */
    TUTTI_POLICY_TABLE_NAME, /* file name of the table, for messages; "": not from a file */
    TUTTI_POLICY_MACHINE,  /* the machine of TUTTI_MACHINE, as tutti_machine_write writes it */
    TUTTI_POLICY_HOST,     /* rank 0's host, as tutti_host_describe writes it */
    TUTTI_POLICY_TEXTS
};

struct tutti_policy {
    uint32_t references;     /* atomic */
    struct tutti_rules rules[TUTTI_POLICY_RULES]; /* parsed from the first texts */
    const char *text[TUTTI_POLICY_TEXTS]; /* pointers into `bytes` */
    size_t size;                          /* of `bytes` */
    char bytes[];                         /* the texts, in order */
};

/* Returns the authority (tuner.h) of list `index` of the rules. */
enum tutti_authority tutti_policy_authority(int index);

/* Reads the policy from the environment of this process, for a communicator of `nranks`. The caller
 * gets the only reference. *ret_policy is NULL if none of the variables above is set.
 * TUTTI_ERR_USAGE: a text is malformed, or a file cannot be read; the message names the variable.
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_policy_read(uint32_t nranks, struct tutti_policy **ret_policy);

/* Makes a policy from texts, which are copied. NULL stands for an empty text. The caller gets the
 * only reference. TUTTI_ERR_USAGE: a text is malformed, or the texts together are too large.
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_policy_create(const char *const text[TUTTI_POLICY_TEXTS],
                        struct tutti_policy **ret_policy);

/* Makes a policy from the bytes of another rank's policy, which are copied. The caller gets the
 * only reference. TUTTI_ERR_USAGE: the bytes are malformed. TUTTI_ERR_SYSTEM: no memory. */
int tutti_policy_unpack(const char *bytes, size_t size, struct tutti_policy **ret_policy);

/* tutti_policy_retain adds a reference and returns `policy`. tutti_policy_release drops a
 * reference, and the last one frees the policy. Both are thread-safe and ignore NULL. */
struct tutti_policy *tutti_policy_retain(struct tutti_policy *policy);
void tutti_policy_release(struct tutti_policy *policy);

/* Loads the text that the value `given` of an environment variable stands for. If `given` is empty
 * or contains a blank, tab, ';' or newline, `given` itself is the text. Otherwise `given` names a
 * file with the text. The caller frees *ret_text. `variable` is the variable's name, for messages.
 * TUTTI_ERR_USAGE: the file cannot be read, is too large, or is no text. TUTTI_ERR_SYSTEM: no
 * memory. */
int tutti_policy_load(const char *variable, const char *given, char **ret_text);

#endif
