"""Who wrote what: the last event that touched each key, and why, as far as it is known.

The reason is what was recorded with the event: its `why`, or for a decision its `because`. If nothing was recorded, the
last decision before it in the same turn is given as `derived`. Otherwise the reason is unknown; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.state.patch import escape, get
from wakelog.timeline.slices import tool_of

Known = Literal["recorded", "derived", "unknown"]
_DEPTH = 2
"""Outside /data, blame goes to this depth: an entry of a map is always written as a whole."""


class Writer(msgspec.Struct, frozen=True):
    """The event behind a change."""

    seq: Seq
    kind: str
    turn: int
    attempt: int
    actor: str
    tool: str
    why: str
    known: Known
    trust: str
    source: str
    at: int
    """When it happened."""
    stored_at: int


class Writers:
    """The last writer of every pointer in the events that were fed."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._tools: dict[str, str] = {}
        self._decision: tuple[int, int, str] = (0, 0, "")
        self._exact: dict[str, Writer] = {}
        self._below: dict[str, Writer] = {}

    def feed(self, entries: Iterable[Entry], prefix: str = "") -> Writers:
        """Reads events in order; with a prefix, only changes at, below or above it count."""
        for entry in entries:
            self._note_context(entry)
            delta = [op["path"] for op in entry.delta if _related(op["path"], prefix)]
            if not delta:
                continue
            writer = self._writer(entry)
            for path in delta:
                self._exact[path] = writer
                while path:
                    self._below[path] = writer
                    path = path.rpartition("/")[0]
        return self

    def who(self, pointer: str) -> Writer | None:
        """Who last wrote the value at a pointer: the whole value, something inside it, or something that contains
        it."""
        results = [self._below.get(pointer)]
        path = pointer
        while path:
            path = path.rpartition("/")[0]
            results.append(self._exact.get(path))
        return max((w for w in results if w is not None), key=lambda w: w.seq, default=None)

    def _note_context(self, entry: Entry) -> None:
        body = entry.body
        if isinstance(body.get("tool"), str) and "action" in body:
            self._tools[body["action"]] = body["tool"]
        if entry.kind == "decision.made":
            header = entry.header
            self._decision = (header.turn, header.attempt, str(body.get("because") or body.get("choice", "")))

    def _writer(self, entry: Entry) -> Writer:
        header, body = entry.header, entry.body
        why, known = str(body.get("why") or body.get("because") or ""), "recorded"
        if not why and header.turn and self._decision[:2] == (header.turn, header.attempt):
            why, known = self._decision[2], "derived"
        return Writer(
            seq=entry.seq,
            kind=entry.kind,
            turn=header.turn,
            attempt=header.attempt,
            actor=header.actor,
            tool=self._tool(entry),
            why=why,
            known=known if why else "unknown",  # type: ignore[arg-type]
            trust=header.trust,
            source=header.source,
            at=entry.happened_at,
            stored_at=header.at,
        )

    def _tool(self, entry: Entry) -> str:
        if not entry.kind.startswith("action."):
            # A file change may name the action that made it.
            return self._tools.get(str(entry.body.get("action", "")), "")
        return tool_of(self._log, entry, self._tools)


def _related(path: str, prefix: str) -> bool:
    return not prefix or path == prefix or path.startswith(prefix + "/") or prefix.startswith(path + "/") or not path


class Blame(msgspec.Struct, frozen=True):
    """One key, its value and who wrote it."""

    pointer: str
    value: Value
    writer: Writer | None


def blame(log: Log, pointer: str, at: Seq) -> list[Blame]:
    """Who last wrote each key at and below a pointer. One pass over the log; memory follows the keys, not the
    events."""
    state = log.state(at)
    value = get(state, pointer)
    writers = Writers(log).feed(log.entries(upto=at), pointer)
    return [Blame(p, v, writers.who(p)) for p, v in _keys(value, pointer)]


def _keys(value: Value, pointer: str) -> Iterator[tuple[str, Value]]:
    is_data = pointer == "/data" or pointer.startswith("/data/")
    deep_enough = pointer.count("/") >= _DEPTH and not is_data
    if type(value) is dict and value and not deep_enough:
        for key, item in value.items():
            yield from _keys(item, f"{pointer}/{escape(key)}")
    elif value != {} or pointer.count("/") > 1:
        yield pointer, value
