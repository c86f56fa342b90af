"""Several servers on a synchronous pair whose primary is killed under load: what was acknowledged is there once, in
order, whichever server it went through, and what failed was told."""

import http.client
import random
import threading
import time
from contextlib import ExitStack, closing
from typing import Any

import pytest

import wakelog
from tests.engines.postgres_server import Pair
from tests.http.asking import Asker
from tests.http.processes import ServerProcess
from tests.http.tailing import Tail
from tests.seeds import SEED
from wakelog.errors import UnavailableError
from wakelog.http.keys import ANY, make_key
from wakelog.http.namespaces import NamespaceStores
from wakelog.session import Session
from wakelog.testing.contract.base import in_parallel

PASSING = {"answer-unknown", "unreachable", "server-busy", "server-stopping", "read-only-server"}
"""What a caller may be told while nobody can write. Each is settled by asking again with the same id."""


class Client(threading.Thread):
    """Writes numbers to a session of its own and to one that all share, each until it is acknowledged."""

    def __init__(self, servers: list[ServerProcess], token: str, number: int, stop: threading.Event) -> None:
        super().__init__(name=f"c{number}")
        self.servers, self.token, self.number, self._stop_it = servers, token, number, stop
        self.acknowledged: dict[str, list[str]] = {self.name: [], "shared": []}
        self.told: list[str] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            count = 0
            while not self._stop_it.is_set():
                for session in self.acknowledged:
                    value = f"{self.name}-{count}"
                    while not self.append(session, value):
                        time.sleep(0.02)
                    self.acknowledged[session].append(value)
                count += 1
        except BaseException as exc:
            self.error = exc

    def append(self, session: str, value: str) -> bool:
        raise AssertionError("each kind of writer says how it appends")


class Plain(Client):
    """Sends plain requests; after a failure, through the next server."""

    def append(self, session: str, value: str) -> bool:
        asker = Asker(self.servers[self.number % len(self.servers)].url, self.token)
        event = {"kind": "fact.recorded", "body": {"key": "k", "value": value}}
        try:
            if not self.acknowledged[session]:
                asker.post("/v1/sessions", {"name": session})
            reply = asker.post(f"/v1/sessions/{session}/events", {"events": [event], "commit_id": value})
        except (OSError, http.client.HTTPException) as exc:
            self.told.append("unreachable")
            raise AssertionError("the servers were not killed") from exc
        if reply.status != 200:
            self.number += 1
            self.told.append(reply.kind)
            assert reply.kind in PASSING, reply.content
        return reply.status == 200


class Library(Client):
    """Uses the library, which retries for a while."""

    store: wakelog.Store | None = None

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.sessions: dict[str, Session[Any]] = {}

    def append(self, session: str, value: str) -> bool:
        try:
            if self.store is None:
                url = self.servers[self.number % len(self.servers)].url
                self.store = wakelog.open(url, key=self.token)
            event = wakelog.events.FactRecorded(key="k", value=value)
            if session not in self.sessions:
                self.sessions[session] = self.store.session(session)
            self.sessions[session].append(event, commit_id=value)
        except UnavailableError as exc:
            self.told.append(exc.kind)
            if exc.kind not in PASSING:
                raise
            return False
        return True

    def run(self) -> None:
        super().run()
        if self.store is not None:
            self.store.close()


class Watcher(threading.Thread):
    """Follows the shared session through one server after another, until a note is added to it."""

    def __init__(self, servers: list[ServerProcess], token: str) -> None:
        super().__init__(name="watcher")
        self.servers, self.token = servers, token
        self.seen: list[int] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        turn = 0
        try:
            while True:
                turn += 1
                asker = Asker(self.servers[turn % len(self.servers)].url, self.token)
                with Tail(asker, "/v1/sessions/shared/tail", last=str(len(self.seen))) as tail:
                    while tail.status == 200 and (event := tail.next()) is not None and event.name != "end":
                        self.seen.append(event.data["seq"])
                        if event.data["kind"] == "note.added":
                            return
                time.sleep(0.05)
        except BaseException as exc:
            self.error = exc


