# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of examples/pytorch as a user does, under torchrun."""
from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import List

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "pytorch"
LIMIT_S = 240

# In PyTorch 2.15 a thread of Gloo may let go of a tensor while the interpreter ends, which aborts the process.
GLOO_ABORTS = "terminate called without an active exception"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def torchrun(ranks: int, program: str, *arguments: object, restarts: int = 0, is_standalone: bool = True,
             may_abort: bool = False, **environment: str) -> str:
    """The output of the program. Fails if a rank has failed, or if the program takes too long."""
    rendezvous = ["--standalone"] if is_standalone else ["--master-port", str(free_port())]
    command = [sys.executable, "-m", "torch.distributed.run", *rendezvous, "--nproc-per-node", str(ranks),
               "--max-restarts", str(restarts), str(EXAMPLES / program), *map(str, arguments)]
    with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
        # TMPDIR: torchrun leaves folders for its logs.
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
                                        "TMPDIR": folder, **environment})
        try:
            output, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)  # torchrun then ends its ranks.
            output, _ = process.communicate(timeout=60)
            pytest.fail(f"{program} has not ended within {LIMIT_S} s\n{output}")
    assert process.returncode == 0 or may_abort and GLOO_ABORTS in output, output
    return output


def losses_of_ddp(folder: Path, ranks: int, backend: str) -> List[float]:
    file = folder / f"{backend}.json"
    torchrun(ranks, "ddp.py", "--backend", backend, "--steps", 30, "--losses", file,
             may_abort=backend == "gloo")
    losses = json.loads(file.read_text(encoding="utf-8"))
    assert len(losses) == 30
    return losses


def test_ddp_of_two_ranks_has_the_losses_of_gloo_bit_for_bit(tmp_path):
    assert losses_of_ddp(tmp_path, 2, "tutti") == losses_of_ddp(tmp_path, 2, "gloo")


def test_ddp_of_four_ranks_has_the_losses_of_gloo_but_for_rounding(tmp_path):
    ours, theirs = (losses_of_ddp(tmp_path, 4, backend) for backend in ("tutti", "gloo"))
    assert ours == pytest.approx(theirs, rel=1e-5)


def test_fsdp2():
    assert "rank 0 keeps 26951 of 107804 weights" in torchrun(4, "fsdp2.py", "--steps", 10)


def test_zero():
    assert "rank 0 keeps the momentum of" in torchrun(4, "zero.py", "--steps", 10)


def test_deepspeed_zero(tmp_path):
    pytest.importorskip("deepspeed")
    output = torchrun(2, "deepspeed_zero.py", "--steps", 10, TORCH_EXTENSIONS_DIR=str(tmp_path))
    assert output.count("largest difference") == 3, output


def test_tensor_and_sequence_parallel():
    output = torchrun(4, "tensor_parallel.py", "--steps", 10)
    assert output.count("largest difference") == 2, output


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
def test_pipeline(schedule):
    assert f"schedule {schedule}" in torchrun(4, "pipeline.py", "--steps", 10, "--schedule", schedule)


def test_expert_parallel():
    assert "4 experts per layer" in torchrun(4, "expert_parallel.py", "--steps", 10)


def test_mesh_of_five_kinds_of_parallelism():
    assert "largest difference" in torchrun(8, "mesh_5d.py", "--steps", 10)


def test_lightning_ddp():
    pytest.importorskip("lightning")
    assert "largest difference" in torchrun(2, "lightning_ddp.py", "--steps", 10)


def test_accelerate_ddp():
    pytest.importorskip("accelerate")
    assert "largest difference" in torchrun(2, "accelerate_ddp.py", "--steps", 10)


def test_parameter_server():
    assert "updates of ranks 1 to 2: [15, 15]" in torchrun(3, "parameter_server.py", "--steps", 15)


@pytest.mark.parametrize("is_standalone", [True, False])
def test_elastic(tmp_path, is_standalone):
    file = tmp_path / "checkpoint"
    output = torchrun(2, "elastic.py", "--steps", 20, "--checkpoint", file, restarts=1,
                      is_standalone=is_standalone)
    lives = [line for line in output.splitlines() if line.startswith("life ")]
    assert lives == ["life 0 begins with step 0", "life 1 begins with step 10"], output
    assert not file.exists()


@pytest.mark.parametrize("ranks", [2, 4])
def test_decoder(ranks):
    output = torchrun(ranks, "decoder.py", "--layers", 2, "--width", 256, "--tokens", 16, "--rounds", 2)
    figures = [line.split()[0] for line in output.splitlines() if line.endswith("%")]
    assert figures == ["gloo", "tutti"], output
