"""The events of ADK, read back from a log.

What a person rewound is left out, as ADK would go on without it. ADK's own rewind is an event like any other, and what
it rewound is still there: its runner passes over it.
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
"""So many events of the log are read first, from its end, where only the last few events of ADK are wanted."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_OUTCOMES = frozenset({"action.succeeded", "action.failed"})
_MOVES = frozenset({"history.rewound", "history.adopted"})


class NewestEvent(msgspec.Struct, frozen=True):
    """What the next event has to know of the one before."""

    commit: str = ""
    """Of the newest event of ADK, or of a rewind after it: when this moves, a session read before is stale."""
    id: str = ""
    invocation: str = ""
    timestamp: float = 0.0
    is_final: bool = False
    shared: dict[str, Value] = {}
    """Its change of the state of the user and the app."""


def newest_event(log: Log, upto: Seq, *, known: NewestEvent | None = None, after: Seq = 0) -> NewestEvent:
    """The newest event of ADK up to a point. With `known`, that at `after`, only what is newer is read."""
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
            told = rest["event"]
            found = NewestEvent(
                entry.commit_id,
                told["id"],
                told.get("invocation_id", ""),
                float(told["timestamp"]),
                rest.get("is_final", False),
                rest.get("shared", {}),
            )
        elif entry.kind in _MOVES:
            found = msgspec.structs.replace(found or known or NewestEvent(), commit=entry.commit_id)
    return found


def read_events(log: Log, upto: Seq, *, last: int | None = None, since: float | None = None) -> list[Event]:
    """The events in view, oldest first: the `last` of them, and none before the time `since`."""
    if last == 0:
        return []
    found = list(_read_newest(log, upto, last)) if last is not None else _read(log, 0, upto)
    if last is not None:
        found = found[-last:]
    return found if since is None else [event for event in found if event.timestamp >= since]


def _read_newest(log: Log, upto: Seq, last: int) -> list[Event]:
    if log.state(upto)["view"]["rewound"]:
        return _read(log, 0, upto)
    low, width = upto, max(WINDOW, last * 8)
    while True:
        low = max(0, low - width)
        low = _between_commits(log, low)
        found = _read(log, low, upto)
        if len(found) >= last or low == 0:
            return found
        width *= 4


def _between_commits(log: Log, seq: Seq) -> Seq:
    """The last event of the commit before the one that `seq` + 1 is in."""
    if seq == 0:
        return 0
    commit = next(log.entries(after=seq, upto=seq + 1)).commit_id
    while seq > 0 and log.entry(seq).commit_id == commit:
        seq -= 1
    return seq


class _Chain:
    """The events in view. Each has the one before it, so that a rewind is a step to an older link."""

    def __init__(self) -> None:
        self._seqs: list[Seq] = []
        self._links: list[Any] = []
        self._now: Any = None

    def add(self, seq: Seq, event: Event) -> None:
        self._go(seq, (event, self._now))

    def rewind(self, seq: Seq, to: Seq) -> None:
        place = bisect.bisect_right(self._seqs, to)
        self._go(seq, self._links[place - 1] if place else None)

    def _go(self, seq: Seq, link: Any) -> None:
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
            event = _restored(log, commit, rest, fold.doc["data"])
            if event.actions.rewind_before_invocation_id:
                rewound = None
            chain.add(entry.seq, event)
    if rewound is not None:
        chain.rewind(*rewound)
    return chain.events()


def rest_of(log: Log, entry: Entry) -> dict[str, Any] | None:
    """What an entry keeps of an event of ADK; None where it is no such entry, or was erased."""
    if entry.kind != "items.kept" or entry.body.get("format") != FORMAT:
        return None
    line = content_of(log, entry, "rest")
    return _decode(line) if isinstance(line, str) else None


def _restored(log: Log, commit: list[Entry], rest: dict[str, Any], data: dict[str, Value]) -> Event:
    """The event of ADK that a commit holds. `data` is as it was there."""
    told = from_stored(rest["event"])
    if isinstance(shell := rest.get("content"), dict):
        told["content"] = shell | {"parts": list(_parts(log, commit, rest))} if "order" in rest else shell
    change = {key: from_stored(data[key]) for key in rest.get("state", ()) if key in data}
    change |= from_stored(rest.get("shared", {}))
    if change:
        told["actions"] = {**told.get("actions", {}), "state_delta": change}
    return Event.model_validate(told)


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
            said = content_of(log, entry, field)
            if isinstance(said, str):
                return [{"text": said}]
            if home == "model" and isinstance(said, dict) and isinstance(said.get("candidates"), list):
                said = said["candidates"][0]["content"]
            if isinstance(said, dict) and isinstance(said.get("parts"), list):
                return list(from_stored(said["parts"]))
    return []


def _outputs(log: Log, commit: list[Entry]) -> Iterator[Value]:
    for entry in commit:
        if entry.kind in _OUTCOMES:
            yield content_of(log, entry, "output")
        elif entry.kind == "message.added" and entry.body.get("role") == "tool":
            yield content_of(log, entry, "content")
