/* SPDX-License-Identifier: Apache-2.0
 * A suite is a list of trials. All ranks of one communicator run each of them. */
#ifndef TUTTI_TEST_SUITES_H
#define TUTTI_TEST_SUITES_H

#include "support/trial.h"

struct suite {
    const char *name;
    const int *ranks; /* numbers of ranks to run with, ends with 0 */
    void (*run)(struct member *member);
};

/* The suite of that name, NULL if there is none. */
const struct suite *suite_find(const char *name);

/* One trial of every act, small and exact: for communicators made in unusual ways. */
void suite_every_act(struct member *member);

#endif
