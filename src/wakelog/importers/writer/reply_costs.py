"""Counts what replies of models used and cost, each once.

A tool may report one reply in several records, each with the total so far. Only what is new since the last one counts.
"""

from __future__ import annotations

import msgspec

from wakelog.importers.common.amounts import usage_growth
from wakelog.importers.steps import ReplyStep
from wakelog.model.events import Cost
from wakelog.model.usage import Usage
from wakelog.monitors.prices import Price
from wakelog.runtime.models import token_cost
from wakelog.store import Store

DAY_US = 86_400_000_000


class ReplyCosts:
    """The costs of one transcript's replies."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._used: dict[str, Usage] = {}
        self._paid: dict[str, int] = {}
        self._parts: dict[str, int] = {}
        self._prices: dict[tuple[str, int], Price | None] = {}

    def take(self, reply: ReplyStep, at: int) -> Cost:
        """What a reply adds to what was counted before. `at` is its time, because prices change."""
        usage, paid = self._count_new(reply)
        return self.cost(reply.model, usage, paid, at)

    def skip(self, reply: ReplyStep) -> None:
        """Skips a reply that was counted by an earlier import."""
        self._count_new(reply)
        if reply.content:
            self.part(reply.id)

    def part(self, id: str) -> int:
        """The number of the reply's next part, from 1."""
        self._parts[id] = self._parts.get(id, 0) + 1
        return self._parts[id]

    def _count_new(self, reply: ReplyStep) -> tuple[Usage, int]:
        usage, cost = reply.usage, reply.cost_micros
        if not usage.is_known and not cost:
            return usage, 0
        before, paid = self._used.get(reply.id), self._paid.get(reply.id, 0)
        self._used[reply.id], self._paid[reply.id] = usage, cost
        if before is None or not before.is_known:
            return usage, max(0, cost - paid)
        return usage_growth(usage, before), max(0, cost - paid)

    def cost(self, model: str, usage: Usage, cost_micros: int, at: int) -> Cost:
        cost = token_cost(usage)
        if cost_micros:
            return msgspec.structs.replace(cost, usd_micros=cost_micros)
        if not usage.is_known or not model:
            return cost
        price = self._price(model, at)
        if price is None:
            return cost
        return msgspec.structs.replace(cost, usd_micros=price.usd_micros(usage), price=price.name)

    def _price(self, model: str, at: int) -> Price | None:
        day = at // DAY_US
        if (model, day) not in self._prices:
            self._prices[model, day] = self._store.prices.find(model, "", at or self._store.clock())
        return self._prices[model, day]
