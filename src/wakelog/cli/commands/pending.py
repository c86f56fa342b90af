"""`wakelog pending`, `reconcile`, `approve`, `deny`, `answer`, `abandon`: what waits for a person."""

from __future__ import annotations

import contextlib
import getpass
import shlex
from typing import Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import NO
from wakelog.cli.options import json_or_text, named_session, session_argument, why_option
from wakelog.cli.render.sessions import handle
from wakelog.cli.render.table import say_table
from wakelog.cli.render.values import fetch_value, text_of
from wakelog.cli.text import inert_line
from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.model.ids import Seq
from wakelog.model.names import unquoted_name
from wakelog.session import Session

COLUMNS = "session 8 | turn | call 12 | status | asked for 16 -1"
_NEXT = {
    "waiting": "wakelog approve {call} | wakelog deny {call}",
    "uncertain": "wakelog reconcile {call} --succeeded | --failed | --never-ran",
    "running": "wakelog reconcile {call} --succeeded | --failed | --never-ran",
    "requested": "not started: run the agent again, or wakelog abandon {call}",
}


class _Pending(msgspec.Struct, frozen=True):
    """An open call or question."""

    session: Session[Any]
    action: str
    entry: dict[str, Any]

    @property
    def next(self) -> str:
        """The commands that settle it, ready to paste."""
        if self.entry["tool"] == "input":
            return " | ".join(f"wakelog answer {handle(self.session)} {self._handle} {text}" for text in self._options)
        return _NEXT[self.entry["status"]].format(call=f"{handle(self.session)} {self._handle}")

    @property
    def _handle(self) -> str:
        """The id if it needs no quotes in a shell, else its shortest unique prefix: a model may choose any id."""
        others = [other for other in self.session.log.part("pending_actions") if other != self.action]
        prefixes = (self.action[:size] for size in range(1, len(self.action)))
        unique = (p for p in prefixes if unquoted_name(p) and not any(other.startswith(p) for other in others))
        return unquoted_name(self.action) or next(unique, shlex.quote(inert_line(self.action)))

    @property
    def _options(self) -> list[str]:
        options = self.session.log.entry(self.entry["seq"]).body.get("options", ())
        return [unquoted_name(o) or shlex.quote(inert_line(o)) for o in options] or ["TEXT"]

    @property
    def input(self) -> Any:
        request = self.session.log.entry(self.entry["seq"])
        return self.entry.get("prompt") or fetch_value(self.session, request, request.body.get("input"))

    def plain(self) -> dict[str, Any]:
        fields = {name: self.entry[name] for name in ("tool", "status", "effect", "seq", "turn")}
        return {
            "session": self.session.id,
            "name": self.session.name,
            "action": self.action,
            **fields,
            "key": self.entry.get("key", ""),
            "input": self.input,
            "settle": self.next,
        }


@click.command("pending")
@session_argument
@common
def pending_command(ctx: CommandContext, session: str) -> int:
    """List calls with an unknown outcome and questions that wait for an answer, each with the command that resolves it.
    Covers all sessions, or SESSION. The exit code is 1 when there are none.

    Examples:
      wakelog pending
      wakelog pending crash --json
    """
    sessions = [ctx.session(session)] if session or ctx.names_session else _sessions_with_pending(ctx)
    pending = [_Pending(s, action, p) for s in sessions for action, p in s.log.part("pending_actions").items()]

    def human() -> None:
        if not pending:
            ctx.say("nothing is pending")
            return
        say_table(ctx, COLUMNS, [_cells(call) for call in pending])
        ctx.say("")
        for call in pending:
            if call.entry["status"] != "running":
                ctx.say(f"  {call.next}")
        running = sum(call.entry["status"] == "running" for call in pending)
        if running:
            ctx.say(f"  {running} running, or their process died: wakelog reconcile SESSION CALL … once that is known")

    ctx.answer("pending", [call.plain() for call in pending], human)
    return 0 if pending else NO


def _sessions_with_pending(ctx: CommandContext) -> list[Session[Any]]:
    out, unread = [], 0
    for info in ctx.store.index.every_session():
        # A damaged session must not hide the others.
        with contextlib.suppress(CorruptLogError, NotFoundError):
            if info.pending:
                out.append(ctx.store.resume(info.id))
        unread += bool(info.damaged)
    ctx.warn_unread(unread)
    return out


def _cells(call: _Pending) -> list[str]:
    turn = f"@{call.entry['turn']}" if call.entry["turn"] else ""
    request = f"{call.entry['tool']} {text_of(call.input)}"
    return [str(call.session), turn, call.action, str(call.entry["status"]), request]


def _find(session: Session[Any], text: str) -> _Pending:
    """A pending call by its id, or by a unique prefix of it."""
    pending = session.log.part("pending_actions")
    matches = [text] if text in pending else [action for action in pending if action.startswith(text)]
    if len(matches) == 1:
        return _Pending(session, matches[0], pending[matches[0]])
    what = f"can be {' or '.join(sorted(matches))}" if matches else f"is not pending in {session}"
    known = f" (pending: {', '.join(sorted(pending)) or 'nothing'})" if not matches else ""
    raise NotFoundError(f"{text!r} {what}{known}", kind="action-not-pending", hint=f"wakelog pending {handle(session)}")


