/* SPDX-License-Identifier: Apache-2.0
 * Sets of CPUs, and the forms that files write them in. */
#ifndef TUTTI_TOPOLOGY_INVENTORY_CPU_MASK_H
#define TUTTI_TOPOLOGY_INVENTORY_CPU_MASK_H

#include <stdbool.h>
#include <stdint.h>

/* As many as Linux can be built for. */
#define TUTTI_CPUS 8192
#define TUTTI_CPU_WORDS (TUTTI_CPUS / 32)
/* Room for any mask's written form. */
#define TUTTI_CPU_MASK_BYTES (9 * TUTTI_CPU_WORDS + 1)

struct tutti_cpu_mask {
    uint32_t words[TUTTI_CPU_WORDS]; /* CPUs 0 to 31 in the first */
};

/* "ffff0000,0000ffff" and "0xff,,0x0": words of up to 8 digits, the highest first, none is 0.
 * false: it is none, or has CPUs beyond TUTTI_CPUS. */
bool tutti_cpu_mask_parse(const char *text, struct tutti_cpu_mask *ret_mask);
/* "0-3,8": the kernel's lists; blanks may follow, and "" is no CPU. */
bool tutti_cpu_mask_parse_list(const char *text, struct tutti_cpu_mask *ret_mask);
/* Words of 8 digits, the highest that is not 0 first; "00000000" where there is none. */
void tutti_cpu_mask_write(const struct tutti_cpu_mask *mask,
                          char ret_text[TUTTI_CPU_MASK_BYTES]);

void tutti_cpu_mask_add(struct tutti_cpu_mask *mask, uint32_t cpu);
/* The first CPU of the mask from `cpu` on; TUTTI_CPUS: none. */
uint32_t tutti_cpu_mask_next(const struct tutti_cpu_mask *mask, uint32_t cpu);
uint32_t tutti_cpu_mask_count(const struct tutti_cpu_mask *mask);
bool tutti_cpu_mask_overlaps(const struct tutti_cpu_mask *a, const struct tutti_cpu_mask *b);

#endif
