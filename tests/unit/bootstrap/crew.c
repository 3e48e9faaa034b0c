/* SPDX-License-Identifier: Apache-2.0
 * One thread drives many ranks of one bootstrap. */
#include "crew.h"

#include "base/socket.h"
#include "support/address.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

const char *const meeting_names[MEETING_COUNT] = {"id", "tcp", "unix", "file"};

static uint8_t table[CREW_MAX * TUTTI_BOOTSTRAP_RECORD_MAX];

/* The i-th byte of a rank's record. */
static uint8_t pattern(int rank, size_t i, size_t size)
{
    return (uint8_t)((size_t)rank * 131 + i * 7 + size);
}

void crew_open(struct crew *crew, enum meeting meeting)
{
    static int opened;
    struct tutti_address address;
    uint16_t port_be;
    int fd;

    memset(crew, 0, sizeof *crew);
    crew->meeting = meeting;
    switch (meeting) {
    case BY_ID:
        assert_int_equal(tutti_unique_id_create(crew->id), TUTTI_OK);
        break;
    case BY_TCP:
        assert_int_equal(address_parse("127.0.0.1:0", &address), TUTTI_OK);
        assert_int_equal(tutti_socket_listen(&address, &fd, &port_be), TUTTI_OK);
        close(fd);
        snprintf(crew->url, sizeof crew->url, "tcp:127.0.0.1:%u", ntohs(port_be));
        break;
    case BY_UNIX:
        snprintf(crew->url, sizeof crew->url, "unix:test-%d-%d", (int)getpid(), opened++);
        break;
    default:
        snprintf(crew->directory, sizeof crew->directory, "/tmp/tutti-test-XXXXXX");
        assert_non_null(mkdtemp(crew->directory));
        snprintf(crew->url, sizeof crew->url, "file:%s", crew->directory);
        break;
    }
}

void crew_add(struct crew *crew, int nranks, int rank, uint64_t deadline_ns, const char *secret)
{
    struct tutti_bootstrap **boot = &crew->boots[crew->count];
    struct tutti_meeting meeting = {.store = crew->url, .secret = secret, .name = crew->name};
    int rc = crew->meeting == BY_ID
                 ? tutti_bootstrap_from_id(crew->id, nranks, rank, deadline_ns, boot)
                 : tutti_bootstrap_meet(&meeting, nranks, rank, deadline_ns, boot);

    assert_int_equal(rc, TUTTI_OK);
    crew->rc[crew->count++] = TUTTI_OK;
}

void crew_fill(struct crew *crew, int nranks, uint64_t deadline_ns)
{
    for (int rank = 0; rank < nranks; rank++)
        crew_add(crew, nranks, rank, deadline_ns, "secret");
}

static void step(struct crew *crew, int index, size_t size)
{
    struct tutti_bootstrap *boot = crew->boots[index];
    uint8_t mine[TUTTI_BOOTSTRAP_RECORD_MAX];

    for (size_t i = 0; i < size; i++)
        mine[i] = pattern(boot->rank, i, size);
    memset(table, 0xee, (size_t)boot->nranks * size);
    crew->rc[index] = boot->ops->allgather(boot, mine, size, table);
    if (crew->rc[index] < 0)
        snprintf(crew->message[index], TUTTI_MESSAGE_BYTES, "%s", tutti_message_last());
    for (int rank = 0; rank < boot->nranks; rank++)
        for (size_t i = 0; i < size; i++) {
            uint8_t due = crew->rc[index] == TUTTI_OK ? pattern(rank, i, size) : 0xee;

            if (table[(size_t)rank * size + i] != due)
                fail_msg("rank %d, record of %d, byte %zu: %u, not %u", boot->rank, rank, i,
                         table[(size_t)rank * size + i], due);
        }
}

/* Sleep until one of the waiting ranks has something to do. */
static void sleep_on_all(const struct crew *crew)
{
    struct pollfd fds[CREW_MAX];
    nfds_t count = 0;

    for (int i = 0; i < crew->count; i++)
        if (crew->boots[i] != NULL && crew->rc[i] == TUTTI_AGAIN) {
            int fd = crew->boots[i]->ops->wait_fd(crew->boots[i]);

            assert_true(fd >= 0);
            fds[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
        }
    assert_true(poll(fds, count, 60000) > 0);
}

void crew_step_one(struct crew *crew, int index, size_t size)
{
    step(crew, index, size);
}

void crew_step(struct crew *crew, size_t size)
{
    for (int i = 0; i < crew->count; i++)
        if (crew->boots[i] != NULL)
            step(crew, i, size);
}

void crew_round(struct crew *crew, size_t size)
{
    int waiting = 0;

    for (int i = 0; i < crew->count; i++) {
        crew->rc[i] = TUTTI_AGAIN;
        waiting += crew->boots[i] != NULL;
    }
    for (;;) {
        for (int i = 0; i < crew->count; i++)
            if (crew->boots[i] != NULL && crew->rc[i] == TUTTI_AGAIN) {
                step(crew, i, size);
                waiting -= crew->rc[i] != TUTTI_AGAIN;
            }
        if (waiting == 0)
            return;
        sleep_on_all(crew);
    }
}

void crew_leave(struct crew *crew, int index, const char *reason)
{
    if (crew->boots[index] != NULL)
        crew->boots[index]->ops->destroy(crew->boots[index], reason);
    crew->boots[index] = NULL;
}

void crew_close(struct crew *crew)
{
    DIR *stream;

    for (int i = 0; i < crew->count; i++)
        crew_leave(crew, i, crew->rc[i] == TUTTI_OK ? NULL : "it failed");
    if (crew->meeting != BY_FILE)
        return;
    stream = opendir(crew->directory);
    assert_non_null(stream);
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;)
        if (entry->d_name[0] != '.')
            fail_msg("left behind: %s", entry->d_name);
    closedir(stream);
    assert_int_equal(rmdir(crew->directory), 0);
}

void crew_expect(const struct crew *crew, int rc, const char *words)
{
    for (int i = 0; i < crew->count; i++) {
        if (crew->boots[i] == NULL)
            continue;
        if (crew->rc[i] != rc || strstr(crew->message[i], words) == NULL)
            fail_msg("by %s, member %d: result %d '%s', not %d '...%s...'",
                     meeting_names[crew->meeting], i, crew->rc[i], crew->message[i], rc, words);
    }
}

void crew_place(const struct crew *crew, const char *secret, struct tutti_meeting_place *ret_place)
{
    const char *port = strrchr(crew->url, ':') + 1;
    uint8_t hash[TUTTI_SECRET_BYTES];
    char text[256];

    *ret_place = (struct tutti_meeting_place){.where = crew->url, .name = ""};
    snprintf(text, sizeof text, "%s\n\n%s-%s", secret, port, port);
    tutti_secret_from_text(text, ret_place->secret);
    tutti_secret_from_text("", hash);
    memcpy(ret_place->forming, hash, sizeof ret_place->forming);
}

int crew_call(const struct crew *crew)
{
    struct tutti_address address;
    int fd = -1, rc;

    if (crew->meeting == BY_TCP) {
        assert_int_equal(address_parse(crew->url + 4, &address), TUTTI_OK);
    } else {
        assert_int_equal(address_parse("127.0.0.1:0", &address), TUTTI_OK);
        memcpy(&address.port_be, crew->id + 6, sizeof address.port_be);
    }
    while ((rc = tutti_socket_connect(&address, &fd)) == TUTTI_AGAIN) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};

        assert_int_equal(poll(&ready, 1, 60000), 1);
    }
    assert_int_equal(rc, TUTTI_OK);
    return fd;
}
