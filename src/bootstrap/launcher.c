/* SPDX-License-Identifier: Apache-2.0
 * Detection of the launcher. The environment tells which launcher started this rank, the rank's
 * number, the number of ranks, and where the ranks can meet. docs/launchers.md is the manual for
 * users.
 *
 * TUTTI_ROOT and TUTTI_SECRET, if set, override what a launcher implies.
 */
#include "base/param.h"
#include "base/result.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/launcher.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If the job has an identity, rank 0 may use one of this many ports after the first one. */
#define SPARE_PORTS 15

/* ---- reading variables ------------------------------------------------------------ */

static bool is_set(const char *name)
{
    return tutti_variable_given(name) != NULL;
}

/* Read the variable `name`, which `launcher` sets, as a number from `low` to `high`. */
static int read_number(const char *launcher, const char *name, long low, long high,
                       long *ret_number)
{
    const char *text = tutti_variable_given(name);
    char *end;
    long number;

    if (text == NULL)
        return tutti_fail(TUTTI_ERR_USAGE, "%s is not set, though other variables of %s are", name,
                          launcher);
    errno = 0;
    number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || number < low || number > high)
        return tutti_fail(TUTTI_ERR_USAGE, "%s=%s (%s) is not a number from %ld to %ld", name, text,
                          launcher, low, high);
    *ret_number = number;
    return TUTTI_OK;
}

static int read_ranks(struct tutti_launch *launch, const char *rank_name, const char *nranks_name)
{
    long nranks = 1, rank = 0;

    TUTTI_TRY(read_number(launch->launcher, nranks_name, 1, INT32_MAX, &nranks));
    TUTTI_TRY(read_number(launch->launcher, rank_name, 0, nranks - 1, &rank));
    launch->nranks = (int)nranks;
    launch->rank = (int)rank;
    return TUTTI_OK;
}

/* Copy the value `text` of the variable `name`. TUTTI_ERR_USAGE: the value is too long. */
static int keep(char *to, size_t size, const char *name, const char *text)
{
    if (strlen(text) >= size)
        return tutti_fail(TUTTI_ERR_USAGE, "%s has %zu bytes; the limit is %zu", name, strlen(text),
                          size - 1);
    memcpy(to, text, strlen(text) + 1);
    return TUTTI_OK;
}

/* ---- where ranks meet --------------------------------------------------------------- */

/* The value of TUTTI_ROOT is host:port or the URL of a store. */
static int use_root(struct tutti_launch *launch, const char *root)
{
    bool is_url = strncmp(root, "tcp:", 4) == 0 || strncmp(root, "file:", 5) == 0 ||
                  strncmp(root, "unix:", 5) == 0;
    char url[sizeof launch->store];

    if (!is_url && strchr(root, ':') == NULL)
        return tutti_fail(TUTTI_ERR_USAGE,
                          "TUTTI_ROOT=%s is neither host:port, tcp:host:port, unix:NAME nor "
                          "file:DIRECTORY",
                          root);
    snprintf(url, sizeof url, "%s%s", is_url ? "" : "tcp:", root);
    return keep(launch->store, sizeof launch->store, "TUTTI_ROOT", url);
}

/* Ranks on one host meet at a socket named after the job. Ranks on several hosts need
 * TUTTI_ROOT. */
static int meet_on_host(struct tutti_launch *launch, bool is_one_host, const char *identity)
{
    if (!is_one_host)
        return tutti_fail(TUTTI_ERR_USAGE,
                          "%s does not say where ranks on several hosts can meet: set "
                          "TUTTI_ROOT=host:port, with the host of rank 0 and a free port there",
                          launch->launcher);
    if (*identity == '\0')
        return tutti_fail(TUTTI_ERR_USAGE,
                          "%s does not say which job this is: set TUTTI_ROOT=host:port, with the "
                          "host of rank 0 and a free port there",
                          launch->launcher);
    tutti_launch_socket(identity, launch->store, sizeof launch->store);
    return TUTTI_OK;
}

/* ---- the launchers -------------------------------------------------------------------- */

static int from_tutti(struct tutti_launch *launch)
{
    TUTTI_TRY(read_ranks(launch, tutti_param_info(TUTTI_PARAM_RANK)->name,
                         tutti_param_info(TUTTI_PARAM_NRANKS)->name));
    if (launch->nranks > 1 && launch->store[0] == '\0')
        return tutti_fail(TUTTI_ERR_USAGE,
                          "TUTTI_ROOT is not set: with TUTTI_NRANKS=%d ranks need host:port of "
                          "rank 0, unix:NAME or file:DIRECTORY to meet",
                          launch->nranks);
    return TUTTI_OK;
}

