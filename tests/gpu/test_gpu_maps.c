/* SPDX-License-Identifier: Apache-2.0
 * Peers access some memory of GPUs directly: virtual memory of the caller, but not memory that
 * cannot be shared or has been freed. Calls are so large that they would use it. */
#include "gpu/listening.h"
#include "transport/gpu_memory/gpu_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

enum { COUNT = SUM_COUNT };

static const struct place apart = {LAUNCH_PROCESSES, 3, 2, -1};
static const struct place together = {LAUNCH_THREADS, 3, 2, -1};

/* ---- virtual memory of the caller's ---------------------------------------------------------- */

enum { PIECES = 2 };

/* Pieces side by side, each an allocation. */
struct stretch {
    tutti_cu_memory pieces[PIECES];
    size_t piece_bytes;
    tutti_cu_address begin;
};

static void expect_done(struct member *member, int code)
{
    if (code != TUTTI_CU_SUCCESS)
        member_complain(member, "the driver: %s", tutti_cu_error(gpus_driver(), code));
}

static struct tutti_cu_location here(const struct member *member)
{
    return (struct tutti_cu_location){.type = TUTTI_CU_LOCATION_DEVICE,
                                      .id = gpus_device(member)};
}

/* Open to the rank's own device alone. */
static struct stretch map_stretch(struct member *member)
{
    const struct tutti_cu_driver *cuda = gpus_driver();
    struct tutti_cu_memory_kind kind = {.type = TUTTI_CU_MEMORY_PINNED,
                                        .handle_types = TUTTI_CU_HANDLE_FILE,
                                        .location = here(member)};
    struct tutti_cu_access access = {.location = here(member),
                                     .flags = TUTTI_CU_ACCESS_READ_WRITE};
    struct stretch stretch = {.begin = 0};
    size_t unit = 1, wanted = COUNT * sizeof(int32_t);

    expect_done(member, cuda->granularity(&unit, &kind, TUTTI_CU_GRANULARITY_MINIMUM));
    stretch.piece_bytes = (wanted + unit - 1) / unit * unit;
    expect_done(member, cuda->address_reserve(&stretch.begin, PIECES * stretch.piece_bytes, 0, 0,
                                              0));
    for (size_t i = 0; i < PIECES; i++) {
        expect_done(member, cuda->memory_create(&stretch.pieces[i], stretch.piece_bytes, &kind, 0));
        expect_done(member, cuda->memory_map(stretch.begin + i * stretch.piece_bytes,
                                             stretch.piece_bytes, 0, stretch.pieces[i], 0));
    }
    expect_done(member, cuda->memory_access(stretch.begin, PIECES * stretch.piece_bytes, &access,
                                            1));
    return stretch;
}

/* Puts new memory in the place of the first piece. Other ranks must not be using that. */
static void renew_piece(struct member *member, struct stretch *stretch)
{
    const struct tutti_cu_driver *cuda = gpus_driver();
    struct tutti_cu_memory_kind kind = {.type = TUTTI_CU_MEMORY_PINNED,
                                        .handle_types = TUTTI_CU_HANDLE_FILE,
                                        .location = here(member)};
    struct tutti_cu_access access = {.location = here(member),
                                     .flags = TUTTI_CU_ACCESS_READ_WRITE};

    expect_done(member, cuda->memory_unmap(stretch->begin, stretch->piece_bytes));
    expect_done(member, cuda->memory_release(stretch->pieces[0]));
    expect_done(member, cuda->memory_create(&stretch->pieces[0], stretch->piece_bytes, &kind, 0));
    expect_done(member, cuda->memory_map(stretch->begin, stretch->piece_bytes, 0,
                                         stretch->pieces[0], 0));
    expect_done(member, cuda->memory_access(stretch->begin, stretch->piece_bytes, &access, 1));
}

static void drop_stretch(struct member *member, struct stretch *stretch)
{
    const struct tutti_cu_driver *cuda = gpus_driver();

    member_meet(member);
    expect_done(member, cuda->memory_unmap(stretch->begin, PIECES * stretch->piece_bytes));
    for (int i = 0; i < PIECES; i++)
        expect_done(member, cuda->memory_release(stretch->pieces[i]));
    expect_done(member, cuda->address_free(stretch->begin, PIECES * stretch->piece_bytes));
}

