/* SPDX-License-Identifier: Apache-2.0
 * Lists the built-in machines, each with the source of its figures. */
#include "topology/formats/known.h"

static const struct tutti_known_machine machines[] = {
    /* NVIDIA: DGX-1 with Tesla V100, system architecture (white paper). */
    {"dgx-1v", "8 V100 in a hybrid cube mesh, 4 NICs",
     "8 gpus v100 cube-mesh, 4 nics 100G, 2 cpus broadwell cores 20 threads 2, 4 switches"},
    /* NVIDIA: DGX-2 data sheet. */
    {"dgx-2", "16 V100 behind NVSwitches, 8 NICs, two levels of PCI switches",
     "16 gpus v100 nvswitch 6, 8 nics 100G, 2 cpus skylake cores 24 threads 2, "
     "8 switches under 4"},
    /* NVIDIA: DGX A100 data sheet. */
    {"dgx-a100", "8 A100 behind NVSwitches, 8 NICs, four NUMA nodes to a socket",
     "8 gpus a100 nvswitch 12, 8 nics 200G, 2 cpus rome cores 64 threads 2 nodes 4, 4 switches"},
    /* NVIDIA: DGX H100 data sheet. */
    {"dgx-h100", "8 H100 behind NVSwitches, 8 NICs as rails",
     "8 gpus h100 nvswitch 18, 8 nics 400G rails, 2 cpus sapphire cores 56 threads 2, 8 switches"},
    /* NVIDIA: HGX platform data sheet. */
    {"hgx-b200", "8 B200 behind NVSwitches, no NICs",
     "8 gpus b200 nvswitch 18, 2 cpus emerald cores 56 threads 2, 8 switches"},
    /* NVIDIA: DGX B200 data sheet. */
    {"dgx-b200-rails", "4 hosts of 8 B200 and 8 NICs, as rails",
     "4 hosts: 8 gpus b200 nvswitch 18, 8 nics 400G rails, 2 cpus emerald cores 56 threads 2, "
     "8 switches"},
    /* NVIDIA: GB200 NVL72 product page. A superchip's 900 GB/s to its CPU count both directions and
     * both its GPUs. */
    {"gb200-nvl72", "18 hosts of 4 GB200, all 72 behind one NVSwitch",
     "18 hosts: 4 gpus gb200 nvswitch 18 fabric 1 c2c 225GB/s, 4 nics 400G rails, "
     "2 cpus grace cores 72"},
    /* NVIDIA: GH200 Grace Hopper Superchip data sheet: 900 GB/s counts both directions. */
    {"gh200", "1 GPU with a coherent link to its CPU, 1 NIC",
     "1 gpu gh200 c2c 450GB/s, 1 nic 400G, 1 cpu grace cores 72"},
    /* NVIDIA: A100 PCIe product brief: three bridges join two cards with all 12 links. */
    {"4xa100-pcie", "4 A100 cards, in pairs by NVLink bridges",
     "4 gpus a100 pairs 12, 1 nic 200G, 2 cpus milan cores 64 threads 2"},
    /* NVIDIA: H100 NVL product brief: three bridges, 600 GB/s counts both directions. */
    {"2xh100-nvl", "2 H100 cards joined by NVLink bridges",
     "2 gpus h100 pairs 12, 1 nic 400G, 2 cpus genoa cores 96 threads 2"},
    /* NVIDIA: RTX A6000 data sheet; used without bridges. */
    {"4xa6000-pcie", "4 RTX A6000 that only PCI joins, slow Ethernet",
     "4 gpus a6000, 1 nic 10G ethernet, 2 cpus icelake cores 32 threads 2"},
    /* NVIDIA: GeForce RTX 4090 product page: no NVLink, PCI generation 4. */
    {"8xrtx4090-pcie", "8 RTX 4090 that only PCI joins",
     "8 gpus rtx4090, 1 nic 25G ethernet, 2 cpus genoa cores 32 threads 2"},
    /* Amazon: EC2 P4 instances page. */
    {"p4d", "8 A100 behind NVSwitches, 4 NICs of a cloud, two GPUs to each",
     "8 gpus a100 nvswitch 12, 4 nics 100G efa, 2 cpus skylake cores 24 threads 2, 4 switches"},
    /* Amazon: EC2 G4 instances page, g4dn.xlarge and g4dn.12xlarge. */
    {"unequal-vms", "a VM with 1 T4 and one with 4",
     "1 host: 1 gpu t4, 1 nic 25G efa, 1 cpu skylake cores 2 threads 2; "
     "1 host: 4 gpus t4, 1 nic 50G efa, 1 cpu skylake cores 24 threads 2"},
    /* IBM: Power System AC922 technical overview (Redpaper 5472). */
    {"ac922", "4 V100 with NVLink to one another and to POWER9, a dual-port NIC",
     "4 gpus v100 pairs 3 cpu-links 3, 1 nic 100G ports 2, 2 cpus power9 cores 20 threads 4"},
    /* Oak Ridge Leadership Computing Facility: Frontier user guide, compute nodes. */
    {"mi250x-node", "4 MI250X, which are 8 GPUs, unevenly joined; a NIC to each module",
     "8 gpus mi250x on cpu 3 1 0 2 links 0-1:4 0-2:1 0-6:2 1-3:1 1-5:1 2-3:4 2-4:2 3-7:1 4-5:4 "
     "4-6:1 5-7:1 6-7:4, 4 nics 200G slingshot near gpu 0 2 4 6, "
     "1 cpu milan cores 64 threads 2 nodes 4"},
    /* AMD: Instinct MI300X platform data sheet. */
    {"8xmi300x", "8 MI300X, each joined to each, 8 NICs as rails",
     "8 gpus mi300x mesh 1, 8 nics 400G roce rails, 2 cpus genoa cores 96 threads 2, 8 switches"},
    /* AMD: CDNA architecture (white paper): three links per GPU form hives of four. */
    {"8xmi100-2hives", "8 MI100 in two hives of 4, 1 NIC",
     "8 gpus mi100 mesh 1 hives 2, 1 nic 200G, 2 cpus rome cores 64, 4 switches"},
    {"16xmi100-4hives", "16 MI100 in four hives of 4, 4 NICs",
     "16 gpus mi100 mesh 1 hives 4, 4 nics 200G, 2 cpus rome cores 64, 8 switches under 4"},
    /* AMD: Radeon Instinct MI50 data sheet: two links per GPU form rings. */
    {"8xmi50-2rings", "8 MI50 in two rings of 4, 2 NICs",
     "8 gpus mi50 ring 1 hives 2, 2 nics 100G, 2 cpus naples cores 32, 4 switches"},
    /* Intel: Xeon Platinum 8480+ product page. */
    {"cpu-1socket", "no GPUs, one socket", "1 cpu sapphire cores 56 threads 2, 1 nic 100G"},
    {"cpu-2sockets", "no GPUs, two sockets", "2 cpus sapphire cores 56 threads 2, 1 nic 200G"},
    /* AMD: EPYC 7763 product page; eight cores share each cache. */
    {"cpu-nps4", "no GPUs, four NUMA nodes to a socket, and caches that eight cores share",
     "2 cpus milan cores 64 threads 2 nodes 4 caches 8, 1 nic 200G"},
    /* NERSC: Perlmutter architecture, GPU nodes. */
    {"4xa100-mesh", "4 A100, each joined to each, a NIC and a NUMA node to each",
     "4 gpus a100 mesh 4 on cpu 3 2 1 0, 4 nics 200G slingshot near gpu 3 2 1 0, "
     "1 cpu milan cores 64 threads 2 nodes 4"},
    /* NVIDIA: HGX A100 4-GPU, and ConnectX-6 VPI data sheets. */
    {"dual-port", "2 hosts of 4 A100, with one dual-port NIC each",
     "2 hosts: 4 gpus a100 mesh 4, 1 nic 100G ports 2, 2 cpus milan cores 32 threads 2"},
};

const struct tutti_known_machine *tutti_known_machine(size_t index)
{
    return index < sizeof machines / sizeof machines[0] ? &machines[index] : NULL;
}
