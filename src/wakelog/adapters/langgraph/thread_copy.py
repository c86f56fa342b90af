"""Copies threads of another checkpointer, so that their graphs can continue here.

Checkpoints are copied oldest first, each with its task writes in one commit, under its own id. So a copy that was
interrupted can be repeated, and a repeated copy adds only what is new. A thread that was continued here is skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from langgraph.checkpoint.base import BaseCheckpointSaver

from wakelog.adapters.langgraph.saver import WakelogSaver


class CheckpointPlace(msgspec.Struct, frozen=True, gc=False):
    """Where a checkpoint is."""

    thread: str
    ns: str
    id: str


class ThreadCopied(msgspec.Struct, frozen=True):
    """The result for one thread."""

    thread: str
    checkpoints: int = 0
    has_gone_on: bool = False
    """True if it was continued here, and therefore skipped."""


def copy_threads(
    saver: WakelogSaver, source: BaseCheckpointSaver, places: Iterable[CheckpointPlace] | None = None
) -> Iterator[ThreadCopied]:
    """Copies the checkpoints in `places`, oldest first; by default all of the source. Skips those that exist here."""
    by_thread: dict[str, list[CheckpointPlace]] = {}
    for place in _places(source) if places is None else places:
        by_thread.setdefault(place.thread, []).append(place)
    for thread, found in by_thread.items():
        yield _copy_thread(saver, source, thread, found)


def _places(source: BaseCheckpointSaver) -> list[CheckpointPlace]:
    """Where all checkpoints are. The checkpoints are not kept: each holds a whole state."""
    found = []
    for checkpoint in source.list(None):
        at = checkpoint.config["configurable"]
        found.append(CheckpointPlace(str(at["thread_id"]), at.get("checkpoint_ns", ""), at["checkpoint_id"]))
    return sorted(found, key=lambda place: place.id)


def _copy_thread(
    saver: WakelogSaver, source: BaseCheckpointSaver, thread: str, found: list[CheckpointPlace]
) -> ThreadCopied:
    newest = saver.get_tuple({"configurable": {"thread_id": thread}})
    if newest is not None and CheckpointPlace(thread, "", newest.checkpoint["id"]) not in set(found):
        return ThreadCopied(thread, has_gone_on=True)
    copied = 0
    for place in found:
        if newest is not None and saver.has_checkpoint(thread, place.ns, place.id):
            continue
        at = {"thread_id": thread, "checkpoint_ns": place.ns, "checkpoint_id": place.id}
        copy = source.get_tuple({"configurable": at})
        if copy is not None:
            saver.put_copy(thread, copy)
            copied += 1
    return ThreadCopied(thread, copied)
