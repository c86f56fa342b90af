"""The lists of an archive in Parquet: which files each run added, and how far each session is in them.

Runs are in the order of their names. Of a session the newest entry counts, so a run lists only what it changed.

A run must have seen the one before it, or it would add the same rows again. So each run first takes the place behind
the newest one that it has seen: it puts its list as `after/NEWEST.json`, where one list fits, and then as
`runs/RUN.json`, where it counts. Whoever finds the place taken finishes that for the other, who may have been killed in
between.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wakelog.engines.objects import Objects
from wakelog.errors import ConflictError, CorruptLogError, NotFoundError
from wakelog.maintenance.archive import ArchivedHead
from wakelog.model.described import described
from wakelog.model.ids import Seq, SessionId

RUNS = "runs/"
AFTER = "after/"
FIRST = "nothing"


class ArchivedFile(msgspec.Struct, frozen=True):
    key: str
    size: int
    sha256: str


class ArchivedSession(ArchivedHead, frozen=True):
    """A session as far as the archive has it."""

    since: str
    """The run from which on its rows count."""
    first: str
    """The first line of its bundle, which names its ancestry."""
    digest: str
    """Over its own records so far: when they are no longer these, it is written again."""
    bundle: str = ""
    """The newest bundle of it beside the tables; empty when there is none."""


class ArchiveRun(msgspec.Struct, frozen=True):
    """The list of one run: the files it added, and the sessions that it changed. The newest of each counts."""

    wakelog: int
    run: str
    files: tuple[ArchivedFile, ...]
    sessions: tuple[ArchivedSession, ...]


def read_runs(objects: Objects, known: list[ArchiveRun] | None = None) -> list[ArchiveRun]:
    """The lists of all runs, oldest first; those that are not known yet are added to `known`."""
    found = [] if known is None else known
    seen = {f"{RUNS}{run.run}.json" for run in found}
    for key in sorted(each.key for each in objects.list(RUNS) if each.key not in seen):
        found.append(_decoded(key, objects.get(key)))
    found.sort(key=lambda run: run.run)
    return found


def _decoded(key: str, content: bytes) -> ArchiveRun:
    try:
        return msgspec.json.decode(content, type=described(ArchiveRun))
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise CorruptLogError(f"{key} is not the list of a run: {exc}", kind="archive-differs") from exc


def finish_runs(objects: Objects, runs: list[ArchiveRun]) -> None:
    """Has a run count that took its place and got no further; it is added to those that are known."""
    taken = {each.key for each in objects.list(AFTER)}
    while (place := _place_after(runs)) in taken:
        runs.append(_finished(objects, place))


def put_run(objects: Objects, runs: list[ArchiveRun], run: ArchiveRun) -> None:
    """Adds a list behind those that are known; ConflictError when somebody was quicker, whose list counts then."""
    place, content = _place_after(runs), msgspec.json.encode(run)
    if not objects.put(place, content) and objects.get(place) != content:
        other = _finished(objects, place)
        raise ConflictError(
            f"another process archives to the same place: it added the run {other.run}, and this one added nothing",
            kind="archive-busy",
            hint="let one do it; what is still missing comes with the next run",
        )
    runs.append(_finished(objects, place))


def _place_after(runs: list[ArchiveRun]) -> str:
    return f"{AFTER}{runs[-1].run if runs else FIRST}.json"


def _finished(objects: Objects, place: str) -> ArchiveRun:
    content = objects.get(place)
    run = _decoded(place, content)
    objects.put(f"{RUNS}{run.run}.json", content)
    return run


def archived_sessions(runs: Iterable[ArchiveRun]) -> dict[SessionId, ArchivedSession]:
    """What an archive has of each session."""
    return {entry.session: entry for run in runs for entry in run.sessions}


def archived_heads(place: str) -> dict[SessionId, tuple[Seq, str]]:
    """How far each session is in an archive whose files are all there."""
    objects = Objects(place, create=False)
    runs = read_runs(objects)
    if not runs:
        raise no_archive(place)
    there = {each.key: each.size for each in objects.list()}
    for file in (file for run in runs for file in run.files):
        if there.get(file.key) != file.size:
            raise CorruptLogError(f"{file.key} is not in the archive {place}, or cut off", kind="archive-differs")
    return {id: (entry.seq, entry.hash) for id, entry in archived_sessions(runs).items()}


def no_archive(place: str) -> NotFoundError:
    return NotFoundError(
        f"{place} holds no archive in Parquet",
        kind="archive-not-found",
        hint="wakelog archive --to PLACE --format parquet makes one",
    )


def is_parquet(place: str) -> bool:
    """Whether a place holds an archive in Parquet."""
    return any(True for _ in Objects(place, create=False).list(RUNS))
