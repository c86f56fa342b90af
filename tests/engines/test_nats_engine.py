"""What the NATS engine does beyond the contract: big commits, interruptions, and shards."""

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from nats.aio.client import Client

import wakelog
from tests.engines.nats_server import NatsServer
from tests.engines.test_nats import engine_on
from wakelog.engine import Surgery
from wakelog.engines.nats import NatsEngine, append_lanes, client, commit_messages, connection, feed, reader
from wakelog.engines.nats.errors import JetStreamRefusal
from wakelog.errors import InvalidInputError, NotFoundError, UnavailableError, UnsupportedError, WakelogError
from wakelog.model import events as ev
from wakelog.model.ids import root_id
from wakelog.model.records import Commit, Record
from wakelog.store import Store
from wakelog.testing.builders import CommitWriter, fact, message
from wakelog.testing.contract.base import expected, opened, store, stored


@pytest.fixture
def engine(nats: NatsServer, tmp_path: Path) -> Iterator[NatsEngine]:
    engine = engine_on(nats, tmp_path.name)
    yield engine
    engine.close()


@pytest.fixture
def other(nats: NatsServer, tmp_path: Path) -> Iterator[NatsEngine]:
    engine = engine_on(nats, tmp_path.name)
    yield engine
    engine.close()


def emptied(commit: Commit) -> Commit:
    records = tuple(Record(r.header, b"", b"") for r in commit.records)
    return msgspec.structs.replace(commit, records=records, payloads=(), paths=(), fingerprint=b"", snapshot=None)