/* The first piece is registered, and the buffer begins there. */
static void cross_pieces(struct member *member)
{
    struct stretch stretch = map_stretch(member);
    uint8_t *begin = (uint8_t *)(uintptr_t)stretch.begin;
    void *handle = NULL;

    EXPECT_RESULT(member, tuttiInvalidArgument,
                  tuttiCommRegister(member->comm, begin, stretch.piece_bytes + 1, &handle));
    EXPECT(member, strstr(tuttiGetLastError(NULL), "beyond the allocation") != NULL);
    EXPECT_OK(member, tuttiCommRegister(member->comm, begin + 4, stretch.piece_bytes - 4, &handle));
    sum_often(member, (int32_t *)(void *)begin, "in a piece that is registered");
    sum_often(member, (int32_t *)(void *)(begin + stretch.piece_bytes / 2), "in two pieces");
    EXPECT_OK(member, tuttiCommDeregister(member->comm, handle));
    drop_stretch(member, &stretch);
}

static void sum_in_piece(struct member *member)
{
    struct stretch stretch = map_stretch(member);
    void *begin = (void *)(uintptr_t)stretch.begin, *handle = NULL;

    EXPECT_OK(member, tuttiCommRegister(member->comm, begin, stretch.piece_bytes, &handle));
    sum_often(member, begin, "in a piece that other devices were not let into");
    EXPECT_OK(member, tuttiCommDeregister(member->comm, handle));
    drop_stretch(member, &stretch);
}

enum { RENEWALS = 6 };

/* New memory has the address, and often the descriptor, of the memory that was there before. */
static void sum_in_renewed_piece(struct member *member)
{
    struct stretch stretch = map_stretch(member);
    void *begin = (void *)(uintptr_t)stretch.begin, *handle = NULL;

    for (int i = 0; i < RENEWALS; i++) {
        EXPECT_OK(member, tuttiCommRegister(member->comm, begin, stretch.piece_bytes, &handle));
        sum_often(member, begin, "in memory made anew");
        EXPECT_OK(member, tuttiCommDeregister(member->comm, handle));
        member_meet(member);
        renew_piece(member, &stretch);
    }
    drop_stretch(member, &stretch);
}

static void virtual_memory_is_opened_to_the_devices_of_peers(void **state)
{
    (void)state;
    /* Ranks 0 and 2 are on one device, and each shows what both have. */
    expect_lines(run_and_listen(&together, true, "debug", "", sum_in_piece),
                 ": all ranks can access", 5);
    expect_lines(run_and_listen(&apart, true, "debug", "", sum_in_piece),
                 ": all ranks can access", 3);
}

static void memory_made_anew_at_an_address_is_not_taken_for_what_was_there(void **state)
{
    (void)state;
    expect_lines(run_and_listen(&apart, true, "debug", "", sum_in_renewed_piece),
                 ": all ranks can access", 3 * RENEWALS);
}

static void a_buffer_in_two_allocations_is_not_offered_as_one(void **state)
{
    (void)state;
    at_place(&apart, true, cross_pieces);
}

/* ---- plain memory ---------------------------------------------------------------------------- */

static void sum_plain(struct member *member)
{
    tutti_cu_address plain = 0;

    expect_done(member, gpus_driver()->memory_alloc(&plain, COUNT * sizeof(int32_t)));
    sum_often(member, (int32_t *)(uintptr_t)plain, "plain memory");
    member_meet(member);
    expect_done(member, gpus_driver()->memory_free(plain));
}

/* The current context is known for the primary one. */
static void threads_in_primary_contexts_are_let_into_each_others_memory(void **state)
{
    const char *said = run_and_listen(&together, true, "info", "", sum_plain);

    (void)state;
    expect_lines(said, "GPUs reach each other", 1);
    expect_lines(said, "not all ranks are in primary contexts", 0);
}

/* ---- memory that others cannot open ---------------------------------------------------------- */

static void register_and_allocate(struct member *member)
{
    tutti_cu_address plain = 0;
    void *handle = NULL, *memory = NULL;

    expect_done(member, gpus_driver()->memory_alloc(&plain, COUNT * sizeof(int32_t)));
    EXPECT_OK(member, tuttiCommRegister(member->comm, (void *)(uintptr_t)plain,
                                        COUNT * sizeof(int32_t), &handle));
    EXPECT_OK(member, tuttiMemAlloc(&memory, COUNT * sizeof(int32_t)));
    sum_often(member, (int32_t *)(uintptr_t)plain, "memory that cannot be opened");
    sum_often(member, memory, "memory that can");
    EXPECT_OK(member, tuttiCommDeregister(member->comm, handle));
    EXPECT_OK(member, tuttiMemFree(memory));
    member_meet(member);
    expect_done(member, gpus_driver()->memory_free(plain));
}

