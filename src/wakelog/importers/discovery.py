"""Finds the transcripts on this machine. Reads only."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from wakelog.errors import UnsupportedError, WakelogError
from wakelog.importers.formats import all_formats, detect_format
from wakelog.importers.source.files import own_home

HIDDEN = frozenset({".aider.chat.history.md"})
"""Hidden files that may be transcripts. All others are skipped."""


USUAL = frozenset({".jsonl", ".json", ".gz", ".zst"})
"""A file with such a name that cannot be read may be a transcript, so it is not skipped in silence."""


class FoundTranscript(msgspec.Struct, frozen=True):
    format: str
    """Empty if the file cannot be read."""
    path: Path
    size: int
    changed: int
    """Last modification, in microseconds."""


def find_transcripts(at: Path | None = None, *, since: int = 0, formats: Collection[str] = ()) -> list[FoundTranscript]:
    """The transcripts of every known program in a home folder, or of those with these `formats`, oldest first, without
    those older than `since`."""
    at = at or own_home()
    results = []
    for each in all_formats():
        if formats and each.NAME not in formats:
            continue
        for path in each.find_in_home(at):
            if (one := _found(each.NAME, path)) is not None and one.changed >= since:
                results.append(one)
    return sorted(results, key=lambda f: (f.changed, str(f.path)))


def formats_of(program: str) -> list[str]:
    """The formats of a program, by the name that people give it: `claude`, `claude-code`, `codex`, `gemini` …"""
    named = program.lower()
    return [
        each.NAME
        for each in all_formats()
        for name in (each.NAME, each.TITLE.lower().replace(" ", "-"))
        if name == named or name.startswith(f"{named}-")
    ]


def find_in_folder(folder: Path, *, since: int = 0) -> Iterator[FoundTranscript]:
    """The transcripts in a folder and its subfolders."""
    for path in sorted(folder.rglob("*")):
        if (path.name.startswith(".") and path.name not in HIDDEN) or not path.is_file():
            continue
        try:
            format = detect_format(path).NAME
        except WakelogError as exc:
            if isinstance(exc, UnsupportedError) or path.suffix not in USUAL:
                continue
            format = ""
        if (one := _found(format, path)) is not None and one.changed >= since:
            yield one


def _found(format: str, path: Path) -> FoundTranscript | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    size, changed = stat.st_size, stat.st_mtime_ns
    # A running program's database grows in its write-ahead log first.
    with contextlib.suppress(OSError):
        wal = path.with_name(f"{path.name}-wal").stat()
        size, changed = size + wal.st_size, max(changed, wal.st_mtime_ns)
    return FoundTranscript(format, path, size, changed // 1000) if size else None
