# SPDX-License-Identifier: Apache-2.0
"""Communicators, groups, streams and mailboxes."""
from __future__ import annotations

import ctypes
import threading
from collections import deque
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Deque, Iterator, List, Optional, Sequence, Tuple, Union

from ._arrays import TYPES, Array, as_array
from ._library import IN_PROGRESS, Config, InvalidArgument, InvalidUsage, RankInfo, UniqueId, check, lib

OPS = {"sum": 0, "prod": 1, "max": 2, "min": 3, "avg": 4, "band": 5, "bor": 6, "bxor": 7,
       "land": 8, "lor": 9, "lxor": 10}
TYPE_NAMES = list(TYPES)
ANY_RANK = -1
ANY_TAG = -1


def get_unique_id() -> bytes:
    """A new id for one communicator; pass it to all its ranks by any means."""
    made = UniqueId()
    check(lib.tuttiGetUniqueId(byref(made)))
    return bytes(made)


def get_version_string() -> str:
    """The version of the library as text."""
    return lib.tuttiGetVersionString().decode()


def _argument(text: str) -> InvalidArgument:
    return InvalidArgument(4, f"tutti: {text}")


def _op(op: Union[str, int]) -> int:
    if isinstance(op, int):
        return op
    if op not in OPS:
        raise _argument(f"op {op!r} is unknown; use one of {', '.join(OPS)}")
    return OPS[op]


def _same_type(a: Array, b: Array) -> int:
    if a.type != b.type:
        raise _argument(f"the two arrays have different types, {TYPE_NAMES[a.type]} and {TYPE_NAMES[b.type]}; "
                        "convert one of them")
    return a.type


def _writable(array: Array) -> Array:
    if not array.is_writable:
        raise _argument("the array for the result is read-only; pass a writable one")
    return array


def _sizes(counts: Optional[Sequence[int]]) -> Any:
    return None if counts is None else (c_size_t * len(counts))(*counts)


class _Groups(threading.local):
    """The open groups of a thread. The library works on their arrays when the outermost group ends, so
    `kept` keeps these alive until then."""

    def __init__(self) -> None:
        self.depth = 0
        self.kept: List[Any] = []


_groups = _Groups()


def _outside_groups(call: str) -> None:
    if _groups.depth > 0:
        raise InvalidUsage(5, f"tutti: {call}: inside a group; call it outside")


@contextmanager
def group() -> Iterator[None]:
    """A group of calls: any mix, on any number of communicators. They run together when the group ends.
    Their arrays stay alive until then."""
    check(lib.tuttiGroupStart())
    _groups.depth += 1
    result = 0
    try:
        yield
    finally:
        result = lib.tuttiGroupEnd()
        _groups.depth -= 1
        if _groups.depth == 0:
            _groups.kept.clear()
    check(result)


class HostStream:
    """A queue that has its own thread. A call with ``stream=`` such a queue returns at once."""

    def __init__(self) -> None:
        self._handle = c_void_p()
        self._kept: List[Any] = []
        check(lib.tuttiHostStreamCreate(byref(self._handle)))

    def synchronize(self) -> None:
        """Wait for all calls so far; raises the first error among them."""
        result = lib.tuttiStreamSynchronize(self._handle)
        self._kept.clear()
        check(result)

    def query(self) -> bool:
        """True if all calls so far are complete."""
        result = lib.tuttiStreamQuery(self._handle)
        if result == IN_PROGRESS:
            return False
        self._kept.clear()
        check(result)
        return True

    def destroy(self) -> None:
        """Wait for all calls, and free the stream."""
        handle, self._handle = self._handle, c_void_p()
        check(lib.tuttiHostStreamDestroy(handle))
        self._kept.clear()

    def __enter__(self) -> "HostStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()


Stream = Union[HostStream, int, None]


@dataclass(frozen=True)
class RankPlace:
    """Where a rank runs."""

    host: int
    local_rank: int
    local_count: int
    pid: int
    host_name: str


