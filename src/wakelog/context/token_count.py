"""Counts tokens.

Callers may pass the tokenizer of their model. Without one, tokens are estimated at four bytes each, which is close for
English prose and code, and too low for some other languages.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from wakelog.context.items import Item
from wakelog.model.parts import Image, Thinking, text_of

Count = Callable[[str], int]
"""From a text to its number of tokens."""

BYTES = 4
"""Bytes per token, by the estimate."""
AROUND = 4
"""Tokens that a provider adds around each message, roughly."""
IMAGE_TOKENS = 1500
"""Tokens of a picture, roughly; they depend on its size, which is not known here."""


def estimate(text: str) -> int:
    """The estimated number of tokens of a text."""
    return (len(text.encode(errors="replace")) + BYTES - 1) // BYTES


def count_item(item: Item, count: Count, unread: tuple[int, int] = (0, 0)) -> Item:
    """The item with its tokens. `unread` are the bytes that were not fetched, and how many of them are its answer."""
    output = count(item.answer) if item.kind == "call" else 0
    if item.kind == "call":
        own = count(f"{item.name} {text_of(item.input)}") + AROUND
    else:
        own = count(item.text) if item.parts else 0
    for part in item.parts:
        if isinstance(part, Image):
            own += IMAGE_TOKENS
        elif isinstance(part, Thinking):
            own += count(text_of(part.block))
    tokens = own + output + AROUND + unread[0] // BYTES
    return msgspec.structs.replace(item, tokens=tokens, output_tokens=output + unread[1] // BYTES)
