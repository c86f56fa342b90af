"""A thread that writes, so that nobody else can be hurt by it.

Jobs are done one at a time, in the order they were handed over. Whoever hands one over waits until it is done, so that
what is recorded stands in the order in which it happened; but no longer than a moment: a store that hangs must not make
the program hang. While the thread is behind, nobody waits.
"""

from __future__ import annotations

import contextvars
import functools
import os
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError

from wakelog.runtime.bridge import on_asyncio

WAIT_S = 1.0
"""How long somebody waits for a job."""
QUEUE_MAX = 10_000
"""Jobs that may wait; more than that are not taken."""

Job = Callable[[], None]


class RecordWriter:
    """Does jobs. After a fork the child gets a thread of its own, and forgets what the parent had still to do."""

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s
        self._start()

    def _start(self) -> None:
        self.pid = os.getpid()
        # Unlike Queue it can be put to from anywhere, also where the garbage collector happens to run.
        self._jobs: queue.SimpleQueue[tuple[contextvars.Context, Job, Future[None]] | None] = queue.SimpleQueue()
        self._is_behind = False
        self._thread = threading.Thread(target=self._work, args=(self._jobs,), name="wakelog writer", daemon=True)
        self._thread.start()

    def put(self, job: Job) -> Future[None] | None:
        """Hands a job over, with what is around this line; None when it is not taken."""
        if self.pid != os.getpid():
            self._start()
        if self._jobs.qsize() >= QUEUE_MAX:
            return None
        done: Future[None] = Future()
        self._jobs.put((contextvars.copy_context(), job, done))
        return done

    def wait(self, done: Future[None] | None) -> None:
        """Until a job is done, or long enough."""
        if done is None or self._is_behind or threading.current_thread() is self._thread:
            return
        try:
            done.result(self._wait_s)
        except TimeoutError:
            self._is_behind = True

    async def wait_async(self, done: Future[None] | None) -> None:
        """The same, awaited."""
        if done is None or done.done() or self._is_behind:
            return
        if on_asyncio():
            import asyncio

            # Not in a worker thread: they may all be taken by the program's own work.
            await asyncio.wait({asyncio.wrap_future(done)}, timeout=self._wait_s)
            self._is_behind = not done.done()
            return
        import anyio.to_thread

        await anyio.to_thread.run_sync(functools.partial(self.wait, done), abandon_on_cancel=True)

    def close(self, last: Job, timeout_s: float = 30.0) -> None:
        """Does what is left, and a last job. A slow store is waited for; one that takes nothing is given up."""
        if self.pid != os.getpid():
            return
        self.put(last)
        self._jobs.put(None)
        left, until = self._jobs.qsize(), time.monotonic() + timeout_s
        while self._thread.is_alive() and time.monotonic() < until:
            self._thread.join(0.2)
            if (now := self._jobs.qsize()) < left:
                left, until = now, time.monotonic() + timeout_s

    def _work(self, jobs: queue.SimpleQueue[tuple[contextvars.Context, Job, Future[None]] | None]) -> None:
        while (taken := jobs.get()) is not None:
            context, job, done = taken
            context.run(job)
            if jobs.empty():
                self._is_behind = False
            try:
                done.set_result(None)
            except InvalidStateError:
                continue  # who waited was cancelled
