"""LiteLLM: `completion` and `responses`, and the same awaited, which use two formats of OpenAI for every provider.

Only the arguments that describe the call are read: others hold keys and clients.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from wakelog.instruments import patches
from wakelog.instruments.function_wrapper import wrap, wrap_async
from wakelog.instruments.patches import Point
from wakelog.instruments.recorder import PassingCall
from wakelog.instruments.stream_listener import ListenedStream, Listener
from wakelog.model.values import Value
from wakelog.runtime.values import bind, plain

_CHAT, _RESPONSES = "/chat/completions", "/responses"
_RECORDED = frozenset(
    {
        *("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"),
        *("temperature", "top_p", "n", "stop", "seed", "max_tokens", "max_completion_tokens", "logit_bias", "logprobs"),
        *("presence_penalty", "frequency_penalty", "top_logprobs", "response_format", "reasoning_effort", "thinking"),
        *("stream", "stream_options", "modalities", "verbosity", "user"),
        *("input", "instructions", "previous_response_id", "reasoning", "text", "max_output_tokens", "include"),
    }
)
_PROVIDERS = {"gemini": "google", "vertex_ai": "google", "azure": "openai"}


def points(litellm: Any) -> Iterator[Point]:
    for names, path, place in ((("completion", "acompletion"), _CHAT, 0), (("responses", "aresponses"), _RESPONSES, 1)):
        see = functools.partial(_see, path, place)
        for name, wrapped in zip(names, (wrap, wrap_async), strict=True):
            yield litellm, name, functools.partial(wrapped, see, _take)


def _see(
    path: str, place: int, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> PassingCall | None:
    """`place` is that of the model among the arguments."""
    model = str(kwargs.get("model") or (args[place] if len(args) > place else ""))
    prefix = model.partition("/")[0] if "/" in model else "openai"
    provider = _PROVIDERS.get(prefix, prefix)
    return patches.passing_call(path, functools.partial(_body, function, args, kwargs), provider)


def _body(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Value:
    given = bind(function, args, kwargs, defaults=False)
    # One by one: a value that cannot be stored, such as a class, must not hide the messages.
    return {name: _stored(value) for name, value in given.items() if name in _RECORDED and value is not None}


def _stored(value: Any) -> Value:
    """A class stands for its JSON Schema."""
    schema = getattr(value, "model_json_schema", None) if isinstance(value, type) else None
    return plain({"type": "json_schema", "name": value.__name__, "schema": schema()} if schema is not None else value)


def _take(call: PassingCall, result: Any) -> Any:
    """A stream is passed on as one that is observed."""
    if hasattr(type(result), "__next__") or hasattr(type(result), "__anext__"):
        return ListenedStream(result, Listener(call))
    call.answered(result)
    return result
