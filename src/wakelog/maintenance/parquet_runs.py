"""The lists of an archive in Parquet: which files each run added, and how far each session is archived.

Runs are ordered by name. The newest entry of a session counts, so a run lists only the sessions that it changed.

A run must know the run before it, or it would add the same rows again. So each run first claims the place after the
newest run that it knows: it writes its list as `after/NEWEST.json`, which only one process can create, and then as
`runs/RUN.json`, where it counts. A process that finds the place taken writes the second file for the other one, which
may have been killed in between.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wakelog.engines.object_storage import Objects
from wakelog.errors import ConflictError, CorruptLogError, NotFoundError
from wakelog.maintenance.archive import ArchivedHead
from wakelog.model.described import described
from wakelog.model.ids import Seq, SessionId

RUNS = "runs/"
AFTER = "after/"
NO_RUN = "nothing"
"""Stands for the newest run in an empty archive."""


class ArchivedFile(msgspec.Struct, frozen=True):
    key: str
    size: int
    sha256: str


class ArchivedSession(ArchivedHead, frozen=True):
    """A session in the archive."""

    since: str
    """Its rows count from this run on."""
    first: str
    """The first line of its bundle, which names its ancestors."""
    digest: str
    """The digest of its own records. If they change, the session is written again."""
    bundle: str = ""
    """The key of its newest bundle; empty if there is none."""


class ArchiveRun(msgspec.Struct, frozen=True):
    """The list of one run: the files it added, and the sessions it changed. The newest entry of a session counts."""

    wakelog: int
    run: str
    files: tuple[ArchivedFile, ...]
    sessions: tuple[ArchivedSession, ...]


def read_runs(objects: Objects, known: list[ArchiveRun] | None = None) -> list[ArchiveRun]:
    """Reads the lists of all runs, oldest first. New ones are added to `known`."""
    runs = [] if known is None else known
    seen = {f"{RUNS}{run.run}.json" for run in runs}
    for key in sorted(stored.key for stored in objects.list(RUNS) if stored.key not in seen):
        runs.append(_decode(key, objects.get(key)))
    runs.sort(key=lambda run: run.run)
    return runs


def _decode(key: str, content: bytes) -> ArchiveRun:
    try:
        return msgspec.json.decode(content, type=described(ArchiveRun))
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise archive_differs(f"{key} is not the list of a run: {exc}") from exc


def finish_runs(objects: Objects, runs: list[ArchiveRun]) -> None:
    """Completes runs that claimed their place and then stopped, and adds them to `runs`."""
    taken = {stored.key for stored in objects.list(AFTER)}
    while (place := _place_after(runs)) in taken:
        runs.append(_complete(objects, place))


def put_run(objects: Objects, runs: list[ArchiveRun], run: ArchiveRun) -> None:
    """Adds a run after the known ones. Raises ConflictError if another process was first; then its run counts."""
    place, content = _place_after(runs), msgspec.json.encode(run)
    if not objects.put(place, content) and objects.get(place) != content:
        other = _complete(objects, place)
        raise ConflictError(
            f"another process archives to the same place: it added the run {other.run}, and this one added nothing",
            kind="archive-busy",
            hint="let one do it; what is still missing comes with the next run",
        )
    runs.append(_complete(objects, place))


def _place_after(runs: list[ArchiveRun]) -> str:
    return f"{AFTER}{runs[-1].run if runs else NO_RUN}.json"


def _complete(objects: Objects, place: str) -> ArchiveRun:
    content = objects.get(place)
    run = _decode(place, content)
    objects.put(f"{RUNS}{run.run}.json", content)
    return run


def archived_sessions(runs: Iterable[ArchiveRun]) -> dict[SessionId, ArchivedSession]:
    """Returns the newest entry of each session."""
    return {entry.session: entry for run in runs for entry in run.sessions}


def archived_heads(place: str) -> dict[SessionId, tuple[Seq, str]]:
    """Returns how far each session is archived, after checking that all files exist."""
    objects = Objects(place, create=False)
    runs = read_runs(objects)
    if not runs:
        raise no_archive(place)
    there = {stored.key: stored.size for stored in objects.list()}
    for file in (file for run in runs for file in run.files):
        if there.get(file.key) != file.size:
            raise archive_differs(f"{file.key} is not in the archive {place}, or cut off")
    return {id: (entry.seq, entry.hash) for id, entry in archived_sessions(runs).items()}


def archive_differs(what: str) -> CorruptLogError:
    return CorruptLogError(
        what,
        kind="archive-differs",
        hint="put the file back from a copy; or archive the store to another place, with wakelog archive --to",
    )


def no_archive(place: str) -> NotFoundError:
    return NotFoundError(
        f"{place} holds no archive in Parquet",
        kind="archive-not-found",
        hint="wakelog archive --to PLACE --format parquet makes one",
    )


def is_parquet(place: str) -> bool:
    """Whether a place holds an archive in Parquet."""
    return any(True for _ in Objects(place, create=False).list(RUNS))
