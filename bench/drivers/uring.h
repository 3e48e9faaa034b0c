/* SPDX-License-Identifier: Apache-2.0
 * The exchange of sockets.c through io_uring: one ring per process, with which all its sockets are
 * registered. */
#ifndef BENCH_URING_H
#define BENCH_URING_H

#include "lane.h"

#include <stdbool.h>

#define URING_LANES_MAX 64

/* Makes the process's ring for these lanes, whose sockets must not be O_NONBLOCK. Later calls keep
 * the ring of the first one. Returns false if the program was built without liburing, if the kernel
 * refuses, or if there are more than URING_LANES_MAX lanes. */
bool uring_open(struct lane *const *lanes, int nlanes);

/* Sends and receives all that the lanes have, at most `send_bytes` in one request. If `sleeps` is
 * true the process sleeps while it waits, and otherwise it polls. An error ends the process. */
void uring_exchange(size_t send_bytes, bool sleeps);

#endif