@click.command("reconcile")
@named_session
@click.argument("action")
@click.option("--succeeded", "outcome", flag_value="succeeded", help="Record that the call succeeded.")
@click.option("--failed", "outcome", flag_value="failed", help="Record that the call ran and failed.")
@click.option(
    "--never-ran", "outcome", flag_value="never_ran", help="Record that the call never ran; it may be tried again."
)
@click.option("--from-evidence", "outcome", flag_value="evidence", help="Use the outcome that a late worker reported.")
@click.option("--output", metavar="JSON", help="Record this result of the call: JSON, or else a text.")
@click.option("--by", metavar="WHO", help="Say who found out (default: you).")
@click.option("-m", "--message", "why", default="", metavar="TEXT", help="Say how you know.")
@common
def reconcile_command(
    ctx: CommandContext, session: str, action: str, outcome: str | None, output: str | None, by: str | None, why: str
) -> int:
    """Record the outcome of a call that was interrupted, once you have found it out. When the agent's script runs
    again, it continues with that result. ACTION is the id of the call, or its first characters. Without an outcome,
    show what is known and exit with 1.

    Examples:
      wakelog reconcile crash send_email-5
      wakelog reconcile crash send_email-5 --succeeded -m "it was sent"
      wakelog reconcile crash charge-9 --succeeded --output '{"receipt": 7}'
    """
    pending = _find(ctx.session(session), action)
    if outcome is None:
        _show(ctx, pending)
        return NO
    is_evidence = outcome == "evidence"
    value = None if output is None else json_or_text(output)
    seq = pending.session.calls.reconcile(
        pending.action, "" if is_evidence else outcome, output=value, by=by or ("" if is_evidence else _me()), why=why
    )
    recorded = pending.session.log.entry(seq).body["outcome"]
    _answer_settled(ctx, pending, seq, f"{pending.action} is reconciled: {recorded.replace('_', ' ')}")
    return 0


def _show(ctx: CommandContext, pending: _Pending) -> None:
    """Shows what is known about a call with an unknown outcome."""
    evidence = [
        {
            "seq": e.seq,
            "outcome": e.body.get("outcome", ""),
            "output": fetch_value(pending.session, e, e.body.get("output")),
        }
        for e in pending.session.calls.evidence(pending.action)
    ]

    def human() -> None:
        entry = pending.entry
        where = f"asked for at e{entry['seq']}" + (f", turn @{entry['turn']}" if entry["turn"] else "")
        ctx.say(f"{ctx.style(inert_line(pending.action), bold=True)}  {entry['status']}, {where}")
        ctx.say(f"  {inert_line(entry['tool'])} {inert_line(text_of(pending.input))}")
        ctx.say(f"  key: {inert_line(entry.get('key') or 'none')}")
        for item in evidence:
            what = f"{item['outcome']} {text_of(item['output'])}" if item["output"] is not None else item["outcome"]
            ctx.say(f"  a late worker said (e{item['seq']}): {inert_line(what)}")
        ctx.say(f"  {pending.next}{' | --from-evidence' if evidence and '--never-ran' in pending.next else ''}")

    ctx.answer("pending", {**pending.plain(), "evidence": evidence}, human)


@click.command("answer")
@named_session
@click.argument("request")
@click.argument("text", metavar="TEXT")
@why_option
@common
def answer_command(ctx: CommandContext, session: str, request: str, text: str, why: str) -> None:
    """Answer a question that an agent asked. If the question has options, TEXT is one of them. REQUEST is the id of
    the question, or its first characters.

    Example:
      wakelog answer fix-bug apply-on-production yes -m "after the backup"
    """
    pending = _find(ctx.session(session), request)
    seq = pending.session.calls.answer(pending.action, text, by=_me(), why=why)
    _answer_settled(ctx, pending, seq, f"{pending.action} is answered: {text}")


def _settle_command(verb: str, done: str, doc: str) -> click.Command:
    """A command that settles a call with the verb of the same name."""

    @click.command(verb, help=doc)
    @named_session
    @click.argument("action")
    @why_option
    @common
    def command(ctx: CommandContext, session: str, action: str, why: str) -> None:
        pending = _find(ctx.session(session), action)
        who = {} if verb == "abandon" else {"by": _me()}
        seq = getattr(pending.session.calls, verb)(pending.action, why=why, **who)
        had_started = pending.entry["status"] in ("running", "uncertain")
        more = ("; it is not run again" if had_started else "; it never ran") if verb == "abandon" else ""
        _answer_settled(ctx, pending, seq, f"{pending.action} is {done}{more}")

    return command


approve_command = _settle_command(
    "approve",
    "approved: a waiting agent continues; if it has ended, run its script again",
    """Approve a call that waits, so that it can run.

    Example:
      wakelog approve deploy release-3f2a -m "checked the diff"
    """,
)
deny_command = _settle_command(
    "deny",
    "denied: its caller gets an error of type denied",
    """Deny a call that waits for approval.

    Example:
      wakelog deny deploy release-3f2a -m "not on a Friday"
    """,
)
abandon_command = _settle_command(
    "abandon",
    "given up",
    """Give up on a pending call, when its outcome no longer matters. A call that had started is not run again: the
    agent's script, run again, gets an error of type abandoned. A call that never started is requested again.

    Example:
      wakelog abandon deploy release-3f2a -m "superseded"
    """,
)


def _answer_settled(ctx: CommandContext, pending: _Pending, seq: Seq, text: str) -> None:
    ctx.done("settled", pending.session, f"{inert_line(text)}  (e{seq})", action=pending.action, seq=seq)


def _me() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
