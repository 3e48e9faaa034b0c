/* SPDX-License-Identifier: Apache-2.0
 * A directory as a board of notes. */
#include "bootstrap/directory.h"

#include "base/handshake.h"
#include "base/result.h"
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

int tutti_directory_open(const char *path, struct tutti_directory *ret_dir, bool *ret_is_made)
{
    struct tutti_directory dir = {.fd = -1};
    bool is_made = mkdir(path, 0700) == 0;
    struct stat info;

    if (!is_made && errno != EEXIST)
        return tutti_fail(TUTTI_ERR_SYSTEM, "make directory %s: %s; name one below a directory "
                                            "that exists and that you may write to",
                          path, strerror(errno));
    dir.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir.fd < 0)
        return tutti_fail(TUTTI_ERR_SYSTEM, "open directory %s: %s", path, strerror(errno));
    /* Another's directory could be exchanged under us; root's own may be squashed by NFS. */
    if (fstat(dir.fd, &info) != 0 ||
        (info.st_uid != geteuid() && info.st_uid != 0 && geteuid() != 0)) {
        close(dir.fd);
        return tutti_fail(TUTTI_ERR_SYSTEM,
                          "directory %s belongs to user %u; name one that belongs to user %u", path,
                          (unsigned)info.st_uid, (unsigned)geteuid());
    }
    if ((info.st_mode & S_IWOTH) != 0) {
        close(dir.fd);
        return tutti_fail(TUTTI_ERR_SYSTEM,
                          "directory %s is writable by everybody, so anybody could pose as a rank; "
                          "name a directory of your own, such as %s/tutti-%u",
                          path, path, (unsigned)geteuid());
    }
    snprintf(dir.path, sizeof dir.path, "%s", path);
    *ret_dir = dir;
    *ret_is_made = is_made;
    return TUTTI_OK;
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
    tutti_put_u32(bytes + 4, head->nranks);
    tutti_put_u32(bytes + 8, head->size);
    tutti_put_u32(bytes + 12, (uint32_t)head->code);
    tutti_put_u32(bytes + 16, (uint32_t)head->nonce);
    tutti_put_u32(bytes + 20, (uint32_t)(head->nonce >> 32));
}

static bool decode(const uint8_t bytes[TUTTI_NOTE_HEAD_BYTES], struct tutti_note_head *ret_head)
{
    *ret_head = (struct tutti_note_head){
        .nranks = tutti_get_u32(bytes + 4),
        .size = tutti_get_u32(bytes + 8),
        .code = (int32_t)tutti_get_u32(bytes + 12),
        .nonce = tutti_get_u32(bytes + 16) | (uint64_t)tutti_get_u32(bytes + 20) << 32,
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
