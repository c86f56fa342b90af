"""The session that a replay passes to the agent: it opens the recorded turns, and answers calls from the record."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, get_args

import msgspec

from wakelog.engines.memory import MemoryEngine
from wakelog.errors import NotFoundError
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.replay.call_match import Matcher, Order
from wakelog.replay.recorded_runtime import Effects, ReplayRuntime, caller
from wakelog.replay.recording import read_recording
from wakelog.replay.replay import Replay, check_choice
from wakelog.replay.report import Mode
from wakelog.replay.scratch import scratch_log
from wakelog.runtime.resume import Resume
from wakelog.session.base import S, Where
from wakelog.session.data import DataType, split_type
from wakelog.session.session import Session
from wakelog.session.turn import Turn


class ReplayedSession(Session[S]):
    """A session whose turns are the recorded ones."""

    _runtime: ReplayRuntime

    def turn(self, user: Value = None, **how: Any) -> Turn[S]:
        """Opens the next turn of the recording."""
        self._runtime.main = caller()
        return super().turn(user, **how)

    def _open_turn(
        self, turn: Turn[S], started: ev.TurnStarted, first_events: list[EventDraft], resume: Resume
    ) -> tuple[int, int]:
        # The recording answers, whether or not the session has completed a turn with this id.
        started = self._runtime.opens(msgspec.structs.replace(started, id=""))
        return super()._open_turn(turn, started, first_events, "never")


def open_replay(
    session: Session[S], where: Where, mode: Mode, effects: Effects, order: Order, record: bool
) -> Replay[Session[S]]:
    """Prepares a replay of a part of a session."""
    check_choice(mode, get_args(Mode), "a mode of replay")
    check_choice(effects, get_args(Effects), "what to do with effects")
    check_choice(order, get_args(Order), "an order")
    recording = read_recording(session.log, where)
    is_fork = record or mode != "strict"
    if is_fork:
        log = session.log.fork(recording.start, why=f"replay of {recording.name} ({mode})")
    else:
        log = scratch_log(session.log, recording.start)
    replayed: ReplayedSession[S] = ReplayedSession(
        log, name="" if is_fork else session.name, data_type=session._data_type
    )
    runtime = ReplayRuntime(log, Matcher(recording, order), mode, effects, is_scratch=not is_fork)
    before = session._runtime
    runtime.tools.update(before.tools)
    runtime.approver, runtime.approval_wait_s = before.approver, before.approval_wait_s
    runtime.capture = before.capture if is_fork else None
    replayed._runtime = runtime
    replayed.store = session.store if is_fork else None
    return Replay(replayed, runtime, recording, is_fork=is_fork)


def recorded(bundle: str | os.PathLike[str], *, data: Any = None, version: int = 1) -> Session[Any]:
    """Loads and verifies the session of a bundle, in memory: `wakelog.recorded("fix-auth.wakelog").replay("@4")`. The
    file never changes. `data` is the type of the session's own data, as for `Store.session`."""
    from wakelog.log.bundle import import_bundle

    try:
        with Path(bundle).open("rb") as source:
            log = import_bundle(MemoryEngine(), source)
    except FileNotFoundError as exc:
        raise NotFoundError(
            f"there is no recording at {os.fspath(bundle)}",
            kind="recording-not-found",
            hint="wakelog export SESSION -o FILE, or --format pytest, writes one",
        ) from exc
    kind, _ = split_type(data)
    return Session(log, name=log.head().name, data_type=DataType(kind, version=version))
