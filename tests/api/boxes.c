/* SPDX-License-Identifier: Apache-2.0
 * What the tests of mailboxes share: worlds of several sizes, opening a mailbox, waiting. */
#include "api/boxes.h"

#include <time.h>

static const int sizes[] = {1, 2, 3, 5};

void boxes_run_everywhere(member_fn fn)
{
    for (int launch = 0; launch < LAUNCH_COUNT; launch++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            world_run(launch, sizes[i], fn, NULL);
}

void boxes_run_pairs(member_fn fn)
{
    for (int launch = 0; launch < LAUNCH_COUNT; launch++)
        world_run(launch, 2, fn, NULL);
}

bool boxes_open(struct member *member, tuttiMailbox_t *box)
{
    *box = NULL;
    return EXPECT_OK(member, tuttiMailboxCreate(member->comm, box));
}

bool boxes_wait(struct member *member, tuttiRequest_t *request)
{
    return EXPECT_OK(member, tuttiRequestWait(request, -1, NULL, NULL)) &&
           EXPECT(member, *request == NULL);
}

void boxes_sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}
