"""What a model's answer says it used, in the words of the big providers.

They count differently: OpenAI and Google include what was read from a cache in the prompt's tokens, Anthropic counts it
apart; OpenAI includes reasoning in the output, Google counts it apart. Here every token is counted in one place, so
that each can be paid for at its own price.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.model.values import Value


class Usage(msgspec.Struct, frozen=True):
    """Tokens by what they cost. None of them is in two fields."""

    input: int = 0
    """Neither read from a cache nor written to one."""
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    """Written to a cache that is kept longer, where that is told apart."""
    output: int = 0
    """Without what is known to be reasoning."""
    reasoning: int = 0

    @property
    def tokens_in(self) -> int:
        return self.input + self.cache_read + self.cache_write + self.cache_write_1h

    @property
    def tokens_out(self) -> int:
        return self.output + self.reasoning

    @property
    def is_known(self) -> bool:
        return bool(self.tokens_in or self.tokens_out)


def usage_of(answer: Value) -> Usage:
    """The usage that an answer reports; nothing where it says nothing."""
    if not isinstance(answer, dict):
        return Usage()
    for name in ("usageMetadata", "usage_metadata"):
        if isinstance(told := answer.get(name), dict):
            return _google(told)
    told = answer.get("usage")
    if not isinstance(told, dict):
        return Usage()
    if "prompt_tokens" in told or "completion_tokens" in told:
        return _openai(told, "prompt_tokens", "completion_tokens", "prompt_tokens_details", "completion_tokens_details")
    if "input_tokens_details" in told or "total_tokens" in told:
        return _openai(told, "input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details")
    return _anthropic(told)


def _openai(told: dict[str, Any], heard: str, said: str, of_heard: str, of_said: str) -> Usage:
    details = told.get(of_heard)
    cached, written = _count(details, "cached_tokens"), _count(details, "cache_write_tokens")
    reasoned = _count(told.get(of_said), "reasoning_tokens")
    return Usage(
        input=max(0, _count(told, heard) - cached - written),
        cache_read=cached,
        cache_write=written,
        output=max(0, _count(told, said) - reasoned),
        reasoning=reasoned,
    )


def _anthropic(told: dict[str, Any]) -> Usage:
    written = _count(told, "cache_creation_input_tokens")
    long = min(written, _count(told.get("cache_creation"), "ephemeral_1h_input_tokens"))
    said = _count(told, "output_tokens")
    thought = min(said, _count(told.get("output_tokens_details"), "thinking_tokens"))
    return Usage(
        input=_count(told, "input_tokens"),
        cache_read=_count(told, "cache_read_input_tokens"),
        cache_write=written - long,
        cache_write_1h=long,
        output=said - thought,
        reasoning=thought,
    )


def _google(told: dict[str, Any]) -> Usage:
    cached = _count(told, "cachedContentTokenCount", "cached_content_token_count")
    prompt = _count(told, "promptTokenCount", "prompt_token_count")
    tools = _count(told, "toolUsePromptTokenCount", "tool_use_prompt_token_count")
    return Usage(
        input=max(0, prompt - cached) + tools,
        cache_read=cached,
        output=_count(told, "candidatesTokenCount", "candidates_token_count"),
        reasoning=_count(told, "thoughtsTokenCount", "thoughts_token_count"),
    )


def _count(told: Any, *names: str) -> int:
    if not isinstance(told, dict):
        return 0
    return next((n for name in names if type(n := told.get(name)) is int and n > 0), 0)
