"""What two model calls were shown: the events in their windows, compared by content.

A model call's request names the ranges of events it was derived from. Two windows are the same when their content is
the same, at whatever positions. Content in only one of them is what the other call did not see. If only one window was
recorded, it is compared with its own session instead: with the messages that a limit kept from the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from wakelog.compare.normal_form import digest, locate_payloads, normalize_volatile
from wakelog.compare.steps import Ranges, fetch_payloads
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.document import agent_ops
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.timeline.compactions import subtract
from wakelog.timeline.messages import is_input_said

_SHOWN = (
    *("content", "input", "output", "error", "choice", "because", "value", "tried", "learned", "summary", "prompt"),
    *("answer", "goal", "task", "after", "text"),
)
"""Fields that a model may read. An event without any of them shows it nothing."""
_SPOKEN = frozenset({"turn.started", "message.added"})
"""What the user, the system or another agent said."""
_NAMED = ("role", "name", "tool", "key", "path", "change")


class WindowItem(msgspec.Struct, frozen=True):
    """An event in one window that the other does not have."""

    seq: Seq
    kind: str
    name: str
    content: Value
    trust: str
    source: str
    gone: bool


class Windows:
    """Compares windows of two logs; each event is read once, however many windows it is in."""

    def __init__(self, log_a: Log, log_b: Log, shared: Seq) -> None:
        self._logs = (log_a, log_b)
        self._shared = shared
        self._known: tuple[dict[Seq, bytes], dict[Seq, bytes]] = ({}, {})

    def compare(self, a: Ranges, b: Ranges) -> tuple[list[WindowItem], list[WindowItem]]:
        """The items that only the first window has, and those that only the second has, in order."""
        seqs_a, seqs_b = list(_seqs(a)), list(_seqs(b))
        # In the shared history, the same seq is the same event.
        both = {seq for seq in seqs_a if seq <= self._shared} & {seq for seq in seqs_b if seq <= self._shared}
        digests_a = self._digests(0, [seq for seq in seqs_a if seq not in both])
        digests_b = self._digests(1, [seq for seq in seqs_b if seq not in both])
        left = Counter(digests_a.values()) - Counter(digests_b.values())
        right = Counter(digests_b.values()) - Counter(digests_a.values())
        return self._items(0, digests_a, left), self._items(1, digests_b, right)

    def held_back(self, side: int, window: Ranges, at: Seq) -> list[WindowItem]:
        """The messages of one side's history before `at` that its window does not have."""
        log = self._logs[side]
        items = []
        for first, last in subtract(log.view(at - 1), window):
            for entry in log.entries(after=first - 1, upto=last):
                if entry.kind in _SPOKEN and _shown(log, entry):
                    items.append(_item(log, entry))
        return items

    def _digests(self, side: int, seqs: list[Seq]) -> dict[Seq, bytes]:
        known = self._known[side]
        missing = [seq for seq in seqs if seq not in known]
        for first, last in _runs(missing):
            for entry in self._logs[side].entries(after=first - 1, upto=last):
                known[entry.seq] = self._digest(side, entry)
        return {seq: known[seq] for seq in seqs if known.get(seq)}

    def _digest(self, side: int, entry: Entry) -> bytes:
        if not entry.is_intact:
            return digest("gone", entry.session, entry.seq) if entry.kind.startswith(("message.", "action.")) else b""
        shown = _shown(self._logs[side], entry)
        if not shown:
            return b""
        named = [entry.body.get(name) for name in _NAMED]
        return digest(entry.kind, named, normalize_volatile(fetch_payloads(self._logs[side], shown)))

    def _items(self, side: int, digests: dict[Seq, bytes], wanted: Counter[bytes]) -> list[WindowItem]:
        items = []
        # Of several equal items, the earlier ones are matched and the newest is the extra one.
        for seq, found in reversed(digests.items()):
            if wanted[found] > 0:
                wanted[found] -= 1
                items.append(_item(self._logs[side], self._logs[side].entry(seq)))
        return items[::-1]


def _item(log: Log, entry: Entry) -> WindowItem:
    shown, body, header = _shown(log, entry), entry.body, entry.header
    content = next(iter(shown.values()), None) if len(shown) == 1 else shown
    name = next((body[n] for n in ("role", "tool", "key", "path") if type(body.get(n)) is str), "")
    name = "user" if entry.kind == "turn.started" else name
    return WindowItem(entry.seq, entry.kind, name, content, header.trust, header.source, not entry.is_intact)


def _shown(log: Log, entry: Entry) -> dict[str, Value]:
    body = entry.body
    if not body or (entry.kind == "turn.started" and is_input_said(log, entry)):
        return {}  # the message that follows says it to the model
    if entry.kind == "state.patched":
        return {"delta": told} if (told := agent_ops(body.get("delta"))) else {}
    return {name: locate_payloads(body[name], entry.seq) for name in _SHOWN if body.get(name) is not None}


def _seqs(ranges: Ranges) -> Iterator[Seq]:
    for first, last in ranges:
        yield from range(first, last + 1)


def _runs(seqs: list[Seq]) -> Iterator[tuple[Seq, Seq]]:
    """Consecutive seqs joined to ranges."""
    start = previous = 0
    for seq in sorted(seqs):
        if seq != previous + 1 or not start:
            if start:
                yield start, previous
            start = seq
        previous = seq
    if start:
        yield start, previous
