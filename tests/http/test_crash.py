"""`kill -9` of the server under writers: acknowledged appends are stored, and repeated ones are stored once."""

import http.client
import json
import random
import threading
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.http.asking import Asker
from tests.http.processes import ServerProcess
from tests.seeds import SEED
from wakelog.http.keys import Keys, make_key
from wakelog.model.ids import SessionId
from wakelog.store import Store


class Library(threading.Thread):
    """Writes through the library: to its own session, and to one shared with all others."""

    def __init__(self, url: str, key: str, name: str, stop: threading.Event) -> None:
        super().__init__(name=name)
        self._url, self._key, self._stop_it = url, key, stop
        self.acknowledged: list[tuple[str, int]] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            with wakelog.open(self._url, key=self._key) as store:
                # However long a server takes to start.
                store.engine._patience_s = 600.0  # type: ignore[attr-defined]
                own, shared = store.session(self.name), store.session("shared")
                number = 0
                while not self._stop_it.is_set():
                    number += 1
                    for session in (own, shared):
                        session.append(wakelog.events.FactRecorded(key=f"{self.name}-{number}", value="x" * 700))
                        self.acknowledged.append((session.name, number))
        except BaseException as exc:
            self.error = exc


class Plain(Library):
    """Writes through plain requests, and repeats each with the same commit id until it is answered."""

    def run(self) -> None:
        asker = Asker(self._url, self._key)
        try:
            self._until_answered(lambda: asker.post("/v1/sessions", {"name": self.name}))
            self._until_answered(lambda: asker.post("/v1/sessions", {"name": "shared"}))
            number = 0
            while not self._stop_it.is_set():
                number += 1
                for name in (self.name, "shared"):
                    event = {"kind": "fact.recorded", "body": {"key": f"{self.name}-{number}", "value": 1}}
                    body = {"events": [event], "commit_id": f"{self.name}-{number}"}
                    self._until_answered(lambda name=name, body=body: asker.post(f"/v1/sessions/{name}/events", body))
                    self.acknowledged.append((name, number))
        except BaseException as exc:
            self.error = exc

    @staticmethod
    def _until_answered(ask: Any) -> None:
        while True:
            try:
                reply = ask()
            except (OSError, http.client.HTTPException):
                continue
            if reply.status == 200:
                return
            assert reply.status == 503, reply.content


def play(tmp_path: Path, writers: int, kills: int, seed: int) -> None:
    store = tmp_path / "store"
    key, token = make_key("writers", "write", ("default",), now=1)
    Keys(store / "keys.json").add(key)
    rng = random.Random(seed)
    stop = threading.Event()
    with ServerProcess(store) as server:
        kinds = [Library if i % 2 else Plain for i in range(writers)]
        threads = [kind(server.url, token, f"w{i}", stop) for i, kind in enumerate(kinds)]
        for thread in threads:
            thread.start()
        while not all(t.acknowledged or t.error for t in threads):
            stop.wait(0.005)  # opening does not retry, so no server is killed before all writers have opened the store
        for number in range(kills):
            enough = (number + 1) * writers * 2
            while sum(len(t.acknowledged) for t in threads) < enough and all(t.error is None for t in threads):
                stop.wait(rng.uniform(0.001, 0.02))
            server.kill()
            server.start()
        stop.set()
        for thread in threads:
            thread.join(300)
            assert not thread.is_alive()
            assert thread.error is None, f"{thread.name}, seed {seed}: {thread.error!r}"
    with wakelog.open(store) as opened:
        check(opened, threads, seed)


def check(store: Store, threads: list[Library], seed: int) -> None:
    for session in ("shared", *(thread.name for thread in threads)):
        found = store.resume(session)
        keys = [entry.body["key"] for entry in found.events(kind="fact")]
        assert len(keys) == len(set(keys)), f"something is stored twice in {session}, seed {seed}"
        for thread in threads:
            promised = {f"{thread.name}-{number}" for name, number in thread.acknowledged if name == session}
            assert promised <= set(keys), f"acknowledged and lost in {session}, seed {seed}"
        report = found.verify()
        assert report.ok, (session, report, seed)


@pytest.mark.seeded
def test_eight_writers_and_two_kills(tmp_path: Path) -> None:
    play(tmp_path, writers=8, kills=2, seed=SEED)


@pytest.mark.slow
def test_sixty_four_writers_and_many_kills(tmp_path: Path) -> None:
    play(tmp_path, writers=64, kills=8, seed=SEED)


@pytest.mark.slow
def test_a_tail_goes_on_over_kills_without_gap_or_repetition(tmp_path: Path) -> None:
    from tests.http.tailing import Tail

    store = tmp_path / "store"
    key, token = make_key("k", "write", ("default",), now=1)
    Keys(store / "keys.json").add(key)
    stop = threading.Event()
    with ServerProcess(store) as server:
        writer = Library(server.url, token, "w", stop)
        writer.start()
        while not writer.acknowledged:
            assert writer.error is None
            stop.wait(0.005)
        seen: dict[SessionId, list[int]] = {}
        last, kills = "", 0
        while len(seen.get(store_id(store, "w"), [])) < 400:
            try:
                with Tail(Asker(server.url, token), "/v1/tail", last=last) as tail:
                    while (event := tail.next()) is not None:
                        seen.setdefault(event.data["session"], []).append(event.data["seq"])
                        last = event.id
                        total = sum(map(len, seen.values()))
                        if kills < 4 and total > 100 * (kills + 1):
                            kills += 1
                            server.kill()
                            server.start()
                        if total > 1000:
                            break
            except (OSError, ValueError, IndexError, json.JSONDecodeError):
                continue
        stop.set()
        writer.join(300)
        assert writer.error is None
    for numbers in seen.values():
        assert numbers == list(range(1, len(numbers) + 1))


def store_id(folder: Path, name: str) -> SessionId:
    with wakelog.open(folder) as opened:
        return opened.find(name)
