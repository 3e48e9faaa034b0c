/* SPDX-License-Identifier: Apache-2.0
 * What the public functions share: every communication call is the same few
 * checks on an argument block. */
#ifndef TUTTI_API_API_H
#define TUTTI_API_API_H

#include "comm/comm.h"

/* The arguments of any communication call. Absent ones are left zero. */
struct tutti_args {
    const char *function;
    uint8_t kind;              /* enum tutti_call_kind */
    enum tutti_collective collective;
    tuttiComm_t comm;
    tuttiStream_t stream;
    tuttiDataType_t type;
    int op;                    /* tuttiRedOp_t, of reductions */
    int root;                  /* or peer; where there is one */
    size_t count;              /* of a block; of v-forms set by the check */
    const void *send;
    void *recv;
    bool is_vector;
    const size_t *send_counts, *send_displs, *recv_counts, *recv_displs;
};

/* Check and run, or collect, the call. May complete the arguments. */
tuttiResult_t tutti_api_call(struct tutti_args *args);

/* blocks.c: no two blocks of a v-form's output overlap. TUTTI_ERR_ARGUMENT names both. After
 * the ends of all blocks have been found not to overflow. */
int tutti_api_check_blocks(const struct tutti_args *args, int nranks, int rank);

/* redop.c: what `op` means for `call`. TUTTI_ERR_ARGUMENT when it is none. */
int tutti_redop_resolve(const struct tutti_comm *comm, const char *function, int op,
                        tuttiDataType_t type, struct tutti_call *call);

#endif
