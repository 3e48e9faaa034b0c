/* SPDX-License-Identifier: Apache-2.0
 * Parses the command line of the measuring programs. Most options are those of nccl-tests. */
#include "options.h"

#include "types.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: %s [options]\n"
    "\n"
    "Ranks. Without --ranks this process is one rank of the job that its launcher (tutti-run,\n"
    "torchrun, mpirun, srun) describes, or the only rank. Each process runs -t times -g ranks,\n"
    "each in its own thread.\n"
    "      --ranks N          start N processes on this host\n"
    "  -t, --nthreads N       ranks per process (1)\n"
    "  -g, --ngpus N          times this many (1); with --device gpu each is on the next GPU\n"
    "\n"
    "Sizes, with suffixes K, M, G. Without -b and -e they are 8 bytes to 64M by factor 4.\n"
    "  -b, --minbytes N       smallest size (8)\n"
    "  -e, --maxbytes N       largest size (the smallest)\n"
    "  -i, --stepbytes N      add N to get the next size (1M)\n"
    "  -f, --stepfactor N     multiply by N to get the next size\n"
    "\n"
    "Calls.\n"
    "  -o, --op NAME          %s\n"
    "                         or all (sum)\n"
    "  -d, --datatype NAME    %s\n"
    "                         or all (float); fp16, bf16, fp8_e4m3 and other usual names, too\n"
    "  -r, --root N           root, or all (0)\n"
    "  -m, --agg_iters N      operations per group (1: no group)\n"
    "  -s, --stream 0|1       1: on a stream, so that calls return at once (0)\n"
    "  -y, --stream_null 0|1  the opposite of -s (1)\n"
    "  -R, --local_register 0|1|2  buffers: 0 of malloc or cuMemAlloc; 2 of tuttiMemAlloc; 1 the\n"
    "                         same, on GPUs cuMemAlloc and tuttiCommRegister (0)\n"
    "  -u, --unalign 0|1      1: buffers start one element past alignment (0)\n"
    "      --out-of-place     leave out calls in place\n"
    "      --device gpu[:N]   buffers in GPUs' memory, streams are CUDA's: rank r on GPU r modulo\n"
    "                         their number, or all on GPU N (host)\n"
    "      --graph N          capture N operations in a CUDA graph; an iteration is one replay\n"
    "  -G, --cudagraph N      capture all -n iterations in a CUDA graph and replay it N times (0)\n"
    "\n"
    "Measurement.\n"
    "      --tune FILE        first find the fastest algorithms for these sizes, use them, and\n"
    "                         write them to FILE, a table for TUTTI_TUNE_TABLE\n"
    "  -n, --iters N          timed iterations per block (20); see docs/perf.md\n"
    "  -w, --warmup_iters N   iterations before them (1)\n"
    "  -N, --run_cycles N     repeat everything N times, 0 without end (1)\n"
    "  -c, --check N          checked calls on fresh data; 0 checks nothing at all (1)\n"
    "  -z, --blocking 0..3    wait: 0 after the loop, 1 after each operation with a barrier,\n"
    "                         2 without one, 3 after each iteration with an uncounted barrier (0)\n"
    "  -T, --timeout N        give up when one row takes more than N seconds (0: never)\n"
    "  -a, --average 0..3     time of 0 rank 0, 1 mean, 2 lowest, 3 highest of all ranks (1)\n"
    "  -C, --report_cputime 0|1    show CPU time per rank instead of elapsed time (0)\n"
    "  -p, --parallel_init 0|1     no effect: ranks always initialize in parallel\n"
    "\n"
    "Output.\n"
    "  -A, --algorithms 0|1   end each row with the algorithm and the transport (0)\n"
    "      --overlap CPUS     how much of a call on a stream hides behind computing. CPUS is\n"
    "                         COMPUTE/STREAMS, such as 0-3/4,5: rank r computes on the r-th CPU\n"
    "                         of COMPUTE, streams and other ranks run on STREAMS; any: nothing\n"
    "                         is bound and all ranks compute; any:N: the first N do\n"
    "      --waiting MS       at the end, the CPU time of idle and of blocked ranks over MS\n"
    "  -I, --samples 0|1      time every iteration; show its min, max, p99 and variation (0)\n"
    "  -K, --skip N           leave the first N samples out of these (0)\n"
    "  -M, --memory_report 0|1     show memory and connections at the end (0)\n"
    "  -S, --report_timestamps 0|1 put the time of day before each row (0)\n"
    "  -J, --output_file FILE write the results there too, as JSON\n"
    "  -h, --help             this text\n"
    "      --version          the versions of this program and of the library\n"
    "\n"
    "TUTTI_TESTS_MIN_BW=X in the environment: fail below 0.9 X GB/s average bus bandwidth.\n";

