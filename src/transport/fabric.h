/* SPDX-License-Identifier: Apache-2.0
 * A fabric is one rank's view of its communicator's ranks: who they are, how
 * each is reached, the connections made so far, and the domain of its host.
 *
 *     tutti_fabric_open(args, &fabric)            listen; describe this rank
 *       all-gather of fabric's record
 *     tutti_fabric_join(fabric, records)          resumable: try what the records do not tell
 *       all-gather of fabric's verdict
 *     tutti_fabric_settle(fabric, verdicts)       use what all members of a host support
 *
 * Nothing blocks. One thread at a time, except tutti_fabric_abort and tutti_fabric_wake.
 */
#ifndef TUTTI_TRANSPORT_FABRIC_H
#define TUTTI_TRANSPORT_FABRIC_H

#include "base/handshake.h"
#include "transport/domain.h"
#include "transport/transport.h"

#define TUTTI_FABRIC_RECORD_BYTES 704
#define TUTTI_FABRIC_VERDICT_BYTES 96

/* Channels: connections on different channels never wait for each other. */
enum { TUTTI_CHANNEL_COLLECTIVE = 0, TUTTI_CHANNEL_POINT_TO_POINT = 1, TUTTI_CHANNEL_COUNT = 2 };

/* A host may be divided into cells in TUTTI_CELL_LEVELS ways, from the coarsest on. */
enum { TUTTI_CELL_LEVELS = 3 };

struct tutti_fabric_args {
    int nranks, rank;
    /* The communicator's secret. It may be zero here if the ranks agree on it only when they meet.
     * Then tutti_fabric_set_secret sets it before the join. */
    uint8_t secret[TUTTI_SECRET_BYTES];
    uint64_t deadline_ns;               /* of forming */
    /* The rank's cell of its host, for each of these ways; -1: not known. */
    int32_t cells[TUTTI_CELL_LEVELS];
};

int tutti_fabric_open(const struct tutti_fabric_args *args, struct tutti_fabric **ret_fabric);

/* The data that this rank sends to the others: TUTTI_FABRIC_RECORD_BYTES / _VERDICT_BYTES. The
 * verdict is valid after join. */
const void *tutti_fabric_record(const struct tutti_fabric *fabric);
const void *tutti_fabric_verdict(const struct tutti_fabric *fabric);

/* Make the record of a rank that cannot open a fabric, because of error `rc` and its message
 * `reason`. The join of all others fails with these. */
void tutti_fabric_decline(int nranks, int rank, int rc, const char *reason,
                          uint8_t ret_record[TUTTI_FABRIC_RECORD_BYTES]);

/* Set the secret, once it is known; before the join. */
void tutti_fabric_set_secret(struct tutti_fabric *fabric, const uint8_t secret[TUTTI_SECRET_BYTES]);

/* Join the other ranks. `records` (nranks of them) is copied. TUTTI_AGAIN: call again. A transport
 * that does not work on a host is no error: the verdict says so, and the ranks use another one.
 * Records are checked before use: TUTTI_ERR_USAGE names the rank whose record is not of this
 * version, of a library with these transports, or of this communicator. */
int tutti_fabric_join(struct tutti_fabric *fabric, const void *records);

/* Choose transports from all verdicts. TUTTI_ERR_USAGE: some pair of ranks has no transport left.
 * The message names the pair, the transports that were tried, and the reason for each. */
int tutti_fabric_settle(struct tutti_fabric *fabric, const void *verdicts);

/* Returns the ready connection to `peer`, which is made at the first call. TUTTI_AGAIN while
 * connecting. Also makes progress on every other connection that is being made (accepts
 * callers). */
int tutti_fabric_connect(struct tutti_fabric *fabric, int peer, int channel,
                         struct tutti_conn **ret_conn);

/* ---- what ranks of a host share ------------------------------------------------------- */

/* The parts that a transport that shares memory provides. All but the pointers are the same on all
 * ranks. */
