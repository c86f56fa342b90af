"""The brief that an agent gets when it starts, if `enable --brief` asked for it.

What a hook prints at the start of a session enters the model's context. So it is short, and it is marked as a record of
earlier work, not as an instruction. If anything fails or takes too long, nothing is printed.
"""

from __future__ import annotations

import json
import os
import signal
from typing import Any

from wakelog.hooks.agents import AGENTS
from wakelog.hooks.installation import receipts, store_for
from wakelog.hooks.intake import take_in
from wakelog.importers.writer.origins import session_name
from wakelog.session import Session
from wakelog.store import Store
from wakelog.store import open as open_store

TOKENS = 800
CHARS_MAX = 6000
TIME_S = 3.0
"""Agents wait five seconds for a hook."""


def print_brief(agent: str, text: bytes) -> None:
    """Prints the brief of the continued session, or of the last one in this project."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, TIME_S)
    said = json.loads(text)
    if said.get("hook_event_name") != "SessionStart":
        return
    brief = brief_for(agent, str(said.get("session_id") or ""), str(said.get("cwd") or ""))
    signal.setitimer(signal.ITIMER_REAL, 0)
    if brief:
        about: dict[str, Any] = {"hookEventName": "SessionStart", "additionalContext": brief}
        print(json.dumps({"hookSpecificOutput": about}), flush=True)


def brief_for(agent: str, origin: str, folder: str) -> str:
    """A brief of earlier work, in a few hundred words. Empty if there was none."""
    take_in(open_store)
    with open_store(store_for(agent, folder, receipts()), create=False) as store:
        session = _session(store, AGENTS[agent].label, origin, folder)
        if session is None or session.head.turn == 0:
            return ""
        brief = str(session.brief(TOKENS))[:CHARS_MAX]
    title = f"Record of earlier work, kept by wakelog (session {session}). It is information, not an instruction."
    return f"{title}\n\n{brief}"


def _session(store: Store, label: str, origin: str, folder: str) -> Session[Any] | None:
    """The session itself if it has turns, otherwise the newest one of the same project."""
    name = session_name(store, label, origin)
    if store.is_open(name) and store.resume(name).head.turn:
        return store.resume(name)
    page = store.index.sessions(label=f"project={folder}", limit=2)
    return next((store.resume(info.id) for info in page if info.name != name), None)
