"""Tails: live, without gaps, resumable, and cheap for slow readers."""

import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import wakelog
from tests.http.asking import Asker, until
from tests.http.conftest import Serve
from tests.http.tailing import Event, Tail
from tests.seeds import SEED
from wakelog.http import notifications as hub
from wakelog.http import shapes
from wakelog.http.keys import make_key
from wakelog.http.server import RunningServer
from wakelog.session import Session
from wakelog.store import Store

BIG = "x" * 4000


@pytest.fixture
def asker(running: RunningServer) -> Asker:
    return Asker(running.url, running.key)


@pytest.fixture
def store(running: RunningServer) -> Iterator[Store]:
    with wakelog.open(running.url, key=running.key) as opened:
        yield opened


@pytest.fixture
def session(store: Store) -> Session[Any]:
    return store.session("s")


def seqs(events: list[Event]) -> list[int]:
    return [event.data["seq"] for event in events]


def test_a_tail_tells_what_comes_and_by_default_nothing_before(asker: Asker, session: Session[Any]) -> None:
    session.fact("before", 1)
    with Tail(asker, "/v1/sessions/s/tail") as tail:
        assert tail.headers["content-type"] == "text/event-stream"
        assert tail._block() == "retry: 1000"  # from here on, nothing is missed
        seq = session.fact("key", "value", why="because")
        event = tail.next()
    assert event is not None
    assert event.id == str(seq)
    assert event.data["kind"] == "fact.recorded"
    assert event.data["body"] == {"why": "because", "key": "key", "value": "value"}
    assert event.data["hash"] == session.log.entry(seq).hash.hex()


def test_a_tail_begins_where_it_is_told_to(asker: Asker, session: Session[Any]) -> None:
    for n in range(5):
        session.fact("n", n)
    with Tail(asker, "/v1/sessions/s/tail", after=0) as tail:
        assert seqs(tail.take(6)) == [1, 2, 3, 4, 5, 6]
    with Tail(asker, "/v1/sessions/s/tail", last="4", after=0) as tail:
        assert seqs(tail.take(2)) == [5, 6]


def test_only_the_kinds_that_are_wanted_come(asker: Asker, session: Session[Any]) -> None:
    with session.turn(user="go"):
        session.fact("a", 1)
    with Tail(asker, "/v1/sessions/s/tail", after=0, kind=["fact", "turn.ended"]) as tail:
        assert [e.data["kind"] for e in tail.take(2)] == ["fact.recorded", "turn.ended"]


def test_a_fork_is_followed_through_its_parent(asker: Asker, store: Store, session: Session[Any]) -> None:
    session.fact("shared", 1)
    fork = session.fork(name="f")
    fork.fact("own", 2)
    with Tail(asker, "/v1/sessions/f/tail", after=0) as tail:
        events = tail.take(4)
    assert seqs(events) == [1, 2, 3, 4]
    assert [e.data["kind"] for e in events[1:]] == ["fact.recorded", "session.forked", "fact.recorded"]


def test_the_feed_tells_of_all_sessions_in_the_order_of_each(asker: Asker, store: Store) -> None:
    with Tail(asker, "/v1/tail", after="") as tail:
        for n in range(3):
            for name in ("a", "b"):
                store.session(name).append(wakelog.UserMessage(f"{n}"), wakelog.ModelMessage(BIG))
        events = tail.take(14)
    by_session: dict[str, list[int]] = {}
    for event in events:
        by_session.setdefault(event.data["session"], []).append(event.data["seq"])
    assert list(by_session.values()) == [list(range(1, 8))] * 2
    assert len({event.id for event in events}) == 14


@pytest.mark.seeded
@pytest.mark.parametrize("path", ["/v1/sessions/s/tail", "/v1/tail"])
def test_a_tail_broken_off_anywhere_goes_on_without_gap_or_repetition(
    path: str, asker: Asker, store: Store, session: Session[Any]
) -> None:
    rng = random.Random(SEED)
    total = 120

    def write() -> None:
        left = total - 1
        while left:
            size = min(left, rng.randint(1, 4))
            session.append(*(wakelog.UserMessage("m") for _ in range(size)))
            left -= size

    writer = threading.Thread(target=write)
    writer.start()
    seen: list[Event] = []
    reader = random.Random(SEED + 1)
    while len(seen) < total:
        last = seen[-1].id if seen else None
        with Tail(asker, path, last=last, after=None if seen else ("" if path == "/v1/tail" else 0)) as tail:
            seen += tail.take(min(total - len(seen), reader.randint(1, 9)))
    writer.join()
    assert seqs(seen) == list(range(1, total + 1)), f"seed {SEED}"


