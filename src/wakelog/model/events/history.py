"""Events about history itself: rewinds, compaction, removal, names, remarks, gaps."""

from __future__ import annotations

from typing import Literal

import msgspec

from wakelog.model.events.base import Event, core
from wakelog.model.values import Value


@core("history.rewound")
class HistoryRewound(Event, frozen=True, gc=False):
    """The view moves back to `to`. `under` is the rewind that was in effect there (0: none), so that the visible
    history can be walked from here without reading what lies between. With `files`, files on disk were brought back to
    what they were at that event; what was changed stands before this event, in the same commit."""

    to: int
    under: int = 0
    mode: Literal["rewind", "retry", "undo", "redo", "adopt"] = "rewind"
    files: int = 0


@core("history.compacted", payloads=("summary",))
class HistoryCompacted(Event, frozen=True, gc=False):
    """A range of transient messages is replaced in view by a summary; the log keeps them."""

    first: int
    last: int
    summary: Value


@core("history.expanded")
class HistoryExpanded(Event, frozen=True, gc=False):
    """A compaction is taken back: the messages it replaced are in view again."""

    compacted: int


@core("history.adopted")
class HistoryAdopted(Event, frozen=True, gc=False):
    """A fork's result is taken back: the restorable parts of the state become those of `session` at event `at`, whose
    chain's hash there is `hash`. It follows a rewind with mode `adopt`, and copies follow it: the first stands for
    event `copied[0]` of the fork, and so on. `gone` more could not be copied, because their content was erased or
    pruned."""

    session: str
    at: int
    hash: str
    copied: tuple[int, ...] = ()
    gone: int = 0


@core("payload.redacted")
class PayloadRedacted(Event, frozen=True, gc=False):
    """Secrets were masked at the door; says what kind and where, never what."""

    target: int
    markers: tuple[str, ...] = ()


class Replacement(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What stands for an erased body: the fields that are structure, and the delta with values masked."""

    seq: int
    body: dict[str, Value]


@core("payload.erased")
class PayloadErased(Event, frozen=True, gc=False):
    """Bodies and payloads of the named events are gone. The fold uses the replacements from then on."""

    erased: tuple[Replacement, ...]
    by: str = ""


@core("range.pruned", payloads=("base",))
class RangePruned(Event, frozen=True, gc=False):
    """Bodies up to and including `upto` are gone; headers stay. `base` is the state at `upto`, as a payload. `rewinds`
    are those among them: seq, `to` and `under` of each, since what is in view later may still depend on them."""

    upto: int
    last_hash: str
    base: Value
    rewinds: tuple[tuple[int, int, int], ...] = ()


@core("checkpoint.named")
class CheckpointNamed(Event, frozen=True, gc=False):
    """A name for (session, at). With `remove` the name is taken away."""

    name: str
    at: int
    remove: bool = False
    state_hash: str = ""


@core("note.added")
class NoteAdded(Event, frozen=True, gc=False):
    """A person's or a tool's remark on an earlier event (0: on the session)."""

    text: str
    on: int = 0


@core("gap.noted")
class GapNoted(Event, frozen=True, gc=False):
    """Something was not recorded. A gap that is known is part of the record."""

    missed: str
    source: str = ""


@core("records.imported", payloads=("records",))
class RecordsImported(Event, frozen=True, gc=False):
    """Which records of another program's transcript the events before it in this commit were made from. `records` has
    an entry for each: its id, how many events it gave, and what those events do not hold of it, as it was. For a record
    that the program writes again when there is more of it, the names of the steps that were taken from it follow.
    `size` and `changed` are those of the file when it was read."""

    format: str
    source: str = ""
    records: Value = None
    size: int = 0
    changed: int = 0
