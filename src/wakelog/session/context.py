"""`session.context`: what is in the model's window, what was evicted, and what was summarised.

The context room is imported when a verb is called, because most programs never use it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.session.base import Base, Where, check_list, check_text, check_tokens
from wakelog.timeline.selectors import resolve_range

if TYPE_CHECKING:
    from wakelog.context.compaction import Summary
    from wakelog.context.eviction import RestoredContent
    from wakelog.context.handles import Evicted
    from wakelog.context.items import Item
    from wakelog.context.ledger import Context, Policy
    from wakelog.context.provider_formats import Shape
    from wakelog.context.token_count import Count
    from wakelog.context.window_look import WindowLook


class SessionContext:
    """Builds and manages the model's window."""

    def __init__(self, session: Base[Any]) -> None:
        self._session = session

    def window(
        self,
        budget: int | None = None,
        *,
        shape: Shape = "openai",
        policy: Policy | None = None,
        count: Count | None = None,
        pinned: Iterable[str] = (),
        headroom: int = 0,
        record: bool = True,
        at: Where = None,
    ) -> Context:
        """Builds the messages to send to a model, in at most `budget` tokens. It is a list in the shape of "openai",
        "responses" or "anthropic" (with a separate `system`), and the provider always accepts it.

        Goal, facts, decisions, dead ends and pending calls always stay in it. Whatever is evicted is recorded and stays
        out until it is restored; `headroom` evicts that many more tokens at once. `policy` says what to evict, in
        order. `count` counts the tokens of a text; the default is an estimate. Without `record`, or `at` a point in the
        past, nothing is written.
        """
        from wakelog.context.ledger import make_context, oldest_first
        from wakelog.context.token_count import estimate

        check_list(pinned, "pinned keys")
        check_tokens(budget)
        return make_context(
            self._session.log,
            budget,
            shape=shape,
            policy=policy or oldest_first,
            count=count or estimate,
            pinned=pinned,
            headroom=headroom,
            record=record and not self._session._is_answering,
            at=self._session._upto(at),
        )

    def seen(
        self, at: Where = None, *, budget: int | None = None, shape: Shape | None = None, moved: bool = False
    ) -> WindowLook:
        """Returns what the model saw at a turn or event, item by item, as its call recorded it. If no model was called
        there, or without a point, it is what a model would be shown. With `shape`, also as messages for that provider;
        with `moved`, also what entered and left the window since the previous model call. Nothing is written."""
        from wakelog.context.window_look import look_at

        return look_at(self._session.log, at, budget=budget, shape=shape, moved=moved)

    def evict(self, key: str | Seq) -> Evicted:
        """Evicts something from the window: `e12`, only a call's answer as `e12:output`, or a range, `e5..e40`."""
        from wakelog.context.eviction import evict

        return evict(self._session.log, key)

    def restore(self, key: str | Seq) -> RestoredContent:
        """Restores what was evicted, and keeps it in the window for this turn. `gone` lists what was pruned or erased
        since."""
        from wakelog.context.eviction import restore

        return restore(self._session.log, key)

    def pin(self, key: str | Seq) -> Item:
        """Keeps something in the window until the turn ends."""
        from wakelog.context.eviction import pin

        return pin(self._session.log, key)

    def compact(self, first: Seq | str, last: Seq | str, summary: Value, *, why: str = "") -> Seq:
        """Replaces the range from `first` to `last` ("@1", "@8") with a summary, in the view only. The summary is
        trusted as far as the least trusted event in the range. Returns the seq for `expand`."""
        from wakelog.context.compaction import compact

        log = self._session.log
        begin = first if isinstance(first, int) else resolve_range(log, first).first
        end = last if isinstance(last, int) else resolve_range(log, last).last
        return compact(log, begin, end, summary, why=why)

    def compactions(self, at: Where = None) -> list[Summary]:
        """Lists the compactions in effect, oldest first."""
        from wakelog.context.compaction import compactions

        return compactions(self._session.log, self._session._upto(at))

    def replaced(self, compaction: Seq) -> tuple[Item, ...]:
        """Returns what a compaction replaced. The compaction stays."""
        from wakelog.context.compaction import inspect

        return inspect(self._session.log, compaction)

    def expand(self, compaction: Seq, *, why: str = "") -> Seq:
        """Reverts a compaction: what it replaced is in view again."""
        from wakelog.context.compaction import expand

        return expand(self._session.log, compaction, why=why)

    def touch(
        self,
        resource: str,
        category: Literal["file", "app", "data_source"] = "data_source",
        *,
        mode: Literal["read", "write"] = "read",
    ) -> Seq:
        """Adds a file, app or data source to the working set."""
        check_text(resource, "a resource")
        return self._session._record(ev.ResourceTouched(resource=resource, category=category, mode=mode))
