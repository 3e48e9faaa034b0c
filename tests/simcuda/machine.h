/* SPDX-License-Identifier: Apache-2.0
 * The machine that the simulated NVIDIA driver runs: the GPUs of a topology file. */
#ifndef TUTTI_TESTS_SIMCUDA_MACHINE_H
#define TUTTI_TESTS_SIMCUDA_MACHINE_H

#include "simcuda/die.h"
#include "topology/inventory/inventory.h"

#include <stdbool.h>
#include <stdint.h>

#define SIM_GPUS 64
#define SIM_LINKS 36

struct sim_link {
    int64_t target; /* a bus id */
    int64_t class;  /* of what is there */
};

struct sim_gpu {
    uint32_t index;    /* the driver's number */
    uint32_t gpu, pci; /* in the inventory */
    struct sim_link links[SIM_LINKS];
    uint32_t nlinks;
    uint32_t c2c; /* in the inventory; TUTTI_NO_DEVICE: none */
};

struct sim_machine {
    struct tutti_inventory *inventory;
    struct sim_gpu gpus[SIM_GPUS];
    uint32_t ngpus;
};

/* Read the file that TUTTI_SIM_TOPOLOGY names, NCCL's XML. Where that does not work, the process
 * ends with a line that says why: a test without its machine is wrong. */
void sim_machine_load(struct sim_machine *ret_machine);
void sim_machine_free(struct sim_machine *machine);

/* The code that TUTTI_SIM_<driver>_FAULT="function:code[@gpu],..." gives to a call of a function
 * for a GPU; gpu -1: of none. 0: the call works. */
int sim_fault(const char *driver, const char *function, int gpu);

#endif
