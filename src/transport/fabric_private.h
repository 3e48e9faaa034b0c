/* SPDX-License-Identifier: Apache-2.0
 * Declares the internals of a fabric, which the files of this directory share, and the functions
 * that transports may call.
 *
 *   fabric.c         open, connect, report, destroy
 *   fabric_parts.c   the transports of a fabric, and their slices of records and verdicts
 *   fabric_form.c    records and verdicts: join and settle
 *   fabric_route.c   the transport that serves a pair of ranks
 *   fabric_wait.c    spin, yield, sleep, wake
 *   fabric_fail.c    abort, leave, check, blame
 *   fabric_share.c   the domain that a transport has provided
 *   fabric_hosts.c   the hosts and cells of the ranks
 *   fabric_report.c  a fabric in words, for the log and for users */
#ifndef TUTTI_TRANSPORT_FABRIC_PRIVATE_H
#define TUTTI_TRANSPORT_FABRIC_PRIVATE_H

#include "base/atomic.h"
#include "base/handshake.h"
#include "base/interface.h"
#include "base/result.h"
#include "transport/fabric.h"
#include "transport/identity.h"

#include <pthread.h>

/* ---- records and verdicts ------------------------------------------------------------ */

enum {
    TUTTI_RECORD_HEAD_BYTES = 272, /* the part of a record before the slices */
    TUTTI_VERDICT_HEAD_BYTES = 8,  /* the part of a verdict before the slices */
    TUTTI_LAYOUT_BYTES = 56,
};

/* What a rank tells all others about itself before they join. */
union tutti_record {
    struct {
        uint64_t magic;
        uint32_t version;
        int32_t nranks, rank;
        int32_t declines; /* TUTTI_OK, or the error for which the rank does not take part;
                             why_declines has the text */
        uint32_t uses;    /* bit i: transport i of the table is allowed and open */
        uint32_t lacks;   /* bit i: transport i is allowed, but the host lacks descriptors or
                             memory for it */
        uint64_t nonce;   /* a random number of this fabric */
        struct tutti_identity identity;
        int32_t cells[TUTTI_CELL_LEVELS]; /* the rank's cells of its host; -1: not known */
        uint32_t mbits; /* rate of the interface to which other hosts connect; 0: not known */
        char host_name[TUTTI_HOST_NAME_BYTES]; /* for people; the identity distinguishes hosts */
        /* The table of transports as text, with the sizes of their slices (fabric_parts.c). All
         * ranks must have the same. */
        char layout[TUTTI_LAYOUT_BYTES];
        /* The slices of the transports, in the order of the table. Each begins at a multiple of
         * 8. */
        union {
            uint8_t slices[TUTTI_FABRIC_RECORD_BYTES - TUTTI_RECORD_HEAD_BYTES];
            char why_declines[TUTTI_FABRIC_RECORD_BYTES - TUTTI_RECORD_HEAD_BYTES];
        };
    };
    uint8_t bytes[TUTTI_FABRIC_RECORD_BYTES];
};
_Static_assert(sizeof(union tutti_record) == TUTTI_FABRIC_RECORD_BYTES, "the record fits");

/* What a rank tells all others about its transports after it has tried them. */
union tutti_verdict {
    struct {
        uint32_t magic, unused;
        uint8_t slices[TUTTI_FABRIC_VERDICT_BYTES - TUTTI_VERDICT_HEAD_BYTES];
    };
    uint8_t bytes[TUTTI_FABRIC_VERDICT_BYTES];
};
_Static_assert(sizeof(union tutti_verdict) == TUTTI_FABRIC_VERDICT_BYTES, "the verdict fits");

/* ---- the fabric ---------------------------------------------------------------------- */

enum tutti_form_phase {
    TUTTI_FORM_OPEN,    /* the records of the other ranks are not known */
    TUTTI_FORM_JOINING, /* their records are known */
    TUTTI_FORM_SETTLED, /* their verdicts are known, too, and the routes are chosen */
};

/* The reason why the communicator is lost, as the first rank that gave up has reported it. */
struct tutti_cause {
    int code; /* the error of that rank */
    int rank; /* that rank */
    char reason[TUTTI_ABORT_REASON_BYTES];
};

/* A peer that has ended, or a peer whose connection is lost. The text is "rank N <what>". */
struct tutti_loss {
    int peer;
    char what[256];
};

