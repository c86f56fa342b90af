"""`wakelog resume`, `pause`, `close`, `cancel`, `reopen` and `delete`: change the status of a session."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from typing import Any

import click
import msgspec

from wakelog.cli.agent_commands import AGENTS, NATIVE, continuation, own_agent, run
from wakelog.cli.context import CommandContext, common
from wakelog.cli.options import session_argument, why_option, yes_option
from wakelog.cli.render.sessions import label
from wakelog.cli.render.values import text_of
from wakelog.cli.selectors import pick_session
from wakelog.cli.text import fit, glyph, inert, inert_line, iso
from wakelog.errors import ConflictError, NotAllowedError, NotFoundError
from wakelog.maintenance.cancel import cancel_session
from wakelog.model.agent_words import ASIDES
from wakelog.session import Session
from wakelog.session.status import was_left
from wakelog.store.erasure import refuse_any_held

_COMMANDS = {
    "session.paused": "pause",
    "session.resumed": "resume",
    "session.closed": "close",
    "session.reopened": "reopen",
    "session.archived": "archive",
    "session.deleted": "delete",
}
MAX_SHOWN = 8
MESSAGES_PER_READ = 20
"""How many messages to read at a time while looking for the last words of the user and the agent."""


@click.command("pause")
@session_argument
@why_option
@common
def pause_command(ctx: CommandContext, session: str, why: str) -> None:
    """Pause a session: nothing new takes effect until `wakelog resume`. Outcomes of calls that had started are still
    accepted.

    Example:
      wakelog pause fix-bug -m "waiting for the release"
    """
    move_session(ctx, session, lambda s: s.life.pause(why=why), "wakelog resume {}")


@click.command("close")
@session_argument
@why_option
@click.option("--outcome", default="completed", help="Say how it ended, in one word.")
@common
def close_command(ctx: CommandContext, session: str, why: str, outcome: str) -> None:
    """End a session. Calls that never started are abandoned; calls that did start are marked as uncertain.

    Example:
      wakelog close fix-bug
    """
    found = ctx.session(session)
    pending = found.log.state()["pending_actions"]
    settled = sorted(action for action, entry in pending.items() if entry["status"] != "uncertain")
    move_session(ctx, session, lambda s: s.life.end(outcome, why=why), "wakelog reopen {}", settled=settled)


@click.command("cancel")
@session_argument
@click.option("-m", "--message", "why", required=True, metavar="TEXT", help="Give the reason; kept in the log.")
@click.option("--alone", is_flag=True, help="Leave the sub-agents that work for it alone.")
@common
def cancel_command(ctx: CommandContext, session: str, why: str, alone: bool) -> None:
    """Stop a session, for example because it loops or spends too much. It is closed as cancelled, with the live
    sub-agents below it.

    Calls that never started are abandoned. Calls that run are not stopped; they become uncertain. The agent is refused
    at its next call. `wakelog reopen` reverts it.

    Examples:
      wakelog cancel fix-bug -m "it loops"
      wakelog cancel nightly --alone -m "over budget"
    """
    if not session and not ctx.names_session:
        raise click.UsageError("cancel needs the name of the session: there is no default")
    stopped = cancel_session(ctx.store, ctx.session(session), why=why, subagents=not alone)

    def human() -> None:
        for session in stopped:
            ctx.say(f"{inert_line(session.name or session.session)}: {session.was} {glyph('arrow')} cancelled")
            for title, calls in (("given up", session.abandoned), ("uncertain", session.uncertain)):
                if calls:
                    ctx.row(title, inert_line(", ".join(calls)))

    ctx.answer("cancel", [msgspec.to_builtins(session) for session in stopped], human)
    if any(session.uncertain for session in stopped):
        ctx.suggest("wakelog pending", "wakelog reconcile ACTION")


@click.command("reopen")
@session_argument
@why_option
@common
def reopen_command(ctx: CommandContext, session: str, why: str) -> None:
    """Reopen a closed or archived session.

    Example:
      wakelog reopen fix-bug
    """
    move_session(ctx, session, lambda s: s.life.reopen(why=why), "wakelog close {}")


@click.command("delete")
@session_argument
@why_option
@click.option("--keep-totals", is_flag=True, help="Keep its totals, as numbers only.")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and stop.")
@yes_option
@common
def delete_command(ctx: CommandContext, session: str, why: str, keep_totals: bool, dry_run: bool, yes: bool) -> None:
    """Delete a session permanently. Its content is removed from the files and a tombstone stays. Forks keep what they
    share. With --keep-totals the tombstone has its totals; `wakelog rollup` shows them when at least five sessions have
    some.

    Examples:
      wakelog delete old-try --dry-run
      wakelog delete old-try --yes -m "asked for by the customer"
    """
    if not session and not ctx.names_session:
        raise click.UsageError("delete needs the name of the session: there is no default")
    found = ctx.session(session, in_full=True)
    refuse_any_held(ctx.store, [found.id])
    head = found.head
    forks = [str(h) for h in found.log.forks()]
    name = label(found)
    if ctx.is_for_people:
        own = head.seq - (head.fork.at if head.fork else 0)
        ctx.say(f"{ctx.style(f'Delete {name}', bold=True)}  {own:,} events of its own, @{head.turn}, {head.status}")
        if forks:
            ctx.say(f"  its forks keep what they share, until they are deleted too: {inert_line(', '.join(forks))}")
        ctx.say("  there is no way back; wakelog export keeps a copy")
    if not dry_run:
        ctx.confirm(f"Delete {name} for good?", yes=yes)
        ctx.store.delete(found, why=why, keep_totals=keep_totals)
    end = "This was a dry run: nothing was deleted." if dry_run else f"{name} is deleted; a tombstone stays."
    ctx.done("delete", found, end, events=head.seq, forks=forks, deleted=not dry_run)


def move_session(
    ctx: CommandContext, name: str, move: Callable[[Session[Any]], Any], back: str, *, settled: list[str] | None = None
) -> None:
    """Moves a session to another status. If that is not allowed, the error suggests what is."""
    session = ctx.session(name)
    before = session.status
    shown = str(session)
    try:
        head = move(session)
    except NotAllowedError as exc:
        ways = " · ".join(f"wakelog {_COMMANDS[kind]} {shown}" for kind in exc.legal if kind in _COMMANDS)
        raise NotAllowedError(f"{shown} is {before}: {exc.message}", kind=exc.kind, hint=ways, legal=exc.legal) from exc

    def human() -> None:
        ctx.say(f"{inert_line(shown)}: {before} {glyph('arrow')} {ctx.style(head.status, bold=True)}")
        if settled:
            ctx.say(f"  settled first: {inert_line(', '.join(settled))}")

    data = {"was": before, "status": head.status, "head": head.seq, "settled": settled or []}
    ctx.answer("life", {"session": session.id, "name": session.name, **data}, human)
    ctx.suggest(back.format(shown))


@click.command("resume")
@session_argument
@click.option("--last", is_flag=True, help="Continue the newest session.")
@click.option(
    "--in",
    "agent",
    type=click.Choice([*AGENTS, NATIVE]),
    metavar="AGENT",
    help=f"Continue in this coding agent: {', '.join(AGENTS)}, or {NATIVE} (its own).",
)
@click.option("--print", "only_print", is_flag=True, help="Print the command of the agent, and do not run it.")
@why_option
@common
def resume_command(
    ctx: CommandContext, session: str, last: bool, agent: str | None, only_print: bool, why: str
) -> None:
    """Continue a session: lift a pause, and show its goal, last turn, facts and open calls. On a terminal, without a
    name, choose one of the newest; elsewhere the newest is meant.

    This is refused while another process is writing the session. A pause is lifted all the same, because that process
    may be waiting for it.

    With --in, a coding agent continues it: with its own command if the session is its own, otherwise with a prompt that
    describes the session. --print alone prints the command of the agent whose session it is, and changes nothing.

    Examples:
      wakelog resume fix-bug
      wakelog resume --last
      wakelog resume claude-5c0375b4 --print
      wakelog resume claude-5c0375b4 --in native
      wakelog resume claude-5c0375b4 --in codex --print
    """
    if session and last:
        raise click.UsageError("name a session or say --last, not both")
    found = ctx.session("." if last else session) if session or last else pick_session(ctx)
    if agent or only_print:
        _continue_in_agent(ctx, found, agent or NATIVE, only_print)
        return
    is_left = was_left(found)
    if is_left:
        found.life.reopen(why=why or "resumed")
    status, name = found.status, str(found)
    if status in ("closed", "archived"):
        raise NotAllowedError(
            f"{name} is {status}", kind=f"session-{status}", hint=f"wakelog reopen {name}", legal=("session.reopened",)
        )
    is_lifted = status == "paused"
    if not is_lifted and (holder := found.log.living_holder()):
        raise ConflictError(
            f"{name} is being written by {holder}",
            kind="leased",
            hint=f"wait for that process or end it; see wakelog status {name}",
        )
    if is_lifted:
        found.life.unpause(host=socket.gethostname(), why=why)
    data = _status_data(found, is_lifted or is_left)
    ctx.answer("resume", data, lambda: _show(ctx, data))


def _continue_in_agent(ctx: CommandContext, session: Session[Any], wanted: str, only_print: bool) -> None:
    """Prints the agent's command, or runs it in place of this process."""
    own = own_agent(session)
    if wanted == NATIVE and not own:
        raise NotFoundError(
            f"{session} is not a session of a coding agent",
            kind="no-native-agent",
            hint=f"choose one with --in {'|'.join(AGENTS)}",
        )
    found = continuation(session, own if wanted == NATIVE else wanted)
    if only_print or not ctx.is_for_people or not sys.stdin.isatty():
        data = {**msgspec.to_builtins(found), "line": found.line, "session": session.id}
        ctx.answer("resume", data, inert(found.line))
        return
    ctx.close()
    run(found)


