/* SPDX-License-Identifier: Apache-2.0
 * Claims ensure that a meeting place serves only one job of a host at a time.
 *
 * Two jobs may meet at one place by mistake. Their ranks cannot be told apart if there is neither a
 * secret nor an identity of the job from a launcher. So rank 0 claims the place for as long as its
 * communicators live, and rank 0 of another job is refused. The claim is a listening Unix socket in
 * the abstract namespace, which the kernel removes when the process ends for any reason. A process
 * that is refused connects to the socket to find its holder. So the holder can tell that another
 * job came to its place. */
#ifndef TUTTI_BOOTSTRAP_CLAIM_H
#define TUTTI_BOOTSTRAP_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

struct tutti_claim;

/* Claim the place that `key` identifies, or share the claim that this process already has on it.
 * `where` names the place in messages. This function takes over `fd`, unless it is -1. The
 * descriptor is closed with the claim, or at once if the claim does not need it. The inode number
 * of an open file is not reused, so a key may contain the inode number of `fd`'s file.
 * TUTTI_OK with *ret_claim NULL: the claim cannot be made, although no living process of this user
 * holds the place.
 * TUTTI_ERR_USAGE: another living process of this user holds the place; the message names it.
 * TUTTI_ERR_SYSTEM: there is no memory. Thread-safe. */
int tutti_claim_take(const char *key, const char *where, int fd, struct tutti_claim **ret_claim);

/* True if another process of this user has tried to claim the place, and was refused, at most 10 s
 * before `begun_ns` (tutti_now_ns) or later. False for NULL. Thread-safe. */
bool tutti_claim_has_rival(struct tutti_claim *claim, uint64_t begun_ns);

/* Give up one share of the claim; the last one frees the place. NULL is ignored. Thread-safe. */
void tutti_claim_release(struct tutti_claim *claim);

#endif
