"""LiteLLM: `completion` and `acompletion`, which use the format of OpenAI's chat completions for every provider.

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

_PATH = "/chat/completions"
_RECORDED = frozenset(
    {
        *("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"),
        *("temperature", "top_p", "n", "stop", "seed", "max_tokens", "max_completion_tokens", "logit_bias", "logprobs"),
        *("presence_penalty", "frequency_penalty", "top_logprobs", "response_format", "reasoning_effort", "thinking"),
        *("stream", "stream_options", "modalities", "verbosity", "user"),
    }
)
_PROVIDERS = {"gemini": "google", "vertex_ai": "google", "azure": "openai"}


def points(litellm: Any) -> Iterator[Point]:
    yield litellm, "completion", functools.partial(wrap, _see, _take)
    yield litellm, "acompletion", functools.partial(wrap_async, _see, _take)


def _see(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> PassingCall | None:
    model = str(kwargs.get("model") or (args[0] if args else ""))
    prefix = model.partition("/")[0] if "/" in model else "openai"
    provider = _PROVIDERS.get(prefix, prefix)
    return patches.passing_call(_PATH, functools.partial(_body, function, args, kwargs), provider)


def _body(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Value:
    given = bind(function, args, kwargs, defaults=False)
    return plain({name: value for name, value in given.items() if name in _RECORDED and value is not None})


def _take(call: PassingCall, result: Any) -> Any:
    """A stream is passed on as one that is observed."""
    if hasattr(type(result), "__next__") or hasattr(type(result), "__anext__"):
        return ListenedStream(result, Listener(call))
    call.answered(result)
    return result
