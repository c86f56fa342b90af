"""`wakelog export` and `import`: write a session to a file, and take a bundle in, verified."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import INTEGRITY, PARTIAL
from wakelog.cli.output import STDOUT, Progress, refuse_existing, writing, writing_to
from wakelog.cli.places import Place
from wakelog.cli.render.sessions import label
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import inert, size
from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.objects import Objects, is_url, split_url
from wakelog.errors import ConflictError, CorruptLogError, NotFoundError, WakelogError
from wakelog.log import Log
from wakelog.log.bundle import export_bundle, import_bundle
from wakelog.log.damage import Hole, Told
from wakelog.log.reader import Entry
from wakelog.model.names import is_name
from wakelog.replay.pytest_export import cut_log, fixture_source, selector_of
from wakelog.replay.recording import read_recording
from wakelog.session import Session

FORMATS = ("bundle", "ndjson", "json", "md", "pytest")
READABLE = ("ndjson", "json", "md")
"""Those that hold what can be read of a damaged session; the others prove themselves, or are run."""
CHUNK = 1 << 20
SPOOL_MAX = 8 << 20


@click.command("export")
@click.argument("selector", metavar="[SEL]", required=False, default="", shell_complete=complete_selector)
@click.option("-f", "--format", "form", type=click.Choice(FORMATS), help="Write this format (default: bundle).")
@click.option(
    "-o",
    "--output",
    "target",
    default=STDOUT,
    metavar="FILE",
    help="Write to a file, s3://bucket/name, or - for stdout (default).",
)
@click.option("--gzip", "zipped", is_flag=True, help="Compress the output.")
@click.option("--agent", default="", metavar="MODULE:FUNCTION", help="For pytest: the agent to replay.")
@click.option("--beyond", is_flag=True, help="Include events of its ancestors after the fork point, where needed.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@common
def export_command(
    ctx: CommandContext,
    selector: str,
    form: str | None,
    target: str,
    zipped: bool,
    agent: str,
    beyond: bool,
    force: bool,
) -> int:
    """Write a session to a file, to a blob store, or to stdout. The file appears when it is complete; an object in a
    blob store is never replaced.

    A bundle holds the session with its ancestors and can be verified: `wakelog import` reads it elsewhere. ndjson is
    one decoded event a line, json all events in one document, and md a page to read; these three also take a point or
    range. pytest writes a test that replays a turn or range strictly, with the bundle that it needs beside it.

    \b
    Examples:
      wakelog export fix-bug -o fix-bug.wakelog
      wakelog export fix-bug -o s3://bucket/archive/fix-bug.wakelog
      wakelog export fix-bug@3..@5 --format md
      wakelog export fix-bug --format ndjson --gzip -o fix-bug.ndjson.gz
      wakelog export fix-bug@4 --format pytest --agent app:run -o tests/test_fix_bug.py
    """
    if target == STDOUT and (not ctx.is_for_people):
        # Then the answer is the export itself.
        form, ctx.json, ctx.ndjson = form or ("json" if ctx.json else "ndjson"), False, False
    form = form or "bundle"
    ctx.even_damaged = form in READABLE
    place = ctx.place(selector)
    session = place.session
    if form == "pytest":
        from wakelog.cli.commands.export import export_test

        export_test(ctx, place, target, agent=agent, zipped=zipped, force=force)
        return 0
    if form == "bundle" and place.text:
        raise click.UsageError(f"a bundle holds a whole session; wakelog fork {selector} makes one that ends there")
    if target != STDOUT and not is_url(target):
        refuse_existing(Path(target), force=force)
    with (
        Progress(ctx, "exported events", session.head.seq) as progress,
        writing_to(target, force=force, zipped=zipped) as out,
    ):
        gone, holes = _write(place, form, out, progress, beyond)
        written = out.tell() if is_url(target) else 0
    if gone:
        ctx.warn(f"the content of {gone} events was erased or pruned before; their places are marked")
    for hole in holes:
        ctx.warn(f"{hole.place} of {session.name or session.id} cannot be read: {hole.why}")
    if target == STDOUT:
        return INTEGRITY if holes else 0
    if not is_url(target):
        written = Path(target).stat().st_size
    data = {
        "session": session.id,
        "name": session.name,
        "format": form,
        "file": target,
        "bytes": written,
        "head": session.head.seq,
        "content_gone": gone,
        "holes": holes,
    }
    name = label(session)
    ctx.answer("export", data, lambda: ctx.say(f"Wrote {name} as {form} to {target}  ({size(data['bytes'])})"))  # type: ignore[arg-type]
    if form == "bundle":
        ctx.suggest(f"wakelog import {target} --store ELSEWHERE")
    return INTEGRITY if holes else 0


def _write(place: Place, form: str, out: IO[bytes], progress: Progress, beyond: bool) -> tuple[int, list[Hole]]:
    """Writes, and returns how many events had lost their content before, and what could not be read."""
    session = place.session
    if form == "bundle":
        _write_bundle(session, out, beyond)
        progress(session.head.seq)
        return 0, []
    gone = 0
    holes: list[Hole] = []

    def entries() -> Iterator[Entry]:
        nonlocal gone
        for entry in _chosen(place, holes.append):
            progress()
            gone += not entry.is_intact
            yield entry

    if form == "md":
        from wakelog.cli.render.transcript import transcript

        for line in transcript(session, entries()):
            out.write(line.encode() + b"\n")
        for hole in holes:
            out.write(f"\n> {hole.place} cannot be read: {inert(hole.why, lines=False)}\n".encode())
    elif form == "ndjson":
        for record in _records(session, entries()):
            out.write(msgspec.json.encode({"schema": "wakelog.event/1", **record}) + b"\n")
        for hole in holes:
            out.write(msgspec.json.encode({"schema": "wakelog.hole/1", **msgspec.to_builtins(hole)}) + b"\n")
    else:
        _write_json(session, entries(), holes, out)
    return gone, holes


def _write_bundle(session: Session[Any], out: IO[bytes], beyond: bool) -> None:
    """A bundle proves itself, so it holds all of a session or is not made."""
    try:
        export_bundle(session.log, out, beyond=beyond)
    except CorruptLogError as exc:
        raise CorruptLogError(
            f"a bundle cannot be made: {exc.message}",
            hint=f"wakelog export {session.name or session.id} --format ndjson writes what can be read",
            seq=exc.seq,
            upto=exc.upto,
            session=exc.session,
        ) from exc


def _write_json(session: Session[Any], entries: Iterator[Entry], holes: list[Hole], out: IO[bytes]) -> None:
    """One document, written event by event: it may be larger than memory."""
    front = {"schema": "wakelog.export/1", "session": session.id, "name": session.name, "head": session.head.seq}
    out.write(msgspec.json.encode(front)[:-1] + b',"events":[')
    separator = b"\n"
    for record in _records(session, entries):
        out.write(separator + msgspec.json.encode(record))
        separator = b",\n"
    said = b',"holes":' + msgspec.json.encode(holes) if holes else b""
    out.write(b"\n]" + said + b"}\n")


def _records(session: Session[Any], entries: Iterator[Entry]) -> Iterator[dict[str, Any]]:
    from wakelog.cli.render.events import record

    tools: dict[str, str] = {}
    for entry in entries:
        yield record(session, entry, tools, 0)


def _chosen(place: Place, told: Told) -> Iterator[Entry]:
    if not place.text:
        return place.session.log.entries(told=told)
    span = place.span
    return place.session.log.entries(after=max(0, span.first - 1), upto=span.last, told=told)


def export_test(ctx: CommandContext, place: Place, target: str, *, agent: str, zipped: bool, force: bool) -> None:
    """Writes both files, the recording first: a test without it would be broken."""
    test, session = Path(target), place.session
    if target == STDOUT or test.suffix != ".py":
        raise click.UsageError("a test is two files: name the Python one with -o, such as tests/test_fix_auth.py")
    if agent and (not all(part.isidentifier() for part in agent.replace(":", ".").split(".")) or agent.count(":") != 1):
        raise click.UsageError(f"--agent {agent!r} is not written as module:function")
    bundle = test.with_suffix(".wakelog")
    for path in (test, bundle):
        refuse_existing(path, force=force)
    recording = read_recording(session.log, place.text)
    name = session.name or session.id
    asked = f"{name}{selector_of(recording)}" if recording.turns else name
    words = ["wakelog", "export", asked, "--format", "pytest", *(["--agent", agent] if agent else []), "-o", target]
    source = fixture_source(recording, agent=agent, written_by=f"{shlex.join(words)} --force")
    with writing(bundle, force=force, zipped=zipped) as out:
        export_bundle(cut_log(recording), out)
    with writing(test, force=force) as out:
        out.write(source.encode())
    _answer(
        ctx, session, recording.name, test, bundle, len(recording.steps), sum(bool(s.gone) for s in recording.steps)
    )
    if not agent:
        ctx.suggest(f"fill in AGENT in {target}", f"pytest {target}")
    else:
        ctx.suggest(f"pytest {target}")


def _answer(
    ctx: CommandContext, session: Session[Any], replayed: str, test: Path, bundle: Path, steps: int, gone: int
) -> None:
    if gone:
        ctx.warn(f"the content of {gone} of its steps is gone: a strict replay will stop there")
    data = {
        "session": session.id,
        "name": session.name,
        "format": "pytest",
        "file": str(test),
        "bytes": test.stat().st_size,
        "head": session.head.seq,
        "content_gone": gone,
        "bundle": str(bundle),
        "steps": steps,
    }

    def human() -> None:
        ctx.say(f"Wrote a test of {inert(replayed, lines=False)} to {test}  ({steps} steps)")
        ctx.say(f"  its recording is {bundle}  ({size(bundle.stat().st_size)})")

    ctx.answer("export", data, human)


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
@click.option("--dry-run", is_flag=True, help="Verify and compare, and write nothing.")
@common
def import_command(ctx: CommandContext, files: tuple[str, ...], dry_run: bool) -> int:
    """Import bundles made by `wakelog export`, plain or gzipped, from files or a blob store. Each bundle is verified
    before anything is written, and imported completely or not at all. Events that are already here do not change.

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


