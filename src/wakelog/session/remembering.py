"""Verbs about the model's window: what is in it, what left it, and the handoff to the next run."""

from __future__ import annotations

from collections.abc import Iterable

from wakelog.context import compacting, returning
from wakelog.context.brief import DEFAULT_BUDGET, Brief, make_brief
from wakelog.context.compacting import Summary
from wakelog.context.counting import Count, estimate
from wakelog.context.items import Item
from wakelog.context.keys import Evicted
from wakelog.context.ledger import Context, Policy, make_context, oldest_first
from wakelog.context.returning import Restored
from wakelog.context.shapes import Shape
from wakelog.history.selectors import resolve_range
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.session.base import Base, S, Where


class Remembering(Base[S]):
    """The window in a budget, and what outlives it."""

    def context(
        self,
        budget: int | None = None,
        *,
        shape: Shape = "openai",
        policy: Policy = oldest_first,
        count: Count = estimate,
        pinned: Iterable[str] = (),
        headroom: int = 0,
        record: bool = True,
        at: Where = None,
    ) -> Context:
        """The messages to send to a model, in at most `budget` tokens: a list, in the shape of "openai", "responses"
        or "anthropic" (whose `system` stands apart), always one that the provider accepts.

        Goal, facts, decisions, dead ends and pending calls are in it, whatever else must leave. What leaves is recorded
        and stays out until it is restored; `headroom` frees that much more at once. `count` gives the tokens of a text;
        the default is an estimate. Without `record`, or `at` a point in the past, nothing is written.
        """
        return make_context(
            self.log,
            budget,
            shape=shape,
            policy=policy,
            count=count,
            pinned=pinned,
            headroom=headroom,
            record=record,
            at=None if at is None else self.seq(at),
        )

    def evict(self, key: str | Seq, *, count: Count = estimate) -> Evicted:
        """Takes something out of the window: `e12`, only a call's answer as `e12:output`, or a range, `e5..e40`."""
        return returning.evict(self.log, key, count=count)

    def restore(self, key: str | Seq, *, count: Count = estimate) -> Restored:
        """Brings back what left the window, and keeps it there for this turn. What was pruned or erased meanwhile is
        told as `gone`."""
        return returning.restore(self.log, key, count=count)

    def pin(self, key: str | Seq) -> Item:
        """Keeps something in the window until the turn is over."""
        return returning.pin(self.log, key)

    def compact(self, first: Seq | str, last: Seq | str, summary: Value, *, why: str = "") -> Seq:
        """Lets a summary stand for what was said and done from `first` to `last` ("@1", "@8"), in view only. It is
        trusted as far as the least trusted thing in the range. Returns what `expand` takes back."""
        begin = first if isinstance(first, int) else resolve_range(self.log, first).first
        end = last if isinstance(last, int) else resolve_range(self.log, last).last
        return compacting.compact(self.log, begin, end, summary, why=why)

    def compactions(self, at: Where = None) -> list[Summary]:
        """The compactions in effect, oldest first."""
        return compacting.compactions(self.log, None if at is None else self.seq(at))

    def replaced(self, compaction: Seq) -> tuple[Item, ...]:
        """What a compaction stands for, without taking it back."""
        return compacting.inspect(self.log, compaction)

    def expand(self, compaction: Seq, *, why: str = "") -> Seq:
        """Takes a compaction back: what it replaced is in view again."""
        return compacting.expand(self.log, compaction, why=why)

    def brief(self, budget: int = DEFAULT_BUDGET, *, at: Where = None, count: Count = estimate) -> Brief:
        """The handoff for the next run, machine or agent, in at most `budget` tokens; `str()` of it is the text."""
        return make_brief(self.log, budget, at=None if at is None else self.seq(at), count=count)
