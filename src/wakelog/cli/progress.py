"""How far a long piece of work has come: on stderr, on a terminal, and only when it takes a while."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from wakelog.cli.context import Context

PATIENCE_S = 0.5
EVERY_S = 0.1


class Progress:
    """Counts steps. Nothing is shown for work that is over in half a second, or where nobody is looking."""

    def __init__(self, ctx: Context, what: str, total: int = 0) -> None:
        self._what, self._total = what, total
        self._is_shown = sys.stderr.isatty() and not ctx.quiet and not ctx.json and not ctx.ndjson
        self._count = 0
        self._next = time.monotonic() + PATIENCE_S
        self._width = 0

    def __call__(self, steps: int = 1) -> None:
        self._count += steps
        if self._is_shown and time.monotonic() >= self._next:
            self._next = time.monotonic() + EVERY_S
            self._show(self._line())

    def _line(self) -> str:
        if not self._total:
            return f"{self._what} {self._count:,}"
        return f"{self._what} {self._count:,} of {self._total:,} ({min(100, 100 * self._count // self._total)}%)"

    def _show(self, line: str) -> None:
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._width:
            self._show("")
            sys.stderr.write("\r")
            sys.stderr.flush()
