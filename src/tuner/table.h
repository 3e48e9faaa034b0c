/* SPDX-License-Identifier: Apache-2.0
 * Tables of measured choices. A table is a file of rules (rules.h), in which each "on MACHINE"
 * section contains the results of tuttiCommTune on that machine. */
#ifndef TUTTI_TUNER_TABLE_H
#define TUTTI_TUNER_TABLE_H

#include "tuner/tuner.h"

/* Sizes of the two descriptions below, with their terminating zeros. */
#define TUTTI_HOST_BYTES 96
#define TUTTI_FINGERPRINT_BYTES 192

/* Describes this host in one word, by processor and cores: "x86_64_AMD_EPYC_7B13,cores=8". */
void tutti_host_describe(char ret_host[TUTTI_HOST_BYTES]);

/* Describes a communicator on such hosts: "HOST,ranks=8,nodes=2,tcp", with ",cells=4" after the
 * nodes if its hosts have cells. `transports` is one word (tutti_choices_transports). */
void tutti_fingerprint(const char *host, const struct tutti_tuner_view *view,
                       const char *transports, char ret_text[TUTTI_FINGERPRINT_BYTES]);

/* Returns a copy of `table` in which `lines` replaces the lines of one machine for some collectives
 * (bits 1 << collective). The lines of other machines, and comments, stay as they are. The caller
 * frees the copy. TUTTI_ERR_SYSTEM: out of memory. */
int tutti_table_replace(const char *table, const char *fingerprint, uint32_t collectives,
                        const char *lines, char **ret_table);

/* Writes a file atomically, by renaming a new file over the old one. TUTTI_ERR_USAGE: the file
 * cannot be written, and the message names it. */
int tutti_table_write(const char *path, const char *text);

#endif
