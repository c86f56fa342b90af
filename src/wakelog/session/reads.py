"""Verbs that read: state, events, messages, diff and why, at any point; and `replay`, which runs code again.

Each verb imports the room that it needs when it is called, because most programs use a few verbs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, cast

import msgspec

from wakelog.model.ids import Seq
from wakelog.session.base import Base, S, What, Where, check_tokens

if TYPE_CHECKING:
    from wakelog.context.brief import Brief
    from wakelog.context.token_count import Count
    from wakelog.diff.turn_diff import TurnDiff
    from wakelog.insight.items import Insight
    from wakelog.log.reader import Entry
    from wakelog.log.verify import VerifyReport
    from wakelog.model.document import State
    from wakelog.model.records import Anchor, Head
    from wakelog.provenance.why import Why
    from wakelog.replay.call_match import Order
    from wakelog.replay.recorded_runtime import Effects
    from wakelog.replay.replay import Replay
    from wakelog.replay.report import Mode
    from wakelog.session.session import Session
    from wakelog.timeline.messages import Message
    from wakelog.timeline.selectors import Point, Range


class SessionReads(Base[S]):
    """Reading and checking."""

    def state(self, at: Where = None) -> State:
        """Returns the typed state at a point, or now."""
        from wakelog.model.described import described
        from wakelog.model.document import State

        return msgspec.convert(self.log.state(self._upto(at)), described(State))

    def events(self, **filters: Any) -> Iterator[Entry]:
        """Reads events, filtered by `after`, `upto`, `turn`, `attempt`, `since`, `until`, `kind` and `tool`; oldest
        first, or `newest_first`."""
        from wakelog.timeline.slices import Slice, read_slice

        return read_slice(self.log, Slice(**filters))

    def __getitem__(self, selector: str) -> Iterator[Entry]:
        """Reads the events of a turn or a range, both ends included: `session["@5"]`, `session["@3..@7"]`."""
        from wakelog.timeline.selectors import resolve_range

        found: Point | Range = resolve_range(self.log, selector)
        return self.log.entries(after=found.first - 1, upto=found.last)

    def messages(
        self, at: Where = None, *, compacted: bool = True, limit: int | None = None, before: Seq | None = None
    ) -> list[Message]:
        """Returns the messages in view, oldest first. Messages that were rewound are left out; they are still in the
        log. A compacted range is returned as its summary; `compacted=False` returns the original messages.

        With `limit`, returns only the last messages and does not read older ones. For the page before, pass the `seq`
        of the page's first message as `before`."""
        from wakelog.timeline.message_page import read_message_page

        return read_message_page(self.log, self._upto(at), compacted=compacted, limit=limit, before=before)

    def diff(self, a: Where = None, b: Where = None, *, other: Base[Any] | None = None) -> TurnDiff:
        """Shows what changed from `a` to `b`, with event, tool and reason; by default, what the last turn changed.

        One position alone means what it changed: `diff("@2")` shows what turn 2 did, `diff("e12")` what that event did.
        For everything since, write `diff("@2", "@")`, or a range: `diff("@2..@5")`. A time or a checkpoint alone means
        since then. With `other`, `b` is a point of that session: a fork, or any other. If both sides are complete runs,
        `first_call` is the first call that differs.
        """
        from wakelog.diff.turn_diff import turn_diff

        if b is None and other is None:
            from wakelog.timeline.selectors import resolve_change

            first, last = resolve_change(self.log, a)
            return turn_diff(self.log, first, self.log, last)
        target = other.log if other is not None else self.log
        to = target.head().seq if b is None else (other or self).seq(b)
        diff = turn_diff(self.log, self.seq(a), target, to)
        if other is not None:
            from wakelog.session.run_diff import are_runs, first_call_of

            one, two = cast("Session[S]", self), cast("Session[Any]", other)
            if are_runs(one, diff.a[1], two, to):
                return msgspec.structs.replace(diff, first_call=first_call_of(one, two))
        return diff

    def why(self, what: What, *, at: Where = None, depth: int = 12, steps: int = 60, wide: bool = False) -> Why:
        """Shows where something came from, back to its origins. Every edge says how it is known.

        `depth` and `steps` limit what is shown (0: no limit), not what is searched. With `wide`, a model call without a
        recorded window counts as having seen earlier turns too.
        """
        from wakelog.provenance.why import why

        places = self.store.word_places(self.id) if self.store is not None else None
        return why(self.log, what, at=self._upto(at), depth=depth, steps=steps, wide=wide, places=places)

    def brief(self, budget: int = 2000, *, at: Where = None, count: Count | None = None) -> Brief:
        """Writes the handoff for the next run, machine or agent, in at most `budget` tokens; `str()` gives its text."""
        from wakelog.context.brief import make_brief
        from wakelog.context.token_count import estimate

        check_tokens(budget)
        wanted = self.store.preferences_for(self) if self.store is not None else []
        return make_brief(self.log, budget, at=self._upto(at), count=count or estimate, wanted=wanted)

    def insight(self, where: Where = None, *, all: bool = False) -> Insight:
        """Lists what the agent decided, changed and gave up, derived by rules from its words and calls; by default in
        the last turn. Each item quotes the log and is `derived`: the agent did not record it. Something the agent did
        record is not derived again. With `all`, minor items are included.
        """
        from wakelog.insight.derivation import make_insight
        from wakelog.session.insights import cached_findings, turns_at

        findings = cached_findings(cast("Session[S]", self))
        return make_insight(self.log, turns_at(self.log, where), everything=all, kept=findings)

    def follow(self, *, after: Seq | None = None, timeout_s: float | None = None) -> Iterator[Entry]:
        """Streams new events live, from any process, in order and each once."""
        return self.log.follow(after=self.head.seq if after is None else after, timeout_s=timeout_s)

    def verify(self, anchor: Anchor | None = None) -> VerifyReport:
        """Checks every byte, the hash chain, and what is derived from them. With an anchor, it also checks that no
        events were cut off."""
        from wakelog.log.verify import verify

        return verify(self.log, anchor)

    def export_bundle(self, out: IO[bytes], *, beyond: bool = False, encrypted: bool = False) -> Head:
        """Writes the session and its ancestors as a bundle: a file that can be verified on its own.
        `Store.import_bundle` reads it elsewhere. What ancestors did after the fork is included only with `beyond`, and
        only where the proof needs it. A bundle of an encrypted session is plain; with `encrypted` it stays encrypted,
        and no key is needed."""
        from wakelog.log.bundle import export_bundle

        return export_bundle(self.log, out, beyond=beyond, encrypted=encrypted)

    def anchor(self) -> Anchor:
        """Exports the head hash for later tamper checks."""
        return self.log.anchor()

    def replay(
        self,
        where: Where = None,
        *,
        mode: Mode = "strict",
        effects: Effects = "refuse",
        order: Order = "recorded",
        record: bool = False,
    ) -> Replay[Session[S]]:
        """Runs the agent's own code again from a point: `with session.replay("@4..@7") as replay: run(replay.session)`.

        `strict` answers every call from the record and runs no tool. Any difference raises DivergenceError, which names
        the step. It runs in memory and stores nothing, unless you ask it to `record`. `fill` answers calls that are
        recorded and runs the others; `live` runs everything and compares. Both run in a new fork, and refuse calls that
        write or reach outside unless `effects="allow"`. `replay.report` shows what was the same.

        Calls made one after another must come in the recorded `order`; calls made in parallel need not.
        """
        from wakelog.session.replayed_session import open_replay

        return open_replay(cast("Session[S]", self), where, mode, effects, order, record)
