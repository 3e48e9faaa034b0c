/* SPDX-License-Identifier: Apache-2.0
 * Tests modules and launches of the simulated driver, and lost devices. */
#include "simcuda/driving.h"
#include "simcuda/test_kernels.h"

#include <dlfcn.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tutti_cu_stream *make_stream(void)
{
    struct tutti_cu_stream *stream;

    WORKS(driver()->stream_create(&stream, TUTTI_CU_STREAM_NON_BLOCKING));
    return stream;
}

/* ---- modules --------------------------------------------------------------------------------- */

static void check_modules(void)
{
    static const uint32_t fat[2] = {0xba55ed50, 0};
    const struct tutti_cu_driver *cuda = driver();
    struct tutti_cu_module *module;
    struct tutti_cu_function *function;
    int value;

    GIVES(TUTTI_CU_INVALID_CONTEXT, cuda->module_load(&module, fat));
    use_device(0);
    GIVES(TUTTI_CU_INVALID_IMAGE, cuda->module_load(&module, "what is this"));
    WORKS(cuda->module_load(&module, "\177ELF and so on"));
    WORKS(cuda->module_unload(module));
    WORKS(cuda->module_load(&module, fat));
    GIVES(TUTTI_CU_NOT_FOUND, cuda->module_function(&function, module, "no_such_kernel"));
    WORKS(cuda->module_function(&function, module, "try_mistake"));
    WORKS(cuda->function_attribute(&value, TUTTI_CU_FUNCTION_MAX_THREADS, function));
    MUST(value == 64);
    WORKS(cuda->occupancy(&value, function, 33, 0));
    MUST(value == 256 / 64);
    WORKS(cuda->occupancy(&value, function, 128, 0));
    MUST(value == 0);
    WORKS(cuda->module_unload(module));
    GIVES(TUTTI_CU_INVALID_HANDLE, cuda->occupancy(&value, function, 32, 0));
    GIVES(TUTTI_CU_INVALID_HANDLE, cuda->module_unload(module));
}

static void modules_give_the_twins_of_kernels(void **state)
{
    (void)state;
    passes_apart(check_modules, (struct settings){{"SIMCUDA_THREADS=128",
                                                   "SIMCUDA_MULTIPROCESSOR_THREADS=256"}});
}

static void check_launches(void)
{
    struct try_mistake mistake = {TRY_ENDLESS, NULL};
    struct try_add arg;

    use_device(0);
    arg = (struct try_add){zeros(8), 3};
    WORKS(launch("try_add", 9, 128, NULL, &arg));
    WORKS(driver()->context_synchronize());
    MUST(peek(arg.at) == 3 * 9 * 128);
    GIVES(TUTTI_CU_INVALID_VALUE, launch("try_add", 1, 129, NULL, &arg));
    GIVES(TUTTI_CU_INVALID_VALUE, launch("try_add", 0, 32, NULL, &arg));
    GIVES(TUTTI_CU_INVALID_VALUE, launch("try_add", 1, 0, NULL, &arg));
    GIVES(TUTTI_CU_LAUNCH_OUT_OF_RESOURCES, launch("try_mistake", 1, 65, NULL, &mistake));
}

static void launches_that_are_too_large_are_refused(void **state)
{
    (void)state;
    passes_apart(check_launches, (struct settings){{"SIMCUDA_THREADS=128"}});
}

/* ---- at the same time ------------------------------------------------------------------------ */

/* So many launches on streams of their own, all of whose blocks wait for each other. */
static void meet(unsigned nlaunches, unsigned blocks)
{
    struct try_meet arg;

    use_device(0);
    arg = (struct try_meet){zeros(8), nlaunches * blocks, 3};
    for (unsigned i = 0; i < nlaunches; i++)
        WORKS(launch("try_meet", blocks, 64, make_stream(), &arg));
    WORKS(driver()->context_synchronize());
    MUST(peek(arg.counter) == 3 * nlaunches * blocks);
}

static void meet_within_places(void)
{
    meet(16, 2);
}

static void meet_beyond_places(void)
{
    meet(3, 3);
}