/* A part: one transport in a fabric. */
enum { TUTTI_MOST_TRANSPORTS = 16 };
struct tutti_part {
    const struct tutti_transport_ops *ops;
    void *state;                    /* the transport's own; set under `lock` */
    uint32_t record_at, verdict_at; /* offsets of its slices in the slices of all transports */
    bool is_open;                   /* `open` has succeeded, and `destroy` is due */
    bool has_joined;                /* `join` has succeeded */
    bool is_used;  /* true if it serves a peer of this rank */
    int dead_from; /* the rank at which the next search for dead ranks begins */
};

struct tutti_fabric {
    int nranks, rank;
    uint8_t secret[TUTTI_SECRET_BYTES];
    uint64_t deadline_ns; /* for forming */
    bool is_between_hosts; /* as in struct tutti_fabric_args, as is `nearest`; "": not known */
    char nearest[TUTTI_INTERFACE_NAME_BYTES];

    /* Forming. */
    enum tutti_form_phase phase;
    struct tutti_part parts[TUTTI_MOST_TRANSPORTS]; /* in the order of the table */
    uint32_t nparts;
    union tutti_record mine;
    union tutti_verdict verdict;
    union tutti_record *records;   /* [nranks] */
    union tutti_verdict *verdicts; /* [nranks] */

    /* The parts that ranks of this host share (tutti_fabric_share). */
    struct tutti_sharing sharing;

    /* Connections. */
    const struct tutti_transport_ops **routes;                      /* [nranks] */
    struct tutti_conn **conns;                                      /* [nranks][channel] */
    bool *is_ready;                                                 /* [nranks][channel] */
    void (*progress[TUTTI_MOST_TRANSPORTS])(struct tutti_fabric *); /* of parts that are used */
    uint32_t nprogress;

    /* Waiting. */
    struct tutti_waiter local_waiter; /* the waiter of a rank without a domain */
    struct tutti_waiter *waiter;    /* this rank's waiter; set under `lock` */
    uint64_t spin_ns;     /* how long a wait spins before it yields (TUTTI_SPIN_US) */
    bool is_crowded;      /* ranks of this host outnumber its cores */
    bool has_short_sleeps;            /* true if sleeps on descriptors are short (tutti_wait_nap) */
    uint32_t ranks_per_core;  /* the number of ranks that may wait on one core; 0: any number */
    /* The rank looks for a better core each time that it has yielded its core yields_per_search
     * times. yields_left counts down to the next time. */
    uint32_t yields_left, yields_per_search;
    uint32_t sleep_kind;      /* the kind of sleep that this rank has announced */
    int epoll_fd, event_fd; /* -1: no route needs descriptors; set under `lock` */

    /* Failing. `lock` guards the fields that tutti_fabric_abort and tutti_fabric_wake read on other
     * threads. */
    pthread_mutex_t lock;
    uint32_t is_aborted; /* release: after abort_code and abort_reason */
    int abort_code;
    char abort_reason[TUTTI_ABORT_REASON_BYTES];
    bool has_heard; /* `heard` is the reason that a peer has sent for giving up; under `lock` */
    struct tutti_cause heard;
    /* A connection was lost. The peer may have given up, and its reason may still be on the way. */
    uint64_t suspected_ns; /* the time of the loss; 0: no connection was lost */
    struct tutti_loss suspicion;
    int failure; /* the error that tutti_fabric_keep_failure keeps; TUTTI_OK: none */
    char failure_text[TUTTI_MESSAGE_BYTES];
    bool has_left;
};

static inline size_t tutti_conn_index(int peer, int channel)
{
    return (size_t)peer * TUTTI_CHANNEL_COUNT + (size_t)channel;
}

/* ---- fabric.c ------------------------------------------------------------------------ */

/* Returns a zeroed connection of `size` bytes with its base filled in. The caller frees it with
 * free(). Returns NULL if there is no memory; the failure is then recorded and logged. */
void *tutti_conn_create(struct tutti_fabric *fabric, const struct tutti_conn_ops *ops, int peer,
                        int channel, size_t size);

/* ---- fabric_parts.c ------------------------------------------------------------------ */

/* Lay out the slices of all transports. */
int tutti_parts_init(struct tutti_fabric *fabric);

/* tutti_part_state returns the transport's own state in this fabric, or NULL before it is set.
 * tutti_part_set_state sets the state under fabric->lock, because an abort by another thread may
 * read it. */
void *tutti_part_state(const struct tutti_fabric *fabric, const struct tutti_transport_ops *ops);
void tutti_part_set_state(struct tutti_fabric *fabric, const struct tutti_transport_ops *ops,
                          void *state);

/* Returns a transport's slice of the record of `rank`, after join has begun, or of this rank's own
 * record. */
void *tutti_record_slice(const struct tutti_fabric *fabric, const struct tutti_transport_ops *ops,
                         int rank);
