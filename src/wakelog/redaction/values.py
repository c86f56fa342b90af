"""Redaction inside events: which fields are searched, and how deep.

Most events have no secret. So the texts of all events of an append are joined and searched once. Only if that finds
something, or a key means "secret", each event is searched and rebuilt separately. Nothing is changed in place; a value
without a secret is returned as the same object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from wakelog.model.events import Event, FactRecorded, FileChanged
from wakelog.model.events.base import NOT_SEARCHED
from wakelog.model.payloads import Media, Payload
from wakelog.model.values import DEPTH_MAX, Value
from wakelog.redaction.assignments import is_named_secret, may_name_secret
from wakelog.redaction.plausible import MARKER

if TYPE_CHECKING:
    from wakelog.redaction.redactor import Redactor

NAMED = "named-secret"
"""The marker of a value whose key in a dict means "secret"."""
REDACTED = "redacted"
"""Says that a file's content in the log differs from the file on disk."""
BYTES_MAX = 1 << 20
"""Untyped bytes up to this size are searched if they are text."""

_SCALARS = frozenset({int, float, bool, type(None)})
_fields: dict[type, tuple[str, ...]] = {}
_walks: dict[type, tuple[tuple[str, ...], str]] = {}
"""The same for the native core, with the field whose text names the field `value`."""


def redact_event(redactor: Redactor, event: Event) -> tuple[Event, tuple[str, ...]]:
    """Returns `event` with the secrets in its texts, values and payloads replaced, and the markers' names; the same
    object if there is none. Ids, hashes and keys of dicts are not changed."""
    if redactor.are_clean((event,)):
        return event, ()
    walk = _Walk(redactor)
    changes: dict[str, Any] = {}
    try:
        for name in _fields_of(type(event)):
            value = getattr(event, name)
            redacted = walk.redact(value, _key_of(event, name), 0)
            if redacted is not value:
                changes[name] = redacted
    except _TooDeepError:
        return event, ()  # the codec refuses to store such a value
    if type(event) is FileChanged:
        _withhold(event, changes)
    return (msgspec.structs.replace(event, **changes), tuple(walk.names)) if changes else (event, ())


def are_clean(redactor: Redactor, events: Sequence[Event]) -> bool:
    """Whether `redact_event` would return all of them unchanged, found with one search over all their texts. The native
    scanner can rule out secrets; if it cannot, the search is made here."""
    scanner = redactor.scanner
    if scanner is not None:
        if scanner.are_clean(list(events), _walks):
            return True
        if len(events) > 1:  # of many, such as an import appends at once, few have a sign
            events = [event for event in events if not scanner.are_clean([event], _walks)]
    texts: list[str] = []
    suspicious = False
    for event in events:
        gathered = len(texts)
        try:
            for name in _fields.get(type(event)) or _fields_of(type(event)):
                value = getattr(event, name)
                if type(value) is str:
                    if value:
                        texts.append(value)
                        if name == "value" and not suspicious:
                            suspicious = is_named_secret(_key_of(event, name), value)
                elif value and type(value) not in _SCALARS:
                    suspicious = _gather(redactor, value, _key_of(event, name), texts, 0) or suspicious
        except _TooDeepError:
            del texts[gathered:]  # the codec refuses to store such a value
    # No pattern matches across the line break between two texts. Equal texts are searched once: a file's content after
    # one edit is its content before the next.
    return not suspicious and not (texts and redactor.find("\n".join(dict.fromkeys(texts))))


def _withhold(event: FileChanged, changes: dict[str, Any]) -> None:
    """Marks redacted content as different from the file, and removes its hash: with the rest of the file known, a short
    secret could be guessed by the hash."""
    sides = [side for side in ("before", "after") if side in changes]
    if sides:
        changes["missing"] = {**event.missing, **changes.get("missing", {}), **dict.fromkeys(sides, REDACTED)}
        changes.update(dict.fromkeys([f"{side}_hash" for side in sides], ""))


class _TooDeepError(Exception):
    pass


