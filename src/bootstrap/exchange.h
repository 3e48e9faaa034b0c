/* SPDX-License-Identifier: Apache-2.0
 * What the exchanges share: frames on a stream, a descriptor to sleep on,
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
/* The same of a root without descriptors, which can tell only few ranks at a time. */
#define TUTTI_EXCHANGE_LONG_LINGER_NS (UINT64_C(5) * 1000 * 1000 * 1000)

/* How long the root at a place that does not tell the job waits whether ranks that do not look akin
 * (kin.c), and could be another job's, are claimed by others as well. */
#define TUTTI_EXCHANGE_DOUBT_NS (UINT64_C(1000) * 1000 * 1000)

/* ---- frames --------------------------------------------------------------------- */

enum tutti_frame_kind {
    TUTTI_FRAME_RECORD = 1, /* member to root: its record of one round */
    TUTTI_FRAME_TABLE = 2,  /* root to member: all records of one round */
    TUTTI_FRAME_ERROR = 3,  /* either way: the sender gives up; body is the reason */
    TUTTI_FRAME_LATER = 4,  /* root to member: call again; body says what is formed meanwhile */
};

#define TUTTI_DIGEST_BYTES 32

/* Head of a frame; little-endian on the wire, in this order. */
struct tutti_frame {
    uint32_t kind;
    uint32_t round;
    uint32_t size;    /* of the body in bytes */
    int32_t code;     /* of an error */
    /* Of a table: drawn by the root; the communicator's secret is derived with it. Of a record:
     * which ranks are akin, at a vague place. */
    uint64_t session;
    uint8_t digest[TUTTI_DIGEST_BYTES]; /* of the body */
};

/* On the wire a MAC follows the head. The head is checked before its size is used, the body against
 * the head's digest before anybody reads it. So a relay between two ranks can drop a connection,
 * but not change, repeat or reorder what goes over it. */
#define TUTTI_FRAME_HEAD_BYTES (24 + TUTTI_DIGEST_BYTES)
#define TUTTI_FRAME_BYTES (TUTTI_FRAME_HEAD_BYTES + TUTTI_MAC_BYTES)

/* What the MACs of one direction of one connection are made with. */
struct tutti_frame_seal {
    uint8_t key[TUTTI_SECRET_BYTES];
    uint64_t number; /* of the next frame */
};

/* A frame being received. The body's memory is the owner's and may be exchanged
 * between frames; a body larger than `capacity` is refused before it is read. */
struct tutti_inbox {
    struct tutti_frame_seal seal;
    struct tutti_frame frame;
    uint8_t head[TUTTI_FRAME_BYTES];
    uint8_t *body;
    size_t capacity;
    size_t done;
    bool is_head_checked;
};

/* A frame being sent. The body's memory stays the owner's and must live until it is sent. */
struct tutti_outbox {
    struct tutti_frame_seal seal;
    uint8_t head[TUTTI_FRAME_BYTES];
    const uint8_t *body;
    size_t size; /* of head and body; 0: nothing to send */
    size_t done;
};

/* Derive the keys of both directions from a complete handshake, whose own keys are erased. */
void tutti_exchange_seal(struct tutti_handshake *shake, struct tutti_inbox *inbox,
                         struct tutti_outbox *outbox);

/* Receive what is there. TUTTI_OK: inbox->frame and its body are complete and authentic, and the
 * next call begins the next frame. TUTTI_AGAIN: not yet. TUTTI_ERR_REMOTE: the stream
 * has ended, was altered, or is no stream of frames; recorded, not logged. */
int tutti_inbox_step(struct tutti_inbox *inbox, int fd);

/* Set the frame's digest to that of its body. One digest serves many recipients. */
void tutti_frame_digest(struct tutti_frame *frame, const void *body);

/* Load a frame whose digest is set; the outbox must be empty. */
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
void tutti_watch_remove(struct tutti_watch *watch, int fd);

/* Stop watching and close; `*fd` becomes -1. */
void tutti_watch_close(struct tutti_watch *watch, int *fd);

