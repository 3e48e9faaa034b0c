/* SPDX-License-Identifier: Apache-2.0
 * Internals that the exchanges share. An exchange is an implementation of a bootstrap. The
 * exchanges share frames on a stream, a descriptor to sleep on, and the text that names missing
 * ranks.
 *
 * In the exchanges over sockets, one rank is the root. The root listens, collects the records and
 * sends the table of all records to the other ranks, which are its members.
 *
 * Except for listeners, every object here belongs to one bootstrap and is used by one thread at a
 * time.
 */
#ifndef TUTTI_BOOTSTRAP_EXCHANGE_H
#define TUTTI_BOOTSTRAP_EXCHANGE_H

#include "base/result.h"
#include "base/socket.h"
#include "bootstrap/bootstrap.h"

/* For this long, a root that has failed continues to tell members the reason. For the same time, a
 * member whose deadline has passed waits for the root to name the missing ranks. */
#define TUTTI_EXCHANGE_LINGER_NS (UINT64_C(1000) * 1000 * 1000)
/* For this long, a root that has run out of descriptors continues to tell members the reason. Such
 * a root can tell only few ranks at a time. */
#define TUTTI_EXCHANGE_LONG_LINGER_NS (UINT64_C(5) * 1000 * 1000 * 1000)

/* A place is vague if neither a secret nor a launcher identifies the job. Ranks at such a place
 * that do not look akin (kin.c) may belong to another job. After all ranks have joined, the root
 * then waits this long for further processes that claim the same ranks. The root fails if rank 0 of
 * another job has come to its place by then (tutti_claim_has_rival). */
#define TUTTI_EXCHANGE_DOUBT_NS (UINT64_C(1000) * 1000 * 1000)
#define TUTTI_EXCHANGE_RIVAL                                                                     \
    "two jobs meet at %s, and their ranks cannot be told apart; give each job a place of its own" \
    ", or, at a port, TUTTI_SECRET"

/* ---- frames --------------------------------------------------------------------- */

enum tutti_frame_kind {
    TUTTI_FRAME_RECORD = 1, /* member to root: its record of one round */
    TUTTI_FRAME_TABLE = 2,  /* root to member: all records of one round */
    TUTTI_FRAME_ERROR = 3,  /* either direction: the sender gives up; the body is the reason */
    TUTTI_FRAME_LATER = 4,  /* root to member: connect again later; the body is the reason */
};

#define TUTTI_DIGEST_BYTES 32

/* Head of a frame; little-endian on the wire, in this order. */
struct tutti_frame {
    uint32_t kind;
    uint32_t round;
    uint32_t size;    /* of the body in bytes */
    int32_t code;     /* of an error */
    /* In a table: a random number of the root, from which the communicator's secret is derived. In
     * the record of round 0 at a vague place: the sender's tutti_exchange_kin. */
    uint64_t session;
    uint8_t digest[TUTTI_DIGEST_BYTES]; /* of the body */
};

/* On the wire a MAC follows the head. The MAC is checked before the head's size is used, and the
 * body's digest before the body is used. So a relay between two ranks can drop a connection, but
 * cannot change, repeat or reorder its frames. */
#define TUTTI_FRAME_HEAD_BYTES (24 + TUTTI_DIGEST_BYTES)
#define TUTTI_FRAME_BYTES (TUTTI_FRAME_HEAD_BYTES + TUTTI_MAC_BYTES)

/* State for the MACs of one direction of one connection. */
struct tutti_frame_seal {
    uint8_t key[TUTTI_SECRET_BYTES];
    uint64_t number; /* of the next frame */
};

/* A frame being received. The owner of the inbox owns the body's memory, and may replace it between
 * frames. A body larger than `capacity` is rejected before it is read. */
struct tutti_inbox {
    struct tutti_frame_seal seal;
    struct tutti_frame frame;
    uint8_t head[TUTTI_FRAME_BYTES];
    uint8_t *body;
    size_t capacity;      /* of `body` */
    size_t done;          /* bytes of head and body that have arrived */
    bool is_head_checked; /* `frame` is valid */
};

/* A frame being sent. The body is not copied, so it must stay valid until the frame is sent. */
struct tutti_outbox {
    struct tutti_frame_seal seal;
    uint8_t head[TUTTI_FRAME_BYTES];
    const uint8_t *body;
    size_t size; /* of head and body; 0: nothing to send */
    size_t done; /* bytes of them that were sent */
};

/* Derive the keys of both directions from a complete handshake, and erase the handshake's keys. */
void tutti_exchange_seal(struct tutti_handshake *shake, struct tutti_inbox *inbox,
                         struct tutti_outbox *outbox);

