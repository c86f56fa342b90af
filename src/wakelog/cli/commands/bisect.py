"""`wakelog bisect`: finds the first bad turn.

The search is kept between commands in a file of the user's data folder, one for each store. A test command gets the
state at a point on stdin and in a file, and the captured files in a folder. Its exit code is the verdict, as for
`git bisect run`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import NO
from wakelog.cli.output import writing
from wakelog.cli.render.changes import change_lines
from wakelog.cli.render.sessions import handle
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import inert_line
from wakelog.config.folders import data_folder
from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError
from wakelog.model.short_text import pluralize
from wakelog.session import Session
from wakelog.session.bisection import Bisected, Bisection, BisectPoint, Mark

SKIP, TEST_FAILED = 125, 126
"""Exit codes of a test: 0 good, 1 to 124 bad, 125 skip, 126 and above: the test itself failed."""


@click.group("bisect")
def bisect_command() -> None:
    """Find the first bad turn of a session, in a few tests instead of one for each turn.

    Say which point is bad and which was still good. Then let a command test the turns between them, or look at each
    yourself and say good, bad or skip. The result is the first bad turn, what it changed, and why.

    Examples:
      wakelog bisect start fix-bug@ @3
      wakelog bisect run ./check.sh
    """


@bisect_command.command("start")
@click.argument("bad", shell_complete=complete_selector)
@click.argument("good", shell_complete=complete_selector)
@common
def bisect_start(ctx: CommandContext, bad: str, good: str) -> int:
    """Start a search between a bad point and an earlier good one. @0 is before the first event.

    Examples:
      wakelog bisect start fix-bug@ @3
      wakelog bisect start @12 @0
    """
    path = _search_file(ctx)
    if path.exists():
        raise NotAllowedError(
            "a search is under way in this store", kind="bisect-open", hint="wakelog bisect reset ends it"
        )
    where = ctx.place(bad)
    ctx.use_session(where.session)
    other = ctx.place(good)
    if where.is_range or other.is_range:
        raise click.UsageError("BAD and GOOD are points, not ranges")
    if other.session.id != where.session.id:
        raise click.UsageError("BAD and GOOD are points of one session")
    session = where.session
    search = session.history.start_bisect(where.text or None, other.text or None)
    _save(path, search)
    return _answer(ctx, session, search)


def _add_verdict(verdict: Mark, text: str) -> None:
    @bisect_command.command(verdict, help=f"{text}\n\nExample:\n  wakelog bisect {verdict}")
    @common
    def command(ctx: CommandContext) -> int:
        search = _load(ctx).mark(verdict)
        _save(_search_file(ctx), search)
        return _answer(ctx, ctx.store.resume(search.session), search)


_add_verdict("good", "Mark the point to test as good, and continue.")
_add_verdict("bad", "Mark the point to test as bad, and continue.")
_add_verdict("skip", "Skip a point that cannot be tested. Another one near it is next.")


@bisect_command.command("log")
@common
def bisect_log(ctx: CommandContext) -> int:
    """Show the verdicts so far, and the next point to test.

    Example:
      wakelog bisect log
    """
    search = _load(ctx)
    return _answer(ctx, ctx.store.resume(search.session), search)


@bisect_command.command("reset")
@common
def bisect_reset(ctx: CommandContext) -> None:
    """End the search, and forget its verdicts. Nothing in the session changes.

    Example:
      wakelog bisect reset
    """
    path = _search_file(ctx)
    is_open = path.exists()
    with contextlib.suppress(OSError):
        path.unlink()
    ctx.answer("bisect-reset", {"was_open": is_open}, "The search is over." if is_open else "There was no search.")


@bisect_command.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--in-files", is_flag=True, help="Run the command in the folder with the captured files.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@common
def bisect_run(ctx: CommandContext, in_files: bool, command: tuple[str, ...]) -> int:
    """Test points with a command until the first bad turn is found.

    The command gets the state at the point as JSON on its standard input and in the file $WAKELOG_BISECT_STATE, and
    the captured files that the session changed in the folder $WAKELOG_BISECT_FILES. Exit code 0
    means good, 1 to 124 bad, 125 skip. Anything else stops the search, and nothing is marked. What the command prints
    goes to the error output.

    Examples:
      wakelog bisect run jq -e '.facts.region.value == "eu"'
      wakelog bisect run --in-files -- python -m pytest -q
    """
    search = _load(ctx)
    session = ctx.store.resume(search.session)
    while (point := search.next) is not None:
        code = _test(ctx, session, point, command, in_files)
        if code < 0 or code >= TEST_FAILED:
            ended = f"by signal {-code}" if code < 0 else f"with {code}"
            raise InvalidInputError(
                f"the command ended {ended} at {point.place}: the test itself failed, and nothing was marked",
                kind="bisect-command",
                hint="exit codes: 0 good, 1 to 124 bad, 125 skip",
            )
        search = search.mark("good" if code == 0 else "skip" if code == SKIP else "bad")
        _save(_search_file(ctx), search)
        if ctx.is_for_people and not ctx.quiet:
            click.echo(f"{point.place} is {search.judged[-1].verdict}", err=True)
    return _answer(ctx, session, search)


def _test(
    ctx: CommandContext, session: Session[Any], point: BisectPoint, command: tuple[str, ...], in_files: bool
) -> int:
    """Runs the command at a point; returns its exit code."""
    with tempfile.TemporaryDirectory(prefix="wakelog-bisect-") as name:
        folder = Path(name)
        files = folder / "files"
        files.mkdir()
        checkout = session.files.checkout(point.seq, files)
        if checkout.missing and in_files and not ctx.quiet:
            ctx.warn(f"{len(checkout.missing)} files at {point.place} could not be written: {checkout.missing[0][1]}")
        state = msgspec.json.encode(session.log.state(point.seq) if point.seq else {})
        (folder / "state.json").write_bytes(state)
        words = list(command)
        if in_files and os.sep in words[0]:
            words[0] = os.path.abspath(words[0])
        variables = {
            "WAKELOG_BISECT_SESSION": session.id,
            "WAKELOG_BISECT_TURN": str(point.turn),
            "WAKELOG_BISECT_EVENT": str(point.seq),
            "WAKELOG_BISECT_STATE": str(folder / "state.json"),
            "WAKELOG_BISECT_FILES": str(files),
        }
        try:
            # stdout is for our answer only. Like `git bisect`, a command that cannot be started stops the search.
            return subprocess.run(
                words,
                input=state,
                stdout=sys.stderr.fileno(),
                cwd=files if in_files else None,
                env={**os.environ, **variables},
                check=False,
            ).returncode
        except OSError as exc:
            raise NotFoundError(f"{words[0]} cannot be started: {exc.strerror}", kind="no-command") from exc


def _answer(ctx: CommandContext, session: Session[Any], search: Bisection) -> int:
    """Answers with the next point to test, or the result. Exit code 1 if the first bad turn cannot be determined."""
    point = search.next
    bisection = session.history.end_bisect(search) if point is None else None
    data = {
        "session": session.id,
        "name": session.name,
        "next": point,
        "left": search.left,
        "good": search.good,
        "bad": search.bad,
        "judged": search.judged,
        "first_bad": bisection and bisection.first_bad,
        "suspects": bisection.suspects if bisection else [],
        "change": (bisection and bisection.change) or None,
    }

    def human() -> None:
        if point is not None:
            steps = pluralize(search.left.bit_length(), "step")
            ctx.say(f"{search.left} to test, about {steps}. Next: {handle(session)}{_at(point)}")
        elif bisection is not None:
            _show(ctx, session, bisection)

    ctx.answer("bisect", data, human)
    if point is not None:
        place = f"{handle(session)}{_at(point)}"
        ctx.suggest(f"wakelog state --at {place}", "wakelog bisect good|bad|skip", "wakelog bisect run CMD")
    else:
        ctx.suggest("wakelog bisect reset")
    return NO if bisection is not None and bisection.first_bad is None else 0


def _at(point: BisectPoint) -> str:
    return point.place if point.place.startswith("@") else f"@{point.place}"


def _show(ctx: CommandContext, session: Session[Any], bisection: Bisected) -> None:
    if bisection.first_bad is None or bisection.change is None:
        places = ", ".join(point.place for point in bisection.suspects)
        ctx.say(f"The first bad one is one of {places}; the points between could not be tested.")
        return
    bad = bisection.first_bad
    ctx.say(ctx.style(f"{handle(session)}{_at(bad)} is the first bad one", bold=True) + f"  (e{bad.seq})")
    if bad.turn:
        entry = next((e for e in session.events(turn=bad.turn, kind="turn.started")), None)
        if entry is not None and isinstance(entry.body.get("input"), str):
            ctx.say(f"  asked     {inert_line(entry.body['input'])[:200]}")
    lines = list(change_lines(ctx, bisection.change, {}, indent="  "))
    ctx.say_all(lines or ["  it changed nothing in the state"])


def _search_file(ctx: CommandContext) -> Path:
    """The file of the search in this store."""
    url = ctx.url if "://" in ctx.url else os.path.abspath(ctx.url)
    return Path(data_folder()) / "bisect" / f"{hashlib.sha256(url.encode()).hexdigest()[:24]}.json"


def _load(ctx: CommandContext) -> Bisection:
    path = _search_file(ctx)
    try:
        return msgspec.json.decode(path.read_bytes(), type=Bisection)
    except FileNotFoundError as exc:
        raise NotFoundError(
            "no search is under way in this store", kind="no-bisect", hint="wakelog bisect start BAD GOOD"
        ) from exc
    except (OSError, msgspec.DecodeError) as exc:
        raise InvalidInputError(
            f"the search in {path} cannot be read", kind="bad-bisect", hint="wakelog bisect reset, and start again"
        ) from exc


def _save(path: Path, search: Bisection) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as exc:
        raise NotAllowedError(f"{path.parent} cannot be created: {exc.strerror}", kind="not-writable") from exc
    with writing(path, force=True) as out:
        out.write(msgspec.json.encode(search))
