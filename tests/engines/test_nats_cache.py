"""Reads inside one big commit fetch it once, and never return content that was removed meanwhile."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines.nats_server import NatsServer
from tests.engines.test_nats import engine_on
from tests.engines.test_nats_engine import emptied, noise
from wakelog.engine import Surgery
from wakelog.engines.nats import NatsEngine, message_cache
from wakelog.errors import NotFoundError
from wakelog.model import events as ev
from wakelog.testing.builders import CommitWriter, fact, message
from wakelog.testing.contract.base import expected, store, stored


@pytest.fixture
def engines(nats: NatsServer, tmp_path: Path) -> Iterator[tuple[NatsEngine, NatsEngine]]:
    a, b = engine_on(nats, tmp_path.name), engine_on(nats, tmp_path.name)
    yield a, b
    a.close()
    b.close()


@pytest.fixture
def fetched(engines: tuple[NatsEngine, NatsEngine], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The subjects that runs of messages were fetched from."""
    connection, seen = engines[0]._connection, list[str]()
    run = connection.run

    async def counted(stream: str, subject: str, *rest: Any) -> Any:
        seen.append(subject)
        return await run(stream, subject, *rest)

    monkeypatch.setattr(connection, "run", counted)
    return seen


@pytest.mark.parametrize("payload", [100, 2_000_000])
def test_events_of_a_big_commit_are_read_from_one_fetch(
    engines: tuple[NatsEngine, NatsEngine], fetched: list[str], payload: int
) -> None:
    engine, writer = engines[0], CommitWriter()
    store(engine, writer.open(), writer.seal(message(noise(payload)), *(fact(f"k{i}", noise(200)) for i in range(400))))
    big = expected(writer.commits[1])
    first = [list(engine.read(writer.session, after=seq, upto=seq + 1, payloads=True)) for seq in (20, 300)]
    assert len(fetched) == 1
    assert [expected(*each) for each in first] == [big, big]
    [slim] = engine.read(writer.session, after=50, upto=60)
    assert (slim.payloads, slim.records) == ((), writer.commits[1].records)
    store(engines[1], writer.seal(fact("more", 1)))
    assert stored(engine, writer.session) == expected(*writer.commits)


def test_what_another_process_erased_is_not_told_from_here(engines: tuple[NatsEngine, NatsEngine]) -> None:
    (engine, other), writer = engines, CommitWriter()
    store(engine, writer.open(), writer.seal(*(fact(f"k{i}", noise(200)) for i in range(200))))
    assert stored(engine, writer.session) == expected(*writer.commits)
    before = writer.commits[1]
    other.operate(Surgery((writer.seal(ev.NoteAdded(text="erased")),), (emptied(before),), stale_from={}))
    assert stored(engine, writer.session) == expected(writer.commits[0], emptied(before), writer.commits[2])


def test_what_another_process_deleted_is_not_told_from_here(engines: tuple[NatsEngine, NatsEngine]) -> None:
    (engine, other), writer = engines, CommitWriter()
    store(engine, writer.open(), writer.seal(*(fact(f"k{i}", noise(200)) for i in range(200))))
    assert len(stored(engine, writer.session)) == 2
    other.delete(writer.seal(ev.SessionDeleted()))
    assert [c.last for c in engine.read(writer.session)] == [writer.commits[-1].last]
    with pytest.raises(NotFoundError):
        engine.payload(writer.session, 2, b"x")


def test_no_more_is_kept_than_there_is_room_for_nor_for_long(
    engines: tuple[NatsEngine, NatsEngine], fetched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, writer = engines[0], CommitWriter()
    store(engine, writer.open())
    for _ in range(3):
        store(engine, writer.seal(*(fact(f"k{i}", noise(200)) for i in range(100))))
    kept = engine._reader.cache._sessions
    monkeypatch.setattr(message_cache, "KEPT_BYTES", 40_000)
    assert stored(engine, writer.session) == expected(*writer.commits)
    assert sum(m.size for each in kept.values() for m in each.values()) <= 40_000
    list(engine.read(writer.session, after=250, upto=251))
    before = len(fetched)
    monkeypatch.setattr(message_cache, "KEPT_S", -1.0)
    list(engine.read(writer.session, after=250, upto=251))
    assert len(fetched) == before + 1
