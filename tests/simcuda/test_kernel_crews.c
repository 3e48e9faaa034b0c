/* SPDX-License-Identifier: Apache-2.0
 * Some threads of a block do one thing and the others another. Each crew does all of its own work,
 * and none of the others' work. */
#include "simcuda/sim_kernel.h"
#include "simcuda/test_crew_kernels.h"
#include "unit/device/elements.h"

#include "device/cpu/cpu.h"

enum { COUNT = 777 };

static uint16_t sources[3][COUNT] __attribute__((aligned(16)));
static uint16_t sum[COUNT + 8] __attribute__((aligned(16)));
static uint16_t most[2][COUNT + 8] __attribute__((aligned(16)));
static float wide[COUNT] __attribute__((aligned(16)));

static const void *srcs[3] = {sources[0], sources[1], sources[2]};

/* The expected result of a reduction, as the CPU computes it. */
static void expect(enum tutti_type type, enum tutti_op op, uint32_t nsrcs, uint16_t *result)
{
    void *dst = result;

    tutti_cpu_reduce(&(struct tutti_reduce_args){
        .type = type, .op = op, .nsrcs = nsrcs, .ndsts = 1, .srcs = srcs, .dsts = &dst,
        .count = COUNT, .scale = {1.0, 1},
    });
}

static void check(uint32_t threads, uint32_t first, uint32_t count)
{
    /* In place, so that nothing may be done twice. */
    const void *sum_srcs[] = {sum + 1, sources[1], sources[2]};
    void *sum_dsts[] = {sum + 1}, *most_dsts[] = {most[0], most[1] + 3};
    uint16_t want[COUNT];
    float want_wide[COUNT];
    const _Alignas(16) struct try_crews argument = {
        .crew_job = {.type = TUTTI_BFLOAT16, .op = TUTTI_SUM, .nsrcs = 3, .ndsts = 1,
                     .srcs = sum_srcs, .dsts = sum_dsts, .count = COUNT, .scale = {1.0, 1},
                     .premultiplied = TUTTI_KERNEL_NO_SOURCE},
        .others_job = {.type = TUTTI_FLOAT16, .op = TUTTI_MAX, .nsrcs = 2, .ndsts = 2, .srcs = srcs,
                       .dsts = most_dsts, .count = COUNT, .scale = {1.0, 1},
                       .premultiplied = TUTTI_KERNEL_NO_SOURCE},
        .conversion = {.type = TUTTI_BFLOAT16, .is_widening = 1, .src = sum + 1, .dst = wide,
                       .count = COUNT, .multiply = 1.0f},
        .first = first, .count = count,
    };

    memset(sum, 0x77, sizeof sum);
    memcpy(sum + 1, sources[0], sizeof sources[0]);
    memset(most, 0x77, sizeof most);
    memset(wide, 0x77, sizeof wide);
    sim_kernel_run("try_two_crews", 1, threads, &argument);
    expect(TUTTI_BFLOAT16, TUTTI_SUM, 3, want);
    assert_memory_equal(sum + 1, want, sizeof want);
    tutti_cpu_widen(TUTTI_BFLOAT16, want_wide, want, COUNT, 1.0f);
    assert_memory_equal(wide, want_wide, sizeof want_wide);
    expect(TUTTI_FLOAT16, TUTTI_MAX, 2, want);
    assert_memory_equal(most[0], want, sizeof want);
    assert_memory_equal(most[1] + 3, want, sizeof want);
    assert_int_equal(sum[0], 0x7777);
    assert_int_equal(sum[COUNT + 1], 0x7777);
    assert_int_equal(most[1][COUNT + 3], 0x7777);
}

static void crews_of_any_size_do_their_own_work(void **state)
{
    static const struct {
        uint32_t threads, first, count;
    } crews[] = {{32, 0, 31}, {64, 32, 32}, {64, 5, 1}, {96, 17, 45}, {64, 1, 63}, {128, 64, 32}};

    (void)state;
    for (size_t k = 0; k < COUNT_OF(sources); k++)
        fill_elements(TUTTI_BFLOAT16, sources[k], COUNT, 7 + k);
    for (size_t i = 0; i < COUNT_OF(crews); i++)
        check(crews[i].threads, crews[i].first, crews[i].count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crews_of_any_size_do_their_own_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
