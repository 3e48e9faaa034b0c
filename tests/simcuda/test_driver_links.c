/* SPDX-License-Identifier: Apache-2.0
 * Tests links between simulated devices: the driver's report of them, and their effect on lines.
 */
#include "simcuda/driving.h"
#include "simcuda/test_kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

static bool has_atomics(int device, int peer)
{
    int has = -1;

    WORKS(driver()->peer_attribute(&has, TUTTI_CU_PEER_NATIVE_ATOMICS, device, peer));
    MUST(has == 0 || has == 1);
    return has != 0;
}

/* ---- what is said of them -------------------------------------------------------------------- */

static void check_all(void)
{
    int value, count;

    WORKS(driver()->device_count(&count));
    MUST(count >= 3);
    for (int device = 0; device < count; device++)
        for (int peer = 0; peer < count; peer++)
            if (peer != device)
                MUST(has_atomics(device, peer));
    GIVES(TUTTI_CU_INVALID_DEVICE,
          driver()->peer_attribute(&value, TUTTI_CU_PEER_NATIVE_ATOMICS, 1, 1));
    GIVES(TUTTI_CU_INVALID_DEVICE,
          driver()->peer_attribute(&value, TUTTI_CU_PEER_NATIVE_ATOMICS, 0, count));
}

static void check_all_but_one_pair(void)
{
    MUST(!has_atomics(0, 2) && !has_atomics(2, 0));
    MUST(has_atomics(0, 1) && has_atomics(1, 0));
    MUST(has_atomics(1, 2) && has_atomics(2, 1));
}

static void check_none(void)
{
    MUST(!has_atomics(0, 1) && !has_atomics(1, 0));
}

static void atomics_go_over_nvlink_alone(void **state)
{
    (void)state;
    passes_apart(check_all, (struct settings){{"SIMCUDA_DEVICES=3"}});
    passes_apart(check_all,
                 (struct settings){{"TUTTI_SIM_TOPOLOGY=" SIM_TOPOLOGIES "/nvswitch-8.xml"}});
    passes_apart(check_all,
                 (struct settings){{"TUTTI_SIM_TOPOLOGY=" SIM_TOPOLOGIES "/mesh-4.xml"}});
    passes_apart(check_none,
                 (struct settings){{"TUTTI_SIM_TOPOLOGY=" SIM_TOPOLOGIES "/pcie-2.xml"}});
    passes_apart(check_all_but_one_pair,
                 (struct settings){{"SIMCUDA_DEVICES=3", "SIMCUDA_FAULTS=no-nvlink=0:2"}});
    passes_apart(check_all_but_one_pair,
                 (struct settings){{"SIMCUDA_DEVICES=3", "SIMCUDA_FAULTS=no-peer=2:0"}});
}

/* ---- what they do to lines ------------------------------------------------------------------- */

/* Lines that kernels of device 0 store in memory of another: how often one was torn. */
static uint64_t lines_torn_in(int owner)
{
    struct tutti_cu_context *theirs = use_device(owner);
    struct try_lines arg = {(unsigned char *)zeros(512), NULL, 50};

    use_device(0);
    if (owner != 0)
        WORKS(driver()->enable_peer(theirs, 0));
    arg.torn = zeros(16);
    WORKS(launch("try_lines", 2, 32, NULL, &arg));
    return peek(arg.torn);
}

static void send_whole_lines(void)
{
    for (int owner = 0; owner < 3; owner++)
        MUST(lines_torn_in(owner) == 0);
}

static void send_torn_lines_to_1(void)
{
    MUST(lines_torn_in(0) == 0);
    MUST(lines_torn_in(1) > 0);
    MUST(lines_torn_in(2) == 0);
}

static void send_torn_lines_to_all(void)
{
    for (int owner = 0; owner < 3; owner++)
        MUST(lines_torn_in(owner) > 0);
}

static void lines_stay_whole_over_nvlink_unless_that_is_broken(void **state)
{
    (void)state;
    passes_apart(send_whole_lines, (struct settings){{"SIMCUDA_DEVICES=3", "SIMCUDA_CHECK=1"}});
    passes_apart(send_whole_lines, (struct settings){{"SIMCUDA_DEVICES=3", "SIMCUDA_WEAK=3"}});
    passes_apart(send_torn_lines_to_1, (struct settings){{"SIMCUDA_DEVICES=3", "SIMCUDA_CHECK=1",
                                                          "SIMCUDA_FAULTS=no-nvlink=0:1"}});
    passes_apart(send_torn_lines_to_1,
                 (struct settings){{"SIMCUDA_DEVICES=3", "SIMCUDA_FAULTS=torn-lines=1:0"}});
    passes_apart(send_torn_lines_to_all,
                 (struct settings){{"SIMCUDA_DEVICES=3", "SIMCUDA_FAULTS=torn-lines"}});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(atomics_go_over_nvlink_alone),
        cmocka_unit_test(lines_stay_whole_over_nvlink_unless_that_is_broken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
