"""`setup()`, which programs call on LangGraph's own savers and stores before their first use."""

from __future__ import annotations

from collections.abc import Generator


class Done:
    """Nothing to wait for: the asynchronous savers are awaited, the others are not."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


class NeedsNoSetup:
    """Opening a store creates it, so a program that changes its saver need not change the line after it."""

    def setup(self) -> Done:
        """Does nothing."""
        return Done()