def play(servers: int, clients: int, kills: int, seed: int) -> None:
    rng = random.Random(seed)
    stop = threading.Event()
    with ExitStack() as stack:
        pair = Pair()
        stack.callback(pair.stop)
        url = f"{pair.url}&namespace=served"
        key, token = make_key("clients", "write", (ANY,), now=1)
        with closing(NamespaceStores(url).keys()) as keys:
            keys.add(key)
        # A short time limit, so that callers are told before the servers have given up.
        processes = [ServerProcess(url, "--time-limit", "1") for _ in range(servers)]
        for process in processes:
            stack.callback(process.kill)
        in_parallel(lambda process: process.start(), processes)
        Asker(processes[0].url, token).post("/v1/sessions", {"name": "shared"})
        threads: list[Client] = [(Plain, Library)[i % 2](processes, token, i, stop) for i in range(clients)]
        watcher = Watcher(processes, token)
        stack.callback(stop.set)
        for thread in (*threads, watcher):
            thread.start()
        for kill in range(kills):
            if kill:
                pair.rejoin()
            _until(threads, [6] * clients)
            time.sleep(rng.uniform(0, 0.3) if kills > 1 else 0)  # at any moment, not right after something was done
            told = sum(len(t.told) for t in threads)
            pair.primary.kill()
            deadline = time.monotonic() + 120
            while sum(len(t.told) for t in threads) == told:
                assert time.monotonic() < deadline, "nobody was told that the server is gone"
                time.sleep(0.01)
            pair.promote()
            _until(threads, [6] * clients)
        stop.set()
        for thread in threads:
            thread.join(180)
            assert not thread.is_alive()
            assert thread.error is None, f"{thread.name}, seed {seed}: {thread.error!r}"
        check(url, processes, token, threads, watcher, seed)


def _until(threads: list[Client], more: list[int]) -> None:
    """Waits until each client has this many more acknowledged."""
    wanted = [len(t.acknowledged[t.name]) + n for t, n in zip(threads, more, strict=True)]
    deadline = time.monotonic() + 180
    while any(len(t.acknowledged[t.name]) < n for t, n in zip(threads, wanted, strict=True)):
        for thread in threads:
            assert thread.error is None, f"{thread.name}: {thread.error!r}"
        assert time.monotonic() < deadline, "the clients do not get on"
        time.sleep(0.01)


def check(
    url: str, processes: list[ServerProcess], token: str, threads: list[Client], watcher: Watcher, seed: int
) -> None:
    with wakelog.open(url) as store:
        names = [head.name for head in store.sessions()]
        assert sorted(names) == sorted({"shared", *(t.name for t in threads)}), "each session is there once"
        for name in names:
            session = store.resume(name)
            stored: list[Any] = [entry.body["value"] for entry in session.events(kind="fact")]
            assert len(stored) == len(set(stored)), f"something is stored twice in {name}, seed {seed}"
            for thread in threads:
                mine = [value for value in stored if value.startswith(f"{thread.name}-")]
                promised = thread.acknowledged.get(name, [])
                assert mine[: len(promised)] == promised, f"lost or out of order in {name}, seed {seed}"
                assert len(mine) == len(promised), f"all was acknowledged in the end, seed {seed}"
            assert session.verify().ok, (name, seed)
            heads = [Asker(p.url, token).get(f"/v1/sessions/{name}").json["head"] for p in processes]
            assert [head["hash"] for head in heads] == [session.head.hash.hex()] * len(heads), f"two heads, seed {seed}"
        last = store.resume("shared").append(wakelog.events.NoteAdded(text="the end")).seq
        watcher.join(120)
        assert watcher.error is None, watcher.error
        assert watcher.seen == list(range(1, last + 1)), f"seed {seed}"


@pytest.mark.slow
@pytest.mark.seeded
def test_a_primary_is_killed_under_two_servers() -> None:
    play(servers=2, clients=4, kills=1, seed=SEED)


@pytest.mark.slow
def test_primaries_are_killed_back_and_forth_under_three_servers() -> None:
    play(servers=3, clients=12, kills=5, seed=SEED)
