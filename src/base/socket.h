/* SPDX-License-Identifier: Apache-2.0
 * Sockets that never block and never raise SIGPIPE, for bootstrap and the TCP transport.
 *
 * Every call finishes at once or returns TUTTI_AGAIN. Descriptors are close-on-exec and
 * non-blocking, and are closed in a child made by fork (base/fork.h). The caller closes each with
 * plain close().
 */
#ifndef TUTTI_BASE_SOCKET_H
#define TUTTI_BASE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An IPv4 or IPv6 address with its port, in the form that is sent between hosts. It contains no
 * pointers, and its unused bytes are zero. Only `scope` is in host byte order. It is the index of
 * an interface on the host that uses a link-local IPv6 address, and means nothing to other
 * hosts. */
struct tutti_address {
    uint8_t family;    /* 4 or 6; 0: no address */
    uint8_t is_loopback;
    uint16_t port_be;  /* network byte order */
    uint32_t scope;    /* IPv6 link-local only; set by the side that connects */
    uint8_t bytes[16]; /* the first 4 or all 16 are used */
};

#define TUTTI_ADDRESS_TEXT_BYTES 64

/* True if the address is link-local: reachable only by hosts on the same link. */
bool tutti_address_is_link_local(const struct tutti_address *address);

/* Write the address as text, such as "10.0.0.1:4711" or "[fe80::1]:4711"; "*:4711" for family 0.
 * Returns `text`. */
const char *tutti_address_format(const struct tutti_address *address,
                                 char text[TUTTI_ADDRESS_TEXT_BYTES]);

/* Parse "host:port", "1.2.3.4:5" or "[::1]:5". A host name is resolved to at most `capacity` of its
 * addresses. TUTTI_SOCKET_FAMILY selects among the addresses of a name, but does not affect a
 * literal address. *ret_count is at least 1. This is the only call here that may block, on a name
 * server. TUTTI_ERR_ARGUMENT: the text is malformed or the name cannot be resolved. */
int tutti_address_resolve(const char *text, struct tutti_address *addresses, size_t capacity,
                          size_t *ret_count);

/* List the addresses of this host's interfaces that are up and pass TUTTI_SOCKET_IFNAME and
 * TUTTI_SOCKET_FAMILY. Global addresses come before link-local ones, loopback is last; ports are
 * zero. Loopback is also listed if the filter names only other interfaces. If the filter excludes
 * it (`^lo`), it is listed only if there is nothing else. Of each kind the addresses of faster
 * interfaces come first, unless the filter names the wanted interfaces. *ret_count is at most
 * `capacity`.
 * TUTTI_ERR_USAGE: no address is left; the message names the filter and the interfaces that exist.
 * TUTTI_ERR_SYSTEM: the kernel cannot list the interfaces, or no memory. */
int tutti_address_list(struct tutti_address *addresses, size_t capacity, size_t *ret_count);
/* Does the same as tutti_address_list, and sets mbits[i] to the rate of the interface of
 * addresses[i] in Mbit/s; 0: not known. Of each kind the addresses of the interface `nearest` come
 * first; "": none. */
int tutti_address_list_rated(const char *nearest, struct tutti_address *addresses, uint32_t *mbits,
                             size_t capacity, size_t *ret_count);

/* Make a socket of this family and type (AF_INET, SOCK_STREAM, ...). Returns -1 with the reason in
 * errno on failure. */
int tutti_socket_open(int family, int type);

/* Listen on `address`. Family 0 means both families on all interfaces, and port 0 means any free
 * port. *ret_port_be is the port in network byte order. TUTTI_ERR_SYSTEM: this host cannot listen
 * there; if the port is in use, the message names the port and the cure. */
int tutti_socket_listen(const struct tutti_address *address, int *ret_fd, uint16_t *ret_port_be);

/* Listen on each of these addresses, all on one port that the kernel chooses. ret_fds[i] is -1 if
 * this host cannot listen on addresses[i]. Returns the number of addresses that it listens on. If
 * that number is 0, the last reason is recorded. */