struct tutti_sharing {
    struct tutti_domain *domain;  /* NULL: this host has none */
    struct tutti_lend *lend;
    bool is_one_domain, all_store, all_read, shares_hosts; /* as the functions below */
    bool shares_memory;           /* a member that reads another's own memory */
};

/* Returns the load/store domain of this rank's host; NULL if there is none (one rank on the host,
 * or no shared memory). */
struct tutti_domain *tutti_fabric_domain(struct tutti_fabric *fabric);

/* Returns the memory that the members of that domain lend each other; NULL: none, because no member
 * is another process that can read this rank's memory. */
struct tutti_lend *tutti_fabric_lend(struct tutti_fabric *fabric);

/* True if all ranks of the communicator share this rank's domain. True if, in addition, every pair
 * of them (a) is of one process, (b) can read each other's memory or is of one process. The answers
 * are the same on all ranks. */
bool tutti_fabric_is_one_domain(const struct tutti_fabric *fabric);
bool tutti_fabric_all_store(const struct tutti_fabric *fabric);
bool tutti_fabric_all_read(const struct tutti_fabric *fabric);

/* After settle, the same on all ranks: the host of each rank (nranks of them), numbered in the
 * order of their first ranks, with the number of hosts as the result; whether the ranks of each
 * host share memory; and the number of cores that the ranks of rank 0's host may use. */
uint32_t tutti_fabric_hosts(const struct tutti_fabric *fabric, uint32_t *ret_host);
bool tutti_fabric_shares_hosts(const struct tutti_fabric *fabric);
uint32_t tutti_fabric_cores(const struct tutti_fabric *fabric);
/* Returns the rate of the slowest interface through which ranks of different hosts connect to each
 * other, in Mbit/s; 0: not known of all, or all are on one host. */
uint32_t tutti_fabric_mbits(const struct tutti_fabric *fabric);
/* Gets the cell of each rank, numbered in the same way through all hosts, which `host` gives. A
 * host is divided in the coarsest way that divides its ranks, if it is known of all of them;
 * otherwise it is one cell. *ret_ncells is 0 if no host is divided. TUTTI_ERR_SYSTEM: no memory. */
int tutti_fabric_cells(const struct tutti_fabric *fabric, const uint32_t *host, uint32_t *ret_cell,
                       uint32_t *ret_ncells);

/* Returns the name of the transport to a peer, for messages and reports. */
const char *tutti_fabric_route(const struct tutti_fabric *fabric, int peer);

/* ---- in words (fabric_report.c) ------------------------------------------------------ */

/* After join: returns the name of a rank's host, and the rank's process. Valid as long as the
 * fabric. */
const char *tutti_fabric_host_name(const struct tutti_fabric *fabric, int rank);
int tutti_fabric_pid(const struct tutti_fabric *fabric, int rank);

/* After settle: name the transports that serve pairs within a process, within a host and between
 * hosts. In a large communicator only pairs with one of the first 64 ranks are considered. */
void tutti_fabric_describe_pairs(const struct tutti_fabric *fabric, char *ret_text, size_t size);

/* After settle: describe transport number `index` on this host, as "shared memory: windows of ...".
 * The text is "" if it has nothing to report. Returns false if there are not so many. */
bool tutti_fabric_describe_transport(const struct tutti_fabric *fabric, uint32_t index,
                                     char *ret_text, size_t size);

/* ---- waiting ------------------------------------------------------------------------- */

/* Call this after a pass that made no progress, with a state that is zeroed when the wait begins
 * and after every pass that made some. First it spins, then it yields the core, then it announces
 * that it will sleep and returns. The caller then checks once more, so no wake-up is lost. Then it
 * sleeps until a peer rings, a socket is ready, tutti_fabric_wake is called, or some milliseconds
 * have passed. With more ranks than cores on the host it hardly spins. */
struct tutti_idle {
    uint32_t passes;
    uint32_t phase;
    uint32_t rings_seen;
    uint64_t since_ns;
};
void tutti_fabric_idle(struct tutti_fabric *fabric, struct tutti_idle *idle);

