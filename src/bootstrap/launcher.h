/* SPDX-License-Identifier: Apache-2.0
 * What the launchers' detectors (launcher.c) need to know about jobs (launcher_job.c). */
#ifndef TUTTI_BOOTSTRAP_LAUNCHER_H
#define TUTTI_BOOTSTRAP_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>

/* First host of a Slurm node list, such as "node01" of "node[01-03,07],gpu5". False when the
 * text is no node list. */
bool tutti_slurm_first_host(const char *nodelist, char *ret_host, size_t size);

/* A port from 20000 to 59999 that all ranks of a job step compute alike. */
unsigned tutti_job_port(unsigned long job, unsigned long step);

/* "PID.START" of the nearest ancestor that does not have `variable` in its environment: the
 * launcher, also when ranks are started through scripts. It is the same for all ranks that one
 * launcher process has started, and never again another's. False when /proc does not tell. */
bool tutti_job_ancestor(const char *variable, char *ret_identity, size_t size);

/* "parent PID.START", or what of it can be known. */
void tutti_job_parent(char *ret_text, size_t size);

/* URL of a Unix socket of this host for the job named `identity`. */
void tutti_job_socket(const char *identity, char *ret_url, size_t size);

#endif
