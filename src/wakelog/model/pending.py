"""A pending append: what an engine returns before the commits are durable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from wakelog.model.records import Head


class Pending(Protocol):
    """A pending append."""

    def result(self) -> Head:
        """Waits until the commits are durable and returns the last one's head, or raises why nothing was written.

        UnavailableError means that the answer is unknown: submit the same commits again.
        """
        ...


class AwaitedAppend(Pending, Protocol):
    """A pending append that reports its answer."""

    @property
    def stored(self) -> Head | None:
        """The head, if the commits are durable and that is known here; does not wait."""
        ...

    def on_given(self, listener: Callable[[], None]) -> None:
        """Calls `listener` when `result` has an answer, in any thread and perhaps twice; at once if it has one."""
        ...
