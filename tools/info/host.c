/* SPDX-License-Identifier: Apache-2.0
 * Collects facts about this host, as this process sees it. */
#include "info/facts.h"

#include "base/environment.h"
#include "base/file.h"
#include "base/interface.h"
#include "base/result.h"
#include "device/cpu/cpu.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_ATTEMPTS 1000 /* attempts to read a word that a child writes; 1 ms apart */

/* Reads a field of a file in /proc into `line`, and returns `line`. The text is "" if the file has
 * no such field. */
static const char *read_field(const char *path, const char *name, char *line, size_t size)
{
    tutti_file_field(path, name, line, size);
    return line;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The first child sets its copy of this variable to 1, and a second child reads the copy. */
static volatile uint64_t shared_word;

/* Reads the memory of process `pid`, a child of this process, from a second child. Neither child is
 * the other's parent, as it is with ranks. Returns 0, or the error number of the attempt. Returns
 * EIO if the first child has not written its word yet. */
static int read_from_sibling(pid_t pid)
{
    int status;
    pid_t reader = fork();

    if (reader == 0) {
        uint64_t seen = 0;
        struct iovec local = {.iov_base = &seen, .iov_len = sizeof seen};
        struct iovec remote = {.iov_base = (void *)(uintptr_t)&shared_word, .iov_len = sizeof seen};

        if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != (ssize_t)sizeof seen)
            _exit(errno & 0xff);
        _exit(seen == 1 ? 0 : EIO); /* the exit status is the result */
    }
    if (reader < 0 || waitpid(reader, &status, 0) != reader)
        return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

/* Tries whether one rank may read the memory of another. Returns 0, or the error number of the
 * attempt. */
static int try_cma(void)
{
    int ends[2], error, status;
    pid_t pid;
    char byte;

    if (pipe(ends) != 0)
        return errno;
    shared_word = 0;
    pid = fork();
    if (pid == 0) {
        close(ends[1]);
        shared_word = 1;
        /* The read blocks until the parent closes its end of the pipe. */
        _exit(read(ends[0], &byte, 1) != 0);
    }
    close(ends[0]);
    error = pid < 0 ? errno : EAGAIN;
    /* Repeat the attempt, because the child may not have written its word yet. */
    for (int i = 0; pid > 0 && i < MOST_ATTEMPTS && (error == EAGAIN || error == EIO); i++) {
        error = read_from_sibling(pid);
        if (error == EIO)
            usleep(1000);
    }
    close(ends[1]);
    if (pid > 0)
        waitpid(pid, &status, 0);
    return error;
}

static void explain_cma(json_t *memory, int error)
{
    char scope[32], status[128];

    tutti_file_line("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof scope);
    if (error == 0)
        facts_add(memory, "CMA", "yes: processes of one user read each other's memory");
    else if (error == ENOSYS)
        facts_add(memory, "CMA", "no: the kernel or a seccomp filter lacks process_vm_readv");
    else if (atoi(scope) > 0)
        facts_add(memory, "CMA", "no: %s; kernel.yama.ptrace_scope is %s, and 0 allows it",
                  strerror(error), scope);
    else if (atoi(read_field("/proc/self/status", "Seccomp", status, sizeof status)) > 0)
        facts_add(memory, "CMA", "no: %s; a seccomp filter is in force: in a container, add the "
                  "capability SYS_PTRACE or a profile that allows process_vm_readv",
                  strerror(error));
    else
        facts_add(memory, "CMA", "no: %s", strerror(error));
}

json_t *facts_of_memory(void)
{
    char line[256], size[64];
    json_t *memory = json_object();

    explain_cma(memory, try_cma());
    tutti_file_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line);
    facts_add(memory, "transparent huge pages", "%s", *line ? line : "unknown");
    tutti_file_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled", line, sizeof line);
    facts_add(memory, "the same, shared", "%s", *line ? line : "unknown");
    tutti_file_field("/proc/meminfo", "Hugepagesize", size, sizeof size);
    facts_add(memory, "reserved huge pages", "%s of %s",
              read_field("/proc/meminfo", "HugePages_Total", line, sizeof line),
              *size ? size : "unknown size");
    return memory;
}

/* ---- processor and limits -------------------------------------------------------------------- */

json_t *facts_of_processor(void)
{
    char line[256];
    json_t *processor = json_object();
    const char *model = read_field("/proc/cpuinfo", "model name", line, sizeof line);
    struct utsname names;
    cpu_set_t cpus;

    if (uname(&names) == 0)
        facts_add(processor, "host", "%s, %s %s", names.nodename, names.sysname, names.release);
    facts_add(processor, "model", "%s", *model ? model : "unknown");
    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
        facts_add(processor, "CPUs", "%d of %ld, for this process", CPU_COUNT(&cpus),
                  sysconf(_SC_NPROCESSORS_ONLN));
    facts_add(processor, "instruction set", "%s", tutti_cpu_isa());
    return processor;
}

/* Writes a limit, without its unit. Returns the text. */
static const char *limit_text(rlim_t limit, char text[32])
{
    if (limit == RLIM_INFINITY)
        snprintf(text, 32, "unlimited");
    else
        snprintf(text, 32, "%llu", (unsigned long long)limit);
    return text;
}

json_t *facts_of_limits(void)
{
    static const struct {
        const char *name, *unit;
        int resource;
    } kinds[] = {{"open files", "", RLIMIT_NOFILE},
                 {"locked memory", " bytes", RLIMIT_MEMLOCK},
                 {"file size", " bytes", RLIMIT_FSIZE},
                 {"processes", "", RLIMIT_NPROC}};
    json_t *limits = json_object();

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct rlimit limit;
        char soft[32], hard[32];

        if (getrlimit(kinds[i].resource, &limit) == 0)
            facts_add(limits, kinds[i].name, "%s%s (hard limit %s)",
                      limit_text(limit.rlim_cur, soft),
                      limit.rlim_cur == RLIM_INFINITY ? "" : kinds[i].unit,
                      limit_text(limit.rlim_max, hard));
    }
    return limits;
}

