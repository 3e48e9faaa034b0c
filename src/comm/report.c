/* SPDX-License-Identifier: Apache-2.0
 * The log lines of a communicator: missing ranks while it forms, its description once it is ready,
 * the algorithms of its calls, its end. docs/logging.md shows the lines.
 *
 * Most of these facts are the same on all ranks, so rank 0 logs them for all. The first rank of
 * each host logs the facts of its host. So a job of many ranks prints few lines. */
#include "base/build_info.h"
#include "base/clock.h"
#include "base/environment.h"
#include "device/cpu/cpu.h"
#include "device/cuda/cuda_image.h"
#include "gpu/comm_gpu.h"

#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 1536 };

/* ---- before ---------------------------------------------------------------------------------- */

void tutti_comm_report_begin(const struct tutti_comm *comm)
{
    static uint32_t has_told_version;

    /* acquire and release: the exchange pairs with itself in other threads, of which one logs */
    if (comm->rank == 0 && tutti_log_is_on(TUTTI_LOG_VERSION) &&
        tutti_exchange(&has_told_version, 1) == 0)
        tutti_log(TUTTI_LOG_VERSION, "Tutti %s", tutti_version_text());
    /* The ranks of a job usually have the same environment, so one warning is enough. */
    tutti_environment_report_unknown(comm->rank == 0 ? TUTTI_LOG_WARN : TUTTI_LOG_INFO);
}

/* ---- while it forms -------------------------------------------------------------------------- */

void tutti_comm_report_missing(struct tutti_comm *comm, const char *phase)
{
    uint64_t notice_ns = (uint64_t)tutti_param_int(TUTTI_PARAM_INIT_NOTICE_MS) * TUTTI_NS_PER_MS;
    uint64_t now_ns = tutti_now_ns();
    char whom[512] = "";
    bool is_best_known = true;

    if (notice_ns == 0 || now_ns - comm->noticed_ns < notice_ns)
        return;
    comm->noticed_ns = now_ns;
    tutti_log_enter(&comm->scope); /* a step of a split leaves the thread in the parent's scope */
    if (comm->boot->ops->describe_missing != NULL)
        is_best_known = comm->boot->ops->describe_missing(comm->boot, whom, sizeof whom);
    if (*whom == '\0')
        snprintf(whom, sizeof whom, "%s has not ended", phase);
    /* A rank that has reached the root does not know which ranks are missing, but the root does. */
    tutti_log(is_best_known ? TUTTI_LOG_WARN : TUTTI_LOG_INFO,
              "still forming after %.1f s (limit %.1f s, TUTTI_INIT_TIMEOUT_MS): %s",
              (double)(now_ns - comm->begun_ns) / 1e9, comm->init_timeout_ms / 1e3, whom);
}

/* ---- when it is ready ------------------------------------------------------------------------ */

int tutti_comm_host_count(const struct tutti_comm *comm)
{
    uint32_t nhosts = 0;

    /* Hosts are numbered in the order of their first ranks. */
    for (int rank = 0; rank < comm->nranks; rank++)
        if (comm->hosts[rank] >= nhosts)
            nhosts = comm->hosts[rank] + 1;
    return (int)nhosts;
}

static int first_rank_of(const struct tutti_comm *comm, uint32_t host)
{
    int rank = 0;

    while (comm->hosts[rank] != host)
        rank++;
    return rank;
}

/* Writes "host 0 'node1' has ranks 0-3, 8", cut off at `size`. Returns its length. */
static size_t name_ranks(const struct tutti_comm *comm, uint32_t host, char *text, size_t size)
{
    int first_there = first_rank_of(comm, host);
    const char *before = " ";
    size_t length = (size_t)snprintf(text, size, "host %u '%s' has ranks", host,
                                     tutti_fabric_host_name(comm->fabric, first_there));

    for (int first = first_there, last; first < comm->nranks && length < size; first = last + 1) {
        for (last = first; last + 1 < comm->nranks && comm->hosts[last + 1] == host; last++)
            ;
        if (comm->hosts[first] != host)
            continue;
        length += (size_t)snprintf(text + length, size - length, "%s%d", before, first);
        if (last > first && length < size)
            length += (size_t)snprintf(text + length, size - length, "-%d", last);
        before = ", ";
    }
    return length < size ? length : size - 1;
}

/* Logs the hosts and their ranks in one line. Hosts that do not fit are only counted. */
static void tell_places(const struct tutti_comm *comm, uint32_t nhosts)
{
    enum { HOST_BYTES = 256 }; /* room that must be left to begin with another host */
    char text[LINE_BYTES];
    size_t length = 0;
    uint32_t host;

    for (host = 0; host < nhosts && length + HOST_BYTES < sizeof text; host++) {
        if (host > 0)
            length += (size_t)snprintf(text + length, sizeof text - length, "; ");
        length += name_ranks(comm, host, text + length, sizeof text - length);
    }
    tutti_log(TUTTI_LOG_INFO, host < nhosts ? "%s; and %u more hosts" : "%s", text, nhosts - host);
}

