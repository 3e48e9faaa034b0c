/* SPDX-License-Identifier: Apache-2.0
 * The rates that are assumed for machines that were not described. */
#include "tuner/assumed.h"

/* Within one host, message rates were measured between two processes (bench/results/latest.txt,
 * rows sendrecv with shm and tcp). The rates of reductions and copies are fitted to measured
 * all-reduces over sockets. With these rates, the predicted times of the two algorithms cross at 64
 * KiB, and equal the measured times beyond the caches.
 *
 * Between hosts nothing was measured. There a message is assumed to cost as much time as over local
 * sockets, and the bandwidth is that of the interfaces. If the kernel does not report it, the
 * bandwidth of 10 Gbit/s Ethernet is assumed.
 *
 * Between the cells of a host nothing was measured either. A link between two CPU sockets usually
 * carries some tens of GB/s each way, and adds some tens of nanoseconds to a load. */
static const struct tutti_rate by_memory = {.overhead_s = 0.3e-6, .bytes_per_s = 10e9};
static const struct tutti_rate by_loopback = {.overhead_s = 5.6e-6, .bytes_per_s = 5e9};
static const struct tutti_rate by_network = {.overhead_s = 5.6e-6, .latency_s = 10e-6,
                                             .bytes_per_s = 1.25e9};

void tutti_tuner_assume_machine(bool shares_memory, uint32_t cores, uint32_t mbits,
                                struct tutti_machine *ret_machine)
{
    struct tutti_rate network = by_network;

    if (mbits > 0)
        network.bytes_per_s = mbits * 1e6 / 8;
    *ret_machine = (struct tutti_machine){
        .level = {shares_memory ? by_memory : by_loopback, network, network},
        .bridge_latency_s = shares_memory ? 100e-9 : 0,
        .bridge_bytes_per_s = shares_memory ? 40e9 : 0,
        .cores = cores,
        .nics = 1,
        .reduce_bytes_per_s = 14e9,
        .reduce_beyond = {{8 << 20, 6e9}},
        .copy_bytes_per_s = 14e9,
        .copy_beyond = {{8 << 20, 6e9}},
    };
}
