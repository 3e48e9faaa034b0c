/* SPDX-License-Identifier: Apache-2.0
 * Declares the data and functions that the files of the TCP transport share. In each pair of ranks,
 * the lower rank calls the higher one, which means that it connects to the listener of the higher
 * rank. A process that has connected to a listener is a caller.
 *
 *   tcp.c      the byte stream over a pair's sockets
 *   sealed.c   the byte stream in records with tags (TUTTI_ENCRYPT)
 *   seal.c     makes and opens these records
 *   life.c     the table of operations; records, the listener, the end
 *   route.c    the addresses at which a rank may call another
 *   report.c   the addresses of a rank in words
 *   connect.c  the lower rank connects
 *   accept.c   the higher rank accepts callers at its listener
 *   probe.c    the higher rank tests whether the lower one still lives
 *   state.c    a rank that waits for long sends its state to the next rank
 *   lost.c     detects lost connections
 *   note.c     a rank that gives up tells its peers the reason
 *   hold.c     the sockets that a rank resets as it gives up
 *
 * A connection has one or several sockets. Its stream is cut in stripes of TUTTI_TCP_STRIPE_BYTES.
 * Stripe i travels on socket i modulo the number of sockets. */
#ifndef TUTTI_TRANSPORT_TCP_TCP_H
#define TUTTI_TRANSPORT_TCP_TCP_H

#include "base/socket.h"
#include "transport/fabric_private.h"

#include <string.h>

#define TUTTI_TCP_MAX_SOCKETS 16 /* of a connection */
/* A candidate is an address at which a rank listens. */
#define TUTTI_MAX_CANDIDATES 12
#define TUTTI_TCP_STRIPE_BYTES 262144
#define TUTTI_TCP_BUFFER_BYTES 65536

extern const struct tutti_transport_ops tutti_tcp_ops;

/* The operations of ordinary connections, and of connections with TUTTI_ENCRYPT `auth` or `on`. */
extern const struct tutti_conn_ops tutti_tcp_conn_ops;
extern const struct tutti_conn_ops tutti_tcp_sealed_ops;

/* The slice of "tcp" in a rank's record. */
struct tutti_tcp_record {
    uint16_t port_be;    /* the port of the listener, in network byte order; 0: none */
    uint8_t nsockets;    /* TUTTI_SOCKETS_PER_PEER; 0: not set. The lower of two ranks' values is
                            used */
    uint8_t ncandidates;
    uint8_t seal_mode;   /* TUTTI_ENCRYPT (seal.h) */
    uint8_t has_aes;     /* the processor has instructions for AES-256-GCM */
    uint8_t unused[2];
    union {
        struct tutti_address candidates[TUTTI_MAX_CANDIDATES]; /* the first `ncandidates` */
        /* For a rank without TCP, the reason as text; "": TUTTI_TRANSPORTS excludes TCP. */
        char why_none[TUTTI_MAX_CANDIDATES * sizeof(struct tutti_address)];
    };
};

/* The position in one direction of the stream: the socket of the next byte, and the number of bytes
 * left in the current stripe. With a single socket `left` does not change. */
struct tutti_tcp_position {
    int socket;
    size_t left;
};

/* An attempt to connect one socket to the peer (connect.c). */
struct tutti_tcp_dial {
    int fd;                /* -1: none, in a pause or once the connection owns the socket */
    bool is_connected;     /* the socket is connected, and the handshake has begun */
    bool is_greeted;       /* the other end has sent the first message of a handshake */
    bool is_proved;        /* done: the socket belongs to the connection */
    size_t candidate;      /* index of the peer's address that is being tried */
    uint32_t refusals;     /* refused connects in a row, over all candidates */
    uint32_t rounds;       /* completed rounds through all candidates */
    uint64_t until_ns;     /* deadline of this attempt; or, with fd < 0, of the pause before it */
    struct tutti_handshake shake;
};

/* A test whether the rank that should call this one still listens (probe.c). */
struct tutti_tcp_probe {
    int fd;                /* -1: in a pause */
    size_t candidate;      /* index of the peer's address that is being tried */
    bool is_refused;       /* a candidate has refused in this round through the candidates */
    uint32_t refused_rounds; /* refused rounds in a row */
    uint64_t pause_ns;     /* the length of the next pause */
    uint64_t until_ns;     /* deadline of this attempt; or, with fd < 0, of the pause before it */
};