/* Wake at this moment of tutti_now_ns() at the latest; TUTTI_NEVER for no limit. */
void tutti_watch_alarm(struct tutti_watch *watch, uint64_t at_ns);

/* The owner of one ready descriptor, or NULL when none is ready. Never sleeps. One at a
 * time, so that whoever handles it may close any other. */
void *tutti_watch_next(struct tutti_watch *watch);

/* ---- root and members -------------------------------------------------------------- */

/* Most addresses that a member tries. */
#define TUTTI_CANDIDATES_MAX 32

/* Tells apart the communicators that are formed at one place. */
#define TUTTI_FORMING_BYTES 16

/* What root and members know of the place at which they meet. */
struct tutti_place {
    const char *where; /* in messages */
    const char *name;  /* of the communicator, in messages; "" if it has none */
    uint8_t forming[TUTTI_FORMING_BYTES]; /* follows from the name */
    uint8_t secret[TUTTI_SECRET_BYTES];
    /* The place is that of a unique id: it serves one communicator, whose secret is `secret`
     * itself. A store serves any number, and each has a secret derived from this one. */
    bool is_of_id;
    /* Nothing but the place tells the job: neither a secret nor a launcher. Then the root makes
     * sure that ranks which do not look akin (kin.c) are claimed by nobody else. */
    bool is_vague;
    /* Nothing but the user tells members from strangers: both sides ask the kernel for it. */
    bool is_same_user;
};

/* What a member tells in its handshake, proved before the root reads it. */
void tutti_exchange_purpose(const struct tutti_place *place, int nranks, int rank,
                            struct tutti_purpose *ret_purpose);
bool tutti_exchange_purpose_read(const struct tutti_purpose *purpose, uint32_t *ret_nranks,
                                 uint32_t *ret_rank, uint8_t ret_forming[TUTTI_FORMING_BYTES]);

/* The same for ranks that seem to have been started by one command (kin.c). */
uint64_t tutti_exchange_kin(void);

/* Where a root listens (door.c). Several roots of one process may share it. */
struct tutti_door;

/* Listen on the first free port from `first_port` on, or share the door that this process has at
 * one of these ports. */
int tutti_door_open_tcp(const struct tutti_address *address, unsigned first_port,
                        unsigned last_port, struct tutti_door **ret_door);

/* The same at a Unix socket in the abstract namespace. */
int tutti_door_open_unix(const char *name, struct tutti_door **ret_door);

/* A door of this listener, which is taken, also on failure. */
int tutti_door_adopt(int listen_fd, struct tutti_door **ret_door);
void tutti_door_close(struct tutti_door *door);

/* Be the root. The door is taken, also on failure. `on_spent`, unless NULL, is called once: when
 * all ranks have come, or the root is destroyed before. TUTTI_ERR_USAGE: this process already
 * serves a communicator of this name at the door. */
int tutti_exchange_serve(struct tutti_door *door, const struct tutti_place *place, int nranks,
                         int rank, uint64_t deadline_ns, void (*on_spent)(void *context),
                         void *context, struct tutti_bootstrap **ret_boot);

/* Be a member: the root is at one of `count` addresses, or, if that is not NULL, at the Unix socket
 * `unix_name`. */
int tutti_exchange_join(const struct tutti_address *candidates, size_t count, const char *unix_name,
                        const struct tutti_place *place, int nranks, int rank, uint64_t deadline_ns,
                        struct tutti_bootstrap **ret_boot);

/* ---- files ----------------------------------------------------------------------- */

int tutti_exchange_file(const struct tutti_meeting *meeting, int nranks, int rank,
                        uint64_t deadline_ns, struct tutti_bootstrap **ret_boot);

/* ---- words ----------------------------------------------------------------------- */

/* "rank 3 of 8 has", "ranks 3, 5-7 of 8 have": those whose `is_here` is false. */
void tutti_exchange_name_missing(const bool *is_here, int nranks, char *ret_text, size_t size);

/* TUTTI_OK, or TUTTI_ERR_ARGUMENT naming what is out of range. */
int tutti_exchange_check(int nranks, int rank);
int tutti_exchange_check_size(size_t size);

#endif