static void launches_run_together_where_there_is_room(void **state)
{
    (void)state;
    passes_apart(meet_within_places, (struct settings){{NULL}});
    dies_apart(meet_beyond_places, "nobody has got on for 100 ms",
               (struct settings){{"SIMCUDA_MULTIPROCESSORS=2", "SIMCUDA_MULTIPROCESSOR_THREADS=256",
                                  "SIMCUDA_WATCHDOG_MS=100"}});
}

/* On a stream that has one multiprocessor, with room for 4 blocks. */
static void meet_on_a_small_stream(unsigned blocks)
{
    int (*create)(struct tutti_cu_stream **ret_stream, unsigned multiprocessors);
    void *found = dlsym(driver()->library, "cuSimStreamCreate");
    struct tutti_cu_resource resource;
    struct tutti_cu_stream *stream;
    struct tutti_cu_green *green;
    struct try_meet arg;

    MUST(found != NULL);
    memcpy(&create, &found, sizeof create);
    use_device(0);
    WORKS(driver()->stream_green(make_stream(), &green));
    MUST(green == NULL);
    WORKS(create(&stream, 1));
    WORKS(driver()->stream_green(stream, &green));
    WORKS(driver()->green_resource(green, &resource, TUTTI_CU_RESOURCE_MULTIPROCESSORS));
    MUST(resource.multiprocessors == 1);
    arg = (struct try_meet){zeros(8), blocks, 3};
    WORKS(launch("try_meet", blocks, 64, stream, &arg));
    WORKS(driver()->context_synchronize());
}

static void meet_4_on_a_small_stream(void)
{
    meet_on_a_small_stream(4);
}

static void meet_5_on_a_small_stream(void)
{
    meet_on_a_small_stream(5);
}

static void a_stream_of_a_green_context_has_fewer_places(void **state)
{
    (void)state;
    passes_apart(meet_4_on_a_small_stream,
                 (struct settings){{"SIMCUDA_MULTIPROCESSOR_THREADS=256"}});
    dies_apart(meet_5_on_a_small_stream, "nobody has got on for 100 ms",
               (struct settings){{"SIMCUDA_MULTIPROCESSOR_THREADS=256",
                                  "SIMCUDA_WATCHDOG_MS=100"}});
}

static void fill_much(void)
{
    struct try_fill arg;

    use_device(0);
    arg = (struct try_fill){zeros(800), 100, 1};
    WORKS(launch("try_fill", 100, 64, NULL, &arg));
    WORKS(driver()->context_synchronize());
    MUST(peek(&arg.words[99]) == 100);
}

static void blocks_that_do_not_wait_for_others_take_turns(void **state)
{
    (void)state;
    passes_apart(fill_much, (struct settings){{"SIMCUDA_MULTIPROCESSORS=1",
                                               "SIMCUDA_MULTIPROCESSOR_THREADS=128"}});
}

/* A multiprocessor gives shared memory to try_sum, which try_meet does not use: this changes its
 * first-level cache, for which try_meet must end first. It waits for the second try_meet. */
static void meet_around_a_sum(int carveout)
{
    const struct tutti_cu_driver *cuda = driver();
    struct tutti_cu_function *functions[2];
    struct tutti_cu_stream *first, *second;
    struct try_meet meet;
    struct try_sum sum;
    void *parameters[2] = {&meet, &sum};

    use_device(0);
    functions[0] = kernel("try_meet");
    functions[1] = kernel("try_sum");
    for (int i = 0; i < 2; i++)
        WORKS(cuda->set_function_attribute(functions[i], TUTTI_CU_FUNCTION_CARVEOUT, carveout));
    meet = (struct try_meet){zeros(8), 2, 1};
    sum = (struct try_sum){zeros(8)};
    first = make_stream();
    second = make_stream();
    WORKS(cuda->launch(functions[0], 1, 1, 1, 32, 1, 1, 0, first, &parameters[0], NULL));
    while (peek(meet.counter) == 0)
        sched_yield();
    WORKS(cuda->launch(functions[1], 1, 1, 1, 32, 1, 1, 0, second, &parameters[1], NULL));
    WORKS(cuda->launch(functions[0], 1, 1, 1, 32, 1, 1, 0, second, &parameters[0], NULL));
    WORKS(cuda->context_synchronize());
    MUST(peek(sum.sums) == 496);
}