enum { OPTION_RANKS = 256, OPTION_TUNE, OPTION_OVERLAP, OPTION_WAITING, OPTION_DEVICE,
       OPTION_GRAPH, OPTION_OUT_OF_PLACE, OPTION_VERSION };

/* Upper bounds for values of options. */
enum {
    RANKS_MOST = 4096, /* ranks of one process; also the number of processes */
    ITERATIONS_MOST = 1 << 24,
    AGGREGATE_MOST = 4096,
    GRAPH_MOST = 4096, /* iterations in one graph */
    FACTOR_MOST = 1 << 20,
    GPU_MOST = 4095, /* the largest index of a GPU */
};

enum { EXIT_USAGE = 2 };     /* the exit code after an option that is not allowed */
enum { SMALLEST_BYTES = 8 }; /* the smallest size that is measured without -b */

/* Bytes of the longest option name, with its dashes and the terminating zero. */
enum { LONGEST_NAME = 24 };

static const struct option long_options[] = {
    {"ranks", 1, NULL, OPTION_RANKS}, {"threads", 1, NULL, 't'}, {"nthreads", 1, NULL, 't'},
    {"ngpus", 1, NULL, 'g'}, {"minbytes", 1, NULL, 'b'}, {"maxbytes", 1, NULL, 'e'},
    {"stepbytes", 1, NULL, 'i'}, {"stepfactor", 1, NULL, 'f'}, {"op", 1, NULL, 'o'},
    {"datatype", 1, NULL, 'd'}, {"root", 1, NULL, 'r'}, {"aggregate", 1, NULL, 'm'},
    {"agg_iters", 1, NULL, 'm'}, {"stream", 1, NULL, 's'}, {"stream_null", 1, NULL, 'y'},
    {"registered", 1, NULL, 'R'}, {"local_register", 1, NULL, 'R'}, {"misalign", 1, NULL, 'u'},
    {"unalign", 1, NULL, 'u'}, {"iters", 1, NULL, 'n'}, {"warmup_iters", 1, NULL, 'w'},
    {"cycles", 1, NULL, 'N'}, {"run_cycles", 1, NULL, 'N'}, {"check", 1, NULL, 'c'},
    {"blocking", 1, NULL, 'z'}, {"timeout", 1, NULL, 'T'}, {"average", 1, NULL, 'a'},
    {"report_cputime", 1, NULL, 'C'}, {"parallel_init", 1, NULL, 'p'}, {"samples", 1, NULL, 'I'},
    {"skip", 1, NULL, 'K'}, {"memory", 1, NULL, 'M'}, {"memory_report", 1, NULL, 'M'},
    {"report_timestamps", 1, NULL, 'S'}, {"json", 1, NULL, 'J'}, {"output_file", 1, NULL, 'J'},
    {"algorithms", 1, NULL, 'A'}, {"cudagraph", 1, NULL, 'G'}, {"cta_policy", 1, NULL, 'x'},
    {"device_implementation", 1, NULL, 'D'}, {"device_cta_count", 1, NULL, 'V'},
    {"help", 0, NULL, 'h'}, {"version", 0, NULL, OPTION_VERSION}, {"tune", 1, NULL, OPTION_TUNE},
    {"overlap", 1, NULL, OPTION_OVERLAP}, {"waiting", 1, NULL, OPTION_WAITING},
    {"device", 1, NULL, OPTION_DEVICE}, {"graph", 1, NULL, OPTION_GRAPH},
    {"out-of-place", 0, NULL, OPTION_OUT_OF_PLACE},
    {NULL, 0, NULL, 0},
};

/* Options of nccl-tests that do not apply here. `why` is the reason, for the message. */
static const struct {
    int letter;
    const char *why;
} refused[] = {
    {'x', "the library chooses how many blocks run"},
    {'D', "there is no device API"},
    {'V', "the library chooses how many blocks run"},
};

