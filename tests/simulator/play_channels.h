/* SPDX-License-Identifier: Apache-2.0
 * Runs the result of a search as a schedule that the checker proves. The simulator distributes the
 * links of the machine, and shares nothing with the search. */
#ifndef TUTTI_TESTS_SIMULATOR_PLAY_CHANNELS_H
#define TUTTI_TESTS_SIMULATOR_PLAY_CHANNELS_H

#include "support/machines.h"

/* Bytes of the buffer per second of a large all-reduce: by rings, or by trees, of the gpus of the
 * machine's first host. Fails the test if the schedule is not proved. */
double play_allreduce(const char *what, const struct machine *machine,
                      const struct tutti_channels *channels);

#endif
