/* SPDX-License-Identifier: Apache-2.0
 * Ports and identities of jobs. Some launchers identify the job, but give no address. The functions
 * here compute, on each rank alone, the place where all ranks of that job meet. */
#include "bootstrap/launcher.h"

#include "base/handshake.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The most ancestors that are searched for the launcher, and the most bytes that are read of an
 * environment. */
#define ANCESTORS_MAX 16
#define ENVIRONMENT_MAX ((size_t)1 << 20)

/* The range of tutti_launch_port. */
enum { PORT_FIRST = 20000, PORT_COUNT = 40000 };

bool tutti_slurm_first_host(const char *nodelist, char *ret_host, size_t size)
{
    size_t length = 0;
    const char *at = nodelist;

    while (*at != '\0' && *at != ',') {
        if (*at == '[') {
            /* From a list in brackets take the first number, with its leading zeros. */
            size_t digits;

            at++;
            digits = strspn(at, "0123456789");
            if (digits == 0 || length + digits >= size || strchr(",-]", at[digits]) == NULL)
                return false;
            memcpy(ret_host + length, at, digits);
            length += digits;
            at = strchr(at, ']');
            if (at == NULL)
                return false;
            at++;
        } else {
            if (!(isalnum((unsigned char)*at) || strchr("-._", *at) != NULL) || length + 1 >= size)
                return false;
            ret_host[length++] = *at++;
        }
    }
    ret_host[length] = '\0';
    return length > 0;
}

unsigned tutti_launch_port(unsigned long job, unsigned long step)
{
    /* The factors keep the ports of consecutive jobs and steps far apart, since each may use
     * several ports in a row. */
    return PORT_FIRST + (unsigned)((job * 7919 + step * 104729) % PORT_COUNT);
}

/* Read a whole small file of /proc, whose size is not known before. The caller frees the text. */
static char *read_proc(unsigned pid, const char *name, size_t *ret_size)
{
    char path[64];
    char *text = NULL;
    size_t size = 0;
    ssize_t moved;
    int fd;

    snprintf(path, sizeof path, "/proc/%u/%s", pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    text = malloc(ENVIRONMENT_MAX + 1);
    while (text != NULL && size < ENVIRONMENT_MAX &&
           (moved = read(fd, text + size, ENVIRONMENT_MAX - size)) > 0)
        size += (size_t)moved;
    close(fd);
    if (text != NULL)
        text[size] = '\0';
    *ret_size = size;
    return text;
}

/* Returns 1 if the environment of process `pid` has the variable, and 0 if not. Returns -1 if that
 * environment cannot be read. Of an environment over ENVIRONMENT_MAX bytes the rest is not seen. */
static int has_variable(unsigned pid, const char *variable)
{
    size_t size, length = strlen(variable);
    char *environment = read_proc(pid, "environ", &size);
    int found = 0;

    if (environment == NULL)
        return -1;
    for (size_t at = 0; at < size && !found; at += strlen(environment + at) + 1)
        found = strncmp(environment + at, variable, length) == 0 &&
                environment[at + length] == '=';
    free(environment);
    return found;
}

/* Get the parent and the start time (in ticks since boot) of a process; see proc(5). */
static bool read_stat(unsigned pid, unsigned *ret_parent, unsigned long long *ret_start)
{
    size_t size;
    char *text = read_proc(pid, "stat", &size);
    /* The second field is a name in parentheses, which may contain any characters. */
    char *at = text ? strrchr(text, ')') : NULL;
    bool is_read = at != NULL &&
                   sscanf(at + 1,
                          " %*c %u %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                          "%*d %*d %llu",
                          ret_parent, ret_start) == 2;

    free(text);
    return is_read;
}

bool tutti_launch_ancestor(const char *variable, char *ret_identity, size_t size)
{
    unsigned pid = (unsigned)getppid(), parent;
    unsigned long long start;

    for (int i = 0; i < ANCESTORS_MAX; i++) {
        int found = has_variable(pid, variable);

        if (found < 0 || !read_stat(pid, &parent, &start))
            return false;
        if (found == 0) {
            snprintf(ret_identity, size, "%u.%llu", pid, start);
            return true;
        }
        pid = parent;
    }
    return false;
}

void tutti_launch_parent(char *ret_text, size_t size)
{
    unsigned pid = (unsigned)getppid(), grandparent;
    unsigned long long start;

    if (!read_stat(pid, &grandparent, &start))
        start = 0;
    snprintf(ret_text, size, "parent %u.%llu", pid, start);
}

void tutti_launch_socket(const char *identity, char *ret_url, size_t size)
{
    enum { READABLE_MAX = 64 };
    uint8_t hash[TUTTI_SECRET_BYTES];
    char name[READABLE_MAX + 1];
    size_t length = 0;

    for (; identity[length] != '\0' && length < READABLE_MAX; length++)
        name[length] = isalnum((unsigned char)identity[length]) || identity[length] == '.'
                           ? identity[length]
                           : '-';
    name[length] = '\0';
    /* The hash covers the characters that were replaced or cut off, too. */
    tutti_secret_from_text(identity, hash);
    snprintf(ret_url, size, "unix:%s-%02x%02x%02x%02x", name, hash[0], hash[1], hash[2], hash[3]);
}
