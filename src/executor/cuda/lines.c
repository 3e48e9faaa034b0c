/* SPDX-License-Identifier: Apache-2.0
 * Finds the pairs of ranks that may exchange lines of 128 bytes (LL128). A link qualifies if its
 * kind should deliver each line whole, and if a test confirms this. All ranks decide by the same
 * records, because the choice of kernels depends on the result. */
#include "executor/cuda/private.h"

#include "base/clock.h"
#include "base/log.h"

#include <string.h>

/* The values of gpu->step during the test. */
enum { STEP_BEGIN, STEP_RUNNING, STEP_CLEARING };

/* Rounds of the test: ROUNDS_OF_ALL divided by the number of ranks, within the two limits. It is
 * LEAST_ROUNDS if processes share a GPU, because each round may then take a time slice. */
enum { ROUNDS_OF_ALL = 256, MOST_ROUNDS = 64, LEAST_ROUNDS = 8 };

/* A rank that has not begun the test after this time counts as failed. */
#define PATIENCE_NS (20 * TUTTI_NS_PER_S)

/* ---- which links ---------------------------------------------------------------------------- */

static bool is_same_device(const struct tutti_cuda_gpu *gpu, int rank, int other)
{
    return memcmp(gpu->records[rank].uuid, gpu->records[other].uuid, TUTTI_CU_UUID_BYTES) == 0;
}

/* Looks for the device of `rank` by its UUID: this process may number devices differently from that
 * rank's process, or not see the device at all. */
static bool find_device(const struct tutti_cuda_gpu *gpu, int rank, tutti_cu_device *ret_device)
{
    int count = 0;

    gpu->cuda->device_count(&count);
    for (int i = 0; i < count; i++) {
        unsigned char uuid[TUTTI_CU_UUID_BYTES];

        if (gpu->cuda->device(ret_device, i) == TUTTI_CU_SUCCESS &&
            gpu->cuda->device_uuid(uuid, *ret_device) == TUTTI_CU_SUCCESS &&
            memcmp(uuid, gpu->records[rank].uuid, sizeof uuid) == 0)
            return true;
    }
    return false;
}

/* A link that carries atomics, such as NVLink, does not split lines; PCIe does. */
static bool has_atomics(const struct tutti_cuda_gpu *gpu, tutti_cu_device from, tutti_cu_device to)
{
    int has = 0;

    return gpu->cuda->peer_attribute(&has, TUTTI_CU_PEER_NATIVE_ATOMICS, from, to) ==
               TUTTI_CU_SUCCESS && has != 0;
}

/* Returns true if the link between this rank's device and the device of `rank` is of a kind that
 * keeps lines whole. The driver tells this of devices that the process sees. Of others the
 * description of the host may tell it. */
static bool is_linked(const struct tutti_cuda_gpu *gpu, int rank)
{
    tutti_cu_device mine = gpu->args.device, theirs;

    if (is_same_device(gpu, gpu->args.rank, rank))
        return true;
    if (!find_device(gpu, rank, &theirs))
        return (gpu->nvlinked >> rank & 1) != 0;
    return has_atomics(gpu, mine, theirs) && has_atomics(gpu, theirs, mine);
}

uint64_t tutti_cuda_lines_linked(const struct tutti_cuda_gpu *gpu)
{
    uint64_t linked = 0;

    for (int rank = 0; rank < gpu->args.nranks; rank++)
        if (is_linked(gpu, rank))
            linked |= UINT64_C(1) << rank;
    return linked;
}

/* ---- which pairs ---------------------------------------------------------------------------- */

/* Returns true if the two ranks may exchange lines, unless the test finds torn lines. */
static bool is_possible(const struct tutti_cuda_gpu *gpu, int rank, int other)
{
    return rank != other && (gpu->records[rank].linked >> other & 1) != 0 &&
           (gpu->records[other].linked >> rank & 1) != 0 && tutti_cuda_reaches(gpu, rank, other) &&
           tutti_cuda_reaches(gpu, other, rank);
}

