/* SPDX-License-Identifier: Apache-2.0
 * Verifies one operation. All ranks know the inputs and the expected result. */
#ifndef BENCH_CHECK_H
#define BENCH_CHECK_H

#include "driver.h"

/* Fills `send` and `recv`, runs `operation` once between them, and verifies the result. Sets the
 * buffers of the operation. Returns the index of the first wrong element, or SIZE_MAX. */
size_t check_operation(const struct bench_library *library, struct bench_operation *operation,
                       float *send, float *recv);

#endif
