/* SPDX-License-Identifier: Apache-2.0
 * Checks that the blocks of a v-form's output do not overlap. Otherwise two ranks would write the
 * same element. */
#include "api/api.h"

#include <stdlib.h>

struct block {
    size_t first, count; /* elements */
    int rank;            /* the rank that sends the block */
};

static int compare(const void *left, const void *right)
{
    const struct block *a = left, *b = right;

    return a->first < b->first ? -1 : a->first > b->first;
}

static int refuse(const struct tutti_args *args, int this_rank, const struct block *a,
                  const struct block *b)
{
    const char *displs = tutti_collective_is_pairwise(args->collective) ? "rdispls" : "displs";
    const struct block *first = a->rank < b->rank ? a : b, *second = first == a ? b : a;

    return tutti_fail(TUTTI_ERR_ARGUMENT,
                      "%s: two blocks of recvbuff overlap on rank %d: "
                      "%s[%d] = %zu with recvcounts[%d] = %zu, %s[%d] = %zu with recvcounts[%d] = "
                      "%zu; move one of them",
                      args->function, this_rank, displs, first->rank, first->first, first->rank,
                      first->count, displs, second->rank, second->first, second->rank,
                      second->count);
}

/* Handles displacements that do not ascend. After sorting by displacement, each block must end
 * before the next one begins. */
static int check_sorted(const struct tutti_args *args, int nranks, int this_rank)
{
    struct block *blocks = malloc((size_t)nranks * sizeof *blocks);
    size_t count = 0;
    int rc = TUTTI_OK;

    if (blocks == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "%s: no memory to check the displacements of %d ranks",
                          args->function, nranks);
    for (int rank = 0; rank < nranks; rank++)
        if (args->recv_counts[rank] > 0)
            blocks[count++] = (struct block){args->recv_displs[rank], args->recv_counts[rank],
                                             rank};
    qsort(blocks, count, sizeof *blocks, compare);
    for (size_t i = 1; rc == TUTTI_OK && i < count; i++)
        if (blocks[i].first - blocks[i - 1].first < blocks[i - 1].count)
            rc = refuse(args, this_rank, &blocks[i - 1], &blocks[i]);
    free(blocks);
    return rc;
}

int tutti_api_check_blocks(const struct tutti_args *args, int nranks, int rank)
{
    size_t end = 0;

    if (args->recv_counts == NULL || args->recv_displs == NULL)
        return TUTTI_OK;
    for (int i = 0; i < nranks; i++) {
        if (args->recv_counts[i] == 0)
            continue;
        if (args->recv_displs[i] < end)
            return check_sorted(args, nranks, rank);
        end = args->recv_displs[i] + args->recv_counts[i];
    }
    return TUTTI_OK;
}
