/* SPDX-License-Identifier: Apache-2.0
 * One socket of sockets.c, and the data that it must still move in this operation. */
#ifndef BENCH_LANE_H
#define BENCH_LANE_H

#include <stddef.h>
#include <stdint.h>

struct lane {
    int fd;
    char *from, *to;            /* the next byte to send, and where the next one is received */
    size_t to_send, to_receive; /* bytes that are left */
    uint32_t unreturned;        /* zero-copy sends whose buffers the kernel still uses */
};

#endif
