"""Copies sessions of another ADK session service, so that agents can continue here.

Events are copied in order, one commit each. So a copy that was interrupted can be repeated, and a repeated copy adds
only what is new. A session that was continued here is skipped. The state of a user and of an app is shared by sessions,
and each may have changed it. So it is set at the end, to its value in the other service.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.session import Session
from google.adk.sessions.state import State

Share = Callable[[str, str, dict[str, Any]], None]
"""Sets the shared state of an app and a user. Keys have their prefixes."""
_SHARED = (State.APP_PREFIX, State.USER_PREFIX)


class SessionCopied(msgspec.Struct, frozen=True):
    """The result for one session."""

    user: str
    id: str
    events: int = 0
    is_new: bool = False
    has_gone_on: bool = False
    """True if it was continued here, and therefore skipped."""


async def copy_sessions(
    ours: BaseSessionService,
    other: BaseSessionService,
    app: str,
    share: Share,
    is_wanted: Callable[[str, str], bool] = lambda user, id: True,
) -> AsyncIterator[SessionCopied]:
    """Copies the sessions of an app for which `is_wanted(user, id)` is true."""
    shared: dict[str, dict[str, Any]] = {}
    is_newer_here = False
    for listed in (await other.list_sessions(app_name=app)).sessions:
        if not is_wanted(listed.user_id, listed.id):
            continue
        ids = {"app_name": app, "user_id": listed.user_id, "session_id": listed.id}
        source = await other.get_session(**ids)
        if source is None:
            continue
        copied = await _copy_session(ours, source, ids)
        is_newer_here |= copied.has_gone_on
        if copied.events or copied.is_new:
            shared[listed.user_id] = {k: v for k, v in source.state.items() if k.startswith(_SHARED)}
        yield copied
    for user, state in shared.items() if not is_newer_here else ():
        share(app, user, state)


async def _copy_session(ours: BaseSessionService, source: Session, ids: dict[str, str]) -> SessionCopied:
    session = await ours.get_session(**ids)
    is_new = session is None
    if session is None:
        changed = {key for event in source.events for key in event.actions.state_delta}
        first = {key: value for key, value in source.state.items() if key not in changed}
        session = await ours.create_session(**ids, state=first)
    known = [event.id for event in session.events]
    if known != [event.id for event in source.events[: len(known)]]:
        return SessionCopied(source.user_id, source.id, has_gone_on=True)
    new = source.events[len(known) :]
    for event in new:
        await ours.append_event(session, event.model_copy(deep=True))
    return SessionCopied(source.user_id, source.id, len(new), is_new)
