/* SPDX-License-Identifier: Apache-2.0
 * Tests memory of the simulated driver, of devices and of the host, and the meaning of addresses.
 */
#include "simcuda/driving.h"
#include "simcuda/test_kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- devices --------------------------------------------------------------------------------- */

static void check_alloc(void)
{
    const struct tutti_cu_driver *cuda = driver();
    tutti_cu_address address, base, other;
    size_t left, total, size;

    use_device(0);
    WORKS(cuda->memory_info(&left, &total));
    MUST(left == total && total == (size_t)1 << 20);
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->memory_alloc(&address, 0));
    GIVES(TUTTI_CU_OUT_OF_MEMORY, cuda->memory_alloc(&address, total + 1));
    WORKS(cuda->memory_alloc(&address, 100000));
    MUST(address % 256 == 0);
    WORKS(cuda->memory_info(&left, &total));
    MUST(total - left >= 100000 && total - left < 110000);
    GIVES(TUTTI_CU_OUT_OF_MEMORY, cuda->memory_alloc(&other, total - 100000));
    WORKS(cuda->address_range(&base, &size, address + 99999));
    MUST(base == address && size == 100000);
    GIVES(TUTTI_CU_NOT_FOUND, cuda->address_range(&base, &size, address + 100000));
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->memory_free(address + 256));
    WORKS(cuda->memory_free(address));
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->memory_free(address));
    WORKS(cuda->memory_free(0));
    WORKS(cuda->memory_info(&left, &total));
    MUST(left == total);
}

static void devices_have_so_much_memory(void **state)
{
    (void)state;
    passes_apart(check_alloc, (struct settings){{"SIMCUDA_MEMORY_MB=1"}});
}

static void check_copies(void)
{
    const struct tutti_cu_driver *cuda = driver();
    unsigned char bytes[300], back[300];
    uint64_t *first, *second;

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    use_device(0);
    first = zeros(300);
    use_device(1);
    second = zeros(300);
    WORKS(cuda->copy((uintptr_t)first, (uintptr_t)bytes, sizeof bytes));
    WORKS(cuda->copy_async((uintptr_t)second, (uintptr_t)first, sizeof bytes, NULL));
    WORKS(cuda->copy((uintptr_t)back, (uintptr_t)second, sizeof bytes));
    MUST(memcmp(bytes, back, sizeof bytes) == 0);
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->copy((uintptr_t)back, (uintptr_t)first + 1, 300));
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->set8((uintptr_t)first + 299, 0, 2));
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->set8((uintptr_t)back, 0, 2));
    WORKS(cuda->memory_free((uintptr_t)first));
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->copy((uintptr_t)back, (uintptr_t)first, 8));
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->set8((uintptr_t)first, 0, 8));
}

static void copies_stay_within_what_was_allocated(void **state)
{
    (void)state;
    passes_apart(check_copies, (struct settings){{"SIMCUDA_DEVICES=2"}});
}

static void use_after_free(void)
{
    uint64_t *words;
    struct try_fill arg;

    use_device(0);
    words = zeros(64);
    arg = (struct try_fill){words, 8, 1};
    WORKS(driver()->memory_free((uintptr_t)words));
    WORKS(launch("try_fill", 1, 32, NULL, &arg));
    driver()->context_synchronize();
}

/* The same stream has used the memory before. */
static void use_before_and_after_free(void)
{
    uint64_t *words;
    struct try_fill arg;

    use_device(0);
    words = zeros(64);
    arg = (struct try_fill){words, 8, 1};
    WORKS(launch("try_fill", 1, 32, NULL, &arg));
    WORKS(driver()->context_synchronize());
    WORKS(driver()->memory_free((uintptr_t)words));
    WORKS(launch("try_fill", 1, 32, NULL, &arg));
    driver()->context_synchronize();
}

static void write_behind(void)
{
    struct try_fill arg;

    use_device(0);
    arg = (struct try_fill){zeros(64), 4096, 1};
    WORKS(launch("try_fill", 1, 32, NULL, &arg));
    driver()->context_synchronize();
}

static void kernels_do_not_get_away_with_memory_that_is_not_theirs(void **state)
{
    (void)state;
    dies_apart(use_after_free, NULL, (struct settings){{NULL}});
    dies_apart(use_after_free, "not there, or not any more",
               (struct settings){{"SIMCUDA_CHECK=1"}});
    dies_apart(use_before_and_after_free, "not there, or not any more",
               (struct settings){{"SIMCUDA_CHECK=1"}});
    dies_apart(write_behind, NULL, (struct settings){{NULL}});
    dies_apart(write_behind, "kernel try_fill on device 0 stores 8 bytes",
               (struct settings){{"SIMCUDA_CHECK=1"}});
}

