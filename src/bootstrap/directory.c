/* SPDX-License-Identifier: Apache-2.0
 * The notes in a directory (directory.h): their format, and the checks that a directory is safe. */
#include "bootstrap/directory.h"

#include "base/handshake.h"
#include "base/result.h"
#include "base/system.h"
#include "bootstrap/exchange.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t magic[4] = {'T', 'U', 'n', '1'};

/* The owner of a directory can replace it while we use it, so it must be our user or root. On a
 * file server that does not trust root, root's own directories belong to user nobody (65534). */
static bool is_trusted_owner(uid_t owner)
{
    enum { ROOT = 0, NOBODY = 65534 };

    return owner == geteuid() || owner == ROOT || (geteuid() == ROOT && owner == NOBODY);
}

/* Check that no stranger can write to the directory. */
static int check_directory(const char *path, const struct stat *info, bool is_private)
{
    if (!is_trusted_owner(info->st_uid))
        return tutti_fail(TUTTI_ERR_SYSTEM,
                          "directory %s belongs to user %u; name one that belongs to user %u", path,
                          (unsigned)info->st_uid, (unsigned)geteuid());
    if ((info->st_mode & S_IWOTH) != 0)
        return tutti_fail(TUTTI_ERR_SYSTEM,
                          "directory %s is writable by everybody, so anybody could pose as a rank; "
                          "name a directory of your own, such as %s/tutti-%u",
                          path, path, (unsigned)geteuid());
    if (is_private && (info->st_mode & S_IWGRP) != 0)
        return tutti_fail(TUTTI_ERR_SYSTEM,
                          "directory %s is writable by its group, so anybody in it could pose as a "
                          "rank; take that right away (chmod g-w), or set TUTTI_SECRET",
                          path);
    return TUTTI_OK;
}

int tutti_directory_open(const char *path, bool is_private, struct tutti_directory *ret_dir)
{
    enum { TRIES = 8 };
    struct tutti_directory dir = {.fd = -1};
    struct stat info;
    int tries = 0, rc;

    if (strlen(path) >= sizeof dir.path)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "the path of directory %.64s... has %zu bytes; the "
                                              "limit is %zu",
                          path, strlen(path), sizeof dir.path - 1);
    do {
        if (mkdir(path, S_ISVTX | S_IRWXU) != 0 && errno != EEXIST)
            return tutti_fail(TUTTI_ERR_SYSTEM, "make directory %s: %s; name one below a directory "
                                                "that exists and that you may write to",
                              path, strerror(errno));
        dir.fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        /* A rank that no longer needs the directory may remove it between mkdir and open. */
    } while (dir.fd < 0 && errno == ENOENT && ++tries < TRIES);
    if (dir.fd < 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "open directory %s: %s%s", path, strerror(errno),
                          errno == ENOTDIR || errno == ELOOP
                              ? " (a symbolic link is not followed: name what it points to)"
                              : "");
    rc = fstat(dir.fd, &info) == 0
             ? check_directory(path, &info, is_private)
             : tutti_fail(TUTTI_ERR_SYSTEM, "look at directory %s: %s", path, strerror(errno));
    if (rc != TUTTI_OK) {
        close(dir.fd);
        return rc;
    }
    dir.is_ours = (info.st_mode & (S_ISVTX | S_IWGRP | S_IWOTH)) == S_ISVTX;
    snprintf(dir.path, sizeof dir.path, "%s", path);
    *ret_dir = dir;
    return TUTTI_OK;
}

bool tutti_directory_is_removed(const struct tutti_directory *dir)
{
    struct stat info;

    return fstat(dir->fd, &info) == 0 && info.st_nlink == 0;
}

void tutti_directory_close(struct tutti_directory *dir)
{
    if (dir->fd >= 0)
        close(dir->fd);
    dir->fd = -1;
}

