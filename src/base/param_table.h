/* SPDX-License-Identifier: Apache-2.0
 * The table of environment variables: id, name, default, range or choices, help.
 * docs/environment.md is printed from it. Included with the macros defined; no guard.
 */
TUTTI_PARAM_CHOICE(DEBUG, "TUTTI_DEBUG", "error", "none|error|warn|info|debug|trace",
    "What is logged to stderr: failures of calls from `warn`, one line per communicator from "
    "`info`, per connection from `debug`, per operation from `trace`.")

TUTTI_PARAM_INT(INIT_TIMEOUT_MS, "TUTTI_INIT_TIMEOUT_MS", "120000", 1, INT32_MAX,
    "Deadline for forming a communicator, in milliseconds. Overrides `initTimeoutMs`.")
TUTTI_PARAM_INT(TIMEOUT_MS, "TUTTI_TIMEOUT_MS", "1800000", 0, INT32_MAX,
    "Deadline for one operation, in milliseconds; 0 is none. Overrides `timeoutMs`.")

TUTTI_PARAM_TEXT(SOCKET_IFNAME, "TUTTI_SOCKET_IFNAME", "",
    "Network interfaces to use: comma-separated prefixes (`eth,ib0`), `=name` for an exact name, "
    "a leading `^` to exclude (`^docker,lo`). Default: every interface that is up, the fastest "
    "first; loopback only when all ranks are on one host.")
TUTTI_PARAM_CHOICE(SOCKET_FAMILY, "TUTTI_SOCKET_FAMILY", "any", "any|ipv4|ipv6",
    "Address family of TCP connections.")
TUTTI_PARAM_INT(SOCKETS_PER_PEER, "TUTTI_SOCKETS_PER_PEER", "0", 0, 16,
    "TCP sockets per pair of ranks and channel; 0: one within a host; between hosts two, four "
    "where the interfaces of both have 25 Gbit/s or more, eight from 100 Gbit/s on.")
TUTTI_PARAM_INT(SOCKET_BUFFER, "TUTTI_SOCKET_BUFFER", "0", 0, 1073741824,
    "Kernel send and receive buffer of each TCP socket in bytes; 0 leaves it to the kernel.")

TUTTI_PARAM_TEXT(TRANSPORTS, "TUTTI_TRANSPORTS", "",
    "Transports that may be used, comma-separated, from `self`, `shm`, `cma`, `tcp`. Default: all.")
TUTTI_PARAM_TEXT(HOST_ID, "TUTTI_HOST_ID", "",
    "Identity of this host. Ranks with equal identities try shared memory. Default: the kernel's "
    "boot id and the network namespace.")
TUTTI_PARAM_TEXT(ALGORITHM, "TUTTI_ALGORITHM", "",
    "Algorithm per collective, such as `allreduce:hybrid[doublings=3],broadcast:chain`. Default: "
    "the tuner's choice. Rank 0's counts for all ranks, as for the next three.")
TUTTI_PARAM_TEXT(TUNE, "TUTTI_TUNE", "",
    "Rules for choosing algorithms by size and number of ranks: a file, or the rules themselves, "
    "such as `allreduce 0-64K recursive_doubling; allreduce 64K-inf ring`. See "
    "[tuning](tuning.md).")
TUTTI_PARAM_TEXT(TUNE_TABLE, "TUTTI_TUNE_TABLE", "",
    "File of measured choices, as `tuttiCommTune` and `--tune` of the measuring programs write it.")
TUTTI_PARAM_TEXT(MACHINE, "TUTTI_MACHINE", "",
    "The machine, for the prices that choices go by: the name of a known one (`ethernet`), a file, "
    "or a description such as `level top overhead 5us bandwidth 50GB/s`. Default: coarse "
    "assumptions. See [tuning](tuning.md).")
TUTTI_PARAM_TEXT(CUDA_LIBRARY, "TUTTI_CUDA_LIBRARY", "",
    "The CUDA driver. Default: `libcuda.so.1`.")
TUTTI_PARAM_TEXT(CUDA_KERNELS, "TUTTI_CUDA_KERNELS", "",
    "A file of kernels (fat binary, cubin or PTX) to use in place of those built in.")
TUTTI_PARAM_INT(GPU_MEMORY, "TUTTI_GPU_MEMORY_BYTES", "64M", 256 << 10, INT64_C(1) << 34,
    "Memory of its GPU that each rank of a communicator keeps for what ranks send each other.")
