"""Items: what a window is made of. A message, a call with its answer, a summary, or a note that something is gone.

Events become items in one pass. A call and its outcome are one item, so that no policy, compaction or rewind can
separate them: a call whose outcome is not in view gets the reason as its answer. Text that is not trusted, and that is
a user or system message or a call's answer, is fenced here, once for every shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from wakelog.context.call_answers import CallAnswer, answer_of
from wakelog.context.handles import Coverage, item_key
from wakelog.context.quotes import fence, unfence
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.calls import BEGIN_KINDS, Call, Calls
from wakelog.model.ids import Seq
from wakelog.model.json_fields import text_in
from wakelog.model.machines import ACTION
from wakelog.model.parts import Part, Text, flat, parts_of, text_of
from wakelog.model.payloads import as_ref
from wakelog.model.trust import Trust, least_trusted
from wakelog.model.values import Value
from wakelog.timeline.messages import content_of, is_input_said

Kind = Literal["message", "call", "summary", "gone"]
Role = Literal["system", "user", "assistant"]

_ROLES: dict[str, Role | Literal["tool"]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "function": "tool",
}
UNREAD = "(not read)"


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One thing in the window."""

    key: str
    seq: Seq
    """Its place: the event that added or requested it."""
    turn: int
    kind: Kind
    role: Role
    name: str = ""
    """Who spoke, if that was recorded; for a call, the tool."""
    parts: tuple[Part, ...] = ()
    action: str = ""
    input: Value = None
    answer: str = ""
    status: str = ""
    """For a call: succeeded, failed, timed_out, denied, abandoned, uncertain, waiting, requested, running, never_ran,
    out_of_view, erased or evicted (only its answer)."""
    is_error: bool = False
    group: Seq = 0
    """The model's answer that a call or a message depends on; 0 if not known."""
    trust: Trust = "trusted"
    source: str = ""
    events: tuple[Seq, ...] = ()
    """The events whose content is in it."""
    last: Seq = 0
    """The last event that belongs to it, shown or not."""
    is_new: bool = False
    """True if it belongs to the newest turn."""
    tokens: int = 0
    output_tokens: int = 0
    """How many of them are a call's answer."""

    @property
    def is_pending(self) -> bool:
        return self.status in ("waiting", "requested", "running", "uncertain")

    @property
    def text(self) -> str:
        """The item as one text, for people and for counting."""
        if self.kind != "call":
            return flat(self.parts)
        return f"{self.name} {text_of(self.input)}\n{self.answer}"

    @property
    def asked_and_said(self) -> tuple[str, str]:
        """The input and the answer of a call without fences, for readers who mark untrusted text in another way."""
        asked, _, said = self.text.partition("\n")
        return asked.removeprefix(self.name).strip(), unfence(said)


class _Slot:
    """An item under construction: its events so far."""

    __slots__ = ("carried", "entry", "kind", "message", "outcome", "place")

    def __init__(self, kind: str, entry: Entry, place: Seq) -> None:
        self.kind = kind
        self.entry = entry
        self.place = place
        self.outcome: Entry | None = None
        self.message: Entry | None = None
        self.carried = False
        """True if a message has the answer of this model call."""

    @property
    def entries(self) -> list[Entry]:
        return [*dict.fromkeys(e for e in (self.entry, self.outcome, self.message) if e is not None)]


