/* SPDX-License-Identifier: Apache-2.0
 * Describes calls and machines in the form that the tuner and the simulator take. */
#include "common/tuner_view.h"

#include "base/param.h"
#include "base/result.h"
#include "common/memory.h"
#include "schedule/bind.h"
#include "tuner/assumed.h"
#include "tuner/policy.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

size_t vector_block_bytes(enum tutti_collective collective, uint32_t nranks, double size_bytes)
{
    uint32_t input = tutti_input_blocks(collective, nranks);
    uint32_t output = tutti_output_blocks(collective, nranks);
    uint32_t blocks = input > output ? input : output;
    double block_bytes;

    if (blocks == 0)
        return 0;
    block_bytes = size_bytes / blocks;
    return block_bytes < 1 ? 1 : (size_t)block_bytes;
}

double vector_bus_factor(enum tutti_collective collective, uint32_t nranks)
{
    double part = (nranks - 1.0) / nranks;

    /* In an all-reduce, each byte enters and leaves a port, apart from the part of its own rank. */
    if (tutti_collective_gives_one_result(collective))
        return 2 * part;
    /* In a broadcast, a reduction to one rank or a scan, a port carries each byte once. */
    if (!tutti_input_is_per_rank(collective) && !tutti_output_is_per_rank(collective))
        return 1;
    return part;
}

void tuner_view_init(const struct tutti_machine *machine, struct tutti_tuner_view *ret_view)
{
    bool is_one_node = machine->places.node != NULL && machine->places.nnodes == 1;

    *ret_view = (struct tutti_tuner_view){
        .nranks = machine->places.nranks,
        .is_one_domain = is_one_node,
        .all_read = is_one_node,
        .all_store = is_one_node,
        .half_bytes = is_one_node ? (size_t)tutti_param_int(TUTTI_PARAM_WINDOW_BYTES) / 2 : 0,
        .stage_bytes = TUTTI_STAGE_BYTES,
        .scratch_bytes = TUTTI_SCRATCH_BYTES,
        .places = &machine->places,
        .machine = machine,
    };
}

/* ---- processes of this host ------------------------------------------------------------------ */

uint32_t usable_cores(void)
{
    cpu_set_t set;
    long count;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (uint32_t)CPU_COUNT(&set);
    count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (uint32_t)count : 1;
}

/* Returns true if TUTTI_TRANSPORTS allows the transport. An empty list allows all. */
static bool may_use(const char *transport)
{
    const char *list = tutti_param_text(TUTTI_PARAM_TRANSPORTS);
    size_t length = strlen(transport);

    if (*list == '\0')
        return true;
    for (const char *at = list; *at != '\0'; at += strspn(at, ",")) {
        size_t word_length = strcspn(at, ",");

        if (word_length == length && strncmp(at, transport, length) == 0)
            return true;
        at += word_length;
    }
    return false;
}

/* Parses the machine of TUTTI_MACHINE, or assumes one. The caller destroys *ret_machine. */
static int find_machine(uint32_t nranks, const struct tutti_policy *policy, bool shares_memory,
                        struct tutti_machine **ret_machine)
{
    const char *text = policy != NULL ? policy->text[TUTTI_POLICY_MACHINE] : "";

    if (*text != '\0')
        return tutti_machine_parse("TUTTI_MACHINE", text, nranks, ret_machine);
    *ret_machine = must_calloc(1, sizeof **ret_machine);
    /* All ranks are on one node, so the speed of the network does not matter. 0: not known. */
    tutti_tuner_assume_machine(shares_memory, usable_cores(), 0, *ret_machine);
    return TUTTI_OK;
}

int host_machine_load(uint32_t nranks, struct tutti_machine **ret_machine, bool *ret_is_given)
{
    struct tutti_policy *policy;
    struct tutti_placement *places;
    int rc;

    TUTTI_TRY(tutti_policy_read(nranks, &policy));
    rc = find_machine(nranks, policy, may_use("shm"), ret_machine);
    *ret_is_given = policy != NULL && *policy->text[TUTTI_POLICY_MACHINE] != '\0';
    tutti_policy_release(policy);
    if (rc != TUTTI_OK)
        return rc;
    places = &(*ret_machine)->places;
    places->nranks = nranks;
    if (places->node == NULL) {
        places->node = must_calloc(nranks, sizeof *places->node);
        places->nnodes = 1;
    }
    tutti_placement_align(places);
    return TUTTI_OK;
}

int host_view_open(uint32_t nranks, const struct tutti_policy *policy, struct host_view *ret_host)
{
    bool shares_memory = may_use("shm");
    bool reads_by_cma = shares_memory && may_use("cma");
    const char *policy_host = policy != NULL ? policy->text[TUTTI_POLICY_HOST] : "";

    *ret_host = (struct host_view){.node = NULL};
    TUTTI_TRY(find_machine(nranks, policy, shares_memory, &ret_host->machine));
    ret_host->places = ret_host->machine->places;
    ret_host->places.nranks = nranks;
    if (ret_host->places.node == NULL) {
        ret_host->node = must_calloc(nranks, sizeof *ret_host->node);
        ret_host->places.node = ret_host->node;
        ret_host->places.nnodes = 1;
    }
    tutti_placement_align(&ret_host->places);
    ret_host->view = (struct tutti_tuner_view){
        .nranks = nranks,
        .is_one_domain = shares_memory,
        .all_read = reads_by_cma,
        .half_bytes = shares_memory ? (size_t)tutti_param_int(TUTTI_PARAM_WINDOW_BYTES) / 2 : 0,
        .stage_bytes = TUTTI_STAGE_BYTES,
        .scratch_bytes = TUTTI_SCRATCH_BYTES,
        .places = &ret_host->places,
        .machine = ret_host->machine,
        .policy = policy,
        .fingerprint = ret_host->fingerprint,
    };
    tutti_fingerprint(policy_host, &ret_host->view,
                      reads_by_cma    ? "cma"
                      : shares_memory ? "shm"
                                      : "tcp",
                      ret_host->fingerprint);
    return TUTTI_OK;
}

void host_view_close(struct host_view *host)
{
    tutti_machine_destroy(host->machine);
    free(host->node);
    *host = (struct host_view){.node = NULL};
}
