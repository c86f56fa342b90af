"""Appends of many sessions go to a NATS cluster in groups."""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.engines.nats_server import NatsServer
from tests.engines.test_nats import engine_on
from tests.engines.test_nats_engine import put_through
from wakelog.engine import Pending
from wakelog.engines.nats import NatsEngine, append_groups
from wakelog.engines.nats.errors import JetStreamRefusal
from wakelog.errors import ConflictError, UnavailableError
from wakelog.model.records import Commit
from wakelog.testing.builders import CommitWriter, fact
from wakelog.testing.contract.base import expected, opened, store, stored

Stored = Callable[[int | Exception], None]


@pytest.fixture
def engine(nats: NatsServer, tmp_path: Path) -> Iterator[NatsEngine]:
    """An engine that sends groups, although its server has no replicas."""
    engine = engine_on(nats, tmp_path.name)
    engine._lanes._groups._has_groups = lambda: True
    yield engine
    engine.close()


@pytest.fixture
def other(nats: NatsServer, tmp_path: Path) -> Iterator[NatsEngine]:
    engine = engine_on(nats, tmp_path.name)
    yield engine
    engine.close()


class Held:
    """Holds the first group of an engine until the others have arrived, and notes how many messages each group has."""

    def __init__(self, engine: NatsEngine) -> None:
        self.engine, self.sizes = engine, list[int]()
        self._put = engine._connection.put_soon
        self._has_first = threading.Event()
        self._first: tuple[Any, Stored] | None = None
        engine._connection.put_soon = self._hold  # type: ignore[method-assign]

    def _hold(self, messages: Sequence[Any], on_stored: Stored) -> None:
        self.sizes.append(len(messages))
        if self._first is None:
            self._first = messages, on_stored
            self._has_first.set()
        else:
            self._put(messages, on_stored)

    def submit(self, first: Commit, *others: Commit) -> list[Pending]:
        """Submits the others while the first is on its way."""
        pending = [self.submit_first(first), *(self.engine.submit(commit) for commit in others)]
        self.let_go()
        return pending

    def submit_first(self, first: Commit) -> Pending:
        pending = self.engine.submit(first)
        assert self._has_first.wait(30)
        return pending

    def let_go(self) -> None:
        async def send() -> None:
            assert self._first is not None
            self._put(*self._first)

        self.engine._run(send)

    async def look(self) -> None:
        """Runs on the engine's loop after what was submitted before has arrived there."""


def test_what_arrives_while_a_group_is_on_its_way_is_the_next_group(engine: NatsEngine, other: NatsEngine) -> None:
    writers = [opened(engine) for _ in range(6)]
    held = Held(engine)
    commits = [writer.seal(fact("k"), snapshot=number == 3) for number, writer in enumerate(writers)]
    heads = [pending.result() for pending in held.submit(*commits)]
    assert held.sizes == [1, 6]  # five commits and a snapshot
    assert [head.hash for head in heads] == [writer.hash for writer in writers]
    for writer in writers:
        known = engine._tails.cached(writer.session)
        assert known is not None
        truth = engine._run(lambda session=writer.session: engine._tails.get(session))  # type: ignore[misc]
        assert (known.seq, known.head.hash) == (truth.seq, truth.head.hash)
        assert stored(other, writer.session) == expected(*writer.commits)
    snapshot = other.snapshot(writers[3].session, upto=10)
    assert snapshot is not None
    assert snapshot.data == commits[3].snapshot
    again = [engine.submit(writer.seal(fact("again"))) for writer in writers]
    assert [pending.result().seq for pending in again] == [3] * 6


def test_a_second_group_does_not_wait_for_the_first_if_it_is_large(
    engine: NatsEngine, other: NatsEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append_groups, "ENOUGH", 3)
    writers = [opened(engine) for _ in range(7)]
    held = Held(engine)
    pending = [held.submit_first(writers[0].seal(fact("k")))]
    for writer, sizes in zip(writers[1:], ([1], [1], [1, 3], [1, 3], [1, 3], [1, 3, 3]), strict=True):
        if sizes == [1, 3, 3]:
            pending[3].result()  # there is room for another group now
        pending.append(engine.submit(writer.seal(fact("k"))))
        engine._run(held.look)
        assert held.sizes == sizes
    held.let_go()
    assert [each.result().hash for each in pending] == [writer.hash for writer in writers]
    for writer in writers:
        assert stored(other, writer.session) == expected(*writer.commits)


def test_what_answers_start_is_one_group(engine: NatsEngine, other: NatsEngine) -> None:
    """Appends behind those of a group, in the same sessions."""
    writers = [opened(engine) for _ in range(5)]
    held = Held(engine)
    first, *others = [writer.seal(fact("k")) for writer in writers]
    then = [writer.seal(fact("then")) for writer in writers[1:]]
    for each in held.submit(first, *others, *then):
        each.result()
    assert held.sizes == [1, 4, 4]
    for writer in writers:
        assert stored(other, writer.session) == expected(*writer.commits)


