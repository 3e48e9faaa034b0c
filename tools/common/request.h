/* SPDX-License-Identifier: Apache-2.0
 * Reads the command line of a tool into a request: its words and its options, each of them checked.
 *
 * A mistake in the command line is reported in one line on stderr. The line names the argument and
 * says how to correct it. The exit status is then EXIT_MISTAKE.
 */
#ifndef TUTTI_TOOLS_REQUEST_H
#define TUTTI_TOOLS_REQUEST_H

#include "algorithms/algorithm.h"
#include "topology/formats/hints.h"
#include "topology/machine/machine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The exit status after a mistake in the command line. */
#define EXIT_MISTAKE 2

/* A function returns this value instead of an exit status if it found no error. The caller then
 * goes on. */
#define REQUEST_GO (-1)

#define REQUEST_WORDS 4  /* most arguments that are not options */
#define REQUEST_RANKS 64 /* most numbers of ranks that --ranks may give */

/* The command line of a tool. The help texts of the tools explain the options. The texts belong to
 * argv. A text is NULL if its option is not given. */
struct request {
    const char *command;              /* tool and command for messages, as "tutti-sched print" */
    const char *words[REQUEST_WORDS]; /* arguments that are not options; NULL after the last */
    size_t nwords;
    uint32_t ranks[REQUEST_RANKS]; /* numbers of ranks: --ranks 8 or 2,4,8 or 2-9 */
    size_t nranks;                 /* how many numbers of ranks; 0: not given */
    uint32_t rank, root;           /* --rank R, --root R */
    bool has_rank, has_root;       /* true if --rank or --root is given */
    bool has_every_root;           /* --root all */
    struct tutti_options options;  /* --option NAME=VALUE */
    bool has_options;
    const char *topo;                /* --topo: a file, a line or a name of a machine */
    struct tutti_hints hints;        /* --gpu, --nic, --cpu: what a file does not tell */
    const char *output;              /* --output: the file to write */
    const char *algorithm;           /* --algorithm: a name, or a word such as "all" */
    const char *transport;           /* --transport: a list of names */
    bool wants_measure, wants_quick; /* --measure, --quick */
    bool wants_pieces;               /* --pieces */
    bool wants_json;                 /* --json */
    bool wants_best, wants_wide;     /* --best, --wide */
    double first_bytes, last_bytes;  /* --size A:B[:FACTOR]; default 1K:64M:4 */
    double factor;                   /* from one size to the next */
    uint64_t most_steps;             /* --steps N; default 20 million */
    double within;                   /* --within F; 0: not given */

    /* The following members are for tutti-topo, which shows machines as graphs. */
    const char *from;                    /* --from FILE, LINE or NAME; NULL: this machine */
    const char *gpus;                    /* --gpus 0,1,4 or 0-3; NULL: all gpus */
    const char *pattern;                 /* --pattern ring, ... */
    const char *svg, *dot, *xml, *graph; /* options of these names: the files to write */
    uint32_t nchannels;                  /* --channels; 0: not given */
    bool has_peers, may_cross;           /* --peers, --cross */
    bool wants_bandwidth, wants_cpus, wants_sources, wants_plain; /* options of these names */
    bool wants_explain;                  /* --explain */
};

/* One command of a tool, or the whole tool if it has no commands. */
struct command {
    const char *name;    /* for example "tutti-sched print" */
    const char *options; /* the long names of the valid options, such as "ranks rank root" */
    const char *help;    /* the help text; NULL: print_help prints it */
    void (*print_help)(FILE *out);
    int (*run)(const struct request *request); /* returns the exit status */
};

/* Prints the output of --version, for instance "tutti-sched (Tutti) 0.1.0". `name` may have a
 * command after the program's name. Returns the exit status. */
int print_version(const char *name);

/* Reads the command line and runs the command. Shows the help or the version instead if an option
 * asks for it. `argv` starts with the first argument, after the names of the program and of the
 * command. Returns the exit status. */
int command_run(const struct command *command, int argc, char **argv);

/* Prints a message "COMMAND: ..." about a mistake on stderr. `format` has no newline at its end.
 * Returns EXIT_MISTAKE. */
int mistake(const struct request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints the library's last error message on stderr. `rc` is the error code that the library
 * returned. Returns EXIT_MISTAKE for a bad argument or wrong usage, otherwise EXIT_FAILURE. */
int failure(const struct request *request, int rc);

/* Prints "COMMAND: cannot write FILE: REASON" on stderr. `error` is an error number of errno.h.
 * Returns EXIT_FAILURE. */
int write_failure(const struct request *request, const char *file, int error);

/* The functions below check words and options together. They return REQUEST_GO, or the exit status
 * after they have reported a mistake. */

/* These two find a collective, and one of its algorithms, by name. It is a mistake if the name is
 * NULL, because the command line has no such word. */
int request_collective(const struct request *request, const char *word,
                       enum tutti_collective *ret_collective);
int request_algorithm(const struct request *request, enum tutti_collective collective,
                      const char *name, const struct tutti_algorithm **ret_algorithm);
/* request_machine loads the machine of --topo for `nranks` ranks. With 0, the machine keeps its own
 * number of ranks. request_one_machine takes the number of ranks from --ranks or from the machine,
 * and reports a mistake if there is not exactly one. *ret_machine is NULL without --topo. The
 * caller destroys the machine. */
int request_machine(const struct request *request, uint32_t nranks,
                    struct tutti_machine **ret_machine);
int request_one_machine(const struct request *request, uint32_t *ret_nranks,
                        struct tutti_machine **ret_machine);
/* Checks that the collective has a root if --root is given, and that the root is a rank. */
int request_root(const struct request *request, enum tutti_collective collective, uint32_t nranks);

#endif
