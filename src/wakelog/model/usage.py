"""Reads the token usage from a model's answer, in the formats of the big providers.

They count differently. OpenAI and Google include cached tokens in the prompt's tokens; Anthropic counts them
separately. OpenAI includes reasoning in the output; Google counts it separately. Here every token is in exactly one
field, so that each can have its own price.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.model.json_fields import whole_number
from wakelog.model.values import Value


class Usage(msgspec.Struct, frozen=True):
    """Tokens by price class. Each token is in one field only."""

    input: int = 0
    """Neither read from a cache nor written to one."""
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    """Written to a cache with a longer lifetime, if the provider reports it."""
    output: int = 0
    """Without the tokens that are reported as reasoning."""
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
    """Returns the usage that an answer reports; zeros if it reports none."""
    if not isinstance(answer, dict):
        return Usage()
    for name in ("usageMetadata", "usage_metadata"):
        if isinstance(usage := answer.get(name), dict):
            return _google(usage)
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return Usage()
    if "prompt_tokens" in usage or "completion_tokens" in usage:
        return _openai(
            usage, "prompt_tokens", "completion_tokens", "prompt_tokens_details", "completion_tokens_details"
        )
    if "input_tokens_details" in usage or "total_tokens" in usage:
        return _openai(usage, "input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details")
    return _anthropic(usage)


def _openai(usage: dict[str, Any], prompt: str, output: str, prompt_details: str, output_details: str) -> Usage:
    details = usage.get(prompt_details)
    cached, written = _count(details, "cached_tokens"), _count(details, "cache_write_tokens")
    reasoning = _count(usage.get(output_details), "reasoning_tokens")
    return Usage(
        input=max(0, _count(usage, prompt) - cached - written),
        cache_read=cached,
        cache_write=written,
        output=max(0, _count(usage, output) - reasoning),
        reasoning=reasoning,
    )


def _anthropic(usage: dict[str, Any]) -> Usage:
    written = _count(usage, "cache_creation_input_tokens")
    long = min(written, _count(usage.get("cache_creation"), "ephemeral_1h_input_tokens"))
    output = _count(usage, "output_tokens")
    thinking = min(output, _count(usage.get("output_tokens_details"), "thinking_tokens"))
    return Usage(
        input=_count(usage, "input_tokens"),
        cache_read=_count(usage, "cache_read_input_tokens"),
        cache_write=written - long,
        cache_write_1h=long,
        output=output - thinking,
        reasoning=thinking,
    )


def _google(usage: dict[str, Any]) -> Usage:
    cached = _count(usage, "cachedContentTokenCount", "cached_content_token_count")
    prompt = _count(usage, "promptTokenCount", "prompt_token_count")
    tools = _count(usage, "toolUsePromptTokenCount", "tool_use_prompt_token_count")
    return Usage(
        input=max(0, prompt - cached) + tools,
        cache_read=cached,
        output=_count(usage, "candidatesTokenCount", "candidates_token_count"),
        reasoning=_count(usage, "thoughtsTokenCount", "thoughts_token_count"),
    )


def _count(usage: Any, *names: str) -> int:
    if not isinstance(usage, dict):
        return 0
    return next((n for name in names if (n := whole_number(usage.get(name)))), 0)
