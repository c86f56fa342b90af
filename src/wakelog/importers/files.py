"""Transcript files: read as they are on disk, plain or compressed, whole or line by line.

Nothing here writes, locks or changes a time of access: the files belong to other programs, which may be writing them. A
last line without its end may be half written; it is kept as it is, and read again when it is whole.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from wakelog.errors import InvalidInputError, NotFoundError, UnsupportedError
from wakelog.model.values import DEPTH_MAX, INT_MAX, RESERVED_KEYS, Value

SAMPLE = 256 << 10
"""So many bytes are looked at to tell a format."""
DOCUMENT_MAX = 1 << 30
"""A file that is one JSON document is read whole; a larger one is refused."""
LINE_MAX = 256 << 20

_decode = msgspec.json.Decoder().decode


class Sample(msgspec.Struct, frozen=True):
    """What tells a format: a file's name and beginning, and what can be decoded of it."""

    path: Path
    start: bytes
    lines: tuple[Any, ...]
    """The JSON objects that the first lines are, if it is a file of JSON lines."""

    def has(self, *words: bytes) -> bool:
        """Whether all of these bytes are in the file's beginning."""
        return all(word in self.start for word in words)


def sample(path: Path) -> Sample:
    with open_source(path) as file:
        start = file.read(SAMPLE)
    lines = []
    for raw in start.splitlines()[:40]:
        try:
            lines.append(_decode(raw))
        except msgspec.DecodeError:
            continue
    return Sample(path, start, tuple(lines))


def open_source(path: Path) -> IO[bytes]:
    """A file's content, uncompressed."""
    try:
        file = path.open("rb")
    except OSError as exc:
        raise NotFoundError(f"{path} cannot be read: {exc.strerror}", kind="file-not-found") from exc
    magic = file.read(4)
    file.seek(0)
    if magic[:2] == b"\x1f\x8b":
        return cast(IO[bytes], gzip.GzipFile(fileobj=file))
    if magic == b"\x28\xb5\x2f\xfd":
        import zstandard

        unpacked = zstandard.ZstdDecompressor().stream_reader(file, closefd=True)
        return io.BufferedReader(unpacked)
    return file


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
    """It is JSON only for a lenient reader: half a surrogate pair, or a number that is none."""
    is_partial: bool = False
    """A broken last line without its end: it may still be being written."""

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
                    value, is_odd = json.loads(raw), True
                except (ValueError, RecursionError):
                    why = f"line {number} is not JSON: {exc}"
                    yield JsonLine(number, raw, broken=why, is_partial=not is_whole)
                    continue
            if not isinstance(value, dict):
                yield JsonLine(number, raw, broken=f"line {number} is not an object")
            else:
                yield JsonLine(number, raw, value, is_odd=is_odd)


def document(path: Path) -> Any:
    """A file that is one JSON document."""
    with open_source(path) as file:
        data = file.read(DOCUMENT_MAX + 1)
    if len(data) > DOCUMENT_MAX:
        raise UnsupportedError(f"{path} is larger than {DOCUMENT_MAX >> 30} GB", kind="file-too-large")
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise InvalidInputError(
            f"{path} is not JSON: {exc}", kind="bad-transcript", hint="is the file whole? it was not changed"
        ) from exc


def digest(raw: bytes, length: int = 12) -> str:
    """A short name for a record that has none: the same bytes have the same one."""
    return hashlib.sha256(raw).hexdigest()[:length]


class RecordIds:
    """Ids that are unique in a file: one that comes again is numbered."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def unique(self, id: str) -> str:
        count = self._seen[id] = self._seen.get(id, 0) + 1
        return id if count == 1 else f"{id}#{count}"


def storable(value: Any, depth: int = 1) -> Any:
    """A value that the log can hold, as near to the given one as can be. Numbers beyond what every reader reads exactly
    become text, half a surrogate pair becomes a replacement character, what is nested too deep becomes its JSON, and a
    key that the log keeps for itself gets an underscore in front."""
    if isinstance(value, str):
        return value if value.isascii() else _whole_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -INT_MAX <= value <= INT_MAX else str(value)
    if isinstance(value, float):
        return value if abs(value) <= INT_MAX else str(value)  # also what is not a number
    if isinstance(value, dict | list | tuple) and depth >= DEPTH_MAX:
        return _whole_text(json.dumps(value, default=str))
    if isinstance(value, dict):
        return {_key(k): storable(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [storable(v, depth + 1) for v in value]
    return value


def _key(key: Any) -> str:
    key = _whole_text(str(key))
    return f"_{key}" if key in RESERVED_KEYS else key


def _whole_text(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
