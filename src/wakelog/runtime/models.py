"""Makes the request of a model call: its parameters, a hash of what the model was shown, and its price.

The messages are not stored again with each call; that would grow with the square of the conversation. The request names
the events that were in the window, and the hash of the messages.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import msgspec

from wakelog.codec.canonical import hash_value
from wakelog.log import Log
from wakelog.model.events import Cost
from wakelog.model.usage import Usage, usage_of
from wakelog.model.values import Value
from wakelog.monitors.budgets import limits_money
from wakelog.monitors.prices import Price, Prices, built_in
from wakelog.runtime.ambient import Flow, TrustMark
from wakelog.runtime.model_labels import labels_of
from wakelog.runtime.policy import Policy
from wakelog.runtime.tools import CallRequest, Tool
from wakelog.runtime.values import bind, plain

SHOWN = ("messages", "input", "contents", "prompt", "system", "instructions")
"""The arguments with which the big providers' clients pass what the model is shown."""
_PROVIDERS = {"openai": "openai", "anthropic": "anthropic", "google": "google"}
"""A client's package → the provider's name in the price table."""


def model_call(
    flow: Flow,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    context: Any,
    policy: Policy | None = None,
    prices: Callable[[], Prices] = built_in,
) -> CallRequest:
    """Makes the request for a call of a model client's function."""
    policy = MODEL if policy is None else policy
    passed = bind(function, args, kwargs, defaults=False)
    # Many defaults of a client only mean "not given".
    defaults = bind(function, args, kwargs).items()
    arguments = {name: value for name, value in defaults if name in passed or isinstance(value, str | int | float)}
    run = functools.partial(function, *args, **kwargs)
    return described_call(flow, function, run, arguments, policy, prices, provider_of(function), context)


def described_call(
    flow: Flow,
    function: Callable[..., Any],
    run: Callable[[], Any],
    arguments: dict[str, Any],
    policy: Policy,
    prices: Callable[[], Prices],
    provider: str,
    context: Any = None,
) -> CallRequest:
    """Makes a model call's request from its arguments: what is stored of them, and what the call depends on."""
    shown = {name: plain(arguments[name]) for name in SHOWN if arguments.get(name) is not None}
    stored = {name: plain(value) for name, value in arguments.items() if value is not None and name not in shown}
    params = {name: value if _is_small(value) else {"hash": hash_value(value)} for name, value in stored.items()}
    context = next((a for a in (context, *arguments.values()) if hasattr(a, "ranges")), None)
    if context is None:
        ranges, exposure = flow.window()
    else:
        ranges, exposure = context.ranges, TrustMark(context.exposure, getattr(context, "source", ""))
    digest = hash_value(shown)
    name = str(arguments.get("model") or getattr(function, "__name__", "model"))
    check: Callable[[], None] | None = None
    if policy.cost is usage_cost:  # not if the caller passed its own cost function
        charge = _Charge(flow.log, prices, provider, name)
        policy, check = msgspec.structs.replace(policy, cost=charge.cost), charge.check
    tool = Tool(function, policy, name)
    return CallRequest(
        tool,
        arguments,
        run,
        stored={**params, "shown": digest},
        params=params,
        context_hash=digest,
        derived_from=ranges,
        exposure=exposure,
        labels=labels_of(str(arguments.get("model") or ""), stored | shown, is_window=context is not None),
        check=check,
    )


def _is_small(value: Value) -> bool:
    return len(msgspec.json.encode(value)) <= 1000


def usage_cost(result: Any) -> Cost:
    """Reads the used tokens from a model's answer, if it says so. `session.model` adds their price."""
    return token_cost(usage_of(plain(result)))


MODEL = Policy(effect="model", cost=usage_cost)
"""The default policy of a model call."""


def token_cost(usage: Usage) -> Cost:
    """Returns the tokens as a cost, without a price."""
    return Cost(
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write + usage.cache_write_1h,
        reasoning_tokens=usage.reasoning,
    )


class _Charge:
    """Prices one model call by the price table."""

    def __init__(self, log: Log, prices: Callable[[], Prices], provider: str, model: str) -> None:
        self._log = log
        self._prices = prices
        self._provider = provider
        self._model = model

    def check(self) -> None:
        """Refuses a call of a model without a price if the session has a limit in money."""
        if limits_money(self._log):
            self._prices().require(self._model, self._provider, self._log.clock())

    def cost(self, result: Any) -> Cost:
        answer = plain(result)
        usage = usage_of(answer)
        tokens = token_cost(usage)
        price = self._price(answer) if usage.is_known else None
        if price is None:
            return tokens
        return msgspec.structs.replace(tokens, usd_micros=price.usd_micros(usage), price=price.name)

    def _price(self, answer: Value) -> Price | None:
        """Finds the price of the model that answered, or else of the model that was requested."""
        names = ("model", "modelVersion", "model_version")
        answered = next((m for n in names if isinstance(m := answer.get(n), str)), "")
        prices, now = self._prices(), self._log.clock()
        price = prices.find(answered, self._provider, now) if answered else None
        return price or prices.find(self._model, self._provider, now)


def provider_of(function: Callable[..., Any]) -> str:
    """Returns the provider whose client a function belongs to; empty if unknown."""
    while isinstance(function, functools.partial):
        function = function.func
    owner = getattr(function, "__self__", None)
    module = str(type(owner).__module__ if owner is not None else getattr(function, "__module__", ""))
    return _PROVIDERS.get(module.partition(".")[0], "")


def stop_reason(answer: Value) -> str:
    """Returns why a model stopped, if its answer says so."""
    reasons = ("stop_reason", "finish_reason", "finishReason")
    for part in (answer, _part(answer, "choices", "candidates")):
        if isinstance(part, dict) and (found := next(filter(None, map(part.get, reasons)), None)):
            return str(found)
    if isinstance(answer, dict) and answer.get("object") == "response":
        return str(_part(answer, "incomplete_details").get("reason") or answer.get("status") or "")
    return ""


def _part(answer: Value, *names: str) -> dict[str, Value]:
    """Returns the first of these parts that an answer has; of a list, its first item."""
    for name in names if isinstance(answer, dict) else ():
        part = answer.get(name)
        part = part[0] if isinstance(part, list) and part else part
        if isinstance(part, dict):
            return part
    return {}
