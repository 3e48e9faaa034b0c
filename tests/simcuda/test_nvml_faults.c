/* SPDX-License-Identifier: Apache-2.0
 * Runs the NVML phase of detection with drivers that are old, absent or broken. It finds
 * everything that they can report, and a fault of a GPU affects only that GPU. */
#include "base/result.h"
#include "simcuda/detecting.h"
#include "support/stderr_text.h"
#include "topology/detect/place.h"
#include "wrap/nvml.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- drivers that lack things ---------------------------------------------------------------- */

static void an_old_driver_is_enough_for_links(void **state)
{
    (void)state;
    for (size_t i = 0; i < NMACHINES; i++) {
        struct tutti_inventory *expected = load(path_of(machines[i])), *found;
        uint32_t gpu = TUTTI_NO_DEVICE;

        use(SIM_OLD_NVML, path_of(machines[i]));
        found = detected(NOTHING_HERE);
        assert_int_equal(count_of(found, TUTTI_DEVICE_GPU), count_of(expected, TUTTI_DEVICE_GPU));
        assert_int_equal(count_of(found, TUTTI_DEVICE_NVLINK),
                         count_of(expected, TUTTI_DEVICE_NVLINK));
        assert_int_equal(count_of(found, TUTTI_DEVICE_C2C), 0);
        while ((gpu = tutti_inventory_next_of(expected, gpu, TUTTI_DEVICE_GPU)) !=
               TUTTI_NO_DEVICE) {
            uint32_t same = same_gpu(expected, gpu, found);

            for (uint32_t k = expected->devices[gpu].first_child; k != TUTTI_NO_DEVICE;
                 k = expected->devices[k].next) {
                int64_t class = tutti_device_number(expected, k, TUTTI_PROPERTY_TCLASS, 0);
                uint32_t link = find_link(
                    found, same, tutti_device_number(expected, k, TUTTI_PROPERTY_TARGET, 0));

                if (expected->devices[k].kind == TUTTI_DEVICE_C2C)
                    continue;
                /* It cannot tell an NPU, which nothing else here can either. */
                assert_int_equal(tutti_device_number(found, link, TUTTI_PROPERTY_TCLASS, 0),
                                 class == 0x068001 ? 0x068000 : class);
            }
        }
        tutti_inventory_destroy(expected);
        tutti_inventory_destroy(found);
    }
}

