/* SPDX-License-Identifier: Apache-2.0
 * Three ranks send any bytes as records and verdicts to a fourth, which is correct. It refuses
 * them, or forms a fabric with them. */
#include "fuzz/fuzz.h"

#include "base/clock.h"
#include "transport/tcp/tcp.h"

#include <time.h>

enum { NRANKS = 4, ME = 2 };

static void make_records(struct fuzz_input *input, const union tutti_record *mine,
                         union tutti_record records[NRANKS])
{
    for (int rank = 0; rank < NRANKS; rank++) {
        union tutti_record *record = &records[rank];

        *record = *mine;
        if (rank == ME)
            continue;
        /* Behind magic, version and ranks, whose only check is for equality. */
        if (fuzz_byte(input) % 16 != 0)
            fuzz_overwrite(input, record->bytes + offsetof(union tutti_record, uses),
                           sizeof *record - offsetof(union tutti_record, uses));
        else
            fuzz_overwrite(input, record, sizeof *record);
        record->rank = rank;
        record->nranks = NRANKS;
    }
}

static int join(struct tutti_fabric *fabric, const union tutti_record records[NRANKS])
{
    int rc;

    while ((rc = tutti_fabric_join(fabric, records)) == TUTTI_AGAIN)
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    return rc;
}

static void make_verdicts(struct fuzz_input *input, const union tutti_verdict *mine,
                          union tutti_verdict verdicts[NRANKS])
{
    for (int rank = 0; rank < NRANKS; rank++) {
        verdicts[rank] = *mine;
        if (rank != ME)
            fuzz_overwrite(input, verdicts[rank].bytes + sizeof verdicts[rank].magic,
                           sizeof verdicts[rank] - sizeof verdicts[rank].magic);
    }
}

/* Everything that is worked out from records. */
static void look_at(const struct tutti_fabric *fabric)
{
    struct tutti_address candidates[TUTTI_MAX_CANDIDATES];
    uint32_t host[NRANKS], cell[NRANKS], ncells;
    struct tutti_fabric_usage usage;

    fuzz_require(tutti_fabric_hosts(fabric, host) <= NRANKS, "no more hosts than ranks");
    (void)tutti_fabric_shares_hosts(fabric);
    (void)tutti_fabric_cores(fabric);
    (void)tutti_fabric_mbits(fabric);
    (void)tutti_fabric_cells(fabric, host, cell, &ncells);
    for (int rank = 0; rank < NRANKS; rank++)
        if (rank != ME)
            fuzz_require(tutti_tcp_candidates(fabric, ME, rank, candidates) <=
                             TUTTI_MAX_CANDIDATES, "no more addresses than there is room for");
    tutti_fabric_usage(fabric, &usage);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const uint8_t secret[TUTTI_SECRET_BYTES] = "a secret";
    struct fuzz_input input = {.bytes = bytes, .left = size};
    struct tutti_fabric_args args = {.nranks = NRANKS, .rank = ME, .cells = {0, 0, 0},
                                     .deadline_ns = tutti_now_ns() + TUTTI_NS_PER_MS / 5};
    union tutti_record records[NRANKS];
    union tutti_verdict verdicts[NRANKS];
    struct tutti_fabric *fabric;

    if (tutti_fabric_open(&args, &fabric) != TUTTI_OK)
        return 0;
    tutti_fabric_set_secret(fabric, secret);
    make_records(&input, tutti_fabric_record(fabric), records);
    if (join(fabric, records) == TUTTI_OK) {
        make_verdicts(&input, tutti_fabric_verdict(fabric), verdicts);
        if (tutti_fabric_settle(fabric, verdicts) == TUTTI_OK)
            look_at(fabric);
    }
    tutti_fabric_destroy(fabric);
    return 0;
}
