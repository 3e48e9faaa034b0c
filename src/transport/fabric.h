/* SPDX-License-Identifier: Apache-2.0
 * A fabric is one rank's view of its communicator's ranks. It knows where the ranks are and which
 * transport reaches each, and it holds the connections made so far and the domain of its host.
 *
 *     tutti_fabric_open(args, &fabric)            listen; describe this rank
 *       all-gather of fabric's record
 *     tutti_fabric_join(fabric, records)          resumable: try which transports work here
 *       all-gather of fabric's verdict
 *     tutti_fabric_settle(fabric, verdicts)       use what all members of a host support
 *
 * No call blocks, except that tutti_fabric_idle may sleep, tutti_fabric_drain waits for other
 * ranks, and tutti_fabric_abort may take some tenths of a second. One thread at a time may use a
 * fabric, except by functions whose comment says "Any thread".
 */
#ifndef TUTTI_TRANSPORT_FABRIC_H
#define TUTTI_TRANSPORT_FABRIC_H

#include "base/handshake.h"
#include "transport/domain.h"
#include "transport/transport.h"

#define TUTTI_FABRIC_RECORD_BYTES 704
#define TUTTI_FABRIC_VERDICT_BYTES 96

/* A pair of ranks has a connection on each channel. Connections on different channels never wait
 * for each other. */
enum { TUTTI_CHANNEL_COLLECTIVE = 0, TUTTI_CHANNEL_POINT_TO_POINT = 1, TUTTI_CHANNEL_COUNT = 2 };

/* A host may be divided into cells in TUTTI_CELL_LEVELS ways, from the coarsest on. */
enum { TUTTI_CELL_LEVELS = 3 };

struct tutti_fabric_args {
    int nranks, rank;
    /* The communicator's secret. It may be zero here if the ranks agree on it only when they meet.
     * Then tutti_fabric_set_secret sets it before the join. */
    uint8_t secret[TUTTI_SECRET_BYTES];
    uint64_t deadline_ns; /* the deadline for forming, on the clock of tutti_now_ns */
    /* The rank's cell of its host, for each way of dividing the host; -1: not known. */
    int32_t cells[TUTTI_CELL_LEVELS];
    /* True if the fabric connects ranks of different hosts only. Then it has only the transports
     * that do this. */
    bool is_between_hosts;
    /* The network interface that is nearest to the rank's memory, at which others should call it
     * first; NULL: not known. It is copied. */
    const char *nearest;
};

/* Open the transports that this rank may use, and make its record. The caller destroys *ret_fabric.
 * A transport that cannot be opened is logged and not used. TUTTI_ERR_SYSTEM: no memory.
 * TUTTI_ERR_USAGE: a variable has a wrong value. */
int tutti_fabric_open(const struct tutti_fabric_args *args, struct tutti_fabric **ret_fabric);

/* These return the data that this rank sends to the others. They have TUTTI_FABRIC_RECORD_BYTES and
 * TUTTI_FABRIC_VERDICT_BYTES bytes and belong to the fabric. The verdict is valid after join. */
const void *tutti_fabric_record(const struct tutti_fabric *fabric);
const void *tutti_fabric_verdict(const struct tutti_fabric *fabric);

/* Make the record of a rank that cannot open a fabric, because of error `rc` and its message
 * `reason`. The join of all other ranks fails, and its message has the reason. */
void tutti_fabric_decline(int nranks, int rank, int rc, const char *reason,
                          uint8_t ret_record[TUTTI_FABRIC_RECORD_BYTES]);

/* Set the secret, once it is known. Call it before the join. */
void tutti_fabric_set_secret(struct tutti_fabric *fabric, const uint8_t secret[TUTTI_SECRET_BYTES]);

/* Join the other ranks. The function copies `records`, which has nranks of them. TUTTI_AGAIN: call
 * again. A transport that does not work on a host is no error: the verdict says so, and the ranks
 * use another transport.
 * Records are checked before use: TUTTI_ERR_USAGE names the rank whose record is not of this
 * version, of a library with these transports, or of this communicator. */
int tutti_fabric_join(struct tutti_fabric *fabric, const void *records);

/* Choose transports from all verdicts. TUTTI_ERR_USAGE: some pair of ranks has no transport left.
 * The message names the pair, the transports that were tried, and the reason for each. */
int tutti_fabric_settle(struct tutti_fabric *fabric, const void *verdicts);

/* Get the connection to `peer` on `channel`. The first call begins to make the connection, which
 * the fabric owns. TUTTI_AGAIN: the connection is not ready yet, so call again. As long as it is
 * not ready, each call also makes progress on every other connection that is being made, and
 * accepts peers that connect. Other errors: the peer cannot be reached or has ended, this rank has
 * aborted, or there is no memory or descriptor left. */
int tutti_fabric_connect(struct tutti_fabric *fabric, int peer, int channel,
                         struct tutti_conn **ret_conn);

/* Close the connection to `peer` on `channel`, which both sides have finished with. The peer is not
 * taken for lost then. NULL and unfinished connections are closed, too. */
