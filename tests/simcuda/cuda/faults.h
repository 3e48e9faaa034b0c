/* SPDX-License-Identifier: Apache-2.0
 * Injects faults on demand. SIMCUDA_FAULTS is a list of these, separated by commas:
 *
 *   lost=DEVICE:N[:CODE]     the device is lost when its (N+1)th kernel or host function begins:
 *                            that one and all others there end, and calls return CODE (719) from
 *                            then on
 *   oom=N                    the Nth allocation of device memory fails; with N 0: all of them
 *   no-peer=A:B              devices A and B cannot use each other's memory
 *   no-ipc                   handles of other processes cannot be opened
 *   no-vmm-export            memory cannot be exported as a file descriptor
 *   no-nvlink=A:B            there is no NVLink between devices A and B: lines are not whole
 *   torn-lines               lines are whole nowhere
 *   torn-lines=A:B           or not between devices A and B, though there is an NVLink
 *   corrupt-copy=A:B         copies from device A to device B get one byte wrong
 *   slow-copy=A:B:MB         copies from device A to device B take as long as with so many MB/s
 *   slow-launch=US           each kernel begins so many microseconds late */
#ifndef TUTTI_TESTS_SIMCUDA_CUDA_FAULTS_H
#define TUTTI_TESTS_SIMCUDA_CUDA_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

struct sim_faults {
    int lost_device; /* -1: none */
    uint64_t lost_after;
    int lost_code;
    int64_t failing_allocation; /* -1: none; 0: all */
    /* For each device some others, by bits: those that it cannot use, those to which it has no
     * NVLink, and those between which and it lines are not whole. */
    uint64_t no_peers[64], no_nvlinks[64], torn_lines[64];
    int corrupt_from, corrupt_to; /* -1: none */
    int slow_from, slow_to;       /* -1: none */
    uint32_t slow_mb_per_s;
    uint32_t slow_launch_us;
    bool has_no_ipc, has_no_vmm_export;
};

/* Unchanging after cuInit. */
extern struct sim_faults sim_faults;

/* From the environment; a fault that is none is a loud end. */
void sim_faults_read(void);
bool sim_faults_no_peer(int device, int peer);
bool sim_faults_no_nvlink(int device, int peer);
bool sim_faults_tears_lines(int device, int peer);
/* Whether this allocation is one that fails; counts it. With the driver's lock. */
bool sim_faults_allocation(void);

#endif
