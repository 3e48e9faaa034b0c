/* SPDX-License-Identifier: Apache-2.0
 * A directory in which ranks leave notes for each other. Each note is a file. A note appears
 * complete or not at all, because it is written under another name and then renamed.
 *
 * All calls may block while the file system works. The name of a note contains no path. A struct
 * tutti_directory is used by one thread at a time.
 */
#ifndef TUTTI_BOOTSTRAP_DIRECTORY_H
#define TUTTI_BOOTSTRAP_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tutti_directory {
    int fd;          /* -1: not open */
    bool is_ours;    /* made by this library, which removes the directory once it is empty */
    char path[4096]; /* for messages */
};

/* The header of every note. The meaning of a field depends on the kind of note. */
struct tutti_note_head {
    uint64_t nonce;  /* of the writer; in a welcome, of the process that is welcomed */
    uint32_t nranks; /* as the writer was told */
    uint32_t size;   /* of the body in bytes */
    int32_t code;    /* of an error; else 0 */
};

#define TUTTI_NOTE_HEAD_BYTES 24

/* Open a directory, or make it if it is absent. The sticky bit marks a directory that this library
 * has made. The caller closes the directory.
 * TUTTI_ERR_SYSTEM: the directory cannot be made or opened, is a symbolic link, belongs to another
 * user, or everybody may write to it. With `is_private` it is also refused if its group may write
 * to it. The message names the directory and the cure. TUTTI_ERR_ARGUMENT: the path is too long. */
int tutti_directory_open(const char *path, bool is_private, struct tutti_directory *ret_dir);

/* True if the directory has been removed since it was opened. */
bool tutti_directory_is_removed(const struct tutti_directory *dir);
/* Close the directory, if it is open. */
void tutti_directory_close(struct tutti_directory *dir);

/* Write a note, which replaces an older note of that name. Only this user can read the note. `body`
 * has head->size bytes. TUTTI_ERR_SYSTEM: the file system refuses. */
int tutti_directory_put(struct tutti_directory *dir, const char *name,
                        const struct tutti_note_head *head, const void *body);

/* Read a note. TUTTI_AGAIN: no file has this name, the file is not a complete note, or its body has
 * more than `capacity` bytes. TUTTI_ERR_SYSTEM: the file cannot be opened. */
int tutti_directory_get(struct tutti_directory *dir, const char *name,
                        struct tutti_note_head *ret_head, void *body, size_t capacity);

/* Remove a note. If there is no such note, nothing happens. */
void tutti_directory_remove(struct tutti_directory *dir, const char *name);

/* Call `visit` for every name except hidden ones. `inode` usually changes when a note is replaced,
 * but a file system may reuse it. TUTTI_ERR_SYSTEM: the directory cannot be read. */
int tutti_directory_visit(struct tutti_directory *dir,
                          void (*visit)(void *context, const char *name, uint64_t inode),
                          void *context);

#endif
