# SPDX-License-Identifier: Apache-2.0
"""The libraries that take part, and their settings. A *peer* is a library other than Tutti. Its
figure in a cell is that of its best setting. A *contender* is a library with one setting."""
import re

from harness import machine

TYPES = ("float32", "bfloat16", "float16")
LIBRARIES = {"tutti": "Tutti", "window": "Tutti, tuttiMemAlloc", "openmpi": "Open MPI",
             "mpich": "MPICH", "gloo": "Gloo", "bare": "bare loop", "limit": "limit",
             "moved": "limit, otherwise",
             "bfloat16": "bfloat16", "bfloat16-window": "bfloat16, tuttiMemAlloc",
             "float16": "float16", "float16-window": "float16, tuttiMemAlloc"}
OURS = ("tutti", "window", "bfloat16", "bfloat16-window", "float16", "float16-window")
PEERS = ("openmpi", "mpich", "gloo")

# Settings of malloc for all contenders: large requests stay in the heap, which is never trimmed and
# is in huge pages. Otherwise a library that allocates inside a call would mostly show page faults.
HEAP = ":".join(("glibc.malloc.hugetlb=1", "glibc.malloc.mmap_threshold=4294967296",
                 "glibc.malloc.trim_threshold=8589934592", "glibc.malloc.top_pad=67108864"))

# Settings that are left out with more ranks than CPUs, because their ranks spin and never yield.
SPINNERS = ("openmpi-collsm", "mpich-ucx", "mpich-release-gather")

OPENMPI_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

# By default Open MPI uses UCX only on the networks for which UCX was made. These options make it
# use UCX.
UCX = ("--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any")

# The variants of drivers/limit.c and drivers/sockets.c. The fastest of them is the limit.
MOVES = tuple(f"own:{sharing}-{style}" for sharing in ("output", "input")
              for style in ("plain", "streaming", "strings"))
LANES = ("own:one", "own:one-yield", "own:one-big", "own:two", "own:four")


class Contender:
    """One library with one setting: the ranks of one job, and the kinds of memory to try.

    `memories` are the names that drivers/driver.c understands: "heap", "own" or "own:VARIANT".
    `pin` binds each rank to a CPU. A `seldom` contender takes part only with -a. `max_bytes` is the
    largest size. `driver` is the name of the program, by default that of the library."""

    def __init__(self, name, library, about, arguments=(), environment=None, memories=("heap",),
                 types=("float32",), pin=True, seldom=False, max_bytes=None, driver=None):
        self.name, self.library, self.about = name, library, about
        self.arguments, self.environment = list(arguments), environment or {}
        self.memories, self.types = memories, types
        self.pin, self.seldom, self.max_bytes = pin, seldom, max_bytes
        self.driver = driver or library

    def processes(self, ranks):
        """The number of processes. The limit of memory has one process for each CPU, whatever the
        number of ranks is. All others have one process for each rank."""
        is_limit_of_memory = self.library == self.driver == "limit"
        return min(ranks, machine.cpus()) if is_limit_of_memory else ranks


def openmpi(name, about, *arguments, environment=None, **others):
    return Contender(name, "openmpi", about, arguments,
                     {**OPENMPI_ENVIRONMENT, **(environment or {})}, **others)


def shm():
    ob1 = ("--mca", "pml", "ob1", "--mca", "btl", "self,vader")
    copy_twice = ("--mca", "btl_vader_single_copy_mechanism", "none")
    ucx = {"UCX_TLS": "self,posix,cma"}
    gather = {f"MPIR_CVAR_{name}_POSIX_INTRA_ALGORITHM": "release_gather"
              for name in ("BCAST", "ALLREDUCE", "REDUCE", "BARRIER")}
    return [
        Contender("tutti", "tutti", "as it comes", memories=("heap", "own")),
        openmpi("openmpi-cma", "as it comes: single copies by CMA", *ob1),
        openmpi("openmpi-nocma", "copies through shared memory only", *ob1, *copy_twice),
        openmpi("openmpi-collsm", "with coll/sm", *ob1, "--mca", "coll_sm_priority", "90"),
        openmpi("openmpi-ucx", "over UCX", *UCX, environment=ucx),
        openmpi("openmpi-linear", "linear all-reduce, no CMA", *ob1, *copy_twice,
                "--mca", "coll_tuned_use_dynamic_rules", "1",
                "--mca", "coll_tuned_allreduce_algorithm", "1",
                "--mca", "coll_tuned_reduce_scatter_block_algorithm", "3", seldom=True),
        Contender("mpich", "mpich", "as it comes"),
        Contender("mpich-ucx", "mpich", "over UCX",
                  environment={"MPIR_CVAR_NOLOCAL": "1", **ucx}),
        Contender("mpich-release-gather", "mpich", "release-gather collectives",
                  environment=gather, seldom=True),
        Contender("bare", "bare", "no library: loops over shared memory", memories=("own",)),
        Contender("limit", "limit", "the bytes moved by all CPUs, no agreement",
                  memories=("own:line", *MOVES)),
        Contender("limit-ranks", "moved", "the same by as many processes as ranks", seldom=True,
                  driver="limit", memories=[move for move in MOVES if "streaming" in move]),
    ]