class Communicator:
    """One rank's handle on a communicator. Use it from one thread at a time."""

    def __init__(self, handle: c_void_p) -> None:
        self._handle = handle

    # ---- forming and ending ---------------------------------------------------------------

    @staticmethod
    def _config(name: Optional[str], timeout_ms: Optional[int], init_timeout_ms: Optional[int],
                device: Optional[int]) -> Config:
        fields: dict = {}
        if name is not None:
            fields["commName"] = name.encode()
        if timeout_ms is not None:
            fields["timeoutMs"] = timeout_ms
        if init_timeout_ms is not None:
            fields["initTimeoutMs"] = init_timeout_ms
        if device is not None:
            fields["device"] = device
        return Config(**fields)

    @classmethod
    def init_rank(cls, nranks: int, unique_id: bytes, rank: int, *, name: Optional[str] = None,
                  timeout_ms: Optional[int] = None, init_timeout_ms: Optional[int] = None,
                  device: Optional[int] = None) -> "Communicator":
        """Join the communicator of that id as number `rank`."""
        if len(unique_id) != ctypes.sizeof(UniqueId):
            raise _argument(f"an id has {ctypes.sizeof(UniqueId)} bytes, not {len(unique_id)}")
        _outside_groups("init_rank")
        handle = c_void_p()
        config = cls._config(name, timeout_ms, init_timeout_ms, device)
        check(lib.tuttiCommInitRankConfig(byref(handle), nranks,
                                          UniqueId.from_buffer_copy(unique_id), rank,
                                          byref(config)))
        return cls(handle)

    @classmethod
    def init_from_env(cls, *, name: Optional[str] = None, timeout_ms: Optional[int] = None,
                      init_timeout_ms: Optional[int] = None,
                      device: Optional[int] = None) -> "Communicator":
        """Join the communicator that the launcher's variables describe (tutti-run, torchrun, Open MPI,
        MPICH, Slurm). Without them it has one rank."""
        _outside_groups("init_from_env")
        handle = c_void_p()
        config = cls._config(name, timeout_ms, init_timeout_ms, device)
        check(lib.tuttiCommInitFromEnv(byref(handle), byref(config)))
        return cls(handle)

    @classmethod
    def init_store(cls, nranks: int, rank: int, store: str, secret: Optional[str] = None, *,
                   name: Optional[str] = None, timeout_ms: Optional[int] = None,
                   init_timeout_ms: Optional[int] = None,
                   device: Optional[int] = None) -> "Communicator":
        """Join through ``"file:DIRECTORY"``, ``"unix:NAME"`` or ``"tcp:HOST:PORT"``."""
        _outside_groups("init_store")
        handle = c_void_p()
        config = cls._config(name, timeout_ms, init_timeout_ms, device)
        check(lib.tuttiCommInitStore(byref(handle), nranks, rank, store.encode(),
                                     secret.encode() if secret is not None else None,
                                     byref(config)))
        return cls(handle)

    @classmethod
    def init_all(cls, nranks: int, devices: Optional[Sequence[int]] = None) -> List["Communicator"]:
        """Make a communicator of `nranks` ranks that are all in this process. Use them from as many threads,
        or from one thread inside groups."""
        _outside_groups("init_all")
        handles = (c_void_p * nranks)()
        list_of = (c_int * nranks)(*devices) if devices is not None else None
        check(lib.tuttiCommInitAll(handles, nranks, list_of))
        return [cls(c_void_p(handle)) for handle in handles]

    def split(self, color: Optional[int], key: int = 0) -> Optional["Communicator"]:
        """Split the communicator. Ranks with equal color form a new one, ordered by key. A rank with color
        None joins none. Collective."""
        _outside_groups("split")
        child = c_void_p()
        check(lib.tuttiCommSplit(self._handle, -1 if color is None else color, key, byref(child),
                                 None))
        return Communicator(child) if child else None

    def finalize(self) -> None:
        """Wait until all operations are complete and all ranks have called this."""
        check(lib.tuttiCommFinalize(self._handle))

    def destroy(self) -> None:
        """Free the communicator. The call is not collective."""
        handle, self._handle = self._handle, c_void_p()
        check(lib.tuttiCommDestroy(handle))

    def abort(self) -> None:
        """End all operations on this rank and on all others with an error. Any thread may call it."""
        check(lib.tuttiCommAbort(self._handle))

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    # ---- queries --------------------------------------------------------------------------

    def _ask(self, function: Any) -> int:
        answer = c_int()
        check(function(self._handle, byref(answer)))
        return answer.value

    @property
    def rank(self) -> int:
        """This rank's number."""
        return self._ask(lib.tuttiCommUserRank)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self._ask(lib.tuttiCommCount)

    @property
    def host_count(self) -> int:
        """Number of hosts on which the ranks run."""
        return self._ask(lib.tuttiCommHostCount)

    @property
    def name(self) -> str:
        """The name of the communicator, or "" without one."""
        text = c_char_p()
        check(lib.tuttiCommGetName(self._handle, byref(text)))
        return (text.value or b"").decode()

    def get_rank_info(self, rank: int) -> RankPlace:
        """Where a rank runs."""
        info = RankInfo(size=ctypes.sizeof(RankInfo))
        check(lib.tuttiCommGetRankInfo(self._handle, rank, byref(info)))
        return RankPlace(info.host, info.localRank, info.localCount, info.pid, info.hostName.decode())

    def set_timeout(self, timeout_ms: int) -> None:
        """Set the deadline of later operations. 0 means none."""
        check(lib.tuttiCommSetTimeout(self._handle, timeout_ms))

    # ---- collectives ------------------------------------------------------------------------

    def _stream(self, stream: Stream, *arrays: Optional[Array]) -> c_void_p:
        if _groups.depth > 0:
            _groups.kept.extend(arrays)
        if isinstance(stream, HostStream):
            stream._kept.extend(arrays)
            return stream._handle
        return c_void_p(stream)

    @contextmanager
    def pre_mul_sum(self, scalar: Any) -> Iterator[int]:
        """An operation that sums the inputs of all ranks, each multiplied by the `scalar` of its rank. The
        scalar is an array of one element."""
        made, factor = c_int(), as_array(scalar)
        if factor.count != 1:
            raise _argument("the scalar of pre_mul_sum must be an array of one element")
        check(lib.tuttiRedOpCreatePreMulSum(byref(made), factor.address, factor.type, 1,
                                            self._handle))
        try:
            yield made.value
        finally:
            check(lib.tuttiRedOpDestroy(made, self._handle))

    def _combine(self, function: Any, send: Any, recv: Any, op: Union[str, int],
                 stream: Stream) -> Any:
        source = as_array(send)
        target = _writable(source if recv is None else as_array(recv))
        if target.count != source.count:
            raise _argument(f"send has {source.count} elements, recv {target.count}")
        check(function(source.address, target.address, source.count, _same_type(source, target),
                       _op(op), self._handle, self._stream(stream, source, target)))
        return send if recv is None else recv

    def all_reduce(self, send: Any, recv: Any = None, op: Union[str, int] = "sum", *,
                   stream: Stream = None) -> Any:
        """Combine the `send` arrays of all ranks with `op`, and give the result to all ranks. Without `recv`
        the call is in place. Returns the array of the result."""
        return self._combine(lib.tuttiAllReduce, send, recv, op, stream)

    def scan(self, send: Any, recv: Any = None, op: Union[str, int] = "sum", *,
             stream: Stream = None) -> Any:
        """Combine the `send` arrays of ranks 0 to this one with `op`. Without `recv` the call is in place.
        Returns the array of the result."""
        return self._combine(lib.tuttiScan, send, recv, op, stream)

    def exclusive_scan(self, send: Any, recv: Any = None, op: Union[str, int] = "sum", *,
                       stream: Stream = None) -> Any:
        """Combine the `send` arrays of the ranks before this one with `op`. Rank 0 has no result: its `recv`,
        or its `send` in place, stays as it was."""
        return self._combine(lib.tuttiExclusiveScan, send, recv, op, stream)

    def reduce(self, send: Any, recv: Any = None, op: Union[str, int] = "sum", root: int = 0, *,
               stream: Stream = None) -> Any:
        """Combine as all_reduce does, but give the result only to `root`."""
        source = as_array(send)
        target = source if recv is None else as_array(recv)
        if self.rank == root and _writable(target).count != source.count:
            raise _argument(f"send has {source.count} elements, recv {target.count}")
        check(lib.tuttiReduce(source.address, target.address, source.count,
                              _same_type(source, target), _op(op), root, self._handle,
                              self._stream(stream, source, target)))
        return send if recv is None else recv

    def broadcast(self, array: Any, root: int = 0, *, stream: Stream = None) -> Any:
        """Copy the array of `root` to the array of every rank. Returns the array."""
        target = _writable(as_array(array))
        check(lib.tuttiBroadcast(target.address, target.address, target.count, target.type, root,
                                 self._handle, self._stream(stream, target)))
        return array

    def all_gather(self, send: Any, recv: Any, *, stream: Stream = None) -> Any:
        """Concatenate the `send` arrays of all ranks in `recv`, rank 0 first. Returns `recv`."""
        source, target = as_array(send), _writable(as_array(recv))
        self._check_blocks(target.count, source.count, "recv", "send")
        check(lib.tuttiAllGather(source.address, target.address, source.count,
                                 _same_type(source, target), self._handle,
                                 self._stream(stream, source, target)))
        return recv

    def all_gather_v(self, send: Any, recv: Any, counts: Sequence[int],
                     displs: Optional[Sequence[int]] = None, *, stream: Stream = None) -> Any:
        """Gather as all_gather does, with a count for each rank. The block of rank i is at
        ``recv[displs[i]]``; without `displs` the blocks have no gaps."""
        source, target = as_array(send), _writable(as_array(recv))
        self._check_vector(counts, displs, target, "recv")
        if counts[self.rank] != source.count:
            raise _argument(f"counts[{self.rank}] is {counts[self.rank]}, send has {source.count}")
        check(lib.tuttiAllGatherV(source.address, target.address, _sizes(counts), _sizes(displs),
                                  _same_type(source, target), self._handle,
                                  self._stream(stream, source, target)))
        return recv

    def reduce_scatter(self, send: Any, recv: Any, op: Union[str, int] = "sum", *,
                       stream: Stream = None) -> Any:
        """Combine the `send` arrays of all ranks with `op`, and give each rank its block of the result in
        `recv`. Returns `recv`."""
        source, target = as_array(send), _writable(as_array(recv))
        self._check_blocks(source.count, target.count, "send", "recv")
        check(lib.tuttiReduceScatter(source.address, target.address, target.count,
                                     _same_type(source, target), _op(op), self._handle,
                                     self._stream(stream, source, target)))
        return recv

    def reduce_scatter_v(self, send: Any, recv: Any, counts: Sequence[int],
                         displs: Optional[Sequence[int]] = None, op: Union[str, int] = "sum", *,
                         stream: Stream = None) -> Any:
        """Combine as reduce_scatter does, with a count for each rank. The block of rank i is at
        ``send[displs[i]]``; without `displs` the blocks have no gaps."""
        source, target = as_array(send), _writable(as_array(recv))
        self._check_vector(counts, displs, source, "send")
        if counts[self.rank] != target.count:
            raise _argument(f"counts[{self.rank}] is {counts[self.rank]}, recv has {target.count}")
        check(lib.tuttiReduceScatterV(source.address, target.address, _sizes(counts),
                                      _sizes(displs), _same_type(source, target), _op(op),
                                      self._handle, self._stream(stream, source, target)))
        return recv

    def all_to_all(self, send: Any, recv: Any, *, stream: Stream = None) -> Any:
        """Exchange one block between each two ranks: block i of `recv` is this rank's block of rank i's
        `send`. Returns `recv`."""
        source, target = as_array(send), _writable(as_array(recv))
        if source.count != target.count or source.count % self.size != 0:
            raise _argument(f"send has {source.count} elements and recv {target.count}: both must have "
                            f"the same number, a multiple of {self.size}")
        check(lib.tuttiAlltoAll(source.address, target.address, source.count // self.size,
                                _same_type(source, target), self._handle,
                                self._stream(stream, source, target)))
        return recv

    def all_to_all_v(self, send: Any, send_counts: Sequence[int], recv: Any,
                     recv_counts: Sequence[int], send_displs: Optional[Sequence[int]] = None,
                     recv_displs: Optional[Sequence[int]] = None, *, stream: Stream = None) -> Any:
        """Exchange as all_to_all does, with counts and displacements for each rank."""
        source, target = as_array(send), _writable(as_array(recv))
        self._check_vector(send_counts, send_displs, source, "send")
        self._check_vector(recv_counts, recv_displs, target, "recv")
        check(lib.tuttiAlltoAllV(source.address, _sizes(send_counts), _sizes(send_displs),
                                 target.address, _sizes(recv_counts), _sizes(recv_displs),
                                 _same_type(source, target), self._handle,
                                 self._stream(stream, source, target)))
        return recv

    def gather(self, send: Any, recv: Any = None, root: int = 0, *, stream: Stream = None) -> Any:
        """Concatenate the `send` arrays of all ranks in `recv` on `root`. The other ranks ignore `recv`."""
        source, target = as_array(send), None
        if self.rank == root:
            if recv is None:
                raise _argument(f"recv is missing on rank {root}, the root; pass an array for all blocks")
            target = _writable(as_array(recv))
            self._check_blocks(target.count, source.count, "recv", "send")
            _same_type(source, target)
        check(lib.tuttiGather(source.address, target.address if target else None, source.count,
                              source.type, root, self._handle,
                              self._stream(stream, source, target)))
        return recv

    def gather_v(self, send: Any, recv: Any = None, counts: Optional[Sequence[int]] = None,
                 displs: Optional[Sequence[int]] = None, root: int = 0, *,
                 stream: Stream = None) -> Any:
        """Gather as gather does, with a count for each rank: the size of that rank's `send`. The block of
        rank i is at ``recv[displs[i]]``; without `displs` the blocks have no gaps. The other ranks ignore
        `recv`, `counts` and `displs`."""
        source, target = as_array(send), None
        if self.rank == root:
            if recv is None or counts is None:
                raise _argument(f"recv or counts are missing on rank {root}, the root; pass both")
            target = _writable(as_array(recv))
            self._check_vector(counts, displs, target, "recv")
            _same_type(source, target)
        else:
            counts = displs = None
        check(lib.tuttiGatherV(source.address, source.count, target.address if target else None,
                               _sizes(counts), _sizes(displs), source.type, root, self._handle,
                               self._stream(stream, source, target)))
        return recv

    def scatter(self, send: Any, recv: Any, root: int = 0, *, stream: Stream = None) -> Any:
        """Give each rank its block of the `send` array of `root` in `recv`. The other ranks ignore `send`."""
        source, target = None, _writable(as_array(recv))
        if self.rank == root:
            if send is None:
                raise _argument(f"send is missing on rank {root}, the root; pass an array of all blocks")
            source = as_array(send)
            self._check_blocks(source.count, target.count, "send", "recv")
            _same_type(source, target)
        check(lib.tuttiScatter(source.address if source else None, target.address, target.count,
                               target.type, root, self._handle,
                               self._stream(stream, source, target)))
        return recv

    def scatter_v(self, send: Any, recv: Any, counts: Optional[Sequence[int]] = None,
                  displs: Optional[Sequence[int]] = None, root: int = 0, *,
                  stream: Stream = None) -> Any:
        """Scatter as scatter does, with a count for each rank: the size of that rank's `recv`. The block of
        rank i is at ``send[displs[i]]``; without `displs` the blocks have no gaps. The other ranks ignore
        `send`, `counts` and `displs`."""
        source, target = None, _writable(as_array(recv))
        if self.rank == root:
            if send is None or counts is None:
                raise _argument(f"send or counts are missing on rank {root}, the root; pass both")
            source = as_array(send)
            self._check_vector(counts, displs, source, "send")
            _same_type(source, target)
        else:
            counts = displs = None
        check(lib.tuttiScatterV(source.address if source else None, _sizes(counts), _sizes(displs),
                                target.address, target.count, target.type, root, self._handle,
                                self._stream(stream, source, target)))
        return recv

    def barrier(self, *, stream: Stream = None) -> None:
        """Wait for all ranks: it completes on no rank before all ranks have called it."""
        check(lib.tuttiBarrier(self._handle, self._stream(stream)))

    def send(self, array: Any, peer: int, *, stream: Stream = None) -> None:
        """Send to `peer`. The k-th send of a pair of ranks matches the k-th receive."""
        source = as_array(array)
        check(lib.tuttiSend(source.address, source.count, source.type, peer, self._handle,
                            self._stream(stream, source)))

    def recv(self, array: Any, peer: int, *, stream: Stream = None) -> Any:
        """Receive from `peer`."""
        target = _writable(as_array(array))
        check(lib.tuttiRecv(target.address, target.count, target.type, peer, self._handle,
                            self._stream(stream, target)))
        return array

    def mailbox(self) -> "Mailbox":
        """Make a mailbox of the ranks. The call is collective."""
        box = c_void_p()
        check(lib.tuttiMailboxCreate(self._handle, byref(box)))
        return Mailbox(box)

    def _check_blocks(self, whole: int, block: int, name: str, other: str) -> None:
        if whole != block * self.size:
            raise _argument(f"{name} has {whole} elements: it needs {self.size} times the {block} of "
                            f"{other}")

    def _check_vector(self, counts: Sequence[int], displs: Optional[Sequence[int]], array: Array,
                      name: str) -> None:
        size = self.size
        if len(counts) != size or (displs is not None and len(displs) != size):
            raise _argument(f"counts and displacements must have {size} entries, one for each rank")
        if any(count < 0 for count in counts) or any(displ < 0 for displ in displs or ()):
            raise _argument("a count or a displacement is negative")
        starts = displs
        if starts is None:
            starts = [sum(counts[:rank]) for rank in range(size)]
        end = max((start + count for start, count in zip(starts, counts) if count > 0), default=0)
        if end > array.count:
            raise _argument(f"{name} has {array.count} elements, the blocks need {end}")


