/* SPDX-License-Identifier: Apache-2.0
 * Makes and destroys pre-multiplied sums, and looks up the reduction operation of a call. */
#include "api/api.h"

#include <stdlib.h>
#include <string.h>

/* An operation's number consists of three parts. The first is its index in the table of its
 * communicator. The second counts how often that entry was used, so that a destroyed operation is
 * rejected although a later one has its entry. The third is the communicator's serial number, so
 * that an operation of another communicator is rejected. All together are below tuttiMaxRedOp, even
 * after tuttiNumOps was added. */
enum { INDEX_BITS = 12, USE_BITS = 8, SERIAL_BITS = 10 };

static int number_of(const struct tutti_comm *comm, int index)
{
    int serial = (int)(comm->serial & ((1u << SERIAL_BITS) - 1));
    int use = comm->redops[index].use;

    return tuttiNumOps + (((serial << USE_BITS | use) << INDEX_BITS) | index);
}

/* Returns the operation with the number `op`, or NULL if the communicator has none. */
static struct tutti_redop *find(const struct tutti_comm *comm, int op)
{
    int index = (op - tuttiNumOps) & ((1 << INDEX_BITS) - 1);

    if (op < tuttiNumOps || index >= comm->redop_count || number_of(comm, index) != op ||
        !comm->redops[index].is_used)
        return NULL;
    return &comm->redops[index];
}

int tutti_api_resolve_redop(const struct tutti_comm *comm, const char *function, int op,
                            tuttiDataType_t type, struct tutti_call *call)
{
    static const enum tutti_op builtin[] = {[tuttiSum] = TUTTI_SUM,   [tuttiProd] = TUTTI_PROD,
                                            [tuttiMax] = TUTTI_MAX,   [tuttiMin] = TUTTI_MIN,
                                            [tuttiAvg] = TUTTI_SUM,   [tuttiBand] = TUTTI_BAND,
                                            [tuttiBor] = TUTTI_BOR,   [tuttiBxor] = TUTTI_BXOR,
                                            [tuttiLand] = TUTTI_LAND, [tuttiLor] = TUTTI_LOR,
                                            [tuttiLxor] = TUTTI_LXOR};
    const struct tutti_redop *redop;

    if (op == tuttiAvg && !tutti_collective_can_average(call->collective))
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "%s: op tuttiAvg on rank %d, but the ranks combine different numbers of "
                          "inputs, so there is no common divisor; use tuttiSum and divide the "
                          "result", function, comm->rank);
    if (op >= 0 && op < tuttiNumOps) {
        if (!tutti_op_takes(builtin[op], (enum tutti_type)type))
            return tutti_fail(TUTTI_ERR_ARGUMENT,
                              "%s: op %d (%s) on rank %d is not defined for datatype %d (%s); use "
                              "bool, a type of integers, or a sum, product, maximum, minimum or "
                              "average",
                              function, op, tutti_op_name(builtin[op]), comm->rank, (int)type,
                              tutti_type_name((enum tutti_type)type));
        if (op == tuttiAvg && !tutti_type_is_scaled((enum tutti_type)type))
            return tutti_fail(TUTTI_ERR_ARGUMENT,
                              "%s: op %d (avg) on rank %d is not defined for datatype %d (bool); "
                              "use tuttiLor or tuttiLand, or average integers",
                              function, op, comm->rank, (int)type);
        call->op = builtin[op];
        call->is_average = op == tuttiAvg;
        return TUTTI_OK;
    }
    redop = find(comm, op);
    if (redop == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "%s: op %d is no operation of rank %d's communicator; "
                          "use a tuttiRedOp_t, or one made by tuttiRedOpCreatePreMulSum on it",
                          function, op, comm->rank);
    if (redop->type != type)
        return tutti_fail(TUTTI_ERR_ARGUMENT,
                          "%s: op %d was made for data type %d, not %d; make one "
                          "for each type",
                          function, op, (int)redop->type, (int)type);
    call->op = TUTTI_SUM;
    call->is_premultiplied = true;
    call->scalar_address = redop->address;
    memcpy(call->scalar, redop->scalar, sizeof call->scalar);
    return TUTTI_OK;
}

