"""OpenAI's client: chat completions and responses, sync and async, also on Azure."""

from __future__ import annotations

from collections.abc import Iterator

from openai import _base_client

from wakelog.instruments.patches import Point
from wakelog.instruments.stainless import points_of


def points() -> Iterator[Point]:
    return points_of(_base_client)
