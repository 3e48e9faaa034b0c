/* SPDX-License-Identifier: Apache-2.0
 * The public functions that make communicators. Each makes its own kind of bootstrap; all further
 * steps are the same. */
#include "base/clock.h"
#include "base/param.h"
#include "queue/group.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static int check_ranks(const char *function, tuttiComm_t *comm, int nranks, int rank)
{
    if (comm == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: comm is NULL", function);
    if (nranks < 1)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: nranks is %d; it must be at least 1", function,
                          nranks);
    if (rank < 0 || rank >= nranks)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: rank %d is not one of 0 to %d", function, rank,
                          nranks - 1);
    return TUTTI_OK;
}

/* The job that forms a new communicator, at once or at the end of a group. */
struct forming {
    struct tutti_job job;
    struct tutti_comm *comm;
    tuttiComm_t handle;
    tuttiComm_t *ret_handle; /* the caller's variable, set when the job ends */
};

/* The job of a non-blocking communicator ends after its first steps; tuttiCommGetAsyncError
 * continues to form it. */
static int progress(struct tutti_job *job)
{
    struct tutti_comm *comm = ((struct forming *)job)->comm;
    int rc = tutti_comm_form(comm);

    return rc == TUTTI_AGAIN && !comm->is_blocking ? TUTTI_OK : rc;
}

static void idle(struct tutti_job *job)
{
    tutti_comm_form_idle(((struct forming *)job)->comm);
}

static int close_forming(struct tutti_job *job, int rc)
{
    struct forming *forming = (struct forming *)job;

    if (rc == TUTTI_OK) {
        *forming->ret_handle = forming->handle;
    } else {
        tutti_handle_release(forming->handle);
        tutti_comm_free(forming->comm);
    }
    free(forming);
    return rc;
}

/* Makes a communicator from a bootstrap, and forms it. Takes over `boot`, also on failure. A
 * non-blocking communicator only begins to form. Outside of groups the result is TUTTI_AGAIN if it
 * still forms. */
static int begin(struct tutti_bootstrap *boot, const struct tutti_settings *settings,
                 tuttiComm_t *ret_handle)
{
    struct forming *forming;
    struct tutti_comm *comm;
    tuttiComm_t handle;

    TUTTI_TRY(tutti_comm_create(boot, settings, &comm));
    handle = tutti_handle_create(comm);
    forming = malloc(sizeof *forming);
    if (handle == NULL || forming == NULL) {
        if (handle != NULL)
            tutti_handle_release(handle);
        free(forming);
        tutti_comm_free(comm);
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a communicator's handle");
    }
    *forming = (struct forming){
        .job = {.progress = progress, .idle = idle, .close = close_forming},
        .comm = comm, .handle = handle, .ret_handle = ret_handle};
    TUTTI_TRY(tutti_group_job(&forming->job));
    if (!settings->is_blocking && !tutti_group_is_open() &&
        tutti_comm_state(comm) == TUTTI_COMM_FORMING)
        return TUTTI_AGAIN;
    return TUTTI_OK;
}

static uint64_t deadline_of(const struct tutti_settings *settings)
{
    return tutti_deadline_ns(settings->init_timeout_ms);
}

/* ---- unique ids ------------------------------------------------------------------------------ */

