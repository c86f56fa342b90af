"""A store with a clock of its own, in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.knowledge.past import Calendar
from wakelog.engines.memory import MemoryEngine
from wakelog.store import Store


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(MemoryEngine(), clock=Calendar()) as made:
        yield made
