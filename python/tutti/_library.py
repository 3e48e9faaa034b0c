# SPDX-License-Identifier: Apache-2.0
"""The C library, its types and its errors."""
from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint, c_void_p

UNIQUE_ID_BYTES = 128

SUCCESS, IN_PROGRESS = 0, 7


class TuttiError(RuntimeError):
    """A call has failed. `result` is the code (tuttiResult_t). The text is the library's message."""

    def __init__(self, result: int, text: str) -> None:
        super().__init__(text)
        self.result = result


class InvalidArgument(TuttiError, ValueError):
    """An argument is wrong. The call had no effect, and the communicator is still usable."""


class InvalidUsage(TuttiError):
    """Calls do not fit together. If they differ between ranks, the communicator is lost. If this rank has
    misused the library, only the call is lost."""


class RemoteError(TuttiError):
    """A rank has died, left, or cannot be reached. The communicator is lost."""


class Timeout(TuttiError, TimeoutError):
    """A deadline has passed. The communicator is lost."""


_ERRORS = {4: InvalidArgument, 5: InvalidUsage, 6: RemoteError, 8: Timeout}


class UniqueId(ctypes.Structure):
    """tuttiUniqueId"""

    _fields_ = [("internal", ctypes.c_char * UNIQUE_ID_BYTES)]


class Config(ctypes.Structure):
    """tuttiConfig_t"""

    _fields_ = [
        ("size", c_size_t), ("magic", c_uint), ("version", c_uint), ("blocking", c_int),
        ("initTimeoutMs", c_int), ("timeoutMs", c_int), ("commName", c_char_p), ("device", c_int),
    ]

    _MAGIC = 0x54757474
    _UNDEFINED = -(2**31)

    def __init__(self, **fields: object) -> None:
        defaults = {"size": ctypes.sizeof(Config), "magic": self._MAGIC, "version": 100,
                    "blocking": self._UNDEFINED, "initTimeoutMs": self._UNDEFINED,
                    "timeoutMs": self._UNDEFINED, "commName": None, "device": self._UNDEFINED}
        super().__init__(**{**defaults, **fields})


class RankInfo(ctypes.Structure):
    """tuttiRankInfo_t"""

    _fields_ = [("size", c_size_t), ("host", c_int), ("localRank", c_int), ("localCount", c_int),
                ("pid", c_int), ("hostName", ctypes.c_char * 64)]


def _load() -> ctypes.CDLL:
    path = os.environ.get("TUTTI_LIBRARY")
    if path is None:
        here = os.path.dirname(os.path.abspath(__file__))
        path = os.path.join(here, "lib", "libtutti.so.0")
    return ctypes.CDLL(path)


lib = _load()

