# SPDX-License-Identifier: Apache-2.0
"""torch.distributed over Tutti.

After ``pip install`` PyTorch finds the backend by itself::

    torch.distributed.init_process_group("tutti")

If PyTorch was told not to load backends (``TORCH_DEVICE_BACKEND_AUTOLOAD=0``), ``import tutti.torch``
registers the backend.
"""
from __future__ import annotations

import atexit
import datetime
import importlib
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Iterator, Optional, Sequence

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from tutti.torch._backend import Options

__all__ = ["Options", "all_reduce_", "empty", "is_shared", "register", "shared_memory"]

_module: Optional[ModuleType] = None


def _extension() -> ModuleType:
    """The extension, loaded at first use."""
    global _module
    if _module is not None:
        return _module
    again = "pip install --force-reinstall --no-deps tutti, with this PyTorch installed"
    try:
        module = importlib.import_module("tutti.torch._backend")
    except ImportError as error:
        raise ImportError(
            f"tutti.torch has no extension for PyTorch {torch.__version__} ({error}): it was built "
            f"without PyTorch, for another version, or for one before 2.13, the oldest that it supports. "
            f"Cure: {again}"
        ) from None
    if module.torch_version != torch.__version__:
        raise ImportError(
            f"tutti.torch was built for PyTorch {module.torch_version}, this is {torch.__version__}. "
            f"Cure: {again}"
        )
    _module = module
    atexit.register(module.end_all)
    torch.library.register_fake("tutti::all_reduce_", lambda self, group_name: None)
    return module


def __getattr__(name: str) -> Any:
    """Makes the class Options of the extension a name of this module. The extension is loaded at its first use."""
    if name == "Options":
        return _extension().Options
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _create(options: Any, backend_options: Any) -> Any:
    """Make the backend of a process group; called by torch.distributed on all of its ranks."""
    extension, timeout, own_options = _extension(), options.timeout, None
    if isinstance(backend_options, extension.Options):
        own_options = backend_options
    elif getattr(backend_options, "_timeout", None) is not None:
        timeout = backend_options._timeout
    if not isinstance(timeout, datetime.timedelta):
        timeout = datetime.timedelta(seconds=float(timeout))
    return extension.create(options.store, options.group_rank, options.group_size, timeout,
                            str(options.group_id), own_options)


def register() -> None:
    """Make the backend "tutti" known to torch.distributed. Later calls have no effect."""
    if "TUTTI" in dist.Backend._plugins:
        return
    dist.Backend.register_backend("tutti", _create, extended_api=True, devices=["cpu", "cuda"])


def all_reduce_(tensor: torch.Tensor, group: Optional[dist.ProcessGroup] = None) -> torch.Tensor:
    """Sum the tensor over all ranks, in place. The function is for tensor parallel inference: it does the same
    as torch.distributed.all_reduce, without that function's Python layers. It has no gradient. torch.compile
    supports it."""
    torch.ops.tutti.all_reduce_(tensor, (group or dist.group.WORLD).group_name)
    return tensor


def empty(*size: int, dtype: Optional[torch.dtype] = None) -> torch.Tensor:
    """A tensor in memory that the ranks of a host map, so that collectives need not copy it. Its contents are
    undefined."""
    sizes: Sequence[int] = size
    if len(size) == 1 and not isinstance(size[0], int):
        sizes = list(size[0])
    return _extension().empty(list(sizes), dtype)


def is_shared(tensor: torch.Tensor) -> bool:
    """True if the tensor lies in memory that the ranks of a host map."""
    return _extension().is_shared(tensor)


@contextmanager
def shared_memory() -> Iterator[None]:
    """Inside this context, CPU tensors of 1 MiB and more that any thread allocates lie in memory that the ranks of
    a host map, so that collectives need not copy them. With DistributedDataParallel, make the model and take its
    first two steps inside: it allocates its buckets when it is made, and again in its first step."""
    extension = _extension()
    extension.begin_sharing()
    try:
        yield
    finally:
        extension.end_sharing()


register()
