/* SPDX-License-Identifier: Apache-2.0
 * What the files of this room share about a fabric.
 *
 *   fabric.c       open, connect, report, destroy
 *   fabric_form.c  records and verdicts: join and settle
 *   fabric_route.c which transport serves a pair of ranks
 *   fabric_wait.c  spin, yield, sleep, wake
 *   fabric_fail.c  abort, leave, check, blame
 *   fabric_guard.c who is inside whose memory
 *   fabric_hosts.c who lives with whom
 *   fabric_report.c all this in words
 */
#ifndef TUTTI_TRANSPORT_FABRIC_PRIVATE_H
#define TUTTI_TRANSPORT_FABRIC_PRIVATE_H

#include "base/result.h"
#include "base/socket.h"
#include "transport/fabric.h"
#include "transport/identity.h"
#include "transport/shm/lend.h"
#include "transport/shm/segment.h"

#include <pthread.h>

#define TUTTI_MAX_CANDIDATES 12

/* What TUTTI_TRANSPORTS and the host allow a rank. */
enum { TUTTI_USE_SHM = 1, TUTTI_USE_CMA = 2, TUTTI_USE_TCP = 4 };

union tutti_record {
    struct {
        uint64_t magic;
        uint32_t version;
        int32_t nranks, rank;
        int32_t declines;  /* TUTTI_OK, or why it does not take part; why_no_tcp has the text */
        uint32_t uses;
        struct tutti_identity identity;
        uint64_t nonce;    /* drawn per fabric */
        uint16_t port_be;  /* of the TCP listener */
        uint8_t nsockets;  /* TUTTI_SOCKETS_PER_PEER; the lesser of two ranks' counts is used */
        uint8_t ncandidates;
        uint32_t mbits;    /* of the interface of the first candidate; 0: not known */
        int32_t cells[TUTTI_CELL_LEVELS]; /* of its host; -1: not known */
        uint8_t seal_mode; /* TUTTI_ENCRYPT (seal.h) */
        uint8_t has_aes;   /* instructions for AES-256-GCM */
        uint8_t is_short;  /* no TCP, for want of descriptors or memory */
        union {
            struct tutti_address candidates[TUTTI_MAX_CANDIDATES]; /* the first `ncandidates` */
            /* Of a rank without TUTTI_USE_TCP: why, for people; "": it was not asked for. */
            char why_no_tcp[TUTTI_MAX_CANDIDATES * sizeof(struct tutti_address)];
        };
        char host_name[TUTTI_HOST_NAME_BYTES]; /* for people; hosts are told apart by identity */
    };
    uint8_t bytes[TUTTI_FABRIC_RECORD_BYTES];
};
_Static_assert(sizeof(union tutti_record) == TUTTI_FABRIC_RECORD_BYTES, "the record fits");

union tutti_verdict {
    struct {
        uint32_t magic;
        uint8_t has_segment;
        uint8_t can_read; /* every other process of the domain, by system call */
        char reason[58];  /* why there is no segment */
    };
    uint8_t bytes[TUTTI_FABRIC_VERDICT_BYTES];
};
_Static_assert(sizeof(union tutti_verdict) == TUTTI_FABRIC_VERDICT_BYTES, "the verdict fits");

enum tutti_form_phase {
    TUTTI_FORM_OPEN,
    TUTTI_FORM_PASSING,
    TUTTI_FORM_JOINED,
    TUTTI_FORM_SETTLED,
};

/* Why the communicator is lost: what the first rank that gave up has said. */
struct tutti_cause {
    int code, rank;
    char reason[TUTTI_ABORT_REASON_BYTES];
};

/* A socket to reset at abort; `peer` is -1 unless it is a connection's. */
struct tutti_held_fd {
    int fd, peer;
};

struct tutti_fabric {
    int nranks, rank;
    uint8_t secret[TUTTI_SECRET_BYTES];
    uint64_t deadline_ns;

    /* Forming. */
    enum tutti_form_phase phase;
    union tutti_record mine;
    union tutti_verdict verdict;
    union tutti_record *records;   /* [nranks] */
    union tutti_verdict *verdicts; /* [nranks] */
    struct tutti_pass *pass;
    struct tutti_segment *segment; /* set and cleared under `lock` */
    uint32_t *members;             /* ranks of my host that may share memory, ascending */
    uint32_t nmembers, my_index;
    bool has_domain, is_one_domain, all_store, all_read;
    int cma_error;                 /* errno of the first member whose memory we cannot read */
    int cma_denied_by;             /* that rank; -1: none */
    bool shares_memory;            /* a member reads another's own memory */
    struct tutti_lend *lend;       /* NULL: no member is a process that can read mine */
    uint32_t times_inside;         /* that memory: calls of enter that exit has not ended */

    /* Connections. */
    const struct tutti_transport_ops **routes; /* [nranks] */
    struct tutti_conn **conns;                 /* [nranks][channel] */
    bool *is_ready;                            /* [nranks][channel] */
    struct tutti_tcp *tcp;                     /* NULL: no TCP here */

    /* Waiting. */
    struct tutti_door local_door; /* where a rank without domain sleeps */
    struct tutti_door *door;      /* set under `lock` */
    uint64_t spin_ns;
    bool is_crowded;              /* ranks of my host outnumber its cores */
    uint32_t core_share;          /* how many of us may wait on one core; 0: wherever they are */
    uint32_t offers_left;         /* how often to offer the core until we look who is where */
    uint32_t offers_per_look;
    uint32_t sleeps_how;          /* as announced */
    int epoll_fd, event_fd;       /* -1: no route needs sockets; set under `lock` */

