/* SPDX-License-Identifier: Apache-2.0
 * Replaces guesses in an inventory by what the user says about the devices. Files often leave out
 * the products, so that rates have to be guessed: NV18 in the matrix of nvidia-smi may be Hopper's
 * or Blackwell's.
 */
#ifndef TUTTI_TOPOLOGY_FORMATS_HINTS_H
#define TUTTI_TOPOLOGY_FORMATS_HINTS_H

#include "topology/inventory/inventory.h"

#include <stdio.h>

/* The values of the options; NULL: not given. */
struct tutti_hints {
    const char *gpu; /* --gpu: a model, such as "b200" (line.h) */
    const char *nic; /* --nic: "400G", or "mlx5_bond_0=25G", or several, separated by commas */
    const char *cpu; /* --cpu: a model, such as "sapphire" */
};

static inline bool tutti_hints_are_given(const struct tutti_hints *hints)
{
    return hints->gpu != NULL || hints->nic != NULL || hints->cpu != NULL;
}

/* Sets the models of all gpus and cpus, and the rates of all ports, or of the named ones, as far as
 * the inventory only guesses them. What is told stays: `notes` then gets a line for each hint that
 * contradicts it. The rate of a port whose card is known by its id is only the highest of such
 * cards, so a hint replaces it. TUTTI_ERR_ARGUMENT: a hint is invalid, or there is no such device;
 * TUTTI_ERR_SYSTEM: no memory. */
int tutti_hints_apply(const struct tutti_hints *hints, struct tutti_inventory *inventory,
                      FILE *notes);

#endif