void tutti_fabric_disconnect(struct tutti_fabric *fabric, int peer, int channel);

/* True if a transport that serves ranks of different hosts is open. Valid after tutti_fabric_open. */
bool tutti_fabric_reaches_hosts(const struct tutti_fabric *fabric);

/* Continue everything that does not belong to a connection, such as handshakes with peers that
 * connect. tutti_fabric_connect and tutti_fabric_idle do this, too. */
void tutti_fabric_progress(struct tutti_fabric *fabric);

/* ---- what ranks of a host share ------------------------------------------------------- */

/* The data that a transport that shares memory provides. `lend` and `domain` are the results of the
 * first two functions below. */
struct tutti_sharing {
    struct tutti_domain *domain;
    struct tutti_lend *lend;
    /* The results of the functions below whose names end like these. They are the same on all
     * ranks. */
    bool is_one_domain, all_store, all_read, shares_hosts;
    /* This rank can access the own memory of another member (domain.h). */
    bool shares_memory;
};

/* Returns the load/store domain of this rank's host; NULL if there is none (one rank on the host,
 * or no shared memory). */
struct tutti_domain *tutti_fabric_domain(struct tutti_fabric *fabric);

/* Returns the memory that the members of that domain lend each other; NULL: none, because no member
 * is another process that can read this rank's memory. */
struct tutti_lend *tutti_fabric_lend(struct tutti_fabric *fabric);

/* tutti_fabric_is_one_domain is true if there are several ranks, and all of them are in one domain.
 * tutti_fabric_all_store is true if they are also in one process, so that each can store to all
 * memory of the others. tutti_fabric_all_read is true if they are in one domain, and each can read
 * all memory of the others. The answers are the same on all ranks. */
bool tutti_fabric_is_one_domain(const struct tutti_fabric *fabric);
bool tutti_fabric_all_store(const struct tutti_fabric *fabric);
bool tutti_fabric_all_read(const struct tutti_fabric *fabric);

/* The results of these functions are valid after settle and are the same on all ranks.
 * tutti_fabric_hosts sets ret_host[nranks] to the host of each rank, numbered in the order of their
 * first ranks, and returns the number of hosts. tutti_fabric_shares_hosts is true if the ranks of
 * each host share memory. tutti_fabric_cores returns the number of cores that the ranks of rank 0's
 * host may use. */
uint32_t tutti_fabric_hosts(const struct tutti_fabric *fabric, uint32_t *ret_host);
bool tutti_fabric_shares_hosts(const struct tutti_fabric *fabric);
uint32_t tutti_fabric_cores(const struct tutti_fabric *fabric);
/* Returns the rate of the slowest interface through which ranks of different hosts connect to each
 * other, in Mbit/s. Returns 0 if a rate is not known, or if all ranks are on one host. */
uint32_t tutti_fabric_mbits(const struct tutti_fabric *fabric);
/* Gets the cell of each rank. `host` has the hosts of all ranks, and cells are numbered through all
 * hosts in the order of their first ranks. A host is divided in the coarsest way that divides its
 * ranks, if the cells of all its ranks are known; otherwise it is one cell. *ret_ncells is 0 if no
 * host is divided. TUTTI_ERR_SYSTEM: no memory. */
int tutti_fabric_cells(const struct tutti_fabric *fabric, const uint32_t *host, uint32_t *ret_cell,
                       uint32_t *ret_ncells);

/* Returns the name of the transport to a peer, for messages and reports. */
const char *tutti_fabric_route(const struct tutti_fabric *fabric, int peer);

/* ---- in words (fabric_report.c) ------------------------------------------------------ */

/* After join: these return the name of a rank's host, and the rank's process id. The name is valid
 * as long as the fabric. */
const char *tutti_fabric_host_name(const struct tutti_fabric *fabric, int rank);
int tutti_fabric_pid(const struct tutti_fabric *fabric, int rank);

/* After settle: name the transports that serve pairs within a process, within a host and between
 * hosts. In a large communicator only pairs with one of the first 64 ranks are considered. */
void tutti_fabric_describe_pairs(const struct tutti_fabric *fabric, char *ret_text, size_t size);

/* After settle: describe transport number `index` on this host, as "shared memory: windows of ...".
 * The text is "" if it has nothing to report. Returns false if there is no transport `index`. */
bool tutti_fabric_describe_transport(const struct tutti_fabric *fabric, uint32_t index,
                                     char *ret_text, size_t size);

/* ---- waiting ------------------------------------------------------------------------- */

/* The state of one wait. The caller zeroes it when the wait begins and after each pass that made
 * progress. tutti_fabric_idle changes it. */
struct tutti_idle {
    uint32_t passes;     /* calls since the wait began, or since it began to yield */
    uint32_t phase;      /* 0: spins; other values: fabric_wait.c */
    uint32_t rings_seen; /* the waiter's count of rings when the sleep was announced */
    uint64_t since_ns;   /* the first reading of the clock in this wait; 0: none */
};

