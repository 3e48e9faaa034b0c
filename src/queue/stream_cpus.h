/* SPDX-License-Identifier: Apache-2.0
 * Where the threads of host streams run: TUTTI_STREAM_CPUS. */
#ifndef TUTTI_QUEUE_STREAM_CPUS_H
#define TUTTI_QUEUE_STREAM_CPUS_H

#include <pthread.h>

/* Start `run(argument)` on a thread of that name and place. TUTTI_ERR_USAGE: the variable is no
 * list of CPUs, or none of them is this process's. */
int tutti_stream_thread(void *(*run)(void *), void *argument, pthread_t *ret_thread);

#endif
