"""Messages: the transient tier, read from the log and never from the state."""

from __future__ import annotations

import msgspec

from wakelog.errors import NotFoundError
from wakelog.history.compaction import compactions_in, outermost, subtract
from wakelog.log import Log
from wakelog.log.reading import Entry
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.values import Value


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
        """The content as text; what is not text is shown as JSON."""
        return self.content if isinstance(self.content, str) else msgspec.json.encode(self.content).decode()


def UserMessage(content: Value, *, name: str = "") -> ev.MessageAdded:
    """A message from the user, to be appended. Named like the event it makes."""
    return ev.MessageAdded(role="user", content=content, name=name)


def ModelMessage(content: Value, *, name: str = "") -> ev.MessageAdded:
    """A message from the model, to be appended."""
    return ev.MessageAdded(role="assistant", content=content, name=name)


def read_messages(log: Log, at: Seq | None = None, *, compacted: bool = True) -> list[Message]:
    """The messages in view at a point, with a summary (role "summary") in place of what was compacted, unless the raw
    ones are asked for. An erased or pruned one says so instead of being skipped."""
    at, state = log.now() if at is None else (at, log.state(at))
    summaries = outermost(compactions_in(state["evicted_keys"])) if compacted else []
    placed: list[tuple[Seq, Message]] = []
    for first, last in subtract(log.view(at, state=state), [(c.first, c.last) for c in summaries]):
        for entry in log.entries(after=first - 1, upto=last, payloads=True):
            if entry.kind == "message.added":
                placed.append((entry.seq, _message(log, entry, "content")))
    for each in summaries:
        summary = _message(log, log.entry(each.seq), "summary")
        placed.append((each.first, msgspec.structs.replace(summary, role="summary")))
    return [message for _, message in sorted(placed, key=lambda p: p[0])]


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
    """A field of an event, fetched; what is no longer there says why."""
    if not entry.record.body:
        return {"gone": {"seq": entry.seq, "reason": "pruned"}}
    if "$erased" in entry.body:
        return {"$erased": entry.seq}
    try:
        return log.value(entry, entry.body.get(field))
    except NotFoundError:
        return {"$erased": entry.seq}
