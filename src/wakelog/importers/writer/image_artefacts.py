"""Moves images in messages into artefacts, one for each hash, and leaves a reference in their place.

Transcripts hold images as base64 inside the message. Stored like that, an image would be repeated as text wherever the
message is, and its tokens would be counted by its characters.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

from wakelog.model.events import ArtefactRecorded
from wakelog.model.values import Value


def extract_images(content: Value) -> tuple[Value, list[ArtefactRecorded]]:
    """The content with references in place of images, and the images. Unchanged content if it has none."""
    if not isinstance(content, list):
        return content, []
    images: list[ArtefactRecorded] = []
    blocks = [_extract(block, images) if isinstance(block, dict) else block for block in content]
    return (blocks, images) if images else (content, [])


def _extract(block: dict[str, Any], images: list[ArtefactRecorded]) -> dict[str, Any]:
    if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
        return block | {"content": [_extract(b, images) if isinstance(b, dict) else b for b in block["content"]]}
    source = block.get("source")
    if block.get("type") != "image" or not isinstance(source, dict) or source.get("type") != "base64":
        return block
    try:
        data = base64.b64decode(source.get("data") or "", validate=True)
    except (binascii.Error, ValueError, TypeError):
        return block
    digest, media = hashlib.sha256(data).hexdigest(), str(source.get("media_type") or "")
    images.append(ArtefactRecorded(name=f"image-{digest[:12]}", media=media, content=data))
    return {"type": "image", "source": {"type": "sha256", "media_type": media, "sha256": digest, "size": len(data)}}
