/* SPDX-License-Identifier: Apache-2.0
 * What the exchanges share: frames on a TCP stream, a descriptor to sleep on,
 * and the sentences in which missing ranks are named.
 *
 * Everything here belongs to one bootstrap and is used by one thread at a time.
 */
#ifndef TUTTI_BOOTSTRAP_EXCHANGE_H
#define TUTTI_BOOTSTRAP_EXCHANGE_H

#include "base/result.h"
#include "base/socket.h"
#include "bootstrap/bootstrap.h"

/* How long a root that has failed goes on telling members why, and how long a
 * member whose deadline has passed waits for the root to say who is missing. */
#define TUTTI_EXCHANGE_LINGER_NS (UINT64_C(1000) * 1000 * 1000)

/* ---- frames --------------------------------------------------------------------- */

enum tutti_frame_kind {
    TUTTI_FRAME_RECORD = 1, /* member to root: its record of one round */
    TUTTI_FRAME_TABLE = 2,  /* root to member: all records of one round */
    TUTTI_FRAME_ERROR = 3,  /* either way: the sender gives up; body is the reason */
};

#define TUTTI_FRAME_BYTES 24

/* Head of a frame; little-endian on the wire, in this order. */
struct tutti_frame {
    uint32_t kind;
    uint32_t round;
    uint32_t size;    /* of the body in bytes */
    int32_t code;     /* of an error */
    uint64_t session; /* drawn by the root; the communicator's secret is derived with it */
};

/* A frame being received. The body's memory is the owner's and may be exchanged
 * between frames; a body larger than `capacity` is refused before it is read. */
struct tutti_inbox {
    struct tutti_frame frame;
    uint8_t head[TUTTI_FRAME_BYTES];
    uint8_t *body;
    size_t capacity;
    size_t done;
};

/* A frame being sent. The body's memory stays the owner's and must live until it is sent. */
struct tutti_outbox {
    uint8_t head[TUTTI_FRAME_BYTES];
    const uint8_t *body;
    size_t size; /* of head and body; 0: nothing to send */
    size_t done;
};

/* Receive what is there. TUTTI_OK: inbox->frame and its body are complete, and the
 * next call begins the next frame. TUTTI_AGAIN: not yet. TUTTI_ERR_REMOTE: the stream
 * has ended or is no stream of frames; recorded, not logged. */
int tutti_inbox_step(struct tutti_inbox *inbox, int fd);

/* Load a frame; the outbox must be empty. */
void tutti_outbox_load(struct tutti_outbox *outbox, const struct tutti_frame *frame,
                       const void *body);

/* Send what can be sent. TUTTI_OK: all of it, or nothing was loaded. */
int tutti_outbox_step(struct tutti_outbox *outbox, int fd);

/* The text of an error frame, cut to `size` and free of control characters, and its code: one of
 * ours whatever the wire says. */
int tutti_inbox_error(const struct tutti_inbox *inbox, char *ret_text, size_t size);

/* Say good-bye: what was sent still arrives (a plain close would reset the
 * connection when unread bytes are left, and the peer could lose our last words). */
void tutti_exchange_hang_up(int fd);

/* Numbers of the wire, little-endian. */
static inline void tutti_put_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

static inline uint32_t tutti_get_u32(const uint8_t *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 |
           (uint32_t)from[3] << 24;
}

/* ---- sleeping ------------------------------------------------------------------- */

/* A poll descriptor for many: it wakes for each watched descriptor and at one moment. */
struct tutti_watch {
    int epoll_fd;
    int timer_fd;
};

int tutti_watch_init(struct tutti_watch *watch);
void tutti_watch_fini(struct tutti_watch *watch);

/* Watch `fd` for `events` (EPOLLIN, EPOLLOUT), newly or from now on; `owner` comes back from
 * tutti_watch_next. */
int tutti_watch_add(struct tutti_watch *watch, int fd, uint32_t events, void *owner);
void tutti_watch_change(struct tutti_watch *watch, int fd, uint32_t events, void *owner);

/* Stop watching and close; `*fd` becomes -1. */
void tutti_watch_close(struct tutti_watch *watch, int *fd);

/* Wake at this moment of tutti_now_ns() at the latest; TUTTI_NEVER for no limit. */
void tutti_watch_alarm(struct tutti_watch *watch, uint64_t at_ns);

/* The owner of one ready descriptor, or NULL when none is ready. Never sleeps. One at a
 * time, so that whoever handles it may close any other. */
void *tutti_watch_next(struct tutti_watch *watch);

/* ---- TCP ------------------------------------------------------------------------- */

/* Most addresses that a member tries. */
#define TUTTI_CANDIDATES_MAX 32

/* What a member tells in its handshake, proved before the root reads it. */
void tutti_exchange_purpose(int nranks, int rank, struct tutti_purpose *ret_purpose);
bool tutti_exchange_purpose_read(const struct tutti_purpose *purpose, uint32_t *ret_nranks,
                                 uint32_t *ret_rank);

/* Be the root: ranks come to `listen_fd`, which the bootstrap takes over, also on failure.
 * `where` names the place in messages. With `is_fresh` the communicator's secret is `secret`
 * itself, which nobody has used before; otherwise one is derived for this session. */
int tutti_exchange_serve(int listen_fd, const char *where, const uint8_t secret[TUTTI_SECRET_BYTES],
                         bool is_fresh, int nranks, int rank, uint64_t deadline_ns,
                         struct tutti_bootstrap **ret_boot);

/* Be a member: the root is at one of `count` addresses. */
int tutti_exchange_join(const struct tutti_address *candidates, size_t count, const char *where,
                        const uint8_t secret[TUTTI_SECRET_BYTES], bool is_fresh, int nranks,
                        int rank, uint64_t deadline_ns, struct tutti_bootstrap **ret_boot);

/* ---- files ----------------------------------------------------------------------- */

int tutti_exchange_file(const char *directory, const char *secret_text, int nranks, int rank,
                        uint64_t deadline_ns, struct tutti_bootstrap **ret_boot);

/* ---- words ----------------------------------------------------------------------- */

/* "rank 3 of 8 has", "ranks 3, 5-7 of 8 have": those whose `is_here` is false. */
void tutti_exchange_name_missing(const bool *is_here, int nranks, char *ret_text, size_t size);

/* TUTTI_OK, or TUTTI_ERR_ARGUMENT naming what is out of range. */
int tutti_exchange_check(int nranks, int rank);
int tutti_exchange_check_size(size_t size);

#endif
