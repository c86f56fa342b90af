"""What a model's answer cost: as the tool says, else by its usage and the prices of that day."""

from __future__ import annotations

import msgspec

from wakelog.importers.steps import Reply
from wakelog.model.events import Cost
from wakelog.model.usage import Usage
from wakelog.monitors.prices import Price, Prices
from wakelog.runtime.models import token_cost
from wakelog.store import Store

DAY_US = 86_400_000_000


class ModelCosts:
    """Costs of the answers in one transcript. A price is looked up once for each model and day."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._prices: dict[tuple[str, int], Price | None] = {}
        self._used: dict[str, Usage] = {}
        self._paid: dict[str, int] = {}

    def more(self, reply: Reply) -> tuple[Usage, int]:
        """What an answer has used, and cost by the tool's word, since it was last told of."""
        before, paid = self._used.get(reply.id, Usage()), self._paid.get(reply.id, 0)
        if not reply.usage.is_known and not reply.cost_micros:
            return reply.usage, 0
        self._used[reply.id], self._paid[reply.id] = reply.usage, reply.cost_micros
        if not before.is_known:
            return reply.usage, reply.cost_micros - paid
        new = {f: max(0, getattr(reply.usage, f) - getattr(before, f)) for f in Usage.__struct_fields__}
        return Usage(**new), max(0, reply.cost_micros - paid)

    def cost(self, model: str, usage: Usage, cost_micros: int, at: int) -> Cost:
        """`cost_micros` is what the tool says; 0 where it does not. `at` is when the answer was given."""
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
            prices: Prices = self._store.prices
            self._prices[model, day] = prices.find(model, "", at or self._store.clock())
        return self._prices[model, day]
