/* SPDX-License-Identifier: Apache-2.0
 * Forms a communicator in a list of named phases. A phase that must wait returns TUTTI_AGAIN, and
 * the next pass resumes it, so that one thread can form several communicators. */
#include "base/clock.h"
#include "base/interface.h"
#include "base/param.h"
#include "bootstrap/claim.h"
#include "gpu/comm_gpu.h"
#include "topology/home/home.h"

#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A failure is not yet an error here, because all ranks learn of the failure in the exchange of
 * verdicts. */
static int read_schedules(struct tutti_comm *comm)
{
    if (comm->rank == 0) {
        int rc = tutti_schedules_read(&comm->share, (uint32_t)comm->nranks, &comm->schedules);

        if (rc != TUTTI_OK)
            tutti_share_fail(&comm->share, rc, tutti_message_last());
    }
    return TUTTI_OK;
}

/* A rank that cannot take part still joins this exchange, to tell the others why. */
static int exchange_records(struct tutti_comm *comm)
{
    uint8_t declined[TUTTI_FABRIC_RECORD_BYTES];
    const void *mine = declined;

    if (comm->declines == TUTTI_OK)
        mine = tutti_fabric_record(comm->fabric);
    else
        tutti_fabric_decline(comm->nranks, comm->rank, comm->declines, comm->why_declines,
                             declined);
    TUTTI_TRY(comm->boot->ops->allgather(comm->boot, mine, TUTTI_FABRIC_RECORD_BYTES,
                                         comm->gathered));
    if (comm->declines != TUTTI_OK)
        return comm->declines;
    /* Ranks that meet at a store agree on the secret in the first round, so only now is the secret
     * known. */
    memcpy(comm->secret, comm->boot->secret, sizeof comm->secret);
    tutti_fabric_set_secret(comm->fabric, comm->secret);
    return TUTTI_OK;
}

static int join_hosts(struct tutti_comm *comm)
{
    return tutti_fabric_join(comm->fabric, comm->gathered);
}

/* Offset of the GPU's bytes in a rank's record of the second exchange. */
#define TUTTI_GPU_VERDICT_AT (TUTTI_FABRIC_VERDICT_BYTES + TUTTI_SHARE_HEAD_BYTES)
_Static_assert(TUTTI_COMM_VERDICT_BYTES <= TUTTI_FABRIC_RECORD_BYTES,
               "comm->gathered has room for verdicts");

static int exchange_verdicts(struct tutti_comm *comm)
{
    uint8_t mine[TUTTI_COMM_VERDICT_BYTES];

    memcpy(mine, tutti_fabric_verdict(comm->fabric), TUTTI_FABRIC_VERDICT_BYTES);
    tutti_share_head(&comm->share, mine + TUTTI_FABRIC_VERDICT_BYTES);
    memset(mine + TUTTI_GPU_VERDICT_AT, comm->gpu != NULL, TUTTI_GPU_VERDICT_BYTES);
    TUTTI_TRY(comm->boot->ops->allgather(comm->boot, mine, sizeof mine, comm->gathered));
    TUTTI_TRY(tutti_share_expect(&comm->share, comm->gathered + TUTTI_FABRIC_VERDICT_BYTES,
                                 comm->nranks, comm->rank));
    comm->all_have_gpus = true;
    for (size_t rank = 0; rank < (size_t)comm->nranks; rank++)
        if (!comm->gathered[rank * TUTTI_COMM_VERDICT_BYTES + TUTTI_GPU_VERDICT_AT])
            comm->all_have_gpus = false;
    /* tutti_fabric_settle expects the fabric's verdicts without gaps. */
    for (size_t rank = 1; rank < (size_t)comm->nranks; rank++)
        memmove(comm->gathered + rank * TUTTI_FABRIC_VERDICT_BYTES,
                comm->gathered + rank * TUTTI_COMM_VERDICT_BYTES, TUTTI_FABRIC_VERDICT_BYTES);
    return TUTTI_OK;
}

static int settle(struct tutti_comm *comm)
{
    return tutti_fabric_settle(comm->fabric, comm->gathered);
}

static int share_bytes(struct tutti_comm *comm)
{
    return tutti_share_progress(&comm->share, comm->fabric, comm->nranks, comm->rank);
}

/* Frees the shared bytes. Other ranks of this process may still be copying from these bytes, so
 * wait for these ranks first. */
