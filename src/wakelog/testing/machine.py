"""A state machine that runs random verbs on real logs and on the toy, and compares them.

Every session of a run has a toy and two Log objects, like two processes; either may write at any time. Reopening,
losing answers, dropping snapshots and taking leases are verbs like appending. At the end every log must verify.

    class MyMachine(LogMachine):
        def make_engine(self, folder):
            return MyEngine(folder / "store")

    TestMyMachine = MyMachine.TestCase
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, precondition, rule

from wakelog.engine import Engine
from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError, NotFoundError
from wakelog.log import Log
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.model.ids import SessionId
from wakelog.state.digest import state_hash
from wakelog.state.patch import equal
from wakelog.testing import strategies
from wakelog.testing.builders import START_US, new_session
from wakelog.testing.faults import LossyEngine
from wakelog.testing.toy import RESTORED, Toy, is_legal

SESSIONS_MAX = 6
BIG = "a value that makes a snapshot due " * 1200

_writers = st.sampled_from([0, 1])
_events = st.lists(strategies.knowledge, min_size=1, max_size=3)


class PlayedSession:
    """One session of the run: its toy, and two independent Log objects."""

    def __init__(self, session: SessionId, toy: Toy, logs: list[Log]) -> None:
        self.session, self.toy, self.logs = session, toy, logs


class LogMachine(RuleBasedStateMachine):
    """Random verbs on logs over any engine. Subclass it and supply `make_engine`."""

    sessions: Bundle[PlayedSession] = Bundle("sessions")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="wakelog-machine-"))
        self.lossy = LossyEngine(self.make_engine(self.folder))
        self.engine = cast(Engine, self.lossy)
        self.played: list[PlayedSession] = []
        self._now = START_US
        self._ids = 0

    def make_engine(self, folder: Path) -> Engine:
        """An engine on the store that belongs to this folder. Yours to supply."""
        raise AssertionError(f"{type(self).__name__} does not say which engine: it has no make_engine")

    def reopen(self, engine: Engine) -> Engine:
        """The store after it was closed and opened again."""
        engine.close()
        return self.make_engine(self.folder)

    def _log(self, session: SessionId) -> Log:
        # No redaction: drawn text may look like a secret by chance, and the toy does not redact.
        return Log(self.engine, session, clock=self.clock, redact=None)

    def clock(self) -> int:
        self._now += 1
        return self._now

    # Sessions

    @initialize(target=sessions, goal=st.none() | strategies.texts, data=strategies.objects)
    def create(self, goal: str | None, data: dict[str, Any]) -> PlayedSession:
        session = new_session()
        opened = ev.SessionOpened(goal=goal, data=data)
        log = Log.create(self.engine, session, opened, clock=self.clock, redact=None)
        return self._play(session, Toy(goal, data), log)

    @precondition(lambda self: len(self.played) < SESSIONS_MAX)
    @rule(target=sessions, it=sessions, which=_writers, data=st.data())
    def fork(self, it: PlayedSession, which: int, data: st.DataObject) -> PlayedSession:
        at = data.draw(st.integers(1, it.toy.seq), label="at")
        child = it.logs[which].fork(at)
        return self._play(child.id, it.toy.fork(at), self._log(child.id))

    def _play(self, session: SessionId, toy: Toy, log: Log) -> PlayedSession:
        played = PlayedSession(session, toy, [log, self._log(session)])
        self.played.append(played)
        self._check(played)
        return played

    # Appending

    @rule(it=sessions, which=_writers, events=_events)
    def append(self, it: PlayedSession, which: int, events: list[ev.Event]) -> None:
        self._append(it, which, events)

    @rule(it=sessions, which=_writers, event=st.sampled_from(strategies.MOVES + strategies.LIFE))
    def try_a_move(self, it: PlayedSession, which: int, event: ev.Event) -> None:
        self._append(it, which, [event])

    @rule(it=sessions, which=_writers, data=st.data())
    def move(self, it: PlayedSession, which: int, data: st.DataObject) -> None:
        for _ in range(data.draw(st.integers(1, 6), label="moves")):
            legal = [event for event in strategies.MOVES if is_legal(it.toy.state, event)]
            if legal:
                self._append(it, which, [data.draw(st.sampled_from(legal), label="move")])

    @rule(it=sessions, which=_writers, events=_events)
    def append_and_revert(self, it: PlayedSession, which: int, events: list[ev.Event]) -> None:
        reversals: list[ev.Event] = []
        for event in events:
            if isinstance(event, ev.FactRecorded):
                reversals.append(ev.FactRetracted(key=event.key))
            elif isinstance(event, ev.FlagRaised):
                reversals.append(ev.FlagCleared(flag=event.flag))
            elif isinstance(event, ev.ContextEvicted):
                reversals.append(ev.ContextRestored(key=event.key))
        self._append(it, which, events)
        if reversals:
            self._append(it, 1 - which, reversals)

    @rule(it=sessions, which=_writers, data=st.data())
    def patch(self, it: PlayedSession, which: int, data: st.DataObject) -> None:
        patch = data.draw(strategies.patches(it.toy.state["data"]), label="patch")
        # A patch names the head it was made for.
        self._append(it, which, [ev.StatePatched(patch=patch)], expect=it.toy.seq)

    @rule(it=sessions, which=_writers)
    def append_what_makes_a_snapshot_due(self, it: PlayedSession, which: int) -> None:
        self._append(it, which, [ev.FactRecorded(key="big", value=BIG)])

    @rule(it=sessions, which=_writers, events=_events)
    def append_and_lose_the_answer(self, it: PlayedSession, which: int, events: list[ev.Event]) -> None:
        self.lossy.lose = 1
        self._append(it, which, events)
        self.lossy.lose = 0

    @rule(it=sessions, which=_writers, events=_events, between=_events)
    def append_again_under_the_same_id(
        self, it: PlayedSession, which: int, events: list[ev.Event], between: list[ev.Event]
    ) -> None:
        self._ids += 1
        commit_id = f"chosen-{self._ids}"
        if not it.toy.append(*events):
            return
        first = it.logs[which].append(*events, commit_id=commit_id)
        self._append(it, which, between)
        again = it.logs[1 - which].append(*events, commit_id=commit_id)
        assert (again.seq, again.hash) == (first.seq, first.hash)
        with pytest.raises(InvalidInputError):
            it.logs[which].append(*events, ev.NoteAdded(text="more"), commit_id=commit_id)
        self._check(it)

    @rule(it=sessions, which=_writers, events=_events, missed=st.integers(1, 3))
    def append_expecting_an_old_head(self, it: PlayedSession, which: int, events: list[ev.Event], missed: int) -> None:
        with pytest.raises(ConflictError) as refused:
            it.logs[which].append(*events, expect=it.toy.seq - missed)
        assert refused.value.head_seq == it.toy.seq
        self._check(it)

    def _append(self, it: PlayedSession, which: int, events: list[ev.Event], expect: int | None = None) -> None:
        log = it.logs[which]
        if it.toy.append(*events):
            assert log.append(*events, expect=expect).seq == it.toy.seq
        else:
            with pytest.raises(NotAllowedError):
                log.append(*events, expect=expect)
        self._check(it)

    # Leases

    @rule(it=sessions, which=_writers, events=_events)
    def take_the_lease(self, it: PlayedSession, which: int, events: list[ev.Event]) -> None:
        old = it.toy.state["lease"]["epoch"]
        epoch = it.logs[which].take_lease(f"writer {which}", force=True)
        assert epoch == old + 1
        it.toy.append(ev.LeaseTaken(epoch=epoch, holder=f"writer {which}"))
        refusal = NotAllowedError if it.toy.state["status"] in ("closed", "paused") else ConflictError
        with pytest.raises((ConflictError, refusal)):
            it.logs[1 - which].append(*events, guard=old)
        if it.toy.append(*events):
            assert it.logs[which].append(*events, guard=epoch).seq == it.toy.seq
        self._check(it)

    # Moving

    @rule(it=sessions, which=_writers, data=st.data())
    def rewind(self, it: PlayedSession, which: int, data: st.DataObject) -> None:
        to = data.draw(st.integers(1, it.toy.seq), label="to")
        if it.toy.state["status"] == "closed":
            with pytest.raises(NotAllowedError):
                it.logs[which].rewind(to)
        else:
            it.toy.rewind(to)
            assert it.logs[which].rewind(to).seq == it.toy.seq
            for part in RESTORED:
                assert equal(it.logs[which].state()[part], it.toy.states[to][part])
        self._check(it)

    @rule(it=sessions, which=_writers, events=_events)
    def do_and_undo(self, it: PlayedSession, which: int, events: list[ev.Event]) -> None:
        before = it.toy.seq
        if it.toy.state["status"] == "closed" or not it.toy.append(*events):
            return
        log = it.logs[which]
        log.append(*events)
        it.toy.rewind(before)
        log.rewind(before, mode="undo")
        assert all(equal(log.state()[part], log.state(before)[part]) for part in RESTORED)
        self._check(it)

    # Verbs that may change the speed, but never an answer

    @rule(it=sessions)
    def drop_snapshots(self, it: PlayedSession) -> None:
        self.engine.drop_snapshots(it.session)
        self._check(it)

    @rule(it=sessions, which=_writers)
    def open_the_log_again(self, it: PlayedSession, which: int) -> None:
        it.logs[which] = self._log(it.session)
        self._check(it)

    @rule()
    def open_the_engine_again(self) -> None:
        self.lossy = LossyEngine(self.reopen(self.lossy.inner))
        self.engine = cast(Engine, self.lossy)
        for it in self.played:
            it.logs = [self._log(it.session) for _ in range(2)]

    @rule(it=sessions, which=_writers, data=st.data())
    def look_back(self, it: PlayedSession, which: int, data: st.DataObject) -> None:
        at = data.draw(st.integers(1, it.toy.seq), label="at")
        assert equal(it.logs[which].state(at), it.toy.states[at])
        assert it.logs[which].state_hash(at) == state_hash(it.toy.states[at])
        with pytest.raises(NotFoundError):
            it.logs[which].state(it.toy.seq + 1)

    # Checks

    def _check(self, it: PlayedSession) -> None:
        for log in it.logs:
            assert equal(log.state(), it.toy.state)
        assert self.engine.head(it.session).seq == it.toy.seq

    def teardown(self) -> None:
        try:
            for it in self.played:
                self._check_complete(it)
        finally:
            self.lossy.inner.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _check_complete(self, it: PlayedSession) -> None:
        log = self._log(it.session)
        note(f"{it.session}: {[f'{e.seq} {e.kind}' for e in log.entries()]}")
        report = verify(log)
        assert report.ok, report
        assert report.events == it.toy.seq
        hashes = {state_hash(it.toy.state), *(each.state_hash() for each in (log, *it.logs))}
        self.engine.drop_snapshots(it.session)
        log.forget()
        assert hashes == {log.state_hash()}
        assert equal(log.state(), it.toy.state)
