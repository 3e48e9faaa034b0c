/* SPDX-License-Identifier: Apache-2.0
 * The GPUs of a communicator as the tuner sees them. */
#include "gpu/comm_gpu.h"

#include "executor/cuda/program.h"

void tutti_gpu_plan_fill_view(struct tutti_comm *comm)
{
    struct tutti_gpu_comm *gpu_comm = comm->gpu;
    const char *host = comm->policy ? comm->policy->text[TUTTI_POLICY_HOST] : "";
    const struct tutti_cuda_grid *grid;
    bool reaches_all;

    if (!gpu_comm->has_domain)
        return;
    grid = tutti_cuda_grid(gpu_comm->gpu);
    reaches_all = tutti_cuda_reaches_all(gpu_comm->gpu);
    gpu_comm->memo = (struct tutti_memo){.entries = {{0}}};
    gpu_comm->view = (struct tutti_tuner_view){
        .nranks = (uint32_t)comm->nranks,
        .is_one_domain = true,
        .all_read = reaches_all,
        .all_store = reaches_all,
        .half_bytes = (size_t)(grid->layout.window_bytes / grid->nblocks / 2),
        .is_even = true,
        .stage_bytes = TUTTI_STAGE_BYTES,
        .scratch_bytes = TUTTI_SCRATCH_BYTES,
        .places = &comm->places,
        .policy = comm->policy,
        .fingerprint = gpu_comm->fingerprint,
        .memo = &gpu_comm->memo,
    };
    /* Tables that were measured on CPUs have other names. */
    tutti_fingerprint(host, &gpu_comm->view, "gpu", gpu_comm->fingerprint);
}
