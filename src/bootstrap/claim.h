/* SPDX-License-Identifier: Apache-2.0
 * Claims: a place to meet serves one job of a host at a time.
 *
 * Where neither a secret nor a launcher tells jobs apart, ranks of two jobs that meet at one place
 * cannot be told apart either. So rank 0 claims the place for as long as its communicators live,
 * and rank 0 of another job is refused. The claim is a listening Unix socket in the abstract
 * namespace: the kernel drops it when the process ends, however it ends. */
#ifndef TUTTI_BOOTSTRAP_CLAIM_H
#define TUTTI_BOOTSTRAP_CLAIM_H

struct tutti_claim;

/* Claim the place that `key` stands for, or share this process's claim of it. `fd`, if not -1, is
 * taken in any case and closed with the claim: what is open keeps its number of inode, which a key
 * may be made of. *ret_claim is NULL where the system does not let us claim anything.
 * TUTTI_ERR_USAGE: another living process of this user holds it; the message names it and `where`.
 * Thread-safe. */
int tutti_claim_take(const char *key, const char *where, int fd, struct tutti_claim **ret_claim);

/* NULL is ignored. Thread-safe. */
void tutti_claim_release(struct tutti_claim *claim);

#endif
