"""Messages: the transient tier, read from the log and never from the state."""

from __future__ import annotations

import msgspec

from wakelog.log import Log
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


def read_messages(log: Log, at: Seq | None = None) -> list[Message]:
    """The messages in view at a point. An erased one says so instead of being skipped."""
    out: list[Message] = []
    for first, last in log.view(at):
        for entry in log.entries(after=first - 1, upto=last):
            if entry.kind != "message.added":
                continue
            event = entry.event
            if isinstance(event, ev.MessageAdded):
                content = log.value(entry, event.content)
                fields = (event.role, content, event.name, event.action)
            else:
                fields = (str(entry.body.get("role", "")), {"$erased": entry.seq}, "", "")
            out.append(Message(entry.seq, entry.header.turn, *fields, trust=entry.header.trust))
    return out
