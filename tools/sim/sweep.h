/* SPDX-License-Identifier: Apache-2.0
 * Simulates all cases that a command line asks for. A sweep is these cases with their results.
 */
#ifndef TUTTI_SIM_SWEEP_H
#define TUTTI_SIM_SWEEP_H

#include "common/request.h"
#include "common/topo_machine.h"
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
    const struct tutti_algorithm *only; /* the one algorithm that the user wants; NULL: several */
    struct sim_case *cases; /* sorted by ranks, then sizes, then algorithms; owned */
    size_t ncases, capacity;
};

/* Returns a lower bound on the time of the whole call, in seconds. */
double sweep_bound(const struct sim_case *one);
/* Returns the time of the whole call in seconds: all pieces, one after the other. */
double sweep_seconds(const struct sim_case *one);

/* Writes the busiest link of a case and the share of the time in which it is busy, such as
 * "nic 0 of node 0 in, 98%". Writes "-" if no link was busy, or if `one` is NULL. Returns the
 * text. */
#define SWEEP_LINK_TEXT (TUTTI_MACHINE_NAME_BYTES + 96)
const char *sweep_link(const struct sim_case *one, char text[SWEEP_LINK_TEXT]);

/* Prints how many cases were simulated by symmetry, unless there are none. `where` is that of the
 * next function. For tables without the column of the busiest link, which says so too. */
void sweep_print_symmetric(const struct sweep *sweep, const char *where);
/* Prints how many cases were left out, unless there are none. `where` begins with a blank, such as
 * " on A", or is "". For tables that do not have a row for each case. */
void sweep_print_left_out(const struct sweep *sweep, const char *where);

/* The functions below that return an int return REQUEST_GO, or the exit status after an error
 * message. */

/* Starts a sweep without cases, for the collective and the algorithm that the command line names.
 * The caller releases the sweep with sweep_fini in every case. */
int sweep_begin(const struct request *request, const char *collective, struct sweep *ret_sweep);
void sweep_fini(struct sweep *sweep);

/* Loads a machine: the one of `topo`, or this machine if `topo` is NULL. `nranks` may be 0 for the
 * machine's own number. Checks that the sweep can run on it. Of this machine, writes what its ranks
 * are into `ret_about`, which has TOPO_MACHINE_ABOUT bytes; of others, writes "". The caller destroys
 * the machine, which is NULL on failure. */
int sweep_load(const struct request *request, const struct sweep *sweep, const char *topo,
               uint32_t nranks, struct tutti_machine **ret_machine, char *ret_about);

/* Adds the cases of all sizes on a machine. They have no results yet. */
int sweep_add(const struct request *request, const struct tutti_machine *machine,
              struct sweep *sweep);
/* Simulates a case on the machine for which it was added. Shows progress on a terminal. */
int sweep_play(const struct request *request, const struct tutti_machine *machine,
               struct sweep *sweep, size_t index);

/* Returns the index after the last of the cases that have the ranks and the size of case `first`. */
size_t sweep_size_end(const struct sweep *sweep, size_t first);
/* Marks the fastest of these cases and returns it; the first one of several equally fast ones. If
 * all of them are left out, marks none and returns NULL. */
struct sim_case *sweep_mark_best(struct sweep *sweep, size_t first, size_t end);

#endif
