"""Threads of another checkpointer, copied so that their graphs go on here.

Checkpoints are copied oldest first, each with what its tasks wrote, in one commit under its own id. So a copy that was
cut short goes on where it was, and a second one adds only what is new. A thread that has gone on here is left alone.
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
    """What was copied of a thread."""

    thread: str
    checkpoints: int = 0
    has_gone_on: bool = False
    """It was used here since: then it is left as it is."""


def copy_threads(
    saver: WakelogSaver, source: BaseCheckpointSaver, places: Iterable[CheckpointPlace] | None = None
) -> Iterator[ThreadCopied]:
    """Copies what is not here yet. `places` are the checkpoints to copy, oldest first; by default all of the source."""
    by_thread: dict[str, list[CheckpointPlace]] = {}
    for place in _places(source) if places is None else places:
        by_thread.setdefault(place.thread, []).append(place)
    for thread, found in by_thread.items():
        yield _copy_thread(saver, source, thread, found)


def _places(source: BaseCheckpointSaver) -> list[CheckpointPlace]:
    """All checkpoints there are. Only their places are kept: each holds a whole state."""
    found = []
    for each in source.list(None):
        at = each.config["configurable"]
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
        each = source.get_tuple({"configurable": at})
        if each is not None:
            saver.put_copy(thread, each)
            copied += 1
    return ThreadCopied(thread, copied)