/* ---- peers ----------------------------------------------------------------------------------- */

static void fill_a_peers(int must_enable)
{
    const struct tutti_cu_driver *cuda = driver();
    struct tutti_cu_context *first = use_device(0);
    struct try_fill arg = {zeros(256), 32, 5};
    int can;

    use_device(1);
    WORKS(cuda->can_access_peer(&can, 1, 0));
    MUST(can == 1);
    if (must_enable) {
        WORKS(cuda->enable_peer(first, 0));
        GIVES(TUTTI_CU_PEER_ACCESS_ALREADY_ENABLED, cuda->enable_peer(first, 0));
    }
    WORKS(launch("try_fill", 1, 32, NULL, &arg));
    WORKS(cuda->context_synchronize());
    MUST(peek(&arg.words[31]) == 36);
}

static void fill_with_access(void)
{
    fill_a_peers(1);
}

static void fill_without_access(void)
{
    fill_a_peers(0);
}

static void check_no_peer(void)
{
    struct tutti_cu_context *first = use_device(0);
    int can;

    use_device(1);
    WORKS(driver()->can_access_peer(&can, 1, 0));
    MUST(can == 0);
    GIVES(TUTTI_CU_PEER_ACCESS_UNSUPPORTED, driver()->enable_peer(first, 0));
    WORKS(driver()->can_access_peer(&can, 1, 2));
    MUST(can == 1);
}

static void peers_memory_is_used_where_that_is_enabled(void **state)
{
    (void)state;
    passes_apart(fill_with_access,
                 (struct settings){{"SIMCUDA_DEVICES=2", "SIMCUDA_CHECK=1"}});
    dies_apart(fill_without_access, "memory of a device to which access is not enabled",
               (struct settings){{"SIMCUDA_DEVICES=2", "SIMCUDA_CHECK=1"}});
    passes_apart(check_no_peer,
                 (struct settings){{"SIMCUDA_DEVICES=3", "SIMCUDA_FAULTS=no-peer=0:1"}});
}

/* ---- the host -------------------------------------------------------------------------------- */

static uint64_t pageable[64];

static void check_host(void)
{
    const struct tutti_cu_driver *cuda = driver();
    tutti_cu_address address;
    void *host;
    struct try_fill arg;

    use_device(0);
    WORKS(cuda->host_alloc(&host, 4096, TUTTI_CU_HOST_PORTABLE));
    WORKS(cuda->host_device_address(&address, host, 0));
    MUST(address == (uintptr_t)host);
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->host_device_address(&address, pageable, 0));
    WORKS(cuda->host_register(pageable, sizeof pageable, TUTTI_CU_HOST_PORTABLE));
    GIVES(TUTTI_CU_HOST_MEMORY_ALREADY_REGISTERED,
          cuda->host_register(pageable + 8, 64, TUTTI_CU_HOST_PORTABLE));
    WORKS(cuda->host_device_address(&address, pageable, 0));
    arg = (struct try_fill){(uint64_t *)(uintptr_t)address, 64, 9};
    WORKS(launch("try_fill", 1, 32, NULL, &arg));
    WORKS(cuda->context_synchronize());
    MUST(pageable[63] == 72);
    WORKS(cuda->host_unregister(pageable));
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->host_unregister(pageable));
    WORKS(cuda->host_free(host));
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->host_free(host));
}

static void fill_pageable(void)
{
    struct try_fill arg = {pageable, 64, 9};

    use_device(0);
    WORKS(launch("try_fill", 1, 32, NULL, &arg));
    driver()->context_synchronize();
}

static void kernels_use_the_hosts_memory_that_is_locked(void **state)
{
    (void)state;
    passes_apart(check_host, (struct settings){{"SIMCUDA_CHECK=1"}});
    dies_apart(fill_pageable, "memory of the host that is not mapped",
               (struct settings){{"SIMCUDA_CHECK=1"}});
}

/* ---- what an address is ---------------------------------------------------------------------- */

struct facts {
    struct tutti_cu_context *context;
    unsigned type, is_managed, is_legacy;
    int ordinal;
    tutti_cu_address start;
    size_t size;
};

