/* SPDX-License-Identifier: Apache-2.0
 * A directory as a board of notes: each note is a file that appears whole or not
 * at all, because it is written under another name and renamed.
 *
 * Calls go to the file system and are as quick as it is. Names are without a path.
 */
#ifndef TUTTI_BOOTSTRAP_DIRECTORY_H
#define TUTTI_BOOTSTRAP_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tutti_directory {
    int fd;
    bool is_ours; /* made by us, so it goes when nothing is in it any more */
    char path[4096];
};

/* What stands on top of every note; what a field means depends on the note. */
struct tutti_note_head {
    uint64_t nonce;
    uint32_t nranks;
    uint32_t size; /* of the body in bytes */
    int32_t code;
};

#define TUTTI_NOTE_HEAD_BYTES 24

/* Open, making the directory if it is absent; its sticky bit remembers that we have made it.
 * Refuses a symbolic link, another user's directory, and one that everybody may write to; with
 * `is_private` also one that the group may write to: TUTTI_ERR_SYSTEM, naming it and the cure. */
int tutti_directory_open(const char *path, bool is_private, struct tutti_directory *ret_dir);

/* True if somebody has removed the directory that we have open. */
bool tutti_directory_is_removed(const struct tutti_directory *dir);
void tutti_directory_close(struct tutti_directory *dir);

/* Put up a note, in place of an older one of that name. Readable by this user only. */
int tutti_directory_put(struct tutti_directory *dir, const char *name,
                        const struct tutti_note_head *head, const void *body);

/* Read a note: body of at most `capacity` bytes. TUTTI_AGAIN: there is none, or none of ours. */
int tutti_directory_get(struct tutti_directory *dir, const char *name,
                        struct tutti_note_head *ret_head, void *body, size_t capacity);

/* Take a note down; none of that name is as good. */
void tutti_directory_remove(struct tutti_directory *dir, const char *name);

/* Call `visit` for every name; `inode` differs when a note was replaced. TUTTI_ERR_SYSTEM when the
 * directory cannot be read. */
int tutti_directory_visit(struct tutti_directory *dir,
                          void (*visit)(void *context, const char *name, uint64_t inode),
                          void *context);

#endif
