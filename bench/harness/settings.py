# SPDX-License-Identifier: Apache-2.0
"""Who takes part, and with which settings. A peer's figure in a cell is its best setting's."""
import re

from harness import machine

LIBRARIES = {"tutti": "Tutti", "window": "Tutti, tuttiMemAlloc", "openmpi": "Open MPI",
             "mpich": "MPICH", "gloo": "Gloo", "bare": "bare loop"}
OURS = ("tutti", "window")
PEERS = ("openmpi", "mpich", "gloo")

# Large requests stay in the heap, which is never trimmed and lies in huge pages: otherwise who
# allocates inside a call pays more for page faults than for the communication. All get it.
HEAP = ":".join(("glibc.malloc.hugetlb=1", "glibc.malloc.mmap_threshold=4294967296",
                 "glibc.malloc.trim_threshold=8589934592", "glibc.malloc.top_pad=67108864"))

OPENMPI_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Contender:
    """One library at one setting: the ranks of one job, and the kinds of memory to try."""

    def __init__(self, name, library, about, arguments=(), environment=None, memories=("heap",),
                 pin=True, seldom=False, max_bytes=None, driver=None, spins=False):
        self.name, self.library, self.about = name, library, about
        self.arguments, self.environment = list(arguments), environment or {}
        self.memories, self.pin, self.seldom, self.max_bytes = memories, pin, seldom, max_bytes
        self.driver = driver or library
        # Of no use with more ranks than CPUs: it never gives its own away.
        self.spins = spins


def openmpi(name, about, *arguments, **others):
    return Contender(name, "openmpi", about, arguments, OPENMPI_ENVIRONMENT, **others)


def shm():
    ob1 = ("--mca", "pml", "ob1", "--mca", "btl", "self,vader")
    copy_twice = ("--mca", "btl_vader_single_copy_mechanism", "none")
    gather = {f"MPIR_CVAR_{name}_POSIX_INTRA_ALGORITHM": "release_gather"
              for name in ("BCAST", "ALLREDUCE", "REDUCE", "BARRIER")}
    return [
        Contender("tutti", "tutti", "as it comes", memories=("heap", "own")),
        openmpi("openmpi-cma", "as it comes: single copies by CMA", *ob1),
        openmpi("openmpi-nocma", "copies through shared memory only", *ob1, *copy_twice),
        openmpi("openmpi-collsm", "with coll/sm", *ob1, "--mca", "coll_sm_priority", "90",
                spins=True),
        openmpi("openmpi-linear", "linear all-reduce, no CMA", *ob1, *copy_twice,
                "--mca", "coll_tuned_use_dynamic_rules", "1",
                "--mca", "coll_tuned_allreduce_algorithm", "1",
                "--mca", "coll_tuned_reduce_scatter_block_algorithm", "3", seldom=True),
        Contender("mpich", "mpich", "as it comes"),
        Contender("mpich-release-gather", "mpich", "release-gather collectives",
                  environment=gather, seldom=True),
        Contender("bare", "bare", "no library: loops over shared memory", memories=("own",),
                  spins=True),
    ]


def tcp():
    btl = ("--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo")
    big = ("btl_tcp_sndbuf", "4194304", "btl_tcp_rcvbuf", "4194304",
           "btl_tcp_max_send_size", "1048576", "btl_tcp_rdma_pipeline_send_length", "1048576",
           "btl_tcp_rdma_pipeline_frag_size", "4194304")
    big = [word for i in range(0, len(big), 2) for word in ("--mca", big[i], big[i + 1])]
    return [
        Contender("tutti", "tutti", "TUTTI_TRANSPORTS=self,tcp", memories=("heap", "own"),
                  environment={"TUTTI_TRANSPORTS": "self,tcp"}),
        openmpi("openmpi-tcp", "BTL tcp as it comes", *btl),
        openmpi("openmpi-tcp-big", "BTL tcp with large buffers and fragments", *btl, *big),
        # Its thread and the caller are better off when the kernel places them.
        Contender("gloo-ring", "gloo", "function API, ring", ["ring"], pin=False),
        Contender("gloo-bcube", "gloo", "function API, bcube", ["bcube"], pin=False, seldom=True),
        # Two ranks that both write synchronously can block each other in larger operations.
        Contender("gloo-polling", "gloo", "class API, halving-doubling, callers poll", ["polling"],
                  max_bytes=16 << 20),
        Contender("gloo-polling-ring", "gloo", "class API, chunked ring, callers poll",
                  ["polling-ring"], max_bytes=16 << 20, seldom=True),
        Contender("bare", "bare", "no library: loops over a socket per pair", driver="bare-tcp"),
    ]


def contenders(transport, chosen):
    crowded = chosen.ranks > machine.cpus()
    return [c for c in {"shm": shm, "tcp": tcp}[transport]()
            if (chosen.all_settings or not c.seldom) and re.search(chosen.keep, c.name)
            and not (crowded and c.spins)]


def commands(contender, driver, directory, ranks):
    """The processes to start for a contender, each as [program, arguments...]."""
    crowded = ranks > machine.cpus()
    if contender.library == "openmpi":
        share = (["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"] if crowded else [])
        return [["mpirun.openmpi", "--bind-to", "none", *share, "-np", str(ranks),
                 *contender.arguments, driver, directory]]
    if contender.library == "mpich":
        return [["mpiexec.mpich", "-bind-to", "none", "-np", str(ranks), driver, directory]]
    version = [machine.package_version("libgloo-dev")] if contender.library == "gloo" else []
    return [[driver, directory, str(rank), str(ranks), *contender.arguments, *version]
            for rank in range(ranks)]
