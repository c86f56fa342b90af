"""What the parts of the contract share: the hooks that an engine's author supplies, and helpers to compare what is
stored."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from wakelog.engine import Engine
from wakelog.errors import NotFoundError
from wakelog.model.ids import SessionId
from wakelog.model.records import Commit
from wakelog.testing.builders import CommitWriter, fact

A = TypeVar("A")
B = TypeVar("B")

# The fields of a commit, without its payloads and the options of its append (guard, late, snapshot).
_KEPT = (
    *("session", "commit_id", "first", "last", "prev", "hash", "at", "epoch", "status", "turn", "turns"),
    *("kinds", "paths", "records", "fingerprint"),
)


class Hooks(ABC):
    """What an engine's author supplies."""

    @abstractmethod
    def make_engine(self, tmp_path: Path) -> Engine:
        """An engine on the store of this folder; the first time, a new and empty one."""

    def another(self, engine: Engine, tmp_path: Path) -> Engine:
        """A second engine object on the same store, like another process."""
        return self.make_engine(tmp_path)

    def reopen(self, engine: Engine, tmp_path: Path) -> Engine:
        """The store after it was closed and opened again."""
        engine.close()
        return self.make_engine(tmp_path)

    @pytest.fixture
    def engine(self, tmp_path: Path) -> Iterator[Engine]:
        engine = self.make_engine(tmp_path)
        yield engine
        engine.close()


def store(engine: Engine, *commits: Commit) -> None:
    """Stores commits one after another."""
    for commit in commits:
        engine.submit(commit).result()


def opened(engine: Engine, *names: str) -> CommitWriter:
    """A stored session with one event for each name."""
    writer = CommitWriter()
    store(engine, writer.open())
    for name in names:
        store(engine, writer.seal(fact(name)))
    return writer


def essence(commit: Commit) -> dict[str, object]:
    """What an engine must return unchanged."""
    return {name: getattr(commit, name) for name in _KEPT}


def stored(engine: Engine, session: SessionId) -> list[dict[str, object]]:
    """Everything that the engine has of a session; empty if it has none."""
    try:
        return [essence(c) | {"payloads": c.payloads} for c in engine.read(session, payloads=True)]
    except NotFoundError:
        return []


def expected(*commits: Commit) -> list[dict[str, object]]:
    """What `stored` must return for these commits."""
    return [essence(c) | {"payloads": c.payloads} for c in commits]


def in_parallel(work: Callable[[A], B], items: Sequence[A]) -> list[B]:
    """Runs `work` for all items in parallel, one thread each, all starting together."""
    barrier = threading.Barrier(len(items))

    def go(item: A) -> B:
        barrier.wait(timeout=30)
        return work(item)

    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(go, items))