def _gather(redactor: Redactor, value: Value, key: str, texts: list[str], depth: int) -> bool:
    """Adds all texts of a value to `texts`, to be searched together: a search has a fixed cost, and most texts are
    short. Returns whether a key already means "secret"."""
    if depth > DEPTH_MAX:
        raise _TooDeepError
    if isinstance(value, str):
        texts.append(value)
        return bool(key) and is_named_secret(key, value)
    found = False
    if isinstance(value, dict):
        # Most values are text; handling them here saves a call.
        for k, v in value.items():
            if type(v) is str and depth < DEPTH_MAX:
                texts.append(v)
                found = found or (may_name_secret(k) and is_named_secret(_key_in(value, k), v))
            elif type(v) not in _SCALARS:
                found = _gather(redactor, v, _key_in(value, k), texts, depth + 1) or found
    elif isinstance(value, list | tuple):
        for v in value:
            if type(v) is str and not key and depth < DEPTH_MAX:
                texts.append(v)
            elif type(v) not in _SCALARS:
                found = _gather(redactor, v, key, texts, depth + 1) or found
    elif isinstance(value, msgspec.Struct):
        for name in _fields_of(type(value)):
            found = _gather(redactor, getattr(value, name), "", texts, depth + 1) or found
    elif isinstance(value, Payload | bytes):
        text, media = _text_of(value)
        if media == "json":
            # A key may mean "secret" for a value that does not look like one; the text alone would not show it.
            return redactor.suspects(text)
        texts.append(text)
    return found


class _Walk:
    """Rebuilds values without their secrets, and collects the names of the markers."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self.names: list[str] = []

    def redact(self, value: Value, key: str, depth: int) -> Value:
        if isinstance(value, str):
            return self._text(value, key)
        if isinstance(value, Payload | bytes):
            return self._content(value)
        if depth > DEPTH_MAX:
            raise _TooDeepError
        if isinstance(value, dict):
            changed = {
                k: new for k, v in value.items() if (new := self.redact(v, _key_in(value, k), depth + 1)) is not v
            }
            return {**value, **changed} if changed else value
        if isinstance(value, list | tuple):
            items = [self.redact(v, key, depth + 1) for v in value]
            if all(a is b for a, b in zip(items, value, strict=True)):
                return value
            return items if isinstance(value, list) else tuple(items)
        if isinstance(value, msgspec.Struct):
            old = {name: getattr(value, name) for name in _fields_of(type(value))}
            new = {name: self.redact(v, "", depth + 1) for name, v in old.items()}
            same = all(new[name] is v for name, v in old.items())
            return value if same else msgspec.structs.replace(value, **new)
        return value

    def _text(self, text: str, key: str) -> str:
        redacted, names = self._redactor.redact_text(text)
        if not names and NAMED in self._redactor.names and is_named_secret(key, text):
            redacted, names = f"{MARKER}{NAMED}]", (NAMED,)
        self.names += names
        return redacted

    def _content(self, value: Payload | bytes) -> Payload | bytes:
        text, media = _text_of(value)
        redacted = self._json(text) if media == "json" else self._text(text, "")
        if redacted is text:
            return value
        content = redacted.encode()
        return content if isinstance(value, bytes) else Payload(content, value.media)

    def _json(self, text: str) -> str:
        old = msgspec.json.decode(text)
        names = len(self.names)
        try:
            new = self.redact(old, "", 0)
        except _TooDeepError:
            del self.names[names:]
            return self._text(text, "")
        return text if new is old else msgspec.json.encode(new).decode()


def _fields_of(cls: type) -> tuple[str, ...]:
    """Returns the fields that may hold a secret. In a foreign event, whose fields are unknown, all may."""
    found = _fields.get(cls)
    if found is None:
        names = [field.name for field in msgspec.structs.fields(cls)]
        found = _fields[cls] = tuple(name for name in names if name not in NOT_SEARCHED)
        _walks[cls] = found, "key" if cls is FactRecorded else ""
    return found


def _key_of(event: Event, field: str) -> str:
    """Returns the name of a field's value: the key for a fact's value, else none."""
    return event.key if field == "value" and type(event) is FactRecorded else ""


def _key_in(value: dict[str, Value], key: str) -> str:
    """Returns the name of a dict's value: its key, or for the value of a patch the last part of its path."""
    if key == "value" and "op" in value and isinstance(path := value.get("path"), str):
        return path.rpartition("/")[2]
    return key


def _text_of(value: Payload | bytes) -> tuple[str, Media]:
    """Returns content as text, and its media type; an empty text if there is nothing to search."""
    media: Media = "bytes" if isinstance(value, bytes) else value.media
    content = value if isinstance(value, bytes) else value.content
    if media == "bytes" and len(content) > BYTES_MAX:
        return "", "bytes"
    try:
        text = content.decode()
        if media == "json":
            msgspec.json.decode(content)
    except UnicodeDecodeError:
        return "", "bytes"
    except (msgspec.DecodeError, RecursionError):
        return text, "text"
    return text, media
