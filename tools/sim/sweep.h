/* SPDX-License-Identifier: Apache-2.0
 * What a command line asks of the simulator: cases, one after the other, and what came out.
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
    bool is_left_out;       /* more steps than are played; the rest is then empty */
    uint64_t nsteps;        /* of all ranks, about */
    double priced_s;        /* by the tuner; NAN: it has no price */
    double npieces;         /* in which the library runs the call, one after the other */
    bool is_best;           /* the fastest of its size and ranks */
    double bus_bytes_per_s;
    struct tutti_sim_bound bound;
    struct tutti_sim_report report; /* of one piece */
};

struct sweep {
    enum tutti_collective collective;
    struct sim_case *cases; /* by ranks, then sizes, then algorithms; owned */
    size_t ncases, capacity;
};

/* What no schedule can be faster than. */
double sweep_bound(const struct sim_case *one);
/* All pieces one after the other. */
double sweep_seconds(const struct sim_case *one);

/* Play everything. REQUEST_GO or the exit status; the caller finishes the sweep in any case. */
int sweep_run(const struct request *request, struct sweep *ret_sweep);
void sweep_fini(struct sweep *sweep);

#endif
