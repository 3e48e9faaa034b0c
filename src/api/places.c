/* SPDX-License-Identifier: Apache-2.0
 * The public functions that return the name of a communicator and the hosts of its ranks. */
#include "comm/comm.h"
#include "transport/identity.h"

#include <string.h>

_Static_assert(TUTTI_HOST_NAME_MAX == TUTTI_HOST_NAME_BYTES, "one length of names");

tuttiResult_t tuttiCommGetName(tuttiComm_t handle, const char **name)
{
    struct tutti_comm *comm;
    int rc = tutti_handle_visit(handle, "tuttiCommGetName", &comm);

    if (rc != TUTTI_OK)
        return tutti_public_result(rc);
    if (name == NULL)
        rc = tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiCommGetName: name is NULL on rank %d",
                        comm->rank);
    else
        *name = comm->name;
    tutti_handle_unvisit(handle);
    return tutti_public_result(rc);
}

/* Returns TUTTI_OK if the hosts of the ranks are known, as they are once the communicator is
 * formed. */
static int check_places(struct tutti_comm *comm, const char *function)
{
    if (tutti_comm_state(comm) == TUTTI_COMM_FORMING)
        return tutti_fail(TUTTI_ERR_USAGE, "%s: comm (rank %d) is still being formed; call "
                          "tuttiCommGetAsyncError until it is not tuttiInProgress", function,
                          comm->rank);
    if (comm->hosts == NULL)
        return tutti_comm_error(comm); /* forming failed before the hosts were known */
    return TUTTI_OK;
}

static int count_hosts(struct tutti_comm *comm, int *ret_hosts)
{
    TUTTI_TRY(check_places(comm, "tuttiCommHostCount"));
    if (ret_hosts == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiCommHostCount: hosts is NULL on rank %d",
                          comm->rank);
    *ret_hosts = tutti_comm_host_count(comm);
    return TUTTI_OK;
}

tuttiResult_t tuttiCommHostCount(tuttiComm_t handle, int *hosts)
{
    struct tutti_comm *comm;
    int rc = tutti_handle_visit(handle, "tuttiCommHostCount", &comm);

    if (rc == TUTTI_OK) {
        rc = count_hosts(comm, hosts);
        tutti_handle_unvisit(handle);
    }
    return tutti_public_result(rc);
}

static int get_rank_info(struct tutti_comm *comm, int rank, tuttiRankInfo_t *info)
{
    const char *function = "tuttiCommGetRankInfo";
    tuttiRankInfo_t known = {.size = 0};

    TUTTI_TRY(check_places(comm, function));
    if (rank < 0 || rank >= comm->nranks)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: rank %d is not one of 0 to %d", function, rank,
                          comm->nranks - 1);
    if (info == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: info is NULL on rank %d", function, comm->rank);
    TUTTI_TRY(tutti_public_check_size(function, "info", "tuttiRankInfo_t", info->size));
    known.host = (int)comm->hosts[rank];
    known.pid = tutti_fabric_pid(comm->fabric, rank);
    for (int other = 0; other < comm->nranks; other++) {
        bool is_there = comm->hosts[other] == comm->hosts[rank];

        known.localCount += is_there;
        known.localRank += is_there && other < rank;
    }
    memcpy(known.hostName, tutti_fabric_host_name(comm->fabric, rank), sizeof known.hostName);
    tutti_public_copy(&known, sizeof known, info);
    return TUTTI_OK;
}

tuttiResult_t tuttiCommGetRankInfo(tuttiComm_t handle, int rank, tuttiRankInfo_t *info)
{
    struct tutti_comm *comm;
    int rc = tutti_handle_visit(handle, "tuttiCommGetRankInfo", &comm);

    if (rc == TUTTI_OK) {
        rc = get_rank_info(comm, rank, info);
        tutti_handle_unvisit(handle);
    }
    return tutti_public_result(rc);
}