static void meet_with_one_preference(void)
{
    meet_around_a_sum(50);
}

static void meet_without_preference(void)
{
    meet_around_a_sum(-1);
}

static void a_multiprocessor_ends_its_blocks_before_it_changes_its_cache(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    skip(); /* the host polls memory that a kernel changes, as it may, which TSan reports */
#endif
    passes_apart(meet_with_one_preference, (struct settings){{"SIMCUDA_MULTIPROCESSORS=1"}});
    dies_apart(meet_without_preference, "nobody has got on for 100 ms",
               (struct settings){{"SIMCUDA_MULTIPROCESSORS=1", "SIMCUDA_WATCHDOG_MS=100"}});
}

static void check_occupancy(void)
{
    static const struct {
        const char *name;
        int carveout, threads, blocks;
    } rows[] = {
        {"try_add", -1, 256, 8},                    /* by threads */
        {"try_add", -1, 32, 32},                    /* by blocks */
        {"tutti_kernel_work_small", -1, 256, 2},    /* by registers: 128 of a thread */
        {"tutti_kernel_work_small", -1, 64, 8},
        {"tutti_kernel_meeting", -1, 64, 18},       /* 52 of a thread are 56 */
        {"tutti_kernel_group", -1, 256, 2},
        {"tutti_kernel_group", -1, 32, 10},         /* by shared memory: 228 KiB */
        {"tutti_kernel_group", 50, 32, 5},          /* 132 KiB */
        {"tutti_kernel_group", 0, 32, 1},           /* 32 KiB, because one block must have room */
    };
    int blocks, value;

    use_device(0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tutti_cu_function *function = kernel(rows[i].name);

        WORKS(driver()->set_function_attribute(function, TUTTI_CU_FUNCTION_CARVEOUT,
                                               rows[i].carveout));
        WORKS(driver()->function_attribute(&value, TUTTI_CU_FUNCTION_CARVEOUT, function));
        MUST(value == rows[i].carveout);
        WORKS(driver()->occupancy(&blocks, function, rows[i].threads, 0));
        if (blocks != rows[i].blocks)
            fprintf(stderr, "row %zu: %d blocks\n", i, blocks);
        MUST(blocks == rows[i].blocks);
    }
    GIVES(TUTTI_CU_INVALID_VALUE, driver()->set_function_attribute(
                                      kernel("try_add"), TUTTI_CU_FUNCTION_CARVEOUT, 101));
}

static void registers_and_shared_memory_limit_the_blocks(void **state)
{
    (void)state;
    passes_apart(check_occupancy, (struct settings){{"SIMCUDA_THREADS=256"}});
}

/* ---- lost devices ---------------------------------------------------------------------------- */

static void check_lost(void)
{
    struct try_meet forever;
    uint64_t *arrived;
    struct try_add add;
    tutti_cu_address address;
    struct tutti_cu_context *context;
    struct tutti_cu_stream *stream;

    use_device(1);
    add = (struct try_add){zeros(8), 1};
    use_device(0);
    WORKS(driver()->host_alloc((void **)&arrived, sizeof *arrived,
                               TUTTI_CU_HOST_PORTABLE | TUTTI_CU_HOST_MAPPED));
    *arrived = 0;
    forever = (struct try_meet){arrived, 3, 1}; /* by two blocks: the third never comes */
    stream = make_stream();
    WORKS(launch("try_meet", 2, 32, stream, &forever));
    while (__atomic_load_n(arrived, __ATOMIC_ACQUIRE) < 2)
        sched_yield();
    WORKS(launch("try_add", 1, 32, make_stream(), &add));
    GIVES(700, driver()->stream_synchronize(stream));
    GIVES(700, driver()->memory_alloc(&address, 8));
    GIVES(700, driver()->context_synchronize());
    GIVES(700, driver()->primary_retain(&context, 0));
    use_device(1);
    MUST(peek(add.at) == 0);
    WORKS(launch("try_add", 1, 32, NULL, &add));
    MUST(peek(add.at) == 32);
}

