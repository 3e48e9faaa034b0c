/* SPDX-License-Identifier: Apache-2.0
 * The table of environment variables. Each entry has an id, a name, a default, a range or choices,
 * and a help text. docs/environment.md is generated from this table. An including file defines the
 * macros TUTTI_PARAM_* first. The file has no include guard, because it is included several times.
 */
TUTTI_PARAM_CHOICE(DEBUG, "TUTTI_DEBUG", "warn", "none|version|error|warn|info|debug|trace",
    "The log level. `warn` logs failures of calls and long waits, `info` also a few lines per "
    "communicator, `debug` a line per connection, `trace` a line per kind of call. `version` logs "
    "the version line only. See [logging](logging.md).")
TUTTI_PARAM_TEXT(DEBUG_FILE, "TUTTI_DEBUG_FILE", "",
    "The file that the log is appended to: `%h` becomes the host's name, `%p` the process id, `%%` "
    "a percent sign. A symbolic link is refused, and so is a named pipe that no process reads. "
    "Default: stderr.")

TUTTI_PARAM_INT(INIT_TIMEOUT_MS, "TUTTI_INIT_TIMEOUT_MS", "120000", 1, INT32_MAX,
    "Deadline for forming a communicator, in milliseconds. Overrides `initTimeoutMs`.")
TUTTI_PARAM_INT(INIT_NOTICE_MS, "TUTTI_INIT_NOTICE_MS", "5000", 0, INT32_MAX,
    "Interval, in milliseconds, at which a WARN line names the ranks that are missing while a "
    "communicator forms. 0: never.")
TUTTI_PARAM_INT(TIMEOUT_MS, "TUTTI_TIMEOUT_MS", "1800000", 0, INT32_MAX,
    "Deadline for one operation, in milliseconds; 0 is none. Overrides `timeoutMs`.")
TUTTI_PARAM_INT(WAIT_WARN_MS, "TUTTI_WAIT_WARN_MS", "10000", 0, INT32_MAX,
    "How long a rank waits for another one, in milliseconds, before it logs a line at level "
    "`warn`, and again each time the wait has doubled. 0: never.")
TUTTI_PARAM_CHOICE(RAISE_LIMITS, "TUTTI_RAISE_LIMITS", "on", "off|on",
    "Whether the first communicator of a process raises its limit of open files (`ulimit -n`) to "
    "the hard one. A program that gives descriptors above 1023 to select(2) needs `off`.")

TUTTI_PARAM_INT(NETWORK_TIMEOUT, "TUTTI_NETWORK_TIMEOUT_MS", "60000", 0, 32000000,
    "How long the other host may be silent before a connection to it counts as lost, in "
    "milliseconds; 0: as long as the kernel waits. Silent means that not even its kernel answers: "
    "the network is cut or the host is down. The host of a rank that computes, or is stopped, "
    "still answers.")

TUTTI_PARAM_TEXT(SOCKET_IFNAME, "TUTTI_SOCKET_IFNAME", "",
    "Network interfaces to use: comma-separated prefixes (`eth,ib0`), `=name` for an exact name, "
    "a leading `^` to exclude (`^docker,lo`). Default: every interface that is up, first the "
    "one near the rank if the description of the host tells it (TUTTI_TOPO_FILE), then the "
    "fastest; loopback only when all ranks are on one host.")
TUTTI_PARAM_CHOICE(SOCKET_FAMILY, "TUTTI_SOCKET_FAMILY", "any", "any|ipv4|ipv6",
    "Address family of TCP connections.")
TUTTI_PARAM_INT(SOCKETS_PER_PEER, "TUTTI_SOCKETS_PER_PEER", "0", 0, 16,
    "TCP sockets per pair of ranks and channel; 0: one within a host; between hosts two, four "
    "where the interfaces of both have 25 Gbit/s or more, eight from 100 Gbit/s on.")
TUTTI_PARAM_INT(SOCKET_BUFFER, "TUTTI_SOCKET_BUFFER", "0", 0, 1073741824,
    "Kernel send and receive buffer of each TCP socket in bytes; 0 leaves it to the kernel.")

TUTTI_PARAM_TEXT(ENCRYPT, "TUTTI_ENCRYPT", "off",
    "Protection of the payload that ranks send each other over TCP. `off`: none. `auth`: it is "
    "authenticated, so bytes that an attacker changes, repeats or removes are an error; they can "
    "still be read. `on`: it is also encrypted. Set it to the same value on all ranks; another "
    "value is an error. See [security](security.md).")