/* Parses a number of bytes with an optional suffix, such as "64K" or "1.5MB". */
static bool parse_size(const char *text, size_t *ret_bytes)
{
    double number, unit = 1;
    char *end;

    errno = 0;
    number = strtod(text, &end);
    if (end == text || errno != 0 || !(number >= 0))
        return false;
    switch (*end) {
    case 'k': case 'K': unit = 1024.0; end++; break;
    case 'm': case 'M': unit = 1024.0 * 1024; end++; break;
    case 'g': case 'G': unit = 1024.0 * 1024 * 1024; end++; break;
    default: break;
    }
    if (*end == 'B')
        end++;
    if (*end != '\0' || number * unit > (double)(SIZE_MAX / 4))
        return false;
    *ret_bytes = (size_t)(number * unit);
    return true;
}

static bool parse_int(const char *text, int low, int high, int *ret_number)
{
    char *end;
    long number;

    errno = 0;
    number = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || number < low || number > high)
        return false;
    *ret_number = (int)number;
    return true;
}

static bool parse_flag(const char *text, bool *ret_flag)
{
    int number;

    if (!parse_int(text, 0, 1, &number))
        return false;
    *ret_flag = number != 0;
    return true;
}

static bool parse_root(const char *text, int *ret_root)
{
    if (strcmp(text, "all") == 0) {
        *ret_root = -1;
        return true;
    }
    return parse_int(text, 0, INT_MAX, ret_root);
}

static bool parse_device(const char *text, struct perf_options *o)
{
    o->use_gpu = strncmp(text, "gpu", 3) == 0;
    o->gpu = -1;
    if (!o->use_gpu)
        return strcmp(text, "host") == 0;
    return text[3] == '\0' ||
           (text[3] == ':' && parse_int(text + strlen("gpu:"), 0, GPU_MOST, &o->gpu));
}

/* Holds options whose effect depends on other options. They take effect after all options have
 * been parsed. */
struct given {
    bool min, max, step; /* true if -b, -e, and -i or -f were given */
    int ngpus, replays;  /* the values of -g and -G */
};

static bool parse_factor(const char *text, size_t *ret_factor)
{
    int number;

    if (!parse_int(text, 2, FACTOR_MOST, &number))
        return false;
    *ret_factor = (size_t)number;
    return true;
}

/* Parses the option -y, the opposite of -s. */
static bool parse_no_stream(const char *text, bool *ret_use_stream)
{
    bool is_null;

    if (!parse_flag(text, &is_null))
        return false;
    *ret_use_stream = !is_null;
    return true;
}

static bool parse_registration(const char *text, enum perf_registration *ret_registration)
{
    int number;

    if (!parse_int(text, PERF_UNREGISTERED, PERF_WINDOWS, &number))
        return false;
    *ret_registration = (enum perf_registration)number;
    return true;
}

static bool parse_sync(const char *text, enum perf_sync *ret_sync)
{
    int number;

    if (!parse_int(text, PERF_SYNC_END, PERF_SYNC_OUTER, &number))
        return false;
    *ret_sync = (enum perf_sync)number;
    return true;
}

static bool parse_combine(const char *text, enum perf_combine *ret_combine)
{
    int number;

    if (!parse_int(text, PERF_RANK0, PERF_HIGHEST, &number))
        return false;
    *ret_combine = (enum perf_combine)number;
    return true;
}

static bool parse_path(const char *text, const char **ret_path)
{
    *ret_path = text;
    return *text != '\0';
}

/* Parses one option. `letter` is its value in long_options, and `text` is its argument, or NULL if
 * it has none. False: the argument is not allowed. */
