/* SPDX-License-Identifier: Apache-2.0
 * The cases that a command line asks the simulator for, and their results.
 */
#ifndef TUTTI_SIM_SWEEP_H
#define TUTTI_SIM_SWEEP_H

#include "common/request.h"
#include "simulator/simulator.h"
#include "tuner/tuner.h"

/* One algorithm with options, for one call. */
struct sim_case {
    uint32_t nranks;
    double size_bytes;      /* of the whole vector */
    struct tutti_choice choice;
    bool is_left_out;       /* more steps than --steps allows to play; the rest is then empty */
    uint64_t nsteps;        /* of all ranks, approximately */
    double priced_s;        /* the tuner's estimate; NAN: it has none */
    double npieces;         /* number of consecutive pieces in which the library runs the call */
    bool is_best;           /* the fastest case of its size and number of ranks */
    double bus_bytes_per_s;
    struct tutti_sim_bound bound;
    struct tutti_sim_report report; /* of one piece */
};

struct sweep {
    enum tutti_collective collective;
    struct sim_case *cases; /* ordered by ranks, then sizes, then algorithms; owned */
    size_t ncases, capacity;
};

/* Lower bound on the seconds of the whole call. */
double sweep_bound(const struct sim_case *one);
/* Seconds of the whole call: all pieces, one after the other. */
double sweep_seconds(const struct sim_case *one);

/* Plays all cases. Returns REQUEST_GO or the exit status; the caller releases the sweep in either
 * case. */
int sweep_run(const struct request *request, struct sweep *ret_sweep);
void sweep_fini(struct sweep *sweep);

#endif