static void end_sharing(struct tutti_comm *comm)
{
    if (comm->share.total_bytes > 0 && comm->fabric != NULL) {
        tutti_fabric_abort(comm->fabric, TUTTI_ERR_USAGE, "was destroyed before it was formed");
        tutti_fabric_drain(comm->fabric);
    }
    tutti_share_fini(&comm->share);
}

static int take_schedules(struct tutti_comm *comm)
{
    if (comm->rank == 0)
        return TUTTI_OK;
    return tutti_schedules_take(&comm->share, (uint32_t)comm->nranks, (uint32_t)comm->rank,
                                &comm->schedules);
}

static int start_engine(struct tutti_comm *comm)
{
    TUTTI_TRY(tutti_engine_init(&comm->engine, comm->fabric, comm->nranks, comm->rank));
    TUTTI_TRY(tutti_engine_numbers_init(&comm->numbering, comm->nranks));
    TUTTI_TRY(tutti_cache_create(&comm->cache));
    return TUTTI_OK;
}

static int meet_gpus(struct tutti_comm *comm)
{
    return comm->all_have_gpus ? tutti_gpu_comm_form(comm) : TUTTI_OK;
}

static const struct {
    const char *name;
    int (*step)(struct tutti_comm *comm);
    bool is_exchange; /* a round of the bootstrap: there may be a descriptor to sleep on */
} phases[] = {
    {"reading of schedules", read_schedules, false},
    {"exchange of addresses", exchange_records, true},
    {"joining the ranks of a host", join_hosts, false},
    {"exchange of what each host supports", exchange_verdicts, true},
    {"choice of transports", settle, false},
    {"sharing of the files of rank 0", share_bytes, false},
    {"proof of the schedules of rank 0", take_schedules, false},
    {"start of the engine", start_engine, false},
    {"description of the machine", tutti_choices_fill_view, false},
    {"meeting of the GPUs", meet_gpus, false},
};

enum { PHASES = sizeof phases / sizeof *phases };

/* Reads the user's description of the host, which may tell more than the kernel does. */
static int load_home(const struct tutti_comm *comm, struct tutti_home *home,
                     char ret_interface[TUTTI_INTERFACE_NAME_BYTES])
{
    const char *file = tutti_param_text(TUTTI_PARAM_TOPO_FILE);
    char why[TUTTI_MESSAGE_BYTES / 2], port[TUTTI_HOME_PORT_BYTES];

    if (file[0] == '\0')
        return TUTTI_OK;
    /* For tools this means standard input, which belongs to the program. It may never end. */
    if (strcmp(file, "-") == 0)
        return tutti_fail(TUTTI_ERR_USAGE, "TUTTI_TOPO_FILE on rank %d is -, but ranks do not read "
                          "standard input; give a file that describes this host", comm->rank);
    if (tutti_home_load(file, (uint32_t)comm->rank, home, port) == TUTTI_OK) {
        (void)tutti_interface_of_port("", port, ret_interface);
        return TUTTI_OK;
    }
    snprintf(why, sizeof why, "%s", tutti_message_last());
    return tutti_fail(TUTTI_ERR_USAGE, "TUTTI_TOPO_FILE on rank %d: %s; unset it, or give a file "
                      "that describes this host", comm->rank, why);
}

/* Finds the cells of its host in which this rank runs, which become part of the rank's record, and
 * the network interface near it, if the user's description tells one. */
static int find_home(const struct tutti_comm *comm, int32_t ret_cells[TUTTI_CELL_LEVELS],
                     char ret_interface[TUTTI_INTERFACE_NAME_BYTES])
{
    const char *cells = tutti_param_text(TUTTI_PARAM_CELLS);
    struct tutti_home home, described;

    _Static_assert(TUTTI_CELL_LEVELS == 3, "package, memory, cache");
    TUTTI_TRY(tutti_home_read(cells, (uint32_t)comm->rank, &home));
    described = home;
    TUTTI_TRY(load_home(comm, &described, ret_interface));
    if (strcmp(cells, "auto") == 0)
        home = described;
    ret_cells[0] = home.package;
    ret_cells[1] = home.memory;
    ret_cells[2] = home.cache;
    return TUTTI_OK;
}

/* The part of forming that needs no other rank. */
static int open_own(struct tutti_comm *comm, const struct tutti_settings *settings)
{
    struct tutti_fabric_args args = {.nranks = comm->nranks, .rank = comm->rank,
                                     .deadline_ns = comm->deadline_ns};
    char interface[TUTTI_INTERFACE_NAME_BYTES] = "";

    TUTTI_TRY(tutti_choices_read(comm, settings->parent));
    TUTTI_TRY(find_home(comm, args.cells, interface));
    args.nearest = interface;
    TUTTI_TRY(tutti_gpu_comm_open(comm, settings->device, settings->parent));
    return tutti_fabric_open(&args, &comm->fabric);
}

