"""Remembers the deleted transcripts, so that no import brings one back unasked.

A session that was imported is named after its transcript, and the transcript is still on the disk after the session is
deleted. The tombstone holds nothing of it and its name is free again. So a mark stays that says only: a session with
this origin was deleted. It is a hash, since an origin may be a path. The mark is set before the deletion; one whose
deletion did not happen does no harm, because the session is looked for first.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from wakelog.engine import Engine
from wakelog.errors import UnsupportedError

ORIGIN, AGENT = "origin", "agent"
MARK = re.compile(r"deleted-[0-9a-f]{32}")


def note_deletion(engine: Engine, labels: Mapping[str, object]) -> None:
    """Remembers that the session with these labels is deleted, if it was made from a transcript."""
    origin, marks = labels.get(ORIGIN), engine.abilities.marks
    if not isinstance(origin, str) or not origin or marks is None:
        return
    try:
        marks.set_mark(_name(str(labels.get(AGENT, "")), origin), "deleted")
    except UnsupportedError:
        return  # an older store or server has no place for it; deleting matters more


def was_deleted(engine: Engine, agent: str, origin: str) -> bool:
    """Whether a session made from this transcript was deleted. It may have been imported again since."""
    marks = engine.abilities.marks
    return marks is not None and bool(marks.mark(_name(agent, origin)))


def _name(agent: str, origin: str) -> str:
    return "deleted-" + hashlib.sha256(f"{agent}\0{origin}".encode(errors="replace")).hexdigest()[:32]
