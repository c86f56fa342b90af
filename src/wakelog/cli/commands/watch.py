"""`wakelog watch` and `flag`: check live sessions with rules, and manage the flags that rules and people raise."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import NO
from wakelog.cli.options import named_session, session_argument
from wakelog.cli.render.flags import COLORS, FLAG_COLUMNS, SEVERITIES, RaisedFlag, flag_cells, flags_of, plain_flag
from wakelog.cli.render.sessions import handle, identity, label
from wakelog.cli.render.table import lay_out, say_table
from wakelog.cli.text import clock, fit, glyph, inert, inert_line, pad, width
from wakelog.errors import CorruptLogError, NotFoundError, UnavailableError
from wakelog.model.short_text import pluralize
from wakelog.monitors.monitor import RaisedFinding
from wakelog.monitors.rules import Given, load_rules
from wakelog.monitors.store_watch import Watcher, WatchTrouble
from wakelog.session import Session

NEWS_WAIT_S, TICK_S, RETRY_S = 0.5, 5.0, 5.0


@click.command("watch")
@session_argument
@click.option("-A", "--all", "everything", is_flag=True, help="Watch closed and archived sessions too.")
@click.option("--once", is_flag=True, help="Check once and stop; the exit code is 1 when a flag is raised.")
@click.option("--pause", is_flag=True, help="Let rules pause the session.")
@click.option("--rules", "places", multiple=True, metavar="M:A", help="Add your own rules: module:attribute.")
@click.option("--known-errors", "known", is_flag=True, help="Flag errors that ended before, with what came before.")
@click.option("--dry-run", is_flag=True, help="Show what would be flagged, and write nothing.")
@common
def watch_command(
    ctx: CommandContext,
    session: str,
    everything: bool,
    once: bool,
    pause: bool,
    places: tuple[str, ...],
    known: bool,
    dry_run: bool,
) -> int:
    """Watch all live sessions, or SESSION, and flag problems: a call that keeps failing or repeating,
    untrusted content that reaches a call with effects, a retry that did something else, a budget that is nearly spent,
    silence, a lease that was taken over, something evicted that is still pending, secrets.

    A flag is an event in the session's log. It is raised once, however often you start this command. A session that
    reaches its budget is paused; other rules pause it only with --pause. With --json or --ndjson, each finding is one
    record a line.

    Examples:
      wakelog watch
      wakelog watch fix-bug --pause
      wakelog watch --once --all
      wakelog watch --rules my_rules:too_many_files
    """
    own: list[Given] = [rule for place in places for rule in load_rules(place)]
    own += [ctx.store.known.known_error] if known else []
    chosen = ctx.session(session) if session or ctx.names_session else None
    watcher = ctx.store.watch(
        *own,
        beside=True,
        pause=True if pause else None,
        session=chosen.id if chosen else "",
        ended=everything,
        writes=not dry_run,
    )
    if once:
        return _once(ctx, watcher, chosen, everything, dry_run)
    ctx.use_pager = False
    _follow(ctx, watcher)
    return 0


def _once(ctx: CommandContext, watcher: Watcher, chosen: Session[Any] | None, everything: bool, dry_run: bool) -> int:
    raised = [*_findings(ctx, watcher.look()), *_findings(ctx, watcher.tick())]
    new = {(r.session, r.finding.flag) for r in raised}
    results = {(s.id, flag.name): (s, flag) for s, flag in _raised_flags(ctx, chosen, everything)}
    for result in raised if dry_run else ():
        key = (result.session, result.finding.flag)
        if result.finding.is_over:
            results.pop(key, None)
        else:
            results[key] = (ctx.store.resume(result.session), _flag(result))
    flags = dict(sorted(results.items(), key=lambda item: SEVERITIES.index(item[1][1].severity)))

    def human() -> None:
        rows = [flag_cells(ctx, str(s), flag) for s, flag in flags.values()]
        if rows:
            say_table(ctx, FLAG_COLUMNS, rows)
        count = len(new & set(flags))
        ctx.say(f"{pluralize(len(flags), 'flag')}, {count} of them new" if flags else "no problems found")
        for session in [r.session for r in raised if r.has_paused]:
            ctx.say(f"{inert_line(ctx.name_of(session))} is paused")

    data = [{**plain_flag(s, flag), "is_new": key in new} for key, (s, flag) in flags.items()]
    ctx.answer("watch", data, human)
    if flags and not dry_run:
        first, flag = next(iter(flags.values()))
        ctx.suggest(f"wakelog log {handle(first)} --events", f"wakelog flag clear {handle(first)} {flag.name} -m …")
    return NO if flags else 0


def _raised_flags(
    ctx: CommandContext, chosen: Session[Any] | None, everything: bool
) -> Iterator[tuple[Session[Any], RaisedFlag]]:
    """The raised flags of the chosen session, or of all. A session that cannot be read is reported and left out."""
    if chosen is not None:
        yield from ((chosen, flag) for flag in flags_of(chosen))
        return
    for info in ctx.store.index.every_session(live=None if everything else True):
        if not info.flags:
            continue
        try:
            session = ctx.store.resume(info.id)
            flags = flags_of(session)
        except (NotFoundError, CorruptLogError) as exc:
            ctx.warn(f"{label(info)} cannot be read: {inert(exc.message)}")
        else:
            yield from ((session, flag) for flag in flags)


def _follow(ctx: CommandContext, watcher: Watcher) -> None:
    """Watches until Ctrl-C. What cannot be read is reported and tried again, so that the rest is still watched."""
    due = 0.0
    while True:
        try:
            for result in _findings(ctx, watcher.look()):
                _say_finding(ctx, result)
            if time.monotonic() >= due:
                ctx.take_in_hooks()
                for result in _findings(ctx, watcher.tick()):
                    _say_finding(ctx, result)
                due = time.monotonic() + TICK_S
            watcher.wait(NEWS_WAIT_S)
        except (UnavailableError, CorruptLogError, NotFoundError) as exc:
            ctx.warn(f"{inert(exc.message)}; trying again")
            time.sleep(RETRY_S)


def _findings(ctx: CommandContext, found: Iterator[RaisedFinding | WatchTrouble]) -> Iterator[RaisedFinding]:
    """The findings; warns about sessions that cannot be watched."""
    for result in found:
        if isinstance(result, RaisedFinding):
            yield result
        else:
            ctx.warn(f"{inert_line(ctx.name_of(result.session))} cannot be watched: {inert(result.message)}")


def _say_finding(ctx: CommandContext, result: RaisedFinding) -> None:
    finding, name = result.finding, ctx.name_of(result.session)
    if not ctx.is_for_people:
        session = ctx.store.resume(result.session)
        record = {**plain_flag(session, _flag(result)), "is_over": finding.is_over, "has_paused": result.has_paused}
        ctx.record("watch", record)
        return
    word = f"{glyph('done')} cleared" if finding.is_over else f"{glyph('warn')} {finding.severity}"
    color = "green" if finding.is_over else COLORS.get(finding.severity, "white")
    end = f"  {glyph('paused')} paused" if result.has_paused else ""
    when = clock(ctx.store.clock(), utc=ctx.utc, long=True)[11:]
    column = 20 if ctx.columns >= 90 else 10
    front = f"{when} {pad(name, column)} {ctx.style(pad(word, 9), fg=color)} e{result.cause:<6} "
    room = ctx.columns - width(click.unstyle(front)) - width(end)
    ctx.say(f"{front}{fit(f'{finding.flag}: {finding.message}', room)}{end}")
    ctx.flush()


def _flag(result: RaisedFinding) -> RaisedFlag:
    finding = result.finding
    return RaisedFlag(
        name=finding.flag,
        rule=result.rule,
        severity=finding.severity,
        message=finding.message,
        seq=result.seq,
        cause=result.cause,
        at=0,
        targets=finding.targets,
        count=finding.count,
    )


@click.group("flag")
def flag_command() -> None:
    """List, raise and clear flags. A flag points at something in a session that needs attention. Rules raise flags
    (`wakelog watch`), and so can you. A flag stays until it no longer applies or is cleared.

    Examples:
      wakelog flag ls
      wakelog flag add fix-bug odd-answer -m "who is Bob?" --on e42
      wakelog flag clear fix-bug loop:search:ab12cd34 -m "it was polling"
    """


@flag_command.command("ls")
@session_argument
@click.option("-A", "--all", "everything", is_flag=True, help="Include closed and archived sessions.")
@common
def ls(ctx: CommandContext, session: str, everything: bool) -> int:
    """List the raised flags of all live sessions, or of SESSION. The exit code is 1 when there are none.

    Example:
      wakelog flag ls --json
    """
    chosen = ctx.session(session) if session or ctx.names_session else None
    results = [*_raised_flags(ctx, chosen, everything)]
    rows = [flag_cells(ctx, str(s), flag) for s, flag in results]
    data = [plain_flag(s, flag) for s, flag in results]
    return ctx.answer_found("flags", data, data, lambda: lay_out(ctx, FLAG_COLUMNS, rows), "no flag is raised")


@flag_command.command("add")
@named_session
@click.argument("name")
@click.option("-m", "--message", default="", metavar="TEXT", help="Say what to look at.")
@click.option("--on", default="", metavar="SEL", help="Name the event it is about, such as e42 or @5.")
@click.option(
    "--severity",
    type=click.Choice(["info", "warning", "error", "alarm"]),
    default="warning",
    show_default=True,
    help="Say how serious it is.",
)
@common
def add(ctx: CommandContext, session: str, name: str, message: str, on: str, severity: Any) -> None:
    """Raise a flag on a session, or on one of its events.

    Example:
      wakelog flag add fix-bug odd-answer -m "who is Bob?" --on e42
    """
    found = ctx.session(session)
    seq = found.monitors.flag(name, message, severity=severity, on=on or None)
    _answer_flag(ctx, found, name, seq, "flagged")


@flag_command.command("clear")
@named_session
@click.argument("name", metavar="FLAG")
@click.option(
    "-m", "--message", "why", required=True, metavar="TEXT", help="Say why it no longer applies; kept in the log."
)
@common
def clear(ctx: CommandContext, session: str, name: str, why: str) -> None:
    """Clear a flag. The log keeps what raised it, and that it was cleared and why.

    Example:
      wakelog flag clear fix-bug loop:search:ab12cd34 -m "it was polling"
    """
    found = ctx.session(session)
    seq = found.monitors.clear_flag(name, why=why)
    _answer_flag(ctx, found, name, seq, "cleared")


def _answer_flag(ctx: CommandContext, session: Session[Any], name: str, seq: int, done: str) -> None:
    data = {**identity(session), "flag": name, "seq": seq}
    ctx.answer("flag", data, f"{label(session)}: {inert_line(name)} is {done}, as e{seq}")