static struct facts ask(tutti_cu_address address)
{
    int attributes[] = {TUTTI_CU_POINTER_CONTEXT, TUTTI_CU_POINTER_MEMORY_TYPE,
                        TUTTI_CU_POINTER_IS_MANAGED, TUTTI_CU_POINTER_DEVICE_ORDINAL,
                        TUTTI_CU_POINTER_IS_LEGACY_IPC_CAPABLE, TUTTI_CU_POINTER_RANGE_START,
                        TUTTI_CU_POINTER_RANGE_SIZE};
    struct facts facts;
    void *values[] = {&facts.context, &facts.type, &facts.is_managed, &facts.ordinal,
                      &facts.is_legacy, &facts.start, &facts.size};

    WORKS(driver()->pointer_attributes(7, attributes, values, address));
    return facts;
}

static void check_attributes(void)
{
    struct tutti_cu_context *context;
    struct facts facts;
    tutti_cu_address address;
    void *host;

    use_device(0);
    context = use_device(1);
    WORKS(driver()->memory_alloc(&address, 1000));
    WORKS(driver()->host_alloc(&host, 1000, 0));
    use_device(0);
    facts = ask(address + 10);
    MUST(facts.context == context && facts.type == TUTTI_CU_MEMORY_DEVICE && facts.ordinal == 1);
    MUST(facts.is_managed == 0 && facts.is_legacy == 1 && facts.start == address);
    MUST(facts.size == 1000);
    facts = ask((uintptr_t)host);
    MUST(facts.context == context && facts.type == TUTTI_CU_MEMORY_HOST && facts.ordinal == 1);
    MUST(facts.is_legacy == 0);
    facts = ask((uintptr_t)pageable);
    MUST(facts.context == NULL && facts.type == 0 && facts.ordinal == -2 && facts.start == 0);
}

static void addresses_tell_what_they_are(void **state)
{
    (void)state;
    passes_apart(check_attributes, (struct settings){{"SIMCUDA_DEVICES=2"}});
}

/* ---- faults and leaks ------------------------------------------------------------------------ */

static void check_out_of_memory(void)
{
    tutti_cu_address address;

    use_device(0);
    WORKS(driver()->memory_alloc(&address, 64));
    GIVES(TUTTI_CU_OUT_OF_MEMORY, driver()->memory_alloc(&address, 64));
    WORKS(driver()->memory_alloc(&address, 64));
}

static void check_corrupt_copy(void)
{
    uint64_t *first, *second;

    use_device(0);
    first = zeros(8);
    use_device(1);
    second = zeros(8);
    WORKS(driver()->copy((uintptr_t)first, (uintptr_t)second, 8));
    MUST(peek(first) == 0);
    WORKS(driver()->copy((uintptr_t)second, (uintptr_t)first, 8));
    MUST(peek(second) != 0);
}

static void leak(void)
{
    struct tutti_cu_event *event;

    use_device(0);
    zeros(8);
    zeros(8);
    WORKS(driver()->event_create(&event, 0));
}

static void misspell(void)
{
    tutti_cu_get(true);
}

static void faults_come_on_demand_and_leaks_are_counted(void **state)
{
    (void)state;
    passes_apart(check_out_of_memory, (struct settings){{"SIMCUDA_FAULTS=oom=2"}});
    passes_apart(check_corrupt_copy,
                 (struct settings){{"SIMCUDA_DEVICES=2",
                                    "SIMCUDA_FAULTS=no-ipc,corrupt-copy=0:1"}});
    dies_apart(misspell, "no-such is no fault", (struct settings){{"SIMCUDA_FAULTS=no-such"}});
    assert_non_null(strstr(passes_apart(leak, (struct settings){{"SIMCUDA_LEAKS=1"}}),
                           "left: 2 allocations, 0 of the host, 0 registered, 0 opened, 0 mapped, "
                           "0 reserved, 0 handles, 0 streams, 1 events, 0 graphs"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_have_so_much_memory),
        cmocka_unit_test(copies_stay_within_what_was_allocated),
        cmocka_unit_test(kernels_do_not_get_away_with_memory_that_is_not_theirs),
        cmocka_unit_test(peers_memory_is_used_where_that_is_enabled),
        cmocka_unit_test(kernels_use_the_hosts_memory_that_is_locked),
        cmocka_unit_test(addresses_tell_what_they_are),
        cmocka_unit_test(faults_come_on_demand_and_leaks_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