def test_what_another_process_writes_comes_too(asker: Asker, running: RunningServer, session: Session[Any]) -> None:
    with Tail(asker, "/v1/sessions/s/tail") as tail, Tail(asker, "/v1/tail") as feed:
        assert tail._block() == feed._block() == "retry: 1000"
        with wakelog.open(running.server.settings.url) as other:  # the same files, without the server
            other.resume("s").fact("from", "elsewhere")
        assert seqs(tail.take(1)) == seqs(feed.take(1)) == [2]


def test_a_slow_reader_misses_nothing_and_its_slowness_is_kept_nowhere(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "RING_FRAMES", 16)
    running = serve(rate=0)
    asker = Asker(running.url, running.key)
    with wakelog.open(running.url, key=running.key) as store:
        session = store.session("s")
        with Tail(asker, "/v1/sessions/s/tail", after=0) as slow, Tail(asker, "/v1/tail", after="") as feed:
            # Far more than the sockets and the ring hold, before the first event is read.
            for n in range(400):
                session.append(wakelog.events.FactRecorded(key=f"k{n}", value=BIG))
            [kept] = running.server._hubs.values()
            assert all(len(c.ring._frames) <= 16 for c in (*kept._channels.values(), kept.feed))
            assert seqs(slow.take(401)) == seqs(feed.take(401)) == list(range(1, 402))


def test_a_reader_that_does_not_read_at_all_is_cut_off(serve: Serve) -> None:
    running = serve(rate=0, stall_s=0.2)
    asker = Asker(running.url, running.key)
    with wakelog.open(running.url, key=running.key) as store:
        session = store.session("s")
        with Tail(asker, "/v1/sessions/s/tail", after=0) as stalled:
            while running.server.watchers or session.head.seq < 50:
                session.append(*(wakelog.events.FactRecorded(key=f"k{n}", value=BIG) for n in range(50)))
            assert stalled.status == 200


