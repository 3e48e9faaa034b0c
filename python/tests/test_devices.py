# SPDX-License-Identifier: Apache-2.0
"""Tests tensors on a CUDA device, with the simulated driver. Several ranks share device 0.

`cmake --preset dev && cmake --build build/dev --target sim-cuda` builds that driver.
"""
from __future__ import annotations

import ctypes
import os
from datetime import timedelta
from typing import Any, Iterator

import pytest
import torch
import torch.distributed as dist
from world import World

HERE = os.path.dirname(os.path.abspath(__file__))
SIMULATED = os.path.join(os.environ.get("TUTTI_BUILD", os.path.join(HERE, "..", "..", "build", "dev")),
                         "tests", "simcuda")
ENVIRONMENT = {"TUTTI_CUDA_LIBRARY": os.path.join(SIMULATED, "driver", "libcuda.so.1"),
               "TUTTI_CUDA_KERNELS": os.path.join(SIMULATED, "kernels.simcuda"),
               "TUTTI_GPU_MEMORY_BYTES": "1M", "SIMCUDA_CHECK": "1", "SIMCUDA_DEVICES": "1"}
pytestmark = pytest.mark.skipif(not os.path.exists(ENVIRONMENT["TUTTI_CUDA_LIBRARY"]),
                                reason="the simulated driver is not built")


def load_device() -> Any:
    """The extension that makes PyTorch use the simulated driver."""
    from torch.utils.cpp_extension import load

    return load("tutti_simulated_device", [os.path.join(HERE, "simulated_device.cpp")],
                extra_cflags=["-std=c++20", "-O1"], extra_ldflags=["-ldl"])


@pytest.fixture(scope="module", params=[1, 2, 3])
def ranks(request: pytest.FixtureRequest) -> Iterator[World]:
    load_device()  # compiles the extension once, before all ranks load it
    made = World(request.param, "", **ENVIRONMENT)
    yield made
    made.close()


def begin(rank: int, size: int, path: str) -> Any:
    device = load_device()
    device.install()
    torch.cuda.get_device_capability = lambda *_: (8, 0)  # PyTorch asks for it in broadcast
    dist.init_process_group("tutti", init_method=f"file://{path}", rank=rank, world_size=size,
                            timeout=timedelta(seconds=60))
    return device


def collectives(rank: int, size: int, path: str) -> None:
    device = begin(rank, size, path)
    total = size * (size - 1) / 2
    for turn in range(2):  # on the default stream, then on another one
        for count in (1, 1000, 100003):
            tensor = device.to_device(torch.full((count,), float(rank)))
            dist.all_reduce(tensor)
            assert (device.to_host(tensor) == total).all()
            work = dist.all_reduce(tensor, async_op=True)
            work.wait()
            assert (device.to_host(tensor) == total * size).all()
            assert work.is_completed() and work.is_success()
        future = dist.all_reduce(tensor, op=dist.ReduceOp.MAX, async_op=True).get_future()
        future.wait()
        assert (device.to_host(future.value()[0]) == total * size).all()
        tensor = device.to_device(torch.full((500,), float(rank)))
        dist.broadcast(tensor, size - 1)
        assert (device.to_host(tensor) == size - 1).all()
        gathered = device.to_device(torch.empty(3 * size))
        dist.all_gather_into_tensor(gathered, device.to_device(torch.full((3,), float(rank))))
        assert (device.to_host(gathered) == torch.arange(size).repeat_interleave(3)).all()
        part = device.to_device(torch.empty(3))
        dist.reduce_scatter_tensor(part, gathered)
        assert (device.to_host(part) == rank * size).all()
        crossed = device.to_device(torch.empty(3 * size))
        dist.all_to_all_single(crossed, gathered)
        assert (device.to_host(crossed) == rank).all()
        dist.barrier()
        host = torch.full((3,), float(rank))  # beside it, as before
        dist.all_reduce(host)
        assert (host == total).all()
        if turn == 0:
            device.use_new_stream()
    dist.destroy_process_group()


def test_collectives(ranks: World, tmp_path: Any) -> None:
    ranks.run(collectives, str(tmp_path / "store"))


def messages(rank: int, size: int, path: str) -> None:
    device = begin(rank, size, path)
    sent = device.to_device(torch.full((1000,), float(rank)))
    received = device.to_device(torch.zeros(1000))
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, (rank + 1) % size),
                                        dist.P2POp(dist.irecv, received, (rank - 1) % size)]):
        work.wait()
    assert (device.to_host(received) == (rank - 1) % size).all()
    if size > 1 and rank < 2:  # one by one
        if rank == 0:
            dist.send(sent, 1)
        else:
            dist.recv(received, 0)
            assert (device.to_host(received) == 0).all()
    with pytest.raises(ValueError, match="cannot be received from any rank"):
        dist.irecv(received)
    with pytest.raises(ValueError, match="they must be in one place"):
        dist.all_gather_into_tensor(device.to_device(torch.empty(size)), torch.empty(1))
    dist.destroy_process_group()


def test_messages(ranks: World, tmp_path: Any) -> None:
    ranks.run(messages, str(tmp_path / "store"))


# ---- without PyTorch ---------------------------------------------------------------------------------


class OnDevice:
    """An array on the device, which has the CUDA array interface."""

    def __init__(self, cuda: Any, values: Any) -> None:
        self.cuda, self.shape, self.type = cuda, values.shape, values.dtype
        self.address = ctypes.c_uint64()
        assert cuda.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(values.nbytes)) == 0
        self.copy(self.address.value, values.ctypes.data, values.nbytes)

    def copy(self, to: int, source: int, count: int) -> None:
        assert self.cuda.cuMemcpy(ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(count)) == 0

    @property
    def __cuda_array_interface__(self) -> dict:
        return {"shape": self.shape, "typestr": self.type.str, "data": (self.address.value, False),
                "version": 3, "strides": None}

    def to_host(self) -> Any:
        import numpy

        values = numpy.empty(self.shape, self.type)
        self.copy(values.ctypes.data, self.address.value, values.nbytes)
        return values


def plain(rank: int, size: int, unique_id: bytes) -> None:
    import numpy
    import tutti

    cuda, context = ctypes.CDLL(os.environ["TUTTI_CUDA_LIBRARY"]), ctypes.c_void_p()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    with tutti.Communicator.init_rank(size, unique_id, rank, device=0, timeout_ms=60000) as comm:
        array = OnDevice(cuda, numpy.full(5000, rank + 1, numpy.float32))
        comm.all_reduce(array)  # without a stream it is complete
        assert (array.to_host() == size * (size + 1) / 2).all()
        stream = ctypes.c_void_p()
        assert cuda.cuStreamCreate(ctypes.byref(stream), 1) == 0
        target = OnDevice(cuda, numpy.zeros(5000 * size, numpy.float32))
        comm.all_gather(array, target, stream=stream.value)
        assert cuda.cuStreamSynchronize(stream) == 0
        assert (target.to_host() == size * (size + 1) / 2).all()
        host = numpy.ones(3)
        comm.all_reduce(host)
        assert (host == size).all()


def make_id(rank: int, size: int) -> bytes:
    import tutti

    return tutti.get_unique_id()


def test_plain_module(ranks: World) -> None:
    ranks.run(plain, ranks.run(make_id, ranks=[0])[0])
