"""How much something takes of the window.

The count is the caller's: pass the tokenizer of your model. Without one it is an estimate, four bytes to a token, which
is near the truth for English prose and code and too low for some other languages.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from wakelog.context.items import Item
from wakelog.model.parts import Image, Thinking, text_of

Count = Callable[[str], int]
"""From a text to its number of tokens."""

BYTES = 4
"""To a token, by the estimate."""
AROUND = 4
"""What a provider adds around each message, about."""
IMAGE_TOKENS = 1500
"""What a picture takes, about; it depends on its size, which nobody knows here."""


def estimate(text: str) -> int:
    """About how many tokens a text has: an estimate, four bytes each."""
    return (len(text.encode(errors="replace")) + BYTES - 1) // BYTES


def weighed(item: Item, count: Count, unread: tuple[int, int] = (0, 0)) -> Item:
    """The item with what it takes; `unread` are bytes of it that were not fetched, and how many of these are its
    answer."""
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
