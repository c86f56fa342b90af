"""The items of a framework's history in one session: those in view, in order, each with the events made from it.

A commit that brings items begins with `items.kept`, and their events follow. The mark comes first, so that a fork or a
rewind to any place between two items keeps exactly the items before it. What is known here is kept up to date by
reading only what is new; after a rewind, an erasure or a prune everything is read again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from wakelog.importers.steps import CallStep
from wakelog.importers.writer.kept_items import filled, hollow
from wakelog.log.reader import Entry
from wakelog.log.retry import retry_on_moved_head
from wakelog.model.events import ItemsKept
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.values import Value, check_value
from wakelog.session import Session
from wakelog.timeline.messages import content_of

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_LOG_OWN = frozenset({"payload.redacted"})
"""What the log puts between the events of a commit by itself."""
_ALTERS = frozenset({"history.rewound", "history.adopted", "payload.erased", "range.pruned"})
"""What changes which items there are, or what they say."""


class KeptItem(msgspec.Struct, frozen=True, gc=False):
    """One item, and its events."""

    raw: bytes
    """The item as JSON."""
    first: Seq
    last: Seq
    id: str = ""

    @property
    def value(self) -> Any:
        """The item, as a value of the caller's own."""
        try:
            return _decode(self.raw)
        except msgspec.DecodeError:
            return json.loads(self.raw)


class PlannedItem(msgspec.Struct):
    """An item about to be written, and the events to make from it: at least one."""

    value: Value
    drafts: list[EventDraft]
    id: str = ""


class PlannedWrite(msgspec.Struct):
    """Items to write, and more: where the view goes back to first, and events after those of the items."""

    items: list[PlannedItem]
    back: Seq | None = None
    why: str = ""
    after: list[EventDraft] = []


Plan = Callable[[dict[str, Value]], Sequence[PlannedItem] | PlannedWrite]
"""From the parts `turn` and `pending_actions` of the state to the items to write."""