    /* Failing. `lock` guards what abort and wake, from other threads, look at. */
    pthread_mutex_t lock;
    struct tutti_held_fd *held_fds; /* sockets to reset at abort */
    size_t nheld, held_capacity;
    uint32_t is_aborted;          /* release: after abort_code and abort_reason */
    int abort_code;
    char abort_reason[TUTTI_ABORT_REASON_BYTES];
    bool has_heard;               /* from a peer by TCP why it has given up; under `lock` */
    struct tutti_cause heard;
    /* A connection was lost. Its end may have given up, and the reason be on its way. */
    uint64_t suspected_ns;        /* since when; 0: none was lost */
    int suspect;
    char suspicion[256];
    int failure;                  /* what check or blame has found; TUTTI_OK before */
    char failure_text[TUTTI_MESSAGE_BYTES];
    uint32_t check_next;          /* member whose lock is tested next */
    bool has_left;
};

static inline size_t tutti_conn_index(int peer, int channel)
{
    return (size_t)peer * TUTTI_CHANNEL_COUNT + (size_t)channel;
}

/* ---- fabric.c ------------------------------------------------------------------------ */

/* A zeroed connection of `size` bytes with its base filled in; NULL, having failed, when there is
 * no memory. Freed with free(). */
void *tutti_conn_create(struct tutti_fabric *fabric, const struct tutti_transport_ops *ops,
                        int peer, int channel, size_t size);

/* ---- fabric_route.c ------------------------------------------------------------------ */

/* Can `a` and `b` use it, as all records and verdicts tell? Symmetric. After settle has begun. */
bool tutti_route_shm(const struct tutti_fabric *fabric, int a, int b);
bool tutti_route_cma(const struct tutti_fabric *fabric, int a, int b);
bool tutti_route_tcp(const struct tutti_fabric *fabric, int a, int b);

/* Fill fabric->routes; TUTTI_ERR_USAGE names a pair of ranks that has none. */
int tutti_route_all(struct tutti_fabric *fabric);

/* Addresses at which `from` may try to reach `to`, best first, ports set. Returns how many. */
size_t tutti_route_candidates(const struct tutti_fabric *fabric, int from, int to,
                              struct tutti_address ret_addresses[TUTTI_MAX_CANDIDATES]);

/* Index of a rank in this rank's domain, which it must share. */
uint32_t tutti_member_index(const struct tutti_fabric *fabric, int rank);

/* ---- fabric_wait.c ------------------------------------------------------------------- */

void tutti_wait_init(struct tutti_fabric *fabric);

/* Get what sleeping on sockets, and on the domain besides, needs. */
int tutti_wait_open_sockets(struct tutti_fabric *fabric);
/* Its descriptors are taken before the ranks meet, so that a rank that lacks them can still tell the
 * others. Release them where no route needs sockets. */
int tutti_wait_reserve(struct tutti_fabric *fabric);
void tutti_wait_release(struct tutti_fabric *fabric);

/* Let the end of a sleep depend on `fd`, too, until it is closed. */
int tutti_wait_watch(struct tutti_fabric *fabric, int fd);

/* ---- fabric_fail.c ------------------------------------------------------------------- */

/* The error for a call that could not go on because of `peer`: why the fabric failed if that is
 * known (an abort, a death), else "rank N <what>". Remembered. */
int tutti_fabric_blame(struct tutti_fabric *fabric, int peer, const char *what);

/* Keep the first failure of the fabric, with the thread's last message: every later look finds it.
 * Returns `rc`. */
int tutti_fabric_remember(struct tutti_fabric *fabric, int rc);

/* The connection to `peer` was lost. TUTTI_AGAIN: wait a moment for its reason, by calls of this or
 * of tutti_fabric_check. Then as tutti_fabric_blame, of the peer that was lost first. */
int tutti_fabric_suspect(struct tutti_fabric *fabric, int peer, const char *what);

/* A peer says by TCP why it has given up. */
void tutti_fabric_hear(struct tutti_fabric *fabric, const struct tutti_cause *cause);

/* Sockets to reset at abort, so that the peers notice. `peer`: whose, -1 for nobody's yet. */
int tutti_fabric_hold_fd(struct tutti_fabric *fabric, int fd, int peer);
void tutti_fabric_drop_fd(struct tutti_fabric *fabric, int fd);

/* ---- tcp ----------------------------------------------------------------------------- */

/* Listen. TUTTI_ERR_SYSTEM: this host cannot. Fills the record's port, sockets and candidates. */
int tutti_tcp_open(struct tutti_fabric *fabric);
/* The records are known: stop listening where no rank will call. */
void tutti_tcp_withdraw(struct tutti_fabric *fabric);
/* After settle: no rank needs it (then it closes), or calls are taken from now on. */
int tutti_tcp_settle(struct tutti_fabric *fabric, bool is_needed);
/* Accept callers, go on with handshakes and connects. */
void tutti_tcp_progress(struct tutti_fabric *fabric);
/* Are there sockets, or may callers come? */
bool tutti_tcp_is_busy(const struct tutti_fabric *fabric);
void tutti_tcp_destroy(struct tutti_fabric *fabric);
/* A connection that was lost: the peer, and what happened; -1 if none. Costs a system call per 64
 * sockets, and now and then one per socket. `ret_what` lives until the next call. */
int tutti_tcp_find_lost(struct tutti_fabric *fabric, const char **ret_what);

#endif