struct tutti_tcp_conn {
    struct tutti_conn base;         /* must be the first member */
    int nsockets;                   /* sockets that the connection will have */
    int nopen;                      /* sockets that are connected so far */
    int fds[TUTTI_TCP_MAX_SOCKETS]; /* -1: not yet connected */
    bool is_up;                     /* all sockets are connected */
    size_t most_per_call;           /* about the most bytes that one call offers to the kernel */
    struct tutti_address far_end;   /* the peer's address of the latest socket */
    uint64_t silent_ns[TUTTI_TCP_MAX_SOCKETS]; /* the time from which on bytes have not been
                                                  acknowledged; 0: all are acknowledged */
    struct tutti_tcp_position out, in;

    uint8_t *buffer; /* TUTTI_TCP_BUFFER_BYTES; [begin, begin + have) is next in the stream */
    size_t begin, have;
    struct tutti_tcp_sealing *sealing; /* sealed.c; NULL: bytes travel as they are */

    /* While a connection is being made, it is in the list tutti_tcp.dialing. */
    struct tutti_tcp_conn *next_dialing;
    struct tutti_tcp_probe probe; /* used on the called rank */
    struct tutti_tcp_dial *dials; /* [nsockets] on the calling rank; NULL on the called rank */
    int rc;                       /* the error that the next connect returns; TUTTI_OK: none */
    /* The text of `rc`, or of a lost connection. It follows "rank N " in a message. */
    char reason[TUTTI_MESSAGE_BYTES];
};

/* A note: a rank's reason for giving up, as it is sent to a peer (note.c). */
struct tutti_tcp_note {
    uint8_t magic[8];
    int32_t code, rank; /* the error and number of the rank that was the first to give up */
    char reason[TUTTI_ABORT_REASON_BYTES];
    uint8_t mac[TUTTI_MAC_BYTES]; /* signs all bytes before it */
};

/* A process that has connected to the listener, until its socket is added to a connection or is
 * closed (accept.c). */
struct tutti_tcp_caller {
    struct tutti_tcp_caller *next; /* the caller that came after this one */
    int fd;
    bool is_proved;                /* the handshake is complete, and only the confirmation is due */
    bool brings_note;              /* the caller sends a note and makes no handshake */
    struct tutti_handshake shake;
    struct tutti_tcp_note note;    /* the first note_bytes bytes have arrived */
    size_t note_bytes;
};

/* A call to the next rank that sends the state of this rank (state.c). It is in progress while
 * is_active. */
struct tutti_tcp_state_call {
    bool is_active, is_connected;
    int fd;            /* -1: none */
    size_t candidate;  /* index of the next rank's address that is being tried */
    uint64_t until_ns; /* deadline of this attempt to connect */
    uint64_t words[TUTTI_STATE_WORDS]; /* the state to send */
    struct tutti_handshake shake;
};

/* A socket to reset at abort; `peer` is -1 unless the socket belongs to a connection. */
struct tutti_tcp_held {
    int fd, peer;
};

struct tutti_tcp {
    int listen_fds[TUTTI_MAX_CANDIDATES]; /* one per candidate of this rank's record; -1: closed */
    size_t nlisten;          /* number of the record's candidates */
    int spare_fd;            /* reserved for sending notes when no descriptor is left; -1: none */
    bool takes_calls;        /* set by tcp_start: callers are accepted and notes are sent */
    bool has_logged_stranger; /* a dropped caller was logged; further ones are not */
    int nmissing;            /* sockets that lower ranks may still open to this rank */
    int nsockets_open;       /* connected sockets of all connections */
    size_t ncallers;
    struct tutti_tcp_caller *callers;     /* a list, the oldest first */
    struct tutti_tcp_caller **callers_end; /* the link to which the next caller is appended */
    uint64_t next_look_ns;   /* time of the next check for silent connections */
    uint8_t *has_met;        /* [nranks], atomic: a connection to that rank was begun */
    struct tutti_tcp_conn *dialing; /* the connections that this rank is making */
    struct tutti_tcp_state_call state_call;
    struct tutti_tcp_held *held; /* under fabric->lock */
    size_t nheld, held_capacity;
    bool has_previous_state; /* the rank before this one has sent its state */
    uint64_t previous_state[TUTTI_STATE_WORDS]; /* the latest state that it has sent */
};

/* The purpose of a caller's socket, which the caller sends in the handshake. A socket with channel
 * TUTTI_TCP_CHANNEL_STATE only delivers `words`, the caller's state, and is then closed. */
