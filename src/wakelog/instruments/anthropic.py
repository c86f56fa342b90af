"""Anthropic's client: messages, sync and async, also on Bedrock and Vertex."""

from __future__ import annotations

from collections.abc import Iterator

from anthropic import _base_client

from wakelog.instruments.patches import Point
from wakelog.instruments.stainless import points_of


def points() -> Iterator[Point]:
    return points_of(_base_client)
