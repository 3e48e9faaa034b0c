/* SPDX-License-Identifier: Apache-2.0
 * Declarations that the public functions share. Every communication call fills in one struct of
 * arguments, so that call.c can check all calls in the same way. */
#ifndef TUTTI_API_API_H
#define TUTTI_API_API_H

#include "comm/comm.h"

/* The arguments of any communication call. Arguments that a call does not have are zero. A `kind`
 * of zero is TUTTI_CALL_COLLECTIVE. A v-form is a collective with a count for each rank. */
struct tutti_args {
    const char *function;      /* name of the public function, for messages */
    uint8_t kind, collective;  /* enum tutti_call_kind, enum tutti_collective */
    tuttiComm_t comm;
    tuttiStream_t stream;      /* NULL: the call waits for its end */
    tuttiDataType_t type;
    int op;                    /* of reductions: a tuttiRedOp_t */
    int root;                  /* the root or the peer, if the call has one */
    /* Elements of a block. In v-forms: of this rank's block, if the call has one. tutti_api_call
     * sets it if all ranks know all counts. */
    size_t count;
    const void *send;          /* sendbuff, or NULL if the call has none */
    void *recv;                /* recvbuff, or NULL if the call has none */
    /* Arrays of v-forms, with an entry for each rank, in elements. NULL: the call has none. */
    const size_t *send_counts, *send_displs, *recv_counts, *recv_displs;
};

/* Checks the call and runs it. Inside a group, the call is kept and runs when the group ends.
 * Returns the public result. If a group is open, a failure is noted in the group. */
tuttiResult_t tutti_api_call(struct tutti_args *args);

/* blocks.c: checks that no two blocks of a v-form's output overlap. The caller must have checked
 * that the ends of all blocks do not overflow. TUTTI_ERR_ARGUMENT: two blocks overlap; the message
 * names both. TUTTI_ERR_SYSTEM: there is no memory for the check. */
int tutti_api_check_blocks(const struct tutti_args *args, int nranks, int rank);

/* redop.c: sets the fields of `call` that depend on the operation `op`. `call->collective` must be
 * set. TUTTI_ERR_ARGUMENT: `op` is not an operation of this communicator, was made for another data
 * type, or has no meaning for this collective. */
int tutti_api_resolve_redop(const struct tutti_comm *comm, const char *function, int op,
                            tuttiDataType_t type, struct tutti_call *call);

#endif
