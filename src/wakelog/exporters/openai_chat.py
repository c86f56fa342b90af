"""The conversation as OpenAI chat messages: one JSON array, one message per line.

It is the whole conversation, not the model's window: evicted messages are included, and untrusted text has no fence. A
compacted range is its summary, as it was for the model.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.context.items import Item
from wakelog.context.provider_formats import shape_items
from wakelog.context.quotes import unfence
from wakelog.context.window import read_window
from wakelog.model.ids import Seq
from wakelog.model.parts import Text
from wakelog.session import Session


def openai_chat(session: Session[Any], at: Seq | None = None) -> list[dict[str, Any]]:
    return shape_items([plain_item(i) for i in read_window(session.log, at, evicted=()).items], "", "openai").messages


def plain_item(item: Item) -> Item:
    """An item without fences. Only untrusted items have them."""
    if item.trust == "trusted":
        return item
    parts = tuple(Text(unfence(p.text)) if isinstance(p, Text) else p for p in item.parts)
    return msgspec.structs.replace(item, parts=parts, answer=unfence(item.answer))
