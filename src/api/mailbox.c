/* SPDX-License-Identifier: Apache-2.0
 * The public functions of mailboxes and requests.
 *
 * This file checks the arguments, makes and frees requests, and turns results into messages for the
 * user. queue/mailbox.c does the work. A function that uses a mailbox enters it first, so that no
 * other thread can free it meanwhile. Since a request may outlive its mailbox, the functions of
 * requests enter, too. They read a request that is done without entering. */
#include "base/clock.h"
#include "base/system.h"
#include "gpu/comm_gpu.h"
#include "queue/group.h"
#include "queue/mailbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Time between two checks whether the thread that destroys a mailbox has ended a request, and the
 * longest time that these checks go on. */
#define DESTROY_PAUSE_NS 50000
#define DESTROY_MS 10000

/* ---- mailboxes -------------------------------------------------------------------------- */

/* Fills in the configuration of the mailbox's own communicator, which is split off `parent`. Its
 * name is "mailbox", or "PARENT.mailbox" if the parent has a name. A parent's name that is too long
 * is cut. The result is written to `name`, and *ret_config points to it. */
static int configure_child(tuttiComm_t parent, tuttiConfig_t *ret_config,
                           char name[TUTTI_NAME_BYTES])
{
    static const char suffix[] = "mailbox"; /* sizeof includes the null byte at the end */
    const int parent_name_max = TUTTI_NAME_BYTES - (int)sizeof suffix - 1; /* 1: the "." */
    struct tutti_comm *comm;

    TUTTI_TRY(tutti_handle_enter_ready(parent, "tuttiMailboxCreate", &comm));
    snprintf(name, TUTTI_NAME_BYTES, "%.*s%s%s", parent_name_max, comm->name,
             *comm->name ? "." : "", suffix);
    ret_config->commName = name;
    ret_config->timeoutMs = tutti_comm_timeout_ms(comm);
    ret_config->device = -1; /* messages are in host memory */
    tutti_comm_leave(comm);
    return TUTTI_OK;
}

