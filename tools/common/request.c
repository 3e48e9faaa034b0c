/* SPDX-License-Identifier: Apache-2.0
 * Reads the command line of a tool. */
#include "common/request.h"

#include "base/build_info.h"
#include "base/log.h"
#include "base/result.h"
#include "common/memory.h"
#include "common/topo_machine.h"
#include "common/units.h"
#include "topology/search/search.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SIZE_BYTES 0x1p50     /* the largest size that --size accepts: 1024 TiB */
#define MOST_FACTOR     (1u << 20) /* the largest factor that --size accepts */
#define MOST_WITHIN     1e9        /* the largest factor that --within accepts */

/* ---- messages -------------------------------------------------------------------------------- */

int mistake(const struct request *request, const char *format, ...)
{
    va_list args;

    fflush(stdout);
    fprintf(stderr, "%s: ", request->command);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return EXIT_MISTAKE;
}

int failure(const struct request *request, int rc)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", request->command, tutti_message_last());
    return rc == TUTTI_ERR_ARGUMENT || rc == TUTTI_ERR_USAGE ? EXIT_MISTAKE : EXIT_FAILURE;
}

int write_failure(const struct request *request, const char *file, int error)
{
    fflush(stdout);
    fprintf(stderr, "%s: cannot write %s: %s\n", request->command, file, strerror(error));
    return EXIT_FAILURE;
}

/* Returns the exit status of a command that ended with `status`. A command whose output was lost
 * fails, so that a script does not go on with a part of it. */
static int finish(const char *command, int status)
{
    int error = fflush(stdout) == 0 ? 0 : errno;

    if (error == 0 && !ferror(stdout))
        return status;
    /* The reason is not known if an earlier write failed. */
    fprintf(stderr, "%s: cannot write to stdout%s%s\n", command, error == 0 ? "" : ": ",
            error == 0 ? "" : strerror(error));
    return status == EXIT_SUCCESS ? EXIT_FAILURE : status;
}

/* ---- options --------------------------------------------------------------------------------- */

/* Adds the numbers of one item of --ranks, such as "4" or "2-9". `text` is the whole list, for
 * messages. */
static int add_ranks(struct request *request, const char *text, const char *item)
{
    const char *dash = strchr(item, '-');
    char *low = must_have(strndup(item, dash == NULL ? strlen(item) : (size_t)(dash - item)));
    uint64_t first = 0, last = 0;
    bool is_valid = units_read_count(low, 1, TUTTI_MACHINE_RANKS, &first);

    free(low);
    last = first;
    if (is_valid && dash != NULL)
        is_valid = units_read_count(dash + 1, first, TUTTI_MACHINE_RANKS, &last);
    if (!is_valid)
        return mistake(request, "--ranks %s: give numbers from 1 to %u, such as 8, 2,4,8 or 2-9",
                       text, TUTTI_MACHINE_RANKS);
    for (uint64_t nranks = first; nranks <= last; nranks++) {
        if (request->nranks == REQUEST_RANKS)
            return mistake(request, "--ranks %s: more than %d numbers; give fewer", text,
                           REQUEST_RANKS);
        request->ranks[request->nranks++] = (uint32_t)nranks;
    }
    return REQUEST_GO;
}

static int read_ranks(struct request *request, const char *text)
{
    char *copy = must_have(strdup(text)), *rest = copy, *item;
    int status = REQUEST_GO;

    request->nranks = 0;
    while (status == REQUEST_GO && (item = strsep(&rest, ",")) != NULL)
        status = add_ranks(request, text, item);
    free(copy);
    return status;
}

static int read_rank(struct request *request, const char *text)
{
    uint64_t rank;

    if (!units_read_count(text, 0, TUTTI_MACHINE_RANKS - 1, &rank))
        return mistake(request, "--rank %s: give a rank from 0 to %u", text,
                       TUTTI_MACHINE_RANKS - 1);
    request->rank = (uint32_t)rank;
    request->has_rank = true;
    return REQUEST_GO;
}

static int read_root(struct request *request, const char *text)
{
    uint64_t root = 0;

    request->has_every_root = strcmp(text, "all") == 0;
    if (!request->has_every_root && !units_read_count(text, 0, TUTTI_MACHINE_RANKS - 1, &root))
        return mistake(request, "--root %s: give a rank from 0 to %u", text,
                       TUTTI_MACHINE_RANKS - 1);
    request->root = (uint32_t)root;
    request->has_root = true;
    return REQUEST_GO;
}

