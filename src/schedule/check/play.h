/* SPDX-License-Identifier: Apache-2.0
 * One play of all ranks with a given number of credits. play.c plays it; credits.c starts it and
 * explains why it stopped. For check*.c only.
 */
#ifndef TUTTI_SCHEDULE_CHECK_PLAY_H
#define TUTTI_SCHEDULE_CHECK_PLAY_H

#include "schedule/check/model.h"

/* Slices per message: a first, an inner and a last one. */
#define TUTTI_CHECK_SLICES 3

struct tutti_check_play {
    struct tutti_check *check;
    uint32_t credits;
    /* Per half. `moved`: slices that it has sent or taken. `arrived`: for a receive, slices that
     * its send has sent. */
    uint8_t *started, *done; /* 0 or 1 */
    uint8_t *moved, *arrived;
    /* Per half, NONE where there is none. For a send: the receive that gives the send its credit
     * when the receive is complete. For a receive: the send that gets a credit from it. */
    uint32_t *credit_mate;
    uint32_t *waits_left; /* per step: number of dependencies that are not complete */
    /* The steps that wait for step s: dependents[dependents_first[s]] up to, but not including,
     * dependents[dependents_first[s + 1]]. */
    uint32_t *dependents_first, *dependents;
    uint32_t *steps_left; /* per rank, in its current run; NONE: not begun */
    uint32_t *run;        /* per rank: its current run; nruns after the last one */
    uint32_t *signals;    /* per rank: signals given, through all runs */
    uint32_t *given;      /* per signal number, through all runs: ranks that have given it */
    uint32_t *agenda;     /* halves to try to start, or whose message may move */
    uint32_t nagenda, agenda_capacity;
    /* The halves of WAIT steps that wait for signals. A rank that waits for signals before its next
     * run stands here as NONE - 1 - rank. */
    uint32_t *waiting;
    uint32_t nwaiting, waiting_capacity;
};

/* Play to the end, or until no half can move. TUTTI_ERR_SYSTEM: no memory. The caller calls
 * tutti_check_play_fini in any case. */
int tutti_check_play_all(struct tutti_check_play *play);
void tutti_check_play_fini(struct tutti_check_play *play);

/* True if all ranks have finished all runs. */
bool tutti_check_play_is_over(const struct tutti_check_play *play);
/* Number of slices that a sending half could have sent by now. */
uint32_t tutti_check_play_sendable(const struct tutti_check_play *play, uint32_t send);
/* True if a receiving half could take another slice. A step that does not store its data takes one
 * only after it has sent the last one on. */
bool tutti_check_play_has_room(const struct tutti_check_play *play, uint32_t recv);
/* True if every rank except `rank` has given the signal of that number, through all runs. */
bool tutti_check_play_all_gave(const struct tutti_check_play *play, uint32_t rank, uint32_t number);

#endif