static void encode(const struct tutti_note_head *head, uint8_t bytes[TUTTI_NOTE_HEAD_BYTES])
{
    memcpy(bytes, magic, sizeof magic);
    tutti_frame_put_u32(bytes + 4, head->nranks);
    tutti_frame_put_u32(bytes + 8, head->size);
    tutti_frame_put_u32(bytes + 12, (uint32_t)head->code);
    tutti_frame_put_u64(bytes + 16, head->nonce);
}

static bool decode(const uint8_t bytes[TUTTI_NOTE_HEAD_BYTES], struct tutti_note_head *ret_head)
{
    *ret_head = (struct tutti_note_head){
        .nranks = tutti_frame_get_u32(bytes + 4),
        .size = tutti_frame_get_u32(bytes + 8),
        .code = (int32_t)tutti_frame_get_u32(bytes + 12),
        .nonce = tutti_frame_get_u64(bytes + 16),
    };
    return memcmp(bytes, magic, sizeof magic) == 0;
}

static bool write_all(int fd, const uint8_t *data, size_t size)
{
    while (size > 0) {
        ssize_t moved = write(fd, data, size);

        if (moved < 0 && errno == EINTR)
            continue;
        if (moved <= 0)
            return false;
        data += moved;
        size -= (size_t)moved;
    }
    return true;
}

static size_t read_all(int fd, uint8_t *data, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t moved = read(fd, data + done, size - done);

        if (moved < 0 && errno == EINTR)
            continue;
        if (moved <= 0)
            break;
        done += (size_t)moved;
    }
    return done;
}

int tutti_directory_put(struct tutti_directory *dir, const char *name,
                        const struct tutti_note_head *head, const void *body)
{
    uint8_t bytes[TUTTI_NOTE_HEAD_BYTES];
    char draft[64];
    uint64_t number;
    int fd, error;

    encode(head, bytes);
    tutti_random_bytes(&number, sizeof number);
    snprintf(draft, sizeof draft, "draft.%016" PRIx64, number);
    fd = openat(dir->fd, draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "write in directory %s: %s; it must be writable on "
                                            "every host",
                          dir->path, strerror(errno));
    if (!write_all(fd, bytes, sizeof bytes) || !write_all(fd, body, head->size) ||
        renameat(dir->fd, draft, dir->fd, name) != 0) {
        error = errno;
        close(fd);
        unlinkat(dir->fd, draft, 0);
        return tutti_fail(TUTTI_ERR_SYSTEM, "write %s/%s: %s", dir->path, name, strerror(error));
    }
    close(fd);
    return TUTTI_OK;
}

int tutti_directory_get(struct tutti_directory *dir, const char *name,
                        struct tutti_note_head *ret_head, void *body, size_t capacity)
{
    uint8_t bytes[TUTTI_NOTE_HEAD_BYTES];
    struct tutti_note_head head;
    bool is_whole;
    int fd = openat(dir->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0 && (errno == ENOENT || errno == ESTALE || errno == ELOOP))
        return TUTTI_AGAIN;
    if (fd < 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "read %s/%s: %s", dir->path, name, strerror(errno));
    is_whole = read_all(fd, bytes, sizeof bytes) == sizeof bytes && decode(bytes, &head) &&
               head.size <= capacity && read_all(fd, body, head.size) == head.size;
    close(fd);
    if (!is_whole)
        return TUTTI_AGAIN;
    *ret_head = head;
    return TUTTI_OK;
}

void tutti_directory_remove(struct tutti_directory *dir, const char *name)
{
    unlinkat(dir->fd, name, 0);
}

int tutti_directory_visit(struct tutti_directory *dir,
                          void (*visit)(void *context, const char *name, uint64_t inode),
                          void *context)
{
    int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;

    if (stream == NULL) {
        int error = errno;

        if (fd >= 0)
            close(fd);
        return tutti_fail(TUTTI_ERR_SYSTEM, "list directory %s: %s", dir->path, strerror(error));
    }
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;)
        if (entry->d_name[0] != '.')
            visit(context, entry->d_name, entry->d_ino);
    closedir(stream);
    return TUTTI_OK;
}