# Requests that the program has dropped before they were complete, with their arrays, which the library
# may still read or write.
_orphans: Deque[Tuple[c_void_p, Array]] = deque()


def _is_over(handle: c_void_p) -> bool:
    return lib.tuttiRequestWait(byref(handle), 0, None, None) != IN_PROGRESS


def _reap_orphans() -> None:
    for _ in range(len(_orphans)):
        try:
            handle, array = _orphans.popleft()
        except IndexError:  # another thread was quicker
            return
        if not _is_over(handle):
            _orphans.append((handle, array))


class Request:
    """A send or receive of a mailbox that has begun. Its array stays alive until it is complete, even if
    this object does not."""

    def __init__(self, handle: c_void_p, array: Array, receives: bool) -> None:
        self._handle, self._array, self._receives = handle, array, receives
        self._peer, self._tag = c_int(-1), c_int(-1)

    def wait(self, timeout_ms: Optional[int] = None) -> Optional[Tuple[int, int]]:
        """Wait until the request is complete, and return the other rank and the tag. Returns None if
        `timeout_ms` has passed before."""
        result = lib.tuttiRequestWait(byref(self._handle), -1 if timeout_ms is None else timeout_ms,
                                      byref(self._peer), byref(self._tag))
        if result == IN_PROGRESS:
            return None
        check(result)
        return self._peer.value, self._tag.value

    def test(self) -> bool:
        """True if the request is complete."""
        return self.wait(0) is not None

    def cancel(self) -> None:
        """Cancel a receive that has not matched a message yet. Then wait() raises InvalidUsage."""
        check(lib.tuttiRequestCancel(self._handle))

    def __del__(self) -> None:
        if not self._handle or lib is None:
            return
        if self._receives:
            lib.tuttiRequestCancel(self._handle)
        if not _is_over(self._handle):
            _orphans.append((self._handle, self._array))


