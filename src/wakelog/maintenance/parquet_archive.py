"""Writes an archive in Parquet: one row for each event, for queries over years, and complete enough to restore
sessions.

A run adds files with the commits that the archive lacks, and then a list of these files, `runs/RUN.json`. Files that no
list names do not count. Nothing is ever replaced. A row holds a record's bytes as they are stored, and a commit's row
holds its line of a bundle. So a session's bundle can be rebuilt and verified.

Before the list is written, the files are read back and compared. If something was erased in a session since the last
run, the whole session is written again, and its older rows no longer count. They stay in the older files: to erase them
there, remove those files, as with backups. A session that was only pruned is not written again: the archive keeps the
content that pruning removed from the store.

The archive can also hold bundles, one for each session that has ended or is quiet. If a table's file is damaged, a
restore uses the bundle.
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
from wakelog.engines.object_storage import Objects
from wakelog.errors import CorruptLogError, NotAllowedError, NotFoundError
from wakelog.log import Log
from wakelog.log.bundle import export_bundle
from wakelog.maintenance.archive import ArchiveResult, Progress, key_of, put_bundle, refuse_damaged
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
    """Adds what the archive lacks of these sessions, by default of all. Rows are not encrypted: an encrypted store
    needs `decrypt`. With `quiet_us`, sessions that have ended, or had no event for that long, are also stored as
    bundles. `known` are the runs that the caller has read; newer ones are added to it."""
    if store.engine.abilities.encryption is not None and not decrypt:
        raise NotAllowedError(
            "the store is encrypted, and an archive in Parquet is not",
            kind="store-encrypted",
            hint="add --decrypt to archive it unencrypted; wakelog store backup s3://… keeps it encrypted",
        )
    objects = Objects(place)
    runs = read_runs(objects, known)
    finish_runs(objects, runs)
    had = archived_sessions(runs)
    run = _run_name(store.clock(), runs)
    problems: dict[SessionId, str] = {}
    unchanged, is_damaged = 0, False
    changed: dict[SessionId, ArchivedSession] = {}
    session_ids = list(sessions)
    with tempfile.TemporaryDirectory() as folder:
        work = _Run(Path(folder), run, had, objects, store.clock(), quiet_us)
        try:
            for head in (
                filter(None, (head_or_none(store.engine, id) for id in session_ids))
                if session_ids
                else store.sessions()
            ):
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
    """The rows and bundles of one run."""

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
        """How far each session is in the archive, including this run."""
        self._sum = _RowSum()

    def take(self, log: Log, head: Head) -> ArchivedSession | None:
        """Adds what is new of a session. Returns its new entry, or None if the archive is up to date."""
        before = self._had.get(log.id)
        is_there = before is not None and (before.seq, before.hash) == (head.seq, head.hash.hex())
        if before is not None and (is_there or _is_only_pruned(log, before)):
            if not is_there or before.bundle == key_of(head) or not self._is_due(head):
                return None
            return msgspec.structs.replace(before, bundle=self._bundle(log))
        return self._add(log, before)

    def _bundle(self, log: Log) -> str:
        """Stores a bundle of a session whose rows are in the tables already. It is not encrypted, like the rows."""
        refuse_damaged(log)
        with tempfile.TemporaryFile(dir=self._folder) as spool:
            head = export_bundle(log, cast(Any, spool), beyond=True)
            spool.seek(0)
            return put_bundle(self._objects, head, cast(Any, spool))[0]

    def _is_due(self, head: Head) -> bool:
        """Whether to store a bundle now. The bundle of an active session would soon be outdated."""
        if self._quiet_us is None:
            return False
        return head.status in ("closed", "archived") or self._now - head.at >= self._quiet_us

    def _add(self, log: Log, before: ArchivedSession | None) -> ArchivedSession:
        refuse_damaged(log)
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
                commit = msgspec.json.decode(line)
                if "end" not in commit:
                    self._add_commit(commit, names[commit["session"]], project)
            # An older bundle may hold what was erased since: no restore may use it.
            bundle = before.bundle if before is not None and is_same else ""
            if self._is_due(head):
                spool.seek(0)
                bundle = put_bundle(self._objects, head, cast(Any, spool))[0]
        self.taken += 1
        return ArchivedSession(log.id, head.name, head.seq, head.hash.hex(), head.status, since, first, digest, bundle)

    def _add_commit(self, commit: dict[str, Any], name: str, project: str) -> None:
        session, first, last = commit["session"], commit["first"], commit["last"]
        if last <= self._covered.get(session, 0):
            return
        self._covered[session] = last
        day = datetime.datetime.fromtimestamp(commit["at"] / 1e6, datetime.UTC).date().isoformat()
        place = {"run": self._run, "day": day, "project": project}
        records, payloads = commit.pop("records"), commit.pop("payloads", {})
        for header, salt, body in records:
            row = _event_row(session, name, commit["commit_id"], header, salt, body) | place
            self._sum.add(session, row["seq"], header, salt, body)
            self.rows.add("events", row)
        line = msgspec.json.encode(commit).decode()
        self._sum.add(session, first, line)
        self.rows.add(
            "commits", {"session": session, "first": first, "last": last, "hash": commit["hash"], "line": line, **place}
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
            raise CorruptLogError(
                "the Parquet files that were written do not read back the same", kind="archive-differs"
            )
        out = []
        for key, path in made.items():
            content = path.read_bytes()
            self._objects.put(key, content)
            out.append(ArchivedFile(key, len(content), hashlib.sha256(content).hexdigest()))
        return tuple(out)


def _event_row(session: str, name: str, commit_id: str, header: str, salt: str, body: str) -> dict[str, Any]:
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
    """A checksum over rows that does not depend on their order, because they are read back in another order."""

    def __init__(self) -> None:
        self._total = self._count = 0

    def add(self, *values: object) -> None:
        digest = hashlib.sha256("\0".join(map(str, values)).encode()).digest()
        self._total = (self._total + int.from_bytes(digest)) % (1 << 256)
        self._count += 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _RowSum) and (self._total, self._count) == (other._total, other._count)


def _is_only_pruned(log: Log, before: ArchivedSession) -> bool:
    """Whether a session was only pruned since. The archive keeps the pruned content."""
    since = list(log.engine.read(log.id, after=before.seq))
    is_its_end = bool(since) and since[0].prev.hex() == before.hash
    return is_its_end and all(set(commit.kinds) == {"range.pruned"} for commit in since)


def _run_name(now: int, runs: list[ArchiveRun]) -> str:
    """Names the run by the time. Names must sort after older runs, even if the clock went back."""
    while True:
        name = datetime.datetime.fromtimestamp(now / 1e6, datetime.UTC).strftime("%Y%m%dT%H%M%S%fZ")
        if not runs or name > runs[-1].run:
            return name
        now += 1_000_000


def _digest_of(spool: Any, session: SessionId, before: ArchivedSession | None) -> tuple[str, bool]:
    """Returns the digest of a session's own records, and whether the archived ones are still the same."""
    digest, is_same = hashlib.sha256(), before is None
    spool.seek(0)
    spool.readline()
    for line in spool:
        commit = msgspec.json.decode(line)
        if commit.get("session") != session:
            continue
        for header, salt, body in commit["records"]:
            digest.update(f"{header}\0{salt}\0{body}\n".encode())
        if before is not None and commit["last"] == before.seq:
            is_same = digest.hexdigest() == before.digest
    return digest.hexdigest(), is_same
