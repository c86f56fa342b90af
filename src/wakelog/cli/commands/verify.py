"""`wakelog verify`: was it altered?"""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from wakelog.cli.context import Context, common
from wakelog.errors import InvalidInputError
from wakelog.log.verify import VerifyReport
from wakelog.model.records import Anchor

INTEGRITY = 4


@click.command("verify")
@click.argument("session", required=False, default="")
@click.option("-A", "--all", "everything", is_flag=True, help="All sessions of the store.")
@click.option(
    "--against", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="An anchor kept elsewhere."
)
@common
def verify_command(ctx: Context, session: str, everything: bool, against: Path | None) -> int:
    """Checks every byte against its hash, the chain, and what is derived from it.

    Exit code 4 when something does not hold. Without an anchor, nobody can tell whether the newest events were cut off.

    \b
    Examples:
      wakelog verify fix-auth
      wakelog verify --all
    """
    anchor = _read_anchor(against) if against else None
    if everything:
        reports = [ctx.store.resume(head.session).verify() for head in ctx.store.sessions()]
    else:
        reports = [ctx.session(session or (anchor.session if anchor else "")).verify(anchor)]
    ctx.answer("verify", [_plain(ctx, r) for r in reports], lambda: _show_all(ctx, reports))
    return 0 if all(r.ok for r in reports) else INTEGRITY


def _plain(ctx: Context, report: VerifyReport) -> dict[str, object]:
    return {**msgspec.to_builtins(report), "ok": report.ok, "name": ctx.name_of(report.session)}


def _show_all(ctx: Context, reports: list[VerifyReport]) -> None:
    for report in reports:
        _show(ctx, report)


def _show(ctx: Context, report: VerifyReport) -> None:
    name = ctx.name_of(report.session)
    mark = ctx.style("✔", fg="green") if report.ok else ctx.style("✗", fg="red", bold=True)
    ctx.say(f"{mark} {name}  {report.events:,} events, head {report.head_hash[:12]}")
    for word, faults in (("integrity", report.integrity), ("completeness", report.completeness)):
        verdict = "holds" if not faults else ctx.style(f"first fault at e{faults[0].seq}: {faults[0].what}", fg="red")
        ctx.say(f"    {word:<13}{verdict}")
        for fault in faults[1:10]:
            ctx.say(f"    {'':<13}e{fault.seq}: {fault.what}")
    gone = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in report.scope.items() if count)
    ctx.say(f"    {'scope':<13}{'everything is there' if not gone else f'not checkable: {gone}'}")
    if not report.anchored:
        ctx.say(f"    {'anchor':<13}none given: a cut-off end would not be seen (wakelog anchor, kept elsewhere)")


def _read_anchor(path: Path) -> Anchor:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Anchor)
    except msgspec.DecodeError as exc:
        raise InvalidInputError(
            f"{path} is not an anchor: {exc}", kind="bad-anchor", hint="make one with wakelog anchor"
        ) from exc
