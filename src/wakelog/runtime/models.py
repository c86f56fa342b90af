"""A model call is an action too: its model and parameters, the hash of what it was shown, what it used, why it stopped.

What it was shown is not stored again with each call, which would grow with the square of the conversation: the request
names the events that were in the window, and the hash of the messages.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import msgspec

from wakelog.codec.canonical import hash_value
from wakelog.model.events import Cost
from wakelog.model.values import Value
from wakelog.runtime.ambient import Mark
from wakelog.runtime.flow import Flow
from wakelog.runtime.given import Given
from wakelog.runtime.policy import Policy
from wakelog.runtime.tools import Tool
from wakelog.runtime.values import bind, plain

SHOWN = ("messages", "input", "contents", "prompt", "system", "instructions")
"""The arguments that hold what the model is shown, in the clients of the big providers."""


def model_call(
    flow: Flow,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    context: Any,
    policy: Policy,
) -> Given:
    """A call of a model client's function, ready to be conducted."""
    said = bind(function, args, kwargs, defaults=False)
    # A client has many defaults that only say "not given", and no value.
    defaults = bind(function, args, kwargs).items()
    arguments = {name: value for name, value in defaults if name in said or isinstance(value, str | int | float)}
    shown = {name: plain(arguments[name]) for name in SHOWN if arguments.get(name) is not None}
    params = {
        name: value if _is_small(value := plain(argument)) else {"hash": hash_value(value)}
        for name, argument in arguments.items()
        if name not in SHOWN and argument is not None
    }
    context = next((a for a in (context, *arguments.values()) if hasattr(a, "ranges")), None)
    if context is None:
        ranges, exposure = flow.window()
    else:
        ranges, exposure = context.ranges, Mark(context.exposure, getattr(context, "source", ""))
    digest = hash_value(shown)
    tool = Tool(function, policy, str(arguments.get("model") or getattr(function, "__name__", "model")))
    return Given(
        tool,
        arguments,
        functools.partial(function, *args, **kwargs),
        stored={**params, "shown": digest},
        params=params,
        context_hash=digest,
        derived_from=ranges,
        exposure=exposure,
    )


def _is_small(value: Value) -> bool:
    return len(msgspec.json.encode(value)) <= 1000


def usage_cost(result: Any) -> Cost:
    """What a model's answer says it used, in the words of the big providers; nothing where it says nothing."""
    usage = _part(plain(result), "usage", "usage_metadata", "usageMetadata")
    tokens_in = _first(usage, "input_tokens", "prompt_tokens", "prompt_token_count", "promptTokenCount")
    tokens_out = _first(usage, "output_tokens", "completion_tokens", "candidates_token_count", "candidatesTokenCount")
    # Counted apart by Anthropic, and by Gemini; the others have them in the sums above.
    cached = _first(usage, "cache_read_input_tokens") + _first(usage, "cache_creation_input_tokens")
    thoughts = _first(usage, "thoughts_token_count", "thoughtsTokenCount")
    return Cost(tokens_in=tokens_in + cached, tokens_out=tokens_out + thoughts)


def stop_reason(answer: Value) -> str:
    """Why a model stopped, where its answer says so."""
    reasons = ("stop_reason", "finish_reason", "finishReason")
    for part in (answer, _part(answer, "choices", "candidates")):
        if isinstance(part, dict) and (found := next(filter(None, map(part.get, reasons)), None)):
            return str(found)
    return ""


def _part(answer: Value, *names: str) -> dict[str, Value]:
    """The first of these parts that an answer has; of a list, its first."""
    for name in names if isinstance(answer, dict) else ():
        part = answer.get(name)
        part = part[0] if isinstance(part, list) and part else part
        if isinstance(part, dict):
            return part
    return {}


def _first(usage: dict[str, Any], *names: str) -> int:
    return next((usage[n] for n in names if isinstance(usage.get(n), int)), 0)
