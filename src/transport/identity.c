/* SPDX-License-Identifier: Apache-2.0
 * Determines the identity of this process and of its host, so that ranks can tell which of them are
 * on one host or in one process. */
#include "transport/identity.h"

#include "base/fence.h"
#include "base/handshake.h"
#include "base/param.h"
#include "base/system.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Drawn at random once per process. A forked child has a copy of its parent's, so the pid is
 * included. */
static struct {
    pid_t pid;
    uint64_t cookie;
    uint8_t probe[TUTTI_IDENTITY_BYTES];
} drawn;
static pthread_mutex_t drawn_lock = PTHREAD_MUTEX_INITIALIZER;

static void hash_text(const char *text, uint8_t ret_hash[TUTTI_IDENTITY_BYTES])
{
    uint8_t whole[TUTTI_SECRET_BYTES];

    tutti_secret_from_text(text, whole);
    memcpy(ret_hash, whole, TUTTI_IDENTITY_BYTES);
}

static uint64_t inode_of(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 ? (uint64_t)status.st_ino : 0;
}

/* Writes the kernel's boot id, or the host's name if /proc is missing. */
static void describe_boot(char *text, size_t size)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = -1;
    struct utsname names;

    if (fd >= 0) {
        length = read(fd, text, size - 1);
        close(fd);
    }
    if (length > 0)
        text[length] = '\0';
    else if (uname(&names) == 0)
        snprintf(text, size, "name %s", names.nodename);
    else
        snprintf(text, size, "nameless");
}

static void describe_cores(struct tutti_identity *identity)
{
    uint8_t hash[TUTTI_IDENTITY_BYTES];
    char text[2 * sizeof(cpu_set_t) + 1] = ""; /* the set in hexadecimal digits */
    cpu_set_t cores;

    if (sched_getaffinity(0, sizeof cores, &cores) != 0) {
        identity->ncores = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
        return;
    }
    identity->ncores = (uint32_t)CPU_COUNT(&cores);
    for (size_t i = 0; i < sizeof cores; i++)
        snprintf(text + 2 * i, 3, "%02x", ((const uint8_t *)&cores)[i]);
    hash_text(text, hash);
    memcpy(&identity->cores_hash, hash, sizeof identity->cores_hash);
}

void tutti_identity_clean_name(char name[TUTTI_HOST_NAME_BYTES])
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-_";

    name[TUTTI_HOST_NAME_BYTES - 1] = '\0';
    for (char *at = name; *at != '\0'; at++)
        if (strchr(allowed, *at) == NULL)
            *at = '?';
    if (name[0] == '\0')
        memcpy(name, "unknown", sizeof "unknown");
}

void tutti_identity_host_name(char ret_name[TUTTI_HOST_NAME_BYTES])
{
    struct utsname names = {.nodename = ""};
    size_t length;

    memset(ret_name, 0, TUTTI_HOST_NAME_BYTES); /* all of it is sent to other ranks */
    uname(&names);
    length = strcspn(names.nodename, ".");
    memcpy(ret_name, names.nodename,
           length < TUTTI_HOST_NAME_BYTES ? length : TUTTI_HOST_NAME_BYTES - 1);
    tutti_identity_clean_name(ret_name);
}

void tutti_identity_describe(struct tutti_identity *ret_identity)
{
    const char *host_id = tutti_param_text(TUTTI_PARAM_HOST_ID);
    struct tutti_identity identity = {.pid = (int32_t)getpid()};
    char boot[128], network[256], whole[512];

    describe_boot(boot, sizeof boot);
    snprintf(network, sizeof network, "%s network %llu", boot,
             (unsigned long long)inode_of("/proc/self/ns/net"));
    hash_text(network, identity.network);
    /* A host's identity includes the network namespace and the user. The reason is that ranks pass
     * the segment over an abstract Unix socket, which exists only within a network namespace, and
     * refuse other users there. */
    snprintf(whole, sizeof whole, "%.480s user %u", *host_id != '\0' ? host_id : network,
             (unsigned)geteuid());
    hash_text(whole, identity.host);
    identity.pid_namespace = inode_of("/proc/self/ns/pid");
    describe_cores(&identity);
    identity.accepts_fences = tutti_fence_join();

    pthread_mutex_lock(&drawn_lock);
    if (drawn.pid != getpid()) {
        tutti_random_bytes(&drawn.cookie, sizeof drawn.cookie);
        tutti_random_bytes(drawn.probe, sizeof drawn.probe);
        drawn.pid = getpid();
    }
    identity.cookie = drawn.cookie;
    identity.probe_address = (uint64_t)(uintptr_t)drawn.probe;
    memcpy(identity.probe, drawn.probe, sizeof identity.probe);
    pthread_mutex_unlock(&drawn_lock);

    *ret_identity = identity;
}

bool tutti_identity_same_host(const struct tutti_identity *one, const struct tutti_identity *other)
{
    return memcmp(one->host, other->host, sizeof one->host) == 0;
}

bool tutti_identity_same_process(const struct tutti_identity *one,
                                 const struct tutti_identity *other)
{
    return one->pid == other->pid && one->pid_namespace == other->pid_namespace &&
           one->cookie == other->cookie && one->probe_address == other->probe_address &&
           memcmp(one->probe, other->probe, sizeof one->probe) == 0;
}
