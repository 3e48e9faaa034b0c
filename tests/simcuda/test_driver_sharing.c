/* SPDX-License-Identifier: Apache-2.0
 * Tests memory of the simulated driver that is mapped part by part, and that other processes use.
 */
#include "simcuda/driving.h"
#include "simcuda/test_kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

static struct tutti_cu_memory_kind kind_of(int device)
{
    return (struct tutti_cu_memory_kind){
        .type = TUTTI_CU_MEMORY_PINNED, .handle_types = TUTTI_CU_HANDLE_FILE,
        .location = {TUTTI_CU_LOCATION_DEVICE, device},
    };
}

static struct tutti_cu_access access_of(int device)
{
    return (struct tutti_cu_access){{TUTTI_CU_LOCATION_DEVICE, device}, TUTTI_CU_ACCESS_READ_WRITE};
}

static size_t unit(void)
{
    struct tutti_cu_memory_kind kind = kind_of(0);
    size_t bytes;

    WORKS(driver()->granularity(&bytes, &kind, TUTTI_CU_GRANULARITY_MINIMUM));
    return bytes;
}

/* ---- virtual memory -------------------------------------------------------------------------- */

static void check_mapping(void)
{
    const struct tutti_cu_driver *cuda = driver();
    struct tutti_cu_memory_kind kind = kind_of(0);
    struct tutti_cu_access access = access_of(0);
    tutti_cu_memory memory, again;
    tutti_cu_address at, twice;
    size_t size = unit(), left, total;

    use_device(0);
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->memory_create(&memory, size + 1, &kind, 0));
    WORKS(cuda->memory_create(&memory, size, &kind, 0));
    WORKS(cuda->address_reserve(&at, 2 * size, 0, 0, 0));
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->set8(at, 1, 8));
    WORKS(cuda->memory_map(at, size, 0, memory, 0));
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->memory_map(at, size, 0, memory, 0));
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->memory_map(at + 2 * size, size, 0, memory, 0));
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->set8(at, 1, 8));
    WORKS(cuda->memory_access(at, size, &access, 1));
    WORKS(cuda->set8(at, 1, size));
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->set8(at, 1, size + 1));
    WORKS(cuda->memory_map(at + size, size, 0, memory, 0));
    WORKS(cuda->memory_access(at, 2 * size, &access, 1));
    WORKS(cuda->set8(at, 2, size + 1));
    MUST(peek((const uint64_t *)(uintptr_t)(at + size)) == 0x0202020202020202u);
    WORKS(cuda->memory_retain(&again, (void *)(uintptr_t)(at + 5)));
    MUST(again == memory);
    WORKS(cuda->memory_release(again));
    WORKS(cuda->memory_release(memory));
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->memory_release(memory));
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->address_free(at, 2 * size));
    WORKS(cuda->memory_unmap(at, size));
    WORKS(cuda->memory_info(&left, &total));
    MUST(total - left == size);
    WORKS(cuda->memory_unmap(at + size, size));
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->memory_unmap(at, size));
    WORKS(cuda->memory_info(&left, &total));
    MUST(total == left);
    WORKS(cuda->address_free(at, 2 * size));
    WORKS(cuda->address_reserve(&twice, size, size, 0, 0));
    MUST(twice != at);
}

static void memory_is_mapped_where_it_is_wanted(void **state)
{
    (void)state;
    passes_apart(check_mapping, (struct settings){{NULL}});
}

/* A kernel of device 1 is to fill memory of device 0, which `user` may use. */
static struct try_fill map_to_fill(int user)
{
    struct tutti_cu_memory_kind kind = kind_of(0);
    struct tutti_cu_access access = access_of(user);
    tutti_cu_memory memory;
    tutti_cu_address at;

    use_device(0);
    WORKS(driver()->memory_create(&memory, unit(), &kind, 0));
    WORKS(driver()->address_reserve(&at, unit(), 0, 0, 0));
    WORKS(driver()->memory_map(at, unit(), 0, memory, 0));
    WORKS(driver()->memory_access(at, unit(), &access, 1));
    use_device(1);
    return (struct try_fill){(uint64_t *)(uintptr_t)at, 8, 3};
}

static void fill_what_is_mine(void)
{
    struct try_fill arg = map_to_fill(1);

    WORKS(launch("try_fill", 1, 32, NULL, &arg));
    WORKS(driver()->context_synchronize());
    MUST(peek(&arg.words[7]) == 10);
}

static void fill_what_is_not(void)
{
    struct try_fill arg = map_to_fill(0);

    WORKS(launch("try_fill", 1, 32, NULL, &arg));
    driver()->context_synchronize();
}

