"""Verbs that only append, as coroutines without a thread.

These verbs end with what `_store` or `_store_one` returns. Here that is a coroutine, so the verbs return one too, and
none of them is written twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.runtime.bridge import in_thread
from wakelog.runtime.task_append import append_in_task, record_in_task
from wakelog.session.base import Base
from wakelog.session.records import Records


class TaskRecords(Records[Any]):
    """A session for a task that appends."""

    def __init__(self, session: Base[Any]) -> None:
        super().__init__(session.log, name=session.name)
        self._runtime = session._runtime

    def _store(
        self, events: Sequence[ev.Event | EventDraft], expect: Seq | None, commit_id: str, guard: int | None
    ) -> Any:
        if commit_id:  # which may have been used before, and that has to be asked
            return in_thread(self.log.append, *events, expect=expect, commit_id=commit_id, guard=guard)
        return append_in_task(self.log, events, expect, guard)

    def _store_one(self, draft: EventDraft, guard: int | None) -> Any:
        return record_in_task(self.log, draft, guard)
