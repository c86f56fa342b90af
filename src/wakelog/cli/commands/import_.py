"""`wakelog import`: take in a bundle, verified."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import IO, Any, cast

import click
import msgspec

from wakelog.cli.context import Context, common
from wakelog.cli.errors import PARTIAL
from wakelog.cli.progress import Progress
from wakelog.cli.text import inert
from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.objects import Objects, is_url, split_url
from wakelog.errors import ConflictError, NotFoundError, WakelogError
from wakelog.log import Log
from wakelog.log.bundle import import_bundle
from wakelog.model.names import is_name

CHUNK = 1 << 20
SPOOL_MAX = 8 << 20


class Taken(msgspec.Struct, frozen=True):
    """What became of one file."""

    file: str
    ok: bool
    session: str = ""
    name: str = ""
    events: int = 0
    new_events: int = 0
    problem: str = ""
    warning: str = ""


@click.command("import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--dry-run", is_flag=True, help="Verify and compare, and stop.")
@common
def import_command(ctx: Context, files: tuple[str, ...], dry_run: bool) -> int:
    """Takes in bundles made by `wakelog export`, plain or gzipped, from files or a blob store. Each is verified whole
    before anything is written, and taken in whole or not at all. What is already there changes nothing.

    \b
    Examples:
      wakelog import fix-bug.wakelog --dry-run
      wakelog import backup/*.wakelog.gz
      wakelog import s3://bucket/archive/fix-bug.wakelog
    """
    target = _target(ctx, dry_run)
    taken: list[Taken] = []
    for file in files:
        try:
            taken.append(_take(ctx, target, file, dry_run))
        except WakelogError as exc:
            if len(files) == 1:
                raise
            taken.append(Taken(file, False, problem=exc.message))
    data = msgspec.to_builtins(taken)
    ctx.answer("import", data, lambda: _show(ctx, taken, dry_run))
    return 0 if all(t.ok for t in taken) else PARTIAL


def _target(ctx: Context, dry_run: bool) -> Engine:
    """Where to: a dry run makes no store where there is none."""
    if not dry_run:
        return ctx.new_store().engine
    try:
        return ctx.store.engine
    except NotFoundError:
        return MemoryEngine()


def _take(ctx: Context, engine: Engine, file: str, dry_run: bool) -> Taken:
    before = {} if dry_run else _heads(engine)
    with _opened(file) as raw, Progress(ctx, f"reading {Path(file).name}, bytes", _size(file)) as progress:
        log = import_bundle(MemoryEngine() if dry_run else engine, cast(IO[bytes], _Counted(raw, progress)))
    old = _compare(engine, log) if dry_run else before.get(log.id, 0)
    head = log.head()
    return Taken(file, True, log.id, head.name, head.seq, head.seq - old, warning=_name_warning(log, engine))


def _heads(engine: Engine) -> dict[str, int]:
    out: dict[str, int] = {}
    after = ""
    while page := engine.sessions(after=after, limit=1000):
        out |= {h.session: h.seq for h in page}
        after = page[-1].session
    return out


def _compare(engine: Engine, log: Log) -> int:
    """How far the store already has this session; ConflictError when it went another way."""
    try:
        mine = engine.head(log.id)
    except NotFoundError:
        return 0
    theirs = log.head()
    if mine.status == "deleted":
        raise ConflictError(f"{log.id} was deleted here and does not come back", kind="session-deleted")
    common_end = min(mine.seq, theirs.seq)
    if Log(engine, log.id).entry(common_end).hash != log.entry(common_end).hash:
        raise ConflictError(
            f"{log.id} went another way here: the histories differ", kind="head-moved", head_seq=mine.seq
        )
    return common_end


def _name_warning(log: Log, engine: Engine) -> str:
    """A name that is taken here, or that is none, is not bound: say how to reach the session."""
    own = [s for s in log.segments if s.last is None]
    first = log.entry(own[0].first)
    name = str(first.body.get("name", ""))
    if name and not is_name(name):
        return f"{name!r} is a place and cannot name a session; this one is reached as {log.id}"
    bound = engine.find(name) if name else None
    if bound is not None and bound != log.id:
        return f"the name {name} is taken by {bound}; this one is reached as {log.id}"
    return ""


def _opened(file: str) -> IO[bytes]:
    if file == "-":
        return sys.stdin.buffer
    if is_url(file):
        return _fetched(file)
    try:
        return Path(file).open("rb")
    except OSError as exc:
        raise NotFoundError(f"{file} cannot be read: {exc.strerror}", kind="file-not-found") from exc


def _fetched(url: str) -> IO[bytes]:
    place, key = split_url(url)
    spool = cast(IO[bytes], tempfile.SpooledTemporaryFile(SPOOL_MAX))  # noqa: SIM115 - closed by who reads it
    try:
        for chunk in Objects(place, create=False).chunks(key):
            spool.write(chunk)
    except FileNotFoundError as exc:
        spool.close()
        raise NotFoundError(f"there is no {url}", kind="file-not-found") from exc
    spool.seek(0)
    return spool


def _size(file: str) -> int:
    return Path(file).stat().st_size if Path(file).is_file() else 0


class _Counted:
    """A stream that tells how far it was read, even when it is asked for everything at once."""

    def __init__(self, raw: IO[bytes], progress: Progress) -> None:
        self._raw, self._progress = raw, progress

    def read(self, size: int = -1) -> bytes:
        parts: list[bytes] = []
        left = size if size >= 0 else 1 << 62
        while left and (part := self._raw.read(min(CHUNK, left))):
            parts.append(part)
            left -= len(part)
            self._progress(len(part))
        return b"".join(parts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


def _show(ctx: Context, taken: list[Taken], dry_run: bool) -> None:
    for each in taken:
        file = inert(each.file, lines=False)
        if not each.ok:
            ctx.say(f"{ctx.style('✗', fg='red')} {file}: {inert(each.problem, lines=False)}")
            continue
        name = inert(each.name or each.session, lines=False)
        news = (
            f"{each.new_events:,} new of {each.events:,} events" if each.new_events else "everything was there already"
        )
        ctx.say(f"{ctx.style('✔', fg='green')} {file}: {name}, {news}")
        if each.warning:
            ctx.say(f"  {inert(each.warning, lines=False)}")
    if dry_run:
        ctx.say("This was a dry run: nothing was taken in.")
