"""Transcript files: read as they are on disk, plain or compressed, whole or line by line.

Nothing here writes, locks or changes a time of access: the files belong to other programs, which may be writing them. A
last line without its end may be half written; it is kept as it is, and read again when it is whole.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from wakelog.errors import InvalidInputError, NotFoundError, UnsupportedError
from wakelog.model.values import INT_MAX, Value

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

    @property
    def text(self) -> Value:
        """A broken line as it is stored: text, or bytes where it is none."""
        try:
            return self.raw.decode()
        except UnicodeDecodeError:
            return self.raw


def json_lines(path: Path) -> Iterator[JsonLine]:
    """The lines of a file, in order; empty ones are passed over."""
    number = 0
    with open_source(path) as file:
        while raw := file.readline(LINE_MAX):
            number += 1
            raw = raw.strip()
            if not raw:
                continue
            try:
                value = _decode(raw)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
                yield JsonLine(number, raw, broken=f"line {number} is not JSON: {exc}")
                continue
            if not isinstance(value, dict):
                yield JsonLine(number, raw, broken=f"line {number} is not an object")
            else:
                yield JsonLine(number, raw, value)


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


def storable(value: Any) -> Value:
    """A decoded value that the log can hold: numbers beyond what every reader reads exactly become text, and so do keys
    that the log keeps for itself."""
    if isinstance(value, dict):
        return {(f"_{k}" if k.startswith("$") else k): storable(v) for k, v in value.items()}
    if isinstance(value, list):
        return [storable(v) for v in value]
    if isinstance(value, int) and not isinstance(value, bool) and not -INT_MAX <= value <= INT_MAX:
        return str(value)
    if isinstance(value, float) and value != value:
        return str(value)
    return value
