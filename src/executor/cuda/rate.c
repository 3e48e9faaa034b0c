/* SPDX-License-Identifier: Apache-2.0
 * Measures the paths between GPUs. A path may be correct and yet useless. With an IOMMU or a bridge
 * on the path, it can be far slower than a path through host memory, which both GPUs reach. So when
 * ranks form, each rank times a copy out of every other rank's window, and compares it with a copy
 * out of host memory. */
#include "executor/cuda/private.h"

#include "base/log.h"

#include <string.h>

/* Other ranks measure at the same time and disturb the result. So each measurement is the fastest
 * of COPIES copies, and a path counts as slow only if host memory is more than SLOW_FACTOR times as
 * fast. A copy has at most MOST_BYTES bytes. */
enum { COPIES = 4, MOST_BYTES = 4 << 20, SLOW_FACTOR = 4 };

/* The means to time copies. */
struct meter {
    struct tutti_cu_event *start, *end; /* recorded before and after a copy */
    uint8_t *host;     /* page-locked memory of this rank, with which other memory is compared */
    size_t size_bytes; /* of a copy */
};

static void meter_fini(const struct tutti_cuda_gpu *gpu, struct meter *meter)
{
    if (meter->start != NULL)
        gpu->cuda->event_destroy(meter->start);
    if (meter->end != NULL)
        gpu->cuda->event_destroy(meter->end);
    if (meter->host != NULL)
        gpu->cuda->host_free(meter->host);
}

static int meter_init(const struct tutti_cuda_gpu *gpu, struct meter *ret_meter)
{
    uint64_t window = gpu->grid.layout.window_bytes;
    int code;

    *ret_meter = (struct meter){.size_bytes = window < MOST_BYTES ? (size_t)window : MOST_BYTES};
    code = gpu->cuda->event_create(&ret_meter->start, 0);
    if (code == TUTTI_CU_SUCCESS)
        code = gpu->cuda->event_create(&ret_meter->end, 0);
    if (code == TUTTI_CU_SUCCESS)
        code = gpu->cuda->host_alloc((void **)&ret_meter->host, ret_meter->size_bytes, 0);
    if (code == TUTTI_CU_SUCCESS)
        return TUTTI_OK;
    meter_fini(gpu, ret_meter);
    return tutti_cuda_fail(gpu, code, "allocating memory and events to measure paths");
}

/* Times one copy. */
static int time_copy(const struct tutti_cuda_gpu *gpu, const struct meter *meter,
                     tutti_cu_address to, tutti_cu_address from, float *ret_ms)
{
    int code = gpu->cuda->event_record(meter->start, gpu->setup_stream);

    if (code == TUTTI_CU_SUCCESS)
        code = gpu->cuda->copy_async(to, from, meter->size_bytes, gpu->setup_stream);
    if (code == TUTTI_CU_SUCCESS)
        code = gpu->cuda->event_record(meter->end, gpu->setup_stream);
    if (code == TUTTI_CU_SUCCESS)
        TUTTI_TRY(tutti_cuda_wait_setup(gpu));
    if (code == TUTTI_CU_SUCCESS)
        code = gpu->cuda->event_elapsed(ret_ms, meter->start, meter->end);
    return code == TUTTI_CU_SUCCESS ? TUTTI_OK : tutti_cuda_fail(gpu, code, "timing a copy");
}

/* Times copies from `from` into this rank's second window, which no rank reads at this time.
 * *ret_ms is the time of the fastest copy. */
static int time_best_copy(const struct tutti_cuda_gpu *gpu, const struct meter *meter,
                          tutti_cu_address from, float *ret_ms)
{
    tutti_cu_address to = gpu->own.address + tutti_cuda_windows_at(&gpu->grid.layout) +
                          gpu->grid.layout.window_bytes;

    for (int i = 0; i < COPIES; i++) {
        float ms = 0;

        TUTTI_TRY(time_copy(gpu, meter, to, from, &ms));
        *ret_ms = i == 0 || ms < *ret_ms ? ms : *ret_ms;
    }
    return TUTTI_OK;
}

static double gb_per_s(const struct meter *meter, float ms)
{
    return ms > 0 ? (double)meter->size_bytes / (double)ms / 1e6 : 0;
}

/* Returns true if `rank` is on another GPU whose memory this rank has opened. */
static bool is_reached_gpu(const struct tutti_cuda_gpu *gpu, int rank)
{
    return gpu->neighbors[rank].own_at != 0 &&
           memcmp(gpu->records[rank].uuid, gpu->records[gpu->args.rank].uuid,
                  TUTTI_CU_UUID_BYTES) != 0;
}

/* Compares the paths to all other GPUs with host memory, and sets the bits of slow ranks in
 * *ret_slow. */
static int compare_all(const struct tutti_cuda_gpu *gpu, const struct meter *meter,
                       uint64_t *ret_slow)
{
    float host_ms = 0;

    TUTTI_TRY(time_best_copy(gpu, meter, (tutti_cu_address)(uintptr_t)meter->host, &host_ms));
    for (int i = 1; i < gpu->args.nranks; i++) {
        int rank = (gpu->args.rank + i) % gpu->args.nranks; /* each rank begins with another rank */
        float ms = 0;

        if (!is_reached_gpu(gpu, rank))
            continue;
        TUTTI_TRY(time_best_copy(
            gpu, meter, gpu->neighbors[rank].own_at + tutti_cuda_windows_at(&gpu->grid.layout),
            &ms));
        tutti_log(TUTTI_LOG_TRACE, "rank %d: GPU %d copies %.1f GB/s from rank %d's GPU, %.1f from "
                  "the host's memory", gpu->args.rank, gpu->args.device, gb_per_s(meter, ms), rank,
                  gb_per_s(meter, host_ms));
        if (ms <= SLOW_FACTOR * host_ms)
            continue;
        *ret_slow |= UINT64_C(1) << rank;
        tutti_log(TUTTI_LOG_WARN, "rank %d: GPU %d copies %.3g GB/s from rank %d's GPU, but %.3g "
                  "from the host's memory, so these ranks communicate through host memory",
                  gpu->args.rank, gpu->args.device, gb_per_s(meter, ms), rank,
                  gb_per_s(meter, host_ms));
    }
    return TUTTI_OK;
}

int tutti_cuda_test_rates(const struct tutti_cuda_gpu *gpu, uint64_t *ret_slow)
{
    bool has_paths = false;
    struct meter meter;
    int rc;

    *ret_slow = 0;
    for (int rank = 0; rank < gpu->args.nranks; rank++)
        has_paths = has_paths || is_reached_gpu(gpu, rank);
    if (!has_paths)
        return TUTTI_OK;
    TUTTI_TRY(meter_init(gpu, &meter));
    rc = compare_all(gpu, &meter, ret_slow);
    meter_fini(gpu, &meter);
    return rc;
}
