"""What engines have in common whose client lives on a loop: asking it from any thread, a process that forks, the end.

A loop is woken once for all that arrives before it looks: many threads that append at once cost one call, and what
they brought goes out together."""

from __future__ import annotations

import asyncio
import contextlib
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from wakelog.engines.append_answer import AppendAnswer
from wakelog.engines.loop_thread import LoopThread
from wakelog.errors import UnavailableError, WakelogError

T = TypeVar("T")
A = TypeVar("A", bound=AppendAnswer)
Step = Callable[[], Coroutine[Any, Any, object]]
_INHERITED: list[Any] = []


class LoopOwner(ABC):
    """The side of an engine that asks on a loop."""

    loop_name = ""
    _closed = False

    def _begin(self) -> None:
        """Starts the loop; an engine goes on with what lives on it. Again in a forked child."""
        self._pid = os.getpid()
        self._loop = LoopThread(self.loop_name)

    @abstractmethod
    def _belongings(self) -> tuple[Any, ...]:
        """What a forked child must not let go of."""

    def _return(self) -> None:  # noqa: B027 - not every engine has something to do
        """What a forked child does once it has begun."""

    @abstractmethod
    def _translated(self, exc: Exception) -> WakelogError:
        """An error of the client as one of ours."""

    def _check(self) -> None:
        if self._closed:
            raise store_closed()
        if self._pid != os.getpid():
            # A forked child: the loop and its connections are the parent's, which goes on with them. They are kept,
            # since whoever lets go of a connection says good-bye, and the server would end the parent's.
            _INHERITED.append((self._loop, *self._belongings()))
            self._begin()
            self._return()

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Does something on the loop, and waits for it."""
        self._check()
        return self._await(work())

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return self._loop.run(work)
        except WakelogError:
            raise
        except Exception as exc:
            raise self._translated(exc) from exc

    def _end(self, *steps: Step, last: Step | None = None) -> None:
        """Does these things on the loop, each whatever became of the one before, lets go of what is still under way,
        and ends the loop."""

        async def attempt(step: Step) -> None:
            with contextlib.suppress(Exception):
                await step()

        async def end() -> None:
            for step in steps:
                await attempt(step)
            if left := asyncio.all_tasks() - {asyncio.current_task()}:
                for task in left:
                    task.cancel()  # a caller in another thread still waits for it
                await asyncio.wait(left, timeout=5)  # a connection being opened is let go of on the way
            if last is not None:
                await attempt(last)

        if self._pid == os.getpid():
            with contextlib.suppress(Exception):
                self._loop.run(end())
            self._loop.stop()


class Arrivals(Generic[A]):
    """Appends that come from any thread and are taken on the loop, in order."""

    def __init__(self, loop: LoopThread, take: Callable[[A], None]) -> None:
        self._loop, self._take = loop, take
        self._arrived: deque[A] = deque()
        self._is_called = False

    def put(self, pending: A) -> None:
        """Called by any thread."""
        self._arrived.append(pending)
        if not self._is_called:
            self._is_called = True
            try:
                self._loop.soon(self.take_all)
            except RuntimeError:  # it has ended
                self.refuse_all()

    def take_all(self) -> None:
        self._is_called = False  # first: who arrives from now on is taken below, or calls again
        while self._arrived:
            self._take(self._arrived.popleft())

    def refuse_all(self) -> None:
        """What arrived when the loop had ended."""
        self._is_called = False
        with contextlib.suppress(IndexError):  # another thread does the same
            while self._arrived:
                self._arrived.popleft().refuse(store_closed())


def store_closed() -> UnavailableError:
    return UnavailableError("the store was closed", kind="store-closed", hint="open it again")
