"""The form in which two steps are compared: their content, without what differs every time.

Some parts of a value change from try to try and mean nothing: a provider's id of a call, a UUID, a time of day, a
folder made by `tempfile`. They are replaced by a word for their kind, so that steps that differ in nothing else are
equal. Only what cannot be mistaken for content is replaced, and the result says so: such a pair is `ids or times`, not
simply the same. Bare numbers, hashes and dates without a time of day stay.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

import msgspec

from wakelog.model.ids import Seq
from wakelog.model.values import Value

_encode = msgspec.json.Encoder(order="sorted").encode

_VOLATILE: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "<time>",
        re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?Z\b| ?[+-]\d\d:?\d\d\b)?"),
    ),
    ("<uuid>", re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")),
    ("<session>", re.compile(r"\bs_[0-9A-HJKMNP-TV-Z]{26}(?:\.[0-9A-HJKMNP-TV-Z]{8})?")),
    ("<call>", re.compile(r"\b(?:call|toolu|chatcmpl|resp|msg|req)[_-](?=[A-Za-z0-9]*\d)[A-Za-z0-9]{16,}\b")),
    ("<tmp>", re.compile(r"(?<=[/\\])tmp[a-z0-9_]{8}(?=[/\\]|$)")),
)
_HINT = re.compile(r"\d\d:\d\d|-[0-9a-fA-F]{4}-|s_[0-9A-Z]{26}|[_-][A-Za-z0-9]{16}|[/\\]tmp")
"""Every volatile part matches this, so one search rules out most texts."""


def normalize_volatile(value: Value) -> Value:
    """The value with its volatile parts (ids, times) replaced by a word for their kind."""
    return _map_text(value, _steady_text)


def _steady_text(text: str) -> str:
    if not _HINT.search(text):
        return text
    for word, pattern in _VOLATILE:
        text = pattern.sub(word, text)
    return text


def normalize_payloads(value: Value) -> Value:
    """The value with payloads identified by content hash alone, not by where they are stored."""
    return _map_text(value, str)


def _map_text(value: Value, text: Callable[[str], str]) -> Value:
    kind = type(value)
    if kind is str:
        return text(value)
    if kind is dict:
        if "$payload" in value:
            return {"$payload": value["$payload"]}
        return {text(key): _map_text(item, text) for key, item in value.items()}
    if kind is list or kind is tuple:
        return [_map_text(item, text) for item in value]
    return value


def digest(*parts: Value) -> bytes:
    """Equal for equal parts; 1, true and "1" are different."""
    return hashlib.sha256(_encode(parts)).digest()


def locate_payloads(value: Value, seq: Seq) -> Value:
    """The value with the event's seq added to its payload references, so that they can be fetched without the event. A
    reference is the value itself, or a member of an object that was made of several fields."""
    if type(value) is not dict:
        return value
    if "$payload" in value:
        return value if value.get("at") else {**value, "at": seq}
    return {k: locate_payloads(v, seq) if type(v) is dict and "$payload" in v else v for k, v in value.items()}