def _target(ctx: CommandContext, dry_run: bool) -> Engine:
    """Where to: a dry run makes no store where there is none."""
    if not dry_run:
        return ctx.new_store().engine
    try:
        return ctx.store.engine
    except NotFoundError:
        return MemoryEngine()


def _take(ctx: CommandContext, engine: Engine, file: str, dry_run: bool) -> Taken:
    before = {} if dry_run else _heads(engine)
    with (
        _opened(file) as raw,
        Progress(
            ctx, f"reading {Path(file).name}, bytes", Path(file).stat().st_size if Path(file).is_file() else 0
        ) as progress,
    ):
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
        raise ConflictError(f"{log.id} was deleted in this store and cannot be imported again", kind="session-deleted")
    common_end = min(mine.seq, theirs.seq)
    if Log(engine, log.id).entry(common_end).hash != log.entry(common_end).hash:
        raise ConflictError(
            f"{log.id} has a different history in this store",
            kind="head-moved",
            head_seq=mine.seq,
            hint="import it into another store",
        )
    return common_end


def _name_warning(log: Log, engine: Engine) -> str:
    """A name that is taken here, or that is none, is not bound: say how to reach the session."""
    own = [s for s in log.segments if s.last is None]
    first = log.entry(own[0].first)
    name = str(first.body.get("name", ""))
    if name and not is_name(name):
        return f"{name!r} looks like a position and cannot name a session; use its id, {log.id}"
    bound = engine.find(name) if name else None
    if bound is not None and bound != log.id:
        return f"the name {name} is taken by {bound}; use its id, {log.id}"
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


def _show(ctx: CommandContext, taken: list[Taken], dry_run: bool) -> None:
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
