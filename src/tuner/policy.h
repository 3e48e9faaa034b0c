/* SPDX-License-Identifier: Apache-2.0
 * The policy: what users and measurements say about choices. Rank 0's policy is distributed while a
 * communicator forms, so that choices do not depend on the environments of the other ranks.
 *
 * A policy travels as bytes, which all ranks parse the same way: strings one after the other, each
 * with its NUL, in the order of enum tutti_policy_text. It is immutable, counts its references, and
 * is shared by a communicator and those that are split from it.
 */
#ifndef TUTTI_TUNER_POLICY_H
#define TUTTI_TUNER_POLICY_H

#include "tuner/rules.h"

/* Lists of rules in a policy: list i is read from text i of enum tutti_policy_text. */
enum { TUTTI_POLICY_RULES = 3 };

/* Largest size of a policy in bytes. Its texts come from files, which may be the wrong ones. */
#define TUTTI_POLICY_MOST_BYTES ((size_t)1 << 20)

enum tutti_policy_text {
    TUTTI_POLICY_VARIABLE, /* TUTTI_ALGORITHM */
    TUTTI_POLICY_RULE,     /* TUTTI_TUNE */
    TUTTI_POLICY_TABLE,    /* TUTTI_TUNE_TABLE */
    TUTTI_POLICY_RULE_NAME,  /* file name of the rules, for messages; "": not from a file */
    TUTTI_POLICY_TABLE_NAME, /* the same of the table */
    TUTTI_POLICY_MACHINE,  /* TUTTI_MACHINE, in the form that tutti_machine_write writes */
    TUTTI_POLICY_HOST,     /* tutti_host_describe of rank 0 */
    TUTTI_POLICY_TEXTS
};

struct tutti_policy {
    uint32_t references;     /* atomic */
    struct tutti_rules rules[TUTTI_POLICY_RULES];
    const char *text[TUTTI_POLICY_TEXTS]; /* pointers into `bytes` */
    size_t size;
    char bytes[];
};

/* The authority of list `index` of the rules. */
enum tutti_authority tutti_policy_authority(int index);

/* Reads the policy from the environment of this process, for a communicator of `nranks`.
 * *ret_policy is NULL if none of its variables is set. TUTTI_ERR_USAGE: a text is malformed, or a
 * file cannot be read; the message names the variable, and what to do. */
int tutti_policy_read(uint32_t nranks, struct tutti_policy **ret_policy);

/* Makes a policy from texts, which are copied; NULL entries are empty. The caller gets the one
 * reference. TUTTI_ERR_USAGE: a text is malformed, or they are too large. */
int tutti_policy_create(const char *const text[TUTTI_POLICY_TEXTS],
                        struct tutti_policy **ret_policy);

/* Makes a policy from the bytes of another rank's policy, which are copied. TUTTI_ERR_USAGE: they
 * are malformed. */
int tutti_policy_unpack(const char *bytes, size_t size, struct tutti_policy **ret_policy);

/* Adds a reference, and returns `policy`. NULL is ignored. Thread-safe, as is release. */
struct tutti_policy *tutti_policy_share(struct tutti_policy *policy);
void tutti_policy_release(struct tutti_policy *policy);

/* Returns the text of the file that `given` names. If `given` is empty, or has a blank, tab, ';' or
 * line end in it, it is the text itself, and is copied. The caller frees the text. Messages name
 * `variable`. TUTTI_ERR_USAGE: the file cannot be read, is too large, or is no text. */
int tutti_policy_load(const char *variable, const char *given, char **ret_text);

#endif
