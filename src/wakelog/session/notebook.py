"""Shows a session and a turn as HTML in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakelog.model.html import ROWS_MAX, box, table, text
from wakelog.timeline.points import attempts_of

if TYPE_CHECKING:
    from wakelog.session.session import Session
    from wakelog.session.turn import Turn


def session_html(session: Session[Any]) -> str:
    """Lists the newest turns, one line each."""
    head = session.head
    name = str(session)
    title = f"{text(name)} · {head.turn} turns · {head.seq:,} events · {text(head.status)}"
    newest = range(head.turn, max(0, head.turn - ROWS_MAX), -1)
    rows = [_turn_row(session, number) for number in newest]
    older = [f'<div class="dim">… {head.turn - ROWS_MAX:,} older</div>'] if head.turn > ROWS_MAX else []
    return box(title, [table(rows), *older], f"wakelog log {name}")


def _turn_row(session: Session[Any], number: int) -> list[str]:
    spans = attempts_of(session.log, number)
    started = session.log.entry(spans[-1].first)
    tries = f"×{len(spans)}" if len(spans) > 1 else ""
    preview = session.log.value(started, started.body.get("input")) or ""
    return [f"@{number}", text(spans[-1].outcome), tries, text(preview, 100)]


def turn_html(turn: Turn[Any]) -> str:
    """Lists the events of a turn."""
    session = turn.session
    rows = [
        [f"e{e.seq}", text(e.kind), text(str(e.body.get("tool") or e.body.get("key") or e.body.get("path") or ""), 60)]
        for e in session[f"@{turn.number}"]
    ]
    title = f"turn @{turn.number} of {text(str(session))}"
    return box(title, [table([row]) for row in rows], f"wakelog show {session}@{turn.number}")
