"""A checkpoint on its way into the log: sealed and in line, or to be sealed again because another writer came first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wakelog.adapters.langgraph.thread_data import CheckpointDraft
from wakelog.adapters.langgraph.waiting_writes import TaskWrites
from wakelog.log.seal import Sealed


class PutInLine:
    """One checkpoint, with the writes of tasks that it takes along."""

    __slots__ = ("draft", "is_stored", "new_versions", "ns", "number", "sealed", "waiting")

    def __init__(self, ns: str, draft: CheckpointDraft, new_versions: dict[str, Any]) -> None:
        self.ns = ns
        self.draft = draft
        self.new_versions = new_versions
        self.waiting: Sequence[TaskWrites] = ()
        self.sealed: Sealed | None = None
        self.number = 1
        """How often a checkpoint of this id was stored, with this one."""
        self.is_stored = False

    def leads_to(self, other: PutInLine) -> bool:
        return (self.ns, self.draft.id) == (other.ns, other.draft.parent)
