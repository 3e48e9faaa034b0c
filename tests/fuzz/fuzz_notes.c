/* SPDX-License-Identifier: Apache-2.0
 * Ranks meet in a directory in which another process of the same user writes notes with any
 * contents. Rank 0 and a member refuse the notes, or accept their contents. */
#include "fuzz/fuzz.h"

#include "base/clock.h"
#include "bootstrap/exchange_file.h"

#include <dirent.h>
#include <unistd.h>

enum { NRANKS = 3, RECORD_BYTES = 64, MOST_NOTES = 12, MOST_BODY_BYTES = 300 };

static void remove_all(const char *path)
{
    char name[512];
    DIR *dir = opendir(path);

    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(name);
    }
    if (dir != NULL)
        closedir(dir);
    rmdir(path);
}

/* A note that all ranks of the session, or of none, would look at. */
static void put_note(struct tutti_filestore *boot, struct fuzz_input *input)
{
    static const char *const plain[] = {"join.1", "join.2", "welcome.1", "welcome.2", "join.9"};
    static const char *const of_session[] = {"0.1", "0.2", "0.table", "1.1", "left.1", "error"};
    uint8_t which = fuzz_byte(input), shape = fuzz_byte(input);
    struct tutti_note_head head = {.nonce = boot->nonce, .nranks = NRANKS};
    char session_name[TUTTI_NOTE_NAME_BYTES];
    const char *name = plain[which % 5];
    const uint8_t *body;

    if (which % 2 != 0)
        name = tutti_filestore_session_name(boot->session, session_name, "%s",
                                            of_session[which / 2 % 6]);
    if ((shape & 1) != 0)
        fuzz_overwrite(input, &head.nonce, sizeof head.nonce);
    if ((shape & 2) != 0)
        fuzz_overwrite(input, &head.nranks, sizeof head.nranks);
    if ((shape & 4) != 0)
        fuzz_overwrite(input, &head.code, sizeof head.code);
    head.size = (uint32_t)fuzz_bytes(input, (shape & 8) != 0 ? fuzz_byte(input) : MOST_BODY_BYTES,
                                     &body);
    (void)tutti_directory_put(&boot->dir, name, &head, body);
}

static void try_rank(int rank, struct fuzz_input input)
{
    uint8_t mine[RECORD_BYTES] = {2}, all[NRANKS * RECORD_BYTES];
    char path[64] = "/tmp/tutti-fuzz-XXXXXX", store[80];
    struct tutti_bootstrap *boot;

    fuzz_require(mkdtemp(path) != NULL, "there is a directory");
    snprintf(store, sizeof store, "file:%s", path);
    if (tutti_bootstrap_meet(&(struct tutti_meeting){.store = store, .secret = "a secret"}, NRANKS,
                             rank, tutti_now_ns() + 2 * TUTTI_NS_PER_MS, &boot) == TUTTI_OK) {
        for (int i = 0; i < MOST_NOTES; i++) {
            if (input.left > 0)
                put_note((struct tutti_filestore *)boot, &input);
            ((struct tutti_filestore *)boot)->poll_ns = 0; /* look at once */
            if (boot->ops->allgather(boot, mine, sizeof mine, all) < 0)
                break;
        }
        boot->ops->destroy(boot, NULL);
    }
    remove_all(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input input = {.bytes = bytes, .left = size};

    try_rank(0, input);
    try_rank(1, input);
    return 0;
}
