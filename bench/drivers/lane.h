/* SPDX-License-Identifier: Apache-2.0
 * One socket of sockets.c, and the data that it must still move in this operation. */
#ifndef BENCH_LANE_H
#define BENCH_LANE_H

#include <stddef.h>
#include <stdint.h>

struct lane {
    int fd;
    char *from, *to;
    size_t to_send, to_receive;
    uint32_t unreturned; /* sends whose buffers the kernel still has */
};

#endif
