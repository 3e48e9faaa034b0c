/* SPDX-License-Identifier: Apache-2.0
 * Algorithms on a torus use all ports of every rank, and bucket sends to neighbors only. */
#include "algorithms/algorithm.h"
#include "base/result.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const enum tutti_collective collectives[] = {TUTTI_ALLREDUCE, TUTTI_ALLGATHER,
                                                    TUTTI_REDUCE_SCATTER};

#define COLLECTIVES (sizeof(collectives) / sizeof(collectives[0]))

static struct tutti_schedule *schedule_of(enum tutti_collective collective, const char *name,
                                          const struct tutti_placement *torus, uint32_t rank,
                                          uint32_t channels)
{
    struct tutti_shape shape = {.nranks = torus->nranks, .rank = rank, .places = torus};
    struct tutti_schedule *schedule = NULL;

    shape.options.value[TUTTI_CHANNELS] = channels;
    assert_int_equal(tutti_algorithm_schedule(tutti_algorithm_find(collective, name), &shape,
                                              &schedule), TUTTI_OK);
    return schedule;
}

/* Find the dimension in which two ranks differ, and by how many places. Fails if there are several
 * dimensions. */
static uint32_t dimension_of(const struct tutti_placement *torus, uint32_t from, uint32_t to,
                             uint32_t *ret_up)
{
    uint32_t found = UINT32_MAX, stride = 1;

    for (uint32_t dim = 0; dim < torus->ndims; dim++) {
        uint32_t d = torus->dims[dim], x = from / stride % d, y = to / stride % d;

        if (x != y) {
            assert_true(found > torus->ndims);
            found = dim;
            *ret_up = (y + d - x) % d;
        }
        stride *= d;
    }
    assert_true(found < torus->ndims);
    return found;
}

/* The chunks that leave a rank through each port. Port 2i is upwards in dimension i. */
struct ports {
    uint32_t chunks[8];
    uint32_t channels[8]; /* a bit per channel */
};

static struct ports ports_of(const struct tutti_placement *torus, uint32_t rank,
                             const struct tutti_schedule *schedule, uint32_t farthest)
{
    struct ports ports = {.chunks = {0}};

    for (uint32_t at = 0; at < schedule->nsteps; at++) {
        const struct tutti_step *step = &schedule->steps[at];
        uint32_t up = 0, dim, is_down, d;

        if (step->to < 0)
            continue;
        dim = dimension_of(torus, rank, (uint32_t)step->to, &up);
        d = torus->dims[dim];
        is_down = 2 * up > d;
        assert_in_range(is_down ? d - up : up, 1, farthest);
        /* A fused step sends on what it has received, and may have no other source. */
        ports.chunks[2 * dim + is_down] +=
            step->from >= 0 ? step->dst.count : step->src.count;
        ports.channels[2 * dim + is_down] |= 1u << step->channel;
    }
    return ports;
}

static const struct tutti_placement square = {.nranks = 36, .dims = {6, 6}, .ndims = 2};
static const struct tutti_placement cube = {.nranks = 64, .dims = {4, 4, 4}, .ndims = 3};
static const struct tutti_placement odd = {.nranks = 125, .dims = {5, 5, 5}, .ndims = 3};
static const struct tutti_placement flat = {.nranks = 25, .dims = {1, 5, 1, 5}, .ndims = 4};

static const struct tutti_placement *const tori[] = {&square, &cube, &odd, &flat};

static void bucket_sends_equally_much_to_each_neighbor(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof(tori) / sizeof(tori[0]); t++)
        for (size_t c = 0; c < COLLECTIVES; c++)
            for (uint32_t rank = 0; rank < tori[t]->nranks; rank++) {
                struct tutti_schedule *schedule =
                    schedule_of(collectives[c], "bucket", tori[t], rank, 0);
                struct ports ports = ports_of(tori[t], rank, schedule, 1);
                uint32_t rounds = collectives[c] == TUTTI_ALLREDUCE ? 2 : 1;

                for (uint32_t port = 0; port < 2 * tori[t]->ndims; port++)
                    assert_int_equal(ports.chunks[port],
                                     tori[t]->dims[port / 2] > 1 ? rounds * (tori[t]->nranks - 1)
                                                                 : 0);
                tutti_schedule_destroy(schedule);
            }
}

/* At the start each port serves a part of its own: the first message of each channel leaves through
 * another port. */
static void parts_begin_at_different_ports(void **state)
{
    static const char *const names[] = {"bucket", "swing"};

    (void)state;
    for (size_t n = 0; n < 2; n++)
        for (uint32_t rank = 0; rank < cube.nranks; rank++) {
            struct tutti_schedule *schedule =
                schedule_of(TUTTI_ALLREDUCE, names[n], &cube, rank, 0);
            uint32_t seen_channels = 0, seen_ports = 0;

            assert_int_equal(schedule->nchannels, 6);
            for (uint32_t at = 0; at < schedule->nsteps; at++) {
                const struct tutti_step *step = &schedule->steps[at];
                uint32_t up, port;

                if (step->to < 0 || seen_channels >> step->channel & 1)
                    continue;
                seen_channels |= 1u << step->channel;
                port = 2 * dimension_of(&cube, rank, (uint32_t)step->to, &up);
                port += 2 * up > 4;
                assert_int_equal(seen_ports >> port & 1, 0);
                seen_ports |= 1u << port;
            }
            assert_int_equal(seen_ports, 63);
            tutti_schedule_destroy(schedule);
        }
}

static void the_option_channels_limits_the_parts(void **state)
{
    (void)state;
    for (uint32_t channels = 1; channels <= 8; channels++) {
        struct tutti_schedule *bucket =
            schedule_of(TUTTI_ALLREDUCE, "bucket", &square, 7, channels);
        struct tutti_schedule *swing = schedule_of(TUTTI_ALLREDUCE, "swing", &square, 7, channels);

        assert_int_equal(bucket->nchannels, channels < 4 ? channels : 4);
        assert_int_equal(swing->nchannels, channels < 4 ? channels : 4);
        tutti_schedule_destroy(bucket);
        tutti_schedule_destroy(swing);
    }
}

/* A torus of another number of ranks is not that of this communicator. */
static void a_torus_of_another_size_is_no_torus(void **state)
{
    const struct tutti_placement wrong = {.nranks = 30, .dims = {6, 6}, .ndims = 2};
    struct tutti_schedule *schedule = schedule_of(TUTTI_ALLREDUCE, "bucket", &wrong, 3, 0);

    (void)state;
    assert_int_equal(schedule->nchannels, 1);
    for (uint32_t at = 0; at < schedule->nsteps; at++)
        assert_true(schedule->steps[at].to < 0 || schedule->steps[at].to == 2 ||
                    schedule->steps[at].to == 4);
    tutti_schedule_destroy(schedule);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bucket_sends_equally_much_to_each_neighbor),
        cmocka_unit_test(parts_begin_at_different_ports),
        cmocka_unit_test(the_option_channels_limits_the_parts),
        cmocka_unit_test(a_torus_of_another_size_is_no_torus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
