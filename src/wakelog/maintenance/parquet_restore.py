"""Reads an archive in Parquet: SQL queries, a check, and restoring sessions, each verified completely."""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import io
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from wakelog.engines.memory import MemoryEngine
from wakelog.engines.object_storage import Objects, is_url
from wakelog.errors import CorruptLogError, WakelogError
from wakelog.index.results import Table
from wakelog.log.bundle import import_bundle
from wakelog.maintenance.archive import ArchiveResult, Progress, bundle_key, restore_each
from wakelog.maintenance.parquet_runs import (
    RUNS,
    ArchivedFile,
    ArchivedSession,
    archive_differs,
    archived_sessions,
    no_archive,
    read_runs,
)
from wakelog.maintenance.parquet_tables import Tables
from wakelog.store import Store


class ArchiveCheck(msgspec.Struct, frozen=True):
    """The result of checking an archive."""

    sessions: int
    events: int
    problems: dict[str, str]
    bundles: int = 0
    """How many of its bundles verify."""


class OpenArchive(NamedTuple):
    """An archive that is being read."""

    tables: Tables
    run: str
    sessions: tuple[ArchivedSession, ...]
    objects: Objects


@contextlib.contextmanager
def open_archive(place: str, *, compares: bool = True, lost: dict[str, str] | None = None) -> Iterator[OpenArchive]:
    """Opens the tables of an archive. Files of a blob store are fetched first. Each file is compared with its hash;
    without `compares`, local files are not. A damaged file is an error; with `lost` it is added there and left out."""
    objects = Objects(place, create=False)
    runs = read_runs(objects)
    if not runs:
        raise no_archive(place)
    entries = archived_sessions(runs)
    here = Path(unquote(place.removeprefix("file://"))) if not is_url(place) or place.startswith("file://") else None
    files: dict[str, list[Path]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for file in (file for run in runs for file in run.files):
            path = (here or Path(folder)) / file.key
            try:
                if here is None:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    _fetch(objects, file, path)
                elif compares or not path.is_file():
                    _compare(file, path)
            except CorruptLogError as exc:
                if lost is None or not any(entry.bundle for entry in entries.values()):
                    raise
                lost[file.key] = exc.message
                continue
            files.setdefault(file.key.partition("/")[0], []).append(path)
        sessions = [(str(s.session), s.name, s.seq, s.hash, s.status, s.since) for s in entries.values()]
        with contextlib.closing(Tables(files, sessions, as_of=runs[-1].run)) as tables:
            yield OpenArchive(tables, runs[-1].run, tuple(entries.values()), objects)


def _compare(file: ArchivedFile, path: Path) -> None:
    try:
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as exc:
        raise archive_differs(f"{file.key} cannot be read: {exc.strerror}") from exc
    if digest != file.sha256:
        raise archive_differs(f"{file.key} is not what was written")


def _fetch(objects: Objects, file: ArchivedFile, path: Path) -> None:
    try:
        with path.open("wb") as out:
            for chunk in objects.chunks(file.key):
                out.write(chunk)
    except FileNotFoundError as exc:
        raise archive_differs(f"{file.key} is not in the archive") from exc
    _compare(file, path)


def query_parquet(place: str, sql: str, *, max_rows: int = 1000, timeout_s: float = 30.0) -> Table:
    """Answers one SELECT over the tables sessions, events, commits and payloads of an archive."""
    with open_archive(place, compares=False) as archive:
        return archive.tables.query(sql, max_rows=max_rows, timeout_s=timeout_s)


def bundle_of(tables: Tables, entry: ArchivedSession) -> io.BytesIO:
    """Rebuilds a session's bundle from its rows and those of its ancestors."""
    names = [segment["session"] for segment in msgspec.json.decode(entry.first)["segments"]]
    marks = ", ".join("?" for _ in names)
    records: dict[tuple[str, int], list[Any]] = {}
    for session, seq, *record in tables.rows(
        f"select session, seq, header, salt, body from events where session in ({marks})", *names
    ):
        records[session, seq] = record
    payloads: dict[tuple[str, int], dict[str, str]] = {}
    for session, first, digest, content in tables.rows(
        f"select session, first, hash, base64(content) from payloads where session in ({marks})", *names
    ):
        payloads.setdefault((session, first), {})[digest] = content
    lines = {
        (session, first): msgspec.json.decode(line)
        for session, first, line in tables.rows(
            f"select session, first, line from commits where session in ({marks})", *names
        )
    }
    out, digest_of_lines, count = io.BytesIO(), hashlib.sha256(), 0
    segments = {s["session"]: s for s in msgspec.json.decode(entry.first)["segments"]}
    for line in (entry.first.encode(), *_commit_lines(lines, records, payloads, names, segments, entry)):
        digest_of_lines.update(line)
        out.write(line)
        count += 1
    out.write(msgspec.json.encode({"end": count, "sha256": digest_of_lines.hexdigest()}) + b"\n")
    out.seek(0)
    return out


def _commit_lines(
    lines: dict[tuple[str, int], dict[str, Any]],
    records: dict[tuple[str, int], list[Any]],
    payloads: dict[tuple[str, int], dict[str, str]],
    names: list[str],
    segments: dict[str, dict[str, Any]],
    entry: ArchivedSession,
) -> Iterator[bytes]:
    """Yields the lines in the order of a bundle: the oldest ancestor first, each up to its fork point."""
    for place, name in enumerate(names):
        upto = entry.seq if name == entry.session else segments[names[place + 1]]["fork"]["at"]
        for session, first in sorted(key for key in lines if key[0] == name):
            commit = lines[session, first]
            if first > upto:
                break
            try:
                commit["records"] = [records[session, seq] for seq in range(first, commit["last"] + 1)]
            except KeyError as exc:
                raise CorruptLogError(f"e{exc.args[0][1]} of {session} is not in the archive") from exc
            if (session, first) in payloads:
                commit["payloads"] = payloads[session, first]
            yield msgspec.json.encode(commit) + b"\n"


def restore_parquet(store: Store, place: str, progress: Progress | None = None) -> ArchiveResult:
    """Restores what the store lacks. Each session is verified completely before it is written."""
    lost: dict[str, str] = {}
    with open_archive(place, lost=lost) as archive:
        restore_one = functools.partial(_restore, store, archive)
        result = restore_each(store, f"{RUNS}{archive.run}.json", archive.sessions, restore_one, progress)
    return msgspec.structs.replace(result, damaged_files=tuple(lost.values()))


def _restore(store: Store, archive: OpenArchive, entry: ArchivedSession) -> None:
    """Restores a session from the tables, or else from its bundle."""
    try:
        import_bundle(store.engine, bundle_of(archive.tables, entry))
    except CorruptLogError as exc:
        if not entry.bundle:
            raise
        try:
            import_bundle(store.engine, _read_bundle(archive, entry))
        except CorruptLogError as damage:
            raise CorruptLogError(f"{exc.message}; and {damage.message}") from exc


def _read_bundle(archive: OpenArchive, entry: ArchivedSession) -> io.BytesIO:
    try:
        return io.BytesIO(gzip.decompress(archive.objects.get(entry.bundle)))
    except (FileNotFoundError, OSError, EOFError, zlib.error) as exc:
        raise archive_differs(f"its bundle cannot be read: {exc}") from exc


def check_parquet(place: str) -> ArchiveCheck:
    """Reads and verifies every session of an archive, and its bundle if it has one. Nothing is written."""
    problems: dict[str, str] = {}
    events = bundles = 0
    with open_archive(place) as archive:
        for entry in archive.sessions:
            try:
                engine = MemoryEngine()
                log = import_bundle(engine, bundle_of(archive.tables, entry))
                head = log.head()
                if head.hash.hex() != entry.hash:
                    raise CorruptLogError(f"its head is {head.seq} {head.hash.hex()[:16]}, not what was archived")
                if entry.bundle:
                    bundled = import_bundle(MemoryEngine(), _read_bundle(archive, entry)).head()
                    if bundle_key(entry.session, bundled.seq, bundled.hash.hex()) != entry.bundle:
                        raise CorruptLogError(f"its bundle ends at {bundled.seq} {bundled.hash.hex()[:16]}")
                    bundles += 1
                events += head.seq - (head.fork.at if head.fork else 0)
            except WakelogError as exc:
                problems[entry.name or entry.session] = exc.message
        return ArchiveCheck(len(archive.sessions), events, problems, bundles)