/* End the sleep of a thread that is in tutti_fabric_idle of this fabric. Any thread. */
void tutti_fabric_wake(struct tutti_fabric *fabric);

/* ---- telling ------------------------------------------------------------------------- */

/* For ranks of several hosts, or without shared memory, that wait for long: tell the next rank the
 * state of this rank, in words that only the executor interprets. It continues in later calls of
 * connect and idle, and may fail silently. Returns false if it is not possible now, or not here.
 * For slow paths. */
#define TUTTI_STATE_WORDS 2
bool tutti_fabric_send_state(struct tutti_fabric *fabric, const uint64_t words[TUTTI_STATE_WORDS]);

/* Gets the last words of the rank before this one; returns false if there are none. */
bool tutti_fabric_recv_state(const struct tutti_fabric *fabric,
                             uint64_t ret_words[TUTTI_STATE_WORDS]);

/* ---- failure ------------------------------------------------------------------------- */

/* Check whether this rank or a peer has aborted, and whether a peer of this host has died. Returns
 * TUTTI_OK, or the error: the code of this rank's own abort; TUTTI_ERR_USAGE if a peer gave up with
 * that code (a mistake of the program, which all ranks share); otherwise TUTTI_ERR_REMOTE naming
 * the rank and its reason or death. The first error is kept and always returned. Costs up to 32
 * system calls, so it is for slow paths, every few milliseconds; on a host with more ranks it takes
 * several calls to check all. The calls on a connection detect the loss of a rank of another host,
 * as "closed its connection". */
int tutti_fabric_check(struct tutti_fabric *fabric);

/* The cheap half of it, for the start of operations: checks whether a rank of this host has given
 * up. Any thread. */
int tutti_fabric_find_abort(const struct tutti_fabric *fabric);

/* The other half of it, for this host only: checks whether a rank of it has died. Any thread. */
int tutti_fabric_find_death(const struct tutti_fabric *fabric);

/* Give up: the transports tell the result code and reason to the peers that they can reach, and
 * connections are shut down. Any thread, any time; only the first call counts. Connections stay
 * allocated. */
void tutti_fabric_abort(struct tutti_fabric *fabric, int code, const char *reason);

/* Announce that this rank is leaving in good order, so that peers do not take its silence for
 * death. Idempotent. A fabric that is destroyed without it is reported to the peers of its host as
 * dropped. */
void tutti_fabric_leave(struct tutti_fabric *fabric);

/* True if `rank` has left, as far as this rank can see. Data that it sent before can be
 * received. */
bool tutti_fabric_has_left(const struct tutti_fabric *fabric, int rank);

/* Call these around every access to memory that peers of this host lend, other than windows and
 * FIFOs. They may be nested. False: a rank has given up, so the memory must not be accessed, or
 * data that was read may be wrong; tutti_fabric_check returns the error. After a false of enter
 * there is no exit. */
bool tutti_fabric_enter(struct tutti_fabric *fabric);
bool tutti_fabric_exit(struct tutti_fabric *fabric);

/* After tutti_fabric_abort, before the caller gets its buffers back: wait for the ranks of this
 * process that are inside. They need no help to leave. */
void tutti_fabric_drain(struct tutti_fabric *fabric);

/* ---- report and end ------------------------------------------------------------------ */

/* private: heap. shared: pages of the host's segment that hold this rank's windows, posts and
 * outgoing FIFOs, as touched so far by any rank. reserved: address space of the whole segment. */
struct tutti_fabric_usage {
    size_t private_bytes, shared_bytes, reserved_bytes;
    int connections, sockets;
};
void tutti_fabric_usage(const struct tutti_fabric *fabric, struct tutti_fabric_usage *ret_usage);

/* Close everything. NULL is ignored. */
void tutti_fabric_destroy(struct tutti_fabric *fabric);

#endif