size_t tutti_socket_listen_each(const struct tutti_address *addresses, size_t count, int *ret_fds,
                                uint16_t *ret_port_be);

/* Accept the next waiting connection; TUTTI_AGAIN: there is none. TUTTI_ERR_SYSTEM: this process or
 * machine has no descriptor or memory left; recorded, but not logged. */
int tutti_socket_accept(int listen_fd, int *ret_fd);

/* Connect to `address`. *fd must be -1 at the first call, and is kept between calls while the
 * result is TUTTI_AGAIN. On failure *fd is closed and -1 again. The reason is in errno and is
 * recorded, but not logged as a failure.
 * TUTTI_ERR_REMOTE: refused or unreachable; the caller may try another address.
 * TUTTI_ERR_SYSTEM: this process or machine has no descriptor or memory left, so every address
 * would fail. */
int tutti_socket_connect(const struct tutti_address *address, int *fd);

/* Choose a congestion control that sends at once and does not spread packets over time. Use it for
 * a connection within this host, which shares no link. A failure is ignored. */
void tutti_socket_unpace(int fd);

/* Returns the most bytes that one TCP segment of this connection can carry; 0: not known. */
size_t tutti_socket_segment_bytes(int fd);

/* Get the address of the peer. Its family is 0 if the socket is no longer connected. */
void tutti_socket_peer(int fd, struct tutti_address *ret_address);

/* From now on the peer may take any time to read, so a full receive buffer there does not end the
 * connection. The connection still ends if the peer's kernel stops answering. */
void tutti_socket_allow_pauses(int fd);

/* Set TCP_NODELAY, and end the connection after TUTTI_NETWORK_TIMEOUT_MS without any answer. If
 * buffer_bytes is nonzero, it is the size of both kernel buffers. TUTTI_ERR_SYSTEM on failure. */
int tutti_socket_tune(int fd, size_t buffer_bytes);

/* Send or receive what can be moved now. *ret_done may be less than `size` or zero, and the result
 * is TUTTI_OK then, too. TUTTI_ERR_REMOTE: the peer has closed or reset the connection. The reason
 * is recorded, but not logged, because only the caller knows which rank the peer is. */
int tutti_socket_send(int fd, const void *data, size_t size, size_t *ret_done);
int tutti_socket_recv(int fd, void *data, size_t size, size_t *ret_done);

/* These two do the same for bytes in several buffers, with one system call. */
struct iovec;
int tutti_socket_send_parts(int fd, struct iovec *parts, size_t count, size_t *ret_done);
int tutti_socket_recv_parts(int fd, struct iovec *parts, size_t count, size_t *ret_done);

/* Make a Unix stream socket in the abstract namespace. tutti_socket_listen_unix listens on `name`,
 * and tutti_socket_connect_unix connects to it. Connecting returns TUTTI_AGAIN while no process
 * listens on the name; then *ret_fd is not set. TUTTI_ERR_ARGUMENT: the name is empty or too long.
 * TUTTI_ERR_SYSTEM: any other failure. */
int tutti_socket_listen_unix(const char *name, int *ret_fd);
/* Does the same as tutti_socket_listen_unix, for a caller with a fallback. Returns 0 or an errno
 * value, and records nothing. */
int tutti_socket_try_listen_unix(const char *name, int *ret_fd);
int tutti_socket_connect_unix(const char *name, int *ret_fd);

/* True if the peer of a Unix socket is a process of our own user, or of root, which could read our
 * memory anyway. */
bool tutti_socket_is_own_user(int fd);

/* Pass a descriptor over a Unix socket, with one byte of data, or receive it. The sender keeps its
 * own descriptor. A received one is close-on-exec, and the caller closes it. TUTTI_AGAIN: the
 * socket is not ready. TUTTI_ERR_REMOTE: the peer is gone, or did not pass exactly one descriptor.
 * TUTTI_ERR_SYSTEM: no memory. Both are recorded, but not logged. */
int tutti_socket_send_fd(int fd, int passed_fd);
int tutti_socket_recv_fd(int fd, int *ret_passed_fd);

#endif
