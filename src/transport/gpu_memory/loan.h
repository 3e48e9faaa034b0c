/* SPDX-License-Identifier: Apache-2.0
 * Memory that ranks of one process use together. It is freed when the last of them has finished,
 * not when its owner has. A rank may leave after an error, while kernels of others still store to
 * its memory. */
#ifndef TUTTI_TRANSPORT_GPU_MEMORY_LOAN_H
#define TUTTI_TRANSPORT_GPU_MEMORY_LOAN_H

#include "transport/gpu_memory/gpu_memory.h"

#include <stdbool.h>

struct tutti_gpu_loan_terms {
    const struct tutti_cuda *cuda;
    struct tutti_cu_context *context; /* of the owner, for freeing */
    tutti_cu_device device;
    bool holds_primary;               /* the context exists only while it is retained */
};

/* From now on the last tutti_gpu_loan_end frees `memory`. All of these functions are
 * thread-safe. */
int tutti_gpu_loan_begin(const struct tutti_gpu_loan_terms *terms,
                         const struct tutti_gpu_memory *memory);

/* Join as a user of it. TUTTI_ERR_DEVICE, noted: it was freed already. */
int tutti_gpu_loan_join(tutti_cu_address address);

/* The owner, or a rank that has joined, has finished with it. Returns false if there is no such
 * memory here. */
bool tutti_gpu_loan_end(tutti_cu_address address);

#endif