def noise(size: int) -> str:
    return os.urandom(size // 2).hex()


def files_hold(server: NatsServer, needle: bytes) -> bool:
    return any(needle in path.read_bytes() for path in server.data.rglob("*") if path.is_file())


def test_namespaces_of_one_store_do_not_see_each_other(nats: NatsServer, tmp_path: Path) -> None:
    with (
        Store(engine_on(nats, f"{tmp_path.name}-a")) as a,
        Store(engine_on(nats, f"{tmp_path.name}-b")) as b,
    ):
        session: Any = a.session("s")
        assert b.engine.find("s") is None
        assert list(b.sessions()) == []
        assert list(b.engine.changes()) == []
        assert b.session("s").id != session.id


def test_both_sides_of_a_fork_of_the_process_go_on(nats: NatsServer, tmp_path: Path) -> None:
    with wakelog.open(f"{nats.url}&namespace={tmp_path.name}") as store:
        session = store.session("s")
        for number in range(2):
            child = os.fork()
            if not child:
                code = 1
                try:
                    session.fact("child", number)
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitpid(child, 0)[1] == 0
            session.fact("parent", number)
        assert [e.body["key"] for e in session.events(kind="fact")] == ["child", "parent"] * 2
        assert session.verify().ok


def test_what_is_too_big_for_a_message_is_kept_in_parts(nats: NatsServer, engine: NatsEngine, tmp_path: Path) -> None:
    writer = CommitWriter()
    payload, body = noise(3_000_000), {f"k{i}": noise(900) for i in range(1500)}
    store(engine, writer.open(), writer.seal(message(payload), snapshot=True))
    store(engine, writer.seal(*(fact(k, v) for k, v in body.items()), snapshot=True))
    assert stored(engine, writer.session) == expected(*writer.commits)
    assert [c.payloads for c in engine.read(writer.session)] == [(), (), ()]
    last = engine.snapshot(writer.session, upto=10_000)
    assert last is not None
    assert last.data == writer.commits[-1].snapshot
    said = writer.seal(ev.NoteAdded(text="erased"))
    before = writer.commits[1]
    engine.operate(Surgery((said,), (emptied(before),), stale_from={writer.session: 2}))
    assert stored(engine, writer.session) == expected(
        writer.commits[0], emptied(before), writer.commits[2], writer.commits[3]
    )
    assert engine.snapshot(writer.session, upto=10_000) is None


def test_a_commit_that_no_batch_holds_is_refused_and_writes_nothing(
    engine: NatsEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = opened(engine)
    monkeypatch.setattr(commit_messages, "limit_of", lambda _: 400)
    with pytest.raises(UnsupportedError) as told:
        engine.submit(writer.rival(message(noise(600_000)))).result()
    assert told.value.kind == "too-big"
    assert stored(engine, writer.session) == expected(*writer.commits)


def test_a_commit_that_no_message_holds_is_refused_before_the_server_cuts_the_connection(engine: NatsEngine) -> None:
    writer = opened(engine)
    commit = msgspec.structs.replace(writer.rival(fact("a")), paths=tuple(f"/data/{i:0100}" for i in range(12_000)))
    with pytest.raises(UnsupportedError) as told:
        engine.submit(commit).result()
    assert told.value.kind == "too-big"
    assert engine._connection.retries == 0
    store(engine, writer.seal(fact("b")))
    assert stored(engine, writer.session) == expected(*writer.commits)


def test_many_chosen_ids_that_come_at_once_are_known_again(engine: NatsEngine, other: NatsEngine) -> None:
    writer = CommitWriter()
    commits = [writer.open(), *(writer.seal(fact("k", i), commit_id=f"id-{i}") for i in range(250))]
    engine.submit(*commits).result()
    for each in (engine, other):
        known = each.known(writer.session, "id-137")
        assert known is not None
        assert (known.head.seq, known.fingerprint) == (139, commits[138].fingerprint)
        assert each.submit(writer.rival(fact("k", 7), commit_id="id-7")).result().seq == 9
        with pytest.raises(InvalidInputError) as told:
            each.submit(writer.rival(fact("other"), commit_id="id-7")).result()
        assert told.value.kind == "commit-id-reused"
    said = writer.seal(ev.NoteAdded(text="erased"))
    engine.operate(Surgery((said,), (emptied(commits[8]),), stale_from={}))
    known = other.known(writer.session, "id-7")
    assert known is not None
    assert known.fingerprint == b""
    store(other, writer.seal(fact("more"), commit_id="id-new"))
    assert stored(engine, writer.session) == expected(
        *commits[:8], emptied(commits[8]), *commits[9:], *writer.commits[-2:]
    )


def test_nothing_of_what_was_erased_is_left_in_the_files(nats: NatsServer, engine: NatsEngine) -> None:
    writer = opened(engine)
    # Incompressible, and most of its commit, so that the files contain it unchanged.
    secret, kept = os.urandom(4000), os.urandom(4000)
    commits = [writer.seal(message("x" * 2000)), writer.seal(message("y" * 2000))]
    commits = [
        msgspec.structs.replace(c, records=(Record(c.records[0].header, c.records[0].salt, text),))
        for c, text in zip(commits, (secret, kept), strict=True)
    ]
    store(engine, *commits)
    assert files_hold(nats, secret)
    assert files_hold(nats, kept)
    engine.operate(Surgery((writer.seal(ev.NoteAdded(text="erased")),), (emptied(commits[0]),), stale_from={}))
    assert not files_hold(nats, secret)
    assert files_hold(nats, kept)
    engine.delete(writer.seal(ev.SessionDeleted()))
    assert not files_hold(nats, kept)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_removal_that_was_cut_off_is_seen_at_once_and_finished_by_the_next(
    engine: NatsEngine, nats: NatsServer, tmp_path: Path, steps: int
) -> None:
    writer = opened(engine)
    store(engine, writer.seal(message("secret " * 99), snapshot=True), writer.seal(fact("a")), writer.seal(fact("b")))
    gone = [emptied(writer.commits[1]), emptied(writer.commits[2])]
    cut_off_after(engine, steps)
    said = writer.seal(ev.NoteAdded(text="erased"))
    with pytest.raises(UnavailableError) as told:
        engine.operate(Surgery((said,), tuple(gone), stale_from={writer.session: 1}))
    assert told.value.kind == "scrub-pending"
    after = expected(writer.commits[0], *gone, *writer.commits[3:])
    late = engine_on(nats, tmp_path.name)  # opening finishes it
    shard = late._subjects.stream(0)
    assert late._await(late._connection.subjects(shard, late._subjects.kind(0, "d"))) == {}
    assert stored(late, writer.session) == after
    assert late.snapshot(writer.session, upto=99) is None
    assert late.operate(Surgery((said,), tuple(gone), stale_from={writer.session: 1})).seq == said.last
    assert stored(late, writer.session) == after
    late.close()


def test_readers_see_a_removal_before_its_work_is_done(engine: NatsEngine, other: NatsEngine) -> None:
    writer = opened(engine)
    store(engine, writer.seal(message("secret " * 99)), writer.seal(fact("a")))
    cut_off_after(engine, 0)
    cut_off_after(other, 0)
    said = writer.seal(ev.NoteAdded(text="erased"))
    with pytest.raises(UnavailableError):
        engine.operate(Surgery((said,), (emptied(writer.commits[1]),), stale_from={}))
    tail = other._await(other._tails.get(writer.session))

    async def read() -> list[Any]:
        return [
            c async for c in other._reader.commits(tail, 0, None, await other._reader.rewritten(tail), payloads=True)
        ]

    assert [(c.first, bool(c.payloads)) for c in other._await(read())] == [
        (1, False),
        (2, False),
        (3, False),
        (4, False),
    ]


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_deletion_that_was_cut_off_frees_the_name_and_the_parents_in_the_end(
    engine: NatsEngine, nats: NatsServer, tmp_path: Path, steps: int
) -> None:
    parent = opened(engine, "a", "b")
    child = parent.forked()
    store(engine, child.seal_fork(), child.seal(fact("c"), commit_id="mine"))
    engine.claim("named", child.session)
    tombstone = parent.seal(ev.SessionDeleted())
    engine.delete(tombstone)
    assert len(stored(engine, parent.session)) == 4
    cut_off_after(engine, steps)
    end = child.seal(ev.SessionDeleted())
    with pytest.raises(UnavailableError):
        engine.delete(end)
    late = engine_on(nats, tmp_path.name)
    assert late.find("named") is None
    assert stored(late, child.session) == expected(end)
    assert stored(late, parent.session) == expected(tombstone)
    late.close()


def cut_off_after(engine: NatsEngine, steps: int) -> None:
    """From now on this engine erases this many messages, and then fails."""
    erase, left = engine._connection.erase, [steps]

    async def fails(stream: str, seq: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError("cut off")
        await erase(stream, seq)

    engine._connection.erase = fails  # type: ignore[method-assign]


def put_through(engine: NatsEngine, put: Callable[[str, Any], Awaitable[int]]) -> None:
    """From now on everything that this engine stores goes through `put`, including the fast path."""
    connection = engine._connection

    def put_soon(messages: Any, stored: Callable[[int | Exception], None]) -> None:
        async def run() -> None:
            try:
                stored(await put("", messages))
            except Exception as exc:
                stored(exc)

        running.append(asyncio.ensure_future(run()))

    running: list[Any] = []
    connection.put, connection.put_soon = put, put_soon  # type: ignore[method-assign,assignment]


def test_no_fork_begins_in_a_session_that_is_deleted_at_the_same_moment(engine: NatsEngine, other: NatsEngine) -> None:
    parent = opened(engine, "a")
    child = parent.forked()
    fork, tombstone = child.seal_fork(), parent.seal(ev.SessionDeleted())
    put = engine._connection.put

    async def late(stream: str, messages: Any) -> int:
        engine._connection.put = put  # type: ignore[method-assign]
        await asyncio.to_thread(other.delete, tombstone)  # judged, but not sent yet
        return await put(stream, messages)

    engine._connection.put = late  # type: ignore[method-assign]
    with pytest.raises(NotFoundError):
        engine.submit(fork).result()
    assert stored(other, child.session) == []
    assert stored(other, parent.session) == expected(tombstone)


@pytest.mark.parametrize("commit_id", ["", "mine"])
def test_an_append_whose_answer_was_lost_is_stored_once(engine: NatsEngine, commit_id: str) -> None:
    writer = opened(engine)
    put, lost = engine._connection.put, list[int]()

    async def deaf(stream: str, messages: Any) -> int:
        seq = await put(stream, messages)
        if not lost:
            lost.append(seq)
            raise TimeoutError
        return seq

    put_through(engine, deaf)
    head = engine.submit(writer.seal(fact("a"), commit_id=commit_id)).result()
    assert (head.seq, head.hash, len(lost)) == (2, writer.hash, 1)
    store(engine, writer.seal(fact("b")))
    assert stored(engine, writer.session) == expected(*writer.commits)


def test_without_an_answer_the_outcome_is_unknown(nats: NatsServer, tmp_path: Path) -> None:
    engine = engine_on(nats, tmp_path.name)
    writer = opened(engine)
    engine._connection.patience_s = 0.05  # after opening, which may take longer on a busy machine

    async def deaf(stream: str, messages: Any) -> int:
        raise TimeoutError

    put_through(engine, deaf)
    with pytest.raises(UnavailableError) as told:
        engine.submit(writer.rival(fact("a"))).result()
    assert told.value.kind == "answer-unknown"
    engine.close()


def test_an_append_that_may_be_stored_is_never_told_as_refused(engine: NatsEngine) -> None:
    """The answer is lost, and then there is no leader to ask until the time is over."""
    writer = opened(engine)
    engine._connection.patience_s = 0.05

    async def deaf(stream: str, messages: Any) -> int:
        async def no_leader(*_: Any, **__: Any) -> None:
            raise JetStreamRefusal(503, 10008, "no leader")

        engine._connection._api = no_leader  # type: ignore[method-assign,assignment]
        raise TimeoutError

    put_through(engine, deaf)
    with pytest.raises(UnavailableError) as told:
        engine.submit(writer.rival(fact("a"))).result()
    assert told.value.kind == "answer-unknown"


def test_an_append_that_is_still_being_stored_is_waited_for(engine: NatsEngine) -> None:
    """The leader has it and lost its followers for a moment; when it is asked again it says so."""
    writer = opened(engine)
    put, refused = engine._connection.put, list[int]()

    async def slow(stream: str, messages: Any) -> int:
        refused.append(1)
        if len(refused) == 1:
            raise TimeoutError
        if len(refused) < 4:
            raise JetStreamRefusal(409, 10158, "duplicate message id is in process")
        return await put(stream, messages)

    put_through(engine, slow)
    assert engine.submit(writer.seal(fact("a"))).result().seq == 2
    assert len(refused) == 4
    refused[:] = [1]
    engine._connection.patience_s = 0.0
    with pytest.raises(UnavailableError) as told:
        engine.submit(writer.rival(fact("b"))).result()
    assert told.value.kind == "answer-unknown"


@pytest.mark.parametrize("commit_id", ["", "mine"])
def test_an_append_behind_one_that_is_still_being_stored_may_be_that_one(engine: NatsEngine, commit_id: str) -> None:
    """As when a caller repeats an append whose outcome it was not told."""
    writer = opened(engine)
    engine._connection.patience_s = 0.0

    async def in_flight(stream: str, messages: Any) -> int:
        raise JetStreamRefusal(400, 10164, "a message of this subject is in flight")

    put_through(engine, in_flight)
    with pytest.raises(UnavailableError) as told:
        engine.submit(writer.rival(fact("b"), commit_id=commit_id)).result()
    assert told.value.kind == "answer-unknown"


@pytest.mark.parametrize("code", [10071, 10164])
def test_both_codes_of_a_conflict_are_judged_by_the_present_head(engine: NatsEngine, code: int) -> None:
    writer = opened(engine)
    put, refused = engine._connection.put, list[int]()

    async def race(stream: str, messages: Any) -> int:
        if not refused:
            refused.append(code)
            raise JetStreamRefusal(400, code, "wrong last sequence")
        return await put(stream, messages)

    put_through(engine, race)
    assert engine.submit(writer.seal(fact("a"))).result().seq == 2
    assert stored(engine, writer.session) == expected(*writer.commits)


def test_an_answer_that_does_not_come_is_looked_for(engine: NatsEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "TRY_S", 0.1)
    monkeypatch.setattr(client, "LOOK_S", 0.02)
    writer, told = opened(engine), engine._connection._client
    process, lost = told._process_msg, list[bytes]()

    async def deaf(sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes) -> None:
        if b'"seq":' in data and not lost:
            lost.append(data)
        else:
            await process(sid, subject, reply, data, headers)

    told._process_msg = deaf  # type: ignore[method-assign]
    assert engine.submit(writer.seal(fact("a"))).result().seq == 2
    assert len(lost) == 1
    assert engine.submit(writer.seal(fact("b"))).result().seq == 3
    assert stored(engine, writer.session) == expected(*writer.commits)
    assert told._waiting == {}


@pytest.mark.parametrize("patience_s", [20.0, 0.0])
def test_a_server_that_reads_and_does_not_store_is_left(
    engine: NatsEngine, monkeypatch: pytest.MonkeyPatch, patience_s: float
) -> None:
    """A leader that is cut off from the others."""
    monkeypatch.setattr(connection, "MOVE_S", 1.0)
    monkeypatch.setattr(connection, "TRY_S", 0.1)
    monkeypatch.setattr(client, "LOOK_S", 0.02)
    writer, asking = opened(engine), engine._connection._client
    monkeypatch.setattr(type(engine._connection), "servers", ["n1", "n2"])
    send, moves = asking.send, list[int]()

    def lost(subject: str, *more: Any) -> None:
        if moves or not subject.startswith("wl."):
            send(subject, *more)

    async def move() -> None:
        moves.append(1)

    asking.send = lost  # type: ignore[method-assign,assignment]
    asking.force_reconnect = move  # type: ignore[method-assign]
    commit = writer.seal(fact("a"))
    engine._connection.patience_s = patience_s
    while not moves:
        with contextlib.suppress(UnavailableError):
            engine.submit(commit).result()
    assert engine.submit(commit).result().seq == 2
    assert moves == [1]


def test_a_read_that_nobody_answers_is_sent_again(tmp_path: Path) -> None:
    """A stream without a leader answers no reads. Here another client answers for it, after some."""
    server = NatsServer(folder=tmp_path / "plain", plain=True).start().wait()

    async def run() -> tuple[int, float]:
        asked: list[bytes] = []

        async def answer(message: Any) -> None:
            asked.append(message.data)
            if len(asked) == 3:
                await message.respond(msgspec.json.encode({"message": {"seq": 7, "subject": "s", "data": ""}}))

        stream, asking = Client(), connection.NatsConnection([server.address], {})
        await stream.connect(server.address)
        await stream.subscribe("$JS.API.STREAM.MSG.GET.x", cb=answer)
        await stream.flush()
        await asking.open()
        began = time.monotonic()
        found = await asking.last("x", "s")
        took = time.monotonic() - began
        assert found is not None
        assert found.seq == 7
        await asyncio.sleep(3 * connection.AGAIN_S)  # an answered read is not sent again
        await asking.close()
        await stream.close()
        return len(asked), took

    try:
        count, took = asyncio.run(run())
    finally:
        server.stop()
    assert count == 3
    assert took < connection.TRY_S


def test_many_who_append_at_once_wake_the_loop_once(engine: NatsEngine) -> None:
    writers = [opened(engine) for _ in range(20)]
    is_looking, may_look = threading.Event(), threading.Event()

    def look() -> None:
        is_looking.set()
        may_look.wait(60)

    calls, soon = list[Any](), engine._loop.soon

    def counted(call: Any, *args: Any) -> None:
        calls.append(call)
        soon(call, *args)

    soon(look)
    engine._loop.soon = counted  # type: ignore[method-assign]
    is_looking.wait(60)
    pending = [engine.submit(w.seal(fact("a"))) for w in writers]
    assert len(calls) == 1
    may_look.set()
    assert [p.result().seq for p in pending] == [2] * 20
    for writer in writers:
        assert stored(engine, writer.session) == expected(*writer.commits)


def test_what_is_submitted_when_the_loop_has_ended_is_refused(nats: NatsServer, tmp_path: Path) -> None:
    engine = engine_on(nats, tmp_path.name)
    writer = opened(engine)
    engine.close()
    engine._closed = False  # a caller that checked just before
    with pytest.raises(UnavailableError) as told:
        engine.submit(writer.seal(fact("a"))).result()
    assert told.value.kind == "store-closed"


def test_commits_that_wait_for_each_other_go_together(engine: NatsEngine) -> None:
    writer = opened(engine)
    put, sizes = engine._connection.put, list[int]()

    async def counted(stream: str, messages: Any) -> int:
        while len(engine._lanes._lanes[writer.session]) < 60 and not sizes:
            await asyncio.sleep(0.001)  # until all have arrived
        sizes.append(len(messages))
        return await put(stream, messages)

    put_through(engine, counted)
    pending = [engine.submit(writer.seal(fact(str(i)))) for i in range(60)]
    assert [p.result().seq for p in pending] == list(range(2, 62))
    assert sizes == [1, 1]  # the first, and all that arrived while it was in flight
    assert stored(engine, writer.session) == expected(*writer.commits)


@pytest.mark.slow
def test_an_event_is_found_in_a_long_session_by_a_few_questions(
    engine: NatsEngine, other: NatsEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "NEAR", 8)
    monkeypatch.setattr(append_lanes, "TOGETHER_MAX", 1)
    writer, beside = opened(engine), opened(engine)
    for i in range(300):
        pending = [engine.submit(writer.seal(fact(str(i))))]
        if i < 100:  # events are spread unevenly in the stream
            pending += [engine.submit(beside.seal(fact(f"{i}.{n}"))) for n in range(2)]
        for each in pending:
            each.result()
    asked = []
    run = other._connection.run

    async def counted(*args: Any) -> Any:
        asked.append(args)
        return await run(*args)

    other._connection.run = counted  # type: ignore[method-assign,assignment]
    for after in (290, 150, 3, 77, 250):
        asked.clear()
        [found, *_] = other.read(writer.session, after=after, upto=after + 1)
        assert found.first == after + 1
        assert len(asked) < 30


def test_a_new_session_takes_few_questions(engine: NatsEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(engine)
    store.session("before")
    asked: list[str] = []
    connection: Any = engine._connection
    question = connection._api

    async def counted(name: str, data: bytes) -> Any:
        asked.append(name)
        return await question(name, data)

    monkeypatch.setattr(connection, "_api", counted)
    session = store.session("new")
    assert len(asked) == 3, asked  # the name, the session, the layout
    assert session.log.head().name == "new"


def test_a_state_takes_few_questions_whatever_came_before(
    engine: NatsEngine, other: NatsEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Store(engine).session("long")
    for number in range(120):
        session.fact(f"fact {number}", noise(400))
    assert engine.snapshot(session.id, upto=session.log.head().seq) is not None
    asked: list[str] = []
    told = other._connection._client
    send = told.send

    def counted(subject: str, data: bytes, *more: Any) -> None:
        asked.append(subject)
        send(subject, data, *more)

    monkeypatch.setattr(told, "send", counted)
    state = Store(other).resume("long").log.state()
    assert state == session.log.state()
    assert len(asked) <= 12, asked


def test_many_sessions_can_be_opened_at_once(
    engine: NatsEngine, other: NatsEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[int] = []
    connection: Any = engine._connection
    put = connection.put

    async def counted(stream: str, messages: Any) -> int:
        try:
            return int(await put(stream, messages))
        except JetStreamRefusal as exc:
            refused.append(exc.err_code)
            raise

    monkeypatch.setattr(connection, "put", counted)

    def open_some(engine: NatsEngine, mark: str) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: engine.submit(CommitWriter().open(name=f"{mark}{n}")).result(), range(24)))

    open_some(engine, "alone")
    assert 10164 not in refused  # a process does not conflict with itself
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(open_some, (engine, other), ("a", "b")))
    assert len(engine.sessions(limit=100)) == 72


def test_a_session_that_was_missing_a_moment_ago_may_be_there(engine: NatsEngine, other: NatsEngine) -> None:
    writer = CommitWriter()
    with pytest.raises(NotFoundError):
        engine.head(writer.session)
    other.submit(first := writer.open()).result()
    second = writer.seal(fact("k", 1))
    assert engine.submit(second).result().seq == 2
    assert engine.submit(first).result().seq == 1  # it was stored before


def test_news_come_without_looking(engine: NatsEngine, other: NatsEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "LOOK_AGAIN_S", 3600.0)
    writer = opened(engine)
    answers: list[bool] = []
    heads, head = [], engine.head

    def counted(session: Any) -> Any:
        heads.append(session)
        return head(session)

    engine.head = counted  # type: ignore[method-assign]
    thread = threading.Thread(target=lambda: answers.append(engine.wait(writer.session, after=1, timeout_s=60)))
    thread.start()
    elsewhere = opened(other)
    store(other, *(elsewhere.seal(fact(str(i))) for i in range(5)), writer.seal(fact("news")))
    thread.join(60)
    assert answers == [True]
    assert len(heads) <= 3


class TestShards:
    @pytest.fixture
    def name(self, tmp_path: Path) -> str:
        return f"shards-{tmp_path.name}"

    def open(self, nats: NatsServer, name: str, **more: Any) -> NatsEngine:
        return engine_on(nats, "team", store=name, **more)

    def test_sessions_spread_over_shards_and_are_listed_together(self, nats: NatsServer, name: str) -> None:
        engine = self.open(nats, name, shards=3)
        writers = [opened_now(engine, shard) for shard in (0, 1, 2) * 3]
        for writer in writers:
            store(engine, writer.seal(fact("a")))
        assert [p.shard for p in engine.placement() if p.messages > 1] == [0, 1, 2]
        assert [h.session for h in engine.sessions()] == sorted(w.session for w in writers)
        cursor, told = "", set()
        while page := engine.changes(cursor, 5):
            told |= {(c.session, c.seq) for c in page}
            cursor = page[-1].cursor
        assert told >= {(w.session, 2) for w in writers}
        assert list(engine.changes(engine.end_of_feed())) == []
        engine.close()

    def test_commits_of_different_shards_are_not_stored_together(self, nats: NatsServer, name: str) -> None:
        engine = self.open(nats, name, shards=2)
        writers = [opened_now(engine, shard) for shard in (0, 1)]
        with pytest.raises(UnsupportedError) as told:
            engine.submit(*(w.rival(fact("a")) for w in writers)).result()
        assert told.value.kind == "shards-apart"
        assert [h.seq for h in engine.sessions()] == [1, 1]
        engine.close()

    def test_more_shards_move_no_session_and_nobody_opens_one_by_an_old_layout(
        self, nats: NatsServer, name: str
    ) -> None:
        engine = self.open(nats, name, shards=1)
        stale, reading = self.open(nats, name), self.open(nats, name)
        cursor = reading.end_of_feed()
        old = [opened(engine, "a") for _ in range(4)]
        engine.add_shards(4)
        assert [p.shard for p in stale.placement()] == [0, 1, 2, 3]
        stale._layout.layout = msgspec.structs.replace(stale._layout.layout, active=1)
        new = [opened_now(stale, shard, engine) for shard in (3, 1, 0, 2)]
        assert stale._layout.layout.active == 2
        assert [p.messages for p in engine.placement()] == [1 + 4 * 3 + 1 + 2, 1 + 2, 1 + 2, 1 + 2]
        for writer in (*old, *new):
            store(engine, writer.seal(fact("more")))
            assert stored(stale, writer.session) == expected(*writer.commits)
        # Engines that were open before see them too.
        assert {c.session for c in reading.changes(cursor)} == {w.session for w in (*old, *new)}
        assert len(reading.sessions()) == 8
        other = self.open(nats, name)
        other._layout.layout = msgspec.structs.replace(other._layout.layout, active=1)
        assert other.head(new[0].session).seq == 2
        with pytest.raises(InvalidInputError) as told:
            engine.add_shards(2)
        assert told.value.kind == "bad-shards"
        with pytest.raises(InvalidInputError) as told:
            engine.add_shards(1025)
        assert told.value.kind == "bad-shards"
        with pytest.raises(UnavailableError, match="gone"):  # and no stream was created
            engine._run(lambda: engine._connection.api(f"STREAM.INFO.{engine._subjects.stream(4)}", patience_s=0))
        for each in (engine, stale, reading, other):
            each.close()

    def test_shards_that_were_only_announced_are_finished_by_whoever_opens_a_session(
        self, nats: NatsServer, name: str
    ) -> None:
        engine, other = self.open(nats, name, shards=1), self.open(nats, name)
        opened_now(other)
        write, count = engine._layout._write, []

        async def dies(layout: Any, expected: int) -> None:
            count.append(layout)
            if len(count) == 2:
                raise OSError("cut off")
            await write(layout, expected)

        engine._layout._write = dies  # type: ignore[method-assign]
        with pytest.raises(WakelogError):
            engine.add_shards(3)
        writer = opened_now(other)
        assert other._layout.layout.active == 2
        assert stored(other, writer.session) == expected(*writer.commits)
        engine.close()
        other.close()

    def test_a_tree_that_a_fast_clock_put_elsewhere_is_found(self, nats: NatsServer, name: str) -> None:
        engine = self.open(nats, name, shards=1)
        ahead = [CommitWriter(root_id(4_000_000_000_000_000, os.urandom(10))) for _ in range(6)]
        for writer in ahead:
            store(engine, writer.open())
        engine.add_shards(5)
        late = self.open(nats, name)
        for writer in ahead:
            child = writer.forked()
            store(late, writer.seal(fact("more")), child.seal_fork())
            assert stored(late, writer.session) == expected(*writer.commits)
            assert [h.session for h in late.children(writer.session)] == [child.session]
        engine.close()
        late.close()


def opened_now(engine: NatsEngine, shard: int = 0, knows: NatsEngine | None = None) -> CommitWriter:
    """A session with a current id that belongs to a shard, by the layout that `knows` has."""
    layout = (knows or engine)._layout.layout
    while True:
        session = root_id(time.time_ns() // 1000 + 1000, os.urandom(10))
        if layout.places(session)[0] == shard:
            break
    writer = CommitWriter(session)
    store(engine, writer.open())
    return writer
