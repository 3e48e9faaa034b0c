/* SPDX-License-Identifier: Apache-2.0
 * One play of all ranks with a number of credits: play.c moves it, credits.c asks for
 * it and tells why it stopped. Inside check*.c only. */
#ifndef TUTTI_SCHEDULE_CHECK_PLAY_H
#define TUTTI_SCHEDULE_CHECK_PLAY_H

#include "schedule/check/model.h"

#define TUTTI_CHECK_SLICES 3

struct check_play {
    struct check *check;
    uint32_t credits;
    /* Per half. `moved`: slices that it has sent or taken; `arrived`, of a receive: those sent to
     * it. */
    uint8_t *started, *done, *moved, *arrived;
    /* Per half, NONE where there is none: of a send the receive that gives it its credit when it is
     * complete, of a receive the send that it gives one to. */
    uint32_t *credit_mate;
    uint32_t *waits_left; /* per step: dependencies that are not complete */
    uint32_t *dependents_first, *dependents;
    uint32_t *steps_left; /* per rank, in its run; NONE: not begun */
    uint32_t *run;        /* per rank; nruns when all are over */
    uint32_t *signals;    /* per rank, through all runs */
    uint32_t *given;      /* per signal number, through all runs: ranks that have given it */
    uint32_t *agenda;     /* halves to try to start, or whose message may move */
    uint32_t nagenda, agenda_capacity;
    /* Halves of WAIT steps; NONE - 1 - rank: that rank, before its next run. */
    uint32_t *waiting;
    uint32_t nwaiting, waiting_capacity;
};

/* Play to the end, or until nothing moves. */
int tutti_check_play_all(struct check_play *play);
void tutti_check_play_fini(struct check_play *play);

/* Is it over for all ranks? */
bool tutti_check_play_is_over(const struct check_play *play);
/* Slices that a sending half could give by now. */
uint32_t tutti_check_play_at_hand(const struct check_play *play, uint32_t send);
/* Could a receiving half take another slice? Without a store, only when the last one went on. */
bool tutti_check_play_has_room(const struct check_play *play, uint32_t recv);
/* Has every rank but `rank` given the signal of that number through all runs? */
bool tutti_check_play_is_given(const struct check_play *play, uint32_t rank, uint32_t number);

#endif