_COMM, _STREAM, _BOX, _REQUEST, _BUFFER = c_void_p, c_void_p, c_void_p, c_void_p, c_void_p
_SIZES = POINTER(c_size_t)
_PROTOTYPES = {
    "tuttiGetVersion": [POINTER(c_int)],
    "tuttiMemAllocHost": [POINTER(c_void_p), c_size_t],
    "tuttiMemFree": [c_void_p],
    "tuttiGetUniqueId": [POINTER(UniqueId)],
    "tuttiCommInitRankConfig": [POINTER(_COMM), c_int, UniqueId, c_int, POINTER(Config)],
    "tuttiCommInitAll": [POINTER(_COMM), c_int, POINTER(c_int)],
    "tuttiCommInitFromEnv": [POINTER(_COMM), POINTER(Config)],
    "tuttiCommInitStore": [POINTER(_COMM), c_int, c_int, c_char_p, c_char_p, POINTER(Config)],
    "tuttiCommSplit": [_COMM, c_int, c_int, POINTER(_COMM), POINTER(Config)],
    "tuttiCommFinalize": [_COMM],
    "tuttiCommDestroy": [_COMM],
    "tuttiCommAbort": [_COMM],
    "tuttiCommCount": [_COMM, POINTER(c_int)],
    "tuttiCommUserRank": [_COMM, POINTER(c_int)],
    "tuttiCommGetName": [_COMM, POINTER(c_char_p)],
    "tuttiCommHostCount": [_COMM, POINTER(c_int)],
    "tuttiCommGetRankInfo": [_COMM, c_int, POINTER(RankInfo)],
    "tuttiCommSetTimeout": [_COMM, c_int],
    "tuttiRedOpCreatePreMulSum": [POINTER(c_int), c_void_p, c_int, c_int, _COMM],
    "tuttiRedOpDestroy": [c_int, _COMM],
    "tuttiAllReduce": [_BUFFER, _BUFFER, c_size_t, c_int, c_int, _COMM, _STREAM],
    "tuttiReduce": [_BUFFER, _BUFFER, c_size_t, c_int, c_int, c_int, _COMM, _STREAM],
    "tuttiBroadcast": [_BUFFER, _BUFFER, c_size_t, c_int, c_int, _COMM, _STREAM],
    "tuttiAllGather": [_BUFFER, _BUFFER, c_size_t, c_int, _COMM, _STREAM],
    "tuttiAllGatherV": [_BUFFER, _BUFFER, _SIZES, _SIZES, c_int, _COMM, _STREAM],
    "tuttiReduceScatter": [_BUFFER, _BUFFER, c_size_t, c_int, c_int, _COMM, _STREAM],
    "tuttiReduceScatterV": [_BUFFER, _BUFFER, _SIZES, _SIZES, c_int, c_int, _COMM, _STREAM],
    "tuttiAlltoAll": [_BUFFER, _BUFFER, c_size_t, c_int, _COMM, _STREAM],
    "tuttiAlltoAllV": [_BUFFER, _SIZES, _SIZES, _BUFFER, _SIZES, _SIZES, c_int, _COMM, _STREAM],
    "tuttiGather": [_BUFFER, _BUFFER, c_size_t, c_int, c_int, _COMM, _STREAM],
    "tuttiGatherV": [_BUFFER, c_size_t, _BUFFER, _SIZES, _SIZES, c_int, c_int, _COMM, _STREAM],
    "tuttiScatter": [_BUFFER, _BUFFER, c_size_t, c_int, c_int, _COMM, _STREAM],
    "tuttiScatterV": [_BUFFER, _SIZES, _SIZES, _BUFFER, c_size_t, c_int, c_int, _COMM, _STREAM],
    "tuttiScan": [_BUFFER, _BUFFER, c_size_t, c_int, c_int, _COMM, _STREAM],
    "tuttiExclusiveScan": [_BUFFER, _BUFFER, c_size_t, c_int, c_int, _COMM, _STREAM],
    "tuttiBarrier": [_COMM, _STREAM],
    "tuttiSend": [_BUFFER, c_size_t, c_int, c_int, _COMM, _STREAM],
    "tuttiRecv": [_BUFFER, c_size_t, c_int, c_int, _COMM, _STREAM],
    "tuttiGroupStart": [],
    "tuttiGroupEnd": [],
    "tuttiMailboxCreate": [_COMM, POINTER(_BOX)],
    "tuttiMailboxDestroy": [_BOX],
    "tuttiMailboxAbort": [_BOX],
    "tuttiMailboxSetTimeout": [_BOX, c_int],
    "tuttiMailboxSend": [_BUFFER, c_size_t, c_int, c_int, c_int, _BOX, POINTER(_REQUEST)],
    "tuttiMailboxRecv": [_BUFFER, c_size_t, c_int, c_int, c_int, _BOX, POINTER(_REQUEST)],
    "tuttiRequestWait": [POINTER(_REQUEST), c_int, POINTER(c_int), POINTER(c_int)],
    "tuttiRequestCancel": [_REQUEST],
    "tuttiHostStreamCreate": [POINTER(_STREAM)],
    "tuttiHostStreamDestroy": [_STREAM],
    "tuttiStreamSynchronize": [_STREAM],
    "tuttiStreamQuery": [_STREAM],
}
for _name, _arguments in _PROTOTYPES.items():
    _function = getattr(lib, _name)
    _function.argtypes = _arguments
    _function.restype = c_int
lib.tuttiGetVersionString.restype = c_char_p
lib.tuttiGetErrorString.argtypes = [c_int]
lib.tuttiGetErrorString.restype = c_char_p
lib.tuttiGetLastError.argtypes = [_COMM]
lib.tuttiGetLastError.restype = c_char_p


def check(result: int) -> None:
    """Raise the error with which a call has failed."""
    if result == SUCCESS:
        return
    text = (lib.tuttiGetLastError(None) or b"").decode(errors="replace")
    name = lib.tuttiGetErrorString(result).decode()
    raise _ERRORS.get(result, TuttiError)(result, text or name)
