# SPDX-License-Identifier: Apache-2.0
"""The interface of the extension, for type checkers. The extension is built from torch_backend."""
import datetime
from typing import Optional, Sequence

import torch
from torch._C._distributed_c10d import Backend, Store

torch_version: str

class Options(Backend.Options):
    """Options of a process group: the pg_options of init_process_group, new_group and split_group."""

    def __init__(self, timeout: Optional[datetime.timedelta] = ...,
                 init_timeout: Optional[datetime.timedelta] = ...) -> None: ...
    @property
    def timeout(self) -> Optional[datetime.timedelta]:
        """Limit for each operation. None: that of the call that makes the process group."""
    @property
    def init_timeout(self) -> Optional[datetime.timedelta]:
        """Limit for forming the group. None: the limit for operations."""

def create(store: Store, rank: int, size: int, timeout: datetime.timedelta, group_name: str,
           options: Optional[Options]) -> Backend: ...
def empty(sizes: Sequence[int], dtype: Optional[torch.dtype] = ...) -> torch.Tensor: ...
def is_shared(tensor: torch.Tensor) -> bool: ...
def begin_sharing() -> None: ...
def end_sharing() -> None: ...
def end_all() -> None: ...
def version() -> str: ...
