/* SPDX-License-Identifier: Apache-2.0
 * A user's request to a tool: the words and options of its command line, checked one by one.
 *
 * A mistake is reported as one line on stderr that names the argument and the remedy. The exit
 * status is then EXIT_MISTAKE.
 */
#ifndef TUTTI_TOOLS_REQUEST_H
#define TUTTI_TOOLS_REQUEST_H

#include "algorithms/algorithm.h"
#include "topology/machine/machine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define EXIT_MISTAKE 2

/* Returned instead of an exit status: no error so far, continue. */
#define REQUEST_GO (-1)

#define REQUEST_WORDS 4
#define REQUEST_RANKS 64

struct request {
    const char *command;               /* "tutti-sched print", for messages */
    const char *words[REQUEST_WORDS];  /* arguments that are not options */
    size_t nwords;
    uint32_t ranks[REQUEST_RANKS];     /* --ranks 8 or 2,4,8 or 2-9 */
    size_t nranks;                     /* 0: not given */
    uint32_t rank, root;
    bool has_rank, has_root;
    bool has_every_root;               /* --root all */
    struct tutti_options options;      /* --option NAME=VALUE */
    bool has_options;
    const char *topo, *output, *algorithm, *transport;
    bool wants_measure, wants_quick, wants_pieces;
    double first_bytes, last_bytes, factor; /* --size A:B[:factor]; default 1K:64M:4 */
    bool wants_json;
    uint64_t most_steps;               /* --steps; default 20 million */
    double within;                     /* --within F; 0: not given */

    /* For tools about machines as graphs: */
    const char *from;                  /* --from FILE, LINE or NAME */
    const char *gpus;                  /* --gpus 0,1,4 or 0-3; NULL: all */
    const char *pattern;               /* --pattern ring, ...; NULL: not given */
    const char *svg, *dot, *xml, *graph; /* files to write */
    uint32_t nchannels;                /* --channels; 0: not given */
    bool has_peers, may_cross;
    bool wants_bandwidth, wants_cpus, wants_sources, wants_plain;
};

/* One command of a tool. */
struct command {
    const char *name;    /* "tutti-sched print" */
    const char *options; /* the options it accepts, "ranks rank root" */
    const char *help;                /* the help text, or else: */
    void (*print_help)(FILE *out);
    int (*run)(const struct request *request); /* returns the exit status */
};

/* Prints what --version shows, for instance "tutti-sched (Tutti) 0.1.0". `name` may include a
 * command after the program's name. Returns the exit status. */
int print_version(const char *name);

/* Reads the command line (`argv[0]` excluded) and runs the command, or shows the help or the
 * version when asked for. Returns the exit status. */
int command_run(const struct command *command, int argc, char **argv);

/* Prints what is wrong as "COMMAND: ..." on stderr. Returns EXIT_MISTAKE. */
int mistake(const struct request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints the library's last error. Returns EXIT_MISTAKE if it is a bad argument, else 1. */
int failure(const struct request *request, int rc);

/* These check words and options together. They return REQUEST_GO or the exit status. */
int request_collective(const struct request *request, const char *word,
                       enum tutti_collective *ret_collective);
int request_algorithm(const struct request *request, enum tutti_collective collective,
                      const char *name, const struct tutti_algorithm **ret_algorithm);
/* The machine of --topo, for `nranks` ranks (0: the machine's own number). The second function also
 * determines the one number of ranks, from --ranks or the machine. *ret_machine is NULL without
 * --topo; the caller destroys it. */
int request_machine(const struct request *request, uint32_t nranks,
                    struct tutti_machine **ret_machine);
int request_one_machine(const struct request *request, uint32_t *ret_nranks,
                        struct tutti_machine **ret_machine);
/* Checks that the root fits the collective and the number of ranks. */
int request_root(const struct request *request, enum tutti_collective collective, uint32_t nranks);

#endif