/* torchrun's own store listens on MASTER_PORT, so no other job of the host has that port. Rank 0
 * takes the next free port after it. If TORCHELASTIC_RUN_ID is not set, the variables were set by
 * hand. They then give a single port, and no identity of the job. */
static int from_torchrun(struct tutti_launch *launch)
{
    const char *host = tutti_variable_given("MASTER_ADDR");
    const char *run = tutti_variable_given("TORCHELASTIC_RUN_ID");
    const char *restarts = tutti_variable_given("TORCHELASTIC_RESTART_COUNT");
    char spare[24] = "";
    long port = 0;
    bool is_ipv6;

    TUTTI_TRY(read_ranks(launch, "RANK", "WORLD_SIZE"));
    if (launch->nranks == 1)
        return TUTTI_OK;
    if (host == NULL && launch->store[0] == '\0')
        return tutti_fail(TUTTI_ERR_USAGE, "MASTER_ADDR is not set, though RANK and WORLD_SIZE "
                                           "are; it is the host of rank 0");
    if (host != NULL)
        TUTTI_TRY(read_number(launch->launcher, "MASTER_PORT", 1, UINT16_MAX - SPARE_PORTS - 1,
                              &port));
    if (run != NULL)
        snprintf(launch->job, sizeof launch->job, "torchrun %.200s %.16s %.200s:%ld", run,
                 restarts ? restarts : "0", host ? host : "", port);
    if (launch->store[0] != '\0')
        return TUTTI_OK;
    if (run != NULL)
        snprintf(spare, sizeof spare, "-%ld", ++port + SPARE_PORTS);
    is_ipv6 = host[0] != '[' && strchr(host, ':') != NULL;
    if ((size_t)snprintf(launch->store, sizeof launch->store, "tcp:%s%s%s:%ld%s",
                         is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port,
                         spare) >= sizeof launch->store)
        return tutti_fail(TUTTI_ERR_USAGE, "MASTER_ADDR=%.64s... is too long", host);
    return TUTTI_OK;
}

/* Open MPI 4 makes its job number from a hash of few bits, so two jobs may have the same number.
 * The identity therefore includes the launcher's process, if it is found among the ancestors. */
