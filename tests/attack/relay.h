/* SPDX-License-Identifier: Apache-2.0
 * A relay between two ranks that does not hold their secret. It forwards their bytes, remembers
 * them, and manipulates them once when it is told to.
 *
 * It has threads of its own. All calls are made by one thread at a time. */
#ifndef TUTTI_TESTS_RELAY_H
#define TUTTI_TESTS_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mischief_kind {
    MISCHIEF_FLIP,   /* It flips one bit of byte `at`. */
    MISCHIEF_DROP,   /* It leaves out `size` bytes from `at` on. */
    MISCHIEF_REPEAT, /* It sends `size` bytes from `at` on twice. */
    MISCHIEF_SWAP,   /* It sends `size` bytes from `at` on after as many that follow them. */
    MISCHIEF_CUT,    /* It closes the connection before byte `at`. */
    MISCHIEF_KINDS
};

struct mischief {
    enum mischief_kind kind;
    bool from_caller;  /* in the direction from the rank that calls to the one that is called */
    size_t at;         /* bytes after relay_arm, in that direction */
    size_t size;       /* at most RELAY_MOST_BYTES */
    int bit;
};

enum { RELAY_MOST_BYTES = 1024 };

struct relay;

/* Listen on the IPv4 loopback. */
struct relay *relay_start(void);
void relay_stop(struct relay *relay);

uint16_t relay_port_be(const struct relay *relay);

/* Where calls are passed on to, on the IPv4 loopback. Before the first call. */
void relay_lead_to(struct relay *relay, uint16_t port_be);

/* Do this to the first connection, while nothing is on its way. */
void relay_arm(struct relay *relay, const struct mischief *mischief);

/* True if it has been done. */
bool relay_has_struck(struct relay *relay);

/* True if these bytes, at most 64 of them, were among the first MiB that went either way. */
bool relay_has_seen(struct relay *relay, const void *bytes, size_t size);

#endif
