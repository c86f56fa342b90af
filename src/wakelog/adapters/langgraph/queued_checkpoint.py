"""A checkpoint on its way into the log: sealed and queued, or to be sealed again because another writer came first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wakelog.adapters.langgraph.thread_data import CheckpointDraft, checkpoint_key
from wakelog.adapters.langgraph.waiting_writes import TaskWrites
from wakelog.log.seal import Sealed


class QueuedCheckpoint:
    """One checkpoint, with the task writes that are stored in the same commit."""

    __slots__ = ("draft", "is_by_hand", "is_stored", "key", "new_versions", "ns", "number", "sealed", "writes")

    def __init__(
        self, ns: str, draft: CheckpointDraft, new_versions: dict[str, Any], *, is_by_hand: bool = True
    ) -> None:
        self.ns = ns
        self.draft = draft
        self.key = checkpoint_key(ns, draft.id)
        self.new_versions = new_versions
        self.writes: Sequence[TaskWrites] = ()
        self.sealed: Sealed | None = None
        self.number = 1
        """How often a checkpoint with this id was stored, counting this one."""
        self.is_stored = False
        self.is_by_hand = is_by_hand
        """True if no graph stores it, but a program that calls the saver itself."""

    @property
    def parent_key(self) -> str:
        return checkpoint_key(self.ns, self.draft.parent)