/* A kernel may use the memory, and then no more, while device 0 still may. */
static void fill_what_is_taken_back(void)
{
    struct tutti_cu_access mine = access_of(0), theirs = access_of(1);
    struct try_fill arg = map_to_fill(1);
    tutti_cu_address at = (tutti_cu_address)(uintptr_t)arg.words;

    WORKS(driver()->memory_access(at, unit(), &mine, 1));
    WORKS(launch("try_fill", 1, 32, NULL, &arg));
    WORKS(driver()->context_synchronize());
    theirs.flags = 0;
    WORKS(driver()->memory_access(at, unit(), &theirs, 1));
    WORKS(launch("try_fill", 1, 32, NULL, &arg));
    driver()->context_synchronize();
}

static void mappings_are_for_devices(void **state)
{
    (void)state;
    passes_apart(fill_what_is_mine, (struct settings){{"SIMCUDA_DEVICES=2", "SIMCUDA_CHECK=1"}});
    dies_apart(fill_what_is_not, "memory that is not mapped for this device",
               (struct settings){{"SIMCUDA_DEVICES=2", "SIMCUDA_CHECK=1"}});
    dies_apart(fill_what_is_taken_back, "memory that is not mapped for this device",
               (struct settings){{"SIMCUDA_DEVICES=2", "SIMCUDA_CHECK=1"}});
}

/* ---- between processes ----------------------------------------------------------------------- */

static int ends[2]; /* of a socket */

static void send_bytes(const void *bytes, size_t size_bytes)
{
    MUST(write(ends[1], bytes, size_bytes) == (ssize_t)size_bytes);
}

static void receive_bytes(void *ret_bytes, size_t size_bytes)
{
    MUST(read(ends[0], ret_bytes, size_bytes) == (ssize_t)size_bytes);
}

/* Both halves of a pair: the first goes on in a child, before either uses the driver. */
static void in_two_processes(void (*first)(void), void (*second)(void))
{
    int status, both[2];
    pid_t child;

    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0);
    child = fork();
    MUST(child >= 0);
    ends[0] = ends[1] = both[child == 0];
    /* So that one of them hears of it when the other ends. */
    close(both[child != 0]);
    if (child == 0) {
        first();
        _exit(0);
    }
    second();
    MUST(waitpid(child, &status, 0) == child && status == 0);
}

static void export_memory(void)
{
    const struct tutti_cu_driver *cuda = driver();
    struct tutti_cu_ipc_memory handle;
    tutti_cu_address opened;
    uint64_t *words;
    char go;

    use_device(0);
    words = zeros(1000);
    WORKS(cuda->ipc_export(&handle, (uintptr_t)words + 8));
    GIVES(TUTTI_CU_INVALID_CONTEXT,
          cuda->ipc_open(&opened, handle, TUTTI_CU_IPC_LAZY_PEER_ACCESS));
    send_bytes(&handle, sizeof handle);
    receive_bytes(&go, 1);
    MUST(peek(&words[100]) == 142);
    WORKS(cuda->memory_free((uintptr_t)words));
    send_bytes(&go, 1);
}

static void open_memory(void)
{
    const struct tutti_cu_driver *cuda = driver();
    struct tutti_cu_ipc_memory handle;
    tutti_cu_address address, again;
    struct try_fill arg;
    char go = 0;

    receive_bytes(&handle, sizeof handle);
    use_device(1);
    WORKS(cuda->ipc_open(&address, handle, TUTTI_CU_IPC_LAZY_PEER_ACCESS));
    WORKS(cuda->ipc_open(&again, handle, TUTTI_CU_IPC_LAZY_PEER_ACCESS));
    MUST(again == address);
    WORKS(cuda->ipc_close(again));
    arg = (struct try_fill){(uint64_t *)(uintptr_t)address, 125, 42};
    WORKS(launch("try_fill", 2, 32, NULL, &arg));
    WORKS(cuda->context_synchronize());
    send_bytes(&go, 1);
    receive_bytes(&go, 1);
    MUST(peek(arg.words) == 42);
    WORKS(cuda->ipc_close(address));
    GIVES(TUTTI_CU_INVALID_VALUE, cuda->ipc_close(address));
    GIVES(TUTTI_CU_INVALID_VALUE,
          cuda->ipc_open(&again, handle, TUTTI_CU_IPC_LAZY_PEER_ACCESS));
}

static void open_in_vain(void)
{
    struct tutti_cu_ipc_memory handle;
    tutti_cu_address address;
    char go = 0;

    receive_bytes(&handle, sizeof handle);
    use_device(0);
    GIVES(TUTTI_CU_INVALID_VALUE,
          driver()->ipc_open(&address, handle, TUTTI_CU_IPC_LAZY_PEER_ACCESS));
    send_bytes(&go, 1);
}

