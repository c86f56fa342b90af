"""Verbs that read: state, events, messages, diff, blame, at any point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from wakelog.diff.blame import Blame, blame
from wakelog.diff.turn_diff import TurnDiff, turn_diff
from wakelog.log.reader import Entry
from wakelog.log.verify import VerifyReport, verify
from wakelog.model.document import State
from wakelog.model.ids import Seq
from wakelog.model.records import Anchor
from wakelog.model.values import Value
from wakelog.session.base import Base, S, Where
from wakelog.timeline.files import ChangedFiles, changed_files
from wakelog.timeline.messages import Message, read_messages
from wakelog.timeline.selectors import Point, Range, resolve_change, resolve_range
from wakelog.timeline.slices import Slice, read_slice


class Reading(Base[S]):
    """What a session holds, and whether it was altered."""

    def state(self, at: Where = None) -> State:
        """The typed state at a point, or now."""
        return msgspec.convert(self.state_document(at), State)

    def state_document(self, at: Where = None) -> dict[str, Value]:
        """The same as plain JSON."""
        return self.log.state(None if at is None else self.seq(at))

    def state_hash(self, at: Where = None) -> str:
        """Equal for equal states, however they were reached."""
        return self.log.state_hash(None if at is None else self.seq(at))

    def events(self, **filters: Any) -> Iterator[Entry]:
        """Events by position and content: `after`, `upto`, `turn`, `attempt`, `since`, `until`, `kind`, `tool`."""
        return read_slice(self.log, Slice(**filters))

    def __getitem__(self, selector: str) -> Iterator[Entry]:
        """`session["@5"]`, `session["@3..@7"]`: the events of a turn or an inclusive range."""
        found: Point | Range = resolve_range(self.log, selector)
        return self.log.entries(after=found.first - 1, upto=found.last)

    def value(self, entry: Entry, value: Value) -> Value:
        """A value from an event's body, fetched if it was stored beside it."""
        return self.log.value(entry, value)

    def messages(self, at: Where = None, *, compacted: bool = True) -> list[Message]:
        """The messages in view, oldest first. What was rewound is not among them; it is still in the log. Where a range
        was compacted its summary stands, unless the raw messages are asked for."""
        return read_messages(self.log, None if at is None else self.seq(at), compacted=compacted)

    def diff(self, a: Where = None, b: Where = None, *, other: Base[Any] | None = None) -> TurnDiff:
        """What changed from `a` to `b`, with event, tool and reason; by default what the last turn changed.

        One place alone means what it changed: `diff("@2")` is what turn 2 did, `diff("e12")` what that event did. What
        changed since is `diff("@2", "@")`, or a range: `diff("@2..@5")`. A time or a checkpoint alone means since then.
        With `other`, `b` is a point of that session: a fork, or any other.
        """
        if b is None and other is None:
            first, last = resolve_change(self.log, a)
            return turn_diff(self.log, first, self.log, last)
        target = other.log if other is not None else self.log
        to = target.head().seq if b is None else (other or self).seq(b)
        return turn_diff(self.log, self.seq(a), target, to)

    def blame(self, pointer: str = "", at: Where = None) -> list[Blame]:
        """Who last wrote each key below a pointer: event, turn, tool and reason."""
        return blame(self.log, pointer, self.seq(at))

    def files(self, last: int = 5, *, at: Where = None) -> ChangedFiles:
        """The files changed in the last turns in view: in which turns, by which tool and event, how often. 0 is all."""
        return changed_files(self.log, last, at=None if at is None else self.seq(at))

    def follow(self, *, after: Seq | None = None, timeout_s: float | None = None) -> Iterator[Entry]:
        """Events as they come, from any process, each once and in order."""
        return self.log.follow(after=self.head.seq if after is None else after, timeout_s=timeout_s)

    def verify(self, anchor: Anchor | None = None) -> VerifyReport:
        """Checks every byte, the chain, and what is derived from it; against an anchor also that nothing was cut
        off."""
        return verify(self.log, anchor)

    def anchor(self) -> Anchor:
        """The head, to be kept elsewhere."""
        return self.log.anchor()
