"""Transcript files: read as they are on disk, plain or compressed, whole or line by line.

Nothing here writes, locks or changes a time of access: the files belong to other programs, which may be writing them. A
last line without its end may be half written; it is kept as it is, and read again when it is whole.
"""

from __future__ import annotations

import base64
import codecs
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from wakelog.errors import InvalidInputError, NotFoundError, UnsupportedError
from wakelog.importers.source.compressed_files import uncompressed
from wakelog.importers.steps import SourceRecord
from wakelog.model.values import DEPTH_MAX, INT_MAX, RESERVED_KEYS, Value

SAMPLE = 256 << 10
"""So many bytes are looked at to tell a format."""
DOCUMENT_MAX = 1 << 30
"""A file that is one JSON document is read whole; a larger one is refused."""
LINE_MAX = 256 << 20
NESTED_MAX = DEPTH_MAX - 16
"""What lies deeper in a record is kept as text: the events that hold it have levels of their own."""

USER_DATA = (".config", "Library/Application Support", "AppData/Roaming")
"""Where programs with windows keep their data, below the home folder."""

_decode = msgspec.json.Decoder().decode
_DIGITS = bytes.maketrans(b"123456789E", b"000000000e")
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_LONE = re.compile("[\ud800-\udfff]")


def decode_json(raw: bytes | str) -> Any:
    """JSON as the log can hold it; ValueError for what is none. Half a surrogate pair, which programs leave where they
    cut a text, becomes the sign for an unknown character."""
    data = raw.encode(errors="surrogatepass") if isinstance(raw, str) else raw
    try:
        value = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        if not _HALF.search(data):
            raise ValueError(str(exc)) from exc
        try:
            value = json.loads(data)
        except RecursionError as deep:
            raise ValueError(str(deep)) from deep
        return storable(value)
    return storable(value) if _may_be_odd(data) else value


def _may_be_odd(data: bytes) -> bool:
    """Whether a record may hold what the log cannot: told fast, since hardly any does."""
    if b'"$' in data or data.count(b"[") + data.count(b"{") > NESTED_MAX:
        return True
    zeros = data.translate(_DIGITS)
    return b"0" * 16 in zeros or b"0e+0" in zeros or b"0e00" in zeros


class Sample(msgspec.Struct, frozen=True):
    """What tells a format: a file's name and beginning, and what can be decoded of it."""

    path: Path
    start: bytes
    lines: tuple[Any, ...]
    """The JSON objects that the first lines are, if it is a file of JSON lines."""

    def has(self, *words: bytes) -> bool:
        """Whether all of these bytes are in the file's beginning."""
        return all(word in self.start for word in words)


def read_sample(path: Path) -> Sample:
    with open_source(path) as file:
        start = file.read(SAMPLE).removeprefix(codecs.BOM_UTF8)
    lines = []
    for raw in start.splitlines()[:40]:
        try:
            lines.append(decode_json(raw))
        except ValueError:
            continue
    return Sample(path, start, tuple(lines))


def home_files(*patterns: str) -> Callable[[Path], Iterator[Path]]:
    """Finds files in a home folder by patterns; without any, none: a program may put its files where it likes."""

    def find_in_home(home: Path) -> Iterator[Path]:
        for pattern in patterns:
            yield from sorted(path for path in home.glob(pattern) if path.is_file())

    return find_in_home


def open_source(path: Path) -> IO[bytes]:
    """A file's content, uncompressed."""
    try:
        file = path.open("rb")
    except OSError as exc:
        raise NotFoundError(f"{path} cannot be read: {exc.strerror}", kind="file-not-found") from exc
    return uncompressed(file, path)


def stat_of(path: Path) -> tuple[int, int]:
    """Size and time of change, in microseconds: a file that has both as before has not changed."""
    try:
        found = path.stat()
    except OSError as exc:
        raise NotFoundError(f"{path} cannot be read: {exc.strerror}", kind="file-not-found") from exc
    return found.st_size, found.st_mtime_ns // 1000


