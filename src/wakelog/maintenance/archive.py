"""Archives: bundles of sessions in a folder or an S3-compatible store, written once and never replaced.

A session's bundle is stored under its id and head, `SESSION/SEQ-HASH.wakelog.gz`. The same head means the same content,
so an existing bundle is not written again, and older ones stay. A backup ends with a list of the store's sessions at
that moment, `lists/TIME.json`. A restore uses the newest list, or the one you name.
"""

from __future__ import annotations

import gzip
import io
import shutil
import tempfile
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import IO, TypeVar, cast

import msgspec

from wakelog.engine import head_or_none
from wakelog.engines.object_storage import Objects
from wakelog.errors import CorruptLogError, NotFoundError, WakelogError
from wakelog.log import Log
from wakelog.log.bundle import export_bundle
from wakelog.log.verify import verify
from wakelog.model.described import described
from wakelog.model.ids import SessionId
from wakelog.model.records import Head
from wakelog.store import Store

LISTS = "lists/"
SPOOL_MAX = 8 << 20

Progress = Callable[[int], None]


class ArchivedHead(msgspec.Struct, frozen=True):
    """The head of a session in an archive."""

    session: SessionId
    name: str
    seq: int
    hash: str
    status: str


class Archived(ArchivedHead, frozen=True):
    """One session in an archive of bundles."""

    key: str


E = TypeVar("E", bound=ArchivedHead)


class Archive(msgspec.Struct, frozen=True):
    """The list of a store's sessions at a moment."""

    wakelog: int
    at: str
    sessions: tuple[Archived, ...]


class ArchiveResult(msgspec.Struct, frozen=True):
    """What a backup to an archive did, or a restore from one."""

    list: str
    sessions: int
    """How many were written or restored."""
    unchanged: int
    problems: dict[SessionId, str]
    """Sessions that could not be archived or restored, and why."""
    is_damaged: bool = False
    damaged_files: tuple[str, ...] = ()
    """What is wrong with files of the archive that the restored sessions did without."""


def key_of(head: Head) -> str:
    return bundle_key(head.session, head.seq, head.hash.hex())


def bundle_key(session: SessionId, seq: int, hash: str) -> str:
    return f"{session}/{seq}-{hash[:16]}.wakelog.gz"


def archive_session(log: Log, objects: Objects) -> tuple[Archived, bool]:
    """Verifies a session and puts it, with its ancestors, into an archive. Returns its entry, and whether it is new."""
    refuse_damaged(log)
    with tempfile.SpooledTemporaryFile(SPOOL_MAX) as spool:
        is_encrypted = log.engine.abilities.encryption is not None  # then the bundle is too
        head = export_bundle(log, cast(IO[bytes], spool), beyond=True, encrypted=is_encrypted)
        spool.seek(0)
        _, is_new = put_bundle(objects, head, cast(IO[bytes], spool))
    return _entry(head), is_new


def refuse_damaged(log: Log) -> None:
    """Raises CorruptLogError if a session does not verify."""
    report = verify(log)
    if not report.ok:
        fault = (*report.integrity, *report.completeness)[0]
        raise CorruptLogError(
            f"{log.id} does not verify: {fault.what}", seq=fault.seq, hint=f"wakelog verify {log.id} tells more"
        )


def put_bundle(objects: Objects, head: Head, bundle: IO[bytes]) -> tuple[str, bool]:
    """Puts a bundle into an archive. Returns its key, and whether it is new."""
    with tempfile.SpooledTemporaryFile(SPOOL_MAX) as spool:
        # No timestamp, so that the same content always gives the same bytes.
        with gzip.GzipFile(fileobj=cast(IO[bytes], spool), mode="wb", mtime=0, filename="") as out:
            shutil.copyfileobj(bundle, out)
        spool.seek(0)
        return key_of(head), objects.put(key_of(head), spool.read())