def _status_data(session: Session[Any], is_lifted: bool) -> dict[str, Any]:
    state, head = session.log.state(), session.head
    words = _last_words(session)
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
        "last_user": words.get("user"),
        "last_assistant": words.get("assistant"),
        "facts": {key: fact["value"] for key, fact in state["facts"].items()},
        "dead_ends": list(state["dead_ends"].values()),
        "pending": [{"action": action, **entry} for action, entry in state["pending_actions"].items()],
        "last_error": state["last_error"],
        "agent": own_agent(session),
        "python": f"wakelog.open().resume({session.name or session.id!r})",
    }


def _last_words(session: Session[Any]) -> dict[str, str]:
    """The last message of the user and of the agent, by role, if there is one."""
    words: dict[str, str] = {}
    before: int | None = None
    while len(words) < 2 and (page := session.messages(limit=MESSAGES_PER_READ, before=before)):
        for message in reversed(page):
            if message.role == "assistant" or (message.role == "user" and message.name not in ASIDES):
                words.setdefault(message.role, message.text)
        before = page[0].seq
    return words


def _show(ctx: CommandContext, data: dict[str, Any]) -> None:
    name = inert_line(data["name"] or data["session"])
    turn = data["turn"]
    what = "resumed" if data["lifted"] else f"is {data['status']} (it was not paused)"
    ctx.say(f"{ctx.style(name, bold=True)} {what}, at @{turn['number']} (e{data['head']})")
    room = ctx.columns - 16
    if data["goal"]:
        ctx.row("goal", fit(text_of(data["goal"]), room))
    if data["holder"]:
        ctx.row("careful", f"{inert_line(data['holder'])} is writing it at this moment")
    if turn["number"]:
        attempt = f", attempt {turn['attempt']}" if turn["attempt"] > 1 else ""
        ctx.row("last turn", f"@{turn['number']} {turn['status']}{attempt}")
    for role, key in (("you", "last_user"), ("agent", "last_assistant")):
        if data[key]:
            ctx.row("", fit(f"{role}: {data[key]}", room))
    ends = [f"{text_of(d.get('tried', ''))}: {text_of(d.get('learned', ''))}" for d in data["dead_ends"]]
    for title, lines in (
        ("known", [f"{key}: {text_of(value)}" for key, value in data["facts"].items()]),
        ("dead ends", ends),
        ("pending", [_pending(p) for p in data["pending"]] or ["nothing"]),
    ):
        ctx.rows(title, [fit(line, room) for line in lines], MAX_SHOWN)
    command = f"wakelog resume {name} --in {NATIVE}" if data["agent"] else data["python"]
    ctx.row("go on", inert_line(command))


def _pending(pending: dict[str, Any]) -> str:
    text = f"{pending['tool']} ({pending['effect']}, e{pending['seq']}) {pending['status']}"
    if pending.get("prompt"):
        text = f"waits for you: {text_of(pending['prompt'])} (e{pending['seq']})"
    if pending["status"] == "uncertain":
        text = f"{glyph('warn')} {text}: did it happen? Find out before it is tried again"
    return text
