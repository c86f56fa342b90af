"""Where a selector points, and what to try when it points nowhere."""

from __future__ import annotations

import difflib
from typing import Any

from wakelog.cli.context import Context
from wakelog.cli.render.sessions import handle
from wakelog.errors import InvalidInputError, NotFoundError, WakelogError
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.session import Session
from wakelog.state.patch import escape, tokens_of
from wakelog.timeline.selectors import Range, resolve_range


def place(ctx: Context, session: Session[Any], text: str) -> Range:
    """The events a point or range covers; when there is none, the error names the session and the nearest places."""
    try:
        return resolve_range(session.log, text)
    except NotFoundError as exc:
        name, head = handle(session), session.head
        message = exc.message.replace(session.id, session.name or session.id)
        hint = exc.hint or f"wakelog log {name}"
        if exc.kind == "turn-not-found" and head.turn:
            hint = f"wakelog log {name}   or   {name}@{head.turn}"
        elif exc.kind == "event-not-found" and text[:1] == "e":
            hint = f"wakelog log {name} --events   or   e{head.seq}"
        raise NotFoundError(message, kind=exc.kind, hint=hint) from exc


def point(ctx: Context, session: Session[Any], text: str) -> Seq | None:
    """The event a point stands for; None for now."""
    return something(session, text, place(ctx, session, text)).last if text else None


def something(session: Session[Any], text: str, found: Range) -> Range:
    """The place, unless it lies before the session's first event: nothing is there to look at."""
    if found.last:
        return found
    raise NotFoundError(
        f"nothing had happened yet at {text} in {session.name or session.id}",
        kind="event-not-found",
        hint=f"the first event is e1: wakelog log {handle(session)} --events --reverse",
    )


def select(ctx: Context, text: str, at: str = "") -> tuple[Session[Any], str, Seq | None]:
    """A selector's session, its point or range as text, and the event that `--at` names (None: now).

    `--at` may itself name the session: `--at fix-auth@5`.
    """
    session, selector = ctx.select(text)
    if at:
        looked_at, where = ctx.select(at)
        if where.session and not selector.session:
            session = looked_at
        elif where.session and looked_at.id != session.id:
            raise InvalidInputError(
                f"--at {at} names another session than {text}", kind="bad-selector", hint="name it once"
            )
        at = where.first or "@"
    spot = selector.first + (f"..{selector.last}" if selector.last else "")
    return session, spot, point(ctx, session, at)


def key_of(document: Value, key: str) -> tuple[str, Value]:
    """The value at a JSON Pointer; when it is not one or nothing is there, the error says what is near."""
    if key and not key.startswith("/"):
        guess = "/" + key.replace(".", "/")
        raise InvalidInputError(
            f"{key!r} is not a key: keys are JSON Pointers and start with /",
            kind="bad-key",
            hint=f"try {_existing(document, guess) or guess}",
        )
    node, known = document, ""
    tokens = tokens_of(key)
    for place, token in enumerate(tokens):
        rest = "/".join(tokens[place:])
        if isinstance(node, dict) and token in node:
            node = node[token]
        elif isinstance(node, dict) and rest in node:
            # As `plain_key` shows it.
            return f"{known}/{escape(rest)}", node[rest]
        elif isinstance(node, list) and token.isdigit() and int(token) < len(node):
            node = node[int(token)]
        else:
            raise _no_key(document, node, key, known, token)
        known += "/" + escape(token)
    return key, node


def plain_key(pointer: str) -> str:
    """A key as people read it: a path in it is a path, without the escapes of a JSON Pointer."""
    return "".join(f"/{token}" for token in tokens_of(pointer))


def _existing(document: Value, guess: str) -> str:
    """The guess, or the same below /data, if something is there."""
    for candidate in (guess, f"/data{guess}"):
        try:
            return key_of(document, candidate)[0]
        except WakelogError:
            continue
    return ""


def _no_key(document: Value, node: Value, key: str, known: str, token: str) -> NotFoundError:
    if not known and isinstance(document, dict) and token in document.get("data", {}):
        return NotFoundError(f"there is no {key} in the state", kind="key-not-found", hint=f"try /data{key}")
    if isinstance(node, dict):
        near = difflib.get_close_matches(token, list(node)[:5000], 3) or list(node)[:6]
        there = ", ".join(f"{known}/{escape(name)}" for name in near) or "it is empty"
    elif isinstance(node, list):
        there = f"{known}/0..{known}/{len(node) - 1}" if node else "the list is empty"
    else:
        there = f"{known} is a single value"
    return NotFoundError(f"there is no {key} in the state (near it: {there})", kind="key-not-found")