/* Receive the bytes that have arrived. TUTTI_OK: inbox->frame and its body are complete and
 * authentic, and the next call begins the next frame. TUTTI_AGAIN: the frame is not complete yet.
 * TUTTI_ERR_REMOTE: the stream has ended or was altered, or a body is larger than `capacity`. The
 * error is recorded as the thread's last message, but not logged. */
int tutti_inbox_step(struct tutti_inbox *inbox, int fd);

/* Set frame->digest to the digest of the body, which has frame->size bytes. This function is
 * separate from tutti_outbox_load so that a frame for many recipients is hashed once. */
void tutti_frame_digest(struct tutti_frame *frame, const void *body);

/* Put a frame, whose digest must be set, into the outbox, which must be empty. */
void tutti_outbox_load(struct tutti_outbox *outbox, const struct tutti_frame *frame,
                       const void *body);

/* Send as much as the socket takes now. TUTTI_OK: the whole frame has been sent, or none was
 * loaded. TUTTI_AGAIN: a part of the frame is left. TUTTI_ERR_REMOTE: the connection is lost. The
 * error is recorded as the thread's last message, but not logged. */
int tutti_outbox_step(struct tutti_outbox *outbox, int fd);

/* Get the text of an error frame, truncated to `size` bytes and without control characters. Returns
 * the frame's code if it is TUTTI_ERR_USAGE or TUTTI_ERR_TIMEOUT, otherwise TUTTI_ERR_REMOTE. */
int tutti_inbox_error(const struct tutti_inbox *inbox, char *ret_text, size_t size);

/* Shut down a connection before it is closed, so that everything that was sent still arrives. A
 * plain close resets the connection if unread bytes are left, and the peer could lose our last
 * frame. The caller closes `fd`. */
void tutti_exchange_hang_up(int fd);

/* Write and read a number of a frame or a note. These numbers are little-endian. */
static inline void tutti_frame_put_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

static inline uint32_t tutti_frame_get_u32(const uint8_t *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
           (uint32_t)from[3] << 24;
}

static inline void tutti_frame_put_u64(uint8_t *to, uint64_t value)
{
    tutti_frame_put_u32(to, (uint32_t)value);
    tutti_frame_put_u32(to + 4, (uint32_t)(value >> 32));
}

static inline uint64_t tutti_frame_get_u64(const uint8_t *from)
{
    return tutti_frame_get_u32(from) | (uint64_t)tutti_frame_get_u32(from + 4) << 32;
}

/* ---- sleeping ------------------------------------------------------------------- */

/* One descriptor to poll in place of many: epoll_fd becomes readable when a watched descriptor is
 * ready, or at the time of the alarm. */
struct tutti_watch {
    int epoll_fd;
    int timer_fd;
};

/* Open the two descriptors of a watch. TUTTI_ERR_SYSTEM: no descriptor is left. */
int tutti_watch_init(struct tutti_watch *watch);
/* Close the two descriptors. The watched descriptors stay open. */
void tutti_watch_fini(struct tutti_watch *watch);

/* Begin to watch `fd` for `events` (EPOLLIN, EPOLLOUT), change the events, or stop watching.
 * tutti_watch_next returns `owner`, which must not be NULL, when `fd` is ready. TUTTI_ERR_SYSTEM:
 * `fd` cannot be watched. */
int tutti_watch_add(struct tutti_watch *watch, int fd, uint32_t events, void *owner);
void tutti_watch_change(struct tutti_watch *watch, int fd, uint32_t events, void *owner);
void tutti_watch_remove(struct tutti_watch *watch, int fd);

/* Stop watching *fd, close it and set it to -1. Does nothing if *fd is negative. */
void tutti_watch_close(struct tutti_watch *watch, int *fd);

/* Set the alarm: epoll_fd becomes readable at this time of tutti_now_ns() at the latest.
 * TUTTI_NEVER means no limit. The new alarm replaces the one set before. */
void tutti_watch_alarm(struct tutti_watch *watch, uint64_t at_ns);

/* Get the owner of one ready descriptor, or NULL if none is ready. Never sleeps. Returns only one
 * at a time, so that its handler may close any other descriptor. */
void *tutti_watch_next(struct tutti_watch *watch);

/* ---- root and members -------------------------------------------------------------- */

/* The most addresses that a member tries. */
#define TUTTI_CANDIDATES_MAX 32

/* Size of the hash that distinguishes the communicators that are formed at one place. */
#define TUTTI_FORMING_BYTES 16