/* Finds a free entry in the communicator's table, which grows if it is full. */
static int find_free_index(struct tutti_comm *comm, int *ret_index)
{
    struct tutti_redop *grown;
    int count;

    for (int i = 0; i < comm->redop_count; i++)
        if (!comm->redops[i].is_used) {
            *ret_index = i;
            return TUTTI_OK;
        }
    if (comm->redop_count == 1 << INDEX_BITS)
        return tutti_fail(TUTTI_ERR_USAGE, "rank %d's communicator has %d operations already; free "
                          "some by tuttiRedOpDestroy", comm->rank, comm->redop_count);
    count = comm->redop_count ? 2 * comm->redop_count : 4;
    grown = realloc(comm->redops, (size_t)count * sizeof *grown);
    if (grown == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for %d operations", count);
    memset(grown + comm->redop_count, 0, (size_t)(count - comm->redop_count) * sizeof *grown);
    *ret_index = comm->redop_count;
    comm->redops = grown;
    comm->redop_count = count;
    return TUTTI_OK;
}

static int create(tuttiRedOp_t *op, const void *scalar, tuttiDataType_t datatype,
                  tuttiScalarResidence_t residence, struct tutti_comm *comm)
{
    const char *function = "tuttiRedOpCreatePreMulSum";
    struct tutti_redop *redop;
    int index;

    if (op == NULL || scalar == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: %s is NULL on rank %d", function,
                          op == NULL ? "op" : "scalar", comm->rank);
    if ((unsigned)datatype >= tuttiNumTypes)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: datatype %d is unknown; use a tuttiDataType_t",
                          function, (int)datatype);
    if (!tutti_type_is_scaled((enum tutti_type)datatype))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: datatype %d (bool) has no pre-multiplied sums "
                          "(rank %d); use tuttiUint8", function, (int)datatype, comm->rank);
    if (residence != tuttiScalarDevice && residence != tuttiScalarHostImmediate)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: residence %d is unknown; use a "
                          "tuttiScalarResidence_t", function, (int)residence);
    TUTTI_TRY(find_free_index(comm, &index));
    redop = &comm->redops[index];
    *redop = (struct tutti_redop){.is_used = true, .type = datatype,
                                  .use = (uint8_t)(redop->use + 1)}; /* wraps at USE_BITS */
    if (residence == tuttiScalarDevice)
        redop->address = scalar;
    else
        memcpy(redop->scalar, scalar, tutti_type_size((enum tutti_type)datatype));
    *op = (tuttiRedOp_t)number_of(comm, index);
    return TUTTI_OK;
}

tuttiResult_t tuttiRedOpCreatePreMulSum(tuttiRedOp_t *op, void *scalar, tuttiDataType_t datatype,
                                        tuttiScalarResidence_t residence, tuttiComm_t handle)
{
    struct tutti_comm *comm;
    int rc = tutti_handle_enter_ready(handle, "tuttiRedOpCreatePreMulSum", &comm);

    if (rc == TUTTI_OK) {
        rc = create(op, scalar, datatype, residence, comm);
        tutti_comm_leave(comm);
    }
    return tutti_public_result(rc);
}

static int destroy(tuttiRedOp_t op, const struct tutti_comm *comm)
{
    struct tutti_redop *redop = find(comm, (int)op);

    if (redop == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiRedOpDestroy: op %d was not made by "
                          "tuttiRedOpCreatePreMulSum on rank %d's communicator, or is destroyed",
                          (int)op, comm->rank);
    redop->is_used = false;
    return TUTTI_OK;
}

tuttiResult_t tuttiRedOpDestroy(tuttiRedOp_t op, tuttiComm_t handle)
{
    struct tutti_comm *comm;
    int rc = tutti_handle_enter(handle, "tuttiRedOpDestroy", &comm);

    if (rc == TUTTI_OK) {
        rc = destroy(op, comm);
        tutti_comm_leave(comm);
    }
    return tutti_public_result(rc);
}
