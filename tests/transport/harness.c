/* SPDX-License-Identifier: Apache-2.0
 * Makes fabrics for tests. */
#include "harness.h"

#include "base/clock.h"
#include "base/param.h"
#include "base/result.h"
#include "base/socket.h"
#include "support/address.h"
#include "transport/tcp/tcp.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_RANKS 64

static bool odd_ranks_lack_aes;

static void set_or_unset(const char *name, const char *value)
{
    if (value != NULL)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

void apply_setting(const struct setting *setting)
{
    set_or_unset("TUTTI_TRANSPORTS", setting->transports);
    set_or_unset("TUTTI_SOCKET_FAMILY", setting->family);
    set_or_unset("TUTTI_SPIN_US", setting->spin_us);
    set_or_unset("TUTTI_FIFO_BYTES", setting->fifo_bytes);
    set_or_unset("TUTTI_CMA_THRESHOLD", setting->threshold);
    set_or_unset("TUTTI_ENCRYPT", setting->encrypt);
    odd_ranks_lack_aes = setting->lacks_aes;
    tutti_param_reset();
}

bool has_ipv6(void)
{
    struct tutti_address address;
    uint16_t port_be;
    int fd;

    if (address_parse("[::1]:0", &address) != TUTTI_OK ||
        tutti_socket_listen(&address, &fd, &port_be) != TUTTI_OK)
        return false;
    close(fd);
    return true;
}

static struct tutti_fabric_args args_of(int nranks, int rank)
{
    struct tutti_fabric_args args = {.nranks = nranks, .rank = rank,
                                     .deadline_ns = tutti_deadline_ns(120000)};

    tutti_secret_from_text("the tests' secret", args.secret);
    return args;
}

static int open_fabric(int nranks, int rank, struct tutti_fabric **ret_fabric)
{
    struct tutti_fabric_args args = args_of(nranks, rank);

    TUTTI_TRY(tutti_fabric_open(&args, ret_fabric));
    if (odd_ranks_lack_aes && rank % 2 == 1)
        tutti_tcp_own_record(*ret_fabric)->has_aes = 0;
    return TUTTI_OK;
}

/* ---- one thread ---------------------------------------------------------------------- */

static void pretend_host(int rank, int ranks_per_host)
{
    char host[32];

    snprintf(host, sizeof host, "host %d", rank / ranks_per_host);
    set_or_unset("TUTTI_HOST_ID", host);
    tutti_param_reset();
}

static void join_on_hosts(int nranks, int ranks_per_host, struct tutti_fabric **ret_fabrics,
                          void *ret_verdicts)
{
    uint8_t *records = calloc((size_t)nranks, TUTTI_FABRIC_RECORD_BYTES);
    uint8_t *verdicts = ret_verdicts;
    int njoined = 0;
    bool is_joined[MAX_RANKS] = {false};

    assert_true(nranks <= MAX_RANKS);
    assert_non_null(records);
    for (int rank = 0; rank < nranks; rank++) {
        if (ranks_per_host > 0)
            pretend_host(rank, ranks_per_host);
        assert_int_equal(open_fabric(nranks, rank, &ret_fabrics[rank]), TUTTI_OK);
        memcpy(records + rank * TUTTI_FABRIC_RECORD_BYTES, tutti_fabric_record(ret_fabrics[rank]),
               TUTTI_FABRIC_RECORD_BYTES);
    }
    set_or_unset("TUTTI_HOST_ID", NULL);
    while (njoined < nranks) {
        for (int rank = 0; rank < nranks; rank++) {
            int rc;

            if (is_joined[rank])
                continue;
            rc = tutti_fabric_join(ret_fabrics[rank], records);
            if (rc == TUTTI_AGAIN)
                continue;
            assert_int_equal(rc, TUTTI_OK);
            is_joined[rank] = true;
            njoined++;
        }
    }
    for (int rank = 0; rank < nranks; rank++)
        memcpy(verdicts + rank * TUTTI_FABRIC_VERDICT_BYTES,
               tutti_fabric_verdict(ret_fabrics[rank]), TUTTI_FABRIC_VERDICT_BYTES);
    free(records);
}

void join_in_one_thread(int nranks, struct tutti_fabric **ret_fabrics, void *ret_verdicts)
{
    join_on_hosts(nranks, 0, ret_fabrics, ret_verdicts);
}

void form_in_one_thread(int nranks, struct tutti_fabric **ret_fabrics)
{
    form_on_hosts(nranks, 0, ret_fabrics);
}

void form_on_hosts(int nranks, int ranks_per_host, struct tutti_fabric **ret_fabrics)
{
    uint8_t *verdicts = calloc((size_t)nranks, TUTTI_FABRIC_VERDICT_BYTES);

    assert_non_null(verdicts);
    join_on_hosts(nranks, ranks_per_host, ret_fabrics, verdicts);
    for (int rank = 0; rank < nranks; rank++)
        assert_int_equal(tutti_fabric_settle(ret_fabrics[rank], verdicts), TUTTI_OK);
    free(verdicts);
}

void connect_all(int nranks, struct tutti_fabric **fabrics, int channel,
                 struct tutti_conn **ret_conns)
{
    int nready;

    do {
        nready = 0;
        for (int rank = 0; rank < nranks; rank++) {
            for (int peer = 0; peer < nranks; peer++) {
                int rc = tutti_fabric_connect(fabrics[rank], peer, channel,
                                              &ret_conns[rank * nranks + peer]);

                assert_true(rc == TUTTI_OK || rc == TUTTI_AGAIN);
                nready += rc == TUTTI_OK;
            }
        }
    } while (nready < nranks * nranks);
}

void destroy_all(int nranks, struct tutti_fabric **fabrics)
{
    for (int rank = 0; rank < nranks; rank++)
        tutti_fabric_leave(fabrics[rank]);
    for (int rank = 0; rank < nranks; rank++)
        tutti_fabric_destroy(fabrics[rank]);
}

/* ---- processes ----------------------------------------------------------------------- */

struct pipes {
    int up[2], down[2];
};

static bool read_whole(int fd, void *data, size_t size)
{
    uint8_t *to = data;

    while (size > 0) {
        ssize_t got = read(fd, to, size);

        if (got <= 0)
            return false;
        to += got;
        size -= (size_t)got;
    }
    return true;
}

static bool write_whole(int fd, const void *data, size_t size)
{
    const uint8_t *from = data;

    while (size > 0) {
        ssize_t put = write(fd, from, size);

        if (put <= 0)
            return false;
        from += put;
        size -= (size_t)put;
    }
    return true;
}

static void gather(const struct pipes *pipes, const void *mine, size_t size, int nranks, void *all)
{
    CHECK(write_whole(pipes->up[1], mine, size));
    CHECK(read_whole(pipes->down[0], all, size * (size_t)nranks));
}

static void live(const struct pipes *pipes, int rank, int nranks, process_body body, void *context)
{
    struct tutti_fabric *fabric;
    uint8_t *all = calloc((size_t)nranks, TUTTI_FABRIC_RECORD_BYTES);
    int rc;

    CHECK(all != NULL);
    CHECK(open_fabric(nranks, rank, &fabric) == TUTTI_OK);
    gather(pipes, tutti_fabric_record(fabric), TUTTI_FABRIC_RECORD_BYTES, nranks, all);
    while ((rc = tutti_fabric_join(fabric, all)) == TUTTI_AGAIN)
        ;
    CHECK(rc == TUTTI_OK);
    gather(pipes, tutti_fabric_verdict(fabric), TUTTI_FABRIC_VERDICT_BYTES, nranks, all);
    CHECK(tutti_fabric_settle(fabric, all) == TUTTI_OK);
    free(all);

    CHECK(body(fabric, rank, nranks, context) == 0);
    tutti_fabric_leave(fabric);
    tutti_fabric_destroy(fabric);
    exit(0); /* not _exit: the leak checker looks at exit */
}

static void serve_gather(struct pipes *pipes, int nranks, size_t size)
{
    uint8_t *all = calloc((size_t)nranks, size);

    assert_non_null(all);
    for (int rank = 0; rank < nranks; rank++)
        assert_true(read_whole(pipes[rank].up[0], all + (size_t)rank * size, size));
    for (int rank = 0; rank < nranks; rank++)
        assert_true(write_whole(pipes[rank].down[1], all, size * (size_t)nranks));
    free(all);
}

void run_processes(int nranks, process_body body, void *context, int victim)
{
    struct pipes pipes[MAX_RANKS];
    pid_t pids[MAX_RANKS];

    assert_true(nranks <= MAX_RANKS);
    fflush(NULL);
    for (int rank = 0; rank < nranks; rank++) {
        assert_int_equal(pipe(pipes[rank].up), 0);
        assert_int_equal(pipe(pipes[rank].down), 0);
        pids[rank] = fork();
        assert_true(pids[rank] >= 0);
        if (pids[rank] == 0)
            live(&pipes[rank], rank, nranks, body, context);
        /* The parent's copy of a child's ends would hide the child's death. */
        close(pipes[rank].up[1]);
        close(pipes[rank].down[0]);
    }
    serve_gather(pipes, nranks, TUTTI_FABRIC_RECORD_BYTES);
    serve_gather(pipes, nranks, TUTTI_FABRIC_VERDICT_BYTES);
    for (int rank = 0; rank < nranks; rank++) {
        int status;

        close(pipes[rank].up[0]);
        close(pipes[rank].down[1]);
        assert_int_equal(waitpid(pids[rank], &status, 0), pids[rank]);
        if (rank == victim)
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        else
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

struct tutti_conn *connect_waiting(struct tutti_fabric *fabric, int peer, int channel)
{
    struct tutti_idle idle = {.passes = 0};
    struct tutti_conn *conn = NULL;
    int rc;

    while ((rc = tutti_fabric_connect(fabric, peer, channel, &conn)) == TUTTI_AGAIN)
        tutti_fabric_idle(fabric, &idle);
    CHECK(rc == TUTTI_OK);
    return conn;
}
