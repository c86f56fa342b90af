"""Reads and writes the items of a framework's history in one session. Each item belongs to the events made from it.

A commit with items starts with an `items.kept` event, the mark; the events of the items follow. The mark comes first,
so that a fork or rewind to a place between two items keeps exactly the items before it. The list of items is kept up to
date by reading new events only; after a rewind, an erasure or a prune everything is read again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from wakelog.adapters.exact_values import from_stored_json, stored_form
from wakelog.importers.steps import CallStep
from wakelog.importers.writer.kept_items import fill_item, hollow_out
from wakelog.log.reader import Entry
from wakelog.log.retry import retry_on_moved_head
from wakelog.model.events import ItemsKept
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.session import Session
from wakelog.timeline.messages import content_of

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_ADDED_BY_LOG = frozenset({"payload.redacted"})
"""Kinds of events that the log itself inserts into a commit."""
_ALTERING = frozenset({"history.rewound", "history.adopted", "payload.erased", "range.pruned"})
"""Kinds of events that change earlier items."""


class KeptItem(msgspec.Struct, frozen=True, gc=False):
    """One item, and the range of its events."""

    raw: bytes
    """The item as JSON."""
    first: Seq
    last: Seq
    id: str = ""

    @property
    def value(self) -> Any:
        """The item in its stored form, as a new value."""
        try:
            return _decode(self.raw)
        except msgspec.DecodeError:
            return json.loads(self.raw)

    @property
    def original(self) -> Any:
        """The item as it was given, if the adapter stored its `stored_form`."""
        try:
            return from_stored_json(self.raw)
        except msgspec.DecodeError:
            return json.loads(self.raw)


class PlannedItem(msgspec.Struct):
    """An item to write, and its events: at least one."""

    value: Value
    drafts: list[EventDraft]
    id: str = ""


class PlannedWrite(msgspec.Struct):
    """Items to write, the event to rewind to first, and events to append after those of the items."""

    items: list[PlannedItem]
    back: Seq | None = None
    why: str = ""
    after: list[EventDraft] = []


Plan = Callable[[dict[str, Value]], Sequence[PlannedItem] | PlannedWrite]
"""Gets the parts `turn` and `pending_actions` of the state; returns the items to write."""


class ItemLog:
    """Reads and writes the items of one session."""

    def __init__(self, session: Session[Any], format: str) -> None:
        self.session = session
        self._format = format
        self._lock = threading.RLock()
        self.items: list[KeptItem] = []
        """The items in view, as of the last `refresh`."""
        self.all_items: list[KeptItem] = []
        """All items, in view or not."""
        self._seen: Seq = 0
        self._last_read: Seq = 0
        """May be behind the head: what another thread is appending cannot be read yet."""

    @property
    def seen(self) -> Seq:
        """The last event that was read or written here."""
        return self._seen

    # Reading

    def refresh(self, last: int | None = None) -> list[KeptItem]:
        """The items that are in view now, or only the `last` of them."""
        with self._lock:
            self.look()
            return list(self.items) if last is None else self.items[-last:] if last > 0 else []

    def find_call(self, call: str, asks: Callable[[Any], Iterable[CallStep]]) -> CallStep | None:
        """Finds a call by its id among the items in view. `asks` lists the calls of an item."""
        candidates = (item for item in reversed(self.items) if call.encode() in item.raw)
        return next((ask for item in candidates for ask in asks(item.value) if ask.id == call), None)

    def look(self, *parts: str, refresh: bool = True) -> dict[str, Value]:
        """Reads what is new; returns parts of the state at the same moment. Without `refresh` it does not ask whether
        another process wrote: an append that follows is refused then."""
        with self._lock:
            head, found, _ = self.session.log.look(*parts, refresh=refresh)
            if head != self._seen:
                self._read_upto(head)
            return found

    def _read_upto(self, last: Seq) -> None:
        log = self.session.log
        if self._seen:
            found = self._collect(log.entries(after=self._seen, upto=last, payloads=True), is_update=True)
            if found is not None:
                self.items.extend(found)
                self.all_items.extend(found)
                self._seen = self._last_read
                return
        self.all_items = self._collect(log.entries(upto=last, payloads=True)) or []
        view = log.view(self._last_read)
        self.items = [item for item in self.all_items if any(low <= item.first <= high for low, high in view)]
        self._seen = self._last_read

    def _collect(self, entries: Iterable[Entry], *, is_update: bool = False) -> list[KeptItem] | None:
        """The items of some events. An update returns None if an event changes earlier items."""
        out: list[KeptItem] = []
        mark: Entry | None = None
        own: list[Entry] = []
        for entry in entries:
            self._last_read, kind = entry.seq, entry.kind
            if is_update and kind in _ALTERING:
                return None
            if mark is not None and entry.commit_id != mark.commit_id:
                self._add_items(mark, own, out)
                mark = None
            if kind == "items.kept" and entry.body.get("format") == self._format:
                mark, own = entry, []
            elif mark is not None and kind not in _ADDED_BY_LOG:
                own.append(entry)
        if mark is not None:
            self._add_items(mark, own, out)
        return out

    def _add_items(self, mark: Entry, events: Sequence[Entry], out: list[KeptItem]) -> None:
        rest = content_of(self.session.log, mark, "rest")
        if not isinstance(rest, str):
            return  # erased or pruned
        ids = mark.body.get("ids") or ()
        place = 0
        for number, (count, line) in enumerate(zip(mark.body["counts"], rest.split("\n"), strict=True)):
            start, place = place, place + count
            if place > len(events):
                return  # a fork may start in the middle of a commit

            def field(number: int, name: str, start: int = start) -> Value:
                return self._field(events[start + number], name)

            try:
                value = fill_item(line, field)
            except IndexError:
                return
            own = events[start:place] or [events[start - 1] if start else mark]
            out.append(KeptItem(encode_json(value), own[0].seq, own[-1].seq, ids[number] if ids else ""))

    def _field(self, entry: Entry, name: str) -> Value:
        value = content_of(self.session.log, entry, name)
        if isinstance(value, dict) and value.keys() & {"$erased", "gone"}:
            return f"({'erased' if '$erased' in value else 'pruned'}, e{entry.seq})"
        return value

    # Writing

    def write(self, plan: Plan, *, keep: int | None = None, instead_of: Sequence[KeptItem] = (), why: str = "") -> bool:
        """Appends what `plan` returns, in one commit. With `keep`, first rewinds so that this many items stay; with
        `instead_of`, so that these do not. False, and nothing is written, if these are not the newest any more. `plan`
        is called again if another writer came first."""
        is_first = True

        def attempt() -> bool:
            nonlocal is_first
            with self._lock:
                parts = self.look("turn", "pending_actions", refresh=not is_first)
                is_first, stay = False, keep
                if instead_of:
                    stay = max(0, len(self.items) - len(instead_of))
                    if self.items[stay:] != list(instead_of):
                        return False
                back = self.items[stay].first - 1 if stay is not None and stay < len(self.items) else None
                if back is not None:
                    self.items = self.items[:stay]
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
                return True

        return retry_on_moved_head(self.session.id, "to add items to", attempt)

    def pop(self, *, why: str = "") -> KeptItem | None:
        """Rewinds the newest item and returns it. Concurrent callers never get the same item."""

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
            # The log masked a secret, so the stored items differ from the planned ones.
            self._seen = 0 if back is not None else before
            self.refresh()
            return
        first, new = start + 2, []
        for item in items:
            new.append(KeptItem(encode_json(item.value), first, first + len(item.drafts) - 1, item.id))
            first += len(item.drafts)
        self.items.extend(new)
        self.all_items.extend(new)
        self._seen = head.seq

    def _mark(self, planned: Sequence[PlannedItem]) -> EventDraft:
        lines: list[bytes] = []
        for item in planned:
            lines.append(hollow_out(item.value, enumerate(draft.event for draft in item.drafts)))
        ids = tuple(item.id for item in planned)
        event = ItemsKept(
            format=self._format,
            counts=tuple(len(item.drafts) for item in planned),
            rest=b"\n".join(lines).decode(),
            ids=ids if any(ids) else (),
        )
        return EventDraft(event, actor="runtime")


def encode_json(value: Value) -> bytes:
    """A value as JSON, also with numbers and texts that the fast encoder refuses."""
    try:
        return _encode(value)
    except (ValueError, OverflowError):
        return json.dumps(value).encode()


def check_items(items: Sequence[Any], what: str = "items") -> list[Any]:
    """The stored form of items. InvalidInputError names the path of a value that has none."""
    return [stored_form(item, f"{what}[{place}]") for place, item in enumerate(items)]
