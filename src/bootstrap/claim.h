/* SPDX-License-Identifier: Apache-2.0
 * Claims: a meeting place serves one job of a host at a time.
 *
 * Without a secret or a launcher's identity of the job, ranks of two jobs that meet at one place
 * cannot be told apart. So rank 0 claims the place for as long as its communicators live, and
 * rank 0 of another job is refused. The claim is a listening Unix socket in the abstract
 * namespace, which the kernel removes when the process ends for any reason. */
#ifndef TUTTI_BOOTSTRAP_CLAIM_H
#define TUTTI_BOOTSTRAP_CLAIM_H

struct tutti_claim;

/* Claim the place that `key` identifies, or share the claim that this process already has on it.
 * `where` names the place in messages. `fd`, if not -1, is closed with the claim, or at once if it
 * is not needed. The inode number of an open file is not reused, so a key may contain the number of
 * `fd`'s file. If the claim cannot be made for another reason than a living holder, returns
 * TUTTI_OK with *ret_claim NULL. TUTTI_ERR_USAGE: another living process of this user holds the
 * place; the message names the process. Thread-safe. */
int tutti_claim_take(const char *key, const char *where, int fd, struct tutti_claim **ret_claim);

/* Give up one share of the claim; the last one frees the place. NULL is ignored. Thread-safe. */
void tutti_claim_release(struct tutti_claim *claim);

#endif
