/* SPDX-License-Identifier: Apache-2.0
 * What the files of the TCP transport share.
 *
 *   tcp.c      the byte stream over a pair's sockets
 *   sealed.c   the same in records with tags (TUTTI_ENCRYPT)
 *   life.c     the row of the table: what ranks publish, the listener, the end
 *   route.c    the addresses at which a rank may call another
 *   connect.c  the lower rank connects
 *   accept.c   the higher rank's listener accepts
 *   probe.c    the higher rank tests whether the lower one still lives
 *   tell.c     a rank that waits for long tells the next rank its number and chain
 *   lost.c     detects lost connections
 *   note.c     a rank that gives up tells its peers the reason
 *   hold.c     the sockets that a rank resets as it gives up
 *
 * The stream is cut in stripes; stripe i travels on socket i modulo their number.
 */
#ifndef TUTTI_TRANSPORT_TCP_TCP_H
#define TUTTI_TRANSPORT_TCP_TCP_H

#include "base/socket.h"
#include "transport/fabric_private.h"

#include <string.h>

#define TUTTI_TCP_MAX_SOCKETS 16
#define TUTTI_MAX_CANDIDATES 12
#define TUTTI_TCP_STRIPE_BYTES 262144
#define TUTTI_TCP_BUFFER_BYTES 65536

extern const struct tutti_transport_ops tutti_tcp_ops;

/* The operations of its connections, and of those that it makes if TUTTI_ENCRYPT is not off. */
extern const struct tutti_conn_ops tutti_tcp_conn_ops;
extern const struct tutti_conn_ops tutti_tcp_sealed_ops;

/* The slice of a rank's record. */
struct tutti_tcp_record {
    uint16_t port_be;    /* of the listener */
    uint8_t nsockets;    /* TUTTI_SOCKETS_PER_PEER; the lower of two ranks' values is used */
    uint8_t ncandidates;
    uint8_t seal_mode;   /* TUTTI_ENCRYPT (seal.h) */
    uint8_t has_aes;     /* instructions for AES-256-GCM */
    uint8_t unused[2];
    union {
        struct tutti_address candidates[TUTTI_MAX_CANDIDATES]; /* the first `ncandidates` */
        /* For a rank without TCP, the reason as text; "": it was not requested. */
        char why_none[TUTTI_MAX_CANDIDATES * sizeof(struct tutti_address)];
    };
};

/* One direction of the stream: the socket of the next byte, and how many more bytes go there
 * (unlimited for a single socket). */
struct tutti_tcp_place {
    int socket;
    size_t left;
};

/* An attempt to reach one socket's other end (connect.c). */
struct tutti_tcp_dial {
    int fd;
    bool is_connected, is_greeted, is_proved;
    size_t candidate;
    uint32_t refusals;     /* in a row, over all candidates */
    uint32_t rounds;       /* through all candidates */
    uint64_t until_ns;     /* deadline of this attempt; or, with fd < 0, of the pause before it */
    struct tutti_handshake shake;
};

/* Tests whether the rank that should call this one still listens (probe.c). */
struct tutti_tcp_probe {
    int fd;
    size_t candidate;
    bool is_refused;       /* in this round through the candidates */
    uint32_t refused_rounds; /* in a row */
    uint64_t pause_ns;
    uint64_t until_ns;     /* deadline of this attempt; or, with fd < 0, of the pause before it */
};

struct tutti_tcp_conn {
    struct tutti_conn base;
    int nsockets, nopen;
    int fds[TUTTI_TCP_MAX_SOCKETS]; /* -1: not yet */
    bool is_up;                     /* all are open */
    size_t most_per_call;           /* offered to the kernel at a time */
    struct tutti_address far_end;   /* of the latest socket */
    uint64_t silent_ns[TUTTI_TCP_MAX_SOCKETS]; /* since when bytes are not acknowledged; 0: they
                                                  are */
    struct tutti_tcp_place out, in;

    uint8_t *buffer; /* TUTTI_TCP_BUFFER_BYTES; [begin, begin + have) is next in the stream */
    size_t begin, have;
    struct tutti_tcp_sealing *sealing; /* sealed.c; NULL: bytes travel as they are */

    /* While connecting it is in the fabric's list. */
    struct tutti_tcp_conn *next_dialing;
    struct tutti_tcp_probe probe; /* the called one's */
    struct tutti_tcp_dial *dials; /* [nsockets], of the calling rank; NULL on the called rank */
    int rc;                       /* the error that the next connect returns */
    char reason[TUTTI_MESSAGE_BYTES];
};

/* A rank's reason for giving up, as it travels (note.c). */
struct tutti_tcp_note {
    uint8_t magic[8];
    int32_t code, rank; /* of the rank that was the first to give up */
    char reason[TUTTI_ABORT_REASON_BYTES];
    uint8_t mac[TUTTI_MAC_BYTES];
};