/* True in the first phase of a wait, in which the calls spin or yield the core, and never sleep. */
static inline bool tutti_idle_is_spinning(const struct tutti_idle *idle)
{
    return idle->phase == 0;
}

/* The caller calls this function after each pass that made no progress. The first calls spin, and
 * later calls yield the core. Then one call announces that this thread will sleep, and returns. The
 * caller's next pass then checks once more, so that no wake-up is lost. The next call sleeps until
 * a peer rings, a socket is ready, tutti_fabric_wake is called, or some milliseconds have passed.
 * With more ranks than cores on the host, the calls hardly spin. */
void tutti_fabric_idle(struct tutti_fabric *fabric, struct tutti_idle *idle);

/* End the sleep of a thread that is in tutti_fabric_idle of this fabric. Any thread. */
void tutti_fabric_wake(struct tutti_fabric *fabric);

/* ---- the state of the rank before this one ---------------------------------------------- */

/* Send the state of this rank to the next rank, in words that only the executor interprets. Ranks
 * of several hosts, or without shared memory, do so when they have waited for long. Sending
 * continues in later calls of tutti_fabric_connect and tutti_fabric_idle, and may fail silently.
 * Returns false if sending is not possible now, or not for this fabric. Only slow paths should call
 * this function. */
#define TUTTI_STATE_WORDS 2
bool tutti_fabric_send_state(struct tutti_fabric *fabric, const uint64_t words[TUTTI_STATE_WORDS]);

/* Gets the last words that the rank before this one has sent. Returns false if there are none. */
bool tutti_fabric_recv_state(const struct tutti_fabric *fabric,
                             uint64_t ret_words[TUTTI_STATE_WORDS]);

/* ---- failure ------------------------------------------------------------------------- */

/* Check whether this rank or a peer has aborted, and whether a peer of this host has died. Returns
 * TUTTI_OK or an error, and keeps the first error for all later calls. The error is the code of
 * this rank's own abort, if there was one. It is TUTTI_ERR_USAGE if a peer gave up with that code,
 * since all ranks share a mistake of the program. Otherwise it is TUTTI_ERR_REMOTE, and the message
 * names the rank and its reason or death. A call costs up to 32 system calls, so it is for slow
 * paths, every few milliseconds. On a host with more ranks it takes several calls to check all. The
 * loss of a rank of another host is found by the calls on its connection instead. */
int tutti_fabric_check(struct tutti_fabric *fabric);

/* Checks only whether a rank of this host has given up. It is cheap enough for the start of every
 * operation. Any thread. */
int tutti_fabric_find_abort(const struct tutti_fabric *fabric);

/* Checks only whether a rank of this host has died. Any thread. */
int tutti_fabric_find_death(const struct tutti_fabric *fabric);

/* Give up: the transports tell the result code and reason to the peers that they can reach, and
 * connections are shut down. Any thread, any time; only the first call counts. Connections stay
 * allocated. */
void tutti_fabric_abort(struct tutti_fabric *fabric, int code, const char *reason);

/* Announce that this rank is leaving in good order, so that peers do not take its silence for
 * death. More than one call has no further effect. If a fabric is destroyed without this call, the
 * peers of its host report that the rank has dropped the communicator. */
void tutti_fabric_leave(struct tutti_fabric *fabric);

/* True if `rank` has left, as far as this rank can see. Data that it sent before can be
 * received. */
bool tutti_fabric_has_left(const struct tutti_fabric *fabric, int rank);

/* Call these around every access to memory of other ranks of this host that is not in the segment:
 * their own memory, and memory that they lend. The calls may be nested. False: a rank has given up,
 * and tutti_fabric_check returns the error. If tutti_fabric_enter returns false, do not access the
 * memory and do not call tutti_fabric_exit. If tutti_fabric_exit returns false, data that was read
 * may be wrong. */
bool tutti_fabric_enter(struct tutti_fabric *fabric);
bool tutti_fabric_exit(struct tutti_fabric *fabric);

/* Call this after tutti_fabric_abort and before the caller gets its buffers back. It waits until
 * the ranks of this process have called tutti_fabric_exit. It also waits, at most one second, for
 * ranks of other processes that may store to memory that this rank has lent. */
void tutti_fabric_drain(struct tutti_fabric *fabric);

/* ---- report and end ------------------------------------------------------------------ */

/* private_bytes counts heap memory. shared_bytes counts the pages of the host's segment that hold
 * this rank's windows, posts and outgoing FIFOs, and that any rank has touched so far.
 * reserved_bytes counts the address space of the whole segment. */
struct tutti_fabric_usage {
    size_t private_bytes, shared_bytes, reserved_bytes;
    int connections, sockets;
};
void tutti_fabric_usage(const struct tutti_fabric *fabric, struct tutti_fabric_usage *ret_usage);

/* Close everything. NULL is ignored. */
void tutti_fabric_destroy(struct tutti_fabric *fabric);

#endif
