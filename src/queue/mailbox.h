/* SPDX-License-Identifier: Apache-2.0
 * Mailboxes: who moves the messages, and when.
 *
 * A mailbox has a communicator of its own, split off the user's, so that messages progress
 * beside collectives. One thread at a time drives its engine (mail/mail.h). If a thread waits for a
 * request, that thread drives, so that no other one has to be woken. Else a thread of the mailbox
 * does; it sleeps while nothing is pending. */
#ifndef TUTTI_QUEUE_MAILBOX_H
#define TUTTI_QUEUE_MAILBOX_H

#include "comm/comm.h"
#include "mail/mail.h"

struct tuttiRequest {
    struct tutti_mail_request mail;  /* first */
    struct tuttiMailbox *mailbox;
    struct tuttiRequest *next_posted;
    bool is_cancelled;               /* somebody has asked for that */
};

/* Over `child`, which it takes, also on failure. */
int tutti_mailbox_create(tuttiComm_t child, struct tutti_comm *comm, struct tuttiMailbox **ret_box);

/* TUTTI_ERR_ARGUMENT unless `box` is a living mailbox, TUTTI_ERR_USAGE if it was made before fork.
 * Holds it until tutti_mailbox_leave. */
int tutti_mailbox_enter(struct tuttiMailbox *box, const char *function);
/* The same without a message. */
int tutti_mailbox_try_enter(struct tuttiMailbox *box);
void tutti_mailbox_leave(struct tuttiMailbox *box);

struct tutti_comm *tutti_mailbox_comm(const struct tuttiMailbox *box);

/* Begin `request`, whose first part is filled in. */
int tutti_mailbox_post(struct tuttiMailbox *box, struct tuttiRequest *request);

/* Wait until it is done, or the deadline passes (TUTTI_AGAIN). */
int tutti_mailbox_wait(struct tuttiMailbox *box, struct tuttiRequest *request,
                       uint64_t deadline_ns);

/* Take a receive back if it has no message yet: then it is done. */
void tutti_mailbox_cancel(struct tuttiMailbox *box, struct tuttiRequest *request);

void tutti_mailbox_destroy(struct tuttiMailbox *box);

#endif