struct tutti_tcp_purpose {
    int32_t rank;    /* the caller's */
    int32_t channel;
    int32_t socket;  /* index of the socket in its connection */
    int32_t unused;
    uint64_t words[TUTTI_STATE_WORDS];
};
_Static_assert(sizeof(struct tutti_tcp_purpose) <= TUTTI_PURPOSE_BYTES, "the handshake carries it");
enum { TUTTI_TCP_CHANNEL_STATE = TUTTI_CHANNEL_COUNT };

/* Returns the state of "tcp"; NULL if TUTTI_TRANSPORTS excludes it, if there is one rank, or if
 * this rank reaches no peer by it. */
static inline struct tutti_tcp *tutti_tcp_of(const struct tutti_fabric *fabric)
{
    return tutti_part_state(fabric, &tutti_tcp_ops);
}

/* These return the slice of "tcp" in the record of `rank`, which is valid after join has begun, and
 * in the record of this rank. */
static inline struct tutti_tcp_record *tutti_tcp_record(const struct tutti_fabric *fabric, int rank)
{
    return tutti_record_slice(fabric, &tutti_tcp_ops, rank);
}

static inline struct tutti_tcp_record *tutti_tcp_own_record(struct tutti_fabric *fabric)
{
    return tutti_record_own_slice(fabric, &tutti_tcp_ops);
}

/* Operations of the transport (transport.h) that life.c does not implement itself. */
int tutti_tcp_connect(struct tutti_fabric *fabric, int peer, int channel, struct tutti_conn **conn);
bool tutti_tcp_find_lost(struct tutti_fabric *fabric, struct tutti_loss *ret_loss);
bool tutti_tcp_send_state(struct tutti_fabric *fabric, const uint64_t *words);
bool tutti_tcp_recv_state(const struct tutti_fabric *fabric, uint64_t *ret_words);
void tutti_tcp_abort(struct tutti_fabric *fabric, struct tutti_cause *cause);
void tutti_tcp_report(const struct tutti_fabric *fabric, char *ret_text, size_t size);

/* Accept callers, and make progress with handshakes and connects (accept.c). Never blocks. */
void tutti_tcp_progress(struct tutti_fabric *fabric);
/* Close the sockets of all callers. */
void tutti_tcp_drop_callers(struct tutti_fabric *fabric);

/* Get the addresses at which `from` may try to reach `to`, best first, with ports. Returns their
 * number. */
size_t tutti_tcp_candidates(const struct tutti_fabric *fabric, int from, int to,
                            struct tutti_address ret_addresses[TUTTI_MAX_CANDIDATES]);

/* tutti_tcp_hold adds a socket to those that an abort resets, so that the peers notice. `peer` is
 * the peer of the socket, or -1 if there is none yet. tutti_tcp_release removes a socket from them,
 * and must be called before the socket is closed. Neither closes the socket. TUTTI_ERR_SYSTEM: no
 * memory. */
int tutti_tcp_hold(struct tutti_fabric *fabric, int fd, int peer);
void tutti_tcp_release(struct tutti_fabric *fabric, int fd);

/* Derive the secret for calls to rank `called`. Each rank has its own, so that the handshake of a
 * caller that has reached the wrong rank fails. */
void tutti_tcp_secret(const struct tutti_fabric *fabric, int called,
                      uint8_t ret_secret[TUTTI_SECRET_BYTES]);

/* True if the peer is in this rank's network namespace. Then there is no network between the two
 * ranks that could be shared or lost. */
bool tutti_tcp_is_near(const struct tutti_fabric *fabric, int peer);

/* Returns the number of sockets of a connection to `peer`. Both ends compute the same number. */
int tutti_tcp_count_sockets(const struct tutti_fabric *fabric, int peer);

/* Make the connection's object, without sockets. fabric->conns owns it from then on.
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_tcp_conn_create(struct tutti_fabric *fabric, int peer, int channel,
                          struct tutti_tcp_conn **ret_conn);

/* Add the socket of a complete handshake to a connection. The function takes over the socket, also
 * on failure. */
int tutti_tcp_conn_add(struct tutti_tcp_conn *conn, int index,
                       const struct tutti_handshake *shake);

/* Move the position in the stream by `size` bytes, which must all be in the current stripe. */
static inline void tutti_tcp_advance(const struct tutti_tcp_conn *tcp,
                                     struct tutti_tcp_position *position, size_t size)
{
    if (tcp->nsockets == 1)
        return;
    position->left -= size;
    if (position->left > 0)
        return;
    position->left = TUTTI_TCP_STRIPE_BYTES;
    position->socket = position->socket + 1 < tcp->nsockets ? position->socket + 1 : 0;
}

