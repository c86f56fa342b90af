"""`wakelog status`: shows the status of a session and its pending calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from wakelog.cli.context import CommandContext, common
from wakelog.cli.options import at_option, complete_places
from wakelog.cli.render.sessions import handle, pending_text, plain_session, status_words
from wakelog.cli.render.values import text_of
from wakelog.cli.text import age, clock, count, duration, fit, glyph, join_facts, money, name_some, place_of_turn, width
from wakelog.model.values import Value

if TYPE_CHECKING:
    # Imported when needed: a shell that completes a name loads only the command.
    from wakelog.session import Session
    from wakelog.session.status import SessionCondition

_MAX_SHOWN = 8


@click.command("status")
@click.argument("session", required=False, default="", shell_complete=complete_places)
@at_option
@common
def status_command(ctx: CommandContext, session: str, at: str) -> None:
    """Show a session's status: head, turn, goal, budget, open calls, flags and the last error. Without SESSION, the
    newest one.

    Examples:
      wakelog status
      wakelog status fix-auth
    """
    from wakelog.session.status import read_condition

    where = ctx.place(session, at)
    chosen = where.session
    condition = read_condition(chosen, where.at if at else where.seq)
    ctx.answer("status", plain_session(chosen, condition), lambda: _show(ctx, chosen, condition))
    ctx.suggest(*_next_commands(chosen, condition))


def _show(ctx: CommandContext, session: Session[Any], condition: SessionCondition) -> None:
    document, head = condition.document, condition.head
    turn = document["turn"]
    place = place_of_turn(turn["number"], turn["attempt"]) or "no turn yet"
    state = f" {turn['status']}" if turn["status"] else ""
    looked = f" {glyph('dot')} as of e{condition.seq}" if condition.seq != head.seq else ""
    when = (
        age(condition.at, session.log.clock())
        if condition.seq == head.seq
        else clock(condition.at, utc=ctx.utc, long=True)
    )
    name = fit(str(session), ctx.columns // 2)
    room = ctx.columns - width(name) - len(condition.status) - 4
    facts = fit(f" {glyph('dot')} {join_facts([f'{place}{state}', f'e{condition.seq}', when])}{looked}", room)
    ctx.say(f"{ctx.style(name, bold=True)}  {status_words(ctx, condition.status)}{facts}")
    room = ctx.columns - 13
    for name, text in _lines(session, condition, room):
        ctx.say(f"  {ctx.style(f'{name:<10}', dim=True)} {fit(text, room)}")
    for action, pending in list(condition.pending.items())[:_MAX_SHOWN]:
        line = f"{pending_text(action, pending)}  e{pending['seq']}"
        ctx.say(f"  {ctx.style('pending  ', fg='yellow')}  {fit(line, room)}")
    _more(ctx, len(condition.pending), "pending")
    for name, flag in list(document["flags"].items())[:_MAX_SHOWN]:
        color = "red" if flag.get("severity") in ("error", "alarm") else "yellow"
        line = f"{glyph('warn')} {name}: {text_of(flag.get('message', ''))}  e{flag['seq']}"
        ctx.say(f"  {ctx.style('flag     ', fg=color)}  {fit(line, room)}")
    _more(ctx, len(document["flags"]), "flags")
    if error := document["last_error"]:
        tool = text_of(error.get("tool") or "")
        tail = (f"  ({fit(tool, 24)})" if tool else "") + f"  e{error['seq']}"
        text = f"{text_of(error.get('type', ''))}: {text_of(error.get('message', ''))}"
        ctx.say(f"  {ctx.style('error    ', fg='red')}  {fit(text, room - width(tail))}{tail}")


def _more(ctx: CommandContext, total: int, what: str) -> None:
    if total > _MAX_SHOWN:
        ctx.say(f"             and {total - _MAX_SHOWN} more {what} (wakelog state)")


def _lines(session: Session[Any], condition: SessionCondition, room: int) -> list[tuple[str, str]]:
    document, head = condition.document, condition.head
    lines = [("id", session.id), ("head", f"e{head.seq}  {head.hash.hex()[:12]}")]
    if document["goal"] is not None:
        lines.append(("goal", text_of(document["goal"])))
    if head.fork:
        lines.append(("fork of", f"{head.fork.parent} at e{head.fork.at}"))
    if document["labels"]:
        rows = _wrap_words([f"{k}={text_of(v)}" for k, v in document["labels"].items()], room)
        lines += [("" if number else "labels", row) for number, row in enumerate(rows)]
    if budget := _budget_text(document["budget"]):
        lines.append(("budget", budget))
    if condition.holder:
        lines.append(("writer", condition.holder))
    if document["view"]["rewound"]:
        view = document["view"]
        lines.append(("view", f"rewound to e{view['to']} by e{view['rewound']}{_undo_advice(session, condition)}"))
    if sources := document["trust"]:
        for trust in ("untrusted", "unverified"):
            named = [f"{name} (e{t['seq']})" for name, t in sources.items() if t["trust"] == trust]
            if named:
                lines.append((trust, name_some(named, _MAX_SHOWN)))
    return lines


def _wrap_words(words: list[str], room: int) -> list[str]:
    """The words on as few rows as possible."""
    rows: list[str] = []
    for word in words:
        if rows and width(rows[-1]) + 1 + width(word) <= room:
            rows[-1] += f" {word}"
        else:
            rows.append(word)
    return rows


def _undo_advice(session: Session[Any], condition: SessionCondition) -> str:
    """How to undo the rewind in view, if that is possible: the rewind of a retry cannot be undone."""
    if condition.seq != condition.head.seq or condition.status in ("closed", "archived"):
        return ""
    from wakelog.session.undo import undoable

    operation, rewound = undoable(session.log), condition.document["view"]["rewound"]
    if operation is not None and operation.seq == rewound:
        return f" (to undo: wakelog undo {handle(session)})"
    mode = session.log.entry(rewound).body.get("mode", "rewind")
    return {"retry": " (the turn was tried again)", "undo": f" (to redo: wakelog redo {handle(session)})"}.get(mode, "")


def _budget_text(budget: Value) -> str:
    parts = []
    for key, show in (("usd_micros", money), ("tokens", lambda n: f"{count(n)} tokens"), ("duration_us", duration)):
        spent, limit = budget["spent"].get(key, 0), budget["limits"].get(key)
        if limit:
            parts.append(f"{show(spent)} of {show(limit)} ({spent * 100 // limit}%)")
        elif spent:
            parts.append(show(spent))
    return join_facts(parts)


def _next_commands(session: Session[Any], condition: SessionCondition) -> list[str]:
    name = handle(session)
    commands = [f"wakelog log {name}"]
    if condition.document["turn"]["number"]:
        commands.append(f"wakelog diff {name}")
    if error := condition.document["last_error"]:
        commands.append(f"wakelog show -s {name} e{error['seq']}")
    if condition.status == "paused":
        commands.append(f"wakelog resume {name}")
    return commands
