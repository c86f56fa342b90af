"""wakelog: session state as infrastructure for AI agents.

A session is a durable, append-only, typed event log that lives outside the model's context window. State, diffs, forks,
resumes, replays, audits and handoffs are all read from it. Start with `wakelog.open()`.

Where to look (CONTRIBUTING.md has the layers):

    surfaces      cli, http, mcp, web
    in and out    adapters, hooks, importers, instruments, exporters
    a store       store opens it, config sets it up, maintenance checks and copies it, evidence signs its heads
    a session     session has the verbs, runtime makes calls, replay repeats them, context is what the model sees,
                  files what is on disk, monitors watches and counts
    its past      timeline finds positions, diff what changed, compare what differs, provenance where it came from,
                  insight what the agent's words say; knowledge and patterns ask over all sessions, index answers
    its bytes     log, state, codec, redaction, engine and engines; model and errors are what all of them speak of
"""

from __future__ import annotations

TYPE_CHECKING = False  # not imported from typing, which takes longer than everything else here
if TYPE_CHECKING:
    from typing import Any

    from wakelog.errors import (
        CallFailedError,
        ConflictError,
        CorruptLogError,
        DivergenceError,
        InvalidInputError,
        NotAllowedError,
        NotFoundError,
        NotSentError,
        UnavailableError,
        UncertainError,
        UnsupportedError,
        WakelogError,
    )
    from wakelog.instruments.patches import instrument, uninstrument
    from wakelog.log import Log
    from wakelog.model import events
    from wakelog.replay.plan import Plan
    from wakelog.runtime.ambient import current, current_call, untrusted
    from wakelog.runtime.outcome import Outcome
    from wakelog.runtime.policy import Found, Policy
    from wakelog.runtime.tools import tool
    from wakelog.session import Session, Turn
    from wakelog.session.replayed_session import recorded
    from wakelog.store import Store, open
    from wakelog.timeline.messages import ModelMessage, UserMessage

__version__ = "0.1.0"

# Importing wakelog loads nothing else: each name loads its module when it is first used.
_NAMES = {
    "wakelog.errors": "CallFailedError ConflictError CorruptLogError DivergenceError InvalidInputError NotAllowedError"
    " NotFoundError NotSentError UnavailableError UncertainError UnsupportedError WakelogError",
    "wakelog.instruments.patches": "instrument uninstrument",
    "wakelog.log": "Log",
    "wakelog.model": "events",
    "wakelog.replay.plan": "Plan",
    "wakelog.runtime.ambient": "current current_call untrusted",
    "wakelog.runtime.outcome": "Outcome",
    "wakelog.runtime.policy": "Found Policy",
    "wakelog.runtime.tools": "tool",
    "wakelog.session": "Session Turn",
    "wakelog.session.replayed_session": "recorded",
    "wakelog.store": "Store open",
    "wakelog.timeline.messages": "ModelMessage UserMessage",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "CallFailedError",
    "ConflictError",
    "CorruptLogError",
    "DivergenceError",
    "Found",
    "InvalidInputError",
    "Log",
    "ModelMessage",
    "NotAllowedError",
    "NotFoundError",
    "NotSentError",
    "Outcome",
    "Plan",
    "Policy",
    "Session",
    "Store",
    "Turn",
    "UnavailableError",
    "UncertainError",
    "UnsupportedError",
    "UserMessage",
    "WakelogError",
    "current",
    "current_call",
    "events",
    "instrument",
    "open",
    "recorded",
    "tool",
    "uninstrument",
    "untrusted",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        hint = f": open a store first, then store.{name}(...)" if name in ("session", "resume") else ""
        raise AttributeError(f"module 'wakelog' has no attribute {name!r}{hint}")
    import importlib

    if name == "events":
        importlib.import_module("wakelog.model.events")  # a module itself
    home = importlib.import_module(_HOMES[name])
    globals()[name] = found = getattr(home, name)
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
