# SPDX-License-Identifier: Apache-2.0
"""The all-reduces through shared memory of two inference servers, as contenders.

Each load function returns a function that all-reduces a tensor in place over all ranks, or None if that server's
code is not available. All ranks call the load function together, after the default process group is formed.
"""
from __future__ import annotations

import os
from typing import Callable, Optional

import torch
import torch.distributed as dist
from torch.utils import cpp_extension

AllReduce = Callable[[torch.Tensor], object]

# The operators that vLLM's own bindings define, without the rest of its library.
VLLM_BINDINGS = """
#include <string>
#include <torch/library.h>
#include <torch/types.h>

int64_t init_shm_manager(const std::string &name, const int64_t group_size, const int64_t rank,
                         const int64_t thread_num);
std::string join_shm_manager(int64_t handle, const std::string &name);
void shm_allreduce(int64_t handle, torch::Tensor &data);

TORCH_LIBRARY(vllm_shm, library)
{
    library.def("init(str name, int size, int rank, int threads) -> int", &init_shm_manager);
    library.def("join(int handle, str name) -> str", &join_shm_manager);
    library.def("allreduce(int handle, Tensor! data) -> ()", &shm_allreduce);
}
"""


def load_deepspeed() -> Optional[AllReduce]:
    """DeepSpeed's kernel, from the installed package, which compiles it at first use. Needs AVX-512."""
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    os.environ.setdefault("LOCAL_SIZE", str(dist.get_world_size()))
    try:
        from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder
    except ImportError:
        return None
    ShareMemCommBuilder().load().initialize(dist.get_world_size(), dist.get_rank())
    return torch.ops.deepspeed.inference_all_reduce_


def build_vllm(source: str) -> None:
    """Compile the kernel on rank 0, which keeps the result in the folder of the source, and load it on all ranks."""
    place = os.path.join(source, "build", "tutti-bench")
    if dist.get_rank() == 0:
        os.makedirs(place, exist_ok=True)
        bindings = os.path.join(place, "bindings.cpp")
        with open(bindings, "w", encoding="utf-8") as file:
            file.write(VLLM_BINDINGS)
        cpp_extension.load("vllm_shm", [os.path.join(source, "csrc/cpu/shm.cpp"), bindings],
                           extra_include_paths=[os.path.join(source, "csrc")],
                           extra_cflags=["-O3", "-march=native", "-fopenmp"], extra_ldflags=["-fopenmp"],
                           build_directory=place, is_python_module=False)
    dist.barrier()
    if dist.get_rank() != 0:
        torch.ops.load_library(os.path.join(place, "vllm_shm.so"))


def load_vllm(source: Optional[str]) -> Optional[AllReduce]:
    """vLLM's kernel, compiled from an unpacked source distribution. Needs AVX-512 on x86."""
    if source is None:
        return None
    build_vllm(source)
    names = [f"tutti-bench-{os.getpid()}"]
    dist.broadcast_object_list(names)
    handle = torch.ops.vllm_shm.init(names[0], dist.get_world_size(), dist.get_rank(), torch.get_num_threads())
    dist.barrier()
    torch.ops.vllm_shm.join(handle, names[0])
    dist.barrier()
    return lambda tensor: torch.ops.vllm_shm.allreduce(handle, tensor)
