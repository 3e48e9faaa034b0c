# SPDX-License-Identifier: Apache-2.0
from typing import Iterator

import pytest
from world import World


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