/* Appends "KIND NAME" to the list in `text`, unless the name is empty. */
static void add_source(char *text, size_t size, const char *kind, const char *name)
{
    size_t length = strlen(text);

    if (*name != '\0')
        snprintf(text + length, size - length, "%s%s %s", length > 0 ? ", " : "", kind, name);
}

/* Logs the variables of rank 0, and the files that it has read for all ranks. */
static void tell_sources(const struct tutti_comm *comm)
{
    const struct tutti_policy *policy = comm->policy;
    const char *rules = policy != NULL ? policy->text[TUTTI_POLICY_RULE_NAME] : "";
    const char *table = policy != NULL ? policy->text[TUTTI_POLICY_TABLE_NAME] : "";
    const char *schedules = comm->schedules != NULL ? tutti_param_text(TUTTI_PARAM_SCHEDULE) : "";
    char variables[LINE_BYTES], files[LINE_BYTES] = "";

    tutti_environment_format(variables, sizeof variables);
    tutti_log(TUTTI_LOG_INFO, "variables: %s", variables);
    add_source(files, sizeof files, "rules", rules);
    add_source(files, sizeof files, "table", table);
    add_source(files, sizeof files, "schedules", schedules);
    if (*files != '\0')
        tutti_log(TUTTI_LOG_INFO, "files read: %s", files);
}

static void tell_of_all(const struct tutti_comm *comm)
{
    int nhosts = tutti_comm_host_count(comm);
    char pairs[256];

    tutti_log(TUTTI_LOG_INFO, "Tutti %s, built by %s%s%s, instruction set %s, kernels for GPUs: %s",
              tutti_version_text(), tutti_version_info.compiler,
              *tutti_version_info.type ? ", " : "", tutti_version_info.type, tutti_cpu_isa(),
              *tutti_kernel_image_architectures ? tutti_kernel_image_architectures : "none");
    tutti_log(TUTTI_LOG_INFO, "%d rank%s on %d host%s, formed in %.1f ms, bootstrap: %s%s",
              comm->nranks, comm->nranks == 1 ? "" : "s", nhosts, nhosts == 1 ? "" : "s",
              (double)(tutti_now_ns() - comm->begun_ns) / 1e6, comm->boot->ops->name,
              comm->all_have_gpus ? ", all on GPUs" : "");
    tell_places(comm, (uint32_t)nhosts);
    tutti_fabric_describe_pairs(comm->fabric, pairs, sizeof pairs);
    tutti_log(TUTTI_LOG_INFO, "transports: %s", pairs);
    tell_sources(comm);
}

static void tell_of_host(const struct tutti_comm *comm, uint32_t host)
{
    const char *name = tutti_fabric_host_name(comm->fabric, comm->rank);
    char text[LINE_BYTES];

    for (uint32_t i = 0; tutti_fabric_describe_transport(comm->fabric, i, text, sizeof text); i++)
        if (text[0] != '\0')
            tutti_log(TUTTI_LOG_INFO, "host %u '%s', %s", host, name, text);
}

void tutti_comm_report_formed(const struct tutti_comm *comm)
{
    uint32_t host = comm->hosts[comm->rank];

    if (!tutti_log_is_on(TUTTI_LOG_INFO))
        return;
    if (comm->rank == 0)
        tell_of_all(comm);
    if (comm->nranks > 1 && first_rank_of(comm, host) == comm->rank)
        tell_of_host(comm, host);
}

/* ---- later ----------------------------------------------------------------------------------- */

void tutti_comm_report_choice(const struct tutti_comm *comm, const struct tutti_tuner_query *query,
                              const char *runs_by, const char *by, bool is_new)
{
    if (comm->rank == 0)
        tutti_log(is_new ? TUTTI_LOG_INFO : TUTTI_LOG_TRACE,
                  "%s of %zu bytes a block%s runs by %s, chosen by %s",
                  tutti_collective_name(query->collective), query->block_bytes,
                  query->is_lent ? " of lent memory" : "", runs_by, by);
}

void tutti_comm_report_end(const struct tutti_comm *comm)
{
    int error = tutti_comm_failure(comm);

    if (comm->rank == 0)
        tutti_log(TUTTI_LOG_INFO, "destroyed after %.1f s and %llu operations%s%s",
                  (double)(tutti_now_ns() - comm->begun_ns) / 1e9,
                  (unsigned long long)comm->engine.history.sequence,
                  error != 0 ? "; it had failed: " : "", error != 0 ? comm->error_text : "");
}
