/* SPDX-License-Identifier: Apache-2.0
 * gpu_kernels_bench measures the library's kernels on one GPU, beside the driver. */
#include "empty.h"
#include "local.h"

#include "device/cuda/cuda_image.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: gpu_kernels_bench [options]\n"
    "\n"
    "  --only WHAT     load, empty, reduce or copy (all but copy)\n"
    "  --min BYTES     smallest source (1K)\n"
    "  --max BYTES     largest (1G)\n"
    "  --factor N      ratio of one size to the one before (4); a power of two, as --min\n"
    "  --rounds N      samples of each contender (7)\n"
    "  --sample-us N   length of a sample; 0: one launch (1000)\n"
    "  --threads N     threads that launch empty kernels at the same time (8)\n"
    "  --device N      the GPU (0)\n"
    "  --json FILE     JSON lines, appended\n";

struct settings {
    const char *only, *json_path;
    int device;
    uint32_t threads;
    struct bench_local local;
};

static size_t parse(const char *option, const char *text)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    if (*end == 'K' || *end == 'M' || *end == 'G')
        value <<= *end == 'K' ? 10 : *end == 'M' ? 20 : 30, end++;
    if (end == text || *end != '\0')
        bench_end("--%s: '%s' is not a number", option, text);
    return (size_t)value;
}

static bool is_power_of_two(size_t value)
{
    return value > 1 && (value & (value - 1)) == 0;
}

static struct settings parse_all(int argc, char **argv)
{
    static const struct option options[] = {
        {"only", 1, NULL, 'o'}, {"min", 1, NULL, 'b'}, {"max", 1, NULL, 'e'},
        {"factor", 1, NULL, 'f'}, {"rounds", 1, NULL, 'r'}, {"sample-us", 1, NULL, 's'},
        {"threads", 1, NULL, 't'}, {"device", 1, NULL, 'd'}, {"json", 1, NULL, 'J'},
        {"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};
    struct settings set = {.only = "", .threads = 8,
                           .local = {.min_bytes = 1 << 10, .max_bytes = 1 << 30, .factor = 4,
                                     .rounds = 7, .sample_us = 1000}};
    int letter, index = 0;

    while ((letter = getopt_long(argc, argv, "h", options, &index)) != -1) {
        const char *name = options[index].name;

        switch (letter) {
        case 'o': set.only = optarg; break;
        case 'J': set.json_path = optarg; break;
        case 'b': set.local.min_bytes = parse(name, optarg); break;
        case 'e': set.local.max_bytes = parse(name, optarg); break;
        case 'f': set.local.factor = parse(name, optarg); break;
        case 'r': set.local.rounds = (uint32_t)parse(name, optarg); break;
        case 's': set.local.sample_us = (double)parse(name, optarg); break;
        case 't': set.threads = (uint32_t)parse(name, optarg); break;
        case 'd': set.device = (int)parse(name, optarg); break;
        case 'h': fputs(help, stdout); exit(0);
        default: fputs(help, stderr); exit(2);
        }
    }
    if (!is_power_of_two(set.local.factor) || !is_power_of_two(set.local.min_bytes) ||
        set.local.min_bytes < 1024 || set.local.max_bytes < set.local.min_bytes)
        bench_end("--min and --factor must be powers of two, --min at least 1K, and --max not less "
                  "than --min");
    if (set.local.rounds < 1 || set.threads < 1)
        bench_end("--rounds and --threads must be at least 1");
    if (*set.only != '\0' && strstr(" load empty reduce copy ", set.only) == NULL)
        bench_end("--only: '%s' is none of load, empty, reduce, copy", set.only);
    set.local.is_copy_only = strcmp(set.only, "copy") == 0;
    return set;
}

/* Reports the time to load the kernels. A driver that loads lazily loads a kernel at its first
 * launch, which is not in this time. */
static void report_load(const struct bench_gpu *gpu, FILE *json)
{
    printf("# %s: %u multiprocessors, blocks of %u threads\n"
           "# kernels built in: %zu bytes, loaded in %.1f ms\n",
           gpu->name, gpu->multiprocessors, gpu->threads, tutti_kernel_image_bytes, gpu->load_ms);
    if (json != NULL)
        fprintf(json, "{\"what\": \"load\", \"gpu\": \"%s\", \"multiprocessors\": %u, "
                "\"image_bytes\": %zu, \"load_ms\": %.3f}\n", gpu->name, gpu->multiprocessors,
                tutti_kernel_image_bytes, gpu->load_ms);
}

static bool is_wanted(const struct settings *set, const char *what)
{
    return *set->only == '\0' || strcmp(set->only, what) == 0;
}

int main(int argc, char **argv)
{
    struct settings set = parse_all(argc, argv);
    FILE *json = set.json_path != NULL ? fopen(set.json_path, "a") : NULL;
    struct bench_gpu gpu;
    int wrong = 0;

    if (set.json_path != NULL && json == NULL)
        bench_end("cannot write %s", set.json_path);
    bench_gpu_open(set.device, &gpu);
    if (is_wanted(&set, "load"))
        report_load(&gpu, json);
    if (is_wanted(&set, "empty"))
        bench_empty(&gpu, set.threads, set.local.rounds, json);
    if (is_wanted(&set, "reduce") || set.local.is_copy_only)
        wrong = bench_local(&gpu, &set.local, json);
    bench_gpu_close(&gpu);
    if (json != NULL && fclose(json) != 0)
        bench_end("cannot finish %s", set.json_path);
    if (wrong > 0)
        fprintf(stderr, "gpu_kernels_bench: %d results are wrong\n", wrong);
    return wrong > 0;
}
