"""Appending in a task of an event loop, without a thread that waits.

Sealing uses the processor only, so a task may do it; waiting is what a loop must not do. So an append is *launched* in
the task if nothing has to be asked or waited for: the tip is here, the lock is free, the events are small, and
legal by what this process knows, and the engine takes a commit without a wait (`Abilities.submit_soon`). The task
awaits the answer, and *settles* it. Whatever is not as expected is left to `append` and `land` in a thread, so there is
one place that decides.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import msgspec

from wakelog.errors import WakelogError
from wakelog.log.admission import Redact, admit
from wakelog.log.append import Appender
from wakelog.log.seal import Sealed, SealStep, seal
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.pending import AwaitedAppend
from wakelog.model.records import Commit, EventDraft, Head

SMALL_BYTES = 64 * 1024
"""More than this is sealed in a thread: it takes a millisecond and more, for which the other tasks would wait."""
_encode = msgspec.msgpack.Encoder().encode


class TaskAppender(Appender):
    """The part of a log that appends in a task."""

    redact: Redact | None
    _submit_soon: Callable[[Commit], AwaitedAppend] | None = None
    _has_looked_for_soon = False

    @property
    def takes_tasks(self) -> bool:
        """Whether the engine takes a commit from a task, and reports its answer there."""
        if not self._has_looked_for_soon:
            self._submit_soon, self._has_looked_for_soon = self.engine.abilities.submit_soon, True
        return self._submit_soon is not None

    def launch_in_task(
        self, events: Sequence[ev.Event | EventDraft], expect: Seq | None = None, guard: int | None = None
    ) -> Sealed | None:
        """Seals events at the session's end and submits them, if that needs no wait; else None, and nothing was done.
        `settle_in_task` or `land` must follow when there is an answer."""
        if self._pid != os.getpid() or not self.takes_tasks:
            return None
        steps = admit(events, self.redact)
        if not _are_small(steps):
            return None
        if not self._is_settled and len(self.segments) > 1:
            return None
        if not self._lock.acquire(blocking=False):
            return None
        try:
            tip = self._tip
            if tip is None or self._is_stale or not self._is_whole or self._was_interrupted:
                return None
            if expect is not None and tip.seq != expect:
                return None
            self._looked_at = -1
            self._is_whole = False
            try:
                sealed = seal(tip, self.id, steps, now=self.clock(), guard=guard)
            except WakelogError:
                self._is_whole = True
                return None
            return self._submit(sealed, self._submit_soon)
        except BaseException as exc:
            self._note_interrupt(exc)
            raise
        finally:
            self._lock.release()

    def settle_in_task(self, sealed: Sealed) -> Head | None:
        """The head that a launched commit led to, if it is stored and that needs no wait; else None, and `land` must
        follow."""
        head: Head | None = sealed.pending.stored  # type: ignore[attr-defined]  # it is an AwaitedAppend
        if head is None or head.hash != sealed.commit.hash or self._pid != os.getpid():
            return None
        if not self._lock.acquire(blocking=False):
            return None
        try:
            self._leave_flight(sealed)
        finally:
            self._lock.release()
        return head

    def abandon(self) -> None:
        """Stops waiting for a launched commit. Its outcome is unknown, so the next append asks the store."""
        self._was_interrupted = True


def _are_small(steps: Sequence[SealStep]) -> bool:
    size = 0
    for step in steps:
        if step.encoded is None:
            try:
                size += len(_encode(step.draft.event))
            except Exception:
                return False
        else:
            body, payloads = step.encoded
            size += len(body)
            if payloads:
                size += sum(map(len, payloads.values()))
    return size <= SMALL_BYTES
