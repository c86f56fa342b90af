"""Awaiting an append: in the task itself where the engine can, otherwise in a worker thread.

An engine answers in a thread of its own. Many appends are answered together, so the caller's loop is woken once for all
of them, after the engine's loop has done what it is doing: else the two threads would compete for the interpreter.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wakelog.errors import ConflictError
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.pending import AwaitedAppend
from wakelog.model.records import Commit, EventDraft, Head
from wakelog.runtime.bridge import in_thread
from wakelog.runtime.worker_threads import start_in_thread

if TYPE_CHECKING:
    import asyncio


class LoopBell:
    """Wakes the tasks of one loop whose appends were answered."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)
        self._answered: deque[asyncio.Future[None]] = deque()
        self._is_rung = False

    def wake(self, future: asyncio.Future[None]) -> None:
        """Called in any thread."""
        self._answered.append(future)
        answering = sys.modules["asyncio"]._get_running_loop()
        if answering is None:
            self._ring()
        elif not self._is_rung:
            self._is_rung = True
            answering.call_soon(self._ring)

    def _ring(self) -> None:
        loop = self._loop()
        try:
            if loop is not None:
                loop.call_soon_threadsafe(self._wake_all)
        except RuntimeError:  # it was closed, so no task waits
            self._answered.clear()

    def _wake_all(self) -> None:
        self._is_rung = False  # first, so that what is answered from now on is found below or rings again
        while self._answered:
            future = self._answered.popleft()
            if not future.done():
                future.set_result(None)


_bells: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, LoopBell] = weakref.WeakKeyDictionary()


async def append_in_task(
    log: Log, events: Sequence[ev.Event | EventDraft], expect: Seq | None = None, guard: int | None = None
) -> Head:
    """`Log.append`, awaited. If it is cancelled, the events may still be stored."""
    if (stored := await _store(log, events, expect, guard)) is not None:
        return stored[1]
    return await in_thread(log.append, *events, expect=expect, guard=guard)


async def record_in_task(log: Log, draft: EventDraft, guard: int | None = None) -> Seq:
    """`Log.record`, awaited."""
    if (stored := await _store(log, (draft,), None, guard)) is not None:
        return stored[0].first
    return await in_thread(log.record, draft, guard=guard)


async def _store(
    log: Log, events: Sequence[ev.Event | EventDraft], expect: Seq | None, guard: int | None
) -> tuple[Commit, Head] | None:
    """The stored commit and its head; None if nothing was stored, and the plain verb has to do it."""
    sealed = log.launch_in_task(events, expect, guard)
    if sealed is None:
        return None
    try:
        await _answer(sealed.pending)  # type: ignore[arg-type]  # an AwaitedAppend, since a task has launched it
    except GeneratorExit:
        log.abandon()  # its loop has ended, and no thread can be started for it
        raise
    except BaseException:
        # The commit was sent. The log must learn the result, although the caller does not wait for it.
        if log.settle_in_task(sealed) is None:
            start_in_thread(functools.partial(log.land, sealed))
        raise
    head = log.settle_in_task(sealed)
    try:
        return sealed.commit, head if head is not None else await in_thread(log.land, sealed)
    except ConflictError:
        return None  # another writer came first


async def _answer(pending: AwaitedAppend) -> None:
    import asyncio

    loop = asyncio.get_running_loop()
    bell = _bells.get(loop)
    if bell is None:
        bell = _bells[loop] = LoopBell(loop)
    future = loop.create_future()
    pending.on_given(functools.partial(bell.wake, future))
    await future
