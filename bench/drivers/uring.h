/* SPDX-License-Identifier: Apache-2.0
 * The exchange of sockets.c through io_uring: one ring per process, with which all its sockets are
 * registered. */
#ifndef BENCH_URING_H
#define BENCH_URING_H

#include "lane.h"

#include <stdbool.h>

#define URING_LANES_MAX 64

/* Make the process's ring for these lanes, whose sockets must not be O_NONBLOCK; once made, it
 * stays. False where liburing was not there when this was built, or where the kernel refuses. */
bool uring_open(struct lane *const *lanes, int nlanes);

/* Send and receive all that the lanes have, at most `send_bytes` in one request; `sleeps` tells how
 * to wait. An error ends the process. */
void uring_exchange(size_t send_bytes, bool sleeps);

#endif
