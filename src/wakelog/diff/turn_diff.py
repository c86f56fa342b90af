"""The turn diff: what the agent decided to do differently, and why.

Two states are compared part by part. Every change names the event that made it, the tool, the turn and the recorded
reason (writers.py). The points may be in one session, in forks of one tree, or in unrelated sessions; reasons come from
the history that leads to the second point.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from wakelog.diff.writers import Writer, Writers
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.document import KEPT_BY_ADAPTERS, decision_words, empty_document
from wakelog.model.html import box, table, text
from wakelog.model.ids import Seq, SessionId
from wakelog.model.values import Value
from wakelog.state.diff import diff
from wakelog.state.fold import Fold
from wakelog.state.patch import MISSING, Delta, child_of, equal, escape, tokens_of

How = Literal["added", "changed", "removed"]

PARTS = {
    "goal": "goal",
    "status": "status",
    "decisions_made": "decisions",
    "facts": "facts",
    "dead_ends": "dead ends",
    "pending_actions": "pending",
    "files_modified": "files",
    "working_set": "resources",
    "artefacts": "artefacts",
    "subagents": "sub-agents",
    "last_error": "errors",
    "trust": "trust",
    "budget": "budget",
    "flags": "flags",
    "labels": "labels",
    "checkpoints": "checkpoints",
    "evicted_keys": "evicted",
    "tools_used": "tools",
    "data": "data",
}
"""The parts of the state and their names for people, in reading order."""
_SIGNS = {"added": "+", "changed": "~", "removed": "−"}


class Change(msgspec.Struct, frozen=True):
    """One thing that is different, and the event that changed it."""

    part: str
    pointer: str
    how: How
    before: Value
    after: Value
    writer: Writer | None

    @property
    def key(self) -> str:
        """The last token of the pointer, readable."""
        tokens = tokens_of(self.pointer)
        return tokens[-1] if tokens else ""


class RunCall(msgspec.Struct, frozen=True):
    """What one of two runs did where their calls first differ."""

    seq: Seq | None
    """The event of its call; None if it made none."""
    turn: int
    tool: str
    said: str
    """The words that led to it, without code."""
    by: Literal["model", "user", ""]
    """Whose words these are."""


class RunsPart(msgspec.Struct, frozen=True):
    """The first call that differs between two runs."""

    a: RunCall
    b: RunCall


class TurnDiff(msgspec.Struct, frozen=True):
    """What changed between two points."""

    a: tuple[SessionId, Seq]
    b: tuple[SessionId, Seq]
    changes: tuple[Change, ...]
    patch: Delta
    """The same as an RFC 6902 patch: it turns the first state into the second."""
    first_call: RunsPart | None = None
    """For the ends of two sessions that share no history: the first call that differs. None if they made the same
    calls, and for all other points."""

    def of(self, part: str) -> tuple[Change, ...]:
        """The changes of one part, by its name for people (a value of PARTS)."""
        return tuple(c for c in self.changes if c.part == part)

    @property
    def decisions(self) -> tuple[str, ...]:
        """Each decision made between the points, as a sentence."""
        return tuple(decision_words(c.after) for c in self.of("decisions") if c.how != "removed")

    def _repr_html_(self) -> str:
        return _html(self)

    def __bool__(self) -> bool:
        return bool(self.changes)

    def __str__(self) -> str:
        if not self.changes:
            return "no change"
        return "\n".join(f"{_SIGNS[c.how]} {c.pointer}{_because(c)}" for c in self.changes)


def _because(change: Change) -> str:
    writer = change.writer
    if writer is None:
        return ""
    tool = f" {writer.tool}" if writer.tool else ""
    return f"  e{writer.seq}{tool}" + (f": {reason(writer)}" if writer.why else "")


def reason(writer: Writer) -> str:
    """Why a change was made; a reason that was not recorded says so."""
    return writer.why if writer.known == "recorded" else f"{writer.why} ({writer.known})"


def turn_diff(log_a: Log, a: Seq, log_b: Log, b: Seq, *, named: bool = True) -> TurnDiff:
    """What differs between the state at `a` in `log_a` and the state at `b` in `log_b`. Unless `named`, changes have no
    writers, and only the two states are read."""
    shared = shared_event(log_a, a, log_b, b)
    writers = Writers(log_b if b > shared else log_a)
    between: list[Entry] = []
    if named:
        between = list(log_b.entries(after=shared, upto=b) if b > shared else log_a.entries(after=shared, upto=a))
        writers.feed(between)
    before = log_a.state(a) if a else empty_document()
    after = _fold_onward(before, between, b) if shared == a < b else None
    if after is None:
        after = log_b.state(b) if b else empty_document()
    changes = tuple(_changes(before, after, writers))
    return TurnDiff((log_a.id, a), (log_b.id, b), changes, diff(before, after))


def _fold_onward(before: dict[str, Value], entries: list[Entry], upto: Seq) -> dict[str, Value] | None:
    """The state after these events; None if they were not read or one of them was pruned."""
    if not entries or entries[-1].seq != upto or not all(entry.record.body for entry in entries):
        return None
    return Fold.onward(before, (entry.delta for entry in entries)).doc


def shared_event(log_a: Log, a: Seq, log_b: Log, b: Seq) -> Seq:
    """The last event in the history of both points; 0 for unrelated sessions."""
    last = 0
    for one, two in zip(log_a.segments, log_b.segments, strict=False):
        if one.session != two.session:
            break
        last = min(one.last or a, two.last or b, a, b)
    return last


def _changes(before: dict[str, Value], after: dict[str, Value], writers: Writers) -> Iterator[Change]:
    for part, name in PARTS.items():
        for pointer, old, new in _pairs(part, before[part], after[part]):
            how: How = "added" if old is None else "removed" if new is None else "changed"
            writer = writers.who(pointer)
            if how == "removed" and writer is not None and writer.kind == "session.opened":
                writer = None  # opening removes nothing: the other session never had it
            yield Change(name, pointer, how, old, new, writer)


def _pairs(part: str, old: Value, new: Value) -> Iterator[tuple[str, Value, Value]]:
    """(pointer, before, after) for each entry that differs; None means that nothing is there."""
    if old is new:
        return  # consecutive states share the parts that did not change
    if part == "data":
        yield from _data_pairs(old, new)
    elif type(old) is dict and type(new) is dict and part != "last_error":
        for key in dict.fromkeys((*old, *new)):
            was, now = old.get(key), new.get(key)
            if was is now:
                continue
            pointer = f"/{part}/{escape(key)}"
            if part in ("working_set", "budget"):
                pairs = _entries(pointer, was or {}, now or {})
                # A budget counter that appears with the value zero is not a change.
                yield from (pair for pair in pairs if pointer != "/budget/spent" or pair[1] or pair[2])
            elif not equal(was, now):
                yield pointer, was, now
    elif not equal(old, new):
        yield f"/{part}", old, new


def _entries(pointer: str, old: Value, new: Value) -> Iterator[tuple[str, Value, Value]]:
    for key in dict.fromkeys((*old, *new)):
        if not equal(old.get(key), new.get(key)):
            yield f"{pointer}/{escape(key)}", old.get(key), new.get(key)


def _data_pairs(old: Value, new: Value) -> Iterator[tuple[str, Value, Value]]:
    for op in diff(old, new, ""):
        pointer = op["path"]
        if f"/data{pointer}".startswith(KEPT_BY_ADAPTERS):
            continue
        before = None if op["op"] == "add" else value_at(old, pointer)
        yield f"/data{pointer}", before, op.get("value")


def value_at(doc: Value, pointer: str) -> Value:
    """The value at a pointer, or None. In a list whose items moved, the pointer of a patch operation refers to the list
    at that step, so it may be missing in the original."""
    node = doc
    for token in tokens_of(pointer):
        node = child_of(node, token)
    return None if node is MISSING else node


def _html(found: TurnDiff) -> str:
    """The changes, each with its event and reason."""
    (session_a, a), (session_b, b) = found.a, found.b
    other = "" if session_a == session_b else f"{session_b}"
    title = f"{len(found.changes)} changes, e{a} → {text(other)}e{b}"
    return box(title, [table([_change_row(c)]) for c in found.changes], f"wakelog diff {session_a}e{a} {other}e{b}")


def _change_row(change: Change) -> list[str]:
    writer = change.writer
    by = f"e{writer.seq} {text(writer.tool)}" if writer else ""
    why = text(writer.why, 120) if writer and writer.why else ""
    if writer and why and writer.known != "recorded":
        why += f" ({writer.known})"
    values = " → ".join(text(v, 80) for v in (change.before, change.after) if v is not None)
    return [_SIGNS[change.how], text(change.pointer, 120), values, by, why]
