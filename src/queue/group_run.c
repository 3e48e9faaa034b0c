/* SPDX-License-Identifier: Apache-2.0
 * Running a group: all of its batches and jobs progress together. */
#include "base/system.h"
#include "queue/group_private.h"

#include <sched.h>
#include <string.h>

void tutti_group_issue(struct part *part)
{
    struct tutti_batch *batch = part->batch;
    bool moves = !part->is_ours;

    tutti_batch_issue(batch);
    batch->streams_missing = (uint32_t)part->use_count;
    batch->references += (uint32_t)part->use_count;
    for (size_t i = 0; i < part->use_count; i++) {
        struct use *use = &part->uses[i];

        tutti_stream_push(use->stream, use->item, batch, moves);
        use->item = NULL;
        moves = false;
    }
}

/* Keeps the first error, and its message. */
static void note(int rc, int *first, char text[TUTTI_MESSAGE_BYTES])
{
    if (rc == TUTTI_OK || *first != TUTTI_OK)
        return;
    *first = rc;
    strncpy(text, tutti_last_message(), TUTTI_MESSAGE_BYTES - 1);
}

/* Progresses each batch and job that is not done once. Returns how many are left. */
static size_t pass(struct group *group, bool *moved, int *first, char text[TUTTI_MESSAGE_BYTES])
{
    size_t left = 0;

    for (size_t i = 0; i < group->part_count; i++) {
        struct part *part = &group->parts[i];
        int rc;

        if (part->is_done)
            continue;
        rc = tutti_load_acquire(&part->batch->streams_missing) > 0
                 ? TUTTI_AGAIN : tutti_batch_progress(part->batch, moved);
        part->is_done = rc != TUTTI_AGAIN;
        left += !part->is_done;
        if (part->is_done)
            note(rc, first, text);
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
        note(group->jobs[i]->close(group->jobs[i], rc), first, text);
        group->jobs[i] = NULL;
    }
    return left;
}

/* Call it after a pass that moved nothing. If one batch alone is left, waits by its own rules;
 * otherwise gives the core to other threads. */
static void idle(const struct group *group, size_t left, uint32_t *passes)
{
    struct tutti_batch *last = NULL;

    for (size_t i = 0; i < group->part_count; i++)
        if (!group->parts[i].is_done)
            last = group->parts[i].batch;
    if (left == 1 && last != NULL)
        tutti_batch_idle(last);
    else if (++*passes > 200)
        tutti_pause_ns(100000);
    else
        sched_yield();
}

static int run_all(struct group *group)
{
    char text[TUTTI_MESSAGE_BYTES] = "";
    int first = TUTTI_OK;
    uint32_t passes = 0;
    size_t left;

    for (size_t i = 0; i < group->part_count; i++) {
        if (group->parts[i].batch != NULL)
            tutti_group_issue(&group->parts[i]);
        group->parts[i].is_done = !group->parts[i].is_ours;
    }
    note(tutti_gpu_parts_launch(group->gpu_parts), &first, text);
    for (;;) {
        bool moved = false;

        left = pass(group, &moved, &first, text);
        if (left == 0)
            break;
        if (!moved) {
            idle(group, left, &passes);
            continue;
        }
        passes = 0;
        for (size_t i = 0; i < group->part_count; i++)
            if (!group->parts[i].is_done)
                group->parts[i].batch->idle = (struct tutti_idle){.passes = 0};
    }
    note(tutti_gpu_parts_wait(group->gpu_parts), &first, text);
    if (first != TUTTI_OK)
        tutti_set_last_message(text);
    return first;
}

/* True if all calls are on one communicator and on host memory, with stream NULL. Most groups are
 * like that. */
static bool is_simple(const struct group *group)
{
    return group->part_count == 1 && group->job_count == 0 && group->gpu_parts == NULL &&
           group->first.batch == &group->batch;
}

static int run_simple(struct group *group)
{
    tutti_batch_issue(&group->batch);
    return tutti_batch_wait(&group->batch);
}

int tutti_group_run(struct group *group)
{
    return is_simple(group) ? run_simple(group) : run_all(group);
}
