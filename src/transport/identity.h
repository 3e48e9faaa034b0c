/* SPDX-License-Identifier: Apache-2.0
 * The identity of this process and of its host, in a form that ranks compare with each other's. */
#ifndef TUTTI_TRANSPORT_IDENTITY_H
#define TUTTI_TRANSPORT_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#define TUTTI_IDENTITY_BYTES 16

struct tutti_identity {
    uint8_t host[TUTTI_IDENTITY_BYTES];    /* of host and user; if they are equal, try shared
                                              memory */
    uint8_t network[TUTTI_IDENTITY_BYTES]; /* if they are equal, both have the same loopback */
    uint64_t pid_namespace;                /* inode; 0 when unknown */
    uint64_t cookie;                       /* drawn once per process */
    uint64_t probe_address;                /* address of `probe`'s bytes in this process */
    uint8_t probe[TUTTI_IDENTITY_BYTES];
    int32_t pid;
    uint32_t ncores;      /* number of CPUs on which this process may run */
    uint64_t cores_hash;  /* hash of the set of these CPUs */
    uint32_t has_joined;  /* others can fence for its threads (base/fence.h) */
    uint32_t unused;
};

/* The host's name as users know it: up to the first dot, only letters, digits, '-', '_'; "unknown"
 * when the kernel does not say. Never long enough to need more than TUTTI_HOST_NAME_BYTES. */
#define TUTTI_HOST_NAME_BYTES 64
void tutti_identity_host_name(char ret_name[TUTTI_HOST_NAME_BYTES]);

/* Make a host's name that another rank has sent safe for display, in place. */
void tutti_identity_clean_name(char name[TUTTI_HOST_NAME_BYTES]);

/* Thread-safe. Never fails: values that /proc does not have are replaced by other known values. */
void tutti_identity_describe(struct tutti_identity *ret_identity);

bool tutti_identity_same_host(const struct tutti_identity *one,
                              const struct tutti_identity *other);
bool tutti_identity_same_process(const struct tutti_identity *one,
                                 const struct tutti_identity *other);

#endif