class Builder:
    """Builds items from events, fed oldest first."""

    def __init__(
        self,
        log: Log,
        *,
        pending: Mapping[str, Value] | None = None,
        cover: Coverage | None = None,
        peek: bool = False,
    ) -> None:
        """With `peek`, payloads are not fetched: only their sizes are kept, in `unread`."""
        self._log = log
        self._peek = peek
        self._unread_bytes = 0
        self.unread: dict[str, tuple[int, int]] = {}
        """By key, how many bytes of an item were not fetched, and how many of them belong to a call's answer."""
        self._pending = pending or {}
        self._cover = cover or Coverage()
        self._slots: list[_Slot] = []
        self._calls = Calls(Call)
        self._by_request: dict[Seq, _Slot] = {}
        self._by_outcome: dict[Seq, _Slot] = {}
        self._other_events: set[Seq] = set()
        self._input: Entry | None = None
        self._endorsed: set[Seq] = set()
        self.hidden: dict[Seq, tuple[Seq, Seq]] = {}
        """By event of an evicted item: where the item begins, and its last event."""

    # Feeding

    def feed(self, entry: Entry) -> None:
        kind = entry.kind
        if not entry.record.body:
            return  # pruned: the whole range becomes one item (pruned_item)
        if kind not in BEGIN_KINDS:
            self._other_events.add(entry.seq)
        if kind == "turn.started":
            self._flush_input()
            self._input = entry if entry.body.get("input") is not None else None
        elif kind == "message.added":
            self._message(entry)
        elif kind in BEGIN_KINDS:
            self._flush_input()
            self._call(entry)
        elif kind.startswith("action."):
            self._outcome(entry)
        elif kind in ("input.requested", "input.answered"):
            self._flush_input()
            self._slots.append(_Slot(kind, entry, entry.seq))
        elif kind == "trust.endorsed":
            self._endorsed.update(entry.body.get("targets") or ())

    def summary(self, entry: Entry, place: Seq) -> None:
        """Adds a compaction's summary at the place where its range began."""
        if entry.record.body:
            self._slots.append(_Slot("summary", entry, place))

    def _flush_input(self) -> None:
        """Adds a turn's input, unless a message repeats it."""
        began, self._input = self._input, None
        if began is None:
            return
        if not is_input_said(self._log, began):
            self._slots.append(_Slot("input", began, began.seq))

    def _message(self, entry: Entry) -> None:
        body, header = entry.body, entry.header
        role = _role(body)
        self._flush_input()
        answered = self._answered(entry, role)
        if answered is not None:
            answered.message = entry
            return
        model = self._slot_of(body)
        model = model if model is not None and model.kind == "model" else self._by_outcome.get(header.cause)
        if role == "assistant" and model is not None and model.kind == "model":
            model.carried = True
        self._slots.append(_Slot("message", entry, entry.seq))

    def _answered(self, entry: Entry, role: str) -> _Slot | None:
        """The call whose answer a message has."""
        call = self._slot_of(entry.body)
        if call is None and role == "tool" and len(entry.header.derived_from) == 1:
            first, last = entry.header.derived_from[0]
            call = self._by_outcome.get(first) if first == last else None
        return call if call is not None and call.kind == "call" and call.message is None else None

    def _slot_of(self, body: Mapping[str, Value]) -> _Slot | None:
        """The call that a message names."""
        call = self._calls.by_action.get(text_in(body, "action"))
        return self._by_request[call.request] if call is not None else None

    def _call(self, entry: Entry) -> None:
        call = self._calls.take(entry.seq, entry.kind, entry.header, entry.body)
        assert call is not None
        slot = _Slot("model" if call.is_model else "call", entry, entry.seq)
        self._slots.append(slot)
        self._by_request[call.request] = slot
        if call.settled:
            slot.outcome = entry
            self._by_outcome[entry.seq] = slot

    def _outcome(self, entry: Entry) -> None:
        call = self._calls.by_action.get(text_in(entry.body, "action"))
        cause = entry.header.cause
        # An outcome whose request was not read belongs to another call of the same name.
        if (
            call is None
            or call.status == "done"
            or (cause and cause != call.request and cause not in self._other_events)
        ):
            return
        call.take(entry.seq, entry.kind, entry.header, entry.body)
        if entry.kind not in ACTION or not (call.settled or call.status == "uncertain"):
            return  # it came too late, or the call continues or is retried
        slot = self._by_request[call.request]
        slot.outcome = entry
        self._by_outcome[entry.seq] = slot
        if slot.kind == "model":
            slot.place = entry.seq

    # Making

    def items(self) -> list[Item]:
        """The items in order, without evicted ones."""
        self._flush_input()
        made = (self._item(slot) for slot in sorted(self._slots, key=lambda s: s.place))
        return [item for item in made if item is not None]

    def _read(self, entry: Entry, field: str) -> Value:
        ref = as_ref(entry.body.get(field)) if self._peek else None
        if ref is None:
            return content_of(self._log, entry, field)
        self._unread_bytes += ref.size
        return UNREAD

    def _item(self, slot: _Slot) -> Item | None:
        if slot.kind == "model" and (slot.carried or slot.outcome is None):
            return None
        events = tuple(e.seq for e in slot.entries)
        if self._cover.hides(slot.place, events, is_call=slot.kind == "call"):
            self.hidden.update(dict.fromkeys(events, (slot.place, max(events))))
            return None
        if slot.kind == "call":
            return self._build_call(slot, events)
        return self._build_message(slot)

    def _build_call(self, slot: _Slot, events: tuple[Seq, ...]) -> Item:
        request = slot.entry
        body, seq = request.body, request.seq
        self._unread_bytes = 0
        evicted = self._cover.output(events)
        if evicted is None:
            pending = self._pending.get(str(body.get("action", "")))
            status = pending["status"] if pending is not None and pending["seq"] == seq else ""
            answer = answer_of(self._read, slot.outcome, slot.message, status)
        else:
            note = {"evicted": {"key": evicted.key, "tokens": evicted.tokens or None}}
            answer, events = CallAnswer("evicted", text_of(note)), (seq,)
        answer_bytes, value = self._unread_bytes, self._read(request, "input")
        self.unread[item_key(seq)] = self._unread_bytes, answer_bytes
        entries = [e for e in slot.entries if e.seq in events]
        trust, source = least_trusted(map(self._mark, entries))
        name = str(body.get("tool", ""))
        answered, origin = least_trusted(self._mark(e) for e in entries if e is not request or e is slot.outcome)
        if answered != "trusted":
            answer = msgspec.structs.replace(answer, text=fence(answer.text, trust=answered, source=origin or name))
        return Item(
            key=item_key(seq),
            seq=seq,
            turn=request.header.turn,
            kind="call",
            role="assistant",
            name=name,
            action=str(body.get("action", "")),
            input=value,
            answer=answer.text,
            status=answer.status,
            is_error=answer.is_error,
            group=request.header.cause or self._asked_in(body),
            trust=trust,
            source=source,
            events=events,
            last=max(e.seq for e in slot.entries),
        )

    def _asked_in(self, body: Mapping[str, Value]) -> Seq:
        """The model's answer that requested a call, found through the call's group."""
        answer = self._calls.by_action.get(text_in(body, "group"))
        slot = self._by_request[answer.request] if answer is not None else None
        return slot.outcome.seq if slot is not None and slot.kind == "model" and slot.outcome is not None else 0

    def _build_message(self, slot: _Slot) -> Item | None:
        entry = slot.outcome if slot.kind == "model" and slot.outcome is not None else slot.entry
        trust, source = self._mark(entry)
        self._unread_bytes = 0
        speaker, name, parts = self._said(slot.kind, entry)
        self.unread[item_key(entry.seq)] = self._unread_bytes, 0
        role: Role = "user"
        if speaker == "tool":
            # Its call is not in the window, so it cannot be shown as an answer.
            parts = _fence(parts, trust, source or name or "a tool")
        elif speaker != "assistant" and trust != "trusted":
            parts = _fence(parts, trust, source)  # shown as user, never as system
        else:
            role = speaker
        if not parts:
            return None
        return Item(
            key=item_key(entry.seq),
            seq=slot.place,
            turn=entry.header.turn,
            kind="summary" if slot.kind == "summary" else "message",
            role=role,
            name=name if role == speaker else "",
            parts=parts,
            group=entry.seq if slot.kind == "model" else entry.header.cause,
            trust=trust,
            source=source,
            events=(entry.seq,),
            last=entry.seq,
        )

    def _said(self, kind: str, entry: Entry) -> tuple[Role | Literal["tool"], str, tuple[Part, ...]]:
        """The speaker, the name, and the content."""
        body = entry.body
        match kind:
            case "model":
                output = self._read(entry, "output")
                return "assistant", "", parts_of(body.get("output_summary") if output is None else output)
            case "summary":
                text = text_of(self._read(entry, "summary"))
                return "user", "", (Text(f"[summary of e{body.get('first')}..e{body.get('last')}]\n{text}"),)
            case "input":
                return "user", "", parts_of(self._read(entry, "input"))
            case "input.requested":
                options = body.get("options") or ()
                text = text_of(self._read(entry, "prompt"))
                return "assistant", "", parts_of(text + (f" ({' / '.join(map(str, options))})" if options else ""))
            case "input.answered":
                return "user", str(body.get("by", "")), parts_of(self._read(entry, "answer"))
        spoke = str(body.get("role", ""))
        name = str(body.get("name", "")) or ("" if spoke in _ROLES else spoke)
        return _role(body), name, parts_of(self._read(entry, "content"))

    def _mark(self, entry: Entry) -> tuple[Trust, str]:
        if entry.seq in self._endorsed:
            return "trusted", ""
        return entry.header.trust, entry.header.source


def _role(body: Mapping[str, Value]) -> Role | Literal["tool"]:
    return _ROLES.get(str(body.get("role", "")), "user")


def _fence(parts: Iterable[Part], trust: Trust, source: str) -> tuple[Part, ...]:
    return tuple(Text(fence(p.text, trust=trust, source=source)) if isinstance(p, Text) else p for p in parts)


def pruned_item(first: Seq, last: Seq) -> Item:
    """One item that says that a range was pruned."""
    text = f"[e{first}..e{last} were pruned: what was said there is gone]"
    return Item(key=item_key(first), seq=first, turn=0, kind="gone", role="user", parts=(Text(text),), last=last)
