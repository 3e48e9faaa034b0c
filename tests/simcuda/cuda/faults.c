/* SPDX-License-Identifier: Apache-2.0
 * Injects faults on demand. */
#include "simcuda/cuda/faults.h"

#include "simcuda/cuda/state.h"
#include "simcuda/die.h"
#include "simcuda/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_faults sim_faults;

static int64_t nallocations;

/* A fault with up to three numbers; how many there are. */
static int numbers_of(const char *text, const char *name, unsigned ret_numbers[3])
{
    size_t length = strlen(name);

    if (strncmp(text, name, length) != 0 || text[length] != '=')
        return 0;
    return sscanf(text + length + 1, "%u:%u:%u", &ret_numbers[0], &ret_numbers[1], &ret_numbers[2]);
}

static bool is_device(unsigned number)
{
    return number < SIM_DEVICES;
}

static void add_pair(uint64_t lists[], unsigned device, unsigned peer)
{
    lists[device] |= (uint64_t)1 << peer;
    lists[peer] |= (uint64_t)1 << device;
}

/* One of two devices. */
static bool read_with_pair(const char *text)
{
    static const struct {
        const char *name;
        uint64_t *lists;
    } faults[] = {{"no-peer", sim_faults.no_peers}, {"no-nvlink", sim_faults.no_nvlinks},
                  {"torn-lines", sim_faults.torn_lines}};

    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        unsigned numbers[3];

        if (numbers_of(text, faults[i].name, numbers) == 2 && is_device(numbers[0]) &&
            is_device(numbers[1])) {
            add_pair(faults[i].lists, numbers[0], numbers[1]);
            return true;
        }
    }
    return false;
}

static bool read_with_numbers(const char *text)
{
    unsigned numbers[3] = {0, 0, TUTTI_CU_LAUNCH_FAILED};

    if (numbers_of(text, "lost", numbers) >= 2 && is_device(numbers[0])) {
        sim_faults.lost_device = (int)numbers[0];
        sim_faults.lost_after = numbers[1];
        sim_faults.lost_code = (int)numbers[2];
    } else if (numbers_of(text, "oom", numbers) == 1) {
        sim_faults.failing_allocation = numbers[0];
    } else if (numbers_of(text, "corrupt-copy", numbers) == 2) {
        sim_faults.corrupt_from = (int)numbers[0];
        sim_faults.corrupt_to = (int)numbers[1];
    } else if (numbers_of(text, "slow-copy", numbers) == 3 && numbers[2] > 0) {
        sim_faults.slow_from = (int)numbers[0];
        sim_faults.slow_to = (int)numbers[1];
        sim_faults.slow_mb_per_s = numbers[2];
    } else if (numbers_of(text, "slow-launch", numbers) == 1) {
        sim_faults.slow_launch_us = numbers[0];
    } else {
        return false;
    }
    return true;
}

static void read_fault(const char *text)
{
    if (strcmp(text, "no-ipc") == 0)
        sim_faults.has_no_ipc = true;
    else if (strcmp(text, "no-vmm-export") == 0)
        sim_faults.has_no_vmm_export = true;
    else if (strcmp(text, "torn-lines") == 0)
        sim_lines_set_torn(true);
    else if (!read_with_pair(text) && !read_with_numbers(text))
        sim_die("SIMCUDA_FAULTS: %s is no fault", text);
}

void sim_faults_read(void)
{
    const char *all = getenv("SIMCUDA_FAULTS");
    char *text = all != NULL ? strdup(all) : NULL, *rest;

    sim_faults = (struct sim_faults){.lost_device = -1, .failing_allocation = -1,
                                     .corrupt_from = -1, .corrupt_to = -1,
                                     .slow_from = -1, .slow_to = -1};
    if (text == NULL)
        return;
    for (char *at = strtok_r(text, ",", &rest); at != NULL; at = strtok_r(NULL, ",", &rest))
        read_fault(at);
    free(text);
}

bool sim_faults_no_peer(int device, int peer)
{
    return sim_faults.no_peers[device] >> peer & 1;
}

bool sim_faults_no_nvlink(int device, int peer)
{
    return sim_faults.no_nvlinks[device] >> peer & 1;
}

bool sim_faults_tears_lines(int device, int peer)
{
    return sim_faults.torn_lines[device] >> peer & 1;
}

bool sim_faults_allocation(void)
{
    nallocations++;
    return sim_faults.failing_allocation == 0 || sim_faults.failing_allocation == nallocations;
}