/* Returns the ranks, as bits, with which `rank` may exchange lines. */
static uint64_t list_possible(const struct tutti_cuda_gpu *gpu, int rank)
{
    uint64_t possible = 0;

    for (int other = 0; other < gpu->args.nranks; other++)
        if (is_possible(gpu, rank, other))
            possible |= UINT64_C(1) << other;
    return possible;
}

bool tutti_cuda_lines_are_possible(const struct tutti_cuda_gpu *gpu)
{
    for (int rank = 0; rank < gpu->args.nranks; rank++)
        if (list_possible(gpu, rank) != 0)
            return true;
    return false;
}

/* ---- the test ------------------------------------------------------------------------------- */

/* Returns true if processes of the domain share a GPU, which then gives them time slices. */
static bool processes_share_gpu(const struct tutti_cuda_gpu *gpu)
{
    for (int rank = 0; rank < gpu->args.nranks; rank++)
        for (int other = 0; other < rank; other++)
            if (is_same_device(gpu, rank, other) &&
                !tutti_identity_same_process(&gpu->records[rank].identity,
                                             &gpu->records[other].identity))
                return true;
    return false;
}

/* Returns the rounds of the test. The result is the same on all ranks. */
static uint32_t count_rounds(const struct tutti_cuda_gpu *gpu)
{
    int rounds = ROUNDS_OF_ALL / gpu->args.nranks;

    if (rounds < LEAST_ROUNDS || processes_share_gpu(gpu))
        return LEAST_ROUNDS;
    return rounds > MOST_ROUNDS ? MOST_ROUNDS : (uint32_t)rounds;
}

/* Returns how long the test may take. It is at most half of the time left for forming, because
 * forming continues after the test, even if the test fails. */
static uint64_t patience_ns(const struct tutti_cuda_gpu *gpu)
{
    uint64_t now_ns = tutti_now_ns();
    uint64_t left_ns = gpu->args.deadline_ns > now_ns ? gpu->args.deadline_ns - now_ns : 0;

    if (left_ns < 2)
        return 1; /* not 0, which to kernels means that there is no deadline */
    return left_ns / 2 < PATIENCE_NS ? left_ns / 2 : PATIENCE_NS;
}

/* Enqueues the zeroing of the lines, because calls expect zeros at first. The test kernel has ended
 * by then. If the zeroing were enqueued behind a kernel that waits for another rank, it could delay
 * the kernel of that rank, since streams share the hardware queues of a GPU. No rank sends lines of
 * a call before all ranks have exchanged their results, so none are lost. */
static int clear_lines(const struct tutti_cuda_gpu *gpu, uint64_t peers)
{
    const struct tutti_kernel_layout *layout = &gpu->grid.layout;
    int code = TUTTI_CU_SUCCESS;

    for (int rank = 0; code == TUTTI_CU_SUCCESS && rank < gpu->args.nranks; rank++) {
        tutti_cu_address mail = (tutti_cu_address)(uintptr_t)tutti_cuda_peer_of(gpu, rank).from;

        if ((peers >> rank & 1) != 0)
            code = gpu->cuda->set8_async(mail + layout->ll128_at, 0,
                                         (size_t)(2 * layout->ll128_bytes), gpu->setup_stream);
    }
    return code == TUTTI_CU_SUCCESS ? TUTTI_OK : tutti_cuda_fail(gpu, code, "clearing its mailbox");
}

/* Enqueues the test of all lines between this rank and its peers, if there are any. */
static int begin_test(const struct tutti_cuda_gpu *gpu)
{
    struct tutti_kernel_line_test test = {
        .domain = gpu->domain, .peers = list_possible(gpu, gpu->args.rank),
        .deadline_ns = patience_ns(gpu), .rounds = count_rounds(gpu)};

    if (test.peers == 0)
        return TUTTI_OK;
    return tutti_kernel_module_launch(gpu->kernels, TUTTI_KERNEL_TEST_LINES, 1, gpu->threads, &test,
                                      gpu->setup_stream);
}

