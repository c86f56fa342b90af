"""Finds the session that was imported from a file, or under the id that its tool gave it."""

from __future__ import annotations

import itertools
import shlex
from pathlib import Path

from wakelog.errors import NotFoundError
from wakelog.importers.formats import detect_format
from wakelog.importers.writer.origins import SHORT, session_name
from wakelog.model.ids import SessionId
from wakelog.store import Store

MANY = 8
"""How many sessions of a file an error names."""


def session_of_file(store: Store, path: Path) -> SessionId:
    """The session imported from a transcript. Raises NotFoundError if there is none, or more than one."""
    format = detect_format(path)
    heads = (transcript.head for transcript in format.transcripts(path))
    # A file may hold thousands of sessions; to say that it holds many, a few are enough.
    names = {session_name(store, h.agent, h.origin, h.name): h for h in itertools.islice(heads, MANY + 1)}
    results = [name for name in names if store.is_open(name)]
    if not results:
        raise NotFoundError(
            f"{path} is a transcript of {format.TITLE} that is not in this store",
            kind="session-not-found",
            hint=f"wakelog import {shlex.quote(str(path))}",
        )
    if len(results) > 1:
        raise NotFoundError(
            f"{path} holds more than one session: {', '.join(results[:MANY])}{' …' if len(results) > MANY else ''}",
            kind="ambiguous-session",
            hint="name one of them",
        )
    return store.find(results[0])


def name_of_origin(store: Store, text: str) -> str:
    """The name, or the start of the name, of a session that is given by its tool and the tool's id:
    `claude:5a1e7c02-…`. Empty if the text does not look like that."""
    tool, colon, origin = text.partition(":")
    agents = {short: agent for agent, short in SHORT.items()} | {"codex": "codex", "cursor": "cursor"}
    agents |= {agent: agent for agent in SHORT}
    if not colon or not origin or tool not in agents:
        return ""
    return session_name(store, agents[tool], origin)
