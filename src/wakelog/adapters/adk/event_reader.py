"""Rebuilds ADK events from a log.

Events that a person rewound are left out, so that ADK continues without them. ADK's own rewind is an ordinary event,
and the events that it rewound are returned: ADK's runner skips them.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import Any

import msgspec
from google.adk.events.event import Event

from wakelog.adapters.adk.event_drafts import FORMAT
from wakelog.adapters.exact_values import from_stored
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.state.fold import Fold
from wakelog.timeline.messages import content_of

WINDOW = 32
"""How many of the log's newest events are read first, if only the last few ADK events are wanted."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_OUTCOMES = frozenset({"action.succeeded", "action.failed"})
_MOVES = frozenset({"history.rewound", "history.adopted"})


class NewestEvent(msgspec.Struct, frozen=True):
    """What the next event needs to know about the newest one."""

    commit: str = ""
    """The commit of the newest ADK event, or of a rewind after it. If it changes, a session read before is stale."""
    id: str = ""
    invocation: str = ""
    timestamp: float = 0.0
    is_final: bool = False
    shared: dict[str, Value] = {}
    """Its change to the state of the user and the app."""


def newest_event(log: Log, upto: Seq, *, known: NewestEvent | None = None, after: Seq = 0) -> NewestEvent:
    """The newest ADK event up to a point. If the newest one at `after` is `known`, only later events are read."""
    if known is not None:
        return _newest(log, after, upto, known) or known
    high, width = upto, WINDOW
    moved = NewestEvent()
    while high > 0:
        low = max(0, high - width)
        found = _newest(log, low, high)
        if found is not None and found.id:
            return msgspec.structs.replace(found, commit=moved.commit) if moved.commit else found
        if found is not None and not moved.commit:
            moved = found
        high, width = low, width * 4
    return moved


def _newest(log: Log, after: Seq, upto: Seq, known: NewestEvent | None = None) -> NewestEvent | None:
    found: NewestEvent | None = None
    for entry in log.entries(after=after, upto=upto) if after < upto else ():
        if (rest := rest_of(log, entry)) is not None:
            fields = rest["event"]
            found = NewestEvent(
                entry.commit_id,
                fields["id"],
                fields.get("invocation_id", ""),
                float(fields["timestamp"]),
                rest.get("is_final", False),
                rest.get("shared", {}),
            )
        elif entry.kind in _MOVES:
            found = msgspec.structs.replace(found or known or NewestEvent(), commit=entry.commit_id)
    return found


def read_events(log: Log, upto: Seq, *, last: int | None = None, since: float | None = None) -> list[Event]:
    """The events in view, oldest first: only the `last` of them, and only from the time `since` on."""
    if last == 0:
        return []
    found = _read(log, 0, upto) if last is None else _read_newest(log, upto, last)[-last:]
    return found if since is None else [event for event in found if event.timestamp >= since]


def _read_newest(log: Log, upto: Seq, last: int) -> list[Event]:
    if log.state(upto)["view"]["rewound"]:
        return _read(log, 0, upto)
    low, width = upto, max(WINDOW, last * 8)
    while True:
        low = _commit_boundary(log, max(0, low - width))
        found = _read(log, low, upto)
        if len(found) >= last or low == 0:
            return found
        width *= 4


def _commit_boundary(log: Log, seq: Seq) -> Seq:
    """The last event of the commit before the one that `seq` + 1 is in."""
    if seq == 0:
        return 0
    commit = next(log.entries(after=seq, upto=seq + 1)).commit_id
    while seq > 0 and log.entry(seq).commit_id == commit:
        seq -= 1
    return seq


class _Chain:
    """The events in view, as a linked list: a rewind goes back to an older link."""

    def __init__(self) -> None:
        self._seqs: list[Seq] = []
        self._links: list[Any] = []
        self._now: Any = None

    def add(self, seq: Seq, event: Event) -> None:
        self._move_to(seq, (event, self._now))

    def rewind(self, seq: Seq, to: Seq) -> None:
        place = bisect.bisect_right(self._seqs, to)
        self._move_to(seq, self._links[place - 1] if place else None)

    def _move_to(self, seq: Seq, link: Any) -> None:
        self._now = link
        self._seqs.append(seq)
        self._links.append(link)

    def events(self) -> list[Event]:
        found, link = [], self._now
        while link is not None:
            event, link = link
            found.append(event)
        return found[::-1]


