"""A session as a whole: its names, its status (session/status.py) and its pending calls, in words and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wakelog.cli.context import CommandContext
from wakelog.cli.render.money import plain_money
from wakelog.cli.render.values import text_of
from wakelog.cli.text import fit, glyph, inert_line, iso
from wakelog.model.names import unquoted_name
from wakelog.model.values import Value

if TYPE_CHECKING:
    from wakelog.index.results import SessionInfo
    from wakelog.session import Session
    from wakelog.session.status import SessionCondition

_SIGNS = {
    "open": ("open", "blue"),
    "active": ("open", "blue"),
    "paused": ("paused", "yellow"),
    "closed": ("done", "green"),
    "archived": ("done", "white"),
    "deleted": ("failed", "white"),
}


def status_sign(status: str, *, failed: bool = False) -> tuple[str, str]:
    """The glyph and colour of a status."""
    name, color = ("failed", "red") if failed else _SIGNS.get(status, ("open", "white"))
    return glyph(name), color


def status_words(ctx: CommandContext, status: str) -> str:
    sign, color = status_sign(status)
    return f"{ctx.style(sign, fg=color)} {status}"


def short_id(session: str) -> str:
    """A short id that still finds the session."""
    root, dot, fork = session.partition(".")
    return f"{root[:12]}{dot}{fork}"


def handle(session: Session[Any]) -> str:
    """The session's name if it is safe to paste into a shell, else its id."""
    return unquoted_name(session.name) or session.id


def plain_move(undo: str, operation: int, *, dry_run: bool) -> dict[str, Any]:
    """What a rewind or an adoption did, in JSON. `operation` is its event, 0 if nothing was done."""
    done = bool(operation)
    return {"dry_run": dry_run, "done": done, "operation": operation or None, "undo": undo if done else None}


def identity(session: Session[Any]) -> dict[str, Any]:
    """The first fields of a JSON answer about a session."""
    return {"session": session.id, "name": session.name or None}


def label(session: Session[Any] | SessionInfo) -> str:
    """The session's name or id, inert."""
    return inert_line(str(session))


def title(ctx: CommandContext, session: Session[Any]) -> str:
    """The session's name in bold, inert, cut to a third of the line."""
    return ctx.style(fit(str(session), ctx.columns // 3), bold=True)


def plain_session(session: Session[Any], condition: SessionCondition) -> dict[str, Any]:
    """A session as JSON."""
    document, head = condition.document, condition.head
    last_error = document["last_error"]
    return {
        "id": session.id,
        "name": session.name or None,
        "status": condition.status,
        "needs": list(condition.needs),
        "at": condition.seq,
        "updated_at": iso(condition.at),
        "head": {"seq": head.seq, "hash": head.hash.hex(), "epoch": head.epoch},
        "turn": document["turn"],
        "parent": {"session": head.fork.parent, "at": head.fork.at} if head.fork else None,
        "holder": condition.holder or None,
        "goal": document["goal"],
        "labels": document["labels"],
        "budget": plain_budget(document["budget"]),
        "pending": [{"action": key, **plain_pending(p)} for key, p in condition.pending.items()],
        "flags": [{"flag": key, **flag} for key, flag in document["flags"].items()],
        "last_error": last_error,
        "view": document["view"] if document["view"]["rewound"] else None,
    }


def plain_pending(pending: dict[str, Any]) -> dict[str, Any]:
    """A pending action with every field; null if empty."""
    names = ("tool", "status", "effect", "seq", "turn", "attempt", "key", "input_hash", "prompt")
    return {name: pending.get(name) or None for name in names}


def plain_budget(budget: Value) -> dict[str, Any]:
    """What was spent and the limit, of each kind; unknown and unlimited are null."""
    spent, limits = budget["spent"], budget["limits"]
    return {
        "tokens": {"spent": spent.get("tokens") or None, "limit": limits.get("tokens")},
        "money": {
            "spent": plain_money(spent.get("usd_micros", 0)),
            "limit": plain_money(limits.get("usd_micros") or 0, estimate=False),
        },
        "duration_us": {"spent": spent.get("duration_us") or None, "limit": limits.get("duration_us")},
    }


def pending_text(action: str, pending: Mapping[str, Any]) -> str:
    """A pending action in words."""
    tool, status = text_of(pending.get("tool", "")), text_of(pending.get("status", ""))
    prompt = text_of(pending.get("prompt") or "")
    if tool == "input":
        return f"asks you: {prompt}"
    words = {
        "waiting": "waits for approval",
        "uncertain": "may or may not have happened",
        "running": "running",
        "requested": "not started",
    }
    return f"{tool}  {words.get(status, status)}  ({text_of(pending.get('effect', ''))}, {action})"
