"""`wakelog verify` and `anchor`: was it altered?"""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.output import writing
from wakelog.cli.shell_completion import complete_session
from wakelog.cli.text import inert
from wakelog.errors import InvalidInputError
from wakelog.log.verify import VerifyReport
from wakelog.model.records import Anchor

INTEGRITY = 4
STORE = "the store itself"


@click.command("verify")
@click.argument("session", required=False, default="", shell_complete=complete_session)
@click.option("-A", "--all", "everything", is_flag=True, help="Include all sessions of the store.")
@click.option(
    "--against",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Compare with an anchor that was kept elsewhere.",
)
@common
def verify_command(ctx: CommandContext, session: str, everything: bool, against: Path | None) -> int:
    """Check whether a session was altered: every byte against its hash, the chain, and what is derived from it.

    The exit code is 4 when a check fails. Without an anchor, a cut at the newest events cannot be detected.

    \b
    Examples:
      wakelog verify fix-auth
      wakelog verify --all
    """
    anchor = _read_anchor(against) if against else None
    if everything and anchor is not None:
        raise click.UsageError("an anchor belongs to one session: leave out --all")
    ctx.even_damaged = True
    if everything:
        reports = list(ctx.store.verify())
    else:
        reports = [ctx.session(session or (anchor.session if anchor else "")).verify(anchor)]
    data = [{**msgspec.to_builtins(r), "ok": r.ok, "name": _name(ctx, r)} for r in reports]

    def human() -> None:
        for report in reports:
            _show(ctx, report, anchor)

    ctx.answer("verify", data, human)
    return 0 if all(r.ok for r in reports) else INTEGRITY


def _name(ctx: CommandContext, report: VerifyReport) -> str:
    return ctx.name_of(report.session) if report.session else STORE


def _show(ctx: CommandContext, report: VerifyReport, anchor: Anchor | None) -> None:
    name = _name(ctx, report)
    mark = ctx.style("✔", fg="green") if report.ok else ctx.style("✗", fg="red", bold=True)
    if not report.session:
        ctx.say(f"{mark} {name}")
        for fault in report.integrity:
            ctx.say(f"    {ctx.style(inert(fault.what, lines=False), fg='red')}")
        return
    ctx.say(f"{mark} {name}  {report.events:,} events, head {report.head_hash[:12]}")
    for word, faults in (("integrity", report.integrity), ("completeness", report.completeness)):
        verdict = "holds" if not faults else ctx.style(f"first fault at e{faults[0].seq}: {faults[0].what}", fg="red")
        ctx.say(f"    {word:<13}{verdict}")
        for fault in faults[1:10]:
            ctx.say(f"    {'':<13}e{fault.seq}: {fault.what}")
    gone = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in report.scope.items() if count)
    ctx.say(f"    {'scope':<13}{'everything is there' if not gone else f'not checkable: {gone}'}")
    if report.uncovered:
        say = (
            f"{report.uncovered} removed by an ancestor after the fork: its anchor covers that, not one of this session"
        )
        ctx.say(f"    {'removals':<13}{say}")
    if anchor is None:
        ctx.say(f"    {'anchor':<13}none given: a cut-off end would not be seen (wakelog anchor, kept elsewhere)")
    elif report.ok:
        later = report.events - anchor.seq
        since = f", {later:,} event{'s' * (later != 1)} came after it" if later else ", which is the head"
        ctx.say(f"    {'anchor':<13}holds: e{anchor.seq} is the one it names{since}")


def _read_anchor(path: Path) -> Anchor:
    """An anchor as `wakelog anchor` prints or writes it, with --json or without."""
    try:
        document = msgspec.json.decode(path.read_bytes())
        inner = document.get("data") if isinstance(document, dict) and "hash" not in document else document
        return msgspec.convert(inner, Anchor)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise InvalidInputError(
            f"{path} is not an anchor: {exc}", kind="bad-anchor", hint="make one with wakelog anchor"
        ) from exc


@click.command("anchor")
@click.argument("session", required=False, default="", shell_complete=complete_session)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write it to this file.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@common
def anchor_command(ctx: CommandContext, session: str, out: Path | None, force: bool) -> None:
    """Export the head hash of a session for later tamper checks. Keep the file where people who can write to the store
    cannot change it. `wakelog verify --against FILE` then proves that nothing was rewritten or cut off.

    \b
    Examples:
      wakelog anchor fix-bug --out anchor.json
      wakelog verify fix-bug --against anchor.json
    """
    found = ctx.session(session)
    anchor = found.anchor()
    text = msgspec.json.encode(anchor)
    if out is not None:
        with writing(out, force=force) as file:
            file.write(text + b"\n")
    data = {**msgspec.to_builtins(anchor), "name": found.name, "file": str(out) if out else None}
    said = f"Anchored e{anchor.seq} of {found.name or found.id} in {out}" if out else text.decode()
    ctx.answer("anchor", data, lambda: ctx.say(said))
    if out is not None:
        ctx.suggest(f"keep {out} elsewhere", f"wakelog verify --against {out}")
