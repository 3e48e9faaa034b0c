/* SPDX-License-Identifier: Apache-2.0
 * Reads, writes and combines sets of CPUs. */
#include "topology/inventory/cpu_mask.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parses one word, up to a comma or the end. Returns the position behind the word; NULL: the text
 * is no word. */
static const char *parse_word(const char *at, uint32_t *ret_word)
{
    size_t digits;

    if (at[0] == '0' && at[1] == 'x')
        at += 2;
    digits = strspn(at, "0123456789abcdefABCDEF");
    if (digits > 8 || (at[digits] != ',' && at[digits] != '\0'))
        return NULL;
    *ret_word = digits == 0 ? 0 : (uint32_t)strtoul(at, NULL, 16);
    return at + digits;
}

bool tutti_cpumask_parse(const char *text, struct tutti_cpumask *ret_mask)
{
    struct tutti_cpumask mask = {{0}};
    size_t nwords = 1;

    if (*text == '\0')
        return false;
    for (const char *at = text; *at != '\0'; at++)
        nwords += *at == ',';
    for (size_t index = nwords; index-- > 0;) {
        bool is_beyond = index >= TUTTI_CPU_WORDS;
        uint32_t word;

        text = parse_word(text, &word);
        if (text == NULL || (is_beyond && word != 0))
            return false;
        if (!is_beyond)
            mask.words[index] = word;
        text += *text == ','; /* skips a comma */
    }
    *ret_mask = mask;
    return true;
}

/* Parses a decimal CPU number. Returns the position behind the number; NULL: not a CPU number. */
static const char *parse_cpu(const char *at, uint32_t *ret_cpu)
{
    size_t digits = strspn(at, "0123456789");
    unsigned long cpu = digits == 0 || digits > 8 ? TUTTI_CPUS : strtoul(at, NULL, 10);

    if (cpu >= TUTTI_CPUS)
        return NULL;
    *ret_cpu = (uint32_t)cpu;
    return at + digits;
}

/* Returns true at the end of a list: the end of the text, or a blank. */
static bool is_end_of_list(char at)
{
    return at == '\0' || at == ' ' || at == '\n';
}

bool tutti_cpumask_parse_list(const char *text, struct tutti_cpumask *ret_mask)
{
    struct tutti_cpumask mask = {{0}};

    while (!is_end_of_list(*text)) {
        uint32_t first, last;

        text = parse_cpu(text, &first);
        last = first;
        if (text != NULL && *text == '-')
            text = parse_cpu(text + 1, &last);
        if (text == NULL || last < first || (*text != ',' && !is_end_of_list(*text)))
            return false;
        for (uint32_t cpu = first; cpu <= last; cpu++)
            tutti_cpumask_add(&mask, cpu);
        text += *text == ','; /* skips a comma */
    }
    if (text[strspn(text, " \n")] != '\0')
        return false;
    *ret_mask = mask;
    return true;
}

void tutti_cpumask_write(const struct tutti_cpumask *mask,
                         char ret_text[TUTTI_CPUMASK_BYTES])
{
    size_t used = 0, highest = TUTTI_CPU_WORDS - 1;

    while (highest > 0 && mask->words[highest] == 0)
        highest--;
    for (size_t i = highest + 1; i-- > 0; )
        used += (size_t)snprintf(ret_text + used, TUTTI_CPUMASK_BYTES - used,
                                 i == highest ? "%08x" : ",%08x", mask->words[i]);
}

void tutti_cpumask_add(struct tutti_cpumask *mask, uint32_t cpu)
{
    mask->words[cpu / 32] |= 1u << cpu % 32;
}

uint32_t tutti_cpumask_next(const struct tutti_cpumask *mask, uint32_t cpu)
{
    while (cpu < TUTTI_CPUS) {
        uint32_t rest = mask->words[cpu / 32] >> cpu % 32;

        if (rest != 0)
            return cpu + (uint32_t)__builtin_ctz(rest);
        cpu = (cpu / 32 + 1) * 32;
    }
    return TUTTI_CPUS;
}

uint32_t tutti_cpumask_count(const struct tutti_cpumask *mask)
{
    uint32_t count = 0;

    for (size_t i = 0; i < TUTTI_CPU_WORDS; i++)
        count += (uint32_t)__builtin_popcount(mask->words[i]);
    return count;
}

bool tutti_cpumask_overlaps(const struct tutti_cpumask *a, const struct tutti_cpumask *b)
{
    for (size_t i = 0; i < TUTTI_CPU_WORDS; i++)
        if ((a->words[i] & b->words[i]) != 0)
            return true;
    return false;
}