TUTTI_PARAM_INT(GPU_COPY_ENGINES, "TUTTI_GPU_COPY_ENGINE_BYTES", "0", 0, INT64_C(1) << 40,
    "Collectives on GPUs that only copy are left to the copy engines where ranks send each other "
    "at least so much: multiprocessors stay free. 0: kernels copy. The greatest of all ranks' "
    "values counts, and 0 on any of them. See [ranks on GPUs](gpu.md#copy-engines).")
TUTTI_PARAM_TEXT(NVML_LIBRARY, "TUTTI_NVML_LIBRARY", "",
    "NVIDIA's management library, by which GPUs and their NVLinks are found. Default: "
    "`libnvidia-ml.so.1`, which comes with the driver.")
TUTTI_PARAM_TEXT(IBVERBS_LIBRARY, "TUTTI_IBVERBS_LIBRARY", "",
    "The library by which RDMA devices are found. Default: `libibverbs.so.1`.")
TUTTI_PARAM_TEXT(SCHEDULE, "TUTTI_SCHEDULE", "",
    "[Schedule files](schedule-files.md) to run matching calls by, separated by `:`; each may be "
    "limited to calls of a size: `allreduce[64K-1M]=FILE`. Rank 0 reads them for all. Other calls "
    "run as if it were not set.")
TUTTI_PARAM_INT(WINDOW_BYTES, "TUTTI_WINDOW_BYTES", "512K", 8192, 1073741824,
    "Size of each rank's window in the shared memory of its host, in bytes.")
TUTTI_PARAM_INT(FIFO_BYTES, "TUTTI_FIFO_BYTES", "64K", 4096, 16777216,
    "Size of the FIFO between two ranks of a host, per direction and channel, in bytes; rounded up "
    "to a power of two. The host's first rank decides.")
TUTTI_PARAM_INT(CMA_THRESHOLD, "TUTTI_CMA_THRESHOLD", "16M", 1, INT32_MAX,
    "Messages from this size on, in bytes, are copied once, straight from the sender's memory, "
    "between processes of a host that can read each other's memory (between ranks of one process "
    "from 16K on at the latest; in a group that both sends and receives, and where ranks outnumber "
    "cores, from 256K on; memory of tuttiMemAlloc from 16K on, there from 64K on). High by "
    "default: through the FIFO sender and receiver copy at the same time, which was 2 to 4 times "
    "as fast up to 16M where it was measured.")
TUTTI_PARAM_INT(SPIN_US, "TUTTI_SPIN_US", "50", 0, 1000000,
    "How long a waiting thread spins before it yields and then sleeps, in microseconds. With more "
    "ranks than cores on a host it does not spin.")
TUTTI_PARAM_CHOICE(SPREAD, "TUTTI_SPREAD", "on", "off|on",
    "Whether ranks spread over their cores: a rank that waits on a core with too many others moves "
    "its thread to one with fewer. Which cores it may run on stays as it is.")
TUTTI_PARAM_TEXT(CELLS, "TUTTI_CELLS", "auto",
    "Which ranks of a host share a socket, a memory or a last-level cache, for algorithms that let "
    "little cross between these. `auto`: by the CPUs that each may run on; who may run on those of "
    "several has none, and then the host has none. `off`: none. Numbers such as `0,0,1,1`: the "
    "cells of ranks 0, 1, ..., and again from the first on; one number is this process's.")
TUTTI_PARAM_TEXT(STREAM_CPUS, "TUTTI_STREAM_CPUS", "",
    "CPUs that the threads of host streams run on, such as `0-3,8`; also others than those the "
    "process was bound to. Where nothing computes on them, communication takes no cycles from "
    "computing. Default: those of the thread that makes the stream; then a thread that "
    "synchronizes with a stream may also run what the stream's own thread has not begun.")

TUTTI_PARAM_TEXT(RANK, "TUTTI_RANK", "", "This process's rank, for tuttiCommInitFromEnv.")
TUTTI_PARAM_TEXT(NRANKS, "TUTTI_NRANKS", "", "Number of ranks, for tuttiCommInitFromEnv.")
TUTTI_PARAM_TEXT(ROOT, "TUTTI_ROOT", "",
    "Where ranks meet, for tuttiCommInitFromEnv: `host:port` of rank 0, or `file:DIRECTORY`.")
TUTTI_PARAM_TEXT(SECRET, "TUTTI_SECRET", "",
    "Shared secret of a job's ranks, for tuttiCommInitFromEnv. Default: derived from the job's "
    "identity, which keeps strays out but not attackers.")

TUTTI_PARAM_CHOICE(CPU_ISA, "TUTTI_CPU_ISA", "auto", "auto|plain|avx2|avx512|neon",
    "Instruction set of the reduction kernels; one that the processor lacks falls back to `plain`.")