int tutti_comm_create(struct tutti_bootstrap *boot, const struct tutti_settings *settings,
                      struct tutti_comm **ret_comm)
{
    struct tutti_comm *comm = calloc(1, sizeof *comm);

    if (comm == NULL) {
        boot->ops->destroy(boot, "out of memory");
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a communicator");
    }
    pthread_mutex_init(&comm->error_lock, NULL);
    pthread_mutex_init(&comm->issue_lock, NULL);
    comm->boot = boot;
    comm->nranks = boot->nranks;
    comm->rank = boot->rank;
    comm->is_blocking = settings->is_blocking;
    comm->init_timeout_ms = settings->init_timeout_ms;
    comm->timeout_ms = settings->timeout_ms;
    comm->deadline_ns = boot->deadline_ns;
    memcpy(comm->name, settings->name, sizeof comm->name);
    comm->scope = (struct tutti_log_scope){.rank = comm->rank, .nranks = comm->nranks,
                                           .name = comm->name};
    comm->begun_ns = comm->noticed_ns = tutti_now_ns();
    tutti_log_enter(&comm->scope);
    tutti_comm_report_begin(comm);

    comm->gathered = malloc((size_t)comm->nranks * TUTTI_FABRIC_RECORD_BYTES);
    if (comm->gathered == NULL) {
        int rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory for the records of %d ranks",
                            comm->nranks);

        tutti_comm_fail(comm, rc, tutti_message_last());
        tutti_comm_free(comm);
        return rc;
    }
    comm->declines = open_own(comm, settings);
    if (comm->declines != TUTTI_OK)
        tutti_message_copy(comm->why_declines, sizeof comm->why_declines, tutti_message_last());
    /* A wrong argument is the caller's mistake, so it is reported at once, as in other calls. */
    if (comm->declines == TUTTI_ERR_ARGUMENT) {
        tutti_comm_fail(comm, TUTTI_ERR_ARGUMENT, comm->why_declines);
        tutti_comm_free(comm);
        return TUTTI_ERR_ARGUMENT;
    }
    *ret_comm = comm;
    return TUTTI_OK;
}

/* At the deadline the ranks of an exchange tell each other which ranks are missing. Wait this long
 * for that message, which is better than the one of tutti_comm_form. */
#define LAST_WORDS_NS (3 * TUTTI_NS_PER_S)

static bool is_too_late(const struct tutti_comm *comm, uint64_t now_ns)
{
    uint64_t grace_ns = phases[comm->phase].is_exchange ? LAST_WORDS_NS : 0;

    return now_ns >= comm->deadline_ns && now_ns - comm->deadline_ns >= grace_ns;
}

int tutti_comm_form(struct tutti_comm *comm)
{
    tutti_assert(comm->boot != NULL && comm->phase <= PHASES);
    while (comm->phase < PHASES) {
        /* Read the clock before the step: a step that itself sees the deadline pass knows which
         * ranks are missing, and reports that. */
        uint64_t now_ns = tutti_now_ns();
        int rc;

        tutti_log_enter(&comm->scope);
        rc = phases[comm->phase].step(comm);
        if (rc == TUTTI_AGAIN && is_too_late(comm, now_ns))
            rc = tutti_fail(TUTTI_ERR_TIMEOUT,
                            "rank %d of %d: %s has not ended within %d ms; check that all ranks "
                            "were started and can reach each other, or raise TUTTI_INIT_TIMEOUT_MS",
                            comm->rank, comm->nranks, phases[comm->phase].name,
                            comm->init_timeout_ms);
        if (rc == TUTTI_AGAIN) {
            tutti_comm_report_missing(comm, phases[comm->phase].name);
            return TUTTI_AGAIN;
        }
        if (rc != TUTTI_OK && comm->declines != TUTTI_OK) {
            rc = comm->declines; /* even if the exchange failed because other ranks are missing */
            tutti_message_set_last(comm->why_declines);
        }
        if (rc != TUTTI_OK)
            return tutti_comm_fail(comm, rc, tutti_message_last());
        comm->phase++;
    }
    tutti_comm_report_formed(comm);
    comm->claim = comm->boot->claim;
    comm->boot->claim = NULL;
    comm->boot->ops->destroy(comm->boot, NULL);
    comm->boot = NULL;
    free(comm->gathered);
    comm->gathered = NULL;
    tutti_share_fini(&comm->share);
    return tutti_comm_set_state(comm, TUTTI_COMM_READY);
}

