/* SPDX-License-Identifier: Apache-2.0
 * Mailboxes. This layer decides which thread moves the messages of a mailbox, and when.
 *
 * A mailbox has a communicator of its own, which is split off the user's communicator, so that
 * messages progress beside collectives. One thread at a time drives the mailbox's engine
 * (mail/mail.h). If a thread waits for a request, that thread drives, so that no other thread has
 * to be woken. Otherwise a thread of the mailbox drives. It sleeps while nothing is pending. */
#ifndef TUTTI_QUEUE_MAILBOX_H
#define TUTTI_QUEUE_MAILBOX_H

#include "comm/comm.h"
#include "mail/mail.h"

/* A send or a receive of a mailbox. */
struct tuttiRequest {
    struct tutti_mail_request mail;   /* must be the first member */
    struct tuttiMailbox *mailbox;
    struct tuttiRequest *next_posted; /* in the mailbox's list of posted requests */
    bool is_canceled;                 /* a cancel was requested */
};

/* Makes a mailbox over `child`, a communicator of its own with state `comm`. Takes ownership of
 * `child`, also on failure. */
int tutti_mailbox_create(tuttiComm_t child, struct tutti_comm *comm, struct tuttiMailbox **ret_box);

/* Keeps the mailbox from being freed until tutti_mailbox_leave. TUTTI_ERR_ARGUMENT: `box` is not a
 * mailbox, or is destroyed. TUTTI_ERR_USAGE: `box` was made before fork. The message names
 * `function`. Any number of threads may be in a mailbox at the same time. */
int tutti_mailbox_enter(struct tuttiMailbox *box, const char *function);
/* Does the same without a message. */
int tutti_mailbox_try_enter(struct tuttiMailbox *box);
void tutti_mailbox_leave(struct tuttiMailbox *box);

/* Returns the mailbox's own communicator. */
struct tutti_comm *tutti_mailbox_comm(const struct tuttiMailbox *box);

/* Any thread that has entered the mailbox may post, wait and cancel. */

/* Begins `request` and returns without waiting. The caller has filled in the arguments in the first
 * part of request->mail, and keeps the request in place until it is done. After an error the
 * request was not begun. TUTTI_ERR_ARGUMENT: another thread destroys the mailbox. */
int tutti_mailbox_post(struct tuttiMailbox *box, struct tuttiRequest *request);

/* Waits until the request is done. TUTTI_OK: the request is done, and its result is in
 * request->mail. TUTTI_AGAIN: the deadline has passed. If `deadline_ns` is 0, makes one pass.
 * TUTTI_NEVER means that there is no deadline. */
int tutti_mailbox_wait(struct tuttiMailbox *box, struct tuttiRequest *request,
                       uint64_t deadline_ns);

/* Cancels a receive that has no message yet. The receive is then done, with TUTTI_ERR_USAGE. A
 * receive that has a message, or is done, stays as it is. */
void tutti_mailbox_cancel(struct tuttiMailbox *box, struct tuttiRequest *request);

/* Destroys the mailbox. Open requests end with TUTTI_ERR_USAGE. Waits for the threads that have
 * entered the mailbox, so the caller must not be one of them. Then tells the peers, which takes at
 * most a second, and destroys the mailbox's communicator. */
void tutti_mailbox_destroy(struct tuttiMailbox *box);

#endif
