"""`wakelog export`: write a session to a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import click
import msgspec

from wakelog.cli.context import Context, common
from wakelog.cli.errors import INTEGRITY
from wakelog.cli.output import STDOUT, refuse_existing, writing_to
from wakelog.cli.progress import Progress
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import inert, size
from wakelog.engines.objects import is_url
from wakelog.errors import CorruptLogError
from wakelog.log.bundle import export_bundle
from wakelog.log.damage import Hole, Told
from wakelog.log.reader import Entry
from wakelog.session import Session
from wakelog.timeline.selectors import Selector, resolve_range

FORMATS = ("bundle", "ndjson", "json", "md", "pytest")
READABLE = ("ndjson", "json", "md")
"""Those that hold what can be read of a damaged session; the others prove themselves, or are run."""


@click.command("export")
@click.argument("selector", metavar="[SEL]", required=False, default="", shell_complete=complete_selector)
@click.option(
    "-f", "--format", "form", type=click.Choice(FORMATS), help="bundle (default), ndjson, json, md or pytest."
)
@click.option(
    "-o", "--output", "target", default=STDOUT, metavar="FILE", help="A file, s3://bucket/name, or - (default)."
)
@click.option("--gzip", "zipped", is_flag=True, help="Compress it.")
@click.option("--agent", default="", metavar="MODULE:FUNCTION", help="For pytest: the agent that is to be replayed.")
@click.option(
    "--beyond", is_flag=True, help="Of a fork: also events of its ancestors that it does not share, if needed."
)
@click.option("--force", is_flag=True, help="Replace the file.")
@common
def export_command(
    ctx: Context, selector: str, form: str | None, target: str, zipped: bool, agent: str, beyond: bool, force: bool
) -> int:
    """Writes a session to a file, to a blob store, or to stdout. The file appears when it is whole; an object is put
    only if there is none of that name.

    A bundle holds the session with its ancestry and proves itself: `wakelog import` takes it in elsewhere. ndjson has
    one decoded event a line, json all of them in one document, md is a page to read; these three also take a point or
    range. pytest writes a test that replays a turn or range strictly, and the bundle it needs beside it.

    \b
    Examples:
      wakelog export fix-bug -o fix-bug.wakelog
      wakelog export fix-bug -o s3://bucket/archive/fix-bug.wakelog
      wakelog export fix-bug@3..@5 --format md
      wakelog export fix-bug --format ndjson --gzip -o fix-bug.ndjson.gz
      wakelog export fix-bug@4 --format pytest --agent app:run -o tests/test_fix_bug.py
    """
    if target == STDOUT and (ctx.json or ctx.ndjson):
        # Then the answer is the export itself.
        form, ctx.json, ctx.ndjson = form or ("json" if ctx.json else "ndjson"), False, False
    form = form or "bundle"
    ctx.even_damaged = form in READABLE
    session, place = ctx.select(selector)
    if form == "pytest":
        from wakelog.cli.fixtures import export_test

        export_test(ctx, session, place, target, agent=agent, zipped=zipped, force=force)
        return 0
    if form == "bundle" and place.first:
        raise click.UsageError(f"a bundle holds a whole session; wakelog fork {selector} makes one that ends there")
    if target != STDOUT and not is_url(target):
        refuse_existing(Path(target), force=force)
    with (
        Progress(ctx, "exported events", session.head.seq) as progress,
        writing_to(target, force=force, zipped=zipped) as out,
    ):
        gone, holes = _write(session, place, form, out, progress, beyond)
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
        "holes": [msgspec.to_builtins(hole) for hole in holes],
    }
    name = inert(session.name or session.id, lines=False)
    ctx.answer("export", data, lambda: ctx.say(f"Wrote {name} as {form} to {target}  ({size(data['bytes'])})"))  # type: ignore[arg-type]
    if form == "bundle":
        ctx.suggest(f"wakelog import {target} --store ELSEWHERE")
    return INTEGRITY if holes else 0


def _write(
    session: Session[Any], place: Selector, form: str, out: IO[bytes], progress: Progress, beyond: bool
) -> tuple[int, list[Hole]]:
    """Writes, and returns how many events had lost their content before, and what could not be read."""
    if form == "bundle":
        _write_bundle(session, out, beyond)
        progress(session.head.seq)
        return 0, []
    gone = 0
    holes: list[Hole] = []

    def entries() -> Iterator[Entry]:
        nonlocal gone
        for entry in _chosen(session, place, holes.append):
            progress()
            gone += not entry.is_intact
            yield entry

    if form == "md":
        from wakelog.cli.transcript import transcript

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


def _chosen(session: Session[Any], place: Selector, told: Told) -> Iterator[Entry]:
    if not place.first:
        return session.log.entries(told=told)
    span = resolve_range(session.log, place.first + (f"..{place.last}" if place.last else ""))
    return session.log.entries(after=max(0, span.first - 1), upto=span.last, told=told)