/* Reads "NAME=NUMBER". */
static int read_option(struct request *request, const char *text)
{
    const char *equals = strchr(text, '=');
    uint64_t value;

    for (int i = 0; i < TUTTI_OPTION_COUNT; i++) {
        const char *name = tutti_option_name((enum tutti_option)i);

        if (equals == NULL || strlen(name) != (size_t)(equals - text) ||
            strncmp(name, text, strlen(name)) != 0)
            continue;
        if (!units_read_count(equals + 1, 1, UINT32_MAX, &value))
            return mistake(request, "--option %s: give a number from 1 on", text);
        request->options.value[i] = (uint32_t)value;
        request->has_options = true;
        return REQUEST_GO;
    }
    return mistake(request, "--option %s: give NAME=NUMBER; the names are those that \"tutti-sched "
                   "list\" shows, such as segments=4", text);
}

/* Reads "64K", "1K:64M" or "1K:64M:4". */
static int read_size(struct request *request, const char *text)
{
    char *copy = must_have(strdup(text)), *rest = copy;
    const char *first = strsep(&rest, ":"), *last = strsep(&rest, ":");
    const char *factor_text = strsep(&rest, ":");
    uint64_t factor = 2;
    bool is_valid = units_read_bytes(first, &request->first_bytes) && request->first_bytes >= 1;

    request->last_bytes = request->first_bytes;
    if (is_valid && last != NULL)
        is_valid = units_read_bytes(last, &request->last_bytes);
    if (is_valid && factor_text != NULL)
        is_valid = units_read_count(factor_text, 2, MOST_FACTOR, &factor) && rest == NULL;
    is_valid = is_valid && request->last_bytes >= request->first_bytes &&
               request->last_bytes <= MOST_SIZE_BYTES;
    free(copy);
    if (!is_valid)
        return mistake(request, "--size %s: give FIRST:LAST[:FACTOR] from 1 byte to 1024 TiB, such "
                       "as 1K:64M:4", text);
    request->factor = (double)factor;
    return REQUEST_GO;
}

static int read_steps(struct request *request, const char *text)
{
    if (!units_read_count(text, 1, UINT64_MAX, &request->most_steps))
        return mistake(request, "--steps %s: give a number from 1 on", text);
    return REQUEST_GO;
}

static int read_within(struct request *request, const char *text)
{
    char *end;

    request->within = strtod(text, &end);
    if (end == text || *end != '\0' || !(request->within >= 1) || request->within > MOST_WITHIN)
        return mistake(request, "--within %s: give a factor from 1 on, such as 1.5", text);
    return REQUEST_GO;
}

static int read_channels(struct request *request, const char *text)
{
    uint64_t count;

    if (!units_read_count(text, 1, TUTTI_SEARCH_CHANNELS, &count))
        return mistake(request, "--channels %s: give a number from 1 to %d", text,
                       TUTTI_SEARCH_CHANNELS);
    request->nchannels = (uint32_t)count;
    return REQUEST_GO;
}

/* An option with a value has either `read` or `text`. An option without a value has `flag`. */
struct option {
    const char *name; /* without the leading "--" */
    char letter;      /* the short form without "-"; '\0': there is none */
    /* Parses the value and stores it. Returns REQUEST_GO or the exit status. */
    int (*read)(struct request *request, const char *text);
    /* Returns the member that stores the value unchanged. */
    const char **(*text)(struct request *request);
    /* Returns the member that the option sets to true. */
    bool *(*flag)(struct request *request);
};

/* Define the functions `text` and `flag` for a member of struct request. */
#define KEEPS(field)                                                                               \
    static const char **text_##field(struct request *request)                                      \
    {                                                                                              \
        return &request->field;                                                                    \
    }
#define SETS(field)                                                                                \
    static bool *flag_##field(struct request *request)                                             \
    {                                                                                              \
        return &request->field;                                                                    \
    }

/* Defines the function `text` for a member of the hints. */
#define HINTS(field)                                                                               \
    static const char **text_##field(struct request *request)                                      \
    {                                                                                              \
        return &request->hints.field;                                                              \
    }