/* The place where root and members meet. */
struct tutti_meeting_place {
    const char *where; /* address or name of the place, for messages */
    const char *name;  /* of the communicator, for messages; "" if it has none */
    uint8_t forming[TUTTI_FORMING_BYTES]; /* hash of the name */
    uint8_t secret[TUTTI_SECRET_BYTES];
    /* True if the place is that of a unique id. Such a place serves one communicator, whose secret
     * is `secret` itself. A store serves any number of communicators, and the secret of each is
     * derived from `secret`. */
    bool is_of_id;
    /* True if neither a secret nor a launcher identifies the job, so that ranks of another job may
     * join by mistake. If ranks do not look akin (kin.c), the root waits TUTTI_EXCHANGE_DOUBT_NS
     * for another process that claims the same rank. */
    bool is_vague;
    /* True if no secret protects a Unix socket: both sides check with the kernel that the other
     * process is of the same user. */
    bool is_same_user;
};

/* Encode and decode the purpose that a member sends in its handshake. The root decodes the purpose
 * only after the MAC has been verified. Decoding returns false if the connection is not meant for a
 * bootstrap. */
void tutti_exchange_purpose(const struct tutti_meeting_place *place, int nranks, int rank,
                            struct tutti_purpose *ret_purpose);
bool tutti_exchange_purpose_read(const struct tutti_purpose *purpose, uint32_t *ret_nranks,
                                 uint32_t *ret_rank, uint8_t ret_forming[TUTTI_FORMING_BYTES]);

/* Returns a fingerprint that is the same for ranks that seem to have been started by one command.
 * Two ranks are akin if their fingerprints are equal (kin.c). */
uint64_t tutti_exchange_kin(void);

/* A listener at which roots wait (listener.c). Several roots of one process may share it. Listeners
 * may be opened, entered, left and closed by any thread. */
struct tutti_listener;

/* Listen on the first free port from `first_port` to `last_port`, or share the listener that this
 * process already has at one of these ports. TUTTI_ERR_SYSTEM: no port is free. */
int tutti_listener_open_tcp(const struct tutti_address *address, unsigned first_port,
                            unsigned last_port, struct tutti_listener **ret_listener);

/* Listen at a Unix socket in the abstract namespace, or share the listener that this process
 * already has there. The errors are those of tutti_socket_listen_unix. */
int tutti_listener_open_unix(const char *name, struct tutti_listener **ret_listener);

/* Make a listener from a listening socket. The listener takes over listen_fd, which is closed on
 * failure, too. TUTTI_ERR_SYSTEM: there is no memory. */
int tutti_listener_adopt(int listen_fd, struct tutti_listener **ret_listener);
/* Give up one use of the listener. The last one closes the listener. */
void tutti_listener_close(struct tutti_listener *listener);

/* Make a bootstrap whose rank is the root. The function takes over the caller's use of the
 * listener, also on failure. `on_spent`, unless NULL, is called once with `context`: when all ranks
 * have joined, or when the root is destroyed before that. `on_spent` is not called if this function
 * fails. TUTTI_ERR_USAGE: this process already forms a communicator of this name at the
 * listener. */
int tutti_exchange_serve(struct tutti_listener *listener, const struct tutti_meeting_place *place,
                         int nranks, int rank, uint64_t deadline_ns,
                         void (*on_spent)(void *context), void *context,
                         struct tutti_bootstrap **ret_boot);

/* Make a bootstrap whose rank is a member. The root is at one of `count` addresses, or, if
 * `unix_name` is not NULL, at that Unix socket. Addresses and texts are copied. */
int tutti_exchange_join(const struct tutti_address *candidates, size_t count, const char *unix_name,
                        const struct tutti_meeting_place *place, int nranks, int rank,
                        uint64_t deadline_ns, struct tutti_bootstrap **ret_boot);

/* ---- files ----------------------------------------------------------------------- */

/* Make a bootstrap over a directory; meeting->store is "file:DIRECTORY". The errors are those of
 * tutti_bootstrap_meet. */
int tutti_exchange_file(const struct tutti_meeting *meeting, int nranks, int rank,
                        uint64_t deadline_ns, struct tutti_bootstrap **ret_boot);

/* ---- messages and checks --------------------------------------------------------- */

/* Returns a text of a struct tutti_meeting, or "" if the text is NULL. */
static inline const char *tutti_meeting_text(const char *text)
{
    return text != NULL ? text : "";
}

/* Write the ranks whose `is_here` is false, for example "rank 3 of 8 has" or "ranks 3, 5-7 of 8
 * have". A long list ends with "...". `size` must be at least 128. */
void tutti_exchange_name_missing(const bool *is_here, int nranks, char *ret_text, size_t size);

/* Check the arguments. TUTTI_ERR_ARGUMENT: nranks or rank is out of range. */
int tutti_exchange_check(int nranks, int rank);
/* Check the size of a record. TUTTI_ERR_INTERNAL: `size` is larger than
 * TUTTI_BOOTSTRAP_RECORD_MAX. */
int tutti_exchange_check_size(size_t size);

#endif