/* Creates the mailbox. All ranks of `parent` keep their numbers. */
static int create(tuttiComm_t parent, tuttiMailbox_t *mailbox)
{
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    char name[TUTTI_NAME_BYTES];
    struct tutti_comm *comm;
    tuttiComm_t child;
    int rank, rc;

    if (mailbox == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiMailboxCreate: mailbox is NULL");
    if (tutti_group_is_open())
        return tutti_fail(TUTTI_ERR_USAGE, "tuttiMailboxCreate: not inside a group; call it after "
                                           "tuttiGroupEnd");
    TUTTI_TRY(configure_child(parent, &config, name));
    TUTTI_TRY(-(int)tuttiCommUserRank(parent, &rank)); /* internal errors are negative */
    TUTTI_TRY(tutti_comm_split(parent, 0, rank, TUTTI_FOR_MAILBOX, &config, &child));
    rc = tutti_handle_enter_ready(child, "tuttiMailboxCreate", &comm);
    if (rc != TUTTI_OK) {
        (void)tuttiCommDestroy(child);
        return rc;
    }
    tutti_comm_leave(comm);
    return tutti_mailbox_create(child, comm, mailbox); /* takes ownership of `child` */
}

tuttiResult_t tuttiMailboxCreate(tuttiComm_t comm, tuttiMailbox_t *mailbox)
{
    return tutti_public_result(create(comm, mailbox));
}

tuttiResult_t tuttiMailboxDestroy(tuttiMailbox_t mailbox)
{
    int rc = TUTTI_OK;

    if (mailbox == NULL)
        return tuttiSuccess;
    /* Entering only checks that the mailbox exists. The thread that destroys must not be inside. */
    rc = tutti_mailbox_enter(mailbox, "tuttiMailboxDestroy");
    if (rc == TUTTI_OK) {
        tutti_mailbox_leave(mailbox);
        tutti_mailbox_destroy(mailbox);
    }
    return tutti_public_result(rc);
}

tuttiResult_t tuttiMailboxAbort(tuttiMailbox_t mailbox)
{
    char message[TUTTI_MESSAGE_BYTES];
    struct tutti_comm *comm;
    int rc = tutti_mailbox_enter(mailbox, "tuttiMailboxAbort");

    if (rc != TUTTI_OK)
        return tutti_public_result(rc);
    comm = tutti_mailbox_comm(mailbox);
    snprintf(message, sizeof message, "rank %d called tuttiMailboxAbort", comm->rank);
    tutti_comm_fail(comm, TUTTI_ERR_USAGE, message);
    tutti_mailbox_leave(mailbox);
    return tutti_public_result(TUTTI_OK);
}

tuttiResult_t tuttiMailboxSetTimeout(tuttiMailbox_t mailbox, int timeoutMs)
{
    static const char *const function = "tuttiMailboxSetTimeout";
    int rc = tutti_mailbox_enter(mailbox, function);

    if (rc == TUTTI_OK) {
        rc = tutti_comm_set_timeout(tutti_mailbox_comm(mailbox), function, timeoutMs);
        tutti_mailbox_leave(mailbox);
    }
    return tutti_public_result(rc);
}

/* ---- messages --------------------------------------------------------------------------- */

/* The arguments of a send or receive, before a request is made of them. */
struct message {
    const char *function;    /* the public function, for error messages */
    const char *buffer_name; /* the parameter of that function for the buffer */
    struct tutti_mail_request mail;
};

_Static_assert(TUTTI_ANY_RANK == TUTTI_MAIL_ANY && TUTTI_ANY_TAG == TUTTI_MAIL_ANY,
               "the engine takes the public constants as they are");

/* Checks all arguments except the buffer. */
static int check_arguments(const struct tutti_comm *comm, const struct message *message)
{
    const struct tutti_mail_request *mail = &message->mail;
    bool is_receive = !mail->sends; /* only receives may have any peer and any tag */

    if ((unsigned)mail->type >= tuttiNumTypes)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: datatype %d is unknown; use a tuttiDataType_t",
                          message->function, (int)mail->type);
    if ((mail->peer < 0 || mail->peer >= comm->nranks) &&
        !(is_receive && mail->peer == TUTTI_ANY_RANK))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: peer %d is not a rank; rank %d's mailbox has "
                          "ranks 0 to %d%s", message->function, mail->peer, comm->rank,
                          comm->nranks - 1, is_receive ? ", or TUTTI_ANY_RANK" : "");
    if (mail->tag < 0 && !(is_receive && mail->tag == TUTTI_ANY_TAG))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: tag %d on rank %d is negative%s",
                          message->function, (int)mail->tag, comm->rank,
                          is_receive ? ", and not TUTTI_ANY_TAG" : "");
    /* A negative count of the caller has become a huge size_t. */
    if (mail->count > (size_t)PTRDIFF_MAX / tutti_type_size(mail->type))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: rank %d's count is negative or overflows: %s "
                          "would hold more than %td bytes", message->function, comm->rank,
                          message->buffer_name, PTRDIFF_MAX);
    return TUTTI_OK;
}

/* Checks the address of the buffer, unless the message is empty. The other arguments are valid. */
static int check_buffer(struct tutti_comm *comm, const struct message *message)
{
    const struct tutti_mail_request *mail = &message->mail;
    size_t element_bytes = tutti_type_size(mail->type), message_bytes = tutti_mail_bytes(mail);
    bool is_on_gpu;

    if (message_bytes == 0)
        return TUTTI_OK;
    if (mail->data == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: %s is NULL on rank %d; it must hold %zu "
                          "elements", message->function, message->buffer_name, comm->rank,
                          mail->count);
    if (((uintptr_t)mail->data & (element_bytes - 1)) != 0) /* sizes are powers of two */
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: %s %p on rank %d is not aligned to its %zu-byte "
                          "elements", message->function, message->buffer_name,
                          (const void *)mail->data, comm->rank, element_bytes);
    if (comm->cuda == NULL)
        return TUTTI_OK;
    /* This fails for device memory, because the communicator of a mailbox has no GPU. */
    return tutti_gpu_classify_call(comm, message->function, mail->data, message_bytes, NULL, 0,
                                   NULL, &is_on_gpu);
}

/* Checks the arguments, and begins the message. On success *request is a new request. The thread is
 * inside the mailbox. */