TUTTI_PARAM_TEXT(TRANSPORTS, "TUTTI_TRANSPORTS", "",
    "Transports that may be used, comma-separated, from `self`, `shm`, `cma`, `tcp`. Default: all.")
TUTTI_PARAM_TEXT(HOST_ID, "TUTTI_HOST_ID", "",
    "Identity of this host. Ranks with equal identities try shared memory. Default: the kernel's "
    "boot id and the network namespace.")
TUTTI_PARAM_TEXT(ALGORITHM, "TUTTI_ALGORITHM", "",
    "Algorithm per collective, such as `allreduce:hybrid[doublings=3],broadcast:chain`. Default: "
    "the tuner's choice. The value of rank 0 applies to all ranks, also of TUTTI_TUNE, "
    "TUTTI_TUNE_TABLE and TUTTI_MACHINE.")
TUTTI_PARAM_TEXT(TUNE, "TUTTI_TUNE", "",
    "Rules for choosing algorithms by size and number of ranks: a file, or the rules themselves, "
    "such as `allreduce 0-64K recursive_doubling; allreduce 64K-inf ring`. See "
    "[tuning](tuning.md).")
TUTTI_PARAM_TEXT(TUNE_TABLE, "TUTTI_TUNE_TABLE", "",
    "File of measured choices, as `tuttiCommTune` and `--tune` of the measuring programs write it.")
TUTTI_PARAM_TEXT(MACHINE, "TUTTI_MACHINE", "",
    "The machine, from which the tuner computes prices: the name of a known one (`ethernet`), a "
    "file, or a description such as `level top overhead 5us bandwidth 50GB/s`. Default: coarse "
    "assumptions. See [tuning](tuning.md).")
TUTTI_PARAM_TEXT(TOPO_FILE, "TUTTI_TOPO_FILE", "",
    "The devices of this host and their links, in place of those that are detected: a file or line "
    "that `tutti-topo --from` reads, such as NCCL's topology XML. Ranks on CPUs take their cells "
    "from it, where it tells sockets, NUMA nodes and caches of their CPUs, and are called at the "
    "network port near their CPUs. See [the machine as a graph](topology.md).")
TUTTI_PARAM_TEXT(CUDA_LIBRARY, "TUTTI_CUDA_LIBRARY", "",
    "The CUDA driver. Default: `libcuda.so.1`.")
TUTTI_PARAM_TEXT(CUDA_KERNELS, "TUTTI_CUDA_KERNELS", "",
    "A file of kernels (fat binary, cubin or PTX) to use in place of those built in.")
TUTTI_PARAM_INT(GPU_MEMORY, "TUTTI_GPU_MEMORY_BYTES", "64M", 256 << 10, INT64_C(1) << 34,
    "GPU memory, in bytes, that each rank of a communicator reserves for what ranks send each "
    "other.")
TUTTI_PARAM_INT(GPU_COPY_ENGINES, "TUTTI_GPU_COPY_ENGINE_BYTES", "0", 0, INT64_C(1) << 40,
    "The copy engines run collectives on GPUs that only copy, if ranks send each other at least "
    "this many bytes; the multiprocessors stay free. 0: kernels copy. The largest value of all "
    "ranks applies; if any rank has 0, that applies. See [ranks on GPUs](gpu.md#copy-engines).")
TUTTI_PARAM_TEXT(NVML_LIBRARY, "TUTTI_NVML_LIBRARY", "",
    "NVIDIA's management library, by which GPUs and their NVLinks are found. Default: "
    "`libnvidia-ml.so.1`, which comes with the driver.")
TUTTI_PARAM_TEXT(IBVERBS_LIBRARY, "TUTTI_IBVERBS_LIBRARY", "",
    "The library by which RDMA devices are found. Default: `libibverbs.so.1`.")
TUTTI_PARAM_TEXT(SCHEDULE, "TUTTI_SCHEDULE", "",
    "[Schedule files](schedule-files.md) for the calls that they match, separated by `:`; each may "
    "be limited to calls of a size: `allreduce[64K-1M]=FILE`. Rank 0 reads them for all ranks. "
    "They do not affect other calls. `tutti-sched import` translates files of other libraries.")
