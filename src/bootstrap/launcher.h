/* SPDX-License-Identifier: Apache-2.0
 * Internals of the launcher detection (launcher.c). For launchers that give no address, the
 * functions here find a place at which ranks can meet: a host and a port, or a socket
 * (launcher_job.c). */
#ifndef TUTTI_BOOTSTRAP_LAUNCHER_H
#define TUTTI_BOOTSTRAP_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>

/* Get the first host of a Slurm node list, such as "node01" of "node[01-03,07],gpu5". False: the
 * text is not a node list, or the host does not fit into `size` bytes. */
bool tutti_slurm_first_host(const char *nodelist, char *ret_host, size_t size);

/* Return a port from 20000 to 59999, computed from the numbers of the job and its step alone. */
unsigned tutti_launch_port(unsigned long job, unsigned long step);

/* Write "PID.START" of the nearest ancestor process that does not have `variable` in its
 * environment. START is its start time in ticks since boot. This ancestor is the launcher, even if
 * it starts ranks through scripts. The text is the same for all ranks that one launcher has
 * started, and no other process has the same text until the host is rebooted.
 * False: /proc does not give the facts, or no ancestor is found. */
bool tutti_launch_ancestor(const char *variable, char *ret_identity, size_t size);

/* Write "parent PID.START" of the parent process. START is 0 if /proc does not give it. This
 * function and the next one cut a text that does not fit into `size` bytes. */
void tutti_launch_parent(char *ret_text, size_t size);

/* Write the "unix:" URL of a socket on this host for the job with this identity. */
void tutti_launch_socket(const char *identity, char *ret_url, size_t size);

#endif