HINTS(gpu)
HINTS(nic)
HINTS(cpu)
KEEPS(topo)
KEEPS(output)
KEEPS(algorithm)
KEEPS(transport)
KEEPS(from)
KEEPS(gpus)
KEEPS(pattern)
KEEPS(svg)
KEEPS(dot)
KEEPS(xml)
KEEPS(graph)
SETS(wants_best)
SETS(wants_json)
SETS(wants_measure)
SETS(wants_pieces)
SETS(wants_quick)
SETS(has_peers)
SETS(may_cross)
SETS(wants_bandwidth)
SETS(wants_cpus)
SETS(wants_sources)
SETS(wants_plain)
SETS(wants_explain)
SETS(wants_wide)

static const struct option options[] = {
    {"ranks", 'n', .read = read_ranks},
    {"rank", 'r', .read = read_rank},
    {"root", '\0', .read = read_root},
    {"option", '\0', .read = read_option},
    {"size", 's', .read = read_size},
    {"topo", 't', .text = text_topo},
    {"gpu", '\0', .text = text_gpu},
    {"nic", '\0', .text = text_nic},
    {"cpu", '\0', .text = text_cpu},
    {"output", 'o', .text = text_output},
    {"algorithm", 'a', .text = text_algorithm},
    {"json", '\0', .flag = flag_wants_json},
    {"best", '\0', .flag = flag_wants_best},
    {"wide", '\0', .flag = flag_wants_wide},
    {"steps", '\0', .read = read_steps},
    {"within", '\0', .read = read_within},
    {"transport", '\0', .text = text_transport},
    {"measure", '\0', .flag = flag_wants_measure},
    {"pieces", '\0', .flag = flag_wants_pieces},
    {"quick", '\0', .flag = flag_wants_quick},
    {"from", 'f', .text = text_from},
    {"gpus", 'g', .text = text_gpus},
    {"pattern", 'p', .text = text_pattern},
    {"channels", 'c', .read = read_channels},
    {"peers", '\0', .flag = flag_has_peers},
    {"cross", '\0', .flag = flag_may_cross},
    {"bandwidth", 'b', .flag = flag_wants_bandwidth},
    {"cpus", '\0', .flag = flag_wants_cpus},
    {"sources", '\0', .flag = flag_wants_sources},
    {"plain", '\0', .flag = flag_wants_plain},
    {"explain", '\0', .flag = flag_wants_explain},
    {"svg", '\0', .text = text_svg},
    {"dot", '\0', .text = text_dot},
    {"xml", '\0', .text = text_xml},
    {"graph", '\0', .text = text_graph},
};

/* Stores the value of an option, or sets its flag. */
static int store_option(struct request *request, const struct option *option, const char *value)
{
    if (option->read != NULL)
        return option->read(request, value);
    if (option->text != NULL)
        *option->text(request) = value;
    else
        *option->flag(request) = true;
    return REQUEST_GO;
}

/* Returns true if the name is one of the words of a list such as "ranks rank root". */
static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

/* Returns true if the argument `text` is this option, with or without a value. */
static bool is_option(const struct option *option, const char *text)
{
    size_t length;

    if (text[1] != '-')
        return text[1] == option->letter;
    length = strcspn(text + 2, "=");
    return strlen(option->name) == length && strncmp(option->name, text + 2, length) == 0;
}

/* Reads the option at argv[*at] and its value: "--name=value", "--name value", "-nvalue" or
 * "-n value". If the value is the next argument, *at moves to it. */
static int read_argument(struct request *request, const struct command *command, int argc,
                         char **argv, int *at)
{
    const char *text = argv[*at], *value = NULL;
    bool is_long = text[1] == '-';

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        bool has_value = options[i].flag == NULL;

        if (!is_listed(command->options, options[i].name) || !is_option(&options[i], text))
            continue;
        if (is_long && strchr(text, '=') != NULL)
            value = strchr(text, '=') + 1;
        else if (!is_long && text[2] != '\0')
            value = text + 2;
        else if (has_value && *at + 1 < argc)
            value = argv[++*at];
        if (has_value && value == NULL)
            return mistake(request, "%s needs a value; see %s --help", text, command->name);
        if (!has_value && value != NULL)
            return mistake(request, "%s takes no value", text);
        return store_option(request, &options[i], value);
    }
    return mistake(request, "%s is no option of this command; see %s --help", text, command->name);
}

