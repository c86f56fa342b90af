"""`wakelog pending`, `reconcile`, `approve`, `deny`, `abandon`: calls that wait for somebody."""

from __future__ import annotations

import getpass
from typing import Any

import click
import msgspec

from wakelog.cli.completing import complete_session
from wakelog.cli.context import Context, common
from wakelog.cli.failing import NO
from wakelog.cli.render.table import Column, say_table
from wakelog.cli.render.values import fetched, text_of
from wakelog.cli.text import inert
from wakelog.errors import CorruptLogError, InvalidInputError
from wakelog.model.ids import Seq
from wakelog.session import Session

COLUMNS = [Column("session", 8), Column("turn"), Column("call", 12), Column("status"), Column("asked for", 16, drop=1)]
_NEXT = {
    "waiting": "wakelog approve {session} {action}  |  wakelog deny {session} {action}",
    "uncertain": "wakelog reconcile {session} {action} --succeeded | --failed | --never-ran",
    "running": "wakelog reconcile {session} {action} --succeeded | --failed | --never-ran",
    "requested": "not begun: run the agent again, or wakelog abandon {session} {action}",
}


@click.command("pending")
@click.argument("session", required=False, default="", shell_complete=complete_session)
@common
def pending_command(ctx: Context, session: str) -> int:
    """Calls whose outcome is not known and questions that wait, of all sessions or of SESSION, each with the command
    that settles it. Exit code 1 when there is none.

    \b
    Examples:
      wakelog pending
      wakelog pending crash --json
    """
    sessions = [ctx.session(session)] if session or ctx.names_session else _all(ctx)
    found = [(s, action, p) for s in sessions for action, p in s.log.part("pending_actions").items()]

    def human() -> None:
        if not found:
            ctx.say("nothing is pending")
            return
        say_table(ctx, COLUMNS, [_cells(s, action, p) for s, action, p in found])
        ctx.say("")
        running = sum(p["status"] == "running" for _, _, p in found)
        for s, action, p in found:
            if p["status"] == "running":
                continue
            if p["tool"] == "input":
                ctx.say(f"  {inert(s.name or s.id, lines=False)} asks: {inert(str(p.get('prompt', '')), lines=False)}")
            else:
                names = {"session": inert(s.name or s.id, lines=False), "action": inert(action, lines=False)}
                ctx.say("  " + _NEXT[p["status"]].format(**names))
        if running:
            ctx.say(f"  {running} running, or their process died: wakelog reconcile SESSION CALL … once that is known")

    ctx.answer("pending", [_plain(s, action, p) for s, action, p in found], human)
    return 0 if found else NO


def _all(ctx: Context) -> list[Session[Any]]:
    out = []
    for head in ctx.store.sessions():
        try:
            out.append(ctx.store.resume(head.session))
            out[-1].log.part("pending_actions")
        except CorruptLogError:
            out.pop()  # `verify` tells of it; the others must still be seen
    return out


def _input(session: Session[Any], pending: dict[str, Any]) -> Any:
    entry = session.log.entry(pending["seq"])
    return pending.get("prompt") or fetched(session, entry, entry.body.get("input"))


def _cells(session: Session[Any], action: str, pending: dict[str, Any]) -> list[str]:
    turn = f"@{pending['turn']}" if pending["turn"] else ""
    given = f"{pending['tool']} {text_of(_input(session, pending))}"
    return [session.name or session.id, turn, action, str(pending["status"]), given]


def _plain(session: Session[Any], action: str, pending: dict[str, Any]) -> dict[str, Any]:
    names = {"session": session.name or session.id, "action": action}
    is_call = pending["tool"] != "input"
    return {
        "session": session.id,
        "name": session.name,
        "action": action,
        "tool": pending["tool"],
        "status": pending["status"],
        "effect": pending["effect"],
        "seq": pending["seq"],
        "turn": pending["turn"],
        "key": pending.get("key", ""),
        "input": _input(session, pending),
        "settle": _NEXT[pending["status"]].format(**names) if is_call else "",
    }


@click.command("reconcile")
@click.argument("session", shell_complete=complete_session)
@click.argument("action")
@click.option("--succeeded", "outcome", flag_value="succeeded", help="The effect happened.")
@click.option("--failed", "outcome", flag_value="failed", help="It was tried and did not happen.")
@click.option("--never-ran", "outcome", flag_value="never_ran", help="It was never tried; the agent may try it anew.")
@click.option("--from-evidence", "outcome", flag_value="", help="As a late worker reported.")
@click.option("--output", metavar="JSON", help="Its result, for the agent to go on with; text that is no JSON is text.")
@click.option("--by", metavar="WHO", help="Who found out; default: you.")
@click.option("-m", "--message", "why", default="", metavar="TEXT", help="How it is known.")
@common
def reconcile_command(
    ctx: Context, session: str, action: str, outcome: str | None, output: str | None, by: str | None, why: str
) -> None:
    """Says what became of a call that was cut off, once you have found out. The agent's script, simply run again, goes
    on with that answer.

    \b
    Examples:
      wakelog reconcile crash send_email-5 --succeeded -m "it is in the sent folder"
      wakelog reconcile crash charge-9 --succeeded --output '{"receipt": 7}'
    """
    found = ctx.session(session)
    if outcome is None:
        said = [f"{e.body.get('outcome')} (e{e.seq})" for e in found.evidence(action)]
        raise InvalidInputError(
            f"what became of {action}? "
            + (f"A late worker said: {', '.join(said)}" if said else "Nobody has said yet"),
            kind="no-outcome",
            hint="--succeeded | --failed | --never-ran" + (" | --from-evidence" if said else ""),
        )
    seq = found.reconcile(action, outcome, output=_value(output), by=by or ("" if outcome == "" else _me()), why=why)
    _tell(ctx, found, action, seq, f"{action} is reconciled: {found.log.entry(seq).body['outcome']}")


def _value(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _settling(name: str, verb: str, done: str, doc: str) -> click.Command:
    """A command that settles a call by one verb."""

    @click.command(name, help=doc)
    @click.argument("session", shell_complete=complete_session)
    @click.argument("action")
    @click.option("-m", "--message", "why", default="", metavar="TEXT", help="Why.")
    @common
    def command(ctx: Context, session: str, action: str, why: str) -> None:
        found = ctx.session(session)
        who = {} if verb == "abandon" else {"by": _me()}
        seq = getattr(found, verb)(action, why=why, **who)
        _tell(ctx, found, action, seq, f"{action} is {done}")

    return command


approve_command = _settling(
    "approve",
    "approve",
    "approved: the agent that waits goes on, or the same script run again",
    """Lets a call that waits for approval run.

    \b
    Example:
      wakelog approve deploy release-3f2a -m "checked the diff"
    """,
)
deny_command = _settling(
    "deny",
    "deny",
    "denied: its caller gets an error of type denied",
    """Refuses a call that waits for approval.

    \b
    Example:
      wakelog deny deploy release-3f2a -m "not on a Friday"
    """,
)
abandon_command = _settling(
    "abandon",
    "abandon",
    "given up",
    """Gives a pending call up: whatever became of it no longer matters.

    \b
    Example:
      wakelog abandon deploy release-3f2a -m "superseded"
    """,
)


def _tell(ctx: Context, session: Session[Any], action: str, seq: Seq, text: str) -> None:
    data = {"session": session.id, "name": session.name, "action": action, "seq": seq}
    ctx.answer("settled", data, lambda: ctx.say(f"{inert(text, lines=False)}  (e{seq})"))


def _me() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