static void without_a_driver_nothing_is_found_and_one_line_says_so(void **state)
{
    static const struct {
        const char *library, *fault, *line;
    } cases[] = {
        {"/nonexistent/libnvidia-ml.so.1", NULL, "WARN no NVML, so NVIDIA GPUs are not asked for: "
                                                 "/nonexistent/libnvidia-ml.so.1: cannot open"},
        {"libm.so.6", NULL, "WARN no NVML, so NVIDIA GPUs are not asked for: libm.so.6 has no "
                            "function nvmlInit_v2"},
        {SIM_NVML, "nvmlInit_v2:9", "INFO " SIM_NVML " does not start"},
        {SIM_NVML, "nvmlInit_v2:18", "WARN " SIM_NVML " does not start"},
        {SIM_NVML, "nvmlDeviceGetCount_v2:999", "WARN NVIDIA GPUs are not detected: NVML does"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_inventory *inventory;
        const char *said;

        use(cases[i].library, path_of("mesh-4"));
        if (cases[i].fault != NULL)
            setenv("TUTTI_SIM_NVML_FAULT", cases[i].fault, 1);
        assert_int_equal(tutti_inventory_create(&inventory), TUTTI_OK);
        said = detect(NULL, inventory);
        if (strstr(said, cases[i].line) == NULL || count_lines_with(said, "tutti") != 1)
            fail_msg("said: %s\nnot:  %s", said, cases[i].line);
        assert_int_equal(inventory->count, 1);
        tutti_inventory_destroy(inventory);
    }
}

/* ---- faults ---------------------------------------------------------------------------------- */

static void a_fault_of_one_gpu_costs_no_other(void **state)
{
    static const struct {
        const char *fault;
        bool is_left_out;
        const char *line; /* NULL: it is no fault worth a line */
    } cases[] = {
        {"nvmlDeviceGetHandleByIndex_v2:15@3", true, "WARN GPU 3 is left out: NVML says: GPU is"},
        {"nvmlDeviceGetHandleByIndex_v2:4@3", true, "DEBUG GPU 3 is left out"},
        {"nvmlDeviceGetPciInfo_v3:15@3", true, "WARN GPU 3 is left out"},
        {"nvmlDeviceGetCudaComputeCapability:15@3", true, "WARN GPU 3 (0000:61:00.0) is left out"},
        {"nvmlDeviceGetName:15@3", true, "WARN GPU 3 (0000:61:00.0) is left out: NVML says: GPU"},
        {"nvmlDeviceGetNvLinkState:15@3", true, "WARN GPU 3 (0000:61:00.0) is left out"},
        {"nvmlDeviceGetNvLinkRemotePciInfo_v2:16@3", true, "WARN GPU 3 (0000:61:00.0) is left"},
        {"nvmlDeviceGetFieldValues:15@3", true, "WARN GPU 3 (0000:61:00.0) is left out"},
        {"nvmlDeviceGetGpuFabricInfoV:15@3", true, "WARN GPU 3 (0000:61:00.0) is left out"},
        {"nvmlDeviceGetName:999@3", false, "DEBUG NVML, GPU 3 (0000:61:00.0), name: Some Error"},
        {"nvmlDeviceGetName:3@3", false, NULL},
        {"nvmlDeviceGetMigMode:3@3,nvmlDeviceGetUUID:3@3", false, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tutti_inventory *inventory;
        const char *said;

        use(SIM_NVML, path_of("nvswitch-8"));
        setenv("TUTTI_SIM_NVML_FAULT", cases[i].fault, 1);
        assert_int_equal(tutti_inventory_create(&inventory), TUTTI_OK);
        said = detect(NOTHING_HERE, inventory);
        if (cases[i].line != NULL ? count_lines_with(said, cases[i].line) != 1
                                  : strstr(said, "NVML, GPU") != NULL)
            fail_msg("%s\nsaid: %s\nnot:  %s", cases[i].fault, said, cases[i].line);
        assert_int_equal(count_of(inventory, TUTTI_DEVICE_GPU), cases[i].is_left_out ? 7 : 8);
        assert_int_equal(count_of(inventory, TUTTI_DEVICE_NVLINK),
                         cases[i].is_left_out ? 28 : 32);
        tutti_inventory_destroy(inventory);
    }
}

static void a_lost_gpu_that_another_phase_found_is_taken_out(void **state)
{
    struct tutti_inventory *inventory = load(path_of("nvswitch-8"));

    (void)state;
    use(SIM_NVML, path_of("nvswitch-8"));
    setenv("TUTTI_SIM_NVML_FAULT", "nvmlDeviceGetUUID:15@0", 1);
    detect(NOTHING_HERE, inventory);
    assert_int_equal(count_of(inventory, TUTTI_DEVICE_GPU), 7);
    assert_int_equal(tutti_detect_child(inventory, tutti_inventory_find_pci(inventory, 0x1b000),
                                        TUTTI_DEVICE_GPU), TUTTI_NO_DEVICE);
    tutti_inventory_destroy(inventory);
}

static void links_that_cannot_be_asked_are_left_out(void **state)
{
    struct tutti_inventory *found;

    (void)state;
    use(SIM_NVML, path_of("mesh-4"));
    setenv("TUTTI_SIM_NVML_FAULT", "nvmlDeviceGetNvLinkRemotePciInfo_v2:999@1", 1);
    found = detected(NOTHING_HERE);
    assert_int_equal(count_of(found, TUTTI_DEVICE_GPU), 4);
    assert_int_equal(count_of(found, TUTTI_DEVICE_NVLINK), 9);
    tutti_inventory_destroy(found);
}

/* ---- the simulation itself ------------------------------------------------------------------- */

static void the_simulated_driver_aborts_on_misuse(void **state)
{
    (void)state;
    for (int misuse = 0; misuse < 4; misuse++) {
        int status;
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            struct tutti_nvml nvml;
            unsigned count;
            int code;

            use(SIM_NVML, path_of("mesh-4"));
            if (freopen("/dev/null", "w", stderr) == NULL || tutti_nvml_open(&nvml) != TUTTI_OK)
                _exit(1);
            if (misuse == 0)
                nvml.link_state((struct tutti_nvml_gpu *)(void *)&nvml, 0, &code);
            nvml.shutdown();
            if (misuse == 1)
                nvml.shutdown();
            if (misuse == 2)
                nvml.device_count(&count);
            unsetenv("TUTTI_SIM_TOPOLOGY");
            if (misuse == 3)
                nvml.init();
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_driver_is_enough_for_links),
        cmocka_unit_test(without_a_driver_nothing_is_found_and_one_line_says_so),
        cmocka_unit_test(a_fault_of_one_gpu_costs_no_other),
        cmocka_unit_test(a_lost_gpu_that_another_phase_found_is_taken_out),
        cmocka_unit_test(links_that_cannot_be_asked_are_left_out),
        cmocka_unit_test(the_simulated_driver_aborts_on_misuse),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
