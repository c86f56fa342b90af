"""Events about history itself: rewinds, compaction, removal, names, notes, gaps."""

from __future__ import annotations

from typing import Literal

import msgspec

from wakelog.model.events.base import Cost, Event, core
from wakelog.model.values import Value


@core("history.rewound")
class HistoryRewound(Event, frozen=True, gc=False):
    """The view goes back to `to`. `under` is the rewind that was in effect there (0: none), so that a reader can find
    the visible history without reading the events in between. With `files`, files on disk were restored to what they
    were at that event; the changes are recorded before this event, in the same commit."""

    to: int
    under: int = 0
    mode: Literal["rewind", "retry", "undo", "redo", "adopt"] = "rewind"
    files: int = 0


@core("history.compacted", payloads=("summary",))
class HistoryCompacted(Event, frozen=True, gc=False):
    """A summary replaces a range of messages in the view; the log keeps them."""

    first: int
    last: int
    summary: Value


@core("history.expanded")
class HistoryExpanded(Event, frozen=True, gc=False):
    """A compaction is reverted: the messages it replaced are in view again."""

    compacted: int


@core("history.adopted")
class HistoryAdopted(Event, frozen=True, gc=False):
    """A fork's result is adopted: the restorable parts of the state become those of `session` at event `at`, where its
    chain has the hash `hash`. Before this event there is a rewind with mode `adopt`. After it there are copies: the
    first is a copy of event `copied[0]` of the fork, and so on. `gone` more could not be copied, because their content
    was erased or pruned. `cost` is what the fork itself spent and no earlier adoption has counted: it counts here
    too."""

    session: str
    at: int
    hash: str
    copied: tuple[int, ...] = ()
    gone: int = 0
    cost: Cost = Cost()


@core("payload.redacted")
class PayloadRedacted(Event, frozen=True, gc=False):
    """Secrets were replaced before the event was stored. This says which kinds, and in which event; never the
    secrets."""

    target: int
    markers: tuple[str, ...] = ()


class Replacement(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What replaces an erased body: the fields that are structure, and the delta with masked values."""

    seq: int
    body: dict[str, Value]


@core("payload.erased")
class PayloadErased(Event, frozen=True, gc=False):
    """The bodies and payloads of the named events were erased. From now on the replacements are used to compute the
    state."""

    erased: tuple[Replacement, ...]
    by: str = ""


@core("range.pruned", payloads=("base",))
class RangePruned(Event, frozen=True, gc=False):
    """The bodies up to and including `upto` were pruned; headers stay. `base` is the state at `upto`, as a payload.
    `rewinds` lists the pruned rewinds with seq, `to` and `under`, because what is in view later may depend on them.
    `turn_totals` and `call_totals` are the totals of the pruned turns: numbers for reports, on which no state
    depends."""

    upto: int
    last_hash: str
    base: Value
    rewinds: tuple[tuple[int, int, int], ...] = ()
    turn_totals: tuple[tuple[int, ...], ...] = ()
    call_totals: tuple[tuple[int, ...], ...] = ()


REMOVAL_KINDS = frozenset({PayloadErased.kind, RangePruned.kind})
"""Events that say that content of earlier events is gone."""


@core("checkpoint.named")
class CheckpointNamed(Event, frozen=True, gc=False):
    """A point got a name. With `remove` the name was removed."""

    name: str
    at: int
    remove: bool = False
    state_hash: str = ""


@core("note.added")
class NoteAdded(Event, frozen=True, gc=False):
    """A person's or a tool's note on an earlier event (0: on the session)."""

    text: str
    on: int = 0


@core("gap.noted")
class GapNoted(Event, frozen=True, gc=False):
    """Something is known to be missing from the record."""

    missed: str
    source: str = ""


@core("git_commit.linked")
class GitCommitLinked(Event, frozen=True, gc=False):
    """A git commit contains work of a turn. `on` is the event that shows it. `known` says how: `recorded` (a call made
    the commit, and its output names it), `matched` (the commit has a file exactly as the turn left it), `derived` (it
    was made during the turn, and contains a file that the turn had changed)."""

    commit: str
    turn: int
    on: int = 0
    known: Literal["recorded", "matched", "derived"] = "derived"
    subject: str = ""
    repo: str = ""


@core("records.imported", payloads=("rest",))
class RecordsImported(Event, frozen=True, gc=False):
    """Names the records of another program's transcript from which the preceding events of this commit were made: the
    id of each, and its number of events. `rest` is a text with one line of JSON for each record: what the events do not
    hold of it, unchanged. Fields that every record repeats may be under `common`, which is `"same"` if they equal those
    of the last record that has them. A record whose events the log refused has `refused`, `record` and `events`
    instead. `size` and `changed` are those of the file when it was read. `steps` names what was imported from records
    that the program rewrites as they grow, so that it is not imported twice."""

    format: str
    source: str = ""
    ids: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    rest: Value = None
    size: int = 0
    changed: int = 0
    steps: tuple[str, ...] = ()


@core("items.kept", payloads=("rest",))
class ItemsKept(Event, frozen=True, gc=False):
    """Names the items of a framework's own history from which the following events of this commit were made, and the
    number of events of each (`counts`). `rest` is a text with one line of JSON for each item. In it, `{"$in": [n,
    field, …]}` stands for the value at that place of event n, counted from the item's first event, and `"as"` says that
    it is the value as JSON text (`json`: compact, `json-spaced`: with a space after each `,` and `:`). So an item is
    stored once and can be restored exactly, and what is erased from an event is gone from its item. If an object has a
    key `$in` itself, it is written as `{"$in": {"is": …}}`.

    Adapters that assemble their objects themselves (`adk`, `agent-framework-checkpoint`, `crewai-checkpoint`,
    `crewai-feedback`) write this event after the events it is about, and `rest` is one JSON object of their own."""

    format: str
    counts: tuple[int, ...] = ()
    rest: Value = None
    ids: tuple[str, ...] = ()
    """The framework's own ids of the items, if it has any."""
