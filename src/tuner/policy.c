/* SPDX-License-Identifier: Apache-2.0
 * Policies (policy.h). This file makes a policy from the environment, from texts, or from the bytes
 * that rank 0 has sent. */
#include "tuner/policy.h"

#include "base/atomic.h"
#include "base/file.h"
#include "base/param.h"
#include "base/result.h"
#include "topology/machine/machine.h"
#include "tuner/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- files --------------------------------------------------------------------------------- */

static int fail_no_text(const char *variable, const char *path)
{
    return tutti_fail(TUTTI_ERR_USAGE, "%s: %s is no text of at most %zu KiB; give a file of rules",
                      variable, path, TUTTI_POLICY_MOST_BYTES >> 10);
}

static int read_file(const char *variable, const char *path, char **ret_text)
{
    size_t length;
    char *text;

    switch (tutti_file_load(path, TUTTI_POLICY_MOST_BYTES, &text, &length)) {
    case TUTTI_FILE_DONE: break;
    case TUTTI_FILE_NOT_OPENED:
        return tutti_fail(TUTTI_ERR_USAGE,
                          "%s: cannot open %s: %s; give a file that rank 0 can read", variable,
                          path, strerror(errno));
    case TUTTI_FILE_NOT_READ:
        return tutti_fail(TUTTI_ERR_USAGE, "%s: cannot read %s: %s", variable, path,
                          strerror(errno));
    case TUTTI_FILE_NO_MEMORY: return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to read %s", path);
    case TUTTI_FILE_TOO_LONG: return fail_no_text(variable, path);
    }
    if (strlen(text) != length) {
        free(text);
        return fail_no_text(variable, path);
    }
    *ret_text = text;
    return TUTTI_OK;
}

int tutti_policy_load(const char *variable, const char *given, char **ret_text)
{
    if (*given != '\0' && strpbrk(given, " \t\n;") == NULL)
        return read_file(variable, given, ret_text);
    *ret_text = strdup(given);
    return *ret_text != NULL ? TUTTI_OK
                             : tutti_fail(TUTTI_ERR_SYSTEM, "no memory to read %s", variable);
}

/* ---- bytes --------------------------------------------------------------------------------- */

/* Sets policy->text to the texts in policy->bytes. */
static int find_texts(struct tutti_policy *policy)
{
    const char *at = policy->bytes, *end = policy->bytes + policy->size;

    for (int i = 0; i < TUTTI_POLICY_TEXTS; i++) {
        const char *nul = memchr(at, '\0', (size_t)(end - at));

        if (nul == NULL)
            return tutti_fail(TUTTI_ERR_USAGE, "the tuning data of rank 0 is malformed; all "
                              "ranks must run one version of the library");
        policy->text[i] = at;
        at = nul + 1;
    }
    return TUTTI_OK;
}

/* Returns the name for messages, which is that of the file. If the text is in the variable itself,
 * it is the name of the variable. */
static const char *name_or(const char *name, const char *variable)
{
    return *name != '\0' ? name : variable;
}

