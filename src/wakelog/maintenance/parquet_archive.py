"""An archive in Parquet: every event a row, for queries over years, and whole enough to bring sessions back.

A run adds files with the commits that the archive lacks, and ends with a list of them, `runs/RUN.json`, which is put
last: files that no list names do not count. Nothing is ever replaced. A row holds a record's bytes as they are stored,
and a commit its line of a bundle, so that a session's bundle can be made again and verified like any other.

Before the list is put, what was written is read back and compared. Where a session's past has changed since the last
run (something was erased or pruned), the session is written whole again, and its older rows no longer count. They stay
in the older files: erasing there means to remove those files, as it does for backups.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import io
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

import msgspec

from wakelog.engine import head_or_none
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.objects import Objects, is_url
from wakelog.errors import CorruptLogError, NotAllowedError, NotFoundError, WakelogError
from wakelog.index.results import Table
from wakelog.log import Log
from wakelog.log.bundle import export_bundle, import_bundle
from wakelog.log.verify import verify
from wakelog.maintenance.archive import ArchiveResult, Progress
from wakelog.maintenance.parquet_tables import RowFiles, Tables
from wakelog.model.ids import SessionId
from wakelog.model.json_fields import as_dict, text_in
from wakelog.model.records import Head

if TYPE_CHECKING:
    from wakelog.store import Store

RUNS = "runs/"
NO_PROJECT = "none"
_COMPARED = {
    "events": "session, seq, header, salt, body",
    "commits": "session, first, line",
    "payloads": "session, first, hash, base64(content)",
}


class ArchivedFile(msgspec.Struct, frozen=True):
    key: str
    size: int
    sha256: str


class ArchivedSession(msgspec.Struct, frozen=True):
    """A session as far as the archive has it."""

    session: SessionId
    name: str
    seq: int
    hash: str
    status: str
    since: str
    """The run from which on its rows count."""
    first: str
    """The first line of its bundle, which names its ancestry."""
    digest: str
    """Over its own records so far: when they are no longer these, it is written again."""


class ArchiveRun(msgspec.Struct, frozen=True):
    """The list of one run: the files it added, and all sessions that the archive has now."""

    wakelog: int
    run: str
    files: tuple[ArchivedFile, ...]
    sessions: tuple[ArchivedSession, ...]


class ArchiveCheck(msgspec.Struct, frozen=True):
    """What came of reading an archive back."""

    sessions: int
    events: int
    problems: dict[str, str]


def archive_parquet(
    store: Store,
    place: str,
    sessions: Iterable[SessionId] = (),
    progress: Progress | None = None,
    *,
    decrypt: bool = False,
) -> ArchiveResult:
    """Adds what the archive lacks: of these sessions, by default of all. Rows are in the clear: of an encrypted store
    they are written only with `decrypt`."""
    if store.engine.abilities.encryption is not None and not decrypt:
        raise NotAllowedError(
            "the store is encrypted, and an archive in Parquet is not",
            kind="store-encrypted",
            hint="add --decrypt if that is meant; wakelog store backup s3://… keeps it encrypted",
        )
    objects = Objects(place)
    runs = _runs(objects)
    had = {entry.session: entry for entry in runs[-1].sessions} if runs else {}
    run = _run_name(store.clock(), runs)
    wanted = frozenset(sessions)
    problems: dict[SessionId, str] = {}
    unchanged, is_damaged, now = 0, False, dict(had)
    with tempfile.TemporaryDirectory() as folder:
        work = _Run(Path(folder), run, had)
        try:
            for head in store.sessions():
                if wanted and head.session not in wanted:
                    continue
                before = had.get(head.session)
                if before is not None and (before.seq, before.hash) == (head.seq, head.hash.hex()):
                    unchanged += 1
                    continue
                try:
                    now[head.session] = work.take(Log(store.engine, head.session, clock=store.clock), head)
                except (CorruptLogError, NotFoundError) as exc:
                    problems[head.session] = exc.message
                    is_damaged = is_damaged or isinstance(exc, CorruptLogError)
                if progress is not None:
                    progress(head.seq)
            if not work.taken:
                return ArchiveResult(f"{RUNS}{runs[-1].run}.json" if runs else "", 0, unchanged, problems, is_damaged)
            files = work.put(objects)
        finally:
            work.rows.close()
    objects.put(f"{RUNS}{run}.json", msgspec.json.encode(ArchiveRun(1, run, files, tuple(now.values()))))
    return ArchiveResult(f"{RUNS}{run}.json", work.taken, unchanged, problems, is_damaged)


class _Run:
    """What one run gathers."""

    def __init__(self, folder: Path, run: str, had: dict[SessionId, ArchivedSession]) -> None:
        self._folder, self._run, self._had = folder, run, had
        self.rows = RowFiles(folder)
        self.taken = 0
        self._covered = {id: entry.seq for id, entry in had.items()}
        """How far each session is in the archive, or will be."""
        self._sum = _RowSum()

    def take(self, log: Log, head: Head) -> ArchivedSession:
        report = verify(log)
        if not report.ok:
            fault = (*report.integrity, *report.completeness)[0]
            raise CorruptLogError(f"{log.id} does not verify: {fault.what}", seq=fault.seq)
        with tempfile.TemporaryFile(dir=self._folder) as spool:
            head = export_bundle(log, cast(Any, spool), beyond=True)
            before = self._had.get(log.id)
            digest, is_same = _digest_of(spool, log.id, before)
            since = before.since if before is not None and is_same else self._run
            if before is not None and not is_same:
                self._covered[log.id] = 0
            spool.seek(0)
            first = spool.readline().decode()
            project = Path(str(log.part("labels").get("project") or "")).name or NO_PROJECT
            names = {s["session"]: s.get("name", "") for s in msgspec.json.decode(first)["segments"]}
            for line in spool:
                given = msgspec.json.decode(line)
                if "end" not in given:
                    self._commit(given, names[given["session"]], project)
        self.taken += 1
        return ArchivedSession(log.id, head.name, head.seq, head.hash.hex(), head.status, since, first, digest)

    def _commit(self, given: dict[str, Any], name: str, project: str) -> None:
        session, first, last = given["session"], given["first"], given["last"]
        if last <= self._covered.get(session, 0):
            return
        self._covered[session] = last
        day = datetime.datetime.fromtimestamp(given["at"] / 1e6, datetime.UTC).date().isoformat()
        place = {"run": self._run, "day": day, "project": project}
        records, payloads = given.pop("records"), given.pop("payloads", {})
        for header, salt, body in records:
            row = _event(session, name, given["commit_id"], header, salt, body) | place
            self._sum.add(session, row["seq"], header, salt, body)
            self.rows.add("events", row)
        line = msgspec.json.encode(given).decode()
        self._sum.add(session, first, line)
        self.rows.add(
            "commits", {"session": session, "first": first, "last": last, "hash": given["hash"], "line": line, **place}
        )
        for digest, content in payloads.items():
            self._sum.add(session, first, digest, content)
            self.rows.add("payloads", {"session": session, "first": first, "hash": digest, "content": content, **place})

    def put(self, objects: Objects) -> tuple[ArchivedFile, ...]:
        """Writes the files, reads them back, compares, and puts them into the archive."""
        made = dict(self.rows.write_parquet(self._run))
        files: dict[str, list[Path]] = {}
        for key, path in made.items():
            files.setdefault(key.partition("/")[0], []).append(path)
        everything = [(str(id), "", 0, "", "", "") for id in self._covered]
        with contextlib.closing(Tables(files, everything)) as tables:
            found = _RowSum()
            for table, columns in _COMPARED.items():
                for row in tables.rows(f"select {columns} from {table}"):
                    found.add(*row)
        if found != self._sum:
            raise CorruptLogError("what was written as Parquet does not read back as it was", kind="archive-differs")
        out = []
        for key, path in made.items():
            content = path.read_bytes()
            objects.put(key, content)
            out.append(ArchivedFile(key, len(content), hashlib.sha256(content).hexdigest()))
        return tuple(out)


def _event(session: str, name: str, commit_id: str, header: str, salt: str, body: str) -> dict[str, Any]:
    about = msgspec.json.decode(header)
    content = as_dict(msgspec.json.decode(body)) if body else {}
    return {
        "session": session,
        "name": name,
        "seq": about["seq"],
        "recorded_at": datetime.datetime.fromtimestamp(about["at"] / 1e6, datetime.UTC).strftime(
            "%Y-%m-%d %H:%M:%S.%f"
        ),
        "kind": about["kind"],
        "turn": about.get("turn", 0),
        "attempt": about.get("attempt", 1),
        "actor": about.get("actor", ""),
        "trust": about.get("trust", "trusted"),
        "source": about.get("source", ""),
        "tool": text_in(content, "tool"),
        "commit_id": commit_id,
        "header": header,
        "salt": salt,
        "body": body,
    }


class _RowSum:
    """A sum over rows that does not depend on their order: they are written and read back in different ones."""

    def __init__(self) -> None:
        self._total = self._count = 0

    def add(self, *values: object) -> None:
        digest = hashlib.sha256("\0".join(map(str, values)).encode()).digest()
        self._total = (self._total + int.from_bytes(digest)) % (1 << 256)
        self._count += 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _RowSum) and (self._total, self._count) == (other._total, other._count)


def _digest_of(spool: Any, session: SessionId, before: ArchivedSession | None) -> tuple[str, bool]:
    """Over a session's own records: as they are now, and whether those that the archive has are still the same."""
    digest, is_same = hashlib.sha256(), before is None
    spool.seek(0)
    spool.readline()
    for line in spool:
        given = msgspec.json.decode(line)
        if given.get("session") != session:
            continue
        for header, salt, body in given["records"]:
            digest.update(f"{header}\0{salt}\0{body}\n".encode())
        if before is not None and given["last"] == before.seq:
            is_same = digest.hexdigest() == before.digest
    return digest.hexdigest(), is_same


