"""`wakelog doctor`: check this installation and store; each line is ok, warn or fail, with what to do."""

from __future__ import annotations

import click
import msgspec

from wakelog.cli.checks import Check, installation, store_checks
from wakelog.cli.context import Context, common
from wakelog.cli.failing import NO
from wakelog.cli.text import inert

_COLORS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command("doctor")
@common
def doctor_command(ctx: Context) -> int:
    """Checks versions, settings, the store's file, folder and disk, leases and the index. Changes nothing. Exit code 1
    when something fails.

    \b
    Example:
      wakelog doctor
    """
    checks = [*installation(), *store_checks(ctx)]
    failed = [c for c in checks if c.level == "fail"]
    ctx.answer("doctor", msgspec.to_builtins(checks), lambda: _show(ctx, checks))
    return NO if failed else 0


def _show(ctx: Context, checks: list[Check]) -> None:
    for check in checks:
        level = ctx.style(f"{check.level:<5}", fg=_COLORS[check.level], bold=check.level == "fail")
        ctx.say(f"{level} {check.what:<13}{inert(check.found, lines=False)}")
        if check.fix:
            ctx.say(f"      {'':<13}{ctx.style('fix:', dim=True)} {inert(check.fix, lines=False)}")
    bad = sum(c.level == "fail" for c in checks)
    wary = sum(c.level == "warn" for c in checks)
    if bad or wary:
        ctx.say(f"{bad} to mend, {wary} to look at")
    else:
        ctx.say("Everything is in order.")
