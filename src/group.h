/* SPDX-License-Identifier: Apache-2.0
 * Groups: what the calling thread has asked for since tuttiGroupStart. */
#ifndef TUTTI_GROUP_H
#define TUTTI_GROUP_H

#include "batch.h"

/* Is this thread inside a group? */
bool tutti_group_is_open(void);

/* Ask for `call` (checked) on `comm`: at once, on the stream, or when the group ends. */
int tutti_group_call(struct tutti_comm *comm, const struct tutti_call *call, tuttiStream_t stream);

/* A failed call inside a group spoils it: tuttiGroupEnd returns `rc` and runs nothing. Returns rc. */
int tutti_group_note(int rc);

/* Form `comm` (behind *handle, which is already set): at once, or when the group ends. On failure
 * of a blocking formation the handle is released and *handle set to NULL. */
int tutti_group_form(struct tutti_comm *comm, tuttiComm_t *handle);

#endif
