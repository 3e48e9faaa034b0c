/* SPDX-License-Identifier: Apache-2.0
 * Threads of host streams and mailboxes. They run on the CPUs that TUTTI_STREAM_CPUS names. */
#ifndef TUTTI_QUEUE_STREAM_CPUS_H
#define TUTTI_QUEUE_STREAM_CPUS_H

#include <pthread.h>

/* Starts `run(argument)` on a new thread named "tutti-stream". If the variable is set, the thread
 * runs only on the CPUs that it names. The caller joins the thread. TUTTI_ERR_USAGE: the variable
 * is not a list of CPUs, or this process may run on none of them. TUTTI_ERR_SYSTEM: the thread
 * cannot be started, or out of memory. */
int tutti_stream_thread(void *(*run)(void *), void *argument, pthread_t *ret_thread);

#endif
