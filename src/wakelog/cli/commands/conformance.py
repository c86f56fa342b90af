"""`wakelog conformance`: checks a server against the protocol."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

import click

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import NO
from wakelog.cli.text import inert_line
from wakelog.conformance import Result, run
from wakelog.conformance.kit import Status, select_checks
from wakelog.conformance.wire import TIMEOUT_S
from wakelog.errors import InvalidInputError

_MARKS: dict[Status, tuple[str, str]] = {"passed": ("✔", "green"), "failed": ("✗", "red"), "skipped": ("-", "yellow")}


@click.command("conformance")
@click.argument("url", required=False, default="")
@click.option("--key", default="", metavar="KEY", help="Use this API key (default: WAKELOG_KEY).")
@click.option(
    "--other-key", default="", metavar="KEY", help="Use this key of another namespace (default: WAKELOG_OTHER_KEY)."
)
@click.option("--only", multiple=True, metavar="NAME", help="Run only this group or check (repeatable).")
@click.option("--time-limit", default=TIMEOUT_S, metavar="SECONDS", help="Wait at most this long for an answer.")
@click.option("--list", "listing", is_flag=True, help="List the checks and the rule behind each.")
@common
def conformance_command(
    ctx: CommandContext, url: str, key: str, other_key: str, only: tuple[str, ...], time_limit: float, listing: bool
) -> int:
    """Check any server against the protocol (docs/reference/protocol.md), one line for each check. A failed check shows
    the expected answer, the actual answer and the request. Checks use their own sessions and remove them at the end.
    The exit code is 1 when a check fails.

    Examples:
      wakelog conformance http://127.0.0.1:8425 --key KEY
      wakelog conformance https://host/ns/team-a --only append --only tail
      wakelog conformance --list
    """
    if listing:
        return _list(ctx, only)
    if not url:
        raise InvalidInputError(
            "name the server to check", kind="bad-url", hint="such as wakelog conformance http://127.0.0.1:8425"
        )
    results: list[Result] = []
    key, other_key = key or os.environ.get("WAKELOG_KEY", ""), other_key or os.environ.get("WAKELOG_OTHER_KEY", "")
    for result in run(url, key, other_key=other_key, only=only, timeout_s=time_limit):
        results.append(result)
        if ctx.ndjson:
            ctx.record("conformance", result)
        elif not ctx.json:
            _show(ctx, result)
    counts = Counter(result.status for result in results)
    data: dict[str, Any] = {"url": url, **{str(name): counts[name] for name in _MARKS}, "checks": results}
    line = f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped"
    ctx.answer("conformance", data, line, records=())  # the records were printed as they came
    return NO if counts["failed"] else 0


def _list(ctx: CommandContext, only: Iterable[str]) -> int:
    checks = select_checks(only)
    data = [{"check": c.name, "group": c.group, "rule": c.rule, "needs": c.needs or None} for c in checks]

    def human() -> None:
        for check in checks:
            ctx.say(f"{check.group:<12}{check.name}")
            ctx.say(f"{'':<12}{ctx.style(check.rule, dim=True)}")

    ctx.answer("conformance-checks", data, human)
    return 0


def _show(ctx: CommandContext, result: Result) -> None:
    """One line for a check, and the details of a failure. Printed at once, because a server may be slow."""
    mark, color = _MARKS[result.status]
    why = f"  ({inert_line(result.why)})" if result.why else ""
    ctx.say(f"{ctx.style(mark, fg=color)} {result.group:<12}{result.check}{why}")
    if result.status == "failed":
        ctx.say(f"  {result.rule}")
        ctx.say(f"  expected {inert_line(result.expected)}, got {inert_line(result.got)}")
        if result.request:
            ctx.say(f"  {inert_line(result.request)}")
    if not ctx.use_pager:
        ctx.flush()
