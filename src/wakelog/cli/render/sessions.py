"""A session as a whole: how it stands, what it waits for, and whether it needs somebody."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from wakelog.cli.context import CommandContext
from wakelog.cli.render.money import plain_money
from wakelog.cli.render.values import text_of
from wakelog.cli.text import fit, glyph, inert, iso
from wakelog.errors import CorruptLogError
from wakelog.model.ids import Seq
from wakelog.model.records import Head
from wakelog.model.values import Value
from wakelog.session import Session

if TYPE_CHECKING:
    from wakelog.index.results import SessionInfo

MONITOR, STALL = "monitor", "stall"
"""Who raises flags by rule, and the flag of a session that fell silent."""
FLAGS_SKIPPED = 32
STUCK_S = 300
"""A turn or call that is open this long without news, and without a living writer, is stuck."""

NEEDS = ("waiting", "uncertain", "stuck", "over-budget", "paused", "running", "idle", "ended")
"""What a session needs, most urgent first."""
URGENT = NEEDS[:4]
"""Those that somebody should look at."""


class Standing(msgspec.Struct, frozen=True):
    """How a session stands at a point."""

    head: Head
    seq: Seq
    at: int
    document: dict[str, Value]
    holder: str
    needs: tuple[str, ...]
    """What it needs, most urgent first; never empty."""

    @property
    def status(self) -> str:
        return str(self.document["status"])

    @property
    def need(self) -> str:
        return self.needs[0]

    @property
    def pending(self) -> dict[str, Any]:
        pending: dict[str, Any] = self.document["pending_actions"]
        return pending


def standing(session: Session[Any], at: Seq | None = None) -> Standing:
    """Reads a session's head and state; O(state), whatever the length of the history."""
    head = session.head
    document = session.log.state(session.seq(at))
    holder = session.log.living_holder() if at is None else ""
    when = _happened(session, at or head.seq, head.at)
    if document["flags"]:
        when = _last_work(session, at or head.seq, when)
    is_over = any(use.is_reached for use in session.budget.spent(at))
    needs = _needs(document, holder, session.log.clock() - when, is_over)
    return Standing(head, at or head.seq, when, document, holder, needs)


def _happened(session: Session[Any], seq: Seq, otherwise: int) -> int:
    """When an event was written. After an import, that is when the newest record happened. `otherwise` when it cannot
    be read."""
    try:
        entry = session.log.entry(seq)
    except CorruptLogError:
        return otherwise
    return entry.happened_at if entry.kind in ("records.imported", "session.closed") else entry.header.at


def _last_work(session: Session[Any], upto: Seq, when: int) -> int:
    """When something last happened, flags aside: that a session was found silent is no news from it."""
    newest = list(session.log.entries(after=max(0, upto - FLAGS_SKIPPED), upto=upto))
    return next((e.happened_at for e in reversed(newest) if e.header.actor != MONITOR), when)


def _needs(document: Mapping[str, Value], holder: str, silent_us: int, is_over: bool) -> tuple[str, ...]:
    states = {p.get("status") for p in document["pending_actions"].values()}
    if document["status"] in ("closed", "archived", "deleted"):
        return ("uncertain", "ended") if "uncertain" in states else ("ended",)
    is_busy = document["turn"]["status"] == "open" or bool(states & {"requested", "running"})
    holds = {
        "waiting": "waiting" in states,
        "uncertain": "uncertain" in states,
        "stuck": is_busy and (STALL in document["flags"] or (not holder and silent_us > STUCK_S * 1_000_000)),
        "over-budget": is_over,
        "paused": document["status"] == "paused",
        "running": is_busy or bool(holder),
    }
    return tuple(need for need in NEEDS if holds.get(need)) or ("idle",)


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


def status_words(ctx: CommandContext, status: str, *, failed: bool = False) -> str:
    sign, color = status_sign(status, failed=failed)
    return f"{ctx.style(sign, fg=color)} {status}"


def short_id(session: str) -> str:
    """Enough of an id to be found again: a root's id begins with its time, so its end is what differs."""
    root, dot, fork = session.partition(".")
    return f"{root[:12]}{dot}{fork}"


def handle(session: Session[Any]) -> str:
    """What names the session in a command to be pasted: its name where that is harmless in a shell, else its id."""
    return harmless(session.name) or session.id


def harmless(name: str) -> str:
    """The name if it can stand in a shell as it is, else nothing."""
    return name if re.fullmatch(r"[A-Za-z0-9_][\w.:+-]*", name, re.ASCII) else ""


def identity(session: Session[Any]) -> dict[str, Any]:
    """The session as the beginning of a JSON answer."""
    return {"session": session.id, "name": session.name or None}


def label(session: Session[Any] | SessionInfo) -> str:
    """What people call the session, inert."""
    return inert(session.name or session.id, lines=False)


def title(ctx: CommandContext, session: Session[Any]) -> str:
    """The session's name, bold, inert, cut to a third of the line."""
    return ctx.style(fit(session.name or session.id, ctx.columns // 3), bold=True)


def plain_session(session: Session[Any], stand: Standing) -> dict[str, Any]:
    """A session as JSON."""
    document, head = stand.document, stand.head
    last_error = document["last_error"]
    return {
        "id": session.id,
        "name": session.name or None,
        "status": stand.status,
        "needs": list(stand.needs),
        "at": stand.seq,
        "updated_at": iso(stand.at),
        "head": {"seq": head.seq, "hash": head.hash.hex(), "epoch": head.epoch},
        "turn": document["turn"],
        "parent": {"session": head.fork.parent, "at": head.fork.at} if head.fork else None,
        "holder": stand.holder or None,
        "goal": document["goal"],
        "labels": document["labels"],
        "budget": plain_budget(document["budget"]),
        "pending": [{"action": key, **plain_pending(p)} for key, p in stand.pending.items()],
        "flags": [{"flag": key, **flag} for key, flag in document["flags"].items()],
        "last_error": last_error,
        "view": document["view"] if document["view"]["rewound"] else None,
    }


def plain_pending(pending: dict[str, Any]) -> dict[str, Any]:
    """A pending action with every field, null where it says nothing."""
    names = ("tool", "status", "effect", "seq", "turn", "attempt", "key", "input_hash", "prompt")
    return {name: pending.get(name) or None for name in names}


def plain_budget(budget: Value) -> dict[str, Any]:
    """Spent and limit of each kind; unknown and unlimited are null."""
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
