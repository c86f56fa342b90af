"""An event loop without a thread of its own: whoever needs it runs it, one caller at a time.

So a plain call can use an asynchronous client without handing its work to another thread and back. Between two runs
nothing happens on the loop: what arrives on its sockets waits until the next run.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class DrivenLoop:
    """Runs coroutines in the caller's thread. Callers make sure that only one of them does so at a time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop = asyncio.new_event_loop()
        self._helper: ThreadPoolExecutor | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        if asyncio._get_running_loop() is None:
            return self._loop.run_until_complete(work)
        # A thread can run one loop at a time, and this one is inside the caller's.
        if self._helper is None:
            self._helper = ThreadPoolExecutor(1, self._name)
        return self._helper.submit(self._loop.run_until_complete, work).result()

    def time(self) -> float:
        return self._loop.time()

    def close(self) -> None:
        """Ends what is left on the loop, and the loop."""
        with contextlib.suppress(Exception):  # an interrupt may have left it in any state
            self.run(_end_tasks())
        with contextlib.suppress(Exception):
            self._loop.close()
        if self._helper is not None:
            self._helper.shutdown(wait=False)


async def _end_tasks() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=5)
    await asyncio.sleep(0)  # so that closed transports let go of their sockets
