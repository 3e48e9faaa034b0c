/* SPDX-License-Identifier: Apache-2.0
 * The relay has a thread that accepts, and two threads for each connection that copy its bytes. */
#include "relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_CONNECTIONS = 8, CHUNK_BYTES = 4096, MEMORY_BYTES = 1 << 20 };

struct direction {
    struct relay *relay;
    pthread_t thread;
    int from, to;
    bool is_target, from_caller;
    size_t position;                 /* since the relay was armed */
    uint8_t held[RELAY_MOST_BYTES];
    size_t nheld;
    uint8_t *memory;                 /* MEMORY_BYTES */
    size_t nremembered;
};

struct relay {
    int listen_fd;
    uint16_t port_be, to_port_be;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below, and the positions and memories of directions */
    bool is_armed, has_struck;
    struct mischief mischief;
    int nconnections;
    struct direction directions[MOST_CONNECTIONS][2];
};

static void give_up(void)
{
    abort(); /* a relay that does not work is a test that says nothing */
}

static struct sockaddr_in loopback(uint16_t port_be)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port_be,
                                .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

/* ---- bytes --------------------------------------------------------------------------- */

static size_t put(uint8_t *to, size_t count, const uint8_t *bytes, size_t size)
{
    memcpy(to + count, bytes, size);
    return count + size;
}

/* One byte in, any number out. Returns how many there are now in `out`; *cut: the end. */
static size_t mangle(struct direction *direction, uint8_t byte, uint8_t *out, size_t count,
                     bool *cut)
{
    struct relay *relay = direction->relay;
    const struct mischief *mischief = &relay->mischief;
    size_t since = direction->position++ - mischief->at; /* wraps before `at` */
    bool is_inside = since < mischief->size;

    if (mischief->kind == MISCHIEF_FLIP && since == 0)
        byte ^= (uint8_t)(1 << mischief->bit);
    if (mischief->kind == MISCHIEF_CUT && since == 0)
        *cut = true;
    relay->has_struck |= since == 0;
    if ((mischief->kind == MISCHIEF_REPEAT || mischief->kind == MISCHIEF_SWAP) && is_inside)
        direction->held[direction->nheld++] = byte;
    if (*cut || ((mischief->kind == MISCHIEF_DROP || mischief->kind == MISCHIEF_SWAP) && is_inside))
        return count;
    out[count++] = byte;
    if ((mischief->kind == MISCHIEF_REPEAT && since + 1 == mischief->size) ||
        (mischief->kind == MISCHIEF_SWAP && since + 1 == 2 * mischief->size))
        count = put(out, count, direction->held, direction->nheld);
    return count;
}

static void remember(struct direction *direction, const uint8_t *bytes, size_t size)
{
    size_t room = MEMORY_BYTES - direction->nremembered;

    if (size > room)
        size = room;
    memcpy(direction->memory + direction->nremembered, bytes, size);
    direction->nremembered += size;
}

static bool pass_on(struct direction *direction, const uint8_t *bytes, size_t size)
{
    uint8_t out[CHUNK_BYTES + RELAY_MOST_BYTES];
    size_t count = 0;
    bool cut = false;

    pthread_mutex_lock(&direction->relay->lock);
    remember(direction, bytes, size);
    if (direction->is_target && direction->relay->is_armed &&
        direction->from_caller == direction->relay->mischief.from_caller) {
        for (size_t i = 0; i < size && !cut; i++)
            count = mangle(direction, bytes[i], out, count, &cut);
    } else {
        count = put(out, 0, bytes, size);
    }
    pthread_mutex_unlock(&direction->relay->lock);
    for (size_t sent = 0; sent < count;) {
        ssize_t done = send(direction->to, out + sent, count - sent, MSG_NOSIGNAL);

        if (done <= 0)
            return false;
        sent += (size_t)done;
    }
    return !cut;
}

