"""An archive in Parquet: every event a row, for queries over years, and whole enough to bring sessions back.

A run adds files with the commits that the archive lacks, and ends with a list of them, `runs/RUN.json`, which is put
last: files that no list names do not count. Nothing is ever replaced. A row holds a record's bytes as they are stored,
and a commit its line of a bundle, so that a session's bundle can be made again and verified like any other.

Before the list is put, what was written is read back and compared. Where something was erased in a session since the
last run, the session is written whole again, and its older rows no longer count. They stay in the older files: erasing
there means to remove those files, as it does for backups. A session that was only pruned since stays as it was: pruning
makes room in the store, and the archive is where its content is then.

Beside the tables there can be bundles, one for each session that has ended or is quiet. The same content twice, in two
formats: where a file of the tables is damaged, a restore takes the bundle.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import msgspec

from wakelog.engine import head_or_none
from wakelog.engines.objects import Objects
from wakelog.errors import CorruptLogError, NotAllowedError, NotFoundError
from wakelog.log import Log
from wakelog.log.bundle import export_bundle
from wakelog.log.verify import verify
from wakelog.maintenance.archive import ArchiveResult, Progress, key_of, put_bundle
from wakelog.maintenance.parquet_runs import (
    RUNS,
    ArchivedFile,
    ArchivedSession,
    ArchiveRun,
    archived_sessions,
    finish_runs,
    put_run,
    read_runs,
)
from wakelog.maintenance.parquet_tables import RowFiles, Tables
from wakelog.model.ids import SessionId
from wakelog.model.json_fields import as_dict, text_in
from wakelog.model.records import Head
from wakelog.store import Store

NO_PROJECT = "none"
_COMPARED = {
    "events": "session, seq, header, salt, body",
    "commits": "session, first, line",
    "payloads": "session, first, hash, base64(content)",
}


def archive_parquet(
    store: Store,
    place: str,
    sessions: Iterable[SessionId] = (),
    progress: Progress | None = None,
    *,
    decrypt: bool = False,
    quiet_us: int | None = None,
    known: list[ArchiveRun] | None = None,
) -> ArchiveResult:
    """Adds what the archive lacks: of these sessions, by default of all. Rows are in the clear: of an encrypted store
    they are written only with `decrypt`. With `quiet_us`, sessions that have ended, or had no event for so long, are
    put beside the tables as bundles. `known` are the runs that the caller has seen; those of others are added."""
    if store.engine.abilities.encryption is not None and not decrypt:
        raise NotAllowedError(
            "the store is encrypted, and an archive in Parquet is not",
            kind="store-encrypted",
            hint="add --decrypt if that is meant; wakelog store backup s3://… keeps it encrypted",
        )
    objects = Objects(place)
    runs = read_runs(objects, known)
    finish_runs(objects, runs)
    had = archived_sessions(runs)
    run = _run_name(store.clock(), runs)
    problems: dict[SessionId, str] = {}
    unchanged, is_damaged = 0, False
    changed: dict[SessionId, ArchivedSession] = {}
    wanted = list(sessions)
    with tempfile.TemporaryDirectory() as folder:
        work = _Run(Path(folder), run, had, objects, store.clock(), quiet_us)
        try:
            for head in filter(None, (head_or_none(store.engine, id) for id in wanted)) if wanted else store.sessions():
                try:
                    entry = work.take(Log(store.engine, head.session, clock=store.clock), head)
                    if entry is None:
                        unchanged += 1
                        continue
                    changed[head.session] = entry
                except (CorruptLogError, NotFoundError) as exc:
                    problems[head.session] = exc.message
                    is_damaged = is_damaged or isinstance(exc, CorruptLogError)
                if progress is not None:
                    progress(head.seq)
            if not changed:
                return ArchiveResult(f"{RUNS}{runs[-1].run}.json" if runs else "", 0, unchanged, problems, is_damaged)
            files = work.put() if work.taken else ()
        finally:
            work.rows.close()
    done = ArchiveRun(1, run, files, tuple(changed.values()))
    put_run(objects, runs, done)
    return ArchiveResult(f"{RUNS}{run}.json", len(changed), unchanged, problems, is_damaged)


class _Run:
    """What one run gathers."""

    def __init__(
        self,
        folder: Path,
        run: str,
        had: dict[SessionId, ArchivedSession],
        objects: Objects,
        now: int,
        quiet_us: int | None,
    ) -> None:
        self._folder, self._run, self._had, self._objects = folder, run, had, objects
        self._now, self._quiet_us = now, quiet_us
        self.rows = RowFiles(folder)
        self.taken = 0
        self._covered = {id: entry.seq for id, entry in had.items()}
        """How far each session is in the archive, or will be."""
        self._sum = _RowSum()

    def take(self, log: Log, head: Head) -> ArchivedSession | None:
        """What the archive is to say of a session from now on; None when that is what it says already."""
        before = self._had.get(log.id)
        is_there = before is not None and (before.seq, before.hash) == (head.seq, head.hash.hex())
        if before is not None and (is_there or _is_only_pruned(log, before)):
            if not is_there or before.bundle == key_of(head) or not self._is_due(head):
                return None
            return msgspec.structs.replace(before, bundle=self._bundle(log))
        return self._add(log, before)

    def _bundle(self, log: Log) -> str:
        """Puts a bundle of what the tables have already. It is in the clear, as they are."""
        _verify(log)
        with tempfile.TemporaryFile(dir=self._folder) as spool:
            head = export_bundle(log, cast(Any, spool), beyond=True)
            spool.seek(0)
            return put_bundle(self._objects, head, cast(Any, spool))[0]

    def _is_due(self, head: Head) -> bool:
        """Whether it is time for a bundle: one of a session at work would soon be followed by the next."""
        if self._quiet_us is None:
            return False
        return head.status in ("closed", "archived") or self._now - head.at >= self._quiet_us

    def _add(self, log: Log, before: ArchivedSession | None) -> ArchivedSession:
        _verify(log)
        with tempfile.TemporaryFile(dir=self._folder) as spool:
            head = export_bundle(log, cast(Any, spool), beyond=True)
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
            # Before it was changed, a bundle has what was erased since: no restore may take it.
            bundle = before.bundle if before is not None and is_same else ""
            if self._is_due(head):
                spool.seek(0)
                bundle = put_bundle(self._objects, head, cast(Any, spool))[0]
        self.taken += 1
        return ArchivedSession(log.id, head.name, head.seq, head.hash.hex(), head.status, since, first, digest, bundle)

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

    def put(self) -> tuple[ArchivedFile, ...]:
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
            self._objects.put(key, content)
            out.append(ArchivedFile(key, len(content), hashlib.sha256(content).hexdigest()))
        return tuple(out)


def _verify(log: Log) -> None:
    report = verify(log)
    if not report.ok:
        fault = (*report.integrity, *report.completeness)[0]
        raise CorruptLogError(f"{log.id} does not verify: {fault.what}", seq=fault.seq)


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


def _is_only_pruned(log: Log, before: ArchivedSession) -> bool:
    """Whether nothing happened to a session since but that content was pruned, which the archive keeps."""
    since = list(log.engine.read(log.id, after=before.seq))
    is_its_end = bool(since) and since[0].prev.hex() == before.hash
    return is_its_end and all(set(commit.kinds) == {"range.pruned"} for commit in since)


def _run_name(now: int, runs: list[ArchiveRun]) -> str:
    """Runs are in the order of their names, whatever the clock does."""
    while True:
        name = datetime.datetime.fromtimestamp(now / 1e6, datetime.UTC).strftime("%Y%m%dT%H%M%S%fZ")
        if not runs or name > runs[-1].run:
            return name
        now += 1_000_000


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