/* The pause between two passes is short, but grows with the number of ranks. Otherwise hundreds of
 * ranks on a few cores would poll all the time, and take the cores from ranks with work. */
enum { IDLE_LEAST_US = 200, IDLE_US_PER_RANK = 10, IDLE_MOST_MS = 5 };

void tutti_comm_form_idle(struct tutti_comm *comm)
{
    int fd = comm->boot ? comm->boot->ops->wait_fd(comm->boot) : -1;
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    long pause_us = IDLE_US_PER_RANK * (long)comm->nranks;

    pause_us = pause_us < IDLE_LEAST_US ? IDLE_LEAST_US : pause_us;
    pause_us = pause_us > IDLE_MOST_MS * 1000 ? IDLE_MOST_MS * 1000 : pause_us;
    /* Other phases also wait for events that no descriptor signals. */
    if (fd >= 0 && comm->phase < PHASES && phases[comm->phase].is_exchange)
        poll(&poll_fd, 1, tutti_system_timeout_ms(IDLE_MOST_MS));
    else
        tutti_pause_ns((uint64_t)pause_us * 1000);
}

void tutti_comm_free(struct tutti_comm *comm)
{
    /* The bootstrap sends at most half a message to the peers. */
    char message[TUTTI_MESSAGE_BYTES], reason[TUTTI_MESSAGE_BYTES / 2];

    if (comm == NULL)
        return;
    tutti_log_enter(&comm->scope);
    /* A proxy may fail the communicator even now. */
    tutti_message_copy(reason, sizeof reason,
                       tutti_comm_failure(comm) != 0 ? comm->error_text : "it was abandoned");
    /* Errors of peers during the shutdown must not replace the caller's last message. */
    snprintf(message, sizeof message, "%s", tutti_message_last());
    if (comm->boot != NULL)
        comm->boot->ops->destroy(comm->boot, reason);
    end_sharing(comm);
    tutti_gpu_comm_free(comm);
    if (comm->fabric != NULL)
        tutti_fabric_leave(comm->fabric);
    tutti_choices_fini(comm);
    tutti_cache_destroy(comm->cache);
    tutti_schedules_destroy(comm->schedules);
    tutti_engine_fini(&comm->engine);
    tutti_engine_numbers_fini(&comm->numbering);
    tutti_fabric_destroy(comm->fabric);
    tutti_claim_release(comm->claim);
    free(comm->gathered);
    free(comm->redops);
    pthread_mutex_destroy(&comm->issue_lock);
    pthread_mutex_destroy(&comm->error_lock);
    tutti_log_enter(NULL);
    sodium_memzero(comm->secret, sizeof comm->secret);
    free(comm);
    tutti_message_set_last(message);
}

int tutti_comm_set_state(struct tutti_comm *comm, int state)
{
    bool has_failed;

    pthread_mutex_lock(&comm->error_lock);
    has_failed = comm->error != 0;
    if (!has_failed)
        /* release: pairs with the acquire in tutti_comm_state */
        tutti_store_release(&comm->state, state);
    pthread_mutex_unlock(&comm->error_lock);
    return has_failed ? tutti_comm_error(comm) : TUTTI_OK;
}

int tutti_comm_fail(struct tutti_comm *comm, int rc, const char *message)
{
    bool is_first;

    pthread_mutex_lock(&comm->error_lock);
    is_first = comm->error == 0;
    if (is_first) {
        tutti_message_copy(comm->error_text, sizeof comm->error_text, message);
        /* release: pairs with the acquire in tutti_comm_failure; error_text is complete */
        tutti_store_release(&comm->error, rc);
        tutti_store_release(&comm->state, TUTTI_COMM_FAILED);
    }
    pthread_mutex_unlock(&comm->error_lock);
    if (is_first && comm->gpu != NULL && comm->gpu->gpu != NULL)
        tutti_cuda_abort(comm->gpu->gpu);
    if (is_first && comm->fabric != NULL) {
        tutti_fabric_abort(comm->fabric, rc, comm->error_text);
        tutti_fabric_wake(comm->fabric);
    }
    if (is_first && comm->gpu != NULL)
        tutti_gpu_network_abort(comm->gpu, rc, comm->error_text);
    return rc;
}

int tutti_comm_error(struct tutti_comm *comm)
{
    int rc = tutti_comm_failure(comm);

    if (rc != 0)
        tutti_message_set_last(comm->error_text);
    return rc;
}
