"""An event loop without a thread: the callers that need it run it, one at a time.

So a plain call can use an asynchronous client without handing its work to another thread and back. Between two runs
nothing happens on the loop: what arrives on its sockets waits until the next run.

A forked child shares with its parent what the system watches for the loop. If the child closed the loop, or collected
it as garbage, the parent would hear of nothing any more. So a child watches nothing of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from wakelog.engines.deferred_signals import DeferredSignals
from wakelog.engines.group_commit import Bell

T = TypeVar("T")


class DrivenLoop:
    """Runs coroutines in the caller's thread. Callers make sure that only one of them does so at a time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._selector = selectors.DefaultSelector()
        self._loop = asyncio.SelectorEventLoop(self._selector)
        self._helper: ThreadPoolExecutor | None = None
        _LOOPS.add(self)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        if asyncio._get_running_loop() is None:
            is_main = threading.current_thread() is threading.main_thread()
            return self._run_in_main_thread(work) if is_main else self._loop.run_until_complete(work)
        # A thread can run one loop at a time, and this one is inside the caller's.
        if self._helper is None:
            self._helper = ThreadPoolExecutor(1, self._name)
        bell = Bell()  # and not the wait of a future, which an interrupt can leave locked for the helper
        results: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(self._loop.run_until_complete(work))
            except BaseException as exc:
                errors.append(exc)
            finally:
                bell.ring()

        self._helper.submit(run)
        bell.wait(-1)
        if errors:
            raise errors[0]
        return results[0]

    def _run_in_main_thread(self, work: Coroutine[Any, Any, T]) -> T:
        """Only here do signal handlers run. The loop stops for them between two callbacks, and goes on if none of them
        raises."""
        task = self._loop.create_task(work)
        task.add_done_callback(lambda _: self._loop.stop())
        with DeferredSignals(lambda: self._loop.call_soon_threadsafe(self._loop.stop)) as signals:
            while not task.done():
                self._loop.run_forever()
                signals.deliver()
        signals.deliver()
        return task.result()

    def time(self) -> float:
        return self._loop.time()

    def abort(self, drop: Callable[[], None]) -> None:
        """Closes the loop after an interrupt of `run`. `drop` is called first, to give up the client's connections."""

        def end() -> None:
            drop()
            for task in asyncio.all_tasks(self._loop):
                task.cancel()

        if self._loop.is_running():  # in the helper's thread; it was the caller's that was interrupted
            self._loop.call_soon_threadsafe(end)
        else:
            drop()
        self.close()

    def close(self) -> None:
        """Ends what is left on the loop, and the loop."""
        if not self._loop.is_closed():
            # An interrupt may have left it in any state.
            with contextlib.suppress(Exception, asyncio.CancelledError):
                self.run(_end_tasks())
            with contextlib.suppress(Exception):
                self._loop.close()
        if self._helper is not None:
            self._helper.shutdown(wait=False)

    def leave_to_parent(self) -> None:
        """Called in a forked child."""
        if not self._loop.is_closed():
            self._selector.close()
            self._selector.__init__()  # type: ignore[misc] # the loop keeps it: empty, and the child's own


async def _end_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=5)
    await asyncio.sleep(0)  # so that closed transports let go of their sockets


_LOOPS: weakref.WeakSet[DrivenLoop] = weakref.WeakSet()


def _leave_to_parent() -> None:
    for loop in [*_LOOPS]:
        loop.leave_to_parent()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_leave_to_parent)
