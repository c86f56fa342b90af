"""Reads JSON-RPC frames. A frame that cannot be read is forwarded like any other, but not recorded."""

from __future__ import annotations

from typing import Any

import msgspec

Frame = dict[str, Any]

_decode = msgspec.json.Decoder().decode


def frames_of(text: bytes) -> list[Frame]:
    """The messages in one JSON text: one or a batch."""
    try:
        value = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    return [f for f in (value if isinstance(value, list) else [value]) if isinstance(f, dict)]