def backup(store: Store, url: str, progress: Progress | None = None) -> ArchiveResult:
    """Archives every session whose head is not in the archive yet, and then the list of sessions."""
    objects = Objects(url)
    there = {stored.key for stored in objects.list()}
    archived: list[Archived] = []
    problems: dict[SessionId, str] = {}
    count, is_damaged = 0, False
    for head in store.sessions():
        try:
            entry, is_new = _entry(head), False
            if entry.key not in there:
                entry, is_new = archive_session(Log(store.engine, head.session, clock=store.clock), objects)
            archived.append(entry)
            count += is_new
        except (CorruptLogError, NotFoundError) as exc:
            problems[head.session] = exc.message
            is_damaged = is_damaged or isinstance(exc, CorruptLogError)
        if progress is not None:
            progress(head.seq)
    name = _put_list(objects, store, archived)
    return ArchiveResult(name, count, len(archived) - count, problems, is_damaged)


def _entry(head: Head) -> Archived:
    return Archived(head.session, head.name, head.seq, head.hash.hex(), head.status, key_of(head))


def _put_list(objects: Objects, store: Store, archived: list[Archived]) -> str:
    """Stores the list under its time. If that name is taken, uses the next microsecond: a list is never replaced."""
    at = store.clock()
    while True:
        moment = datetime.fromtimestamp(at / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        name = f"{LISTS}{moment}.json"
        if objects.put(name, msgspec.json.encode(Archive(1, moment, tuple(archived)))):
            return name
        at += 1


def lists(url: str) -> list[str]:
    """Returns the names of the lists in an archive, oldest first."""
    return sorted(stored.key for stored in Objects(url, create=False).list(LISTS))


def restore(store: Store, url: str, name: str = "", progress: Progress | None = None) -> ArchiveResult:
    """Restores the sessions of a list that the store lacks; by default, of the newest list."""
    objects = Objects(url, create=False)
    name, archive = read_list(url, name)

    def restore_one(entry: Archived) -> None:
        try:
            store.import_bundle(io.BytesIO(objects.get(entry.key)))
        except FileNotFoundError as exc:
            raise CorruptLogError(f"{entry.key} is not in {url}") from exc

    return restore_each(store, name, archive.sessions, restore_one, progress)


def restore_each(
    store: Store, name: str, entries: Iterable[E], restore_one: Callable[[E], None], progress: Progress | None
) -> ArchiveResult:
    """Restores, with `restore_one`, what the store lacks of these archived sessions."""
    problems: dict[SessionId, str] = {}
    count = unchanged = 0
    is_damaged = False
    for entry in entries:
        have = after = head_or_none(store.engine, entry.session)
        try:
            if have is None or (have.seq, have.hash.hex()) != (entry.seq, entry.hash):
                restore_one(entry)
                after = head_or_none(store.engine, entry.session)
            is_same = have is not None and after is not None and have.seq == after.seq
            count, unchanged = count + (not is_same), unchanged + is_same
            if after is not None and after.seq < entry.seq:
                raise CorruptLogError(f"only its first {after.seq} of {entry.seq} events are undamaged")
        except WakelogError as exc:
            problems[entry.session] = exc.message
            is_damaged = is_damaged or isinstance(exc, CorruptLogError)
        if progress is not None:
            progress(entry.seq)
    return ArchiveResult(name, count, unchanged, problems, is_damaged)


def read_list(url: str, name: str = "") -> tuple[str, Archive]:
    """Reads a list of an archive, by default the newest. Returns its name and content."""
    objects = Objects(url, create=False)
    name = name or next(iter(reversed(lists(url))), "")
    try:
        if name:
            return name, msgspec.json.decode(objects.get(name), type=described(Archive))
    except FileNotFoundError:
        pass
    except msgspec.DecodeError as exc:
        raise CorruptLogError(f"{name} in {url} is not the list of a backup: {exc}") from exc
    raise NotFoundError(
        f"there is no list {name} in {url}" if name else f"{url} holds no backup",
        kind="archive-not-found",
        hint="wakelog store backup URL makes one",
    )
