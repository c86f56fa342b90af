"""An engine whose answers get lost on the way: the commit is stored, and the caller never hears of it."""

from __future__ import annotations

from typing import Any

from wakelog.engine import Engine, Pending
from wakelog.errors import UnavailableError
from wakelog.model.records import Commit, Head


class _Lost:
    def __init__(self, inner: Pending) -> None:
        self._inner = inner

    def result(self) -> Head:
        self._inner.result()
        raise UnavailableError("the answer was lost on purpose", kind="answer-unknown")


class LossyEngine:
    """Passes everything on to another engine, and loses the next `lose` answers to appends that succeeded."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner
        self.durability = inner.durability
        self.lose = 0
        self.submitted: list[tuple[Commit, ...]] = []

    def submit(self, *commits: Commit) -> Pending:
        self.submitted.append(commits)
        pending = self.inner.submit(*commits)
        if self.lose:
            self.lose -= 1
            return _Lost(pending)
        return pending

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
