"""What the parts of the contract share: the hooks an engine's author fills in, and ways to look at what is stored."""

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

# What a commit is, apart from the wishes that came with it (guard, late, snapshot) and its payloads.
_KEPT = (
    *("session", "commit_id", "first", "last", "prev", "hash", "at", "epoch", "status", "turn", "turns"),
    *("kinds", "paths", "records", "fingerprint"),
)


class Hooks(ABC):
    """What an engine's author supplies."""

    @abstractmethod
    def make_engine(self, tmp_path: Path) -> Engine:
        """An engine on the store that belongs to this folder; a new and empty one the first time."""

    def another(self, engine: Engine, tmp_path: Path) -> Engine:
        """A second engine object on the same store, as another process would have."""
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
    """A session that is stored, with one event for each name."""
    writer = CommitWriter()
    store(engine, writer.open())
    for name in names:
        store(engine, writer.seal(fact(name)))
    return writer


def essence(commit: Commit) -> dict[str, object]:
    """What an engine must give back as it was given."""
    return {name: getattr(commit, name) for name in _KEPT}


def stored(engine: Engine, session: SessionId) -> list[dict[str, object]]:
    """Everything the engine holds of a session; nothing when it does not know it."""
    try:
        return [essence(c) | {"payloads": c.payloads} for c in engine.read(session, payloads=True)]
    except NotFoundError:
        return []


def given(*commits: Commit) -> list[dict[str, object]]:
    """The same for commits that were handed in."""
    return [essence(c) | {"payloads": c.payloads} for c in commits]


def in_parallel(work: Callable[[A], B], items: Sequence[A]) -> list[B]:
    """Does the work for all items at once, one thread each, all of them starting together."""
    gate = threading.Barrier(len(items))

    def go(item: A) -> B:
        gate.wait(timeout=30)
        return work(item)

    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(go, items))
