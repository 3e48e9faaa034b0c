/* SPDX-License-Identifier: Apache-2.0
 * Functions that the exchanges share. They encode the purpose of a connection, write the text that
 * names missing ranks, and check arguments. */
#include "bootstrap/exchange.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Layout of a purpose: kind, nranks, rank, forming. */
static const uint8_t purpose_kind[8] = "tutti/2";
enum { AT_NRANKS = 8, AT_RANK = 12, AT_FORMING = 16 };
_Static_assert(AT_FORMING + TUTTI_FORMING_BYTES == TUTTI_PURPOSE_BYTES, "a purpose is full");

void tutti_exchange_purpose(const struct tutti_meeting_place *place, int nranks, int rank,
                            struct tutti_purpose *ret_purpose)
{
    memcpy(ret_purpose->bytes, purpose_kind, sizeof purpose_kind);
    tutti_frame_put_u32(ret_purpose->bytes + AT_NRANKS, (uint32_t)nranks);
    tutti_frame_put_u32(ret_purpose->bytes + AT_RANK, (uint32_t)rank);
    memcpy(ret_purpose->bytes + AT_FORMING, place->forming, TUTTI_FORMING_BYTES);
}

bool tutti_exchange_purpose_read(const struct tutti_purpose *purpose, uint32_t *ret_nranks,
                                 uint32_t *ret_rank, uint8_t ret_forming[TUTTI_FORMING_BYTES])
{
    if (memcmp(purpose->bytes, purpose_kind, sizeof purpose_kind) != 0)
        return false;
    *ret_nranks = tutti_frame_get_u32(purpose->bytes + AT_NRANKS);
    *ret_rank = tutti_frame_get_u32(purpose->bytes + AT_RANK);
    memcpy(ret_forming, purpose->bytes + AT_FORMING, TUTTI_FORMING_BYTES);
    return true;
}

/* Room that the list of ranks leaves for one more entry and for the end of the sentence. */
enum { MISSING_END_BYTES = 64 };

void tutti_exchange_name_missing(const bool *is_here, int nranks, char *ret_text, size_t size)
{
    const char *noun;
    size_t length = 0;
    int count = 0;

    ret_text[0] = '\0';
    for (int first = 0, last; first < nranks; first = last + 1) {
        last = first;
        if (is_here[first])
            continue;
        while (last + 1 < nranks && !is_here[last + 1])
            last++;
        count += last - first + 1;
        /* The list may be truncated, but the end of the sentence must still fit. */
        if (length + MISSING_END_BYTES > size)
            continue;
        length += (size_t)snprintf(ret_text + length, size - length, "%s%d", length ? ", " : "",
                                   first);
        if (last > first)
            length += (size_t)snprintf(ret_text + length, size - length, "%s%d",
                                       last > first + 1 ? "-" : ", ", last);
    }
    /* Only now is it known how many ranks the list names, so put the noun before it. */
    noun = count == 1 ? "rank " : "ranks ";
    memmove(ret_text + strlen(noun), ret_text, length + 1);
    memcpy(ret_text, noun, strlen(noun));
    length += strlen(noun);
    snprintf(ret_text + length, size - length, "%s of %d %s",
             length + MISSING_END_BYTES > size ? ", ..." : "", nranks, count == 1 ? "has" : "have");
}

int tutti_exchange_check(int nranks, int rank)
{
    if (nranks < 1)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "nranks is %d: a communicator has 1 rank or more",
                          nranks);
    if (rank < 0 || rank >= nranks)
        return tutti_fail(TUTTI_ERR_ARGUMENT, "rank %d is not from 0 to %d (nranks is %d)", rank,
                          nranks - 1, nranks);
    return TUTTI_OK;
}

int tutti_exchange_check_size(size_t size)
{
    if (size > TUTTI_BOOTSTRAP_RECORD_MAX)
        return tutti_fail(TUTTI_ERR_INTERNAL, "a bootstrap record of %zu bytes; the limit is %d",
                          size, TUTTI_BOOTSTRAP_RECORD_MAX);
    return TUTTI_OK;
}