tuttiResult_t tuttiGetUniqueId(tuttiUniqueId *uniqueId)
{
    uint8_t id[TUTTI_UNIQUE_ID_SIZE];
    int rc;

    _Static_assert(TUTTI_UNIQUE_ID_SIZE == TUTTI_UNIQUE_ID_BYTES, "one size of id");
    if (uniqueId == NULL)
        return tutti_public_result(
            tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiGetUniqueId: uniqueId is NULL"));
    rc = tutti_unique_id_create(id);
    if (rc == TUTTI_OK)
        memcpy(uniqueId->internal, id, sizeof id);
    return tutti_public_result(rc);
}

static int init_rank(const char *function, tuttiComm_t *comm, int nranks,
                     const tuttiUniqueId *commId, int rank, const tuttiConfig_t *config)
{
    struct tutti_settings settings;
    struct tutti_bootstrap *boot;

    TUTTI_TRY(check_ranks(function, comm, nranks, rank));
    TUTTI_TRY(tutti_settings_read(config, NULL, &settings));
    TUTTI_TRY(tutti_bootstrap_from_id((const uint8_t *)commId->internal, nranks, rank,
                                      deadline_of(&settings), &boot));
    return begin(boot, &settings, comm);
}

tuttiResult_t tuttiCommInitRank(tuttiComm_t *comm, int nranks, tuttiUniqueId commId, int rank)
{
    return tutti_public_result(tutti_group_note(
        init_rank("tuttiCommInitRank", comm, nranks, &commId, rank, NULL)));
}

/* TUTTI_AGAIN of a non-blocking communicator that is being formed must not fail an open group. */
static tuttiResult_t noted(int rc)
{
    return tutti_public_result(rc == TUTTI_AGAIN ? rc : tutti_group_note(rc));
}

tuttiResult_t tuttiCommInitRankConfig(tuttiComm_t *comm, int nranks, tuttiUniqueId commId, int rank,
                                      const tuttiConfig_t *config)
{
    return noted(init_rank("tuttiCommInitRankConfig", comm, nranks, &commId, rank, config));
}

static int init_all(tuttiComm_t *comms, int ndev, const int *devlist)
{
    tuttiUniqueId id;
    tuttiResult_t result;

    if (comms == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiCommInitAll: comms is NULL; pass an array of "
                                              "ndev entries");
    if (ndev < 1)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiCommInitAll: ndev is %d; it must be at least 1",
                          ndev);
    for (int rank = 0; devlist != NULL && rank < ndev; rank++)
        if (devlist[rank] < -1)
            return tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiCommInitAll: devlist[%d] is %d; it must be "
                              "a GPU's number, or -1 for the CPU", rank, devlist[rank]);
    if (tutti_group_is_open())
        return tutti_fail(TUTTI_ERR_USAGE, "tuttiCommInitAll: not inside a group; use "
                          "tuttiCommInitRank there");
    result = tuttiGetUniqueId(&id);
    if (result != tuttiSuccess)
        return -(int)result;
    memset(comms, 0, (size_t)ndev * sizeof *comms);
    tuttiGroupStart();
    for (int rank = 0; rank < ndev; rank++) {
        tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;

        config.device = devlist != NULL ? devlist[rank] : -1;
        tutti_group_note(init_rank("tuttiCommInitAll", &comms[rank], ndev, &id, rank, &config));
    }
    result = tuttiGroupEnd();
    /* The caller gets all communicators or none. */
    for (int rank = 0; result != tuttiSuccess && rank < ndev; rank++) {
        tuttiCommDestroy(comms[rank]);
        comms[rank] = NULL;
    }
    return -(int)result;
}

tuttiResult_t tuttiCommInitAll(tuttiComm_t *comms, int ndev, const int *devlist)
{
    return tutti_public_result(init_all(comms, ndev, devlist));
}

/* ---- stores, launchers, embedders ------------------------------------------------------------ */

/* The keys of TUTTI_ENCRYPT are derived from the secret. Ranks that meet by a unique id, by a
 * directory or at a Unix socket of one host have a secret that others cannot read. Over TCP the
 * secret is the caller's, and without one anybody could compute the keys. */
static int check_secret(const char *function, const char *store, const char *secret)
{
    const char *encrypt = tutti_param_text(TUTTI_PARAM_ENCRYPT);

    if (strncmp(store, "tcp:", 4) != 0 || strcmp(encrypt, "off") == 0 ||
        (secret != NULL && *secret != '\0'))
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_USAGE, "%s: TUTTI_ENCRYPT=%s needs a secret, since ranks that meet "
                      "at %s have none of their own; set TUTTI_SECRET, or pass `secret`, to the "
                      "same text on all ranks", function, encrypt, store);
}

