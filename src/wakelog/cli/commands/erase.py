"""`wakelog erase` and `redact`: erase the content of events, here and in every fork."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import PARTIAL
from wakelog.cli.options import all_sessions_option, session_argument, yes_option
from wakelog.cli.output import Progress
from wakelog.cli.render.sessions import label
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import inert_line, name_some
from wakelog.errors import InvalidInputError
from wakelog.model.events import REMOVAL_KINDS
from wakelog.model.ids import SessionId
from wakelog.model.short_text import pluralize
from wakelog.session import Session
from wakelog.store.erasure import (
    Erasure,
    Follower,
    FoundSecret,
    erase_all,
    followers,
    refuse_any_held,
    scan,
)

MAX_SHOWN = 20
MAX_SECRETS = 40


@click.command("erase")
@click.argument("selectors", metavar="SEL...", nargs=-1, required=True, shell_complete=complete_selector)
@click.option("--why", required=True, metavar="TEXT", help="Say who asked for it, and why; kept in the log.")
@click.option("--cascade", is_flag=True, help="Also erase events that are recorded as derived from these.")
@click.option("--dry-run", is_flag=True, help="Show what would be erased, and stop.")
@yes_option
@common
def erase_command(
    ctx: CommandContext, selectors: tuple[str, ...], why: str, cascade: bool, dry_run: bool, yes: bool
) -> int:
    """Erase the content of events: in this session, in every fork and session that shares them, in the index and in the
    files. Headers stay, so that the chain still verifies. Keys and paths stay too and are listed. This cannot be
    undone.

    Examples:
      wakelog erase -s fix-bug e12 e15 --why "customer asked" --dry-run
      wakelog erase fix-bug@3 --why "ticket 42" --cascade --yes
    """
    session, targets, skipped = _targets(ctx, selectors)
    dependents = followers(session.log, targets) if cascade and targets else []
    seqs = _by_holder(session, targets, dependents)
    erasure = erase_all(ctx.store, [session.log], seqs, dry_run=True)
    if ctx.is_for_people:
        _show(ctx, session, targets, dependents, skipped)
        _show_reach(ctx, session, seqs, erasure)
    done = bool(targets) and not dry_run
    if done:
        ctx.confirm(f"Erase {_count(erasure)} for good?", yes=yes)
        erasure = erase_all(ctx.store, [session.log], seqs, why=why, by="wakelog erase")
    data = {
        "session": session.id,
        "name": session.name,
        "events": [{"seq": e[0], "kind": e[1], "turn": e[2]} for e in targets.values()],
        "cascade": msgspec.to_builtins(dependents),
        "passed_over": [{"seq": seq, "why": reason} for seq, reason in skipped.items()],
        "erased": done,
        "changes": erasure.events,
        "names": erasure.names,
        "pending": erasure.pending,
    }
    ctx.answer("erase", data, lambda: _say_end(ctx, done, dry_run, erasure))
    return PARTIAL if done and (skipped or erasure.pending) else 0


def say_left(ctx: CommandContext, erasure: Erasure) -> None:
    """Prints what an erasure leaves behind: names, and old bytes that somebody is still reading."""
    if erasure.names:
        ctx.say(f"  names stay: {inert_line(name_some(erasure.names, MAX_SHOWN))}")
        ctx.say("  if a name itself tells too much, only deleting the session removes it (wakelog delete)")
    if erasure.pending:
        ctx.say(f"{ctx.style('·', fg='yellow')} {inert_line(erasure.pending)}")


def _count(erasure: Erasure) -> str:
    return pluralize(sum(map(len, erasure.events.values())), "event")


def _say_end(ctx: CommandContext, done: bool, dry_run: bool, erasure: Erasure) -> None:
    if done:
        ctx.say(f"Erased {_count(erasure)}; wakelog verify still holds.")
        say_left(ctx, Erasure({}, (), erasure.pending))
    else:
        ctx.say("This was a dry run: nothing was erased." if dry_run else "Nothing to erase.")


def _show_reach(ctx: CommandContext, session: Session[Any], seqs: dict[SessionId, list[int]], erasure: Erasure) -> None:
    """Prints where else the content is erased: in forks, in sessions that adopted it, in events that repeat it."""
    for other, changed in erasure.events.items():
        extra = [f"e{seq}" for seq in changed if seq not in seqs.get(other, ())]
        if extra or other not in seqs:
            where = "here too" if other == session.id else f"in {inert_line(ctx.name_of(other))}"
            ctx.say(f"  {where}: {', '.join(extra[:MAX_SHOWN]) or 'its state'}{' …' if len(extra) > MAX_SHOWN else ''}")
    say_left(ctx, erasure)


def _targets(
    ctx: CommandContext, selectors: tuple[str, ...]
) -> tuple[Session[Any], dict[int, tuple[int, str, int]], dict[int, str]]:
    """The session, the events to erase, and the events that cannot be erased, with the reason."""
    session: Session[Any] | None = None
    targets: dict[int, tuple[int, str, int]] = {}
    skipped: dict[int, str] = {}
    for text in selectors:
        place = ctx.place(text)
        found = place.session
        if session is not None and found.id != session.id:
            raise InvalidInputError(
                "erase works on one session at a time",
                kind="erase-across-sessions",
                hint="run the command once for each session",
            )
        session = session or found
        if not place.text:
            raise click.UsageError(f"{text!r} names no event: say e12, {found}@3 or @3..@4")
        span = place.span
        for entry in found.log.entries(after=max(span.first - 1, 0), upto=span.last):
            if entry.kind in REMOVAL_KINDS:
                skipped[entry.seq] = "it records a removal, and cannot be erased"
            elif not entry.record.body:
                skipped[entry.seq] = "it was pruned"
            elif not entry.is_intact:
                skipped[entry.seq] = "it is erased already"
            else:
                targets[entry.seq] = (entry.seq, entry.kind, entry.header.turn)
    assert session is not None
    return session, targets, skipped


def _by_holder(session: Session[Any], targets: Iterable[int], dependents: list[Follower]) -> dict[SessionId, list[int]]:
    """The events by the session that stores them."""
    out: dict[SessionId, list[int]] = {}
    for seq in targets:
        out.setdefault(session.log.holder_of(seq), []).append(seq)
    for event in dependents:
        if event.kind not in REMOVAL_KINDS:
            out.setdefault(event.session, []).append(event.seq)
    return out


def _show(
    ctx: CommandContext,
    session: Session[Any],
    targets: dict[int, tuple[int, str, int]],
    dependents: list[Follower],
    skipped: dict[int, str],
) -> None:
    ctx.say(f"{ctx.style(f'Erase from {label(session)}', bold=True)}  the content of:")
    for seq, kind, turn in list(targets.values())[:MAX_SHOWN]:
        ctx.say(f"  e{seq:<7}{f'@{turn}' if turn else '':<6}{kind}")
    if len(targets) > MAX_SHOWN:
        ctx.say(f"  and {len(targets) - MAX_SHOWN} more")
    for event in dependents[:MAX_SHOWN]:
        other = "" if event.session == session.id else f"  in {inert_line(ctx.name_of(event.session))}"
        where = f"@{event.turn}" if event.turn else ""
        ctx.say(f"  e{event.seq:<7}{where:<6}{event.kind:<20} because it names e{event.named}{other}")
    if len(dependents) > MAX_SHOWN:
        ctx.say(f"  and {len(dependents) - MAX_SHOWN} more that depend on them")
    for seq, reason in skipped.items():
        ctx.say(f"  e{seq:<7}skipped: {reason}")
    ctx.say("  headers and hashes stay; there is no way back")


@click.command("redact")
@session_argument
@all_sessions_option
@click.option("--dry-run", is_flag=True, help="Show what was found, and stop.")
@yes_option
@common
def redact_command(ctx: CommandContext, session: str, everything: bool, dry_run: bool, yes: bool) -> None:
    """Find secrets in stored events (keys, tokens, passwords) and erase those events. It reports the kind and place of
    each secret, and never shows it. Also change every secret that was stored.

    Examples:
      wakelog redact fix-bug --dry-run
      wakelog redact --all --yes
    """
    sessions = [ctx.store.resume(h.session) for h in ctx.store.sessions()] if everything else [ctx.session(session)]
    secrets = _scan(ctx, sessions)
    if ctx.is_for_people:
        _show_secrets(ctx, secrets)
    done, erasure = bool(secrets) and not dry_run, Erasure({}, ())
    if done:
        seqs: dict[SessionId, list[int]] = {}
        for secret in secrets:
            seqs.setdefault(secret.session, []).append(secret.seq)
        refuse_any_held(ctx.store, seqs)  # before anybody is asked
        ctx.confirm(f"Erase {len(secrets)} events for good?", yes=yes)
        logs = [session.log for session in sessions]
        erasure = erase_all(ctx.store, logs, seqs, why="a secret was found in it", by="wakelog redact")
    facts = {"found": msgspec.to_builtins(secrets), "sessions": len(sessions), "erased": done}
    data = {**facts, "names": erasure.names, "pending": erasure.pending}
    ctx.answer("redact", data, lambda: _say_redacted(ctx, bool(secrets), len(sessions), erasure, dry_run))


def _say_redacted(ctx: CommandContext, found: bool, sessions: int, erasure: Erasure, dry_run: bool) -> None:
    if not found:
        ctx.say(f"No secrets were found in {pluralize(sessions, 'session')}.")
    elif dry_run:
        ctx.say("This was a dry run: nothing was erased.")
    else:
        ctx.say(f"Erased {_count(erasure)}. Change the secrets where they are used: they were stored in clear.")
        say_left(ctx, erasure)


def _scan(ctx: CommandContext, sessions: list[Session[Any]]) -> list[FoundSecret]:
    out: dict[tuple[str, int], FoundSecret] = {}
    with Progress(ctx, "scanned events", sum(s.head.seq for s in sessions)) as progress:
        for session in sessions:
            # Forks share events; each is listed once, for the session that stores it.
            out.update({(f.session, f.seq): f for f in scan(session.log, scanned=progress)})
    return list(out.values())


def _show_secrets(ctx: CommandContext, secrets: list[FoundSecret]) -> None:
    last = ""
    for secret in secrets[:MAX_SECRETS]:
        if secret.session != last:
            ctx.say(ctx.style(inert_line(ctx.name_of(secret.session)), bold=True))
            last = secret.session
        where = f"@{secret.turn}" if secret.turn else ""
        ctx.say(f"  e{secret.seq:<7}{where:<6}{secret.kind:<20}{inert_line(', '.join(secret.markers))}")
    if len(secrets) > MAX_SECRETS:
        ctx.say(f"  and {len(secrets) - MAX_SECRETS} more")