struct tutti_tcp_caller {
    struct tutti_tcp_caller *next; /* that came after this one */
    int fd;
    bool is_proved;                /* only the confirmation is due */
    bool brings_note;
    struct tutti_handshake shake;
    struct tutti_tcp_note note;    /* as far as it has been sent */
    size_t note_bytes;
};

/* A call to the next rank (tell.c), in progress while is_active. */
struct tutti_tcp_tell {
    bool is_active, is_connected;
    int fd;
    size_t candidate;
    uint64_t until_ns; /* of this attempt */
    uint64_t words[TUTTI_STATE_WORDS];
    struct tutti_handshake shake;
};

/* A socket to reset at abort; `peer` is -1 unless the socket belongs to a connection. */
struct tutti_tcp_held {
    int fd, peer;
};

struct tutti_tcp {
    int listen_fds[TUTTI_MAX_CANDIDATES]; /* one per candidate of this rank's record; -1: closed */
    size_t nlisten;          /* of the record's candidates */
    int spare_fd;            /* reserved for a note's call when no descriptor is left; -1: none */
    bool takes_calls;        /* after settle */
    bool has_told_stranger;  /* logged once */
    int nmissing;            /* sockets that lower ranks may still open to this rank */
    int nsockets_open;
    size_t ncallers;
    struct tutti_tcp_caller *callers;     /* from the oldest on */
    struct tutti_tcp_caller **callers_end;
    uint64_t next_look_ns;   /* for connections that have become silent */
    uint8_t *has_met;        /* [nranks], atomic: a connection to that rank was begun */
    struct tutti_tcp_conn *dialing;
    struct tutti_tcp_tell tell;
    struct tutti_tcp_held *held; /* under fabric->lock */
    size_t nheld, held_capacity;
    bool was_told;           /* `told` has the latest words of the rank before this one */
    uint64_t told[TUTTI_STATE_WORDS];
};

/* The purpose of a connection in the handshake. With channel TUTTI_TCP_TELLS it only delivers the
 * words, and is then over. */
struct tutti_tcp_purpose {
    int32_t rank, channel, socket, unused;
    uint64_t words[TUTTI_STATE_WORDS];
};
_Static_assert(sizeof(struct tutti_tcp_purpose) <= TUTTI_PURPOSE_BYTES, "the handshake carries it");
enum { TUTTI_TCP_TELLS = TUTTI_CHANNEL_COUNT };

/* Returns NULL if TUTTI_TRANSPORTS excludes it, there is one rank, or no rank needs it. */
static inline struct tutti_tcp *tutti_tcp_of(const struct tutti_fabric *fabric)
{
    return tutti_part_state(fabric, &tutti_tcp_ops);
}

/* After join has begun. */
static inline struct tutti_tcp_record *tutti_tcp_record(const struct tutti_fabric *fabric, int rank)
{
    return tutti_record_slice(fabric, &tutti_tcp_ops, rank);
}

static inline struct tutti_tcp_record *tutti_tcp_own_record(struct tutti_fabric *fabric)
{
    return tutti_own_record_slice(fabric, &tutti_tcp_ops);
}

/* Members of the row of the table. */
int tutti_tcp_connect(struct tutti_fabric *fabric, int peer, int channel, struct tutti_conn **conn);
bool tutti_tcp_find_lost(struct tutti_fabric *fabric, struct tutti_loss *ret_loss);
bool tutti_tcp_tell(struct tutti_fabric *fabric, const uint64_t *words);
bool tutti_tcp_told(const struct tutti_fabric *fabric, uint64_t *ret_words);
void tutti_tcp_abort(struct tutti_fabric *fabric, struct tutti_cause *cause);
void tutti_tcp_report(const struct tutti_fabric *fabric, char *ret_text, size_t size);

/* Accept callers, and make progress on handshakes and connects (accept.c). */
void tutti_tcp_progress(struct tutti_fabric *fabric);
/* Close the sockets of all callers. */
void tutti_tcp_drop_callers(struct tutti_fabric *fabric);

/* Get the addresses at which `from` may try to reach `to`, best first, with ports. Returns their
 * number. */
size_t tutti_tcp_candidates(const struct tutti_fabric *fabric, int from, int to,
                            struct tutti_address ret_addresses[TUTTI_MAX_CANDIDATES]);

/* Sockets to reset at abort, so that the peers notice. `peer`: the peer of the socket, or -1 if
 * there is none yet. */
int tutti_tcp_hold(struct tutti_fabric *fabric, int fd, int peer);
void tutti_tcp_drop(struct tutti_fabric *fabric, int fd);

/* The secret for calls to rank `called`. A caller that has reached the wrong rank fails. */
void tutti_tcp_secret(const struct tutti_fabric *fabric, int called,
                      uint8_t ret_secret[TUTTI_SECRET_BYTES]);

