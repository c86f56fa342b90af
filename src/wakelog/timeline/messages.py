"""The messages of a conversation. They are read from the log; the state does not hold them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wakelog.errors import NotFoundError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model import events as ev
from wakelog.model.agent_words import is_aside
from wakelog.model.calls import BEGIN_KINDS
from wakelog.model.ids import Seq
from wakelog.model.parts import Asked, Text, content_text, parts_of, reply_of, text_of
from wakelog.model.payloads import as_ref
from wakelog.model.values import Value
from wakelog.timeline.compactions import Compaction, compactions_in, outermost, subtract

REPLIES = frozenset({"action.succeeded", "action.recorded", "action.reconciled"})
"""Kinds that may hold what a model answered."""


class Message(msgspec.Struct, frozen=True):
    """One message as it was added."""

    seq: Seq
    turn: int
    role: str
    content: Value
    name: str = ""
    action: str = ""
    trust: str = "trusted"

    @property
    def text(self) -> str:
        """The content as text: of content blocks, their text and the calls they request; any other value as JSON."""
        return content_text(self.content) or text_of(self.content)


def UserMessage(content: Value, *, name: str = "") -> ev.MessageAdded:
    """Makes a user's message, for `Session.append`. Named like the event it makes."""
    return ev.MessageAdded(role="user", content=content, name=name)


def ModelMessage(content: Value, *, name: str = "") -> ev.MessageAdded:
    """Makes a model's message, for `Session.append`."""
    return ev.MessageAdded(role="assistant", content=content, name=name)


class MessageView(msgspec.Struct, frozen=True):
    """Where the messages at a point are: the ranges in view, and the compactions whose summaries replace the rest."""

    at: Seq
    ranges: list[tuple[Seq, Seq]]
    summaries: list[Compaction]


def view_messages(log: Log, at: Seq | None, *, compacted: bool) -> MessageView:
    """Where the messages in view at a point are. Unless `compacted`, compactions are ignored."""
    at, state = log.now() if at is None else (at, log.state(at))
    summaries = outermost(compactions_in(state["evicted_keys"])) if compacted else []
    ranges = subtract(log.view(at, state=state), [(c.first, c.last) for c in summaries])
    return MessageView(at, ranges, summaries)


def read_all(log: Log, view: MessageView) -> list[tuple[Seq, Message]]:
    """All messages of a view with their positions, in order."""
    read = (log.entries(after=first - 1, upto=last, payloads=True) for first, last in view.ranges)
    placed, _ = read_placed(log, (entry for entries in read for entry in entries))
    return sorted([*placed, *summary_messages(log, view.summaries)], key=lambda p: p[0])


def read_placed(log: Log, entries: Iterable[Entry]) -> tuple[list[tuple[Seq, Message]], list[Message]]:
    """The messages of these events with their positions, and all model answers, whether a message repeats them or
    not."""
    placed: list[tuple[Seq, Message]] = []
    replies: list[Message] = []
    is_model: dict[Value, bool] = {}
    for entry in entries:
        if entry.kind == "turn.started" and entry.body.get("input") is not None and not is_input_said(log, entry):
            asked = _message(log, entry, "input")
            placed.append((entry.seq, msgspec.structs.replace(asked, role="user")))
        elif entry.kind == "message.added":
            placed.append((entry.seq, _message(log, entry, "content")))
        elif entry.kind in BEGIN_KINDS:
            is_model[entry.body.get("action")] = entry.body.get("effect") == "model"
        if entry.kind in REPLIES:
            action = entry.body.get("action")
            if action not in is_model:  # requested by an attempt that is out of view
                is_model[action] = _ends_model_call(log, entry)
            replies += _reply(log, entry) if is_model[action] else []
    placed += [(reply.seq, reply) for reply in _without_repeated(replies, [message for _, message in placed])]
    return placed, replies


def summary_messages(log: Log, compactions: Iterable[Compaction]) -> list[tuple[Seq, Message]]:
    """The summaries of compacted ranges, each at the position where its range began."""
    read = ((c.first, _message(log, log.entry(c.seq), "summary")) for c in compactions)
    return [(place, msgspec.structs.replace(message, role="summary")) for place, message in read]


def is_input_said(log: Log, started: Entry) -> bool:
    """Whether a user's message right after the start of a turn repeats its input. Reads the log, because that message
    may be out of view."""
    return any(
        _repeats(started, entry)
        for entry in log.entries(after=started.seq, upto=started.seq + 2)
        if entry.kind == "message.added" and entry.body.get("role") == "user" and not is_aside(entry.body)
    )


def _repeats(started: Entry, message: Entry) -> bool:
    if not (started.is_intact and message.is_intact):
        return True  # it cannot be known any more
    asked, content = started.body.get("input"), message.body.get("content")
    refs = as_ref(asked), as_ref(content)
    if refs[0] is not None and refs[1] is not None:
        return refs[0].hash == refs[1].hash
    return bool(asked == content)


def _ends_model_call(log: Log, entry: Entry) -> bool:
    cause = entry.header.cause
    return bool(cause) and log.entry(cause).body.get("effect") == "model"


def _reply(log: Log, entry: Entry) -> list[Message]:
    """The model's answer; nothing if the call failed or the answer is empty."""
    if entry.body.get("outcome", "succeeded") != "succeeded":
        return []
    content = reply_of(content_of(log, entry, "output"))
    reply = msgspec.structs.replace(_message(log, entry, "output"), role="assistant", content=content)
    return [reply] if content not in (None, "", [], {}) else []


def _without_repeated(replies: list[Message], messages: list[Message]) -> list[Message]:
    """The replies that no message of the same turn repeats. Each message accounts for one reply."""
    said = [(m.turn, *_gist(m.content)) for m in messages if m.role not in ("user", "system", "tool")]
    out = []
    for reply in replies:
        text, calls = _gist(reply.content)
        same = next((s for s in ((reply.turn, text, calls), (reply.turn, text, ())) if s in said), None)
        if same is None:
            out.append(reply)
        else:
            said.remove(same)
    return out


def _gist(content: Value) -> tuple[str, tuple[str, ...]]:
    """The text of a message and the calls it requests, independent of the provider's format."""
    parts = parts_of(content)
    asked = tuple(f"{p.name} {text_of(p.input)}" for p in parts if isinstance(p, Asked))
    return " ".join(" ".join(p.text for p in parts if isinstance(p, Text)).split()), asked


def _message(log: Log, entry: Entry, field: str) -> Message:
    body = entry.body
    return Message(
        entry.seq,
        entry.header.turn,
        str(body.get("role", "")),
        content_of(log, entry, field),
        str(body.get("name", "")),
        str(body.get("action", "")),
        trust=entry.header.trust,
    )


def content_of(log: Log, entry: Entry, field: str) -> Value:
    """The content of an event's field; if it is gone, an object that says why."""
    if not entry.record.body:
        return {"gone": {"seq": entry.seq, "reason": "pruned"}}
    if "$erased" in entry.body:
        return {"$erased": entry.seq}
    try:
        return log.value(entry, entry.body.get(field))
    except NotFoundError:
        return {"$erased": entry.seq}
