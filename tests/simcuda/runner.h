/* SPDX-License-Identifier: Apache-2.0
 * Runs kernels for tests: on the machine of fibers without a driver (runner_machine.c), or by a
 * driver, simulated or real (runner_driver.c). Each test program is linked with one of the two. */
#ifndef TUTTI_TESTS_SIMCUDA_RUNNER_H
#define TUTTI_TESTS_SIMCUDA_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether there is anything to run on; if not, the test says so and is skipped. */
bool runner_open(void);
void runner_close(void);

/* The device's memory: its address there, aligned to 256 bytes. One piece at a time. */
uint64_t runner_memory(size_t size_bytes);
void runner_upload(size_t at, const void *from, size_t size_bytes);
void runner_download(void *to, size_t at, size_t size_bytes);

/* Runs a kernel to its end. The argument is one struct, aligned to 16. */
void runner_launch(const char *kernel, uint32_t blocks, uint32_t threads, const void *argument,
                   size_t argument_bytes);

/* How many blocks and threads a launch had best have: a GPU wants many, fibers are dear. */
uint32_t runner_most_blocks(void);
uint32_t runner_most_threads(void);

#endif