/* True if the peer is on this host. Then there is no network between the two that could be shared
 * or lost. */
bool tutti_tcp_is_near(const struct tutti_fabric *fabric, int peer);

/* Returns the number of sockets of a connection to `peer`. Both ends compute the same number. */
int tutti_tcp_count_sockets(const struct tutti_fabric *fabric, int peer);

/* Make the connection's object, without sockets. fabric->conns owns it from then on. */
int tutti_tcp_conn_create(struct tutti_fabric *fabric, int peer, int channel,
                          struct tutti_tcp_conn **ret_conn);

/* Add the socket of a successful handshake to a connection. Takes over the socket in any case. */
int tutti_tcp_conn_add(struct tutti_tcp_conn *conn, int index,
                       const struct tutti_handshake *shake);

/* Functions for both kinds of stream. */
static inline void tutti_tcp_advance(const struct tutti_tcp_conn *tcp,
                                     struct tutti_tcp_place *place, size_t size)
{
    if (tcp->nsockets == 1)
        return;
    place->left -= size;
    if (place->left > 0)
        return;
    place->left = TUTTI_TCP_STRIPE_BYTES;
    place->socket = place->socket + 1 < tcp->nsockets ? place->socket + 1 : 0;
}

/* Move the bytes in the connection's buffer to `to`. Returns their number. */
static inline size_t tutti_tcp_take_buffered(struct tutti_tcp_conn *tcp, void *to, size_t size)
{
    size_t buffered = size < tcp->have ? size : tcp->have;

    memcpy(to, tcp->buffer + tcp->begin, buffered);
    tcp->begin += buffered;
    tcp->have -= buffered;
    return buffered;
}

/* Returns the error for a stream whose peer has closed it. */
int tutti_tcp_fail_gone(struct tutti_tcp_conn *tcp);

/* Sealed streams (sealed.c). Create and destroy the additional state of such a connection, and
 * begin on a socket with the keys from its handshake. */
int tutti_tcp_sealing_create(struct tutti_tcp_conn *conn);
void tutti_tcp_sealing_destroy(struct tutti_tcp_conn *conn);
void tutti_tcp_sealing_start(struct tutti_tcp_conn *conn, int index,
                             const struct tutti_handshake *shake);

/* Members of the table of operations of such a connection (transport.h). */
int tutti_tcp_sealed_send(struct tutti_conn *conn, const void *data, size_t size,
                          size_t *ret_taken);
int tutti_tcp_sealed_send_two(struct tutti_conn *conn, const void *head, size_t head_size,
                              const void *data, size_t size, size_t *ret_taken);
int tutti_tcp_sealed_recv(struct tutti_conn *conn, void *data, size_t size, size_t *ret_got);
int tutti_tcp_sealed_peek(struct tutti_conn *conn, size_t least, size_t most,
                          const void **ret_data, size_t *ret_size);

/* After its handshake the caller confirms by this byte that it has seen the called rank's proof.
 * Before that it may give up and call again. The called rank counts the connection from then on. */
#define TUTTI_TCP_CONFIRMATION 0x47

/* Describe the loss of a connection by `error`: "reset its connection ...", where `verb` is the
 * first word, or that the peer's host does not answer. The text lives until the next call for this
 * connection. */
const char *tutti_tcp_describe_loss(struct tutti_tcp_conn *conn, int error, const char *verb);

/* Dialing (connect.c). */
int tutti_tcp_dial_start(struct tutti_tcp_conn *conn);
void tutti_tcp_dial_step(struct tutti_fabric *fabric);
void tutti_tcp_dial_stop(struct tutti_tcp_conn *conn);

/* Probing (probe.c), while this rank waits to be called. TUTTI_ERR_REMOTE: the rank has ended; the
 * reason is in the connection. */
void tutti_tcp_probe_init(struct tutti_tcp_probe *probe);
void tutti_tcp_probe_fini(struct tutti_tcp_probe *probe);
int tutti_tcp_probe_step(struct tutti_tcp_conn *conn);

/* Notes (note.c). The first function tells the peers why this rank gives up; any thread may call
 * it, under fabric->lock. It takes at most some tenths of a second, and that only if peers do not
 * answer. */
void tutti_tcp_note_send(struct tutti_fabric *fabric, const struct tutti_cause *cause);
/* True if the handshake has failed because the caller brings a note. Then continue with this
 * function. */
bool tutti_tcp_note_begins(struct tutti_tcp_caller *caller);
int tutti_tcp_note_step(struct tutti_fabric *fabric, struct tutti_tcp_caller *caller);

/* Telling (tell.c): make progress; end it, however far it is. */
void tutti_tcp_tell_step(struct tutti_fabric *fabric);
void tutti_tcp_tell_stop(struct tutti_tcp *tcp);

#endif
