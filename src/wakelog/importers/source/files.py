"""Reads transcript files, plain or compressed, whole or line by line.

Nothing here writes, locks or changes an access time: the files belong to other programs, which may be writing to them.
A last line without a line break may be incomplete. It is kept as it is, and read again once it is complete.
"""

from __future__ import annotations

import base64
import codecs
import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from wakelog.errors import InvalidInputError, NotFoundError, UnsupportedError, WakelogError
from wakelog.importers.source.compressed_files import decompress
from wakelog.importers.steps import SourceRecord
from wakelog.model.json_fields import as_dict, dicts_in
from wakelog.model.values import DEPTH_MAX, INT_MAX, RESERVED_KEYS, Value

SAMPLE = 256 << 10
"""How many bytes are read to detect a format,"""
SAMPLE_LINE = 32 << 20
"""and how many if the first line is longer: a prompt with pictures is megabytes in one line."""
DOCUMENT_MAX = 1 << 30
"""A single JSON document is read into memory as a whole. A larger file is refused."""
LINE_MAX = 256 << 20
NESTED_MAX = DEPTH_MAX - 16
"""Values nested deeper than this are stored as text: the events around them add levels too."""

USER_DATA = (".config", "Library/Application Support", "AppData/Roaming")
"""Where desktop programs keep their data, relative to the home folder."""

_decode = msgspec.json.Decoder().decode
_DIGITS = bytes.maketrans(b"123456789E", b"000000000e")
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_LONE = re.compile("[\ud800-\udfff]")


def decode_json(raw: bytes | str) -> Any:
    """Decodes JSON into values that the log can store. Raises ValueError for anything else. Half a surrogate pair,
    which programs leave where they truncate a text, becomes U+FFFD."""
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
    """A quick check whether a record may contain values that the log cannot store. Hardly any does."""
    if b'"$' in data or data.count(b"[") + data.count(b"{") > NESTED_MAX:
        return True
    zeros = data.translate(_DIGITS)
    return b"0" * 16 in zeros or b"0e+0" in zeros or b"0e00" in zeros


class Sample(msgspec.Struct, frozen=True):
    """What a format is detected by: a file's name, its beginning, and the JSON objects in its first lines."""

    path: Path
    start: bytes
    lines: tuple[dict[str, Any], ...]
    """The JSON objects among the first lines."""

    @property
    def first(self) -> bytes:
        """The first character that is not blank."""
        return self.start.lstrip()[:1]

    def has(self, *words: bytes) -> bool:
        """Whether the beginning of the file contains all of these."""
        return all(word in self.start for word in words)


def read_sample(path: Path) -> Sample:
    with open_source(path) as file:
        start = file.read(SAMPLE).removeprefix(codecs.BOM_UTF8)
        is_cut = b"\n" not in start and start.lstrip()[:1] == b"{" and len(start) >= SAMPLE - len(codecs.BOM_UTF8)
        rest = file.readline(SAMPLE_LINE) if is_cut else b""
    lines = []
    for raw in (start + rest).splitlines()[:40]:
        with contextlib.suppress(ValueError):
            lines.append(decode_json(raw))
    return Sample(path, start, tuple(dicts_in(lines)))


def home_files(*patterns: str) -> Callable[[Path], Iterator[Path]]:
    """Returns a function that finds files in a home folder by glob patterns. Without patterns it finds none, for
    programs without a fixed location."""

    def find_in_home(home: Path) -> Iterator[Path]:
        return files_in([home], *patterns)

    return find_in_home


def files_in(folders: Iterable[Path], *patterns: str) -> Iterator[Path]:
    """The files in some folders that match a pattern, each once, also if a folder or file is a link."""
    seen: set[str] = set()
    for folder in folders:
        real, length = os.path.realpath(folder), len(str(folder))
        for pattern in patterns:
            for path in sorted(folder.glob(pattern)):
                if path.is_file():
                    place = os.path.realpath(path) if path.is_symlink() else real + str(path)[length:]
                    if place not in seen:
                        seen.add(place)
                        yield path


def moved_folders(home: Path, variable: str) -> list[Path]:
    """The folder that an environment variable names, because a user moved a program's data there. The environment is
    that of one user, and says nothing about other homes."""
    given = os.environ.get(variable, "").strip()
    return [Path(given).expanduser()] if given and home == own_home() else []


def own_home() -> Path:
    return Path(os.environ.get("HOME") or Path.home())