static int check_and_post(tuttiMailbox_t mailbox, const struct message *message,
                          tuttiRequest_t *request)
{
    struct tutti_comm *comm = tutti_mailbox_comm(mailbox);
    struct tuttiRequest *new_request;
    int rc;

    if (request == NULL)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "%s: request is NULL on rank %d", message->function,
                          comm->rank);
    TUTTI_TRY(check_arguments(comm, message));
    TUTTI_TRY(check_buffer(comm, message));
    new_request = calloc(1, sizeof *new_request);
    if (new_request == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory for a request");
    new_request->mail = message->mail;
    new_request->mailbox = mailbox;
    rc = tutti_mailbox_post(mailbox, new_request);
    if (rc == TUTTI_OK)
        *request = new_request;
    else
        free(new_request);
    return rc;
}

/* Enters the mailbox for check_and_post. */
static tuttiResult_t begin(tuttiMailbox_t mailbox, const struct message *message,
                           tuttiRequest_t *request)
{
    int rc = tutti_mailbox_enter(mailbox, message->function);

    if (rc == TUTTI_OK) {
        rc = check_and_post(mailbox, message, request);
        tutti_mailbox_leave(mailbox);
    }
    return tutti_public_result(rc);
}

tuttiResult_t tuttiMailboxSend(const void *sendbuff, size_t count, tuttiDataType_t datatype,
                               int peer, int tag, tuttiMailbox_t mailbox, tuttiRequest_t *request)
{
    struct message message = {
        .function = "tuttiMailboxSend", .buffer_name = "sendbuff",
        .mail = {.sends = true, .peer = peer, .tag = tag, .type = (enum tutti_type)datatype,
                 .count = count, .data = (uint8_t *)(uintptr_t)sendbuff}};

    return begin(mailbox, &message, request);
}

tuttiResult_t tuttiMailboxRecv(void *recvbuff, size_t count, tuttiDataType_t datatype, int peer,
                               int tag, tuttiMailbox_t mailbox, tuttiRequest_t *request)
{
    struct message message = {
        .function = "tuttiMailboxRecv", .buffer_name = "recvbuff",
        .mail = {.peer = peer, .tag = tag, .type = (enum tutti_type)datatype, .count = count,
                 .data = recvbuff}};

    return begin(mailbox, &message, request);
}

/* ---- requests --------------------------------------------------------------------------- */

/* Returns the result of a request that is done. If the result is an error, this function also makes
 * the thread's last message say why. */
static int report_result(const struct tuttiRequest *request)
{
    struct tuttiMailbox *mailbox = request->mailbox;
    int rc = request->mail.result;

    if (rc == TUTTI_OK)
        return rc;
    if (request->is_canceled && rc == TUTTI_ERR_USAGE)
        return tutti_note(rc, "the receive was canceled");
    /* Destroying a mailbox ends its open requests. They may be reported before the mailbox is
     * freed, or after. */
    if (tutti_mailbox_try_enter(mailbox) != TUTTI_OK)
        return tutti_note(TUTTI_ERR_USAGE, "the mailbox was destroyed before the message was "
                          "complete");
    /* tutti_comm_error sets the last message if the communicator has failed. */
    if (tutti_comm_error(tutti_mailbox_comm(mailbox)) == 0)
        tutti_note(rc, "the mailbox was destroyed before the message was complete");
    tutti_mailbox_leave(mailbox);
    return rc;
}

/* Fails the mailbox, because the deadline of a wait for `request` has passed. Returns the error. */
static int fail_for_timeout(struct tuttiRequest *request)
{
    struct tutti_comm *comm = tutti_mailbox_comm(request->mailbox);
    const struct tutti_mail_request *mail = &request->mail;
    char whom[32] = "any rank", tag[32] = "any tag";
    int rc;

    if (mail->peer != TUTTI_ANY_RANK)
        snprintf(whom, sizeof whom, "rank %d", mail->peer);
    if (mail->tag != TUTTI_ANY_TAG)
        snprintf(tag, sizeof tag, "tag %d", (int)mail->tag);
    rc = tutti_fail(TUTTI_ERR_TIMEOUT, "%s%srank %d, %s %s (%s, %zu elements): has waited %d ms; "
                    "has that rank made the other call? TUTTI_TIMEOUT_MS sets the limit",
                    comm->name, *comm->name ? ": " : "", comm->rank,
                    mail->sends ? "send to" : "recv from", whom, tag, mail->count,
                    tutti_comm_timeout_ms(comm));
    return tutti_comm_fail(comm, rc, tutti_message_last());
}

