/* SPDX-License-Identifier: Apache-2.0
 * Any text is tuning rules in both forms, the policy and the header that rank 0 shares, the
 * description of a machine, and Slurm's list of nodes. */
#include "fuzz/fuzz.h"

#include "bootstrap/launcher.h"
#include "comm/share.h"
#include "topology/machine/machine.h"
#include "tuner/policy.h"
#include "tuner/rules.h"

static void try_rules(const char *text)
{
    struct tutti_rules rules = {.count = 0};

    if (tutti_rules_parse("fuzz", text, &rules) == TUTTI_OK)
        tutti_rules_fini(&rules);
    rules = (struct tutti_rules){.count = 0};
    if (tutti_rules_parse_short("fuzz", text, &rules) == TUTTI_OK)
        tutti_rules_fini(&rules);
}

static void try_shared(const char *text, size_t size)
{
    uint8_t head[TUTTI_SHARE_HEAD_BYTES] = {0};
    struct tutti_share share = {.failure = 0};
    struct tutti_policy *policy;

    if (tutti_policy_unpack(text, size, &policy) == TUTTI_OK)
        tutti_policy_release(policy);
    memcpy(head, text, size < sizeof head ? size : sizeof head);
    (void)tutti_share_expect(&share, head, 4, 1);
    tutti_share_fini(&share);
}

static void try_machine(const char *text, uint32_t nranks)
{
    struct tutti_machine *machine;

    if (tutti_machine_parse("fuzz", text, nranks, &machine) == TUTTI_OK)
        tutti_machine_destroy(machine);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *text = fuzz_text(bytes, size), host[64];

    try_rules(text);
    try_shared(text, size);
    try_machine(text, (uint32_t)(size % 9));
    if (tutti_slurm_first_host(text, host, sizeof host))
        fuzz_require(strlen(host) < sizeof host, "the host's name ends");
    free(text);
    return 0;
}