def open_source(path: Path) -> IO[bytes]:
    """Opens a file for reading, decompressed."""
    try:
        # Opening a named pipe waits until somebody writes to it.
        if not stat.S_ISREG(path.stat().st_mode):
            hint = "save it to a file first; a bundle can also come from stdin: wakelog import -"
            raise NotFoundError(f"{path} is not a regular file", kind="file-not-found", hint=hint)
        file = path.open("rb")
    except OSError as exc:
        raise NotFoundError(f"{path} cannot be read: {exc.strerror}", kind="file-not-found") from exc
    return decompress(file, path)


def stat_of(*paths: Path) -> tuple[int, int]:
    """The size of some files together, and the newest modification time in microseconds. If both are unchanged, so are
    the files."""
    size = changed = 0
    for path in paths:
        try:
            found = path.stat()
        except OSError as exc:
            raise NotFoundError(f"{path} cannot be read: {exc.strerror}", kind="file-not-found") from exc
        size, changed = size + found.st_size, max(changed, found.st_mtime_ns // 1000)
    return size, changed


class JsonLine(msgspec.Struct, frozen=True, gc=False):
    """A line of a file: its decoded value, or why it cannot be decoded."""

    number: int
    raw: bytes
    value: Any = None
    broken: str = ""
    is_odd: bool = False
    """Only a lenient parser accepts it: it has half a surrogate pair, or a number such as NaN."""
    is_partial: bool = False
    """A broken last line without a line break: it may still be being written."""

    @property
    def whole(self) -> Value | msgspec.Raw:
        """The whole line, for a record that produced no events."""
        return self.text if self.is_odd else msgspec.Raw(self.raw)

    @property
    def text(self) -> Value:
        """The line as text, if it cannot be stored as JSON. Bytes that are not UTF-8 are stored as base64."""
        try:
            return self.raw.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(self.raw).decode()}


def json_lines(path: Path) -> Iterator[JsonLine]:
    """The lines of a file in order, without empty ones."""
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
    """Whether these lines are one JSON document, and not one record each."""
    first = lines[0].raw if lines else b""
    return first[:1] == b"[" or first == b"{" or not any(line.value for line in lines)


def read_document(path: Path) -> Any:
    """Reads a file that is one JSON document."""
    with open_source(path) as file:
        data = file.read(DOCUMENT_MAX + 1)
    if len(data) > DOCUMENT_MAX:
        raise UnsupportedError(f"{path} is larger than {DOCUMENT_MAX >> 30} GB", kind="file-too-large")
    try:
        return decode_json(data.removeprefix(codecs.BOM_UTF8))
    except ValueError as exc:
        raise bad_transcript(f"{path} is not JSON: {exc}", "is the file complete? it was not changed") from exc


def read_object(path: Path, what: str) -> dict[str, Any]:
    """Reads a file that is one JSON object. The error for any other JSON says `what` the file is not."""
    document = read_document(path)
    if not isinstance(document, dict):
        raise bad_transcript(f"{path} is not {what}", "it is JSON, but not an object")
    return document


def read_beside(path: Path) -> dict[str, Any]:
    """The JSON object in a file beside a transcript. Empty if there is none, or if it is being rewritten just now: the
    transcript does not depend on it."""
    try:
        return as_dict(read_document(path))
    except WakelogError:
        return {}


def bad_transcript(message: str, hint: str) -> InvalidInputError:
    return InvalidInputError(message, kind="bad-transcript", hint=hint)


def digest(raw: bytes | str, length: int = 12) -> str:
    """A short content hash, as the id of a record that has none."""
    data = raw.encode(errors="replace") if isinstance(raw, str) else raw
    return hashlib.sha256(data).hexdigest()[:length]


def json_digest(value: Value, length: int = 12) -> str:
    return digest(msgspec.json.encode(value), length)


def path_digest(path: Path) -> str:
    """Identifies a transcript by its location, if nothing in it does."""
    return digest(str(path.resolve()), 8)


def line_records(
    lines: Iterable[JsonLine], ids: RecordIds, read: Callable[[JsonLine], SourceRecord]
) -> Iterator[tuple[SourceRecord, int]]:
    """Reads each line into a record, with its size. A line that cannot be read, or is not complete yet, becomes a
    record that keeps it unchanged: nothing in a file is lost."""
    for line in lines:
        if line.broken:
            id = ids.unique(digest(line.raw))
            record = SourceRecord(id, rest=line.text, broken=line.broken, is_partial=line.is_partial)
        else:
            record = read(line)
        yield record, len(line.raw)


class RecordIds:
    """Makes ids unique within a file: repeated ones are numbered."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def unique(self, id: str) -> str:
        count = self._seen[id] = self._seen.get(id, 0) + 1
        return id if count == 1 else f"{id}#{count}"


def storable(value: Any, depth: int = 0) -> Value:
    """Converts a decoded value into one that the log can store. Numbers that not every reader reads exactly and values
    that are nested too deep become text; reserved keys get a prefix."""
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