# Reading


def _run_name(now: int, runs: list[ArchiveRun]) -> str:
    """Runs are in the order of their names, whatever the clock does."""
    while True:
        name = datetime.datetime.fromtimestamp(now / 1e6, datetime.UTC).strftime("%Y%m%dT%H%M%S%fZ")
        if not runs or name > runs[-1].run:
            return name
        now += 1_000_000


def _runs(objects: Objects) -> list[ArchiveRun]:
    found = []
    for key in sorted(each.key for each in objects.list(RUNS)):
        try:
            found.append(msgspec.json.decode(objects.get(key), type=ArchiveRun))
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise CorruptLogError(f"{key} is not the list of a run: {exc}", kind="archive-differs") from exc
    return found


def is_parquet(place: str) -> bool:
    """Whether a place holds an archive in Parquet."""
    return any(True for _ in Objects(place, create=False).list(RUNS))


@contextlib.contextmanager
def opened(place: str, *, compares: bool = True) -> Iterator[tuple[Tables, ArchiveRun]]:
    """The tables of an archive. Files of a blob store are fetched first. Each file is compared with its hash, unless it
    is at hand and nobody `compares`."""
    objects = Objects(place, create=False)
    runs = _runs(objects)
    if not runs:
        raise NotFoundError(
            f"{place} holds no archive in Parquet",
            kind="archive-not-found",
            hint="wakelog archive --to PLACE --format parquet makes one",
        )
    here = Path(unquote(place.removeprefix("file://"))) if not is_url(place) or place.startswith("file://") else None
    files: dict[str, list[Path]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for file in (file for run in runs for file in run.files):
            path = (here or Path(folder)) / file.key
            if here is None:
                path.parent.mkdir(parents=True, exist_ok=True)
                _fetch(objects, file, path)
            elif compares or not path.is_file():
                _compare(file, path)
            files.setdefault(file.key.partition("/")[0], []).append(path)
        sessions = [(str(s.session), s.name, s.seq, s.hash, s.status, s.since) for s in runs[-1].sessions]
        with contextlib.closing(Tables(files, sessions, as_of=runs[-1].run)) as tables:
            yield tables, runs[-1]


def _compare(file: ArchivedFile, path: Path) -> None:
    try:
        with path.open("rb") as given:
            digest = hashlib.file_digest(given, "sha256").hexdigest()
    except OSError as exc:
        raise CorruptLogError(f"{file.key} cannot be read: {exc.strerror}", kind="archive-differs") from exc
    if digest != file.sha256:
        raise CorruptLogError(f"{file.key} is not what was written", kind="archive-differs")


def _fetch(objects: Objects, file: ArchivedFile, path: Path) -> None:
    try:
        with path.open("wb") as out:
            for chunk in objects.chunks(file.key):
                out.write(chunk)
    except FileNotFoundError as exc:
        raise CorruptLogError(f"{file.key} is not in the archive", kind="archive-differs") from exc
    _compare(file, path)


def query_parquet(place: str, sql: str, *, max_rows: int = 1000, timeout_s: float = 30.0) -> Table:
    """Answers one SELECT over the tables sessions, events, commits and payloads of an archive."""
    with opened(place, compares=False) as (tables, _):
        return tables.query(sql, max_rows=max_rows, timeout_s=timeout_s)


def bundle_of(tables: Tables, entry: ArchivedSession) -> io.BytesIO:
    """A session's bundle, made from its rows and those of its ancestors."""
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
    """In the order of a bundle: the oldest ancestor first, and of each what the next one was forked from."""
    for place, name in enumerate(names):
        upto = entry.seq if name == entry.session else segments[names[place + 1]]["fork"]["at"]
        for session, first in sorted(key for key in lines if key[0] == name):
            given = lines[session, first]
            if first > upto:
                break
            try:
                given["records"] = [records[session, seq] for seq in range(first, given["last"] + 1)]
            except KeyError as exc:
                raise CorruptLogError(f"e{exc.args[0][1]} of {session} is not in the archive") from exc
            if (session, first) in payloads:
                given["payloads"] = payloads[session, first]
            yield msgspec.json.encode(given) + b"\n"


def restore_parquet(store: Store, place: str, progress: Progress | None = None) -> ArchiveResult:
    """Brings back what the archive has and the store lacks. Each session is verified whole before it is written."""
    problems: dict[SessionId, str] = {}
    count = unchanged = 0
    is_damaged = False
    with opened(place) as (tables, run):
        for entry in run.sessions:
            have = head_or_none(store.engine, entry.session)
            if have is not None and have.seq == entry.seq and have.hash.hex() == entry.hash:
                unchanged += 1
                continue
            try:
                import_bundle(store.engine, bundle_of(tables, entry))
                after = head_or_none(store.engine, entry.session)
                is_same = have is not None and after is not None and have.seq == after.seq
                count, unchanged = count + (not is_same), unchanged + is_same
            except WakelogError as exc:
                problems[entry.session] = exc.message
                is_damaged = is_damaged or isinstance(exc, CorruptLogError)
            if progress is not None:
                progress(entry.seq)
    return ArchiveResult(f"{RUNS}{run.run}.json", count, unchanged, problems, is_damaged)


def check_parquet(place: str) -> ArchiveCheck:
    """Reads every session of an archive back and verifies it; nothing is written."""
    problems: dict[str, str] = {}
    events = 0
    with opened(place) as (tables, run):
        for entry in run.sessions:
            try:
                engine = MemoryEngine()
                log = import_bundle(engine, bundle_of(tables, entry))
                head = log.head()
                if head.hash.hex() != entry.hash:
                    raise CorruptLogError(f"its head is {head.seq} {head.hash.hex()[:16]}, not what was archived")
                events += head.seq - (head.fork.at if head.fork else 0)
            except WakelogError as exc:
                problems[entry.name or entry.session] = exc.message
        return ArchiveCheck(len(run.sessions), events, problems)
