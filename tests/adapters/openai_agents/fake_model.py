"""A model that answers from a script, so that the SDK's real runner runs without a network."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

from agents import ModelResponse, Usage
from agents.models.interface import Model
from agents.tracing import response_span
from openai.types.responses import Response, ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails, ResponseUsage

_numbers = itertools.count(1)


def says(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(annotations=[], text=text, type="output_text", logprobs=[])
    return ResponseOutputMessage(
        id=f"msg_{next(_numbers)}", content=[content], role="assistant", status="completed", type="message"
    )


def asks(tool: str, **given: Any) -> ResponseFunctionToolCall:
    number = next(_numbers)
    return ResponseFunctionToolCall(
        id=f"fc_{number}",
        call_id=f"call_{number}",
        name=tool,
        arguments=json.dumps(given, separators=(",", ":")),
        type="function_call",
    )


class ScriptedModel(Model):  # type: ignore[misc]  # the SDK is not installed where types are checked
    """Gives one answer of the script after another, and remembers what it was sent."""

    def __init__(self, *script: Iterable[Any] | Exception) -> None:
        self._script = list(script)
        self.sent: list[Any] = []

    async def get_response(
        self,
        system_instructions: Any,
        input: Any,
        model_settings: Any,
        tools: Any,
        output_schema: Any,
        *rest: Any,
        **more: Any,
    ) -> ModelResponse:
        self.sent.append(input if isinstance(input, str) else list(input))
        output = self._script.pop(0)
        with response_span() as span:
            if isinstance(output, Exception):
                span.set_error({"message": str(output), "data": None})
                raise output
            usage = ResponseUsage(
                input_tokens=100,
                output_tokens=10,
                total_tokens=110,
                input_tokens_details=InputTokensDetails(cached_tokens=40, cache_write_tokens=0),
                output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
            )
            response = Response(
                id=f"resp_{next(_numbers)}",
                created_at=1.0,
                model="gpt-4.1",
                object="response",
                output=list(output),
                tool_choice="auto",
                tools=[],
                parallel_tool_calls=True,
                usage=usage,
            )
            span.span_data.response = response
            span.span_data.input = self.sent[-1]
        return ModelResponse(output=list(output), usage=Usage(requests=1, input_tokens=100), response_id=response.id)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise AssertionError("no test of this suite streams")
