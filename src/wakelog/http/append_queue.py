"""The queue of sealed commits on their way to the engine: one queue for each namespace, stored in batches.

Checking a commit uses the processor; storing it waits for the disk. Two threads take turns. One takes everything in the
queue, checks it and waits for the disk; meanwhile the other takes what has arrived since. So one thread computes while
the other waits, commits that arrive together share a sync, and threads do not compete for the interpreter. A single
request is checked, stored and answered by one thread.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Sequence

import msgspec

from wakelog.engine import Pending
from wakelog.engines.remote.wire import Answers, SubmitAnswer
from wakelog.errors import UnavailableError, WakelogError
from wakelog.http.problems import problem
from wakelog.log.foreign_commits import Admission
from wakelog.model.records import Commit

THREADS = 2
BATCH = 64
"""Requests taken at once."""

Groups = Sequence[tuple[Commit, ...]]


class _Request(msgspec.Struct, frozen=True, eq=False):
    groups: Groups
    answer: asyncio.Future[Answers]


class CommitQueue:
    """One space's line of commits to be stored."""

    def __init__(self, admission: Admission, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self._admission = admission
        self._loop = loop
        self._line: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._computing = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, name=f"lane {name} {i}", daemon=True) for i in range(THREADS)
        ]
        for thread in self._threads:
            thread.start()

    async def submit(self, groups: Groups) -> Answers:
        """What becomes of each group, when it is durable. Called on the event loop."""
        future: asyncio.Future[Answers] = self._loop.create_future()
        self._line.put(_Request(groups, future))
        return await future

    def close(self) -> None:
        """Finishes what is in line."""
        for _ in self._threads:
            self._line.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (first := self._line.get()) is not None:
            with self._computing:
                batch = [first, *self._more()]
                launched = [[_launch(self._admission, group) for group in request.groups] for request in batch]
            answers = [Answers(tuple(map(_land, each))) for each in launched]
            self._loop.call_soon_threadsafe(_deliver, batch, answers)

    def _more(self) -> list[_Request]:
        found: list[_Request] = []
        while len(found) < BATCH:
            try:
                request = self._line.get_nowait()
            except queue.Empty:
                break
            if request is None:
                self._line.put(None)  # meant for a thread that waits
                break
            found.append(request)
        return found


def _launch(admission: Admission, group: tuple[Commit, ...]) -> Pending | WakelogError:
    try:
        return admission.submit(*group)
    except Exception as exc:
        return _told(exc)


def _land(launched: Pending | WakelogError) -> SubmitAnswer:
    if isinstance(launched, WakelogError):
        return SubmitAnswer(problem=problem(launched))
    try:
        return SubmitAnswer(head=launched.result())
    except Exception as exc:
        return SubmitAnswer(problem=problem(_told(exc)))


def _told(exc: Exception) -> WakelogError:
    """A fault of our own must not stop the line; whether its commit was stored is unknown."""
    if isinstance(exc, WakelogError):
        return exc
    import logging

    logging.getLogger("wakelog.http").error("fault", exc_info=exc)
    return UnavailableError(f"an internal error of the server: {type(exc).__name__}", kind="answer-unknown")


def _deliver(batch: list[_Request], answers: list[Answers]) -> None:
    for request, answer in zip(batch, answers, strict=True):
        if not request.answer.done():  # whoever asked may have gone away
            request.answer.set_result(answer)