def _read(log: Log, after: Seq, upto: Seq) -> list[Event]:
    fold = Fold(log.state(after)) if after else Fold()
    chain = _Chain()
    commit: list[Entry] = []
    rewound: tuple[Seq, Seq] | None = None
    lost: Seq = 0
    for entry in log.entries(after=after, upto=upto, payloads=True):
        if commit and commit[0].commit_id != entry.commit_id:
            commit.clear()
            if rewound is not None:
                chain.rewind(*rewound)
                rewound = None
        if not entry.record.body:
            lost = entry.seq
            continue
        if lost:
            fold, lost = Fold(log.state(lost)), 0
        fold.apply(entry.delta)
        commit.append(entry)
        if entry.kind == "history.rewound":
            rewound = entry.seq, entry.body.get("to", 0)
        elif (rest := rest_of(log, entry)) is not None:
            event = _rebuild(log, commit, rest, fold.doc["data"])
            if event.actions.rewind_before_invocation_id:
                rewound = None
            chain.add(entry.seq, event)
    if rewound is not None:
        chain.rewind(*rewound)
    return chain.events()


def rest_of(log: Log, entry: Entry) -> dict[str, Any] | None:
    """The rest of an ADK event that an entry holds; None for other entries, and if it was erased."""
    if entry.kind != "items.kept" or entry.body.get("format") != FORMAT:
        return None
    line = content_of(log, entry, "rest")
    return _decode(line) if isinstance(line, str) else None


def _rebuild(log: Log, commit: list[Entry], rest: dict[str, Any], data: dict[str, Value]) -> Event:
    """The ADK event that a commit holds. `data` is the session's data at that point."""
    fields = from_stored(rest["event"])
    if isinstance(shell := rest.get("content"), dict):
        fields["content"] = shell | {"parts": list(_parts(log, commit, rest))} if "order" in rest else shell
    change = {key: from_stored(data[key]) for key in rest.get("state", ()) if key in data}
    change |= from_stored(rest.get("shared", {}))
    if change:
        fields["actions"] = {**fields.get("actions", {}), "state_delta": change}
    return Event.model_validate(fields)


def _parts(log: Log, commit: list[Entry], rest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    words = iter(_words(log, commit, rest.get("home")))
    inputs = (from_stored(content_of(log, e, "input")) for e in commit if e.kind == "action.requested")
    shells = iter(rest.get("answers", ()))
    outputs = _outputs(log, commit)
    for letter in rest["order"]:
        if letter == "a":
            shell, output = dict(next(shells, {})), from_stored(next(outputs, None))
            is_whole = shell.pop("is_whole", False) and isinstance(output, dict)
            if not is_whole and not isinstance(output, dict):
                output = {"result": output}
            yield {"function_response": shell | (output if is_whole else {"response": output})}
            continue
        part = dict(next(words, {"text": "[erased]"}))
        if isinstance(part.get("function_call"), dict):
            given = next(inputs, None)
            part["function_call"] = dict(part["function_call"]) | ({"args": given} if isinstance(given, dict) else {})
        yield part


def _words(log: Log, commit: list[Entry], home: Any) -> list[dict[str, Any]]:
    kind, field = {"turn": ("turn.started", "input"), "message": ("message.added", "content")}.get(
        home, ("action.recorded", "output")
    )
    for entry in commit:
        if entry.kind == kind:
            content = content_of(log, entry, field)
            if isinstance(content, str):
                return [{"text": content}]
            if home == "model" and isinstance(content, dict) and isinstance(content.get("candidates"), list):
                content = content["candidates"][0]["content"]
            if isinstance(content, dict) and isinstance(content.get("parts"), list):
                return list(from_stored(content["parts"]))
    return []


def _outputs(log: Log, commit: list[Entry]) -> Iterator[Value]:
    for entry in commit:
        if entry.kind in _OUTCOMES:
            yield content_of(log, entry, "output")
        elif entry.kind == "message.added" and entry.body.get("role") == "tool":
            yield content_of(log, entry, "content")
