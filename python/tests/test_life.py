# SPDX-License-Identifier: Apache-2.0
"""Tests how process groups form, split, fail and end."""
from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from world import World

VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
# Marks of tests that need features of later versions of PyTorch.
splits_on_cpus = pytest.mark.skipif(VERSION < (2, 15), reason="split_group needs a CUDA device before PyTorch 2.15")
monitors_barriers = pytest.mark.skipif(VERSION < (2, 14), reason="monitored_barrier is Gloo's before PyTorch 2.14")


def groups(rank: int, size: int) -> None:
    for _ in range(3):
        evens = dist.new_group(list(range(0, size, 2)), timeout=timedelta(seconds=30))
        tensor = torch.full((3,), float(rank))
        if rank % 2 == 0:
            dist.all_reduce(tensor, group=evens)
            assert tensor[0].item() == sum(range(0, size, 2))
            dist.destroy_process_group(evens)
    pairs, _ = dist.new_subgroups(1)
    tensor = torch.ones(1)
    dist.all_reduce(tensor, group=pairs)
    assert tensor.item() == 1


def test_groups(world):
    world.run(groups)


def splits(rank: int, size: int) -> None:
    halves = [list(range(size - 1)), [size - 1]]
    half = dist.split_group(dist.group.WORLD, halves)
    tensor = torch.ones(1)
    dist.all_reduce(tensor, group=half)
    assert tensor.item() == (size - 1 if rank < size - 1 else 1)
    named = dist.split_group(dist.group.WORLD, halves, group_desc="a long name " * 20)
    dist.all_reduce(tensor, group=named)


@splits_on_cpus
def test_splits(world):
    world.run(splits)


