"""Things that were looked at, a line each: ok, warn or fail, with what to do."""

from __future__ import annotations

from collections.abc import Sequence

from wakelog.cli.context import Context
from wakelog.cli.text import inert
from wakelog.maintenance.check import Check

_COLORS = {"ok": "green", "warn": "yellow", "fail": "red"}


def say_checks(ctx: Context, checks: Sequence[Check]) -> None:
    for check in checks:
        level = ctx.style(f"{check.level:<5}", fg=_COLORS[check.level], bold=check.level == "fail")
        ctx.say(f"{level} {check.what:<13}{inert(check.found, lines=False)}")
        if check.fix:
            ctx.say(f"      {'':<13}{ctx.style('fix:', dim=True)} {inert(check.fix, lines=False)}")
