/* SPDX-License-Identifier: Apache-2.0
 * Running what a search has found: as a schedule that the checker proves, on a machine whose links
 * the simulator shares out, which knows nothing of the search. */
#ifndef TUTTI_TESTS_SIMULATOR_PLAY_CHANNELS_H
#define TUTTI_TESTS_SIMULATOR_PLAY_CHANNELS_H

#include "support/machines.h"

/* Bytes of the buffer per second of a large all-reduce: by rings, or by trees, of the gpus of the
 * machine's first host. Fails the test if the schedule is not proved. */
double play_allreduce(const char *what, const struct machine *machine,
                      const struct tutti_channels *channels);

#endif
