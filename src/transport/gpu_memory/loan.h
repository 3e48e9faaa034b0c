/* SPDX-License-Identifier: Apache-2.0
 * Memory that ranks of one process use together: it goes when the last of them does, not with its
 * owner. A rank may leave, after an error, while kernels of others still store to it. */
#ifndef TUTTI_TRANSPORT_GPU_MEMORY_LOAN_H
#define TUTTI_TRANSPORT_GPU_MEMORY_LOAN_H

#include "transport/gpu_memory/gpu_memory.h"

#include <stdbool.h>

struct tutti_gpu_loan_terms {
    const struct tutti_cuda *cuda;
    struct tutti_cu_context *context; /* of the owner, for freeing */
    tutti_cu_device device;
    bool holds_primary;               /* that context lives only while it is retained */
};

/* From now on `memory` is freed by the last tutti_gpu_loan_end. Thread-safe, as all of these. */
int tutti_gpu_loan_begin(const struct tutti_gpu_loan_terms *terms,
                         const struct tutti_gpu_memory *memory);

/* Use it, too. TUTTI_ERR_DEVICE, noted: it is not there any more. */
int tutti_gpu_loan_join(tutti_cu_address address);

/* The owner, or one who has joined, is done with it. False: there is no such memory here. */
bool tutti_gpu_loan_end(tutti_cu_address address);

#endif
