# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries as addresses: NumPy, DLPack, the CUDA array interface, Python buffers."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Optional, Sequence

# The types of elements, in the order of tuttiDataType_t: their names, sizes in bytes, kinds and sizes
# in NumPy, and codes and bits in DLPack.
_TYPES = [("int8", 1, "i1", (0, 8)), ("uint8", 1, "u1", (1, 8)), ("int32", 4, "i4", (0, 32)),
          ("uint32", 4, "u4", (1, 32)), ("int64", 8, "i8", (0, 64)), ("uint64", 8, "u8", (1, 64)),
          ("float16", 2, "f2", (2, 16)), ("float32", 4, "f4", (2, 32)), ("float64", 8, "f8", (2, 64)),
          ("bfloat16", 2, None, (4, 16)), ("float8_e4m3fn", 1, None, (10, 8)),
          ("float8_e5m2", 1, None, (12, 8)), ("int16", 2, "i2", (0, 16)), ("uint16", 2, "u2", (1, 16)),
          ("bool", 1, "b1", (6, 8))]
TYPES = {row[0]: number for number, row in enumerate(_TYPES)}
SIZES = [row[1] for row in _TYPES]
_BY_KIND = {row[2]: number for number, row in enumerate(_TYPES) if row[2]}
_BY_DLPACK = {row[3]: number for number, row in enumerate(_TYPES)}


@dataclass(frozen=True)
class Array:
    """Contiguous memory: its address, elements and type. `owner` keeps it alive."""

    address: int
    count: int
    type: int
    is_writable: bool
    owner: Any

    @property
    def bytes(self) -> int:
        return self.count * SIZES[self.type]


def _product(sizes: Sequence[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def _is_contiguous(shape: Sequence[int], strides: Optional[Sequence[int]], unit: int) -> bool:
    if strides is None or _product(shape) == 0:
        return True
    expected = unit
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _from_interface(owner: Any, interface: dict) -> Array:
    kind = interface["typestr"]
    if kind[0] == ">" or kind[1:] not in _BY_KIND:
        raise TypeError(f"tutti: an array of type {kind!r} cannot be communicated; use one of "
                        f"{', '.join(TYPES)}")
    shape, size = tuple(interface["shape"]), int(kind[2:])
    if not _is_contiguous(shape, interface.get("strides"), size):
        raise ValueError("tutti: the array is not contiguous; pass a copy (numpy.ascontiguousarray)")
    address, is_read_only = interface["data"]
    return Array(address or 0, _product(shape), _BY_KIND[kind[1:]], not is_read_only, owner)


class _DLDevice(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _DLDevice), ("ndim", ctypes.c_int),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_capsule_pointer.restype = ctypes.c_void_p


def _from_dlpack(owner: Any) -> Array:
    capsule = owner.__dlpack__()
    # The capsule points to a DLManagedTensor, whose first member is the tensor. The capsule keeps the ownership.
    tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    key = (tensor.code, tensor.bits)
    if tensor.lanes != 1 or key not in _BY_DLPACK:
        raise TypeError(f"tutti: an array of DLPack type {key} cannot be communicated; use one of "
                        f"{', '.join(TYPES)}")
    shape = [tensor.shape[i] for i in range(tensor.ndim)]
    strides = [tensor.strides[i] for i in range(tensor.ndim)] if tensor.strides else None
    if not _is_contiguous(shape, strides, 1):
        raise ValueError("tutti: the DLPack array is not contiguous; pass a contiguous copy")
    address = (tensor.data or 0) + tensor.offset
    return Array(address, _product(shape), _BY_DLPACK[key], True, (owner, capsule))


def _from_buffer(owner: Any) -> Array:
    view = memoryview(owner)
    kind = {"b": "i", "B": "u", "?": "b", "c": "u", "h": "i", "H": "u", "i": "i", "I": "u", "l": "i",
            "L": "u", "q": "i", "Q": "u", "e": "f", "f": "f", "d": "f"}.get(view.format.lstrip("@=<"))
    name = f"{kind}{view.itemsize}"
    if name not in _BY_KIND:
        raise TypeError(f"tutti: a buffer of format {view.format!r} cannot be communicated; use elements of "
                        f"one of {', '.join(TYPES)}")
    if not view.c_contiguous:
        raise ValueError("tutti: the buffer is not contiguous; pass a copy")
    count = view.nbytes // view.itemsize
    if count == 0:
        return Array(0, 0, _BY_KIND[name], not view.readonly, view)
    if view.readonly:
        raise ValueError("tutti: the buffer is read-only; pass a bytearray or an array")
    holder = (ctypes.c_char * view.nbytes).from_buffer(view)
    return Array(ctypes.addressof(holder), count, _BY_KIND[name], True, (view, holder))


def as_array(thing: Any) -> Array:
    """The memory of an array. Raises TypeError if `thing` is no array, or has elements of a type that the
    library does not know. Raises ValueError if the array is not contiguous."""
    for name in ("__array_interface__", "__cuda_array_interface__"):
        try:
            interface = getattr(thing, name, None)
        except Exception:  # PyTorch raises for tensors that are not on that kind of device
            interface = None
        if interface is not None:
            return _from_interface(thing, interface)
    if hasattr(thing, "__dlpack__"):
        return _from_dlpack(thing)
    try:
        return _from_buffer(thing)
    except TypeError as error:
        if "bytes-like" not in str(error):
            raise
    raise TypeError(f"tutti: {type(thing).__name__} is no array: pass one of NumPy, one with DLPack, "
                    "or a writable buffer")
