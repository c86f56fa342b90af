"""The reading end of the spool: reads what hooks have written, record by record.

A file is first taken from the hooks: it is renamed under a lock that they respect, and does not change from then on.
It is deleted when everything in it is in the log. If a process dies in between, the file stays under its new name, and
the next process starts over: the log recognises by commit id what it already has.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from wakelog.atomic_file import atomic_file
from wakelog.hooks import spool
from wakelog.hooks.spool import TAKEN
from wakelog.model.json_fields import text_in

WAIT_S = 2.0
_CUT_FIELDS = ("session_id", "transcript_path", "cwd", "hook_event_name", "tool_name", "tool_use_id")


class SpooledRecord(msgspec.Struct, frozen=True):
    """One input of a hook, and its time."""

    at_us: int
    agent: str
    data: dict[str, Any]
    is_cut: bool = False
    """Whether the input was too long. Then `data` has only what identifies it."""
    size_bytes: int = 0
    is_held: bool = False
    """Whether it was read once, and waits for what follows it."""

    @property
    def event(self) -> str:
        return text_in(self.data, "hook_event_name") or text_in(self.data, "type")

    @property
    def origin(self) -> str:
        """The agent's own id of the session."""
        return text_in(self.data, "session_id") or text_in(self.data, "thread-id")

    @property
    def key(self) -> str:
        """Identifies this record."""
        given = json.dumps([self.at_us, self.agent, self.data], sort_keys=True)
        return hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:20]


class SpoolFile(msgspec.Struct, frozen=True):
    """A file that was taken from the hooks: its records, and how many lines are invalid."""

    path: Path
    records: tuple[SpooledRecord, ...]
    broken: int


class Gaps(msgspec.Struct, frozen=True):
    """How many records hooks could not write, and the newest of them."""

    count: int
    newest: tuple[tuple[int, str, str], ...] = ()
    """Time, agent and reason of each, newest first."""


def waiting_bytes() -> int:
    """The size of the spool."""
    total = 0
    with contextlib.suppress(OSError), os.scandir(spool.spool_folder()) as found:
        for each in found:
            with contextlib.suppress(OSError):
                total += each.stat().st_size
    return total


@contextlib.contextmanager
def spool_lock() -> Iterator[bool]:
    """Lets one process at a time read the spool. False if another one still has it after a while."""
    try:
        file = os.open(Path(spool.data_folder()) / "intake.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield False
        return
    try:
        end = time.monotonic() + WAIT_S
        while not (has := _locked(file)) and time.monotonic() < end:
            time.sleep(0.02)
        yield has
    finally:
        os.close(file)


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def take_file() -> SpoolFile | None:
    """Takes all that hooks have written, as one file. None if there is nothing. Call under `spool_lock`.

    It is one file, because it is deleted at once. If several were deleted one by one, a process that dies between two
    would leave records whose commit nobody recognises. Copies that a dying process leaves here are recognised by their
    keys.
    """
    folder = Path(spool.spool_folder())
    for path in sorted(folder.glob("*.log")):
        with contextlib.suppress(OSError):  # it stays for the next time
            _take(path)
    found = sorted(folder.glob(f"*{TAKEN}"))
    records: dict[str, SpooledRecord] = {}
    broken = 0
    for path in found:
        some, bad = read_records(path.read_bytes())
        records |= {record.key: record for record in some}
        broken += bad
    ordered = tuple(sorted(records.values(), key=lambda r: r.at_us))
    if not found:
        return None
    if len(found) == 1:
        return SpoolFile(found[0], ordered, broken)
    merged = SpoolFile(folder / f"all-{time.time_ns():x}{TAKEN}", ordered, broken)
    _write(merged.path, ordered)
    for path in found:
        path.unlink()
    return merged


def _take(path: Path) -> None:
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)  # hooks hold it while they write one line
        path.rename(path.with_name(f"{path.stem}-{time.time_ns():x}{TAKEN}"))
    finally:
        os.close(file)


def keep_only(file: SpoolFile, left: list[SpooledRecord]) -> None:
    """Deletes a file, or leaves only the records that must wait."""
    if {id(each) for each in left} == {id(each) for each in file.records}:
        return
    if left:
        _write(file.path, left)
    else:
        file.path.unlink()


def _write(path: Path, records: Iterable[SpooledRecord]) -> None:
    with atomic_file(path) as out:
        for record in records:
            text = json.dumps(record.data).encode()
            flags = "cut" if record.is_cut else "held" if record.is_held else "-"
            out.write(spool.frame(record.agent, text, flags, at_us=record.at_us))


def read_records(content: bytes) -> tuple[list[SpooledRecord], int]:
    """The records of a spool file, and how many lines are incomplete or not a JSON object."""
    found: list[SpooledRecord] = []
    broken = 0
    for line in content.split(b"\n"):
        if not line.strip(b"\0 "):
            continue
        record = _record(line)
        if record is None:
            broken += 1
        else:
            found.append(record)
    return found, broken


def _record(line: bytes) -> SpooledRecord | None:
    parts = line.split(b" ", 6)
    if len(parts) != 7 or parts[0] != spool.VERSION:
        return None
    try:
        at_us, agent, flags, size, crc = int(parts[1]), parts[2].decode(), parts[3], int(parts[4]), int(parts[5], 16)
    except ValueError:
        return None
    text = parts[6]
    if len(text) != size or zlib.crc32(text) != crc:
        return None
    is_cut = flags == b"cut"
    try:
        data = json.loads(text, parse_constant=str)
        if b"\\ud" in text.lower():  # halves of surrogate pairs, which cannot be stored
            data = json.loads(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        data = _fields(text) if is_cut else None
    return (
        SpooledRecord(at_us, agent, data, is_cut, size, flags == b"held") if isinstance(data, dict) and data else None
    )


def _fields(text: bytes) -> dict[str, Any]:
    """The identifying fields of a truncated input: agents write them first."""
    out = {}
    for name in _CUT_FIELDS:
        found = re.search(rb'"%s"\s*:\s*("(?:[^"\\]|\\.)*")' % name.encode(), text)
        if found:
            with contextlib.suppress(ValueError):
                out[name] = json.loads(found[1])
    return out


# What doctor asks


def last_seen_us(agent: str) -> int:
    """When a hook of the agent last wrote a record. 0 for never."""
    with contextlib.suppress(OSError):
        return (Path(spool.data_folder()) / f"seen-{agent}").stat().st_mtime_ns // 1000
    return 0


def read_gaps() -> Gaps:
    try:
        content = Path(spool.gaps_file()).read_bytes()
        count = int(content[: spool.GAP_SLOT].strip() or b"0")
    except (OSError, ValueError):
        return Gaps(0)
    newest = []
    for line in content[spool.GAP_SLOT :].decode("ascii", "replace").splitlines():
        at, _, rest = line.strip().partition(" ")
        agent, _, why = rest.partition(" ")
        if at.isdigit():
            newest.append((int(at), agent, why))
    return Gaps(count, tuple(sorted(newest, reverse=True)))
