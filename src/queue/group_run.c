/* SPDX-License-Identifier: Apache-2.0
 * Runs a group. All of its batches and jobs progress together, because they may wait for each
 * other. */
#include "base/system.h"
#include "queue/group_private.h"

#include <sched.h>
#include <string.h>

/* A thread that waits for several batches or jobs yields its core for this many passes, and then
 * pauses after each pass. */
enum { YIELDING_PASSES = 200, PAUSE_NS = 100000 };

void tutti_group_issue(struct tutti_group_part *part)
{
    struct tutti_batch *batch = part->batch;
    bool runs_batch = !part->is_ours;

    tutti_batch_issue(batch);
    batch->streams_missing = (uint32_t)part->use_count;
    batch->references += (uint32_t)part->use_count;
    for (size_t i = 0; i < part->use_count; i++) {
        struct tutti_group_use *use = &part->uses[i];

        tutti_stream_push(use->stream, use->item, batch, runs_batch);
        use->item = NULL;
        runs_batch = false;
    }
}

/* Keeps the first error in *first, and its message in `text`. */
static void keep_error(int rc, int *first, char text[TUTTI_MESSAGE_BYTES])
{
    if (rc == TUTTI_OK || *first != TUTTI_OK)
        return;
    *first = rc;
    strncpy(text, tutti_message_last(), TUTTI_MESSAGE_BYTES - 1);
}

/* Makes one pass over the batches and jobs that are not done. Returns the number of those that are
 * left. */
static size_t pass(struct tutti_group *group, bool *moved, int *first,
                   char text[TUTTI_MESSAGE_BYTES])
{
    size_t left = 0;

    for (size_t i = 0; i < group->part_count; i++) {
        struct tutti_group_part *part = &group->parts[i];
        bool has_moved = false;
        int rc;

        if (part->is_done)
            continue;
        /* acquire: pairs with the release in serve() of stream.c; the streams have reached the
         * batch */
        rc = tutti_load_acquire(&part->batch->streams_missing) > 0
                 ? TUTTI_AGAIN : tutti_batch_progress(part->batch, &has_moved);
        /* Each batch has its own flag: one that is stuck checks its deadline while others move. */
        *moved |= has_moved;
        part->is_done = rc != TUTTI_AGAIN;
        left += !part->is_done;
        if (part->is_done)
            keep_error(rc, first, text);
    }
    for (size_t i = 0; i < group->job_count; i++) {
        int rc;

        if (group->jobs[i] == NULL)
            continue;
        rc = group->jobs[i]->progress(group->jobs[i]);
        if (rc == TUTTI_AGAIN) {
            left++;
            continue;
        }
        keep_error(group->jobs[i]->close(group->jobs[i], rc), first, text);
        group->jobs[i] = NULL;
    }
    return left;
}

/* Waits after a pass that moved nothing. If only one batch is left, waits by the rules of that
 * batch. Otherwise gives the core to other threads. */
static void idle(const struct tutti_group *group, size_t left, uint32_t *passes)
{
    struct tutti_batch *last = NULL;

    for (size_t i = 0; i < group->part_count; i++)
        if (!group->parts[i].is_done)
            last = group->parts[i].batch;
    if (left == 1 && last != NULL)
        tutti_batch_idle(last);
    else if (++*passes > YIELDING_PASSES)
        tutti_pause_ns(PAUSE_NS);
    else
        sched_yield();
}

/* Makes passes over all batches and jobs until all are done. */
static void run_parts(struct tutti_group *group, int *first, char text[TUTTI_MESSAGE_BYTES])
{
    uint32_t passes = 0;
    size_t left;

    for (;;) {
        bool moved = false;

        left = pass(group, &moved, first, text);
        if (left == 0)
            return;
        if (!moved) {
            idle(group, left, &passes);
            continue;
        }
        passes = 0;
        for (size_t i = 0; i < group->part_count; i++)
            if (!group->parts[i].is_done)
                group->parts[i].batch->idle = (struct tutti_idle){.passes = 0};
    }
}

/* Returns the batch of a group whose calls are all on one communicator and on host memory, with
 * stream NULL. Returns NULL for other groups. Most groups have only this batch. */
static struct tutti_batch *only_batch(struct tutti_group *group)
{
    bool is_only = group->part_count == 1 && group->job_count == 0 && group->gpu_parts == NULL &&
                   group->first.batch == &group->batch;

    return is_only ? &group->batch : NULL;
}

int tutti_group_run(struct tutti_group *group)
{
    struct tutti_batch *only = only_batch(group);
    char text[TUTTI_MESSAGE_BYTES];
    int first = TUTTI_OK;

    for (size_t i = 0; i < group->part_count; i++) {
        if (group->parts[i].batch != NULL)
            tutti_group_issue(&group->parts[i]);
        group->parts[i].is_done = !group->parts[i].is_ours;
    }
    if (only != NULL)
        return tutti_batch_wait(only);
    text[0] = text[TUTTI_MESSAGE_BYTES - 1] = '\0';
    keep_error(tutti_gpu_parts_launch(group->gpu_parts), &first, text);
    run_parts(group, &first, text);
    keep_error(tutti_gpu_parts_wait(group->gpu_parts), &first, text);
    if (first != TUTTI_OK)
        tutti_message_set_last(text);
    return first;
}
