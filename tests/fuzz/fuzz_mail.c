/* SPDX-License-Identifier: Apache-2.0
 * A peer sends any bytes as frames of messages. Every request ends once, a receive gets exactly
 * its bytes, and nothing is written elsewhere. */
#include "fuzz/fuzz.h"

#include "mail/mail.h"

#include "base/atomic.h"

enum { RANKS = 3, PEER = 1, REQUESTS = 8, PASSES = 40, BYTES = 9000 };

/* ---- a connection whose peer is the input ---------------------------------------------- */

struct fuzz_conn {
    struct tutti_conn base;
    struct fuzz_input *input;
    uint8_t most; /* bytes that a call moves at once, with 1 more */
};

static size_t part(struct fuzz_conn *conn, size_t size)
{
    size_t most = (size_t)conn->most * conn->most + 1;

    return size < most ? size : most;
}

static int swallow(struct tutti_conn *base, const void *data, size_t size, size_t *ret_taken)
{
    struct fuzz_conn *conn = (struct fuzz_conn *)base;
    static volatile uint8_t last;

    *ret_taken = part(conn, size);
    last = ((const uint8_t *)data)[*ret_taken - 1]; /* a sanitizer looks at what is offered */
    (void)last;
    return TUTTI_OK;
}

static int feed(struct tutti_conn *base, void *data, size_t size, size_t *ret_got)
{
    struct fuzz_conn *conn = (struct fuzz_conn *)base;

    *ret_got = part(conn, size);
    if (*ret_got > conn->input->left)
        *ret_got = conn->input->left;
    if (*ret_got > 0)
        memcpy(data, conn->input->bytes, *ret_got);
    conn->input->bytes += *ret_got;
    conn->input->left -= *ret_got;
    return TUTTI_OK;
}

static const struct tutti_conn_ops ops = {.send = swallow, .recv = feed};

/* ---- the requests ----------------------------------------------------------------------- */

struct trial {
    struct tutti_mail_request requests[REQUESTS];
    uint8_t *memory[REQUESTS];
    int ends[REQUESTS];
};

static void note_end(void *context, struct tutti_mail_request *request)
{
    struct trial *trial = context;
    size_t index = (size_t)(request - trial->requests);

    fuzz_require(index < REQUESTS, "it is one of ours");
    fuzz_require(++trial->ends[index] == 1, "a request ends once");
}

/* Of what is posted the first bytes tell; the sizes are those that frames can meet. */
static int post(struct tutti_mail *mail, struct trial *trial, size_t index,
                struct fuzz_input *input)
{
    static const size_t counts[] = {0, 1, 5, 4096, BYTES};
    struct tutti_mail_request *request = &trial->requests[index];
    uint8_t what = fuzz_byte(input), tag = fuzz_byte(input);

    request->sends = what % 4 == 0;
    request->peer = what % 8 == 1 ? TUTTI_MAIL_ANY : what % 8 == 2 ? 0 : PEER;
    request->tag = tag == 255 && !request->sends ? TUTTI_MAIL_ANY : tag % 4;
    request->type = TUTTI_UINT8;
    request->count = counts[(what / 8) % 5];
    trial->memory[index] = malloc(request->count + 1);
    fuzz_require(trial->memory[index] != NULL, "there is memory");
    memset(trial->memory[index], 0, request->count + 1);
    request->data = trial->memory[index];
    return tutti_mail_post(mail, request);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input input = {.bytes = bytes, .left = size};
    struct fuzz_conn conn = {.base = {.ops = &ops, .peer = PEER}, .input = &input,
                             .most = fuzz_byte(&input)};
    size_t count = fuzz_byte(&input) % (REQUESTS + 1);
    struct trial trial = {.ends = {0}};
    struct tutti_mail mail;
    int rc = tutti_mail_init(&mail, NULL, RANKS, 0, note_end, &trial);

    fuzz_require(rc == TUTTI_OK, "there is memory for a mailbox");
    mail.peers[PEER].conn = &conn.base;
    mail.peers[2].has_left = true;
    for (size_t i = 0; i < count && rc == TUTTI_OK; i++)
        rc = post(&mail, &trial, i, &input);
    for (int i = 0; i < PASSES && rc == TUTTI_OK; i++) {
        bool moved = false;

        rc = tutti_mail_progress(&mail, &moved);
        if (!moved)
            break;
    }
    fuzz_require(rc <= TUTTI_OK, "progress never asks to be called again");
    if (count > 0 && !trial.requests[0].sends)
        (void)tutti_mail_cancel(&mail, &trial.requests[0]);
    tutti_mail_fail(&mail, TUTTI_ERR_USAGE);
    fuzz_require(mail.pending == 0, "no request is left");
    (void)tutti_mail_leave(&mail);
    for (size_t i = 0; i < REQUESTS; i++) {
        fuzz_require(trial.memory[i] == NULL || trial.ends[i] == 1,
                     "a request that was posted ends");
        free(trial.memory[i]);
    }
    tutti_mail_fini(&mail);
    return 0;
}