TUTTI_PARAM_INT(WINDOW_BYTES, "TUTTI_WINDOW_BYTES", "512K", 8192, 1073741824,
    "Size of each rank's window in the shared memory of its host, in bytes.")
TUTTI_PARAM_INT(FIFO_BYTES, "TUTTI_FIFO_BYTES", "64K", 4096, 16777216,
    "Size of the FIFO between two ranks of a host, per direction and channel, in bytes; rounded up "
    "to a power of two. The value of the host's first rank applies to its host.")
TUTTI_PARAM_INT(CMA_THRESHOLD, "TUTTI_CMA_THRESHOLD", "16M", 1, INT32_MAX,
    "Messages of at least this size, in bytes, are copied once, directly from the sender's memory, "
    "between processes of a host that can read each other's memory. The limit is lower in these "
    "cases: 16K between ranks of one process; 256K in a group that both sends and receives, and "
    "where ranks outnumber cores; for memory of tuttiMemAlloc 16K, or 64K where ranks outnumber "
    "cores. The default is high because sender and receiver copy at the same time through the "
    "FIFO, which was 2 to 4 times as fast up to 16M where it was measured.")
TUTTI_PARAM_INT(SPIN_US, "TUTTI_SPIN_US", "50", 0, 1000000,
    "How long a waiting thread spins before it yields and then sleeps, in microseconds. With more "
    "ranks than cores on a host it does not spin.")
TUTTI_PARAM_CHOICE(SPREAD, "TUTTI_SPREAD", "on", "off|on",
    "Whether ranks spread over their cores: a rank that waits on a core with too many others moves "
    "its thread to one with fewer. The set of cores that it may run on does not change.")
TUTTI_PARAM_TEXT(CELLS, "TUTTI_CELLS", "auto",
    "The cells of a host: ranks that share a socket, a NUMA node or a last-level cache, for "
    "algorithms that send little between these. `auto`: from the CPUs that each rank may run on, "
    "by the kernel or by TUTTI_TOPO_FILE; if a rank may run on CPUs of several cells, the host has "
    "no cells. `off`: no cells. Numbers such as `0,0,1,1`: the cells of ranks 0, 1, and so on, "
    "repeated for further ranks; one number is the cell of this process.")
TUTTI_PARAM_TEXT(STREAM_CPUS, "TUTTI_STREAM_CPUS", "",
    "CPUs that the threads of host streams run on, such as `0-3,8`; they may differ from those "
    "that the process was bound to. If the program does not compute on them, communication takes "
    "no cycles from computing. Default: the CPUs of the thread that makes the stream. With the "
    "default, a thread that synchronizes with a stream may also run operations that the stream's "
    "own thread has not begun.")

TUTTI_PARAM_TEXT(RANK, "TUTTI_RANK", "", "This process's rank, for tuttiCommInitFromEnv.")
TUTTI_PARAM_TEXT(NRANKS, "TUTTI_NRANKS", "", "Number of ranks, for tuttiCommInitFromEnv.")
TUTTI_PARAM_TEXT(ROOT, "TUTTI_ROOT", "",
    "Where ranks meet, for tuttiCommInitFromEnv: `host:port` of rank 0, `unix:NAME` within one "
    "host, or `file:DIRECTORY`.")
TUTTI_PARAM_TEXT(SECRET, "TUTTI_SECRET", "",
    "Shared secret of a job's ranks, for tuttiCommInitFromEnv. Default: none. The job's identity, "
    "if the launcher provides one, then keeps other jobs out, but not attackers. See "
    "[security](security.md).")

TUTTI_PARAM_TEXT(PROGRESS, "TUTTI_PROGRESS", "",
    "Set to `1` by tutti-run when its stderr is a terminal: the measuring programs then show "
    "their progress, though their own stderr is a pipe.")
TUTTI_PARAM_TEXT(TESTS_MIN_BW, "TUTTI_TESTS_MIN_BW", "",
    "Average bus bandwidth in GB/s; the measuring programs fail below 0.9 times this value. See "
    "[perf](perf.md#exit-code-and-json).")

TUTTI_PARAM_CHOICE(CPU_ISA, "TUTTI_CPU_ISA", "auto", "auto|plain|avx2|avx512|neon",
    "Instruction set of the reduction kernels; one that the processor lacks falls back to `plain`.")