static void a_lost_device_ends_its_kernels_and_fails_all_calls(void **state)
{
    (void)state;
    passes_apart(check_lost,
                 (struct settings){{"SIMCUDA_DEVICES=2", "SIMCUDA_FAULTS=lost=0:1:700"}});
}

/* ---- lines, and memory that is late ---------------------------------------------------------- */

static uint64_t send_lines(void)
{
    struct try_lines arg;

    use_device(0);
    arg = (struct try_lines){(unsigned char *)zeros(512), zeros(16), 50};
    WORKS(launch("try_lines", 2, 32, NULL, &arg));
    return peek(arg.torn);
}

static void send_whole_lines(void)
{
    MUST(send_lines() == 0);
}

static void send_torn_lines(void)
{
    MUST(send_lines() > 0);
}

static void send_without_order(void)
{
    struct try_send arg = {NULL, NULL, TRY_NO_ORDER, 20, 64, 1, 1};

    use_device(0);
    arg.message = (struct try_message *)zeros(4096);
    arg.wrong = zeros(8);
    WORKS(launch("try_send", 2, 1, NULL, &arg));
    MUST(peek(arg.wrong) > 0);
}

static void lines_tear_and_stores_come_late_where_that_is_wanted(void **state)
{
    (void)state;
    passes_apart(send_whole_lines, (struct settings){{NULL}});
    passes_apart(send_whole_lines, (struct settings){{"SIMCUDA_WEAK=3", "SIMCUDA_CHECK=1"}});
    passes_apart(send_torn_lines, (struct settings){{"SIMCUDA_FAULTS=torn-lines"}});
    passes_apart(send_without_order, (struct settings){{"SIMCUDA_WEAK=3"}});
}

/* ---- devices --------------------------------------------------------------------------------- */

static void check_devices(void)
{
    const struct tutti_cu_driver *cuda = driver();
    unsigned char uuid[TUTTI_CU_UUID_BYTES], other[TUTTI_CU_UUID_BYTES];
    char name[64];
    int count, bus[2], value;

    WORKS(cuda->device_count(&count));
    MUST(count == 8);
    WORKS(cuda->device_attribute(&bus[0], TUTTI_CU_PCI_BUS, 0));
    WORKS(cuda->device_attribute(&bus[1], TUTTI_CU_PCI_BUS, 1));
    MUST(bus[0] != bus[1]);
    WORKS(cuda->device_attribute(&value, TUTTI_CU_CAPABILITY_MAJOR, 0));
    MUST(value >= 7);
    WORKS(cuda->device_attribute(&value, TUTTI_CU_UNIFIED_ADDRESSING, 0));
    MUST(value == 1);
    WORKS(cuda->device_uuid(uuid, 0));
    WORKS(cuda->device_uuid(other, 7));
    MUST(memcmp(uuid, other, sizeof uuid) != 0);
    WORKS(cuda->device_name(name, sizeof name, 3));
    MUST(strcmp(name, "Simulated GPU") == 0);
    GIVES(TUTTI_CU_INVALID_DEVICE, cuda->device_name(name, sizeof name, 8));
    WORKS(cuda->driver_version(&value));
    MUST(value >= 12000);
}

static void devices_are_those_of_the_topology(void **state)
{
    (void)state;
    passes_apart(check_devices,
                 (struct settings){{"TUTTI_SIM_TOPOLOGY=" SIM_TOPOLOGIES "/nvswitch-8.xml"}});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_give_the_twins_of_kernels),
        cmocka_unit_test(launches_that_are_too_large_are_refused),
        cmocka_unit_test(launches_run_together_where_there_is_room),
        cmocka_unit_test(a_stream_of_a_green_context_has_fewer_places),
        cmocka_unit_test(blocks_that_do_not_wait_for_others_take_turns),
        cmocka_unit_test(a_multiprocessor_ends_its_blocks_before_it_changes_its_cache),
        cmocka_unit_test(registers_and_shared_memory_limit_the_blocks),
        cmocka_unit_test(a_lost_device_ends_its_kernels_and_fails_all_calls),
        cmocka_unit_test(lines_tear_and_stores_come_late_where_that_is_wanted),
        cmocka_unit_test(devices_are_those_of_the_topology),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
