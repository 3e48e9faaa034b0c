# SPDX-License-Identifier: Apache-2.0
import os
import tempfile
from typing import Iterator

import pytest
from world import World


@pytest.fixture(scope="session", autouse=True)
def traces() -> Iterator[str]:
    """Where PyTorch's flight recorder writes after a failure, instead of the user's ~/.cache."""
    with tempfile.TemporaryDirectory(prefix="tutti-test-") as folder:
        os.environ["TORCH_FR_DUMP_TEMP_FILE"] = os.path.join(folder, "rank_")
        yield folder


@pytest.fixture(scope="session", params=[2, 3, 4])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(request.param)
    yield made
    made.close()


@pytest.fixture(scope="session")
def pair() -> Iterator[World]:
    made = World(2)
    yield made
    made.close()