int tutti_policy_unpack(const char *bytes, size_t size, struct tutti_policy **ret_policy)
{
    struct tutti_policy *policy = calloc(1, sizeof *policy + size);
    const char *const *text;
    int rc;

    if (policy == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu bytes of tuning rules", size);
    policy->references = 1;
    policy->size = size;
    memcpy(policy->bytes, bytes, size);
    text = policy->text;
    TUTTI_TRY_OR(fail, rc, find_texts(policy));
    TUTTI_TRY_OR(fail, rc,
                 tutti_rules_parse_short("TUTTI_ALGORITHM", text[TUTTI_POLICY_VARIABLE],
                                         &policy->rules[TUTTI_POLICY_VARIABLE]));
    TUTTI_TRY_OR(fail, rc, tutti_rules_parse(name_or(text[TUTTI_POLICY_RULE_NAME], "TUTTI_TUNE"),
                                             text[TUTTI_POLICY_RULE],
                                             &policy->rules[TUTTI_POLICY_RULE]));
    TUTTI_TRY_OR(fail, rc,
                 tutti_rules_parse(name_or(text[TUTTI_POLICY_TABLE_NAME], "TUTTI_TUNE_TABLE"),
                                   text[TUTTI_POLICY_TABLE], &policy->rules[TUTTI_POLICY_TABLE]));
    *ret_policy = policy;
    return TUTTI_OK;

fail:
    tutti_policy_release(policy);
    return rc;
}

int tutti_policy_create(const char *const text[TUTTI_POLICY_TEXTS],
                        struct tutti_policy **ret_policy)
{
    size_t size = 0, at = 0;
    char *bytes;
    int rc;

    for (int i = 0; i < TUTTI_POLICY_TEXTS; i++)
        size += (text[i] ? strlen(text[i]) : 0) + 1;
    if (size > TUTTI_POLICY_MOST_BYTES)
        return tutti_fail(TUTTI_ERR_USAGE, "tuning rules of %zu KiB; they may have %zu: shorten "
                          "TUTTI_TUNE or TUTTI_TUNE_TABLE", size >> 10,
                          TUTTI_POLICY_MOST_BYTES >> 10);
    bytes = malloc(size);
    if (bytes == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %zu bytes of tuning rules", size);
    for (int i = 0; i < TUTTI_POLICY_TEXTS; i++) {
        size_t length = text[i] ? strlen(text[i]) : 0;

        memcpy(bytes + at, text[i] ? text[i] : "", length + 1);
        at += length + 1;
    }
    rc = tutti_policy_unpack(bytes, size, ret_policy);
    free(bytes);
    return rc;
}

/* Writes the whole description of the machine, so that the other ranks need no files. The text is
 * "" if no machine was described. */
static int describe_machine(uint32_t nranks, char **ret_text)
{
    const char *given = tutti_param_text(TUTTI_PARAM_MACHINE);
    struct tutti_machine *machine = NULL;
    char why[TUTTI_MESSAGE_BYTES];
    int rc;

    if (*given == '\0') {
        *ret_text = calloc(1, 1);
        return *ret_text != NULL ? TUTTI_OK
                                 : tutti_fail(TUTTI_ERR_SYSTEM, "no memory to read TUTTI_MACHINE");
    }
    rc = tutti_machine_load(given, nranks, &machine);
    if (rc == TUTTI_ERR_ARGUMENT) {
        snprintf(why, sizeof why, "%s", tutti_message_last());
        return tutti_fail(TUTTI_ERR_USAGE, "TUTTI_MACHINE: %s", why);
    }
    TUTTI_TRY(rc);
    rc = tutti_machine_write(machine, ret_text);
    tutti_machine_destroy(machine);
    return rc;
}

int tutti_policy_read(uint32_t nranks, struct tutti_policy **ret_policy)
{
    const char *tune = tutti_param_text(TUTTI_PARAM_TUNE);
    const char *table = tutti_param_text(TUTTI_PARAM_TUNE_TABLE);
    const char *machine = tutti_param_text(TUTTI_PARAM_MACHINE);
    const char *text[TUTTI_POLICY_TEXTS] = {tutti_param_text(TUTTI_PARAM_ALGORITHM)};
    char *rules = NULL, *measured = NULL, *described = NULL, host[TUTTI_HOST_BYTES];
    int rc = TUTTI_OK;

    *ret_policy = NULL;
    if (*text[TUTTI_POLICY_VARIABLE] == '\0' && *tune == '\0' && *table == '\0' && *machine == '\0')
        return TUTTI_OK;
    TUTTI_TRY_OR(done, rc, tutti_policy_load("TUTTI_TUNE", tune, &rules));
    TUTTI_TRY_OR(done, rc, tutti_policy_load("TUTTI_TUNE_TABLE", table, &measured));
    TUTTI_TRY_OR(done, rc, describe_machine(nranks, &described));
    tutti_host_describe(host);
    text[TUTTI_POLICY_RULE] = rules;
    text[TUTTI_POLICY_TABLE] = measured;
    text[TUTTI_POLICY_MACHINE] = described;
    text[TUTTI_POLICY_HOST] = host;
    if (strcmp(rules, tune) != 0)
        text[TUTTI_POLICY_RULE_NAME] = tune;
    if (strcmp(measured, table) != 0)
        text[TUTTI_POLICY_TABLE_NAME] = table;
    rc = tutti_policy_create(text, ret_policy);

done:
    free(rules);
    free(measured);
    free(described);
    return rc;
}

/* ---- sharing ------------------------------------------------------------------------------- */

struct tutti_policy *tutti_policy_retain(struct tutti_policy *policy)
{
    if (policy != NULL)
        /* acquire and release: pairs with the one in tutti_policy_release */
        tutti_fetch_add(&policy->references, 1);
    return policy;
}

void tutti_policy_release(struct tutti_policy *policy)
{
    /* acquire and release: pairs with itself; other owners are done with the policy */
    if (policy == NULL || tutti_fetch_add(&policy->references, (uint32_t)-1) != 1)
        return;
    for (int i = 0; i < TUTTI_POLICY_RULES; i++)
        tutti_rules_fini(&policy->rules[i]);
    free(policy);
}

enum tutti_authority tutti_policy_authority(int index)
{
    static const enum tutti_authority authorities[TUTTI_POLICY_RULES] = {
        [TUTTI_POLICY_VARIABLE] = TUTTI_BY_VARIABLE,
        [TUTTI_POLICY_RULE] = TUTTI_BY_RULE,
        [TUTTI_POLICY_TABLE] = TUTTI_BY_TABLE,
    };

    return authorities[index];
}
