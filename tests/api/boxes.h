/* SPDX-License-Identifier: Apache-2.0
 * What the tests of mailboxes share: worlds of several sizes, opening a mailbox, waiting. */
#ifndef TUTTI_TESTS_API_BOXES_H
#define TUTTI_TESTS_API_BOXES_H

#include "support/crowd.h"

/* Run `fn` on the ranks of worlds of 1 to 5 ranks, or of 2 ranks, in processes and in threads. */
void boxes_run_everywhere(member_fn fn);
void boxes_run_pairs(member_fn fn);

/* Creates the mailbox of a rank. False: it failed, which the member has noted. */
bool boxes_open(struct member *member, tuttiMailbox_t *box);
/* Waits for a request without a limit, and expects that it ends without an error. */
bool boxes_wait(struct member *member, tuttiRequest_t *request);
void boxes_sleep_ms(int ms);

#endif
