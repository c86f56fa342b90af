"""Trying a turn again: each try is recorded as an attempt, and all attempts are kept.

    for attempt in session.attempts(3, on=TimeoutError):
        with attempt as turn:
            …

A try that raises one of the named errors is recorded as failed, and the loop continues: the view goes back to where the
turn started, and the next try is @5.2. The first try that succeeds ends the loop. The last try's error is raised; any
other error is raised at once. A turn that the runtime stopped (it waits for an approval, or a call's outcome is
unknown) is never tried again automatically: it would stop again, or repeat an effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Generic, TypeVar

from wakelog.errors import InvalidInputError
from wakelog.runtime.outcome import is_stop
from wakelog.session.turn import Turn

S = TypeVar("S")
Errors = type[BaseException] | tuple[type[BaseException], ...]


class Attempt(Generic[S]):
    """One try of a turn. Use it in a `with` (or `async with`), which gives the turn."""

    def __init__(self, turn: Turn[S], on: Errors, is_last: bool) -> None:
        self._turn = turn
        self._on = on
        self._is_last = is_last
        self.failed = False

    def __enter__(self) -> Turn[S]:
        return self._turn.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        try:
            self._turn.__exit__(kind, error, trace)
        except Exception as exc:  # the turn could not be ended, for example because its draft conflicts
            if not self._should_retry(exc):
                raise
            return True
        return self._should_retry(error)

    async def __aenter__(self) -> Turn[S]:
        return await self._turn.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        try:
            await self._turn.__aexit__(kind, error, trace)
        except Exception as exc:
            if not self._should_retry(exc):
                raise
            return True
        return self._should_retry(error)

    def _should_retry(self, error: BaseException | None) -> bool:
        """Whether another try follows. Then the error is not raised."""
        self.failed = error is not None
        return isinstance(error, self._on) and not is_stop(error) and not self._is_last


def attempts(begin: Callable[[bool], Turn[S]], times: int, on: Errors) -> Iterator[Attempt[S]]:
    """Yields tries until one succeeds. `begin(is_retry)` makes the turn."""
    if times < 1:
        raise InvalidInputError(f"a turn is tried at least once, not {times} times", kind="bad-attempts")
    return _attempts(begin, times, on)


def _attempts(begin: Callable[[bool], Turn[S]], times: int, on: Errors) -> Iterator[Attempt[S]]:
    for number in range(1, times + 1):
        attempt = Attempt(begin(number > 1), on, number == times)
        yield attempt
        if not attempt.failed:
            return