static int from_openmpi(struct tutti_launch *launch)
{
    const char *job = tutti_variable_given("PMIX_NAMESPACE"); /* Open MPI 5 */
    char identity[384], ancestor[64] = "";
    long local = 0;

    if (job == NULL)
        job = tutti_variable_given("OMPI_MCA_ess_base_jobid"); /* Open MPI 4 */
    TUTTI_TRY(read_ranks(launch, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"));
    if (launch->nranks == 1)
        return TUTTI_OK;
    if (job != NULL)
        snprintf(launch->job, sizeof launch->job, "openmpi %.256s", job);
    if (launch->store[0] != '\0')
        return TUTTI_OK;
    TUTTI_TRY(read_number(launch->launcher, "OMPI_COMM_WORLD_LOCAL_SIZE", 1, INT32_MAX, &local));
    if (!tutti_launch_ancestor("OMPI_COMM_WORLD_RANK", ancestor, sizeof ancestor))
        ancestor[0] = '\0';
    snprintf(identity, sizeof identity, "%s%.256s%s%s", job ? "openmpi-" : "", job ? job : "",
             job && ancestor[0] ? "-" : "", job ? ancestor : "");
    return meet_on_host(launch, local == launch->nranks, identity);
}

/* Hydra, the launcher of MPICH, does not name the job. But it is an ancestor of all its local
 * ranks, so its process identifies the job. */
static int from_mpich(struct tutti_launch *launch)
{
    char identity[256] = "";
    char ancestor[64];
    bool is_one_host = false;

    TUTTI_TRY(read_ranks(launch, "PMI_RANK", "PMI_SIZE"));
    if (launch->nranks == 1 || launch->store[0] != '\0')
        return TUTTI_OK;
    if (is_set("MPI_LOCALNRANKS")) {
        long local = 0;

        TUTTI_TRY(read_number(launch->launcher, "MPI_LOCALNRANKS", 1, INT32_MAX, &local));
        is_one_host = local == launch->nranks;
    }
    if (is_one_host && tutti_launch_ancestor("PMI_RANK", ancestor, sizeof ancestor))
        snprintf(identity, sizeof identity, "mpich-%s", ancestor);
    return meet_on_host(launch, is_one_host, identity);
}

/* Ranks meet at the first node of the step, because rank 0 runs there. */
static int from_slurm(struct tutti_launch *launch)
{
    const char *nodes = tutti_variable_given("SLURM_STEP_NODELIST");
    const char *cluster = tutti_variable_given("SLURM_CLUSTER_NAME");
    const char *ntasks = is_set("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
    char host[128];
    long job = 0, step = 0;
    unsigned port;

    TUTTI_TRY(read_ranks(launch, "SLURM_PROCID", ntasks));
    if (launch->nranks == 1)
        return TUTTI_OK;
    TUTTI_TRY(read_number(launch->launcher, "SLURM_JOB_ID", 0, UINT32_MAX, &job));
    TUTTI_TRY(read_number(launch->launcher, "SLURM_STEP_ID", 0, UINT32_MAX, &step));
    snprintf(launch->job, sizeof launch->job, "slurm %.128s %ld.%ld",
             cluster != NULL ? cluster : "", job, step);
    if (launch->store[0] != '\0')
        return TUTTI_OK;
    if (nodes == NULL)
        nodes = tutti_variable_given("SLURM_JOB_NODELIST");
    if (nodes == NULL || !tutti_slurm_first_host(nodes, host, sizeof host))
        return tutti_fail(TUTTI_ERR_USAGE,
                          "SLURM_STEP_NODELIST=%s names no node: set TUTTI_ROOT=host:port, with "
                          "the host of rank 0 and a free port there",
                          nodes ? nodes : "");
    port = tutti_launch_port((unsigned long)job, (unsigned long)step);
    snprintf(launch->store, sizeof launch->store, "tcp:%s:%u-%u", host, port, port + SPARE_PORTS);
    return TUTTI_OK;
}

/* The launchers in order of precedence. If another launcher runs inside a Slurm job, that launcher
 * started this rank, rather than Slurm. A batch script also has SLURM_PROCID, but no SLURM_STEP_ID,
 * so it is a single rank. */
static const struct {
    const char *name;
    const char *marks[2]; /* variables: one of them must be set */
    const char *and_mark; /* another variable that must be set; NULL: none */
    int (*detect)(struct tutti_launch *launch);
} launchers[] = {
    {"tutti-run", {"TUTTI_RANK", "TUTTI_NRANKS"}, NULL, from_tutti},
    {"torchrun", {"RANK", "RANK"}, "WORLD_SIZE", from_torchrun},
    {"Open MPI", {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, NULL, from_openmpi},
    {"MPICH", {"PMI_RANK", "PMI_SIZE"}, NULL, from_mpich},
    {"Slurm", {"SLURM_PROCID", "SLURM_PROCID"}, "SLURM_STEP_ID", from_slurm},
};

/* Fill in `launch`, which describes a single rank so far. */
static int detect(struct tutti_launch *launch)
{
    const char *root = tutti_param_text(TUTTI_PARAM_ROOT);
    const char *secret_name = tutti_param_info(TUTTI_PARAM_SECRET)->name;
    /* The secret is not read by tutti_param_text, because that would keep a copy in memory. */
    const char *secret = tutti_param_given(TUTTI_PARAM_SECRET);

    if (secret != NULL)
        TUTTI_TRY(keep(launch->secret, sizeof launch->secret, secret_name, secret));
    if (*root != '\0')
        TUTTI_TRY(use_root(launch, root));
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        if (!is_set(launchers[i].marks[0]) && !is_set(launchers[i].marks[1]))
            continue;
        if (launchers[i].and_mark != NULL && !is_set(launchers[i].and_mark))
            continue;
        launch->launcher = launchers[i].name;
        return launchers[i].detect(launch);
    }
    return TUTTI_OK;
}

int tutti_launch_detect(struct tutti_launch *ret_launch)
{
    struct tutti_launch launch = {.launcher = "none", .nranks = 1, .rank = 0};
    int rc = detect(&launch);

    if (rc == TUTTI_OK)
        *ret_launch = launch;
    sodium_memzero(launch.secret, sizeof launch.secret);
    return rc;
}