def test_one_refused_append_does_not_refuse_the_others_of_its_group(engine: NatsEngine, other: NatsEngine) -> None:
    writers = [opened(engine) for _ in range(4)]
    late = writers[2]
    mine = late.rival(fact("mine"))
    store(other, late.seal(fact("theirs")))
    held = Held(engine)
    commits = [mine if writer is late else writer.seal(fact("k")) for writer in writers]
    pending = held.submit(*commits)
    with pytest.raises(ConflictError) as told:
        pending[2].result()
    assert told.value.kind == "head-moved"
    assert [pending[n].result().hash for n in (0, 1, 3)] == [writers[n].hash for n in (0, 1, 3)]
    assert held.sizes == [1, 3, 1, 1, 1]
    for writer in writers:
        assert stored(other, writer.session) == expected(*writer.commits)


def test_a_session_that_was_refused_stays_out_of_groups_for_a_while(
    engine: NatsEngine, other: NatsEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    writers = [opened(engine) for _ in range(3)]
    late = writers[1]
    mine = late.rival(fact("mine"))
    store(other, late.seal(fact("theirs")))
    with pytest.raises(ConflictError):
        Held(engine).submit(writers[0].seal(fact("k")), mine, writers[2].seal(fact("k")))[1].result()
    held = Held(engine)
    for pending in held.submit(*(writer.seal(fact("next")) for writer in writers)):
        pending.result()
    assert held.sizes == [1, 1, 1]
    monkeypatch.setattr(append_groups, "ALONE_S", 0.0)
    engine._lanes._groups._alone = dict.fromkeys(engine._lanes._groups._alone, 0.0)
    held = Held(engine)
    for pending in held.submit(*(writer.seal(fact("later")) for writer in writers)):
        pending.result()
    assert held.sizes == [1, 2]


def test_a_group_whose_answer_was_lost_is_stored_once(engine: NatsEngine, other: NatsEngine) -> None:
    writers = [opened(engine) for _ in range(4)]
    put, lost = engine._connection.put, list[int]()

    async def deaf(stream: str, messages: Any) -> int:
        seq = await put(stream, messages)
        if len(lost) < 2:
            lost.append(seq)
            raise TimeoutError
        return seq

    put_through(engine, deaf)
    pending = Held(engine).submit(*(writer.seal(fact("k")) for writer in writers))
    assert [each.result().hash for each in pending] == [writer.hash for writer in writers]
    assert len(lost) == 2
    for writer in writers:
        assert stored(other, writer.session) == expected(*writer.commits)


@pytest.mark.parametrize("code", [10071, 10164, 10201, 10210])
def test_a_group_that_is_refused_is_sent_one_by_one(engine: NatsEngine, other: NatsEngine, code: int) -> None:
    writers = [opened(engine) for _ in range(4)]
    put = engine._connection.put

    async def single(stream: str, messages: Any) -> int:
        if len(messages) > 1:
            raise JetStreamRefusal(400, code, "not together")
        return await put(stream, messages)

    put_through(engine, single)
    held = Held(engine)
    pending = held.submit(*(writer.seal(fact("k")) for writer in writers))
    assert [each.result().hash for each in pending] == [writer.hash for writer in writers]
    assert held.sizes == [1, 3, 1, 1, 1]
    for writer in writers:
        assert stored(other, writer.session) == expected(*writer.commits)


def test_everybody_is_answered_when_the_store_is_closed_while_groups_are_on_their_way(engine: NatsEngine) -> None:
    writers = [opened(engine) for _ in range(3)]
    held = Held(engine)
    pending = [held.submit_first(writers[0].seal(fact("k")))]
    pending += [engine.submit(writer.seal(fact("k"))) for writer in (*writers[1:], writers[0], writers[0])]
    told: dict[int, str] = {}

    def wait(number: int) -> None:
        with pytest.raises(UnavailableError) as failed:
            pending[number].result()
        told[number] = failed.value.kind

    waiting = [threading.Thread(target=wait, args=(number,), daemon=True) for number in range(len(pending))]
    for thread in waiting:
        thread.start()
    engine._patience_s = -4.9  # the first is never answered
    engine.close()
    for thread in waiting:
        thread.join(30)
    assert told == dict.fromkeys((0, 1, 2), "answer-unknown") | dict.fromkeys((3, 4), "store-closed")


def test_a_group_has_a_limit(engine: NatsEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    writers = [opened(engine) for _ in range(6)]
    monkeypatch.setattr(append_groups, "MESSAGES_MAX", 3)
    held = Held(engine)
    for pending in held.submit(*(writer.seal(fact("k")) for writer in writers)):
        pending.result()
    assert held.sizes == [1, 3, 2]


def test_a_server_without_replicas_gets_no_groups(other: NatsEngine) -> None:
    writers: list[CommitWriter] = [opened(other) for _ in range(4)]
    held = Held(other)
    for pending in held.submit(*(writer.seal(fact("k")) for writer in writers)):
        pending.result()
    assert held.sizes == [1] * 4
