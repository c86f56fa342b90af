"""The conversation as OpenAI chat messages: one JSON array, a message a line.

It is what was said, not a window: what left the window is there, and what is not trusted stands without a fence. A
range that was compacted stands as its summary, as it did for the model.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.context.items import Item
from wakelog.context.quotes import unfenced
from wakelog.context.shapes import shape_items
from wakelog.context.window import read_window
from wakelog.model.ids import Seq
from wakelog.model.parts import Text
from wakelog.session import Session


def openai_chat(session: Session[Any], at: Seq | None = None) -> list[dict[str, Any]]:
    """The messages."""
    return shape_items([plain_item(i) for i in read_window(session.log, at, evicted=()).items], "", "openai").messages


def plain_item(item: Item) -> Item:
    """An item as it was said. Only what is not trusted was fenced, so nothing else is looked at."""
    if item.trust == "trusted":
        return item
    parts = tuple(Text(unfenced(p.text)) if isinstance(p, Text) else p for p in item.parts)
    return msgspec.structs.replace(item, parts=parts, answer=unfenced(item.answer))
