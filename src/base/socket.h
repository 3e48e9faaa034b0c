/* SPDX-License-Identifier: Apache-2.0
 * Sockets that never block and never raise SIGPIPE: what bootstrap and the TCP
 * transport share.
 *
 * Every call finishes at once or returns TUTTI_AGAIN. Descriptors are
 * close-on-exec and non-blocking, and a child made by fork does not get them (base/fork.h). Closing
 * is plain close().
 */
#ifndef TUTTI_BASE_SOCKET_H
#define TUTTI_BASE_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An IPv4 or IPv6 address with its port, as it travels between hosts: no
 * pointers, no host byte order, unused bytes zero. A link-local IPv6 address
 * carries the interface index of the host that uses it in `scope`. */
struct tutti_address {
    uint8_t family;    /* 0 none, 4, 6 */
    uint8_t is_loopback;
    uint16_t port_be;  /* network byte order */
    uint32_t scope;    /* IPv6 link-local only; set by the side that connects */
    uint8_t bytes[16]; /* 4 or 16 of them count */
};

#define TUTTI_ADDRESS_TEXT_BYTES 64

/* Reaches the neighbours on one link only. */
bool tutti_address_is_link_local(const struct tutti_address *address);

/* "10.0.0.1:4711", "[fe80::1]:4711". Returns `text`. */
const char *tutti_address_format(const struct tutti_address *address,
                                 char text[TUTTI_ADDRESS_TEXT_BYTES]);

/* "host:port", "1.2.3.4:5", "[::1]:5", by name resolution if need be (the one
 * call here that may block: on a name server). TUTTI_ERR_ARGUMENT names the text. */
int tutti_address_parse(const char *text, struct tutti_address *ret_address);

/* The same, with every address that a name stands for, at most `capacity` of them. */
int tutti_address_resolve(const char *text, struct tutti_address *addresses, size_t capacity,
                          size_t *ret_count);

/* Addresses of this host's interfaces that are up and pass TUTTI_SOCKET_IFNAME
 * and TUTTI_SOCKET_FAMILY: global addresses before link-local ones, loopback
 * last; ports zero. Loopback is listed also when the filter names only others; when the filter
 * excludes it (`^lo`), only if it is the sole choice. Of each kind those of faster interfaces
 * come first, unless the filter names what is wanted. *ret_count is at most `capacity`.
 * TUTTI_ERR_SYSTEM when none is left, naming the filter and the interfaces that exist. */
int tutti_address_list(struct tutti_address *addresses, size_t capacity, size_t *ret_count);
/* The same, with the rates of their interfaces in Mbit/s; 0: not known. */
int tutti_address_list_rated(struct tutti_address *addresses, uint32_t *mbits, size_t capacity,
                             size_t *ret_count);

/* A socket of this kind (AF_INET, SOCK_STREAM, ...), or -1 with the reason in errno. */
int tutti_socket_open(int family, int type);

/* Listen on `address` (family 0: both families on all interfaces; port 0: any free port).
 * *ret_port_be is the port. A port in use: TUTTI_ERR_SYSTEM naming it and the cure. */
int tutti_socket_listen(const struct tutti_address *address, int *ret_fd, uint16_t *ret_port_be);

/* Listen on each of these addresses, on one port for all that the kernel chooses. ret_fds[i] is -1
 * where this host cannot listen on addresses[i]. Returns how many it listens on; 0: none, with the
 * last reason recorded. */
size_t tutti_socket_listen_each(const struct tutti_address *addresses, size_t count, int *ret_fds,
                                uint16_t *ret_port_be);

/* The next waiting connection; TUTTI_AGAIN when there is none. TUTTI_ERR_SYSTEM: this process or
 * machine has no descriptor or memory left; recorded, but not logged. */
int tutti_socket_accept(int listen_fd, int *ret_fd);

/* Start connecting: *fd is -1 at the first call and kept between calls while
 * TUTTI_AGAIN. On failure *fd is closed and -1 again, the reason is in errno and recorded, but not
 * logged as a failure. TUTTI_ERR_REMOTE: refused, unreachable; the caller may try another address.
 * TUTTI_ERR_SYSTEM: this process or machine has no descriptor or memory left, so every address
 * would fail. */
int tutti_socket_connect(const struct tutti_address *address, int *fd);

/* For a connection within this host, where no link is shared: no pacing of what is sent, as some
 * congestion controls do. A wish: where it is not granted, all works as before. */
void tutti_socket_unpace(int fd);

/* The most bytes that one segment of this open connection carries; 0: the kernel does not say. */
size_t tutti_socket_segment_bytes(int fd);

/* The address of the other end; its family is 0 where there is none any more. */
void tutti_socket_peer(int fd, struct tutti_address *ret_address);

/* From now on the other end may take as long as it likes to read: a full buffer there is no reason
 * to give the connection up. */
void tutti_socket_allow_pauses(int fd);

/* TCP_NODELAY, the end of the connection after TUTTI_NETWORK_TIMEOUT_MS without any answer, and,
 * when nonzero, the size of both kernel buffers. */
int tutti_socket_tune(int fd, size_t buffer_bytes);

/* Send or receive what can be moved now; *ret_done may be less than `size`,
 * also zero (result TUTTI_OK). An orderly close by the peer or a reset is
 * TUTTI_ERR_REMOTE with errno's text, not logged: the caller knows who the peer is. */
int tutti_socket_send(int fd, const void *data, size_t size, size_t *ret_done);
int tutti_socket_recv(int fd, void *data, size_t size, size_t *ret_done);

/* The same for bytes in several places, with one call of the kernel. */
struct iovec;
int tutti_socket_send_parts(int fd, struct iovec *parts, size_t count, size_t *ret_done);
int tutti_socket_recv_parts(int fd, struct iovec *parts, size_t count, size_t *ret_done);

/* A Unix stream socket in the abstract namespace, listening under / connecting to `name`.
 * Connecting to a name nobody listens under yet is TUTTI_AGAIN. */
int tutti_socket_listen_unix(const char *name, int *ret_fd);
/* The same, where failing is no failure: 0, or an errno value, and nothing is recorded. */
int tutti_socket_try_listen_unix(const char *name, int *ret_fd);
int tutti_socket_connect_unix(const char *name, int *ret_fd);

/* True if the other end of a Unix socket was made by a process of our own user, or of root's, which
 * could read our memory anyway. */
bool tutti_socket_is_own_user(int fd);

/* Pass a descriptor with one byte over a Unix socket / take it. TUTTI_AGAIN as usual.
 * A received descriptor is close-on-exec. */
int tutti_socket_send_fd(int fd, int passed_fd);
int tutti_socket_recv_fd(int fd, int *ret_passed_fd);

#endif