class Mailbox:
    """An exchange of messages that are matched by sender and tag. They make progress without further
    calls. Thread-safe."""

    def __init__(self, handle: c_void_p) -> None:
        self._handle = handle

    def send(self, array: Any, peer: int, tag: int = 0) -> Request:
        """Begin to send the array to `peer` with `tag`."""
        _reap_orphans()
        source, request = as_array(array), c_void_p()
        check(lib.tuttiMailboxSend(source.address, source.count, source.type, peer, tag,
                                   self._handle, byref(request)))
        return Request(request, source, False)

    def recv(self, array: Any, peer: int = ANY_RANK, tag: int = ANY_TAG) -> Request:
        """Begin to receive into the array, by default from any rank with any tag."""
        _reap_orphans()
        target, request = _writable(as_array(array)), c_void_p()
        check(lib.tuttiMailboxRecv(target.address, target.count, target.type, peer, tag,
                                   self._handle, byref(request)))
        return Request(request, target, True)

    def set_timeout(self, timeout_ms: int) -> None:
        """Set the deadline of later waits. 0 means none."""
        check(lib.tuttiMailboxSetTimeout(self._handle, timeout_ms))

    def abort(self) -> None:
        """End all requests on this rank and on all others with an error."""
        check(lib.tuttiMailboxAbort(self._handle))

    def destroy(self) -> None:
        """Free the mailbox. The call is not collective."""
        handle, self._handle = self._handle, c_void_p()
        result = lib.tuttiMailboxDestroy(handle)
        _reap_orphans()
        check(result)

    def __enter__(self) -> "Mailbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()


def empty(shape: Union[int, Sequence[int]], dtype: Any = "float32") -> Any:
    """A zeroed NumPy array in memory that the ranks of a host map, so that collectives need not copy it."""
    import numpy

    kind = numpy.dtype(dtype)
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    count = 1
    for size in sizes:
        count *= size
    if count == 0:
        return numpy.empty(sizes, kind)
    memory = c_void_p()
    check(lib.tuttiMemAllocHost(byref(memory), count * kind.itemsize))

    class Memory(ctypes.c_char * (count * kind.itemsize)):  # type: ignore[misc]
        def __del__(self, free: Any = lib.tuttiMemFree, address: int = memory.value or 0) -> None:
            free(address)

    return numpy.frombuffer(Memory.from_address(memory.value or 0), kind).reshape(sizes)
