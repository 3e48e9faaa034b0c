/* SPDX-License-Identifier: Apache-2.0
 * Tests every path between two ranks before calls use it. Each rank must find the pattern that the
 * other has stored, and must load the pattern that the other holds. Kernels do the test, because
 * kernels load and store in calls. If the user has asked for copy engines, copies by the driver are
 * tested too. */
#include "executor/cuda/private.h"

#include <stdlib.h>
#include <string.h>

/* Multiplying by an odd number gives different words for different indices. */
#define ODD_FACTOR 2654435761u

/* Returns the size of the pattern, which is stored where LL lines will be. Calls expect zeros
 * there, so the test clears the pattern afterwards. */
static size_t test_bytes(const struct tutti_cuda_gpu *gpu)
{
    size_t lines = (size_t)(2 * gpu->grid.layout.ll_bytes);
    size_t window = (size_t)gpu->grid.layout.window_bytes;

    return lines < window ? lines : window;
}

/* Fills in the pattern of a rank. Its words all differ from each other. Each word also differs from
 * the words of other ranks at the same place. */
static void fill_pattern(uint32_t *words, size_t bytes, int rank)
{
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        words[i] = (uint32_t)(i * ODD_FACTOR) ^ (uint32_t)(rank + 1) << 24;
}

static tutti_cu_address window_of(const struct tutti_cuda_gpu *gpu, int rank)
{
    struct tutti_kernel_peer peer = tutti_cuda_peer_of(gpu, rank);

    return (tutti_cu_address)(uintptr_t)peer.window;
}

/* Copies by a kernel, because calls load and store in kernels. */
static int copy_by_kernel(struct tutti_cuda_gpu *gpu, tutti_cu_address to, tutti_cu_address from,
                          size_t bytes)
{
    return tutti_kernel_module_copy(gpu->kernels, (void *)(uintptr_t)to,
                                    (const void *)(uintptr_t)from, bytes, gpu->setup_stream);
}

int tutti_cuda_test_store(struct tutti_cuda_gpu *gpu)
{
    size_t bytes = test_bytes(gpu);
    uint32_t *pattern = malloc(bytes);
    int rc;

    if (pattern == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to test the paths between GPUs");
    fill_pattern(pattern, bytes, gpu->args.rank);
    rc = tutti_cuda_copy_and_wait(gpu, window_of(gpu, gpu->args.rank),
                                  (tutti_cu_address)(uintptr_t)pattern, bytes);
    free(pattern);
    for (int rank = 0; rc == TUTTI_OK && rank < gpu->args.nranks; rank++) {
        tutti_cu_address to = (tutti_cu_address)(uintptr_t)tutti_cuda_peer_of(gpu, rank).to;

        if (!tutti_cuda_is_far(gpu, gpu->args.rank, rank))
            rc = copy_by_kernel(gpu, to + gpu->grid.layout.ll_at, window_of(gpu, gpu->args.rank),
                                bytes);
    }
    return rc == TUTTI_OK ? tutti_cuda_wait_setup(gpu) : rc;
}

/* Sets *ret_is_right to true if the pattern of `rank` is at `at`. */
static int compare_pattern(struct tutti_cuda_gpu *gpu, tutti_cu_address at, int rank,
                           uint32_t *found, uint32_t *pattern, bool *ret_is_right)
{
    size_t bytes = test_bytes(gpu);

    TUTTI_TRY(tutti_cuda_copy_and_wait(gpu, (tutti_cu_address)(uintptr_t)found, at, bytes));
    fill_pattern(pattern, bytes, rank);
    *ret_is_right = memcmp(found, pattern, bytes) == 0;
    return TUTTI_OK;
}

/* Returns the address of this rank's second window. Other ranks do not read it during the test, so
 * it can receive the copies. */
static tutti_cu_address second_window(const struct tutti_cuda_gpu *gpu)
{
    return window_of(gpu, gpu->args.rank) + gpu->grid.layout.window_bytes;
}

/* Checks that the driver copies the pattern of `rank` correctly out of its window. */
static int check_driver_copy(struct tutti_cuda_gpu *gpu, int rank, uint32_t *found,
                             uint32_t *pattern, bool *ret_is_right)
{
    tutti_cu_address second = second_window(gpu);
    size_t bytes = test_bytes(gpu);
    int code = gpu->cuda->set8_async(second, 0, bytes, gpu->setup_stream);

    if (code == TUTTI_CU_SUCCESS)
        code = gpu->cuda->copy_async(second, window_of(gpu, rank), bytes, gpu->setup_stream);
    return code == TUTTI_CU_SUCCESS
               ? compare_pattern(gpu, second, rank, found, pattern, ret_is_right)
               : tutti_cuda_fail(gpu, code, "copying from another GPU");
}

/* Checks that the pattern of `rank` has arrived here, and that this rank loads it correctly out of
 * the window of `rank`. */
static int check_path(struct tutti_cuda_gpu *gpu, int rank, uint32_t *found, uint32_t *pattern,
                      bool *ret_is_right)
{
    size_t bytes = test_bytes(gpu);
    tutti_cu_address second = second_window(gpu);
    tutti_cu_address mail =
        (tutti_cu_address)(uintptr_t)tutti_cuda_peer_of(gpu, rank).from + gpu->grid.layout.ll_at;
    bool is_stored, is_loaded;
    int code;

    TUTTI_TRY(compare_pattern(gpu, mail, rank, found, pattern, &is_stored));
    TUTTI_TRY(copy_by_kernel(gpu, second, window_of(gpu, rank), bytes));
    TUTTI_TRY(tutti_cuda_wait_setup(gpu));
    TUTTI_TRY(compare_pattern(gpu, second, rank, found, pattern, &is_loaded));
    *ret_is_right = is_stored && is_loaded;
    /* Calls expect LL lines to be zero at first. */
    code = gpu->cuda->set8_async(mail, 0, bytes, gpu->setup_stream);
    return code == TUTTI_CU_SUCCESS ? tutti_cuda_wait_setup(gpu)
                                    : tutti_cuda_fail(gpu, code, "clearing its mailbox");
}

int tutti_cuda_test_check(struct tutti_cuda_gpu *gpu, uint64_t *ret_bad, bool *ret_is_copy_bad)
{
    bool checks_copies = gpu->records[gpu->args.rank].copy_bytes > 0, is_copy_bad = false;
    size_t bytes = test_bytes(gpu);
    uint32_t *found = malloc(bytes), *pattern = malloc(bytes);
    uint64_t bad = 0;
    int rc = TUTTI_OK;

    if (found == NULL || pattern == NULL)
        rc = tutti_fail(TUTTI_ERR_SYSTEM, "no memory to test the paths between GPUs");
    for (int rank = 0; rc == TUTTI_OK && rank < gpu->args.nranks; rank++) {
        bool is_right = true, is_copy_right = true;

        if (tutti_cuda_is_far(gpu, gpu->args.rank, rank))
            continue;
        rc = check_path(gpu, rank, found, pattern, &is_right);
        bad |= is_right ? 0 : UINT64_C(1) << rank;
        if (rc == TUTTI_OK && checks_copies)
            rc = check_driver_copy(gpu, rank, found, pattern, &is_copy_right);
        is_copy_bad = is_copy_bad || !is_copy_right;
    }
    free(found);
    free(pattern);
    if (rc != TUTTI_OK)
        return rc;
    *ret_bad = bad;
    *ret_is_copy_bad = is_copy_bad;
    return TUTTI_OK;
}