int print_version(const char *name)
{
    printf("%.*s (Tutti) %s\n", (int)strcspn(name, " "), name, tutti_version_text());
    return EXIT_SUCCESS;
}

/* Reads the arguments and runs the command. Returns its exit status. */
static int run_command(const struct command *command, int argc, char **argv)
{
    struct request request = {
        .command = command->name,
        .first_bytes = 1 << 10,
        .last_bytes = 1 << 26,
        .factor = 4,
        .most_steps = 20000000,
    };

    tutti_log_be_quiet();
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            if (command->help != NULL)
                fputs(command->help, stdout);
            else
                command->print_help(stdout);
            return EXIT_SUCCESS;
        }
        if (strcmp(argv[i], "--version") == 0)
            return print_version(command->name);
        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            int status = read_argument(&request, command, argc, argv, &i);

            if (status != REQUEST_GO)
                return status;
        } else if (request.nwords == REQUEST_WORDS) {
            return mistake(&request, "\"%s\" is one word too many; see %s --help", argv[i],
                           command->name);
        } else {
            request.words[request.nwords++] = argv[i];
        }
    }
    return command->run(&request);
}

int command_run(const struct command *command, int argc, char **argv)
{
    return finish(command->name, run_command(command, argc, argv));
}

/* ---- words and options together -------------------------------------------------------------- */

int request_collective(const struct request *request, const char *word,
                       enum tutti_collective *ret_collective)
{
    char list[TUTTI_COLLECTIVE_LIST_BYTES];
    enum tutti_collective found;

    tutti_collective_list(0, list);
    if (word == NULL)
        return mistake(request, "which collective? Give one of %s", list);
    found = tutti_collective_find(word, strlen(word));
    if (found == TUTTI_COLLECTIVE_COUNT)
        return mistake(request, "%s is no collective; give one of %s", word, list);
    *ret_collective = found;
    return REQUEST_GO;
}

int request_algorithm(const struct request *request, enum tutti_collective collective,
                      const char *name, const struct tutti_algorithm **ret_algorithm)
{
    const char *of = tutti_collective_name(collective);
    char names[512] = "";

    *ret_algorithm = name == NULL ? NULL : tutti_algorithm_find(collective, name);
    if (*ret_algorithm != NULL)
        return REQUEST_GO;
    for (size_t i = 0; i < tutti_algorithm_count(); i++)
        if (tutti_algorithm(i)->collective == collective)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                     *names == '\0' ? "" : ", ", tutti_algorithm(i)->name);
    if (name == NULL)
        return mistake(request, "which algorithm of %s? Give one of %s", of, names);
    return mistake(request, "%s has no algorithm %s; give one of %s", of, name, names);
}

int request_machine(const struct request *request, uint32_t nranks,
                    struct tutti_machine **ret_machine)
{
    int rc;

    *ret_machine = NULL;
    if (request->topo == NULL && tutti_hints_are_given(&request->hints))
        return mistake(request, "--gpu, --nic and --cpu are about the devices of a machine; "
                       "give --topo too");
    if (request->topo == NULL)
        return REQUEST_GO;
    rc = topo_machine_load(request->command, request->topo, &request->hints, nranks, ret_machine);
    return rc == TUTTI_OK ? REQUEST_GO : failure(request, rc);
}

int request_one_machine(const struct request *request, uint32_t *ret_nranks,
                        struct tutti_machine **ret_machine)
{
    int status;

    if (request->nranks > 1)
        return mistake(request, "--ranks: %zu numbers; this command takes one", request->nranks);
    if (request->nranks == 0 && request->topo == NULL)
        return mistake(request, "how many ranks? Give --ranks N");
    status = request_machine(request, request->nranks == 1 ? request->ranks[0] : 0, ret_machine);
    if (status != REQUEST_GO)
        return status;
    *ret_nranks = *ret_machine != NULL ? (*ret_machine)->places.nranks : request->ranks[0];
    return REQUEST_GO;
}

int request_root(const struct request *request, enum tutti_collective collective, uint32_t nranks)
{
    if (request->has_root && !tutti_collective_has_root(collective))
        return mistake(request, "--root: %s has no root; leave it out",
                       tutti_collective_name(collective));
    if (request->has_root && request->root >= nranks)
        return mistake(request, "--root %u: give a rank from 0 to %u", request->root, nranks - 1);
    return REQUEST_GO;
}