static bool is_done(const struct tuttiRequest *request)
{
    /* acquire: pairs with the release in note_done() of queue/mailbox.c; the result is in place */
    return tutti_load_acquire(&request->mail.is_done) != 0;
}

/* Waits until another thread, which is destroying the mailbox, has ended the request. That takes
 * moments. Returns false if it has not happened in time: the process was forked meanwhile. */
static bool wait_for_destroy(const struct tuttiRequest *request)
{
    uint64_t deadline_ns = tutti_deadline_ns(DESTROY_MS);

    while (!is_done(request) && tutti_now_ns() < deadline_ns)
        tutti_pause_ns(DESTROY_PAUSE_NS);
    return is_done(request);
}

/* Waits until the request is done. If `timeout_ms` is negative, the deadline of the mailbox
 * applies: when it passes, the mailbox fails, which ends the request, too. Otherwise the wait ends
 * after `timeout_ms` at the latest. TUTTI_AGAIN then means that the request is still pending. With
 * 0 the thread makes at most one pass over the mailbox, and does not wait. */
static int wait_until_done(struct tuttiRequest *request, int timeout_ms)
{
    struct tuttiMailbox *mailbox = request->mailbox;
    uint64_t deadline_ns = timeout_ms > 0 ? tutti_deadline_ns(timeout_ms) : 0; /* 0: one pass */
    int rc;

    if (is_done(request))
        return TUTTI_OK;
    rc = tutti_mailbox_try_enter(mailbox);
    if (rc == TUTTI_ERR_ARGUMENT && wait_for_destroy(request))
        return TUTTI_OK;
    if (rc != TUTTI_OK) /* this function sets the message */
        return tutti_mailbox_enter(mailbox, "tuttiRequestWait");
    if (timeout_ms < 0)
        deadline_ns = tutti_deadline_ns(tutti_comm_timeout_ms(tutti_mailbox_comm(mailbox)));
    rc = tutti_mailbox_wait(mailbox, request, deadline_ns);
    if (rc == TUTTI_AGAIN && timeout_ms < 0) {
        (void)fail_for_timeout(request);
        /* This wait needs no limit, because the failure ends all requests of the mailbox. */
        rc = tutti_mailbox_wait(mailbox, request, TUTTI_NEVER);
    }
    tutti_mailbox_leave(mailbox);
    return rc;
}

tuttiResult_t tuttiRequestWait(tuttiRequest_t *request, int timeoutMs, int *peer, int *tag)
{
    struct tuttiRequest *waited;
    int rc;

    if (request == NULL)
        return tutti_public_result(
            tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiRequestWait: request is NULL"));
    waited = *request;
    if (waited == NULL)
        return tuttiSuccess;
    rc = wait_until_done(waited, timeoutMs);
    if (rc != TUTTI_OK)
        return tutti_public_result(rc); /* the request remains */
    rc = report_result(waited);
    if (rc == TUTTI_OK && peer != NULL)
        *peer = waited->mail.peer;
    if (rc == TUTTI_OK && tag != NULL)
        *tag = waited->mail.sends ? (int)waited->mail.tag : (int)waited->mail.got_tag;
    *request = NULL;
    free(waited);
    return tutti_public_result(rc);
}

tuttiResult_t tuttiRequestCancel(tuttiRequest_t request)
{
    int rc;

    if (request == NULL)
        return tutti_public_result(
            tutti_fail(TUTTI_ERR_ARGUMENT, "tuttiRequestCancel: request is NULL"));
    if (request->mail.sends)
        return tutti_public_result(
            tutti_fail(TUTTI_ERR_USAGE, "tuttiRequestCancel: the request is a send; only receives "
                                        "can be canceled"));
    rc = tutti_mailbox_enter(request->mailbox, "tuttiRequestCancel");
    if (rc == TUTTI_OK) {
        tutti_mailbox_cancel(request->mailbox, request);
        tutti_mailbox_leave(request->mailbox);
    }
    return tutti_public_result(rc);
}
