"""The queue of sealed commits for the engine: one queue for each namespace, stored in batches.

Checking a commit uses the processor; storing it waits for the disk. Two threads take turns. One takes everything in the
queue, checks it and waits for the disk; meanwhile the other takes what has arrived since. So one thread computes while
the other waits, commits that arrive together share a sync, and threads do not compete for the interpreter. A single
request is checked, stored and answered by one thread.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Sequence

import msgspec

from wakelog.engine import Pending
from wakelog.engines.remote.wire import Answers, SubmitAnswer
from wakelog.errors import UnavailableError, WakelogError
from wakelog.http.problems import problem
from wakelog.log.foreign_commits import CommitChecker
from wakelog.model.records import Commit

THREADS = 2
BATCH = 64
"""How many requests one thread takes from the queue at once."""

_log = logging.getLogger("wakelog.http")

Groups = Sequence[tuple[Commit, ...]]


class _Request(msgspec.Struct, frozen=True, eq=False):
    groups: Groups
    answer: asyncio.Future[Answers]


class CommitQueue:
    """The queue of one namespace."""

    def __init__(self, checker: CommitChecker, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self._checker = checker
        self._loop = loop
        self._queue: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._computing = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, name=f"lane {name} {i}", daemon=True) for i in range(THREADS)
        ]
        for thread in self._threads:
            thread.start()

    async def submit(self, groups: Groups) -> Answers:
        """Stores the groups and returns an answer for each, when they are durable. Called on the event loop."""
        future: asyncio.Future[Answers] = self._loop.create_future()
        self._queue.put(_Request(groups, future))
        return await future

    def close(self) -> None:
        """Waits until everything in the queue is stored."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            with self._computing:
                batch = [first, *self._take_waiting()]
                started = [[_start(self._checker, group) for group in request.groups] for request in batch]
            answers = [Answers(tuple(map(_finish, each))) for each in started]
            self._loop.call_soon_threadsafe(_deliver, batch, answers)

    def _take_waiting(self) -> list[_Request]:
        results: list[_Request] = []
        while len(results) < BATCH:
            try:
                request = self._queue.get_nowait()
            except queue.Empty:
                break
            if request is None:
                self._queue.put(None)  # the end marker of the other thread
                break
            results.append(request)
        return results


def _start(checker: CommitChecker, group: tuple[Commit, ...]) -> Pending | WakelogError:
    try:
        return checker.submit(*group)
    except Exception as exc:
        return _as_error(exc)


def _finish(started: Pending | WakelogError) -> SubmitAnswer:
    if isinstance(started, WakelogError):
        return SubmitAnswer(problem=problem(started))
    try:
        return SubmitAnswer(head=started.result())
    except Exception as exc:
        return SubmitAnswer(problem=problem(_as_error(exc)))


def _as_error(exc: Exception) -> WakelogError:
    """A bug must not stop the queue. Whether its commit was stored is unknown."""
    if isinstance(exc, WakelogError):
        return exc
    _log.error("fault", exc_info=exc)
    return UnavailableError(f"an internal error of the server: {type(exc).__name__}", kind="answer-unknown")


def _deliver(batch: list[_Request], answers: list[Answers]) -> None:
    for request, answer in zip(batch, answers, strict=True):
        if not request.answer.done():  # the caller may have stopped waiting
            request.answer.set_result(answer)
