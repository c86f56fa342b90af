"""`wakelog import`: imports transcripts of coding agents, and bundles made by `wakelog export`."""

from __future__ import annotations

import contextlib
import gc
import itertools
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

import click
import msgspec

from wakelog.adapters.takeovers import FRAMEWORKS, SERVERS, framework_at, takeover_of
from wakelog.cli.context import CommandContext, common, hide_password, open_store
from wakelog.cli.errors import PARTIAL, fault_report
from wakelog.cli.options import yes_option
from wakelog.cli.output import STDOUT, Progress, is_url, reading_from
from wakelog.cli.selectors import find_time
from wakelog.cli.text import fit_path, fold_list, inert_line, name_some, size, width
from wakelog.errors import NotFoundError, WakelogError
from wakelog.importers.discovery import FoundTranscript, find_in_folder, find_transcripts, formats_of
from wakelog.importers.formats import FORMATS, detect_format, get_format
from wakelog.importers.source.files import open_source, stat_of
from wakelog.importers.transcript_import import ImportReport, import_transcript
from wakelog.model.short_text import pluralize
from wakelog.store import Store

CHUNK = 1 << 20
BUNDLE = b'{"wakelog":'
WATCH_S = 1.0
RETRY_ROUNDS = 10
"""After how many looks a file is tried again that the store did not take."""
FILE_MIN = 16
"""How much of a file's path is shown at least."""
SHOWN_MAX, KNOWN_MAX = 12, 3
"""How many files are shown one by one, and how many of those that have nothing new."""


