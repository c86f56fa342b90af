"""`wakelog doctor`: check this installation and store; each line is ok, warn or fail, with what to do."""

from __future__ import annotations

import click
import msgspec

from wakelog.cli.checks import installation, store_checks
from wakelog.cli.context import Context, common
from wakelog.cli.errors import NO
from wakelog.cli.render.checks import say_checks
from wakelog.maintenance.check import Check


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
    say_checks(ctx, checks)
    bad = sum(c.level == "fail" for c in checks)
    wary = sum(c.level == "warn" for c in checks)
    if bad or wary:
        ctx.say(f"{bad} to mend, {wary} to look at")
    else:
        ctx.say("Everything is in order.")
