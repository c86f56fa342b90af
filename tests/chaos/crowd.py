"""Many tasks of one client, each with a session: their appends go to the servers in groups.

They append without an id, as most programs do. So an append without an answer is not repeated: it may be in the log,
once. One that was refused in any other way is noted as refused, and must not be there. The tasks begin at the same
moments, so that many appends wait at once."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any

from tests.chaos.history import Operation
from wakelog.errors import UnavailableError, WakelogError
from wakelog.model import events as ev
from wakelog.session import Session

SHARED = 16
TICK_S = 0.5


def session_names(client: str, count: int) -> list[str]:
    """The sessions of so many tasks. Some are shared with the other clients."""
    return [f"{client}-task-{i}" for i in range(count - SHARED)] + [f"shared-task-{i}" for i in range(SHARED)]


async def run_crowd(
    client: str, sessions: list[Session[Any]], note: Callable[[object], None], is_over: Callable[[], bool]
) -> None:
    await asyncio.gather(*(_write(client, i, session, note, is_over) for i, session in enumerate(sessions)))


async def _write(
    client: str, task: int, session: Session[Any], note: Callable[[object], None], is_over: Callable[[], bool]
) -> None:
    number = 0
    while not is_over():
        number += 1
        key = f"{client}/tasks/{task}/{number}"
        began = time.monotonic()
        verb, seq, ended = "append", 0, 0.0
        try:
            head = await _append(session, ev.FactRecorded(key=key, value=1), is_cancelled=number % 16 == task % 16)
            seq, ended = (head.seq, time.monotonic()) if head is not None else (0, 0.0)
        except WakelogError as exc:
            note({"lost": exc.kind, "at": time.monotonic()})
            if not (isinstance(exc, UnavailableError) and exc.kind == "answer-unknown"):
                verb = "refused"
        note(Operation(f"{client}/tasks", session.id, verb, began, ended, seq, key))
        await asyncio.sleep(TICK_S - time.monotonic() % TICK_S)


async def _append(session: Session[Any], event: ev.Event, *, is_cancelled: bool) -> Any:
    """The new head; None if nobody waited for it."""
    appending = asyncio.ensure_future(session.aio.append(event))
    if is_cancelled:
        await asyncio.sleep(0.001)
        appending.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        return await appending
    return None