/* Move up to `size` bytes of the connection's buffer to `to`. Returns their number. */
static inline size_t tutti_tcp_take_buffered(struct tutti_tcp_conn *tcp, void *to, size_t size)
{
    size_t buffered = size < tcp->have ? size : tcp->have;

    memcpy(to, tcp->buffer + tcp->begin, buffered);
    tcp->begin += buffered;
    tcp->have -= buffered;
    return buffered;
}

/* Call this when a socket has failed, with the error in errno. Returns the error for the stream. As
 * long as the peer's reason may still arrive, it returns TUTTI_OK, and the caller reports that no
 * bytes have moved. */
int tutti_tcp_fail_gone(struct tutti_tcp_conn *tcp);

/* Sealed streams (sealed.c). The first two functions create and destroy the additional state of a
 * connection whose stream is sealed. tutti_tcp_sealing_start prepares socket number `index` of the
 * connection, with the keys from the handshake of that socket. */
int tutti_tcp_sealing_create(struct tutti_tcp_conn *conn);
void tutti_tcp_sealing_destroy(struct tutti_tcp_conn *conn);
void tutti_tcp_sealing_start(struct tutti_tcp_conn *conn, int index,
                             const struct tutti_handshake *shake);

/* Operations of a sealed connection (struct tutti_conn_ops in transport.h). */
int tutti_tcp_sealed_send(struct tutti_conn *conn, const void *data, size_t size,
                          size_t *ret_taken);
int tutti_tcp_sealed_send_two(struct tutti_conn *conn, const void *head, size_t head_size,
                              const void *data, size_t size, size_t *ret_taken);
int tutti_tcp_sealed_recv(struct tutti_conn *conn, void *data, size_t size, size_t *ret_got);
int tutti_tcp_sealed_peek(struct tutti_conn *conn, size_t least, size_t most,
                          const void **ret_data, size_t *ret_size);

/* After its handshake the caller confirms by this byte that it has seen the called rank's proof.
 * Before it has sent the byte, it may give up and call again. The called rank uses the connection
 * only after it has received the byte. */
#define TUTTI_TCP_CONFIRMATION 0x47

/* Describe the loss of a connection, for a message that begins with the rank. If the errno value
 * `error` is one of the network, the text says that the peer's host does not answer. Otherwise the
 * text is "<verb> its connection ...". The text is valid until the next call for this
 * connection. */
const char *tutti_tcp_describe_loss(struct tutti_tcp_conn *conn, int error, const char *verb);

/* Dialing (connect.c). tutti_tcp_dial_start begins to connect the sockets of `conn`.
 * tutti_tcp_dial_step makes progress with all connections that are dialing, and leaves errors in
 * their `rc` and `reason`. tutti_tcp_dial_stop ends the dialing of `conn`, if it is dialing. */
int tutti_tcp_dial_start(struct tutti_tcp_conn *conn);
void tutti_tcp_dial_step(struct tutti_fabric *fabric);
void tutti_tcp_dial_stop(struct tutti_tcp_conn *conn);

/* Probing (probe.c), while this rank waits to be called. tutti_tcp_probe_step returns TUTTI_OK as
 * long as the peer may still call. TUTTI_ERR_REMOTE: the peer has ended, and conn->reason says
 * so. */
void tutti_tcp_probe_init(struct tutti_tcp_probe *probe);
void tutti_tcp_probe_fini(struct tutti_tcp_probe *probe);
int tutti_tcp_probe_step(struct tutti_tcp_conn *conn);

/* Notes (note.c). tutti_tcp_note_send tells the peers why this rank gives up. Any thread may call
 * it, under fabric->lock. It takes at most some tenths of a second, and that long only if peers do
 * not answer. */
void tutti_tcp_note_send(struct tutti_fabric *fabric, const struct tutti_cause *cause);
/* tutti_tcp_note_begins is true if the handshake has failed because the caller brings a note. Then
 * call tutti_tcp_note_step as long as it returns TUTTI_AGAIN. Every other result means that the
 * caller must be closed. */
bool tutti_tcp_note_begins(struct tutti_tcp_caller *caller);
int tutti_tcp_note_step(struct tutti_fabric *fabric, struct tutti_tcp_caller *caller);

/* Sending this rank's state (state.c). tutti_tcp_state_step makes progress with the call to the
 * next rank. tutti_tcp_state_stop ends that call at any stage. */
void tutti_tcp_state_step(struct tutti_fabric *fabric);
void tutti_tcp_state_stop(struct tutti_tcp *tcp);

#endif
