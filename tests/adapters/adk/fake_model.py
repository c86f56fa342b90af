"""A model that answers from a script, so that ADK's real runner runs without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import PrivateAttr

USED = types.GenerateContentResponseUsageMetadata(prompt_token_count=1000, candidates_token_count=50)


def says(text: str) -> LlmResponse:
    return _answer(types.Part(text=text))


def asks(tool: str, **given: Any) -> LlmResponse:
    return _answer(types.Part(function_call=types.FunctionCall(name=tool, args=given)))


def _answer(part: types.Part) -> LlmResponse:
    content = types.Content(role="model", parts=[part])
    return LlmResponse(content=content, usage_metadata=USED, model_version="gemini-2.5-flash")


class ScriptedLlm(BaseLlm):  # type: ignore[misc]  # Any where it is not installed
    """Gives one answer of the script after another, and remembers what it was sent."""

    _script: list[LlmResponse] = PrivateAttr(default_factory=list)
    _sent: list[Any] = PrivateAttr(default_factory=list)

    @classmethod
    def of(cls, *script: LlmResponse) -> ScriptedLlm:
        made = cls(model="scripted")
        made._script.extend(script)
        return made

    @property
    def sent(self) -> list[Any]:
        return self._sent

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncIterator[LlmResponse]:
        self._sent.append([part.text for content in llm_request.contents for part in content.parts or ()])
        yield self._script.pop(0)
