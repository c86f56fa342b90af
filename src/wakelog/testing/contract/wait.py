"""Waiting for news, from this engine object and from others on the same store."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from wakelog.engine import Engine
from wakelog.errors import InvalidInputError
from wakelog.model.ids import SessionId
from wakelog.testing.builders import fact
from wakelog.testing.contract.base import Hooks, opened, store

LONG_S = 30.0
SHORT_S = 0.02


class _Waiter(threading.Thread):
    """Waits in a thread; `began` is set just before."""

    def __init__(self, engine: Engine, session: SessionId | None, after: int) -> None:
        super().__init__()
        self._engine, self._session, self._after = engine, session, after
        self.began = threading.Event()
        self.answer: bool | None = None

    def run(self) -> None:
        self.began.set()
        self.answer = self._engine.wait(self._session, after=self._after, timeout_s=LONG_S)

    def join_and_get(self) -> bool | None:
        self.join(LONG_S)
        return self.answer


class WaitChecks(Hooks):
    def test_what_is_already_there_needs_no_waiting(self, engine: Engine) -> None:
        writer = opened(engine, "a")
        assert engine.wait(writer.session, after=1, timeout_s=LONG_S)
        assert engine.wait(writer.session, after=0, timeout_s=0)

    def test_waiting_ends_when_the_time_runs_out(self, engine: Engine) -> None:
        writer = opened(engine, "a")
        assert not engine.wait(writer.session, after=2, timeout_s=SHORT_S)
        assert not engine.wait(writer.session, after=2, timeout_s=0)
        assert not engine.wait(None, after=0, timeout_s=SHORT_S)

    def test_waiting_for_anything_has_no_place_to_begin_after(self, engine: Engine) -> None:
        writer = opened(engine, "a")
        with pytest.raises(InvalidInputError) as caught:
            engine.wait(None, after=1, timeout_s=0)
        assert caught.value.kind == "bad-point"
        assert engine.wait(writer.session, after=1, timeout_s=0)

    def test_an_append_wakes_whoever_waits_for_the_session(self, engine: Engine) -> None:
        writer = opened(engine)
        waiter = _Waiter(engine, writer.session, after=1)
        waiter.start()
        waiter.began.wait(LONG_S)
        store(engine, writer.seal(fact("a")))
        assert waiter.join_and_get() is True

    def test_an_append_through_another_engine_object_wakes_too(self, engine: Engine, tmp_path: Path) -> None:
        writer = opened(engine)
        second = self.another(engine, tmp_path)
        waiter = _Waiter(engine, writer.session, after=1)
        waiter.start()
        waiter.began.wait(LONG_S)
        store(second, writer.seal(fact("a")))
        assert waiter.join_and_get() is True
        if second is not engine:
            second.close()

    def test_an_append_elsewhere_does_not_end_the_waiting_for_a_session(self, engine: Engine) -> None:
        writer, other = opened(engine), opened(engine)
        waiter = _Waiter(engine, writer.session, after=1)
        waiter.start()
        waiter.began.wait(LONG_S)
        store(engine, other.seal(fact("not for you")))
        waiter.join(SHORT_S)
        assert waiter.answer is None
        store(engine, writer.seal(fact("for you")))
        assert waiter.join_and_get() is True

    def test_whoever_waits_for_anything_is_woken_by_any_session(self, engine: Engine) -> None:
        writer = opened(engine)
        waiter = _Waiter(engine, None, after=0)
        waiter.start()
        waiter.began.wait(LONG_S)
        # The wait may begin after some of these appends, so append until it ends.
        while waiter.is_alive():
            store(engine, writer.seal(fact("news")))
        assert waiter.join_and_get() is True