def mesh(rank: int, size: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh

    grid = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("rows", "columns"))
    tensor = torch.full((1,), float(rank))
    dist.all_reduce(tensor, group=grid.get_group("rows"))
    column = rank % (size // 2)
    assert tensor.item() == 2 * column + size // 2


def test_device_meshes():
    made = World(4)
    made.run(mesh)
    made.close()


def form_again(rank: int, size: int, path: str) -> None:
    for turn in range(3):
        dist.init_process_group("tutti", init_method=f"file://{path}-{turn}", rank=rank, world_size=size)
        tensor = torch.ones(2)
        dist.all_reduce(tensor)
        assert tensor[0].item() == size
        dist.destroy_process_group()


def test_destroyed_groups_form_again(tmp_path):
    made = World(2, "")
    made.run(form_again, str(tmp_path / "store"))
    made.close()


def monitored(rank: int, size: int) -> None:
    dist.monitored_barrier()
    if rank == size - 1:
        return
    with pytest.raises(RuntimeError, match=f"Rank {size - 1} failed to pass monitoredBarrier"
                       if rank == 0 else "Please check rank 0 logs"):
        dist.monitored_barrier(timeout=timedelta(seconds=1))


@monitors_barriers
def test_monitored_barrier(pair):
    pair.run(monitored)


def survive(rank: int, size: int, victim: int) -> tuple:
    tensor = torch.ones(100)
    dist.all_reduce(tensor)
    if rank == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    begun = time.monotonic()
    try:
        for _ in range(3):
            dist.all_reduce(tensor)
    except dist.DistBackendError as error:
        return time.monotonic() - begun, str(error)
    raise AssertionError("no exception")


@pytest.mark.parametrize("transports", ["", "tcp"])
def test_a_killed_rank_is_named(transports):
    environment = {"TUTTI_TRANSPORTS": transports} if transports else {}
    made = World(3, "tutti", **environment)
    made._pipes[1].send(("test_life", "survive", (1,)))
    answers = made.run(survive, 1, ranks=[0, 2])
    for seconds, text in answers:
        assert seconds < 2 and "rank 1" in text, (seconds, text)
    made.close()


def differ(rank: int, size: int) -> str:
    with pytest.raises(dist.DistBackendError) as caught:
        for _ in range(2):
            dist.all_reduce(torch.ones(4 + rank))
    return str(caught.value)


def test_calls_that_differ_are_named():
    made = World(2)
    for text in made.run(differ):
        assert "count 4" in text and "count 5" in text, text
    made.close()


def time_out(rank: int, size: int) -> None:
    group = dist.new_group(timeout=timedelta(milliseconds=400))
    if rank == 0:
        with pytest.raises(dist.DistBackendError, match="has waited 400 ms for rank 1"):
            dist.all_reduce(torch.ones(1), group=group)
    dist.barrier()
    received = torch.empty(1)
    if rank == 0:
        work = dist.irecv(received, 1)
        with pytest.raises(RuntimeError, match="not complete after 50 ms"):
            work.wait(timedelta(milliseconds=50))
        assert not work.is_completed()
        dist.barrier()
        work.wait()
        assert received.item() == 3
    else:
        dist.barrier()
        dist.send(torch.tensor([3.0]), 0)


def test_deadlines(pair):
    pair.run(time_out)


def abort(rank: int, size: int) -> None:
    group = dist.new_group()
    work = dist.all_reduce(torch.ones(4), group=group, async_op=True) if rank == 0 else None
    if rank == 0:
        group._get_backend(torch.device("cpu")).abort()
        with pytest.raises(dist.DistBackendError, match="tuttiCommAbort"):
            work.wait()
    dist.barrier()


def test_abort(pair):
    pair.run(abort)


def forked(rank: int, size: int) -> None:
    child = os.fork()
    if child == 0:
        try:
            dist.all_reduce(torch.ones(1))
        except dist.DistBackendError as error:
            os._exit(0 if "fork" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    dist.barrier()


def call_back_late(rank: int, size: int, path: str, is_destroyed: bool) -> None:
    dist.init_process_group("tutti", init_method=f"file://{path}", rank=rank, world_size=size)
    work = dist.all_reduce(torch.ones(4), async_op=True)
    work.get_future().then(lambda _: time.sleep(1))
    time.sleep(0.2)  # a thread of the backend takes the operation
    work.wait()
    if is_destroyed:
        dist.destroy_process_group()


@pytest.mark.parametrize("is_destroyed", [True, False])
def test_a_program_may_end_while_callbacks_run(tmp_path, is_destroyed):
    made = World(2, "")
    made.run(call_back_late, str(tmp_path / "store"), is_destroyed)
    made.close()
    assert [process.exitcode for process in made.processes] == [0, 0]


def recorded(rank: int, size: int) -> None:
    from torch._C import _distributed_c10d as c10d

    c10d._reset_fr_trace(backend="tutti")
    dist.all_reduce(torch.ones(4))
    dist.broadcast(torch.ones(3), 0)
    dist.all_reduce(torch.ones(5), async_op=True).wait()
    if rank == 0:
        dist.send(torch.ones(6), 1)
    else:
        dist.recv(torch.ones(6), 0)
    entries = pickle.loads(c10d._dump_fr_trace(backend="tutti"))["entries"]
    message = ("tutti:send 0->1", [[6]]) if rank == 0 else ("tutti:recv 1<-0", [])
    assert [(entry["profiling_name"], entry["input_sizes"], entry["state"]) for entry in entries] == [
        ("tutti:all_reduce", [[4]], "completed"), ("tutti:broadcast", [[3]], "completed"),
        ("tutti:all_reduce", [[5]], "completed"), (*message, "completed")]
    assert all(0 < entry["duration_ms"] < 60e3 for entry in entries)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        dist.all_reduce(torch.ones(4))
        dist.all_gather_into_tensor(torch.empty(size), torch.ones(1), async_op=True).wait()
    names = {event.name for event in profile.events()}
    assert {"tutti:all_reduce", "tutti:all_gather"} <= names


def test_the_profiler_and_the_flight_recorder_see_calls(pair):
    if not hasattr(torch._C._distributed_c10d, "_reset_fr_trace"):
        pytest.skip("this PyTorch records the calls of its own backends only")
    pair.run(recorded)


def record_failure(rank: int, size: int, folder: str) -> None:
    if rank == 1:
        time.sleep(1)
    limits = dist.AllreduceOptions()
    limits.timeout = timedelta(milliseconds=300)
    calls: list = []
    dist.group.WORLD.register_abort_hook(7, lambda: calls.append(None))
    with pytest.raises(dist.DistBackendError, match="has waited 300 ms for rank" if rank == 0 else "Timed out"):
        dist.group.WORLD.allreduce([torch.ones(7)], limits).wait()
    dist.destroy_process_group()  # waits for the hooks, which run beside the exception
    assert calls == [None]
    if not hasattr(torch._C._distributed_c10d, "_reset_fr_trace"):
        return  # this PyTorch records the calls of its own backends only
    with open(os.path.join(folder, f"rank_{rank}"), "rb") as file:
        entries = pickle.load(file)["entries"]
    assert [entry["state"] for entry in entries if entry["input_sizes"] == [[7]]] == ["scheduled"]


def test_a_failure_writes_the_flight_recorder(traces):
    if not hasattr(torch._C._distributed_c10d, "FlightRecorderHook"):
        pytest.skip("this PyTorch records the calls of its own backends only")
    made = World(2)
    made.run(record_failure, traces)
    made.close()


def fail_again(rank: int, size: int, victim: int) -> float:
    dist.all_reduce(torch.ones(1))
    if rank == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # threads of the backend run when this one waits
    dist.group.WORLD.register_abort_hook(7, lambda: time.sleep(4))
    begun = time.monotonic()
    for _ in range(3):
        with pytest.raises(dist.DistBackendError, match=f"rank {victim}"):
            dist.recv(torch.ones(1), victim)
        with pytest.raises(dist.DistBackendError, match=f"rank {victim}"):
            dist.all_reduce(torch.ones(1))
    return time.monotonic() - begun


def test_calls_after_a_failure_do_not_wait_for_the_flight_recorder():
    if not hasattr(torch._C._distributed_c10d, "FlightRecorderHook"):
        pytest.skip("this PyTorch records the calls of its own backends only")
    made = World(2)
    made._pipes[1].send(("test_life", "fail_again", (1,)))
    assert made.run(fail_again, 1, ranks=[0])[0] < 2
    made.close()


def a_limit_of_one_call(rank: int, size: int) -> None:
    group = dist.new_group()
    limits = dist.AllreduceOptions()
    limits.timeout = timedelta(milliseconds=300)
    for is_async in (False, True):
        limits.asyncOp = is_async
        tensor = torch.ones(3)
        group.allreduce([tensor], limits).wait()
        assert (tensor == size).all()
    if rank == 1:
        time.sleep(1)  # longer than the limit, which is not that of other calls
    dist.barrier(group=group)
    if rank == 0:
        limits.asyncOp = False
        with pytest.raises(dist.DistBackendError, match="has waited 300 ms for rank 1"):
            group.allreduce([torch.ones(3)], limits).wait()
    dist.barrier()


def test_a_limit_of_one_call(pair):
    pair.run(a_limit_of_one_call)


def test_a_child_of_fork_is_refused(pair):
    pair.run(forked)


def load_data(rank: int, size: int) -> None:
    multiprocessing.current_process()._config["daemon"] = False  # a daemon could not start the loader's processes
    pending, total = dist.all_reduce(torch.ones(100000), async_op=True), 0
    for _ in range(2):  # each makes two processes by fork, which end with the loop
        for batch in torch.utils.data.DataLoader(torch.arange(32.0), batch_size=4, num_workers=2):
            tensor = batch.sum().reshape(1)
            dist.all_reduce(tensor)
            total += tensor.item()
    assert pending.wait() and total == 2 * size * 32 * 31 / 2


def test_a_data_loader_with_workers(pair):
    pair.run(load_data)


def by_threads(rank: int, size: int) -> None:
    groups, failures, turns = [dist.new_group() for _ in range(3)], [], 50

    def work(index: int) -> None:
        try:
            for turn in range(turns):
                own, shared, received = torch.full((100,), float(index + 1)), torch.ones(10), torch.empty(5)
                dist.all_reduce(own, group=groups[index])
                dist.all_reduce(shared)  # in a group that all threads use, which make the same calls
                sent = dist.isend(torch.full((5,), float(index * turns + turn)), (rank + 1) % size, tag=index)
                dist.recv(received, (rank - 1) % size, tag=index)
                sent.wait()
                assert (own == size * (index + 1)).all() and (shared == size).all()
                assert (received == index * turns + turn).all()
        except BaseException as error:  # noqa: BLE001 - the test shows it
            failures.append(error)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_threads(world):
    world.run(by_threads)


def begin_by_hand(rank: int, size: int, path: str) -> None:
    dist.init_process_group("cpu:tutti", init_method=f"file://{path}", rank=rank, world_size=size)
    assert dist.get_backend_config() == "cpu:tutti"
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    assert (tensor == size).all()
    with pytest.raises(RuntimeError, match="Detected mismatch between collectives"):
        dist.all_reduce(torch.ones(3 + rank))  # PyTorch compares the calls of ranks before it makes them


def test_backends_by_device_and_pytorchs_own_check_of_calls(tmp_path):
    made = World(2, "", TORCH_DISTRIBUTED_DEBUG="DETAIL")
    made.run(begin_by_hand, str(tmp_path / "store"))
    made.close()


@pytest.mark.parametrize("is_imported", [False, True])
def test_where_pytorch_does_not_load_backends(tmp_path, is_imported):
    program = f"""
{"import tutti.torch" if is_imported else ""}
import torch.distributed as dist
dist.init_process_group("tutti", init_method="file://{tmp_path}/store", rank=0, world_size=1)
dist.barrier()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    assert (done.returncode == 0) == is_imported, done.stderr


def memory(rank: int, size: int) -> None:
    import tutti.torch

    tensor = tutti.torch.empty(1000, 3)
    assert tensor.shape == (1000, 3) and tensor.dtype == torch.float32
    tensor.fill_(1)
    dist.all_reduce(tensor)
    assert (tensor == size).all()
    assert tutti.torch.empty(4, dtype=torch.int64).dtype == torch.int64
    with pytest.raises(ValueError, match="too large"):
        tutti.torch.empty(2**40, 2**40)


def buckets(rank: int, size: int) -> None:
    import tutti.torch

    shared = []

    def hook(state: object, bucket: dist.GradBucket) -> torch.futures.Future:
        shared.append(tutti.torch.is_shared(bucket.buffer()))
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda f: f.value()[0] / size)

    assert not tutti.torch.is_shared(torch.empty(1 << 20))
    with tutti.torch.shared_memory():
        assert tutti.torch.is_shared(torch.empty(1 << 20)) and not tutti.torch.is_shared(torch.empty(1000))
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1000, 1000))
        hook.__annotations__ = {"bucket": dist.GradBucket, "return": torch.futures.Future[torch.Tensor]}
        model.register_comm_hook(None, hook)
        for _ in range(2):
            model(torch.full((4, 1000), float(rank))).sum().backward()
    model(torch.full((4, 1000), float(rank))).sum().backward()
    assert shared == [True] * 3
    assert not tutti.torch.is_shared(torch.empty(1 << 20))
    mean = 4 * (size - 1) / 2
    assert torch.allclose(model.module.weight.grad, torch.full((1000, 1000), 3 * mean))


def test_buckets_of_ddp_in_shared_memory(world):
    world.run(buckets)


def options(rank: int, size: int, path: str) -> None:
    import tutti.torch

    limits = tutti.torch.Options(timeout=timedelta(milliseconds=400), init_timeout=timedelta(seconds=60))
    dist.init_process_group("tutti", init_method=f"file://{path}", rank=rank, world_size=size, pg_options=limits)
    dist.barrier()
    if rank == 0:
        with pytest.raises(dist.DistBackendError, match="has waited 400 ms"):
            dist.all_reduce(torch.ones(1))
    else:
        time.sleep(1)


def test_options(tmp_path):
    made = World(2, "")
    made.run(options, str(tmp_path / "store"))
    made.close()


def has_limit(rank: int, group: dist.ProcessGroup, milliseconds: int) -> None:
    own = group._get_backend(torch.device("cpu")).options
    assert own._timeout == timedelta(milliseconds=milliseconds), own._timeout
    dist.barrier(group=group)
    if rank == 0:
        with pytest.raises(dist.DistBackendError, match=f"has waited {milliseconds} ms"):
            dist.all_reduce(torch.ones(1), group=group)
    dist.barrier()


def options_of_groups(rank: int, size: int) -> None:
    from tutti.torch import Options

    limits = Options(timeout=timedelta(milliseconds=400), init_timeout=timedelta(seconds=50))
    assert isinstance(limits, torch._C._distributed_c10d.Backend.Options) and limits.backend == "tutti"
    assert limits.timeout == timedelta(milliseconds=400) and limits.init_timeout == timedelta(seconds=50)
    assert Options().timeout is None and Options().init_timeout is None
    group = dist.new_group(pg_options=limits)
    has_limit(rank, group, 400)


def test_options_of_new_groups(pair):
    if not hasattr(torch._C._distributed_c10d.Backend, "options"):
        pytest.skip("this PyTorch does not show the options of a backend")
    pair.run(options_of_groups)


def options_of_splits(rank: int, size: int) -> None:
    from tutti.torch import Options

    limits = Options(timeout=timedelta(milliseconds=400), init_timeout=timedelta(seconds=50))
    everybody = [list(range(size))]
    group = dist.new_group(pg_options=limits)
    for _ in range(2):  # a program may use its options again
        split = dist.split_group(dist.group.WORLD, everybody, pg_options=limits)
        assert split._get_backend(torch.device("cpu")).options.init_timeout == timedelta(seconds=50)
        has_limit(rank, split, 400)
    # The timeout of the call holds where the options name none, and in a split of a group with options.
    named = dist.split_group(dist.group.WORLD, everybody, timeout=timedelta(milliseconds=500),
                             pg_options=Options(init_timeout=timedelta(seconds=40)))
    assert named._get_backend(torch.device("cpu")).options.init_timeout == timedelta(seconds=40)
    has_limit(rank, named, 500)
    has_limit(rank, dist.split_group(group, everybody, timeout=timedelta(milliseconds=600)), 600)
    has_limit(rank, group, 400)


@splits_on_cpus
def test_options_of_splits(pair):
    pair.run(options_of_splits)


def test_memory_of_shared_windows(world):
    world.run(memory)


def train(rank: int, size: int, backend_name: str) -> list:
    torch.manual_seed(7)
    group = dist.new_group(backend=backend_name)
    model = torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.Tanh(), torch.nn.Linear(50, 3))
    model = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(10):
        torch.manual_seed(100 * step + rank)
        inputs, labels = torch.randn(16, 20), torch.randint(0, 3, (16,))
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_ddp_of_two_ranks_is_that_of_gloo_bit_for_bit(pair):
    assert pair.run(train, "tutti") == pair.run(train, "gloo")
