"""JSON-RPC frames as they pass by: read for what they say, never rewritten.

A frame that cannot be read is none of our business: it passes like any other, and says nothing to the recorder.
"""

from __future__ import annotations

from typing import Any

import msgspec

Frame = dict[str, Any]

_decode = msgspec.json.Decoder().decode


def frames_of(text: bytes) -> list[Frame]:
    """The messages of one JSON text: one, or a batch."""
    try:
        value = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    return [f for f in (value if isinstance(value, list) else [value]) if isinstance(f, dict)]