static void memory_that_cannot_be_opened_is_no_hindrance_to_other_memory(void **state)
{
    const char *said = run_and_listen(&apart, true, "debug", "no-ipc", register_and_allocate);

    (void)state;
    expect_lines(said, "not all ranks can access the", 3);
    expect_lines(said, ": all ranks can access the", 3);
    expect_lines(said, "cannot access memory of rank", 6);
}

enum { FILE_BYTES = 1 << 16 };

static void open_files(struct member *member)
{
    struct tutti_gpumem_token token = {.kind = TUTTI_GPUMEM_HOST, .size_bytes = FILE_BYTES};
    struct tutti_gpumem memory = {.fd = -1};
    int fd = memfd_create("too short", MFD_CLOEXEC);

    EXPECT(member, fd >= 0 && ftruncate(fd, FILE_BYTES) == 0);
    if (EXPECT(member, tutti_gpumem_open(gpus_driver(), 0, &token, fd, &memory) == 0)) {
        memset(memory.host, 1, FILE_BYTES);
        tutti_gpumem_free(gpus_driver(), &memory);
    }
    EXPECT(member, ftruncate(fd, FILE_BYTES - 1) == 0);
    EXPECT(member, tutti_gpumem_open(gpus_driver(), 0, &token, fd, &memory) < 0);
    close(fd);
    EXPECT(member, tutti_gpumem_open(gpus_driver(), 0, &token, -1, &memory) < 0);
}

static void a_file_that_is_shorter_than_its_owner_says_is_refused(void **state)
{
    (void)state;
    at_place(&(struct place){LAUNCH_THREADS, 1, 1, -1}, false, open_files);
}

/* ---- memory that is freed -------------------------------------------------------------------- */

/* Pieces of device memory that this process has mapped: to the simulated driver they are files. */
static int count_mapped(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    int count = 0;
    char line[512];

    if (maps == NULL)
        return -1;
    while (fgets(line, sizeof line, maps) != NULL)
        count += strstr(line, "simcuda") != NULL;
    fclose(maps);
    return count;
}

/* Nothing is allocated after it. */
static void free_and_go_on(struct member *member)
{
    tutti_cu_address plain = 0;
    void *memory = NULL;
    int before;

    expect_done(member, gpus_driver()->memory_alloc(&plain, COUNT * sizeof(int32_t)));
    sum_often(member, (int32_t *)(uintptr_t)plain, "plain memory");
    member_meet(member);
    before = count_mapped();
    EXPECT_OK(member, tuttiMemAlloc(&memory, COUNT * sizeof(int32_t)));
    sum_often(member, memory, "memory of the library");
    EXPECT(member, count_mapped() == before + member->nranks);
    member_meet(member);
    EXPECT_OK(member, tuttiMemFree(memory));
    member_meet(member);
    sum_often(member, (int32_t *)(uintptr_t)plain, "after it was freed");
    EXPECT(member, count_mapped() == before);
    member_meet(member);
    expect_done(member, gpus_driver()->memory_free(plain));
}

static void peers_let_go_of_memory_that_was_freed(void **state)
{
    (void)state;
    at_place(&apart, true, free_and_go_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(virtual_memory_is_opened_to_the_devices_of_peers),
        cmocka_unit_test(memory_made_anew_at_an_address_is_not_taken_for_what_was_there),
        cmocka_unit_test(a_buffer_in_two_allocations_is_not_offered_as_one),
        cmocka_unit_test(threads_in_primary_contexts_are_let_into_each_others_memory),
        cmocka_unit_test(memory_that_cannot_be_opened_is_no_hindrance_to_other_memory),
        cmocka_unit_test(a_file_that_is_shorter_than_its_owner_says_is_refused),
        cmocka_unit_test(peers_let_go_of_memory_that_was_freed),
    };

    return cmocka_run_group_tests_name("memory that GPUs share", tests, NULL, NULL);
}
