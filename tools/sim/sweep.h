/* SPDX-License-Identifier: Apache-2.0
 * Simulates all cases that a command line asks for. A sweep is these cases with their results.
 */
#ifndef TUTTI_SIM_SWEEP_H
#define TUTTI_SIM_SWEEP_H

#include "common/request.h"
#include "simulator/simulator.h"
#include "tuner/tuner.h"

/* The simulation of one call with one algorithm and its options. */
struct sim_case {
    uint32_t nranks;
    double size_bytes;          /* size of the whole vector */
    struct tutti_choice choice; /* the algorithm and its options */
    bool is_left_out;       /* true if it has more steps than --steps allows: it is not simulated */
    uint64_t nsteps;        /* approximate number of steps of all ranks */
    uint32_t period;        /* number of ranks that were simulated by symmetry; 0: all ranks */
    double priced_s;        /* the tuner's estimate in seconds; NAN: there is none */
    double npieces;         /* number of consecutive pieces in which the library runs the call */
    bool is_best;           /* true if it is the fastest case of its size and number of ranks */
    double bus_bytes_per_s; /* bus bandwidth */
    struct tutti_sim_bound bound;   /* lower bounds on the time of the whole call */
    struct tutti_sim_report report; /* the simulation of one piece; zero if is_left_out */
};

struct sweep {
    enum tutti_collective collective;
    struct sim_case *cases; /* sorted by ranks, then sizes, then algorithms; owned */
    size_t ncases, capacity;
};

/* Returns a lower bound on the time of the whole call, in seconds. */
double sweep_bound(const struct sim_case *one);
/* Returns the time of the whole call in seconds: all pieces, one after the other. */
double sweep_seconds(const struct sim_case *one);

/* Simulates all cases. Shows progress if stderr is a terminal. Returns REQUEST_GO, or the exit
 * status after an error message. The caller releases the sweep with sweep_fini in either case. */
int sweep_run(const struct request *request, struct sweep *ret_sweep);
void sweep_fini(struct sweep *sweep);

#endif