/* ---- interfaces ------------------------------------------------------------------------------ */

/* Returns true if the address is in the list. Ports do not matter. */
static bool is_among(const struct tutti_address *address, const struct tutti_address *list,
                     size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].family == address->family &&
            memcmp(list[i].bytes, address->bytes, sizeof address->bytes) == 0)
            return true;
    return false;
}

json_t *facts_of_interfaces(void)
{
    struct tutti_interface interfaces[256];
    struct tutti_address used[256];
    size_t count = 0, used_count = 0;
    json_t *list = json_array();

    if (tutti_interface_list(interfaces, sizeof interfaces / sizeof *interfaces, &count) !=
        TUTTI_OK)
        count = 0;
    if (tutti_address_list(used, sizeof used / sizeof *used, &used_count) != TUTTI_OK)
        used_count = 0;
    for (size_t i = 0; i < count; i++) {
        char address[TUTTI_ADDRESS_TEXT_BYTES], rate[TUTTI_INTERFACE_RATE_BYTES];
        json_t *interface = json_object();
        char *colon;

        tutti_address_format(&interfaces[i].address, address);
        colon = strrchr(address, ':'); /* cut off the port, which is not set */
        if (colon != NULL)
            *colon = '\0';
        facts_add(interface, "name", "%s", interfaces[i].name);
        facts_add(interface, "address", "%s", address);
        facts_add(interface, "rate", "%s",
                  tutti_interface_format_rate(interfaces[i].mbits, rate));
        facts_add(interface, "used", "%s",
                  is_among(&interfaces[i].address, used, used_count) ? "yes"
                  : interfaces[i].is_up ? "no: TUTTI_SOCKET_IFNAME, TUTTI_SOCKET_FAMILY"
                                        : "no: it is down");
        json_array_append_new(list, interface);
    }
    return list;
}

/* ---- variables ------------------------------------------------------------------------------- */

/* Writes the problem with a variable, or "" if there is no problem. Returns the text. */
static const char *problem_of(const struct tutti_variable *variable, char *text, size_t size)
{
    const char *nearest = tutti_environment_nearest(variable->name);

    text[0] = '\0';
    if (!variable->is_known && nearest != NULL)
        snprintf(text, size, "unknown; did you mean %s?", nearest);
    else if (!variable->is_known)
        snprintf(text, size, "unknown");
    else if (variable->info != NULL && !tutti_param_accepts(variable->info, variable->value))
        snprintf(text, size, "not accepted; %s is used", variable->info->fallback);
    return text;
}

json_t *facts_of_variables(bool *ret_are_right)
{
    struct tutti_variable variable;
    json_t *list = json_array();
    bool are_right = true;
    size_t at = 0;

    while (tutti_environment_next(&at, &variable)) {
        char text[256];
        json_t *entry = json_object();
        const char *problem = problem_of(&variable, text, sizeof text);

        facts_add(entry, "name", "%s", variable.name);
        facts_add(entry, "value", "%s", tutti_variable_shown(&variable));
        facts_add(entry, "problem", "%s", problem);
        are_right = are_right && *problem == '\0';
        json_array_append_new(list, entry);
    }
    *ret_are_right = are_right;
    return list;
}
