/* SPDX-License-Identifier: Apache-2.0
 * Provides sets of CPUs, and reads and writes the notations that files use for these sets. */
#ifndef TUTTI_TOPOLOGY_INVENTORY_CPU_MASK_H
#define TUTTI_TOPOLOGY_INVENTORY_CPU_MASK_H

#include <stdbool.h>
#include <stdint.h>

/* The largest number of CPUs that Linux can be built for, which is the capacity of a mask. */
#define TUTTI_CPUS 8192
#define TUTTI_CPU_WORDS (TUTTI_CPUS / 32)
/* The bytes of the longest written mask, with its terminating zero. */
#define TUTTI_CPUMASK_BYTES (9 * TUTTI_CPU_WORDS + 1)

struct tutti_cpumask {
    uint32_t words[TUTTI_CPU_WORDS]; /* CPU c is bit c % 32 of word c / 32 */
};

/* Parses "ffff0000,0000ffff" or "0xff,,0x0": words of up to 8 hexadecimal digits, highest first; an
 * empty word is 0. Returns false if the text is no mask, or has CPUs beyond TUTTI_CPUS. */
bool tutti_cpumask_parse(const char *text, struct tutti_cpumask *ret_mask);
/* Parses a list as the kernel writes it, such as "0-3,8". Trailing blanks are allowed; "" is the
 * empty set. Returns false if the text is no list, or has CPUs beyond TUTTI_CPUS. */
bool tutti_cpumask_parse_list(const char *text, struct tutti_cpumask *ret_mask);
/* Writes words of 8 digits, beginning with the highest word that is not 0. The empty set becomes
 * "00000000". */
void tutti_cpumask_write(const struct tutti_cpumask *mask,
                         char ret_text[TUTTI_CPUMASK_BYTES]);

/* Adds a CPU, which must be below TUTTI_CPUS. */
void tutti_cpumask_add(struct tutti_cpumask *mask, uint32_t cpu);
/* Returns the first CPU of the mask that is at least `cpu`; TUTTI_CPUS: none. */
uint32_t tutti_cpumask_next(const struct tutti_cpumask *mask, uint32_t cpu);
/* Returns the number of CPUs in the mask. */
uint32_t tutti_cpumask_count(const struct tutti_cpumask *mask);
/* Returns true if some CPU is in both masks. */
bool tutti_cpumask_overlaps(const struct tutti_cpumask *a, const struct tutti_cpumask *b);

#endif
