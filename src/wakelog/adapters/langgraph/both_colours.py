"""Answers that may be awaited and need not be.

LangGraph has its savers and stores twice: programs with a plain one call `store.setup()`, programs with an asynchronous
one `await store.setup()`. Ours is one class, so these calls return something that fits both.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future


class Done:
    """Nothing to wait for."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


class Count(int):
    """A number that is there already."""

    def __await__(self) -> Generator[None, None, int]:
        yield from ()
        return int(self)


class Sweeper(Future[None]):
    """The future of a sweeper. An asynchronous program awaits the start, not the end, of its work."""

    def __await__(self) -> Generator[None, None, Sweeper]:
        yield from ()
        return self


class NeedsNoSetup:
    """Opening a store creates it, so a program that changes its saver need not change the line after it."""

    def setup(self) -> Done:
        """Does nothing."""
        return Done()
