"""An event loop in its own thread, because database clients are asynchronous and engines are plain calls."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from wakelog.engines.group_commit import Bell

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for callers in any thread."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        bell = Bell()  # and not the wait of a future, which an interrupt can leave locked for the loop
        tasks: list[asyncio.Task[T]] = []

        def start() -> None:
            tasks.append(self._loop.create_task(work))
            tasks[0].add_done_callback(lambda _: bell.ring())

        self._loop.call_soon_threadsafe(start)
        bell.wait(-1)
        if tasks[0].cancelled():
            raise CancelledError
        return tasks[0].result()

    def soon(self, call: Any, *args: Any) -> None:
        self._loop.call_soon_threadsafe(call, *args)

    def stop(self) -> None:
        if self._thread is not threading.current_thread():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(5)
            if not self._thread.is_alive():
                self._loop.close()