static void *copy(void *argument)
{
    struct direction *direction = argument;
    uint8_t bytes[CHUNK_BYTES];
    ssize_t got;

    do
        got = recv(direction->from, bytes, sizeof bytes, 0);
    while (got > 0 && pass_on(direction, bytes, (size_t)got));
    if (got == 0) {
        shutdown(direction->to, SHUT_WR); /* an end in good order */
    } else {
        shutdown(direction->to, SHUT_RDWR);
        shutdown(direction->from, SHUT_RDWR);
    }
    return NULL;
}

/* ---- connections --------------------------------------------------------------------- */

static void join(struct relay *relay, int caller)
{
    struct sockaddr_in address = loopback(relay->to_port_be);
    int called = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    int fds[2] = {caller, called};

    if (called < 0 || connect(called, (struct sockaddr *)&address, sizeof address) != 0) {
        close(caller);
        close(called);
        return;
    }
    pthread_mutex_lock(&relay->lock);
    if (relay->nconnections == MOST_CONNECTIONS)
        give_up();
    for (int i = 0; i < 2; i++) {
        struct direction *direction = &relay->directions[relay->nconnections][i];

        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        *direction = (struct direction){.relay = relay, .from = fds[i], .to = fds[1 - i],
                                        .is_target = relay->nconnections == 0,
                                        .from_caller = i == 0, .memory = malloc(MEMORY_BYTES)};
        if (direction->memory == NULL ||
            pthread_create(&direction->thread, NULL, copy, direction) != 0)
            give_up();
    }
    relay->nconnections++;
    pthread_mutex_unlock(&relay->lock);
}

static void *take_calls(void *argument)
{
    struct relay *relay = argument;
    int fd;

    while ((fd = accept4(relay->listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        join(relay, fd);
    return NULL;
}

struct relay *relay_start(void)
{
    struct relay *relay = calloc(1, sizeof *relay);
    struct sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;

    if (relay == NULL)
        give_up();
    pthread_mutex_init(&relay->lock, NULL);
    relay->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (relay->listen_fd < 0 ||
        bind(relay->listen_fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(relay->listen_fd, 16) != 0 ||
        getsockname(relay->listen_fd, (struct sockaddr *)&address, &size) != 0 ||
        pthread_create(&relay->thread, NULL, take_calls, relay) != 0)
        give_up();
    relay->port_be = address.sin_port;
    return relay;
}

void relay_stop(struct relay *relay)
{
    shutdown(relay->listen_fd, SHUT_RDWR);
    pthread_join(relay->thread, NULL);
    close(relay->listen_fd);
    for (int i = 0; i < relay->nconnections; i++) {
        struct direction *pair = relay->directions[i];

        for (int j = 0; j < 2; j++)
            shutdown(pair[j].from, SHUT_RDWR);
        for (int j = 0; j < 2; j++)
            pthread_join(pair[j].thread, NULL);
        for (int j = 0; j < 2; j++) {
            close(pair[j].from);
            free(pair[j].memory);
        }
    }
    pthread_mutex_destroy(&relay->lock);
    free(relay);
}

uint16_t relay_port_be(const struct relay *relay)
{
    return relay->port_be;
}

void relay_lead_to(struct relay *relay, uint16_t port_be)
{
    pthread_mutex_lock(&relay->lock);
    relay->to_port_be = port_be;
    pthread_mutex_unlock(&relay->lock);
}

void relay_arm(struct relay *relay, const struct mischief *mischief)
{
    pthread_mutex_lock(&relay->lock);
    relay->mischief = *mischief;
    relay->is_armed = true;
    pthread_mutex_unlock(&relay->lock);
}

bool relay_has_struck(struct relay *relay)
{
    bool has_struck;

    pthread_mutex_lock(&relay->lock);
    has_struck = relay->has_struck;
    pthread_mutex_unlock(&relay->lock);
    return has_struck;
}

bool relay_has_seen(struct relay *relay, const void *bytes, size_t size)
{
    bool is_found = false;

    pthread_mutex_lock(&relay->lock);
    for (int i = 0; i < relay->nconnections; i++)
        for (int j = 0; j < 2; j++)
            is_found |= memmem(relay->directions[i][j].memory, relay->directions[i][j].nremembered,
                               bytes, size) != NULL;
    pthread_mutex_unlock(&relay->lock);
    return is_found;
}