static bool parse_one(int letter, const char *text, struct perf_options *o, struct given *given)
{
    int ignored;

    switch (letter) {
    case OPTION_RANKS: return parse_int(text, 1, RANKS_MOST, &o->processes);
    case 't': return parse_int(text, 1, RANKS_MOST, &o->threads);
    case 'g': return parse_int(text, 1, RANKS_MOST, &given->ngpus);
    case 'G': return parse_int(text, 0, ITERATIONS_MOST, &given->replays);
    case 'p': return parse_int(text, 0, 1, &ignored);
    case 'A': return parse_flag(text, &o->show_algorithms);
    case 'b': given->min = true; return parse_size(text, &o->min_bytes);
    case 'e': given->max = true; return parse_size(text, &o->max_bytes);
    case 'i':
        given->step = true;
        o->factor = 0;
        return parse_size(text, &o->step_bytes);
    case 'f': given->step = true; return parse_factor(text, &o->factor);
    case 'o': return perf_parse_ops(text, &o->ops);
    case 'd': return perf_parse_types(text, &o->types);
    case 'r': return parse_root(text, &o->root);
    case 'm': return parse_int(text, 1, AGGREGATE_MOST, &o->aggregate);
    case 's': return parse_flag(text, &o->use_stream);
    case 'y': return parse_no_stream(text, &o->use_stream);
    case 'R': return parse_registration(text, &o->registration);
    case 'u': return parse_flag(text, &o->misalign);
    case 'n': return parse_int(text, 1, ITERATIONS_MOST, &o->iterations);
    case 'w': return parse_int(text, 0, ITERATIONS_MOST, &o->warmups);
    case 'N': return parse_int(text, 0, INT_MAX, &o->cycles);
    case 'c': return parse_int(text, 0, INT_MAX, &o->checks);
    case 'z': return parse_sync(text, &o->sync);
    case 'T': return parse_int(text, 0, INT_MAX, &o->timeout_seconds);
    case 'a': return parse_combine(text, &o->combine);
    case 'C': return parse_flag(text, &o->show_cpu_time);
    case 'I': return parse_flag(text, &o->show_samples);
    case 'K': return parse_int(text, 0, ITERATIONS_MOST, &o->skip_samples);
    case 'M': return parse_flag(text, &o->show_memory);
    case 'S': return parse_flag(text, &o->show_times);
    case OPTION_TUNE: return parse_path(text, &o->tune_path);
    case OPTION_OVERLAP:
        o->show_overlap = true;
        o->use_stream = true;
        return perf_cpus_parse(text, &o->cpus);
    case OPTION_WAITING: return parse_int(text, 1, INT_MAX, &o->waiting_ms);
    case OPTION_DEVICE: return parse_device(text, o);
    case OPTION_OUT_OF_PLACE: o->is_out_of_place_only = true; return true;
    case OPTION_GRAPH: return parse_int(text, 1, GRAPH_MOST, &o->graph);
    case 'J': return parse_path(text, &o->json_path);
    default: return false;
    }
}

/* Settles the range of sizes. Without -b and -e, the default sizes are measured. With -b alone,
 * only the size of -b is measured. With -e alone, sizes from 8 bytes to the size of -e are
 * measured. */
static int settle_sizes(const char *program, struct perf_options *o, const struct given *given)
{
    if (!given->min && !given->max) {
        o->min_bytes = SMALLEST_BYTES;
        o->max_bytes = 64u << 20;
    } else if (!given->max) {
        o->max_bytes = o->min_bytes;
    } else if (!given->min) {
        o->min_bytes = o->max_bytes < SMALLEST_BYTES ? o->max_bytes : SMALLEST_BYTES;
    }
    if (!given->step && !(given->min && given->max))
        o->factor = 4;
    if (o->min_bytes > o->max_bytes) {
        fprintf(stderr, "%s: -b %zu is more than -e %zu\n", program, o->min_bytes, o->max_bytes);
        return EXIT_USAGE;
    }
    if (o->factor == 0 && o->step_bytes == 0) {
        fprintf(stderr, "%s: -i 0 would never reach -e; give an increment or -f\n", program);
        return EXIT_USAGE;
    }
    return 0;
}

static int settle_samples(const char *program, const struct perf_options *o)
{
    if (o->skip_samples == 0 || o->show_samples)
        return 0;
    fprintf(stderr, "%s: -K leaves samples out of -I's statistics: give -I 1 too\n", program);
    return EXIT_USAGE;
}

/* Applies -g, which multiplies the ranks of -t, and -G. -G N captures the iterations of -n in one
 * graph, as --graph does, and replays the graph N times. */
static int settle_counts(const char *program, struct perf_options *o, const struct given *given)
{
    if (given->ngpus * (long)o->threads > RANKS_MOST) {
        fprintf(stderr, "%s: -t %d times -g %d is more than %d ranks per process\n", program,
                o->threads, given->ngpus, RANKS_MOST);
        return EXIT_USAGE;
    }
    o->threads *= given->ngpus;
    if (given->replays == 0)
        return 0;
    if (o->graph > 0) {
        fprintf(stderr, "%s: -G %d: give either -G or --graph\n", program, given->replays);
        return EXIT_USAGE;
    }
    if (o->iterations > GRAPH_MOST) {
        fprintf(stderr, "%s: -G %d: a graph holds at most %d iterations; lower -n\n", program,
                given->replays, GRAPH_MOST);
        return EXIT_USAGE;
    }
    o->graph = o->iterations;
    o->iterations = given->replays;
    return 0;
}