class ItemLog:
    """Reads and writes the items of one session."""

    def __init__(self, session: Session[Any], format: str) -> None:
        self.session = session
        self._format = format
        self._lock = threading.RLock()
        self.items: list[KeptItem] = []
        """Those in view. `refresh` first."""
        self.every: list[KeptItem] = []
        """All there are, in view or not."""
        self._seen: Seq = 0
        self._reached: Seq = 0
        """The last event that was read: what another thread has in flight cannot be read yet."""

    @property
    def seen(self) -> Seq:
        """The last event that was read or written here."""
        return self._seen

    # Reading

    def refresh(self, last: int | None = None) -> list[KeptItem]:
        """The items that are in view now, or the last so many of them."""
        with self._lock:
            self.look()
            return list(self.items) if last is None else self.items[-last:] if last > 0 else []

    def ask_of(self, call: str, asks: Callable[[Any], Iterable[CallStep]]) -> CallStep | None:
        """The call of an id, from the items in view. `asks` tells what an item asks for."""
        named = (item for item in reversed(self.items) if call.encode() in item.raw)
        return next((ask for item in named for ask in asks(item.value) if ask.id == call), None)

    def look(self, *parts: str) -> dict[str, Value]:
        """Reads what is new; with it, parts of the state at the same moment."""
        with self._lock:
            head, found = self.session.log.parts(*parts)
            if head != self._seen:
                self._read_on(head)
            return found

    def _read_on(self, last: Seq) -> None:
        log = self.session.log
        if self._seen:
            found = self._collect(log.entries(after=self._seen, upto=last, payloads=True), stops=True)
            if found is not None:
                self.items.extend(found)
                self.every.extend(found)
                self._seen = self._reached
                return
        self.every = self._collect(log.entries(upto=last, payloads=True)) or []
        view = log.view(self._reached)
        self.items = [item for item in self.every if any(low <= item.first <= high for low, high in view)]
        self._seen = self._reached

    def _collect(self, entries: Iterable[Entry], *, stops: bool = False) -> list[KeptItem] | None:
        """The items of some events. None with `stops`, when one of them changes what was before it."""
        out: list[KeptItem] = []
        mark: Entry | None = None
        own: list[Entry] = []
        for entry in entries:
            self._reached, kind = entry.seq, entry.kind
            if stops and kind in _ALTERS:
                return None
            if mark is not None and entry.commit_id != mark.commit_id:
                self._take(mark, own, out)
                mark = None
            if kind == "items.kept" and entry.body.get("format") == self._format:
                mark, own = entry, []
            elif mark is not None and kind not in _LOG_OWN:
                own.append(entry)
        if mark is not None:
            self._take(mark, own, out)
        return out

    def _take(self, mark: Entry, events: Sequence[Entry], out: list[KeptItem]) -> None:
        rest = content_of(self.session.log, mark, "rest")
        if not isinstance(rest, str):
            return  # erased or pruned
        ids = mark.body.get("ids") or ()
        place = 0
        for number, (count, line) in enumerate(zip(mark.body["counts"], rest.split("\n"), strict=True)):
            start, place = place, place + count
            if place > len(events):
                return  # a fork may leave in the middle of a commit

            def field(number: int, name: str, start: int = start) -> Value:
                return self._field(events[start + number], name)

            try:
                value = filled(line, field)
            except IndexError:
                return
            own = events[start:place] or [events[start - 1] if start else mark]
            out.append(KeptItem(encoded(value), own[0].seq, own[-1].seq, ids[number] if ids else ""))

    def _field(self, entry: Entry, name: str) -> Value:
        value = content_of(self.session.log, entry, name)
        if isinstance(value, dict) and value.keys() & {"$erased", "gone"}:
            return f"({'erased' if '$erased' in value else 'pruned'}, e{entry.seq})"
        return value

    # Writing

    def write(self, plan: Plan, *, keep: int | None = None, why: str = "") -> None:
        """Appends what `plan` gives for the items in view, in one commit. With `keep`, the history first goes back to
        so many items. The plan is made again when another writer came first."""

        def attempt() -> None:
            with self._lock:
                parts = self.look("turn", "pending_actions")
                back = self.items[keep].first - 1 if keep is not None and keep < len(self.items) else None
                if back is not None:
                    self.items = self.items[:keep]
                try:
                    planned = plan(parts)
                    if not isinstance(planned, PlannedWrite):
                        planned = PlannedWrite(list(planned), back, why)
                    self._append(planned)
                    if back is None and planned.back is not None:
                        self._seen = 0
                except BaseException:
                    self._seen = 0 if back is not None else self._seen
                    raise

        retry_on_moved_head(self.session.id, "to add items to", attempt)

    def pop(self, *, why: str = "") -> KeptItem | None:
        """Takes the newest item out of view, and returns it; each is returned to one caller."""

        def attempt() -> KeptItem | None:
            with self._lock:
                self.refresh()
                if not self.items:
                    return None
                last = self.items[-1]
                head = self.session.log.rewind(last.first - 1, why=why, expect=self._seen)
                del self.items[-1]
                self._seen = head.seq
                return last

        return retry_on_moved_head(self.session.id, "to take an item from", attempt)

    def _append(self, planned: PlannedWrite) -> None:
        items, back = planned.items, planned.back
        drafts = [draft for item in items for draft in item.drafts]
        written = [*([self._mark(items)] if items else ()), *drafts, *planned.after]
        if not written and back is None:
            return
        log, before = self.session.log, self._seen
        if back is None:
            head = log.append(*written, expect=before)
        else:
            head = log.rewind(back, why=planned.why, expect=before, then=written)
        start = before + (back is not None)
        if head.seq != start + len(written):
            # A secret was masked: what is stored differs from what was given.
            self._seen = 0 if back is not None else before
            self.refresh()
            return
        first, new = start + 2, []
        for item in items:
            new.append(KeptItem(encoded(item.value), first, first + len(item.drafts) - 1, item.id))
            first += len(item.drafts)
        self.items.extend(new)
        self.every.extend(new)
        self._seen = head.seq

    def _mark(self, planned: Sequence[PlannedItem]) -> EventDraft:
        lines: list[bytes] = []
        for item in planned:
            lines.append(hollow(item.value, enumerate(draft.event for draft in item.drafts)))
        ids = tuple(item.id for item in planned)
        event = ItemsKept(
            format=self._format,
            counts=tuple(len(item.drafts) for item in planned),
            rest=b"\n".join(lines).decode(),
            ids=ids if any(ids) else (),
        )
        return EventDraft(event, actor="runtime")


def encoded(value: Value) -> bytes:
    """A value as JSON, whatever numbers and texts it holds."""
    try:
        return _encode(value)
    except (ValueError, OverflowError):
        return json.dumps(value).encode()


def checked(items: Sequence[Any], what: str = "items") -> list[Any]:
    """Items as the log can hold them; InvalidInputError names the path of what it cannot."""
    return [check_value(item, f"{what}[{place}]", reserved=False) for place, item in enumerate(items)]
