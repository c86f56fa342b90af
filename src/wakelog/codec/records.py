"""One event as stored: the JSON of its header, its body, and the delta in the body. chain.py joins them into records.

`check_event` and `encode_event` are the specification. For the kinds that most turns consist of, the native core does
the work of both for all events of an append in one call (`encode_plain`). It leaves the others to Python.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal, get_args, get_origin

import msgspec

from wakelog.codec.envelope import is_encrypted, refusal
from wakelog.errors import CorruptLogError, InvalidInputError, UnsupportedError
from wakelog.model import events as ev
from wakelog.model.described import described
from wakelog.model.events import KINDS, Cost, Event, Failure, Foreign
from wakelog.model.events.base import NOT_SEARCHED, Amount
from wakelog.model.payloads import Payload, PayloadRef
from wakelog.model.records import FORMAT_VERSION, Header, Record
from wakelog.model.values import Value, check_text, check_value, encode_text
from wakelog.native import core

Delta = list[dict[str, Value]]

INLINE_MAX = 512
"""Text up to this many characters, and JSON up to this many bytes, stays inside the body. A smaller payload would save
less than its hash costs."""

_encode = msgspec.json.Encoder().encode
_decode_header = msgspec.json.Decoder(Header).decode
_decode_body = msgspec.json.Decoder(dict[str, Any]).decode


class _Decoders(dict[str, Callable[[bytes], Event]]):
    """From a kind to the decoder of its body. Built on first use: building all of them would slow down every start."""

    def __missing__(self, kind: str) -> Callable[[bytes], Event]:
        self[kind] = decode = msgspec.json.Decoder(described(KINDS[kind])).decode
        return decode


_decoders = _Decoders()
described(tuple[Cost, Failure, PayloadRef])  # others convert to these


class _Fold(msgspec.Struct):
    delta: Delta = []


encode_delta: Callable[[Delta], bytes] = _encode
decode_ops = msgspec.json.Decoder(Delta).decode
_decode_delta = msgspec.json.Decoder(_Fold).decode


def _needs_check(field: msgspec.structs.FieldInfo, cls: type[Event]) -> bool:
    """Whether `check_event` must look at a field: open values, containers and numbers. Text, flags, choices and nested
    structs are checked by encoding and decoding."""
    if field.name == "occurred_at" or field.name in cls.payload_fields or get_origin(field.type) is Literal:
        return False
    text = str(field.type)
    return "wakelog." not in text and any(word in text for word in ("Any", "dict", "list", "tuple", "int"))


@functools.cache
def _checked_fields(cls: type[Event]) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """The fields to check and the payload fields, each with its name for error messages."""
    names = [f.name for f in msgspec.structs.fields(cls) if _needs_check(f, cls)]
    return tuple((n, f"{cls.kind} {n}") for n in names), tuple((n, f"{cls.kind} {n}") for n in cls.payload_fields)


def decode_header(data: bytes) -> Header:
    """Decodes a header. A newer format version is refused rather than misread."""
    try:
        header = _decode_header(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        refuse_newer(data, "v")  # a newer version may have changed the types as well
        raise CorruptLogError(f"a stored header is not readable: {exc}") from exc
    if header.v > FORMAT_VERSION:
        refuse_newer(data, "v")
    return header


class _Version(msgspec.Struct):
    v: int = 1
    wakelog: int = 1


def refuse_newer(data: bytes, field: str) -> None:
    """UnsupportedError when a JSON object says that its format version is newer than this one."""
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        version = getattr(msgspec.json.decode(data, type=described(_Version)), field)
        if version > FORMAT_VERSION:
            raise UnsupportedError(
                f"this was written in format version {version}; this wakelog reads up to {FORMAT_VERSION}",
                kind="newer-format",
                hint="upgrade wakelog",
            )


def check_event(event: Event) -> Event:
    """`event` with values as they will be stored: checked, and large ones turned into payloads."""
    if type(event) is Foreign:
        return _check_foreign(event)
    changes: dict[str, Any] = {}
    fields, payloads = _checked_fields(type(event))
    for name, where in fields:
        value = getattr(event, name)
        if value or type(value) is float:
            checked = check_value(value, where)
            if checked is not value:
                changes[name] = checked
    for name, where in payloads:
        value = getattr(event, name)
        if value is not None and not (type(value) is str and len(value) <= INLINE_MAX):  # short text stays as it is
            stored = _as_payload(value, where)
            if stored is not value:
                changes[name] = stored
    return msgspec.structs.replace(event, **changes) if changes else event


def _check_foreign(event: Foreign) -> Foreign:
    if not check_text(event.foreign_kind, "a kind").startswith("x.") or "delta" in event.data:
        raise InvalidInputError(
            f"{event.foreign_kind!r} is not a kind this version writes",
            kind="unknown-kind",
            hint='own kinds start with "x." and carry no delta',
        )
    said = {name: value for name in ("why", "occurred_at") if (value := getattr(event, name))}
    return Foreign(foreign_kind=event.foreign_kind, data=check_value({**event.data, **said}, event.foreign_kind))


def _as_payload(value: Value, where: str) -> Value:
    """A payload field as it is stored: a small value inside the body, a large one as a payload."""
    kind = type(value)
    if kind is str:
        return value if len(value) <= INLINE_MAX else Payload(encode_text(value, where), "text")
    if kind is Payload:
        return value
    if kind is bytes:
        return Payload(value, "bytes")
    try:
        value = check_value(value, where)
    except InvalidInputError as exc:
        # A payload is opaque, so a value with our own markers in it can be stored there, and only there.
        if exc.kind != "reserved-key":
            raise
        return Payload(_encode(check_value(value, where, reserved=True)), "json")
    if type(value) is dict or type(value) is list:
        data = _encode(value)
        return value if len(data) <= INLINE_MAX else Payload(data, "json")
    return value


class PayloadCollector:
    """Replaces payloads by references while a commit's bodies are encoded, and collects the new ones.

    `known` maps the hash of a stored payload to its seq.
    """

    __slots__ = ("encode", "known", "new")

    def __init__(self, known: dict[bytes, int]) -> None:
        self.new: dict[bytes, bytes] = {}
        self.known = known
        self.encode = msgspec.json.Encoder(enc_hook=self._mention).encode

    def _mention(self, value: Any) -> PayloadRef:
        if type(value) is not Payload:
            raise InvalidInputError(
                f"{type(value).__name__} is not a value",
                kind="not-a-value",
                hint="convert it to str, int, float, list or dict first",
            )
        at = 0 if value.digest in self.new else self.known.get(value.digest, 0)
        if not at:
            self.new[value.digest] = value.content
        return PayloadRef(value.digest.hex(), len(value.content), value.media, at)


def encode_event(event: Event, payloads: PayloadCollector) -> tuple[bytes, Event]:
    """The authored part of a body, and the event as everybody will read it from there: of the types it should have, and
    sharing nothing with the one that was given."""
    foreign = type(event) is Foreign
    try:
        data = payloads.encode(event.data if foreign else event)  # type: ignore[attr-defined]
        return data, event if foreign else _decoders[event.kind](data)
    except UnicodeEncodeError as exc:
        raise InvalidInputError(
            f"a text in {kind_of(event)} holds a lone surrogate",
            kind="not-a-value",
            hint='decode with errors="replace", or pass bytes as a payload',
        ) from exc
    except (msgspec.ValidationError, TypeError, OverflowError) as exc:
        raise InvalidInputError(
            f"{kind_of(event)} cannot be stored: {exc}", kind="bad-event", hint=_legal_values(event, str(exc))
        ) from exc


EncodedEvent = tuple[bytes, dict[bytes, bytes] | None]
"""The authored part of a body, and the payloads that it mentions, if any: SHA-256 and content."""

PLAIN_KINDS: tuple[type[Event], ...] = (
    *(ev.TurnStarted, ev.TurnEnded, ev.MessageAdded, ev.DecisionMade, ev.DeadEndNoted, ev.NoteAdded, ev.FileChanged),
    *(ev.ActionRequested, ev.ActionStarted, ev.ActionSucceeded, ev.ActionRecorded, ev.ItemsKept, ev.StatePatched),
)
"""Of these kinds the machines and effects use only texts, flags and numbers. The caller cannot change those afterwards,
so the event need not be decoded from its bytes; a patch is."""
_TEXT, _FLAG, _NUMBER, _CHOICE, _TEXTS, _OBJECT, _PAYLOAD, _STRUCT, _DEFAULT, _NUMBERS, _OBJECTS = range(11)


def _encode_natively(events: list[Event]) -> Sequence[EncodedEvent | None]:
    try:
        return _native_encoder().encode(events)  # type: ignore[no-any-return]
    except Exception:  # whatever it is, the specification has the last word
        return [None] * len(events)


def _encode_clean_natively(events: list[Event], scanner: Any) -> list[EncodedEvent] | None:
    try:
        return _native_encoder().encode_clean(events, scanner)  # type: ignore[no-any-return]
    except Exception:  # as above
        return None


@functools.cache
def _native_encoder() -> Any:
    return core.Encoder({cls: _shape_of(cls) for cls in PLAIN_KINDS}, msgspec.structs.astuple)


def _shape_of(cls: type[msgspec.Struct], *, unsearched: Collection[str] = NOT_SEARCHED) -> list[Any]:
    """The fields of a type for the native core: name, default, whether it is searched for secrets, type code, and
    details of the type."""
    payloads = getattr(cls, "payload_fields", ())
    return [
        (
            field.encode_name,
            field.default,
            field.name not in unsearched,
            *((_PAYLOAD, None) if field.name in payloads else _held_by(field.type)),
        )
        for field in msgspec.structs.fields(cls)
    ]


def _held_by(kind: Any) -> tuple[int, Any]:
    if get_origin(kind) is Literal:
        return _CHOICE, get_args(kind)
    if kind is Cost:
        return _STRUCT, (Cost, _shape_of(Cost, unsearched=Cost.__struct_fields__))
    plain: dict[Any, int] = {
        **{str: _TEXT, bool: _FLAG, int: _NUMBER, Amount: _NUMBER, dict[str, Any]: _OBJECT},
        **{tuple[str, ...]: _TEXTS, tuple[int, ...]: _NUMBERS, list[dict[str, Any]]: _OBJECTS},
    }
    return plain.get(kind, _DEFAULT), None


encode_plain: Callable[[list[Event]], Sequence[EncodedEvent | None]] | None = None if core is None else _encode_natively
"""For each event the result of `check_event` and `encode_event`, or None where those must be called."""
encode_clean: Callable[[list[Event], Any], list[EncodedEvent] | None] | None = (
    None if core is None else _encode_clean_natively
)
"""The same for events without a sign of a secret, in one walk over them. None when one has a sign, or is not plain."""


def _legal_values(event: Event, problem: str) -> str:
    """The allowed values of the field that an error is about, if it has a closed list of them."""
    for field in msgspec.structs.fields(event):
        if problem.endswith(f"`$.{field.name}`") and get_origin(field.type) is Literal:
            return f"{field.name} is one of {', '.join(map(str, get_args(field.type)))}"
    return ""


def kind_of(event: Event) -> str:
    return event.foreign_kind if type(event) is Foreign else event.kind


def decode_event(kind: str, body: bytes) -> Event:
    """The typed event of a body; `Foreign` with the whole body when the kind is unknown or the body does not fit it."""
    if kind in KINDS:
        try:
            return _decoders[kind](body)
        except msgspec.DecodeError:
            pass
        except RecursionError as exc:
            raise CorruptLogError(f"a stored body is not readable: {exc}") from exc
    return Foreign(foreign_kind=kind, data=decode_body(body))


def decode_body(body: bytes) -> dict[str, Value]:
    try:
        return _decode_body(body) if body else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        _refuse_encrypted(body)
        raise CorruptLogError(f"a stored body is not readable: {exc}") from exc


def decode_delta(body: bytes) -> Delta:
    """The delta in a body; empty when the event changed nothing or its body was pruned."""
    if not body:
        return []
    try:
        return _decode_delta(body).delta
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        _refuse_encrypted(body)
        raise CorruptLogError(f"a stored delta is not readable: {exc}") from exc


def _refuse_encrypted(body: bytes) -> None:
    """Bytes that are not JSON may be encrypted rather than damaged: then the error says so."""
    if is_encrypted(body):
        raise refusal(body) from None


def is_intact(record: Record) -> bool:
    return bool(record.salt)
