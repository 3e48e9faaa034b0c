/* SPDX-License-Identifier: Apache-2.0
 * The CPUs that the threads of host streams run on: TUTTI_STREAM_CPUS. */
#ifndef TUTTI_QUEUE_STREAM_CPUS_H
#define TUTTI_QUEUE_STREAM_CPUS_H

#include <pthread.h>

/* Starts `run(argument)` on a new thread, named "tutti-stream", that runs on these CPUs only. The
 * caller joins it. TUTTI_ERR_USAGE: the variable is no list of CPUs, or this process may run on
 * none of them. TUTTI_ERR_SYSTEM: no thread, or out of memory. */
int tutti_stream_thread(void *(*run)(void *), void *argument, pthread_t *ret_thread);

#endif
