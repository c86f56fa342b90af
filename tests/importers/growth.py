"""A transcript that is imported again and again while it grows, and what must then be true."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.importers.seen import Seen
from wakelog.importers import transcript_import
from wakelog.importers.transcript_import import import_transcript
from wakelog.store import Store


def seen_sessions(store: Store, path: Path, format: str = "") -> list[Seen]:
    report = import_transcript(store, path, format=format)
    return [Seen(store.resume(s.name)) for s in report.sessions]


def seen_once(path: Path, format: str = "") -> Seen:
    """A transcript of one session, imported whole into a store of its own."""
    (seen,) = seen_sessions(wakelog.open("memory:"), path, format)
    return seen


def check_growth(versions: Iterable[bytes], path: Path, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every version of the file in turn, into one store: what is seen is as if the last one alone was imported."""
    # The sample's times are long ago. A program that is still writing is neither quiet nor gone.
    monkeypatch.setattr(transcript_import, "COLD_US", 1 << 62)
    monkeypatch.setattr(transcript_import, "QUIET_US", 1 << 62)
    monkeypatch.setenv("WAKELOG_IMPORT_IDLE", "forever")
    store = wakelog.open("memory:")
    for version in versions:
        path.write_bytes(version)
        grown = seen_sessions(store, path, format)
    whole = seen_sessions(wakelog.open("memory:"), path, format)
    assert [s.comparable() for s in grown] == [s.comparable() for s in whole]
    assert import_transcript(store, path, format=format).new_records == 0


def prefixes(lines: list[dict[str, Any]]) -> list[bytes]:
    """A file of lines after each of its lines was written."""
    raw = [json.dumps(line).encode() + b"\n" for line in lines]
    return [b"".join(raw[:n]) for n in range(1, len(raw) + 1)]
