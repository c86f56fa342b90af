"""The base of engines whose client runs on an event loop: calls from any thread, forked processes, closing.

Appends that arrive before the loop runs wake it once. So many threads that append at the same time cost one call, and
their commits are sent together.
"""

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
from wakelog.errors import NotFoundError, UnavailableError, WakelogError

T = TypeVar("T")
A = TypeVar("A", bound=AppendAnswer)
Step = Callable[[], Coroutine[Any, Any, object]]
TOGETHER = 32
"""After so many appends of one loop, the first ones are sent while the next are prepared."""
_INHERITED: list[Any] = []


class LoopOwner(ABC):
    """An engine that runs its work on a loop."""

    loop_name = ""
    _closed = False

    def _start(self) -> None:
        """Starts the loop; engines extend it to set up what runs there. Called again in a forked child."""
        self._pid = os.getpid()
        self._loop = LoopThread(self.loop_name)

    @abstractmethod
    def _inherited(self) -> tuple[Any, ...]:
        """What a forked child must keep alive, because closing it would end the parent's connections."""

    def _after_fork(self) -> None:  # noqa: B027 - not every engine has something to do
        """Called in a forked child after `_start`."""

    @abstractmethod
    def _translate(self, exc: Exception) -> WakelogError:
        """Our error for an error of the client."""

    def _check(self) -> None:
        if self._closed:
            raise store_closed()
        if self._pid != os.getpid():
            # In a forked child the loop and its connections still belong to the parent. Keep them alive here: closing a
            # connection would tell the server to end the parent's.
            _INHERITED.append((self._loop, *self._inherited()))
            self._start()
            self._after_fork()

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Runs a coroutine on the loop, and waits for it."""
        self._check()
        return self._await(work())

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return self._loop.run(work)
        except WakelogError:
            raise
        except Exception as exc:
            raise self._translate(exc) from exc

    def _shut_down(self, *steps: Step, last: Step | None = None) -> None:
        """Runs the steps on the loop, each even if the one before failed; cancels all other tasks, runs `last`, and
        stops the loop."""

        async def attempt(step: Step) -> None:
            with contextlib.suppress(Exception):
                await step()

        async def end() -> None:
            for step in steps:
                await attempt(step)
            if tasks := asyncio.all_tasks() - {asyncio.current_task()}:
                for task in tasks:
                    task.cancel()  # a caller in another thread still waits for it
                await asyncio.wait(tasks, timeout=5)  # so that a connection being opened is closed
            if last is not None:
                await attempt(last)

        if self._pid == os.getpid():
            with contextlib.suppress(Exception):
                self._loop.run(end())
            self._loop.stop()


class Arrivals(Generic[A]):
    """Passes appends from any thread to the loop, in order."""

    def __init__(self, loop: LoopThread, take: Callable[[A], None], taken: Callable[[], None] = lambda: None) -> None:
        """`take` is called with each on the loop, and `taken` after several."""
        self._loop, self._take, self._taken = loop, take, taken
        self._arrived: deque[A] = deque()
        self._is_scheduled = False
        self._collector: asyncio.AbstractEventLoop | None = None
        """The loop of callers that will pass on what has arrived when its tasks have run."""

    def put(self, pending: A) -> None:
        """Called by any thread."""
        self._arrived.append(pending)
        self.pass_on()

    def collect(self, pending: A) -> None:
        """The same in a task of a caller's loop. The appends of all its tasks that are ready are passed on together,
        when these have run, or when there are TOGETHER of them."""
        self._arrived.append(pending)
        loop = asyncio.get_running_loop()
        if len(self._arrived) >= TOGETHER:
            self.pass_on()
        elif self._collector is None:
            self._collector = loop
            loop.call_soon(self._pass_on_collected)
        elif self._collector is not loop:
            self.pass_on()

    def _pass_on_collected(self) -> None:
        self._collector = None
        if self._arrived:
            self.pass_on()

    def pass_on(self) -> None:
        """Wakes the loop, unless it will look anyway."""
        if not self._is_scheduled:
            self._is_scheduled = True
            try:
                self._loop.soon(self.take_all)
            except RuntimeError:  # the loop has stopped
                self.refuse_all()

    def take_all(self) -> None:
        self._is_scheduled = False  # first, so that an append that arrives later is taken below or schedules a new call
        while self._arrived:
            self._take(self._arrived.popleft())
        self._taken()

    def refuse_all(self) -> None:
        """Refuses what arrived after the loop had stopped."""
        self._is_scheduled = False
        with contextlib.suppress(IndexError):  # another thread is doing the same
            while self._arrived:
                self._arrived.popleft().refuse(store_closed())


def no_store(place: str) -> NotFoundError:
    return NotFoundError(
        f"there is no store in {place}",
        kind="store-not-found",
        hint="wakelog store create URL makes it; or correct the name in the URL",
    )


def store_closed() -> UnavailableError:
    return UnavailableError("the store was closed", kind="store-closed", hint="open it again")