static int read_result(const struct tutti_cuda_gpu *gpu, uint64_t *ret_torn)
{
    uint64_t torn = 0;

    for (int rank = 0; rank < gpu->args.nranks; rank++) {
        if (gpu->report->torn[rank] == TUTTI_KERNEL_LINES_MISSING)
            return tutti_note(TUTTI_ERR_DEVICE, "lines of rank %d have not arrived in time", rank);
        if (gpu->report->torn[rank] != 0)
            torn |= UINT64_C(1) << rank;
    }
    *ret_torn = torn;
    return TUTTI_OK;
}

/* The function does not wait for the kernel, because one thread may form several ranks, which test
 * each other. */
int tutti_cuda_lines_test(struct tutti_cuda_gpu *gpu, uint64_t *ret_torn)
{
    int code;

    if (gpu->step == STEP_BEGIN) {
        TUTTI_TRY(begin_test(gpu));
        gpu->step = STEP_RUNNING;
    }
    code = gpu->cuda->stream_query(gpu->setup_stream);
    if (code == TUTTI_CU_NOT_READY)
        return TUTTI_AGAIN;
    if (code == TUTTI_CU_SUCCESS && gpu->step == STEP_RUNNING) {
        int rc = clear_lines(gpu, list_possible(gpu, gpu->args.rank));

        gpu->step = rc == TUTTI_OK ? STEP_CLEARING : STEP_BEGIN;
        return rc == TUTTI_OK ? TUTTI_AGAIN : rc;
    }
    gpu->step = STEP_BEGIN;
    if (code == TUTTI_CU_SUCCESS)
        return read_result(gpu, ret_torn);
    /* The kernel may still run, and the other ranks free memory that it uses as soon as they learn
     * of the failure. */
    tutti_cuda_wait_setup(gpu);
    return tutti_cuda_fail(gpu, code, "testing lines");
}

/* ---- agreement ------------------------------------------------------------------------------- */

/* Returns true if lines between the two ranks were torn, in either direction. */
static bool are_torn(const struct tutti_cuda_gpu *gpu, int rank, int other)
{
    return (gpu->records[rank].torn >> other & 1) != 0 ||
           (gpu->records[other].torn >> rank & 1) != 0;
}

/* Logs a pair of ranks whose lines were torn, once for all ranks. */
static void report_pair(const struct tutti_cuda_gpu *gpu, int rank, int other)
{
    if (gpu->args.rank == 0 && rank < other && are_torn(gpu, rank, other))
        tutti_log(TUTTI_LOG_WARN,
                  "lines of 128 bytes between rank %d, GPU %d, and rank %d, GPU "
                  "%d, are torn on their way, so LL128 is not used between them",
                  rank, gpu->records[rank].device, other, gpu->records[other].device);
}

void tutti_cuda_lines_agree(struct tutti_cuda_gpu *gpu)
{
    int nranks = gpu->args.nranks, nwhole = 0;

    gpu->whole_lines = 0;
    for (int rank = 0; rank < nranks; rank++) {
        int npeers = 0;

        for (int other = 0; other < nranks; other++) {
            if (!is_possible(gpu, rank, other))
                continue;
            report_pair(gpu, rank, other);
            npeers += !are_torn(gpu, rank, other);
        }
        nwhole += npeers;
        if (npeers == nranks - 1)
            gpu->whole_lines |= UINT64_C(1) << rank;
    }
    if (gpu->args.rank == 0)
        tutti_log(TUTTI_LOG_INFO, "lines of 128 bytes are whole between %d of %d pairs of ranks",
                  nwhole / 2, nranks * (nranks - 1) / 2);
}