def test_many_watchers_share_one_reading_and_one_encoding(
    asker: Asker, running: RunningServer, session: Session[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[int] = []
    original = shapes.record_of

    def count(log: Any, entry: Any, *rest: Any) -> Any:
        encoded.append(entry.seq)
        return original(log, entry, *rest)

    tails = [Tail(asker, "/v1/sessions/s/tail") for _ in range(100)]
    try:
        assert {tail._block() for tail in tails} == {"retry: 1000"}
        assert running.server.watchers == 100
        # A watcher that has not started reads the log itself. After the first event all have started.
        session.fact("n", -1)
        for tail in tails:
            assert seqs(tail.take(1)) == [2]
        [channel] = running.server.hub(running.server.spaces.get("default"))._channels.values()
        until(lambda: channel.ring.end == "2")
        monkeypatch.setattr(hub, "record_of", count)
        monkeypatch.setattr("wakelog.http.verbs.tail.record_of", count)
        for n in range(10):
            session.fact("n", n)
        for tail in tails:
            assert seqs(tail.take(10)) == list(range(3, 13))
    finally:
        for tail in tails:
            tail.close()
    assert sorted(encoded) == list(range(3, 13))


def test_when_the_session_is_deleted_its_tail_says_so_and_ends(
    asker: Asker, store: Store, session: Session[Any]
) -> None:
    with Tail(asker, "/v1/sessions/s/tail") as tail:
        assert tail._block() == "retry: 1000"
        store.delete(session)
        events = []
        while (event := tail.next()) is not None:
            events.append(event)
    assert events[-1].name == "end"
    assert events[-1].data["kind"] == "session-deleted"


def test_what_was_erased_is_not_told_from_memory(asker: Asker, session: Session[Any]) -> None:
    from wakelog.log.removal import erase

    with Tail(asker, "/v1/sessions/s/tail") as tail:
        assert tail._block() == "retry: 1000"
        seq = session.fact("told", "what is to go")
        assert tail.take(1)[0].data["body"]["value"] == "what is to go"
        erase(session.log, [seq])
        tail.take(1)
        with Tail(asker, "/v1/sessions/s/tail", last="1") as again:
            assert "what is to go" not in str(again.take(2))


def test_a_revoked_key_ends_its_tail(serve: Serve) -> None:
    running = serve(rate=0, keepalive_s=0.05)
    key, token = make_key("k", "read", ("default",), now=running.server.clock())
    running.server.keys.add(key)
    with wakelog.open(running.url, key=running.key) as store:
        store.session("s")
    with Tail(Asker(running.url, token), "/v1/sessions/s/tail") as tail:
        assert tail._block() == "retry: 1000"
        assert tail._block() == ": nothing new"
        running.server.keys.revoke("k")
        assert tail.next() is None


def test_a_revoked_key_ends_its_tail_also_while_there_is_always_news(serve: Serve) -> None:
    running = serve(rate=0, keepalive_s=0.05)
    key, token = make_key("k", "read", ("default",), now=running.server.clock())
    running.server.keys.add(key)
    over = threading.Event()

    def write() -> None:
        with wakelog.open(running.url, key=running.key) as store:
            while not over.is_set():
                store.session("s").fact("n", 1)

    writer = threading.Thread(target=write)
    with wakelog.open(running.url, key=running.key) as store:
        store.session("s")
    writer.start()
    try:
        with Tail(Asker(running.url, token), "/v1/sessions/s/tail") as tail:
            tail.take(3)
            running.server.keys.revoke("k")
            while tail.next() is not None:
                pass
    finally:
        over.set()
        writer.join()


def test_there_are_only_so_many_tails(serve: Serve) -> None:
    running = serve(rate=0, watchers_max=4)
    asker = Asker(running.url, running.key)
    with Tail(asker, "/v1/tail") as one, Tail(asker, "/v1/tail") as two:
        assert one._block() == two._block() == "retry: 1000"
        refused = asker.get("/v1/tail")
        assert (refused.status, refused.kind) == (503, "server-busy")
        assert refused.headers["retry-after"]


@pytest.mark.parametrize("last", ["x", "-1", "1~1", "9" * 40])
def test_an_id_that_is_none_is_told_at_once(last: str, asker: Asker, session: Session[Any]) -> None:
    assert asker.get("/v1/sessions/s/tail", headers={"Last-Event-ID": last}).kind == "bad-request"


@pytest.mark.parametrize("last", ["x", "1~x", "~"])
def test_a_place_in_the_feed_that_is_none_is_told_at_once(last: str, asker: Asker) -> None:
    reply = asker.get("/v1/tail", headers={"Last-Event-ID": last})
    assert (reply.status, reply.kind) in ((400, "bad-request"), (400, "bad-cursor"))


def test_after_everybody_has_left_the_next_watcher_finds_the_feed_again(
    asker: Asker, running: RunningServer, session: Session[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "LINGER_S", 0.0)
    for n in range(3):
        with Tail(asker, "/v1/sessions/s/tail") as tail:
            assert tail._block() == "retry: 1000"
            session.fact("n", n)
            assert seqs(tail.take(1)) == [n + 2]
        [kept] = running.server._hubs.values()
        thread = kept._thread
        if thread is not None:
            thread.join(180)
        assert kept._thread is None


@pytest.mark.parametrize("path", ["/v1/sessions/s/tail", "/v1/tail"])
def test_what_came_while_nobody_watched_is_told_to_who_comes_back(
    path: str, asker: Asker, running: RunningServer, session: Session[Any]
) -> None:
    with Tail(asker, path) as tail:
        assert tail._block() == "retry: 1000"
        session.fact("n", 1)
        [seen] = tail.take(1)
    while running.server.watchers:
        threading.Event().wait(0.001)
    session.fact("n", 2)
    with Tail(asker, path, last=seen.id) as tail:
        assert seqs(tail.take(1)) == [3]