static void export_only(void)
{
    struct tutti_cu_ipc_memory handle;
    char go;

    use_device(0);
    WORKS(driver()->ipc_export(&handle, (uintptr_t)zeros(8)));
    send_bytes(&handle, sizeof handle);
    receive_bytes(&go, 1);
}

static void share_by_handle(void)
{
    in_two_processes(export_memory, open_memory);
}

static void share_in_vain(void)
{
    in_two_processes(export_only, open_in_vain);
}

static void other_processes_open_what_a_handle_names(void **state)
{
    (void)state;
    passes_apart(share_by_handle, (struct settings){{"SIMCUDA_DEVICES=2", "SIMCUDA_CHECK=1"}});
    passes_apart(share_in_vain, (struct settings){{"SIMCUDA_FAULTS=no-ipc"}});
}

/* A file descriptor goes to the other process. */
static void send_file(int file)
{
    char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &file, sizeof file);
    MUST(sendmsg(ends[1], &message, 0) == 1);
}

static int receive_file(void)
{
    char control[CMSG_SPACE(sizeof(int))], byte;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = sizeof control};
    int file;

    MUST(recvmsg(ends[0], &message, 0) == 1 && CMSG_FIRSTHDR(&message) != NULL);
    memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
    return file;
}

static tutti_cu_address map_memory(tutti_cu_memory memory, int user)
{
    struct tutti_cu_access access = access_of(user);
    tutti_cu_address at;

    WORKS(driver()->address_reserve(&at, unit(), 0, 0, 0));
    WORKS(driver()->memory_map(at, unit(), 0, memory, 0));
    WORKS(driver()->memory_access(at, unit(), &access, 1));
    return at;
}

static void export_file(void)
{
    struct tutti_cu_memory_kind kind = kind_of(1);
    tutti_cu_memory memory;
    tutti_cu_address at;
    int file;
    char go;

    use_device(1);
    WORKS(driver()->memory_create(&memory, unit(), &kind, 0));
    at = map_memory(memory, 1);
    WORKS(driver()->memory_export(&file, memory, TUTTI_CU_HANDLE_FILE, 0));
    send_file(file);
    close(file);
    receive_bytes(&go, 1);
    MUST(peek((const uint64_t *)(uintptr_t)at) == 0x0505050505050505u);
}

static void import_file(void)
{
    tutti_cu_memory memory;
    tutti_cu_address at;
    int file = receive_file(), attribute = TUTTI_CU_POINTER_DEVICE_ORDINAL, ordinal;
    void *value = &ordinal;
    char go = 0;

    use_device(0);
    GIVES(TUTTI_CU_INVALID_VALUE,
          driver()->memory_import(&memory, (void *)(uintptr_t)ends[0], TUTTI_CU_HANDLE_FILE));
    WORKS(driver()->memory_import(&memory, (void *)(uintptr_t)file, TUTTI_CU_HANDLE_FILE));
    close(file);
    at = map_memory(memory, 0);
    WORKS(driver()->memory_release(memory));
    WORKS(driver()->pointer_attributes(1, &attribute, &value, at));
    MUST(ordinal == 1);
    WORKS(driver()->set8(at, 5, 8));
    send_bytes(&go, 1);
}

static void share_by_file(void)
{
    in_two_processes(export_file, import_file);
}

static void check_no_export(void)
{
    struct tutti_cu_memory_kind kind = kind_of(0);
    tutti_cu_memory memory;
    int can;

    use_device(0);
    WORKS(driver()->device_attribute(&can, TUTTI_CU_FILE_DESCRIPTOR_HANDLES, 0));
    MUST(can == 0);
    GIVES(TUTTI_CU_NOT_SUPPORTED, driver()->memory_create(&memory, 1 << 16, &kind, 0));
    kind.handle_types = 0;
    WORKS(driver()->memory_create(&memory, 1 << 16, &kind, 0));
}

static void other_processes_import_what_a_file_is(void **state)
{
    (void)state;
    passes_apart(share_by_file, (struct settings){{"SIMCUDA_DEVICES=2"}});
    passes_apart(check_no_export, (struct settings){{"SIMCUDA_FAULTS=no-vmm-export"}});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_mapped_where_it_is_wanted),
        cmocka_unit_test(mappings_are_for_devices),
        cmocka_unit_test(other_processes_open_what_a_handle_names),
        cmocka_unit_test(other_processes_import_what_a_file_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
