"""`wakelog resume`: continue a session, and see where it stands."""

from __future__ import annotations

import socket
from typing import Any

import click

from wakelog.cli.context import Context, common
from wakelog.cli.render.values import text_of
from wakelog.cli.shell_completion import complete_session
from wakelog.cli.text import fit, glyph, inert, iso
from wakelog.errors import ConflictError, NotAllowedError
from wakelog.session import Session

SHOWN = 8


@click.command("resume")
@click.argument("session", required=False, default="", shell_complete=complete_session)
@click.option("--last", is_flag=True, help="The newest session.")
@click.option("-m", "--message", "why", default="", metavar="TEXT", help="Why; kept in the log.")
@common
def resume_command(ctx: Context, session: str, last: bool, why: str) -> None:
    """Lifts a pause, and tells where the session stands: goal, last turn, what is known, what is pending.

    Refused while a living process is writing the session: it is not yours to go on with. A pause is lifted all the
    same, since that process may be waiting for it.

    \b
    Examples:
      wakelog resume fix-bug
      wakelog resume --last
    """
    if session and last:
        raise click.UsageError("name a session or say --last, not both")
    found = ctx.session("." if last else session)
    status, name = found.status, found.name or found.id
    if status in ("closed", "archived"):
        raise NotAllowedError(
            f"{name} is {status}", kind=f"session-{status}", hint=f"wakelog reopen {name}", legal=("session.reopened",)
        )
    is_lifted = status == "paused"
    if not is_lifted and (holder := found.log.living_holder()):
        raise ConflictError(
            f"{name} is being written by {holder}",
            kind="leased",
            hint=f"wait until it is over, or end that process; wakelog status {name} tells where it stands",
        )
    if is_lifted:
        found.unpause(host=socket.gethostname(), why=why)
    data = _standing(found, is_lifted)
    ctx.answer("resume", data, lambda: _show(ctx, data))


def _standing(session: Session[Any], is_lifted: bool) -> dict[str, Any]:
    state, head = session.log.state(), session.head
    messages = session.messages()
    said = {role: next((m for m in reversed(messages) if m.role == role), None) for role in ("user", "assistant")}
    return {
        "session": session.id,
        "name": session.name,
        "status": head.status,
        "lifted": is_lifted,
        "head": head.seq,
        "at": iso(head.at),
        "goal": state["goal"],
        "turn": state["turn"],
        "holder": session.log.living_holder(),
        "last_user": said["user"].text if said["user"] else None,
        "last_assistant": said["assistant"].text if said["assistant"] else None,
        "facts": {key: fact["value"] for key, fact in state["facts"].items()},
        "dead_ends": list(state["dead_ends"].values()),
        "pending": [{"action": action, **entry} for action, entry in state["pending_actions"].items()],
        "last_error": state["last_error"],
        "python": f"wakelog.open().resume({session.name or session.id!r})",
    }


def _show(ctx: Context, data: dict[str, Any]) -> None:
    name = inert(data["name"] or data["session"], lines=False)
    turn = data["turn"]
    what = "resumed" if data["lifted"] else f"is {data['status']}: nothing to lift"
    ctx.say(f"{ctx.style(name, bold=True)} {what}, at @{turn['number']} (e{data['head']})")
    room = ctx.columns - 16
    if data["goal"]:
        _row(ctx, "goal", fit(text_of(data["goal"]), room))
    if data["holder"]:
        _row(ctx, "careful", f"{inert(data['holder'], lines=False)} is writing it at this moment")
    if turn["number"]:
        attempt = f", attempt {turn['attempt']}" if turn["attempt"] > 1 else ""
        _row(ctx, "last turn", f"@{turn['number']} {turn['status']}{attempt}")
    for role, key in (("you", "last_user"), ("agent", "last_assistant")):
        if data[key]:
            _row(ctx, "", fit(f"{role}: {data[key]}", room))
    _many(ctx, "known", [f"{key}: {text_of(value)}" for key, value in data["facts"].items()], room)
    ends = [f"{text_of(d.get('tried', ''))}: {text_of(d.get('learned', ''))}" for d in data["dead_ends"]]
    _many(ctx, "dead ends", ends, room)
    _many(ctx, "pending", [_pending(p) for p in data["pending"]] or ["nothing"], room)
    _row(ctx, "go on", inert(data["python"], lines=False))


def _pending(pending: dict[str, Any]) -> str:
    text = f"{pending['tool']} ({pending['effect']}, e{pending['seq']}) {pending['status']}"
    if pending.get("prompt"):
        text = f"waits for you: {text_of(pending['prompt'])} (e{pending['seq']})"
    if pending["status"] == "uncertain":
        text = f"{glyph('warn')} {text}: did it happen? Find out before it is tried again"
    return text


def _many(ctx: Context, title: str, lines: list[str], room: int) -> None:
    for line in lines[:SHOWN]:
        _row(ctx, title, fit(line, room))
        title = ""
    if len(lines) > SHOWN:
        _row(ctx, "", f"and {len(lines) - SHOWN} more")


def _row(ctx: Context, title: str, text: str) -> None:
    ctx.say(f"  {ctx.style(f'{title:<14}', dim=True)}{text}")