void *tutti_record_own_slice(struct tutti_fabric *fabric, const struct tutti_transport_ops *ops);

/* These do the same for verdicts. The verdict of another rank is valid after settle has begun. */
void *tutti_verdict_slice(const struct tutti_fabric *fabric, const struct tutti_transport_ops *ops,
                          int rank);
void *tutti_verdict_own_slice(struct tutti_fabric *fabric, const struct tutti_transport_ops *ops);

/* True if the record of `rank` says that it uses the transport. Valid after join has begun. */
bool tutti_part_is_used_by(const struct tutti_fabric *fabric, const struct tutti_transport_ops *ops,
                           int rank);
/* True if this rank uses the transport. */
bool tutti_part_is_used(const struct tutti_fabric *fabric, const struct tutti_transport_ops *ops);

/* Get the transports that TUTTI_TRANSPORTS permits, as bits: bit i is transport i of the table.
 * TUTTI_ERR_USAGE: the variable names an unknown transport. */
int tutti_parts_allowed(const struct tutti_fabric *fabric, uint32_t *ret_uses);

/* tutti_fabric_same_host is true if two ranks are on one host, so that they may share memory.
 * tutti_fabric_same_network is true if they are in one network namespace, so that they can connect
 * by the loopback interface. */
bool tutti_fabric_same_host(const struct tutti_fabric *fabric, int a, int b);
bool tutti_fabric_same_network(const struct tutti_fabric *fabric, int a, int b);

/* Call `progress` of all transports that are used. */
void tutti_parts_progress(struct tutti_fabric *fabric);

/* ---- fabric_route.c ------------------------------------------------------------------ */

/* Returns the transport that serves a pair; NULL: none. The order of the two ranks does not matter.
 * Valid after settle has begun. */
const struct tutti_transport_ops *tutti_route_find(const struct tutti_fabric *fabric, int a, int b);

/* Fill fabric->routes and is_used of the parts; TUTTI_ERR_USAGE names a pair of ranks that has no
 * route. */
int tutti_route_all(struct tutti_fabric *fabric);

/* ---- fabric_share.c ------------------------------------------------------------------ */

/* Set the data of a transport that shares memory. The `settle` of that transport calls this. Only
 * one transport of the table shares memory. */
void tutti_fabric_share(struct tutti_fabric *fabric, const struct tutti_sharing *sharing);

/* ---- fabric_wait.c ------------------------------------------------------------------- */

/* Decide how this rank waits. Call this when the fabric opens, and again when the routes are
 * chosen. */
void tutti_wait_init(struct tutti_fabric *fabric);

/* Open the epoll and event descriptors that a sleep on descriptors needs. A transport's open calls
 * this before the ranks meet, so that a rank that has no descriptors left can still tell the
 * others. */
int tutti_wait_reserve(struct tutti_fabric *fabric);
/* tutti_wait_open puts these descriptors to use if a route needs them, and otherwise releases them.
 * tutti_wait_release closes them. */
int tutti_wait_open(struct tutti_fabric *fabric);
void tutti_wait_release(struct tutti_fabric *fabric);
/* True if descriptors are watched. */
static inline bool tutti_wait_has_descriptors(const struct tutti_fabric *fabric)
{
    return fabric->epoll_fd >= 0;
}

/* Make `fd` end a sleep, too, until it is closed. */
int tutti_wait_watch(struct tutti_fabric *fabric, int fd);

/* Keep sleeps on descriptors short, because something may happen that no descriptor reports. */
void tutti_wait_nap(struct tutti_fabric *fabric);

/* ---- fabric_fail.c ------------------------------------------------------------------- */

/* Returns the error for a call that could not continue because of `peer`. It is the reason for
 * which the fabric failed if that is known (an abort, a death), else "rank N <what>". The error is
 * kept. */
int tutti_fabric_peer_failed(struct tutti_fabric *fabric, int peer, const char *what);

/* Keep the first failure of the fabric, with the thread's last message, so that every later check
 * finds it. Returns `rc`. */
int tutti_fabric_keep_failure(struct tutti_fabric *fabric, int rc);

/* Call this when the connection to `peer` was lost. The peer may have given up, and its reason may
 * still be on the way. TUTTI_AGAIN: call this function or tutti_fabric_check again. Some
 * milliseconds after the first loss, this function returns the result of tutti_fabric_peer_failed
 * for the peer that was lost first. */
int tutti_fabric_conn_lost(struct tutti_fabric *fabric, int peer, const char *what);

/* Record the reason that a peer has sent for giving up. */
void tutti_fabric_record_cause(struct tutti_fabric *fabric, const struct tutti_cause *cause);

#endif
