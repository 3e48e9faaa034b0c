/* SPDX-License-Identifier: Apache-2.0
 * Tables of measured choices: a file of rules (rules.h) in which each "on MACHINE" section holds
 * what tuttiCommTune has measured there. */
#ifndef TUTTI_TUNER_TABLE_H
#define TUTTI_TUNER_TABLE_H

#include "tuner/tuner.h"

#define TUTTI_HOST_BYTES 96
#define TUTTI_FINGERPRINT_BYTES 192

/* This host in one word: processor and cores, "x86_64_AMD_EPYC_7B13,cores=8". */
void tutti_host_describe(char ret_host[TUTTI_HOST_BYTES]);

/* A communicator on such hosts: "HOST,ranks=8,nodes=2,tcp". `transports` in one word. */
void tutti_fingerprint(const char *host, const struct tutti_tuner_view *view,
                       const char *transports, char ret_text[TUTTI_FINGERPRINT_BYTES]);

/* `table` with the lines of one machine and some collectives (bits 1 << collective) replaced by
 * `lines`; what other machines have, and comments, stay as they are. The caller frees it.
 * TUTTI_ERR_SYSTEM. */
int tutti_table_replace(const char *table, const char *fingerprint, uint32_t collectives,
                        const char *lines, char **ret_table);

/* Write a file as a whole: it is the old one, or the new one, but never half of either.
 * TUTTI_ERR_USAGE names it. */
int tutti_table_write(const char *path, const char *text);

#endif
