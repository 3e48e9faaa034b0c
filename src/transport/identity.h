/* SPDX-License-Identifier: Apache-2.0
 * Describes the identity of this process and of its host. Ranks exchange these identities and
 * compare them, to find out which ranks share a host or a process. */
#ifndef TUTTI_TRANSPORT_IDENTITY_H
#define TUTTI_TRANSPORT_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#define TUTTI_IDENTITY_BYTES 16

struct tutti_identity {
    uint8_t host[TUTTI_IDENTITY_BYTES];    /* hash of host and user; two ranks with equal hashes
                                              try shared memory */
    uint8_t network[TUTTI_IDENTITY_BYTES]; /* hash of the network namespace; two ranks with equal
                                              hashes have the same loopback interface */
    uint64_t pid_namespace;                /* inode number; 0 if it is not known */
    uint64_t cookie;                       /* random number, drawn once per process */
    /* Random bytes, drawn once per process, and their address in this process. Another process that
     * reads them there can read this process's memory. */
    uint64_t probe_address;
    uint8_t probe[TUTTI_IDENTITY_BYTES];
    int32_t pid;
    uint32_t ncores;      /* number of CPUs on which this process may run */
    uint64_t cores_hash;  /* hash of the set of these CPUs */
    uint32_t accepts_fences; /* 1 if others can run fences on its threads (base/fence.h) */
    uint32_t unused;
};

/* Writes the host's name up to its first dot. Only letters, digits, '-' and '_' are kept, and '?'
 * replaces every other character. The name is "unknown" if the kernel gives none. A name that is
 * too long is cut. The rest of the array is zeroed. Thread-safe. */
#define TUTTI_HOST_NAME_BYTES 64
void tutti_identity_host_name(char ret_name[TUTTI_HOST_NAME_BYTES]);

/* Makes a host's name that another rank has sent safe for display, in place. The name ends within
 * the array afterwards. */
void tutti_identity_clean_name(char name[TUTTI_HOST_NAME_BYTES]);

/* Describes this process and its host. Never fails: if /proc lacks a value, another known value
 * replaces it. Thread-safe. */
void tutti_identity_describe(struct tutti_identity *ret_identity);

/* These return true if both ranks are of one host and user, or of one process. */
bool tutti_identity_same_host(const struct tutti_identity *one,
                              const struct tutti_identity *other);
bool tutti_identity_same_process(const struct tutti_identity *one,
                                 const struct tutti_identity *other);

#endif