class ImportedFile(msgspec.Struct, frozen=True):
    """The result for one file."""

    file: str
    ok: bool
    session: str = ""
    name: str = ""
    events: int = 0
    new_events: int = 0
    problem: str = ""
    warning: str = ""
    format: str = "bundle"
    records: int = 0
    turns: int = 0
    broken: tuple[str, ...] = ()
    broken_count: int = 0
    sessions: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Its sessions that are new here, or have new events."""
    deleted: tuple[str, ...] = ()
    """Its sessions that were deleted before, and are left out."""
    gone_on: tuple[str, ...] = ()
    """Its sessions that continued here since, and stay as they are."""

    @property
    def is_known(self) -> bool:
        """Whether there is nothing to tell about it."""
        return self.ok and not (self.new_events or self.broken_count or self.warning or self.deleted or self.gone_on)


@click.command("import")
@click.argument("files", metavar="[FILE|FOLDER|PROGRAM]...", nargs=-1, type=click.Path(allow_dash=True))
@click.option(
    "--format",
    "form",
    type=click.Choice(sorted(FORMATS)),
    metavar="FORMAT",
    help=f"Read files as this format: {', '.join(sorted(FORMATS))}.",
)
@click.option("--since", default="", metavar="TIME", help="Leave out transcripts not written to since then.")
@click.option("--watch", is_flag=True, help="Keep running and import what is written, until Ctrl-C.")
@click.option("--dry-run", is_flag=True, help="Read and compare, and write nothing.")
@click.option("--again", is_flag=True, help="Import sessions again that were deleted.")
@yes_option
@common
def import_command(
    ctx: CommandContext,
    files: tuple[str, ...],
    form: str | None,
    since: str,
    watch: bool,
    dry_run: bool,
    again: bool,
    yes: bool,
) -> int:
    """Import transcripts of coding agents, and bundles made by `wakelog export`.

    Without a file, look for the transcripts of Claude Code, Codex, Gemini CLI and others on this machine, and offer to
    import them. The name of a program (claude-code, codex, gemini …) imports those of that program. Transcripts are
    only read. What was imported before is skipped, so a second import adds what is new; sessions that you deleted stay
    deleted without --again. They go to the store that was chosen for this folder, else to your own (`--store user`).

    If the framework is installed, databases of LangGraph and Google ADK are imported so that its programs continue in
    the store. Otherwise they are imported for reading.

    A bundle is verified before anything is written, and imported completely or not at all.

    Examples:
      wakelog import
      wakelog import --since 30d --yes
      wakelog import claude-code
      wakelog import ~/.claude/projects/-home-me-shop --watch
      wakelog import run.traj trials/
      wakelog import checkpoints.sqlite postgresql://localhost/graphs
      wakelog import fix-bug.wakelog --dry-run
      wakelog import s3://bucket/archive/fix-bug.wakelog
    """
    oldest = find_time(ctx, since, time.time_ns() // 1000)
    sources = _sources(files, form or "", oldest) if files else [*find_transcripts(since=oldest)]
    transcripts = [source for source in sources if isinstance(source, FoundTranscript)]
    if not files and not _offer(ctx, transcripts, yes=yes or dry_run or watch):
        ctx.answer("import", [], [])
        return 0
    store = _open_target(ctx, dry_run, is_shared=bool(transcripts))
    try:
        results = _import_all(ctx, store, sources, dry_run, again)
    except KeyboardInterrupt:
        ctx.warn("interrupted; what was imported so far is kept, and the same command goes on from there")
        raise
    ctx.answer("import", msgspec.to_builtins(results), lambda: _show(ctx, results, dry_run))
    if watch and not dry_run:
        _watch(ctx, store, transcripts, results, files, form or "", oldest)
    elif transcripts and not dry_run:
        ctx.suggest("wakelog ls", "wakelog search WORDS", "wakelog log")
    return 0 if all(result.ok and not result.broken_count for result in results) else PARTIAL


def _sources(files: tuple[str, ...], form: str, since: int) -> list[FoundTranscript | str | ImportedFile]:
    """The files as transcripts or bundles (by name). An unreadable file becomes a failed result if it is not alone or
    is damaged."""
    sources: list[FoundTranscript | str | ImportedFile] = []
    for file in files:
        try:
            sources += _source(file, form, since)
        except WakelogError as exc:
            is_damaged = exc.kind == "bad-transcript"
            if len(files) == 1 and not is_damaged:
                raise
            warning = exc.hint if is_damaged else ""
            sources.append(ImportedFile(file, False, problem=exc.message, warning=warning, format=form))
    return sources


def _source(file: str, form: str, since: int) -> list[FoundTranscript | str]:
    path = Path(file).expanduser()
    if file == STDOUT or is_url(file) or file.startswith(SERVERS):
        return [file]
    if path.is_dir():
        if inside := list(find_in_folder(path, since=since)):
            return [*inside]
        raise NotFoundError(f"there is no transcript in {file}", kind="file-not-found")
    if not path.exists() and (formats := formats_of(file)):
        return [*_of_program(formats, since)]
    if not form and _is_bundle(path):
        return [file]
    size, changed = stat_of(path)
    return [FoundTranscript(form or detect_format(path).NAME, path, size, changed)]


def _of_program(formats: list[str], since: int) -> list[FoundTranscript]:
    if not (found := find_transcripts(since=since, formats=formats)):
        title = get_format(formats[0]).TITLE
        raise NotFoundError(
            f"no transcripts of {title} were found on this machine",
            kind="file-not-found",
            hint="if they are somewhere else: wakelog import FILE or FOLDER",
        )
    return found


def _is_bundle(path: Path) -> bool:
    """True if a file is a bundle or has the name of one; importing it checks the rest."""
    with open_source(path) as file:
        return file.read(len(BUNDLE)) == BUNDLE or ".wakelog" in path.suffixes


def _offer(ctx: CommandContext, transcripts: list[FoundTranscript], *, yes: bool) -> bool:
    """Shows what was found on this machine, and asks."""
    if not ctx.is_for_people:
        if transcripts and not yes:
            ctx.confirm("Import them?", yes=False)
        return bool(transcripts)
    if not transcripts:
        ctx.say("No transcripts of coding agents were found on this machine.")
        ctx.suggest("wakelog import FILE", "wakelog demo", "wakelog enable claude-code")
        return False
    parts = [*counts_of(transcripts), "[read-only, nothing changed]"]
    for line in fold_list("Found on this machine: ", parts, ctx.columns):
        ctx.say(line)
    ctx.flush()
    if not yes:
        ctx.confirm("Import them?", yes=False, default=True)
    return True


def counts_of(transcripts: list[FoundTranscript]) -> list[str]:
    """How many transcripts each program has, and how large they are."""
    counts, sizes = Counter[str](), defaultdict[str, int](int)
    for transcript in transcripts:
        title = get_format(transcript.format).TITLE
        counts[title] += 1
        sizes[title] += transcript.size
    return [f"{title} {n:,} ({size(sizes[title])})" for title, n in counts.most_common()]


def _open_target(ctx: CommandContext, dry_run: bool, *, is_shared: bool) -> Store:
    """The store to import into. A dry run never creates one."""
    try:
        if is_shared:
            return ctx.shared_store(create=not dry_run)
        return ctx.store if dry_run else ctx.new_store()
    except NotFoundError:
        if not dry_run:
            raise
        return open_store("memory:")


# Transcripts


def _import_all(
    ctx: CommandContext,
    store: Store,
    sources: Sequence[FoundTranscript | str | ImportedFile],
    dry_run: bool,
    again: bool,
    *,
    is_watching: bool = False,
) -> list[ImportedFile]:
    """Imports the sources in order. A source that fails is reported, also if the fault is ours; it aborts the import
    only if it is the only one. Once the disk is full, the others are not tried."""
    results: list[ImportedFile] = []
    full = ""
    sizes = [source.size for source in sources if isinstance(source, FoundTranscript)]
    with rare_collection(), Progress(ctx, "importing, bytes", sum(sizes)) as progress:
        for source in sources:
            if isinstance(source, ImportedFile):
                results.append(source)
                continue
            if full:
                results.append(_failed(source, full))
                continue
            try:
                if isinstance(source, FoundTranscript):
                    results.append(_import_transcript(store, source, dry_run, again, progress))
                elif source.startswith(SERVERS):
                    results.append(_take_over(store, source, dry_run, again))
                else:
                    results.append(_import_bundle(ctx, store, source, dry_run))
            except WakelogError as exc:
                # A damaged transcript is reported like a damaged line of one, also if it is alone.
                is_damaged = isinstance(source, FoundTranscript) and exc.kind == "bad-transcript"
                if len(sources) == 1 and not is_damaged and not is_watching:
                    raise
                full = exc.message if exc.kind == "store-full" else ""
                results.append(_failed(source, exc.message, exc.hint if is_damaged else ""))
            except Exception as exc:
                # One file that wakelog cannot cope with must not keep the others out.
                if not isinstance(source, FoundTranscript) or (len(sources) == 1 and not is_watching):
                    raise
                problem, warning = f"{type(exc).__name__}: this should not happen", f"report: {fault_report(exc)}"
                results.append(_failed(source, problem, warning))
    if sizes and not dry_run:
        with rare_collection(), Progress(ctx, "indexed sessions") as progress:
            store.index.catch_up(lambda done, _: progress(max(0, done - progress.count)))
    return results


def _failed(source: FoundTranscript | str, problem: str, warning: str = "") -> ImportedFile:
    if isinstance(source, FoundTranscript):
        return ImportedFile(str(source.path), False, problem=problem, warning=warning, format=source.format)
    return ImportedFile(hide_password(source), False, problem=problem, warning=warning)


@contextlib.contextmanager
def rare_collection() -> Iterator[None]:
    """Runs the garbage collector less often. Records are many small objects without cycles; looking at them again and
    again costs a twentieth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(20_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _import_transcript(
    store: Store, transcript: FoundTranscript, dry_run: bool, again: bool, progress: Progress
) -> ImportedFile:
    takeover = takeover_of(transcript.format) if not dry_run else None
    if takeover is not None:
        report = takeover.take_over(store, str(transcript.path), again=again)
        progress(transcript.size)
        return _result(report)
    before = progress.count
    report = import_transcript(
        store, transcript.path, format=transcript.format, on_progress=progress, dry_run=dry_run, again=again
    )
    progress(max(0, transcript.size - (progress.count - before)))
    result = _result(report)
    if (framework := FRAMEWORKS.get(transcript.format)) and not dry_run:
        why = f"to continue them in {framework.title}, install it beside wakelog and import again"
        result = msgspec.structs.replace(result, warning=f"for reading; {why}: pip install {framework.install}")
    return result


def _take_over(store: Store, url: str, dry_run: bool, again: bool) -> ImportedFile:
    """Imports a database on a server, which only its framework can read."""
    format = framework_at(url)
    takeover = takeover_of(format)
    assert takeover is not None  # framework_at found it
    shown = hide_password(url)
    if dry_run:
        return ImportedFile(shown, True, format=format, warning=f"a database of {FRAMEWORKS[format].title}")
    return msgspec.structs.replace(_result(takeover.take_over(store, url, again=again)), file=shown)


def _result(report: ImportReport) -> ImportedFile:
    first = report.sessions[0] if report.sessions else None
    return ImportedFile(
        report.file,
        True,
        session=first.session if first else "",
        name=first.name if first else "",
        new_events=sum(s.events for s in report.sessions),
        format=report.format,
        records=report.new_records,
        turns=sum(s.turns for s in report.sessions),
        broken=report.broken,
        broken_count=report.broken_count,
        sessions=tuple(s.name for s in report.sessions),
        changed=tuple(s.name for s in report.sessions if s.events),
        deleted=report.deleted,
        gone_on=report.gone_on,
    )


def _watch(
    ctx: CommandContext,
    store: Store,
    transcripts: list[FoundTranscript],
    results: list[ImportedFile],
    files: tuple[str, ...],
    form: str,
    since: int,
) -> None:
    """Imports what is written, as it is written. Reads a file again when its size or time of change differs, and now
    and then if the store could not take it: the file may never change again."""
    seen = {f.path: (f.size, f.changed) for f in transcripts}
    refused = {result.file: result.problem for result in results if _is_refused(result)}
    ctx.say("Watching; press Ctrl-C to stop.")
    ctx.flush()
    with contextlib.suppress(KeyboardInterrupt):
        for count in itertools.count(1):
            time.sleep(WATCH_S)
            try:
                now = _sources(files, form, since) if files else find_transcripts(since=since)
            except WakelogError:
                continue  # its program replaces the file just now
            known = [source for source in now if isinstance(source, FoundTranscript)]
            again = refused if count % RETRY_ROUNDS == 0 else {}
            changed = [f for f in known if seen.get(f.path) != (f.size, f.changed) or str(f.path) in again]
            seen |= {f.path: (f.size, f.changed) for f in changed}
            for result in _import_all(ctx, store, changed, False, False, is_watching=True) if changed else ():
                before = refused.pop(result.file, "")
                if _is_refused(result):
                    refused[result.file] = result.problem
                if result.new_events or (not result.ok and result.problem != before):
                    _show_one(ctx, result)
            ctx.flush()


def _is_refused(result: ImportedFile) -> bool:
    """Whether a file failed for a reason outside of it. Damage comes with advice."""
    return not result.ok and not result.warning


# Bundles


def _import_bundle(ctx: CommandContext, store: Store, file: str, dry_run: bool) -> ImportedFile:
    total = Path(file).stat().st_size if Path(file).is_file() else 0
    with reading_from(file) as raw, Progress(ctx, f"reading {Path(file).name}, bytes", total) as progress:
        bundle = store.import_bundle(cast(IO[bytes], _CountedReader(raw, progress)), dry_run=dry_run)
    head = bundle.head
    return ImportedFile(file, True, head.session, head.name, head.seq, bundle.new_events, warning=bundle.warning)


class _CountedReader:
    """A stream that reports progress, also while everything is read in one call."""

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


# What people see


def _show(ctx: CommandContext, results: list[ImportedFile], dry_run: bool) -> None:
    many = len(results) > SHOWN_MAX
    known = sum(result.is_known for result in results)
    same = Counter(result.problem for result in results if _is_refused(result))
    told = set[str]()
    for result in results:
        is_told = result.problem in told if not result.ok else result.is_known and known > KNOWN_MAX
        is_quiet = result.ok and many and not result.broken_count
        if not (is_told or is_quiet):
            _show_one(ctx, result)
        if same[result.problem] > KNOWN_MAX:
            told.add(result.problem)
    for problem in sorted(told):
        more = f"and {same[problem] - 1:,} more files, for the same reason; import again when it is solved"
        ctx.say(f"{ctx.mark(False)} {more}")
    if known > KNOWN_MAX and not many:
        ctx.say(f"{ctx.mark(True)} {known} files: everything was there already")
    if many:
        changed = {name for r in results for name in r.changed or ((r.session,) if r.new_events else ())}
        turns, events = sum(r.turns for r in results), sum(r.new_events for r in results)
        news = f"{pluralize(turns, 'new turn')} and {pluralize(events, 'new event')}"
        news += f" in {pluralize(len(changed), 'session')}"
        ctx.say(f"{news if events else 'nothing new'}, from {len(results):,} files")
        if deleted := sum(len(r.deleted) for r in results):
            ctx.say(f"{_sessions_were(deleted)} deleted before and left out; --again imports them again")
    if dry_run:
        ctx.say("This was a dry run: nothing was imported.")


def _show_one(ctx: CommandContext, result: ImportedFile) -> None:
    file = inert_line(result.file)
    if not result.ok:
        ctx.say(f"{ctx.mark(False)} {file}: {inert_line(result.problem).removeprefix(f'{file} ')}")
        if result.warning:
            ctx.say(f"  {inert_line(result.warning)}")
        return
    mark = ctx.mark(True) if not result.broken_count else ctx.style("!", fg="yellow")
    name = inert_line(result.name or result.session)
    if result.deleted and not name:
        name = inert_line(name_some(result.deleted, 1))
        ctx.say(f"{mark} {file}: {name}, deleted before and left out; --again imports it again")
        return
    if result.format == "bundle":
        what = f"{result.new_events:,} new of {result.events:,} events"
    else:
        what = f"{pluralize(result.turns, 'new turn')}, {pluralize(result.new_events, 'event')}"
        if len(result.sessions) > 1:
            name += f" and {len(result.sessions) - 1} more"
    news = (
        f": {name}, {what if result.new_events else 'everything was there already'}" if name else ": it has no session"
    )
    # The mark and a space come before the file.
    room = len(file) if ctx.is_piped else max(FILE_MIN, ctx.columns - 2 - width(news))
    ctx.say(f"{mark} {fit_path(file, room)}{news}")
    if result.deleted:
        ctx.say(f"  {_sessions_were(len(result.deleted))} deleted before and left out; --again imports them again")
    if result.gone_on:
        has = "has" if len(result.gone_on) == 1 else "have"
        ctx.say(f"  {inert_line(', '.join(result.gone_on[:3]))} {has} gone on here since, and stay as they are")
    if result.warning:
        ctx.say(f"  {inert_line(result.warning)}")
    for why in result.broken:
        ctx.say(f"  {inert_line(why)}; kept as it is")
    if result.broken_count > len(result.broken):
        ctx.say(f"  and {result.broken_count - len(result.broken):,} more that could not be read; kept as they are")


def _sessions_were(sessions: int) -> str:
    return f"{sessions:,} session{' was' if sessions == 1 else 's were'}"