/* Rejects options that apply only to the host if --device gpu is given, and graphs if it is not. */
static int settle_device(const char *program, struct perf_options *o)
{
    const char *host_option = o->show_overlap     ? "--overlap"
                              : o->waiting_ms > 0 ? "--waiting"
                                                  : NULL;

    if (!o->use_gpu && o->graph > 0) {
        fprintf(stderr, "%s: --graph and -G: there are CUDA graphs only with --device gpu\n",
                program);
        return EXIT_USAGE;
    }
    if (o->use_gpu && host_option != NULL) {
        fprintf(stderr, "%s: %s is about the host; leave out --device gpu\n", program, host_option);
        return EXIT_USAGE;
    }
    o->use_stream = o->use_stream || o->graph > 0;
    return 0;
}

/* Returns the short name of an option, for messages, or its long name if it has no short one. */
static const char *option_name(int letter, char ret_name[LONGEST_NAME])
{
    snprintf(ret_name, LONGEST_NAME, "-%c", letter);
    for (const struct option *option = long_options; letter >= OPTION_RANKS; option++)
        if (option->val == letter) {
            snprintf(ret_name, LONGEST_NAME, "--%s", option->name);
            break;
        }
    return ret_name;
}

static const char *refusal(int letter)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (refused[i].letter == letter)
            return refused[i].why;
    return NULL;
}

static void print_version(void)
{
    int library = 0;

    tuttiGetVersion(&library);
    printf("%s_perf %d.%d.%d, library %d.%d.%d\n", perf_collective.name, TUTTI_MAJOR, TUTTI_MINOR,
           TUTTI_PATCH, library / 10000, library / 100 % 100, library % 100);
}

static void print_help(const char *program)
{
    const int indent = 25; /* of the right column of the help */
    char ops[PERF_NAMES_BYTES], types[PERF_NAMES_BYTES];

    perf_name_ops(indent, ops);
    perf_name_types(indent, types);
    printf(help, program, ops, types);
}

int perf_options_parse(int argc, char **argv, struct perf_options *ret_options)
{
    struct perf_options o = {
        .threads = 1, .step_bytes = 1u << 20, .iterations = 20, .warmups = 1, .aggregate = 1,
        .cycles = 1, .checks = 1, .ops = 1u << PERF_SUM, .types = 1u << tuttiFloat32,
        .combine = PERF_MEAN, .argc = argc, .argv = argv,
    };
    struct given given = {.ngpus = 1};
    int letter, rc;

    while ((letter = getopt_long(argc, argv, "t:g:b:e:i:f:o:d:r:m:s:y:R:u:n:w:N:c:z:T:a:C:p:A:I:K:"
                                             "M:S:J:hG:x:D:V:", long_options, NULL)) != -1) {
        if (letter == 'h') {
            print_help(argv[0]);
            return -1;
        }
        if (letter == OPTION_VERSION) {
            print_version();
            return -1;
        }
        if (letter == '?') {
            fprintf(stderr, "%s: -h lists the options\n", argv[0]);
            return EXIT_USAGE;
        }
        if (refusal(letter) != NULL) {
            fprintf(stderr, "%s: no -%c: %s\n", argv[0], letter, refusal(letter));
            return EXIT_USAGE;
        }
        if (!parse_one(letter, optarg, &o, &given)) {
            char name[LONGEST_NAME];

            fprintf(stderr, "%s: %s: '%s' is not allowed; -h lists the values\n", argv[0],
                    option_name(letter, name), optarg);
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "%s: '%s' is not an option; -h lists them\n", argv[0], argv[optind]);
        return EXIT_USAGE;
    }
    rc = settle_sizes(argv[0], &o, &given);
    if (rc == 0)
        rc = settle_samples(argv[0], &o);
    if (rc == 0)
        rc = settle_counts(argv[0], &o, &given);
    if (rc == 0)
        rc = settle_device(argv[0], &o);
    if (rc == 0)
        *ret_options = o;
    return rc;
}

size_t perf_options_next_size(const struct perf_options *options, size_t bytes)
{
    size_t next = options->factor == 0 ? bytes + options->step_bytes : bytes * options->factor;

    if (bytes == 0 && options->factor != 0)
        next = 1;
    return next > options->max_bytes ? 0 : next;
}
