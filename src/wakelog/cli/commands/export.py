"""`wakelog export`: writes a session to a file."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import INTEGRITY
from wakelog.cli.options import force_option, place_argument
from wakelog.cli.output import STDOUT, Progress, is_url, refuse_existing, writing, writing_to
from wakelog.cli.render.sessions import label
from wakelog.cli.selectors import Place
from wakelog.cli.text import inert_line, name_some, size
from wakelog.errors import CorruptLogError
from wakelog.exporters.claude_code_file import claude_code_file, session_id
from wakelog.exporters.html_page import html_page
from wakelog.exporters.openai_chat import openai_chat
from wakelog.exporters.share_mask import MaskReview, ShareMask
from wakelog.log.damage import Hole, OnHole
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.model.short_text import pluralize

FORMATS = ("bundle", "ndjson", "json", "md", "html", "openai", "claude-code", "pytest")
READABLE = ("ndjson", "json", "md")
"""Formats that can hold what is left of a damaged session. The others must be complete to be verified or run."""
MAX_MASKED = 12
_MASK_WORDS = {"user": "user name in a path", "own-word": "own word"}


@click.command("export")
@place_argument()
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
@click.option("--redact", is_flag=True, help="Mask secrets, home folders and user names, and say what was masked.")
@click.option(
    "--redact-words",
    "words",
    multiple=True,
    metavar="FILE|WORD",
    help="With --redact: mask this too, or each line of a file.",
)
@click.option("--dry-run", is_flag=True, help="With --redact: only say what would be masked.")
@click.option("--agent", default="", metavar="MODULE:FUNCTION", help="For pytest: replay this agent.")
@click.option("--beyond", is_flag=True, help="Include events of its ancestors after the fork point, where needed.")
@click.option("--encrypted", is_flag=True, help="Keep the bundle of an encrypted store encrypted; needs no key.")
@force_option
@common
def export_command(
    ctx: CommandContext,
    selector: str,
    form: str | None,
    target: str,
    zipped: bool,
    redact: bool,
    words: tuple[str, ...],
    dry_run: bool,
    agent: str,
    beyond: bool,
    encrypted: bool,
    force: bool,
) -> int:
    """Write a session to a file, to a blob store, or to stdout. The file appears when it is complete; an object in a
    blob store is never replaced.

    A bundle holds the session with its ancestors and can be verified: `wakelog import` reads it elsewhere. ndjson is
    one decoded event a line, json all events in one document, and md and html are pages to read; these four also take
    a point or range. openai is the conversation as OpenAI chat messages, and claude-code a transcript that Claude Code
    can resume, both up to a point. pytest writes a test that replays a turn or range strictly, with the bundle that it
    needs beside it.

    An export of an encrypted store is not encrypted, except a bundle with --encrypted. Anybody can verify and import
    such a bundle; reading it needs the key.

    With --redact, secrets are looked for once more, and home folders and user names in paths are masked. What was
    masked, and in which events, is printed on stderr: read the file before you share it.

    Examples:
      wakelog export fix-bug -o fix-bug.wakelog
      wakelog export fix-bug -o s3://bucket/archive/fix-bug.wakelog
      wakelog export fix-bug@3..@5 --format md
      wakelog export fix-bug --format html --redact -o fix-bug.html
      wakelog export fix-bug --format ndjson --gzip -o fix-bug.ndjson.gz
      wakelog export fix-bug@4 --format pytest --agent app:run -o test_fix_bug.py
    """
    if target == STDOUT and not ctx.is_for_people:
        # --json and --ndjson on stdout: the answer is the export itself.
        form, ctx.json, ctx.ndjson = form or ("json" if ctx.json else "ndjson"), False, False
    form = form or "bundle"
    _check_options(form, redact, words, dry_run, encrypted)
    ctx.even_damaged = form in READABLE
    place = ctx.place(selector)
    if form == "pytest":
        return export_test(ctx, place, target, agent=agent, zipped=zipped, force=force)
    if form == "bundle" and place.text:
        raise click.UsageError(f"a bundle holds a whole session; wakelog fork {selector} makes one that ends there")
    export = _Export(place, form)
    if redact:
        say_review(ctx, export.mask(_own_words(words)), dry_run=dry_run)
        if dry_run:
            return 0
    if target != STDOUT and not is_url(target):
        refuse_existing(Path(target), force=force)
    with (
        Progress(ctx, "exported events", place.session.head.seq) as export.progress,
        writing_to(target, force=force, zipped=zipped) as out,
    ):
        export.write(out, beyond, encrypted)
        written = out.tell() if is_url(target) else 0
    return _answer(ctx, export, target, written, encrypted)


def _answer(ctx: CommandContext, export: _Export, target: str, written: int, encrypted: bool) -> int:
    session, form = export.session, export.form
    if export.gone:
        ctx.warn(f"the content of {export.gone} events was erased or pruned before; their places are marked")
    if ctx.store.encryption.state is not None and not encrypted:
        ctx.warn("the store is encrypted, and this file is not: keep it where only its readers get it")
    for hole in export.holes:
        ctx.warn(f"{hole.place} of {session} cannot be read: {hole.why}")
    code = INTEGRITY if export.holes else 0
    if target == STDOUT:
        return code
    written = written if is_url(target) else Path(target).stat().st_size
    data = {
        "session": session.id,
        "name": session.name,
        "format": form,
        "file": target,
        "bytes": written,
        "head": session.head.seq,
        "content_gone": export.gone,
        "holes": export.holes,
    }
    ctx.answer("export", data, f"Wrote {label(session)} as {form} to {target}  ({size(written)})")
    if form == "bundle":
        ctx.suggest(f"wakelog import {target} --store ELSEWHERE")
    elif form == "claude-code":
        id = session_id(session, export.end)
        ctx.suggest(f"copy it to ~/.claude/projects/FOLDER/{id}.jsonl", f"claude --resume {id}")
    return code


def _check_options(form: str, redact: bool, words: tuple[str, ...], dry_run: bool, encrypted: bool) -> None:
    if encrypted and form != "bundle":
        raise click.UsageError("only a bundle can stay encrypted: leave out --format")
    if (words or dry_run) and not redact:
        raise click.UsageError("--redact-words and --dry-run belong to --redact")
    if redact and form in ("bundle", "pytest"):
        what = "a bundle holds" if form == "bundle" else "a test replays"
        raise click.UsageError(f"{what} the log as it is, so nothing in it can be masked: choose another --format")


def _own_words(words: tuple[str, ...]) -> list[str]:
    """The words, with the name of a file replaced by its lines."""
    results: list[str] = []
    for word in words:
        path = Path(word)
        results += path.read_text(encoding="utf-8").splitlines() if path.is_file() else [word]
    return results


class _Export:
    """The events to write, and what is found while they are read."""

    def __init__(self, place: Place, form: str) -> None:
        self.place, self.session, self.form = place, place.session, form
        self.text: Callable[[str], str] = str
        self.value: Callable[[Any], Any] = lambda value: value
        """What masks texts and values."""
        self.progress: Callable[[int], None] = lambda _: None
        self.gone = 0
        """How many events had lost their content before."""
        self.holes: list[Hole] = []
        """What could not be read."""

    def mask(self, words: list[str]) -> MaskReview:
        """From here on, masks secrets, home folders, user names and these words; returns what that concerns."""
        mask = ShareMask(words)
        self.text, self.value = mask.text, mask.value
        return mask.learn(self.session.log, self.read)

    def write(self, out: IO[bytes], beyond: bool, encrypted: bool) -> None:
        if self.form != "bundle":
            out.writelines(_PIECES[self.form](self))
            return
        try:
            self.session.export_bundle(out, beyond=beyond, encrypted=encrypted)
        except CorruptLogError as exc:  # a bundle must verify
            raise CorruptLogError(
                f"a bundle cannot be made: {exc.message}",
                hint=f"wakelog export {self.session} --format ndjson writes what can be read",
                seq=exc.seq,
                upto=exc.upto,
                session=exc.session,
            ) from exc

    @property
    def end(self) -> Seq:
        return self.place.span.last if self.place.text else self.session.head.seq

    def read(self, on_hole: OnHole = lambda _: None) -> Iterator[Entry]:
        if not self.place.text:
            return self.session.log.entries(on_hole=on_hole)
        # A conversation starts with the first event.
        after = 0 if self.form in ("openai", "claude-code") else max(0, self.place.span.first - 1)
        return self.session.log.entries(after=after, upto=self.end, on_hole=on_hole)

    def entries(self) -> Iterator[Entry]:
        for entry in self.read(self.holes.append):
            self.progress(1)
            self.gone += not entry.is_intact
            yield entry

    def records(self) -> Iterator[dict[str, Any]]:
        from wakelog.cli.render.events import record

        tools: dict[str, str] = {}
        for entry in self.entries():
            yield self.value(record(self.session, entry, tools, 0))


# Each format as pieces, because an export may be larger than memory.


def _ndjson(export: _Export) -> Iterator[bytes]:
    for record in export.records():
        yield msgspec.json.encode({"schema": "wakelog.event/1", **record}) + b"\n"
    for hole in export.holes:
        yield msgspec.json.encode({"schema": "wakelog.hole/1", **msgspec.to_builtins(hole)}) + b"\n"


def _json(export: _Export) -> Iterator[bytes]:
    session = export.session
    name = export.text(session.name or "") or None
    front = {"schema": "wakelog.export/1", "session": session.id, "name": name, "head": session.head.seq}
    yield msgspec.json.encode(front)[:-1] + b',"events":['
    separator = b"\n"
    for record in export.records():
        yield separator + msgspec.json.encode(record)
        separator = b",\n"
    holes = b',"holes":' + msgspec.json.encode(export.holes) if export.holes else b""
    yield b"\n]" + holes + b"}\n"


def _markdown(export: _Export) -> Iterator[bytes]:
    from wakelog.cli.render.transcript import transcript

    for line in transcript(export.session, export.entries(), export.text):
        yield line.encode() + b"\n"
    for hole in export.holes:
        yield f"\n> {hole.place} cannot be read: {inert_line(hole.why)}\n".encode()


def _html(export: _Export) -> Iterator[bytes]:
    for piece in html_page(export.session, export.entries(), export.text):
        yield piece.encode(errors="replace")


def _openai(export: _Export) -> Iterator[bytes]:
    messages = openai_chat(export.session, export.end)
    yield b"[\n" + b",\n".join(msgspec.json.encode(export.value(message)) for message in messages) + b"\n]\n"


def _claude_code(export: _Export) -> Iterator[bytes]:
    for document in claude_code_file(export.session, export.end):
        yield msgspec.json.encode(export.value(document)) + b"\n"


_PIECES: dict[str, Callable[[_Export], Iterator[bytes]]] = {
    "ndjson": _ndjson,
    "json": _json,
    "md": _markdown,
    "html": _html,
    "openai": _openai,
    "claude-code": _claude_code,
}


def export_test(ctx: CommandContext, place: Place, target: str, *, agent: str, zipped: bool, force: bool) -> int:
    """Writes a test and its recording. The recording is written first, because the test needs it."""
    test, session = Path(target), place.session
    if target == STDOUT or test.suffix != ".py":
        raise click.UsageError("a test is two files: name the Python one with -o, such as tests/test_fix_auth.py")
    if agent and (not all(part.isidentifier() for part in agent.replace(":", ".").split(".")) or agent.count(":") != 1):
        raise click.UsageError(f"--agent {agent!r} is not written as module:function")
    bundle = test.with_suffix(".wakelog")
    for path in (test, bundle):
        refuse_existing(path, force=force)
    recording = session.history.recording(place.text)
    name = str(session)
    asked = f"{name}{recording.selector}" if recording.turns else name
    words = ["wakelog", "export", asked, "--format", "pytest", *(["--agent", agent] if agent else []), "-o", target]
    source = recording.as_test(agent=agent, written_by=f"{shlex.join(words)} --force")
    with writing(bundle, force=force, zipped=zipped) as out:
        recording.export_bundle(out)
    with writing(test, force=force) as out:
        out.write(source.encode())
    steps, gone = len(recording.steps), sum(bool(step.gone) for step in recording.steps)
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
    wrote = f"Wrote a test of {inert_line(recording.name)} to {test}  ({steps} steps)"
    ctx.answer("export", data, [wrote, f"  its recording is {bundle}  ({size(bundle.stat().st_size)})"])
    ctx.suggest(*([] if agent else [f"fill in AGENT in {target}"]), f"pytest {target}")
    return 0


def say_review(ctx: CommandContext, review: MaskReview, *, dry_run: bool) -> None:
    """Prints what is masked, or that nothing is, on stderr."""
    verb = "would be masked" if dry_run else "masked"
    if not review.total:
        click.echo(f"nothing {verb}: no secrets, own words or home folders were found", err=True)
        return
    places = f"{pluralize(review.total, 'place')} in {pluralize(len(review.events), 'event')}"
    click.echo(f"{places} {verb}:", err=True)
    for kind, results in sorted(review.kinds.items()):
        shown = name_some([f"e{seq}" for seq in sorted(results)], MAX_MASKED, by=" ")
        click.echo(f"  {_MASK_WORDS.get(kind, kind):<20} {sum(results.values()):>5}  {shown}", err=True)
    ctx.suggest("read the file before you share it: rules recognise formats, not meanings")
