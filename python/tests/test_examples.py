# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/pytorch, as a user runs them: under torchrun."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "pytorch"
LIMIT_S = 120


def torchrun(ranks: int, program: str, *arguments: object, launcher: List[str] = []) -> str:
    """What the ranks have printed; fails when one of them has failed or they take too long."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks),
               *launcher, str(EXAMPLES / program), *map(str, arguments)]
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env=environment, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        # torchrun ends its ranks when it is asked to end.
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
        raise AssertionError(f"{program} has not ended within {LIMIT_S} s\n{output}") from None
    assert process.returncode == 0, output
    return output


def losses_of_ddp(folder: Path, ranks: int, backend: str, steps: int) -> List[float]:
    file = folder / f"{backend}.json"
    torchrun(ranks, "ddp.py", "--backend", backend, "--steps", steps, "--losses", file)
    losses = json.loads(file.read_text(encoding="utf-8"))
    assert len(losses) == steps
    return losses


def test_ddp_of_two_ranks_has_the_losses_of_gloo_bit_for_bit(tmp_path):
    assert losses_of_ddp(tmp_path, 2, "tutti", 30) == losses_of_ddp(tmp_path, 2, "gloo", 30)


def test_ddp_of_four_ranks_has_the_losses_of_gloo_but_for_rounding(tmp_path):
    ours, theirs = (losses_of_ddp(tmp_path, 4, backend, 30) for backend in ("tutti", "gloo"))
    assert ours == pytest.approx(theirs, rel=1e-5)