/* meeting.name is set here, to the communicator's name in the configuration. */
static int init_store(const char *function, tuttiComm_t *comm, int nranks, int rank,
                      struct tutti_meeting meeting, const tuttiConfig_t *config)
{
    struct tutti_settings settings;
    struct tutti_bootstrap *boot;

    TUTTI_TRY(check_ranks(function, comm, nranks, rank));
    if (meeting.store == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: store is NULL; pass \"file:DIRECTORY\", "
                          "\"unix:NAME\" or \"tcp:HOST:PORT\"", function);
    if (nranks > 1)
        TUTTI_TRY(check_secret(function, meeting.store, meeting.secret));
    TUTTI_TRY(tutti_settings_read(config, NULL, &settings));
    meeting.name = settings.name;
    TUTTI_TRY(tutti_meeting_own(&meeting, nranks, rank));
    TUTTI_TRY(tutti_bootstrap_meet(&meeting, nranks, rank, deadline_of(&settings), &boot));
    return begin(boot, &settings, comm);
}

tuttiResult_t tuttiCommInitStore(tuttiComm_t *comm, int nranks, int rank, const char *store,
                                 const char *secret, const tuttiConfig_t *config)
{
    return noted(init_store("tuttiCommInitStore", comm, nranks, rank,
                            (struct tutti_meeting){.store = store, .secret = secret}, config));
}

static int init_alone(const char *function, tuttiComm_t *comm, const tuttiConfig_t *config)
{
    struct tutti_settings settings;
    struct tutti_bootstrap *boot;

    TUTTI_TRY(check_ranks(function, comm, 1, 0));
    TUTTI_TRY(tutti_settings_read(config, NULL, &settings));
    TUTTI_TRY(tutti_bootstrap_alone(&boot));
    return begin(boot, &settings, comm);
}

static int init_from_env(tuttiComm_t *comm, const tuttiConfig_t *config)
{
    const char *function = "tuttiCommInitFromEnv";
    struct tutti_launch launch;
    int rc;

    TUTTI_TRY(tutti_launch_detect(&launch));
    rc = launch.store[0] == '\0'
             ? init_alone(function, comm, config)
             : init_store(function, comm, launch.nranks, launch.rank,
                          (struct tutti_meeting){.store = launch.store, .secret = launch.secret,
                                                 .job = launch.job},
                          config);
    sodium_memzero(&launch, sizeof launch);
    return rc;
}

tuttiResult_t tuttiCommInitFromEnv(tuttiComm_t *comm, const tuttiConfig_t *config)
{
    return noted(init_from_env(comm, config));
}

static int init_callback(tuttiComm_t *comm, int nranks, int rank, tuttiAllGatherFn_t allGather,
                         void *context, const tuttiConfig_t *config)
{
    const char *function = "tuttiCommInitCallback";
    struct tutti_settings settings;
    struct tutti_bootstrap *boot;

    TUTTI_TRY(check_ranks(function, comm, nranks, rank));
    if (allGather == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: allGather is NULL; pass a function", function);
    if (tutti_group_is_open())
        return tutti_fail(TUTTI_ERR_USAGE,
                          "%s: not inside a group, because the callback blocks; "
                          "call it after tuttiGroupEnd",
                          function);
    TUTTI_TRY(tutti_settings_read(config, NULL, &settings));
    settings.is_blocking = true;
    TUTTI_TRY(tutti_bootstrap_from_callback(allGather, context, nranks, rank,
                                            deadline_of(&settings), &boot));
    return begin(boot, &settings, comm);
}

tuttiResult_t tuttiCommInitCallback(tuttiComm_t *comm, int nranks, int rank,
                                    tuttiAllGatherFn_t allGather, void *context,
                                    const tuttiConfig_t *config)
{
    return noted(init_callback(comm, nranks, rank, allGather, context, config));
}
