/* SPDX-License-Identifier: Apache-2.0
 * Counts the users of GPU memory that ranks of one process use together. Such memory is called a
 * loan. It is freed when its last user has finished, not when its owner has. The reason is that a
 * rank may leave after an error while kernels of other ranks still store to its memory. All
 * functions are thread-safe. */
#ifndef TUTTI_TRANSPORT_GPU_MEMORY_LOAN_H
#define TUTTI_TRANSPORT_GPU_MEMORY_LOAN_H

#include "transport/gpu_memory/gpu_memory.h"

#include <stdbool.h>

struct tutti_gpumem_loan_terms {
    const struct tutti_cu_driver *cuda;
    struct tutti_cu_context *context; /* the owner's context, in which the memory is freed */
    tutti_cu_device device;
    bool holds_primary;               /* the context is a primary one, which the loan must retain */
};

/* Take over `memory` from the caller, who becomes its first user. From now on the last
 * tutti_gpumem_loan_end frees it. TUTTI_ERR_SYSTEM: no memory; the caller keeps `memory`. */
int tutti_gpumem_loan_begin(const struct tutti_gpumem_loan_terms *terms,
                            const struct tutti_gpumem *memory);

/* Join as a user of the memory at `address`. TUTTI_ERR_DEVICE, recorded but not logged: the memory
 * was freed already. */
int tutti_gpumem_loan_join(tutti_cu_address address);

/* The owner and each rank that has joined call this when they have finished with the memory at
 * `address`. Returns false if there is no such loan. */
bool tutti_gpumem_loan_end(tutti_cu_address address);

#endif
