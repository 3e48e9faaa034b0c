/* SPDX-License-Identifier: Apache-2.0
 * A grid of 2 x 2 ranks, as in model and data parallelism. One split of the communicator makes the
 * rows, and another one the columns. Sums run along rows, and maxima along columns.
 *
 *                 column 0   column 1
 *          row 0   rank 0     rank 1
 *          row 1   rank 2     rank 3
 */
#include <tutti.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define SIDE 2
#define NRANKS (SIDE * SIDE)

struct rank {
    tuttiUniqueId id;
    int number, is_right;
    pthread_t thread;
};

static void must(tuttiResult_t result, const char *call)
{
    if (result == tuttiSuccess)
        return;
    fprintf(stderr, "%s: %s: %s\n", call, tuttiGetErrorString(result), tuttiGetLastError(NULL));
    exit(1);
}

static void *run(void *argument)
{
    struct rank *rank = argument;
    int row = rank->number / SIDE, column = rank->number % SIDE;
    int row_sum, expected_sum = 0, last_row_sum = 0, column_max, place;
    tuttiComm_t world, along_row, along_column;

    must(tuttiCommInitRank(&world, NRANKS, rank->id, rank->number), "tuttiCommInitRank");

    /* Ranks with the same color form a communicator, in the order of their keys. */
    must(tuttiCommSplit(world, row, column, &along_row, NULL), "tuttiCommSplit by row");
    must(tuttiCommSplit(world, column, row, &along_column, NULL), "tuttiCommSplit by column");
    must(tuttiCommUserRank(along_row, &place), "tuttiCommUserRank");

    must(tuttiAllReduce(&rank->number, &row_sum, 1, tuttiInt32, tuttiSum, along_row, NULL),
         "tuttiAllReduce along the row");
    must(tuttiAllReduce(&row_sum, &column_max, 1, tuttiInt32, tuttiMax, along_column, NULL),
         "tuttiAllReduce along the column");

    /* The last row has the largest sum: 2 + 3. */
    for (int i = 0; i < SIDE; i++) {
        expected_sum += row * SIDE + i;
        last_row_sum += (SIDE - 1) * SIDE + i;
    }
    rank->is_right = place == column && row_sum == expected_sum && column_max == last_row_sum;

    must(tuttiCommDestroy(along_column), "tuttiCommDestroy of the column");
    must(tuttiCommDestroy(along_row), "tuttiCommDestroy of the row");
    must(tuttiCommFinalize(world), "tuttiCommFinalize");
    must(tuttiCommDestroy(world), "tuttiCommDestroy");
    return NULL;
}

int main(void)
{
    struct rank ranks[NRANKS];
    tuttiUniqueId id;
    int wrong = 0;

    must(tuttiGetUniqueId(&id), "tuttiGetUniqueId");
    for (int i = 0; i < NRANKS; i++) {
        ranks[i] = (struct rank){.id = id, .number = i};
        if (pthread_create(&ranks[i].thread, NULL, run, &ranks[i]) != 0)
            return 1;
    }
    for (int i = 0; i < NRANKS; i++) {
        pthread_join(ranks[i].thread, NULL);
        wrong += !ranks[i].is_right;
    }
    printf("a grid of %d x %d ranks, %d of them wrong\n", SIDE, SIDE, wrong);
    return wrong != 0;
}
