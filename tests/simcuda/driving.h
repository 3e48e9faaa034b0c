/* SPDX-License-Identifier: Apache-2.0
 * Runs the tests of the simulated driver. Each has its own process and environment, and loads the
 * driver there as the library does. */
#ifndef TUTTI_TESTS_SIMCUDA_DRIVING_H
#define TUTTI_TESTS_SIMCUDA_DRIVING_H

#include "wrap/cuda.h"

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/* "NAME=value", at most eight; the rest is NULL. */
struct settings {
    const char *values[8];
};

/* Run `function` in a child. It must return without a complaint. Gives the output of the child. */
const char *passes_apart(void (*function)(void), struct settings settings);
/* The same: it must be ended by the driver, or the processor, and say that; NULL: whatever. */
void dies_apart(void (*function)(void), const char *said, struct settings settings);

/* Of a child only: a false claim ends it. */
#define MUST(claim)                                                            \
    do {                                                                       \
        if (!(claim)) {                                                        \
            fprintf(stderr, "%s:%d: %s is not so\n", __FILE__, __LINE__, #claim); \
            _exit(9);                                                          \
        }                                                                      \
    } while (0)
/* A call of the driver gives this code. */
#define GIVES(code, call) gives((code), (call), #call, __FILE__, __LINE__)
#define WORKS(call) GIVES(TUTTI_CU_SUCCESS, call)
void gives(int wanted, int got, const char *call, const char *file, int line);

/* The driver; loaded at the first call. */
const struct tutti_cu_driver *driver(void);
/* The primary context of a device, retained and made current. */
struct tutti_cu_context *use_device(int ordinal);
/* A kernel of test_kernels.cu in the current context. */
struct tutti_cu_function *kernel(const char *name);
/* One launch, of one dimension; the argument is copied. */
int launch(const char *name, unsigned blocks, unsigned threads, struct tutti_cu_stream *stream,
           void *argument);
/* Device memory, full of zeros. */
uint64_t *zeros(size_t size_bytes);
uint64_t peek(const uint64_t *at);

/* Calls that the library does not use, but callers do. */
struct graph_calls {
    int (*begin)(struct tutti_cu_stream *stream, int mode);
    int (*end)(struct tutti_cu_stream *stream, struct tutti_cu_graph **ret_graph);
    int (*instantiate)(struct tutti_cu_exec **ret_exec, struct tutti_cu_graph *graph,
                       unsigned long long flags);
    int (*launch)(struct tutti_cu_exec *exec, struct tutti_cu_stream *stream);
    int (*destroy_exec)(struct tutti_cu_exec *exec);
    int (*destroy)(struct tutti_cu_graph *graph);
};
const struct graph_calls *graphs(void);

#endif