class JsonLine(msgspec.Struct, frozen=True, gc=False):
    """A line of a file: what it decodes to, or why it does not."""

    number: int
    raw: bytes
    value: Any = None
    broken: str = ""
    is_odd: bool = False
    """It is JSON only for a lenient reader: it holds half a surrogate pair, or a number that is none."""
    is_partial: bool = False
    """A broken last line without its end: it may still be being written."""

    @property
    def whole(self) -> Value | msgspec.Raw:
        """A line as it was, where it says nothing that became events."""
        return self.text if self.is_odd else msgspec.Raw(self.raw)

    @property
    def text(self) -> Value:
        """The line as it is stored where it cannot be stored as JSON: text, or its bytes in base64 where it is none."""
        try:
            return self.raw.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(self.raw).decode()}


def json_lines(path: Path) -> Iterator[JsonLine]:
    """The lines of a file, in order; empty ones are passed over."""
    number = 0
    with open_source(path) as file:
        while raw := file.readline(LINE_MAX):
            number += 1
            is_whole = raw.endswith(b"\n")
            raw = raw.strip()
            if not raw:
                continue
            is_odd = False
            try:
                value = _decode(raw)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
                try:
                    value, is_odd = storable(json.loads(raw)), True
                except (ValueError, RecursionError):
                    why = f"line {number} is not JSON: {exc}"
                    yield JsonLine(number, raw, broken=why, is_partial=not is_whole)
                    continue
            if not isinstance(value, dict):
                yield JsonLine(number, raw, broken=f"line {number} is not an object")
            else:
                yield JsonLine(number, raw, value, is_odd=is_odd)


def is_document(lines: Sequence[JsonLine]) -> bool:
    """Whether lines are those of one document, and not a record each."""
    first = lines[0].raw if lines else b""
    return first[:1] == b"[" or first == b"{" or not any(line.value for line in lines)


def read_document(path: Path) -> Any:
    """A file that is one JSON document."""
    with open_source(path) as file:
        data = file.read(DOCUMENT_MAX + 1)
    if len(data) > DOCUMENT_MAX:
        raise UnsupportedError(f"{path} is larger than {DOCUMENT_MAX >> 30} GB", kind="file-too-large")
    try:
        return decode_json(data.removeprefix(codecs.BOM_UTF8))
    except ValueError as exc:
        raise InvalidInputError(
            f"{path} is not JSON: {exc}", kind="bad-transcript", hint="is the file complete? it was not changed"
        ) from exc


def digest(raw: bytes, length: int = 12) -> str:
    """A short name for a record that has none: the same bytes have the same one."""
    return hashlib.sha256(raw).hexdigest()[:length]


def line_records(
    lines: Iterable[JsonLine], ids: RecordIds, read: Callable[[JsonLine], SourceRecord]
) -> Iterator[tuple[SourceRecord, int]]:
    """The record of each line, with its size. One that cannot be read, or not yet, since the last one may be half
    written, is kept as it is: nothing of a file is lost."""
    for line in lines:
        if line.broken:
            id = ids.unique(digest(line.raw))
            record = SourceRecord(id, rest=line.text, broken=line.broken, is_partial=line.is_partial)
        else:
            record = read(line)
        yield record, len(line.raw)


class RecordIds:
    """Ids that are unique in a file: one that comes again is numbered."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def unique(self, id: str) -> str:
        count = self._seen[id] = self._seen.get(id, 0) + 1
        return id if count == 1 else f"{id}#{count}"


def storable(value: Any, depth: int = 0) -> Value:
    """A decoded value that the log can hold: numbers beyond what every reader reads exactly become text, and so does
    what is nested too deep; keys that the log keeps for itself are marked."""
    if isinstance(value, dict | list | tuple) and depth >= NESTED_MAX:
        return _text(json.dumps(value))
    if isinstance(value, dict):
        return {_text(f"_{k}" if k in RESERVED_KEYS else k): storable(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [storable(v, depth + 1) for v in value]
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return value if -INT_MAX <= value <= INT_MAX else str(value)


def _text(value: str) -> str:
    return value if value.isascii() else _LONE.sub("\ufffd", value)