def tcp():
    btl = ("--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo")
    big = ("btl_tcp_sndbuf", "4194304", "btl_tcp_rcvbuf", "4194304",
           "btl_tcp_max_send_size", "1048576", "btl_tcp_rdma_pipeline_send_length", "1048576",
           "btl_tcp_rdma_pipeline_frag_size", "4194304")
    big = [word for i in range(0, len(big), 2) for word in ("--mca", big[i], big[i + 1])]
    ucx = {"UCX_TLS": "self,tcp", "UCX_NET_DEVICES": "lo"}
    return [
        Contender("tutti", "tutti", "TUTTI_TRANSPORTS=self,tcp",
                  environment={"TUTTI_TRANSPORTS": "self,tcp"}),
        openmpi("openmpi-tcp", "BTL tcp as it comes", *btl),
        openmpi("openmpi-tcp-big", "BTL tcp with large buffers and fragments", *btl, *big),
        openmpi("openmpi-ucx", "over UCX", *UCX, environment=ucx),
        Contender("mpich-ucx", "mpich", "over UCX", environment={"MPIR_CVAR_NOLOCAL": "1", **ucx}),
        # Gloo's thread and the caller are faster if the kernel places them.
        Contender("gloo-ring", "gloo", "function API, ring", ["ring"], pin=False),
        Contender("gloo-bcube", "gloo", "function API, bcube", ["bcube"], pin=False, seldom=True),
        # In larger operations two ranks that both write synchronously can block each other.
        Contender("gloo-polling", "gloo", "class API, halving-doubling, callers poll", ["polling"],
                  max_bytes=16 << 20),
        Contender("gloo-polling-ring", "gloo", "class API, chunked ring, callers poll",
                  ["polling-ring"], max_bytes=16 << 20, seldom=True),
        Contender("limit", "limit", "plain sockets, nothing but the bytes", driver="sockets",
                  memories=LANES),
        Contender("limit-zerocopy", "moved", "the same with MSG_ZEROCOPY", driver="sockets",
                  memories=("own:one-zerocopy",), seldom=True),
        Contender("limit-uring", "moved", "the same through io_uring", driver="sockets",
                  memories=("own:one-uring",), seldom=True),
    ]


def types():
    return [Contender("tutti", "tutti", "as it comes, in three types", memories=("heap", "own"),
                      types=TYPES)]


def contenders(transport, ranks, chosen):
    crowded = ranks > machine.cpus()
    return [c for c in {"shm": shm, "tcp": tcp, "types": types}[transport]()
            if (chosen.all_settings or not c.seldom) and re.search(chosen.keep, c.name)
            and not (crowded and c.name in SPINNERS)]


def commands(contender, driver, directory, ranks):
    """The processes to start for a contender, each as [program, arguments...]."""
    crowded = ranks > machine.cpus()
    if contender.library == "openmpi":
        share = (["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"] if crowded else [])
        return [["mpirun.openmpi", "--bind-to", "none", *share, "-np", str(ranks),
                 *contender.arguments, driver, directory]]
    if contender.library == "mpich":
        return [["mpiexec.mpich", "-bind-to", "none", "-np", str(ranks), driver, directory]]
    if contender.driver == "limit":
        count = contender.processes(ranks)
        return [[driver, directory, str(process), str(count), str(ranks)]
                for process in range(count)]
    version = [machine.package_version("libgloo-dev")] if contender.library == "gloo" else []
    return [[driver, directory, str(rank), str(ranks), *contender.arguments, *version]
            for rank in range(ranks)]
