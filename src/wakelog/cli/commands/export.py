"""`wakelog export`: write a session to a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import click
import msgspec

from wakelog.cli.completing import complete_selector
from wakelog.cli.context import Context, common
from wakelog.cli.output import STDOUT, refuse_existing, writing_to
from wakelog.cli.progress import Progress
from wakelog.cli.text import inert, size
from wakelog.engines.objects import is_url
from wakelog.history.selectors import Selector, resolve_range
from wakelog.log.bundle import export_bundle
from wakelog.log.reading import Entry
from wakelog.session import Session

FORMATS = ("bundle", "ndjson", "json", "md", "pytest")


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
) -> None:
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
    session, place = ctx.select(selector)
    if form == "pytest":
        from wakelog.cli.fixtures import export_test

        export_test(ctx, session, place, target, agent=agent, zipped=zipped, force=force)
        return
    if form == "bundle" and place.first:
        raise click.UsageError(f"a bundle holds a whole session; wakelog fork {selector} makes one that ends there")
    if target != STDOUT and not is_url(target):
        refuse_existing(Path(target), force=force)
    with (
        Progress(ctx, "exported events", session.head.seq) as progress,
        writing_to(target, force=force, zipped=zipped) as out,
    ):
        gone = _write(session, place, form, out, progress, beyond)
        written = out.tell() if is_url(target) else 0
    if gone:
        ctx.warn(f"the content of {gone} events was erased or pruned before; their places are marked")
    if target == STDOUT:
        return
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
    }
    name = inert(session.name or session.id, lines=False)
    ctx.answer("export", data, lambda: ctx.say(f"Wrote {name} as {form} to {target}  ({size(data['bytes'])})"))  # type: ignore[arg-type]
    if form == "bundle":
        ctx.suggest(f"wakelog import {target} --store ELSEWHERE")


def _write(session: Session[Any], place: Selector, form: str, out: IO[bytes], progress: Progress, beyond: bool) -> int:
    """Writes, and returns how many events had lost their content before."""
    if form == "bundle":
        export_bundle(session.log, out, beyond=beyond)
        progress(session.head.seq)
        return 0
    gone = 0

    def entries() -> Iterator[Entry]:
        nonlocal gone
        for entry in _chosen(session, place):
            progress()
            gone += not entry.is_intact
            yield entry

    if form == "md":
        from wakelog.cli.transcript import transcript

        for line in transcript(session, entries()):
            out.write(line.encode() + b"\n")
    elif form == "ndjson":
        for record in _records(session, entries()):
            out.write(msgspec.json.encode({"schema": "wakelog.event/1", **record}) + b"\n")
    else:
        _write_json(session, entries(), out)
    return gone


def _write_json(session: Session[Any], entries: Iterator[Entry], out: IO[bytes]) -> None:
    """One document, written event by event: it may be larger than memory."""
    front = {"schema": "wakelog.export/1", "session": session.id, "name": session.name, "head": session.head.seq}
    out.write(msgspec.json.encode(front)[:-1] + b',"events":[')
    separator = b"\n"
    for record in _records(session, entries):
        out.write(separator + msgspec.json.encode(record))
        separator = b",\n"
    out.write(b"\n]}\n")


def _records(session: Session[Any], entries: Iterator[Entry]) -> Iterator[dict[str, Any]]:
    from wakelog.cli.render.events import record

    tools: dict[str, str] = {}
    for entry in entries:
        yield record(session, entry, tools, 0)


def _chosen(session: Session[Any], place: Selector) -> Iterator[Entry]:
    if not place.first:
        return session.log.entries()
    span = resolve_range(session.log, place.first + (f"..{place.last}" if place.last else ""))
    return session.log.entries(after=max(0, span.first - 1), upto=span.last)
