"""Reads fields of JSON that may have any type, because another program wrote it or content was erased. A field of the
wrong type counts as missing."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def as_dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def as_count(value: object) -> int:
    """Returns a positive integer; 0 for anything else, also for true."""
    return value if type(value) is int and value > 0 else 0


def whole_number(value: object) -> int:
    """Returns a positive integer, also one that was written as text; 0 for anything else."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        return int(value)
    return as_count(value)


def dicts_in(value: object) -> list[dict[str, Any]]:
    """Returns the objects in a list; other items are left out."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_in(body: Mapping[str, Any], field: str) -> str:
    value = body.get(field)
    return value if isinstance(value, str) else ""


def count_in(body: Mapping[str, Any], field: str) -> int:
    return as_count(body.get(field))


def without_fields(body: Mapping[str, Any], fields: Container[str]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in fields}
