"""Several `wakelog serve` on one PostgreSQL store: what one knows, all know, and any of them can fail."""

import json
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

import wakelog
from tests.engines.postgres_server import Server as Database
from tests.http.asking import Asker, Reply, until
from tests.http.processes import ROOT, ServerProcess
from tests.http.tailing import Event, Tail
from wakelog.errors import ConflictError, NotFoundError
from wakelog.http.keys import ANY, make_key
from wakelog.http.namespaces import NamespaceStores
from wakelog.log.removal import erase
from wakelog.testing.contract.base import in_parallel

URL = "{0}?namespace=many-servers"


class Servers:
    """Two servers on one database, and a key that all of them know."""

    def __init__(self, database: Database) -> None:
        self.url = URL.format(database.url)
        key, self.token = make_key(f"tests-{secrets.token_hex(4)}", "admin", (ANY,), now=1)
        with closing(NamespaceStores(self.url).keys()) as keys:
            keys.add(key)
        self.a, self.b = (ServerProcess(self.url, "--no-launch-key") for _ in range(2))

    def asker(self, server: ServerProcess, token: str = "") -> Asker:
        return Asker(server.url, token or self.token)

    @property
    def askers(self) -> tuple[Asker, Asker]:
        return self.asker(self.a), self.asker(self.b)

    def open(self, server: ServerProcess) -> wakelog.Store:
        return wakelog.open(server.url, key=self.token)


@pytest.fixture(scope="module")
def servers(postgres: Database) -> Iterator[Servers]:
    made = Servers(postgres)
    with ExitStack() as stack:
        in_parallel(lambda server: server.start(), [made.a, made.b])
        for server in (made.a, made.b):
            stack.callback(server.kill)
        yield made


def append(asker: Asker, name: str, value: Any, **more: Any) -> Reply:
    event = {"kind": "fact.recorded", "body": {"key": "k", "value": value}}
    return asker.post(f"/v1/sessions/{name}/events", {"events": [event], **more})


def values(store: wakelog.Store, name: str) -> list[Any]:
    return [entry.body["value"] for entry in store.resume(name).events(kind="fact")]


def seqs(events: list[Event]) -> list[int]:
    return [event.data["seq"] for event in events]


def test_a_lease_is_honoured_by_all_and_taken_over_when_its_server_is_killed(servers: Servers) -> None:
    a, b = servers.askers
    assert a.post("/v1/sessions", {"name": "leased"}).status == 200
    lease = a.post("/v1/sessions/leased/lease", {"holder": "one", "ttl_s": 3600.0})
    assert lease.json["epoch"] == 1
    assert b.post("/v1/sessions/leased/lease", {"holder": "two"}).kind == "leased"
    assert append(a, "leased", 1, guard=1).status == 200
    assert append(b, "leased", 2, guard=1).status == 200, "the holder may come through any server"
    brief = {"holder": "one", "epoch": 1, "ttl_s": 1.0}
    assert a.post("/v1/sessions/leased/lease/beat", brief).status == 200
    servers.a.kill()
    try:
        wish = {"holder": "two", "ttl_s": 3600.0}
        taken = until(lambda: (r := b.post("/v1/sessions/leased/lease", wish)).status == 200 and r)
        assert taken.json["epoch"] == 2
    finally:
        servers.a.start()
    assert [append(each, "leased", 3, guard=1).kind for each in (a, b)] == ["fenced", "fenced"]
    assert a.post("/v1/sessions/leased/lease", {"holder": "one"}).kind == "leased"
    assert a.post("/v1/sessions/leased/lease/beat", {"holder": "one", "epoch": 1}).status == 409
    assert append(a, "leased", 3, guard=2).status == 200
    with servers.open(servers.b) as store:
        assert values(store, "leased") == [1, 2, 3]


@pytest.mark.parametrize("path", ["/v1/sessions/tailed-{0}/tail", "/v1/tail"])
def test_a_tail_sees_what_comes_through_others_and_goes_on_elsewhere(servers: Servers, path: str) -> None:
    a, b = servers.askers
    name = f"tailed-{len(path)}"
    path = path.format(len(path))
    a.post("/v1/sessions", {"name": name})
    with Tail(b, path) as tail:
        assert tail._block() == "retry: 1000"
        for number in range(20):
            assert append((a, b)[number % 3 == 0], name, number).status == 200
        seen = tail.take(20)
        if seen[0].data["seq"] == 1:
            # A server learns a little later what was stored through another, so new events may begin earlier.
            seen = seen[1:] + tail.take(1)
        servers.b.kill()
    for number in range(20, 40):
        assert append(a, name, number).status == 200
    try:
        with Tail(a, path, last=seen[-1].id) as tail:
            seen += tail.take(10)
    finally:
        servers.b.start()
    with Tail(b, path, last=seen[-1].id) as tail:
        seen += tail.take(10)
        append(a, name, 40)
        seen += tail.take(1)
    assert seqs(seen) == list(range(2, 43))
    assert [event.data["body"]["value"] for event in seen] == list(range(41))


def test_what_was_asked_again_elsewhere_is_there_once(servers: Servers) -> None:
    a, b = servers.askers
    a.post("/v1/sessions", {"name": "again"})
    first = append(a, "again", "x", commit_id="x")
    assert append(b, "again", "x", commit_id="x").json == first.json
    assert append(b, "again", "y", commit_id="x").kind == "commit-id-reused"
    answered: dict[int, Any] = {}
    enough = threading.Event()

    def write() -> None:
        for number in range(10_000):
            try:
                reply = append(a, "again", number, commit_id=f"n{number}")
            except (OSError, ValueError):
                return
            answered[number] = reply.json
            if number == 30:
                enough.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert enough.wait(180)
    servers.a.kill()
    try:
        writer.join()
        # The last one was sent but not answered, so its outcome is unknown. All are repeated on another server.
        count = len(answered) + 1
        again = {number: append(b, "again", number, commit_id=f"n{number}").json for number in range(count)}
    finally:
        servers.a.start()
    assert {number: again[number] for number in answered} == answered
    with servers.open(servers.b) as store:
        assert values(store, "again") == ["x", *range(count)]
        assert store.resume("again").verify().ok


def run(servers: Servers, *args: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "wakelog", "--store", servers.url, *args, "--json"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["data"]


def test_a_key_is_valid_everywhere_at_once_and_refused_everywhere_once_revoked(servers: Servers) -> None:
    made = run(servers, "key", "new", "team", "--scope", "write", "--namespace", "many-team")
    askers = [servers.asker(server, made["key"]) for server in (servers.a, servers.b)]
    assert [each.post("/v1/sessions", {"name": "s"}).status for each in askers] == [200, 200]
    assert [each.get("/ns/default/v1/info").status for each in askers] == [404, 404], "it sees its own only"
    assert "many-team" in run(servers, "key", "ls")[-1]["namespaces"]
    run(servers, "key", "revoke", "team")
    until(lambda: [each.get("/v1/info").kind for each in askers] == ["key-refused"] * 2)


def test_a_namespace_made_through_one_is_there_for_all(servers: Servers) -> None:
    a, b = servers.askers
    assert [each.get("/ns/many-new/v1/info").kind for each in (a, b)] == ["namespace-not-found"] * 2
    assert a.post("/ns/many-new/v1/namespace").status == 200
    assert b.get("/ns/many-new/v1/info").status == 200
    assert "many-new" in b.get("/v1/namespaces").json["namespaces"]
    assert a.post("/ns/many-new/v1/sessions", {"name": "s"}).status == 200
    assert b.get("/ns/many-new/v1/sessions/s").status == 200
    assert b.get("/v1/sessions/s").status == 404


@pytest.mark.parametrize("is_about_all", [False, True])
def test_a_wait_hears_what_comes_through_others(servers: Servers, is_about_all: bool) -> None:
    a, b = servers.askers
    session = a.post("/v1/sessions", {"name": "waited"}).json["session"]
    head = b.post("/v1/engine/head", {"session": session}).json
    question: dict[str, Any] = {"session": session, "after": head["seq"], "timeout_s": 20.0}
    if is_about_all:
        began = b.post("/v1/engine/wait", {"session": None, "after": 0, "timeout_s": 0.0}).json
        question |= {"session": None, "cursor": began["cursor"]}
    answers: list[Reply] = []
    waiting = threading.Thread(target=lambda: answers.append(b.post("/v1/engine/wait", question)))
    waiting.start()
    append(a, "waited", 1)
    waiting.join(180)
    assert answers[0].json["came"] is True


def test_writers_through_all_of_them_make_one_chain(servers: Servers) -> None:
    with servers.open(servers.a) as a, servers.open(servers.b) as b:
        sessions = [a.session("shared"), b.session("shared")]
        in_parallel(lambda n: sessions[n % 2].fact(f"k{n}", n), list(range(60)))
        assert sorted(values(a, "shared")) == list(range(60))
        assert values(a, "shared") == values(b, "shared")
        assert b.resume("shared").verify().ok
        seen = sessions[0].head.seq
        sessions[1].fact("meanwhile", 1)
        with pytest.raises(ConflictError):
            sessions[0].append(wakelog.UserMessage("on what I saw"), expect=seen)
        assert a.resume("shared").state() == b.resume("shared").state()


def test_what_is_erased_or_deleted_through_one_is_gone_for_all(servers: Servers) -> None:
    secret = "walrus in the pantry"
    with servers.open(servers.a) as a, servers.open(servers.b) as b:
        session = a.session("to go")
        seq = session.fact("told", secret)
        asker = servers.asker(servers.b)
        with Tail(asker, "/v1/sessions/to%20go/tail", after=0) as tail:
            assert secret in str(tail.take(2))
            assert b.index.search("walrus").rows
            erase(session.log, [seq])
            tail.take(1)
            with Tail(asker, "/v1/sessions/to%20go/tail", last="1") as again:
                assert secret not in str(again.take(2))
        assert secret not in str(b.resume("to go").state())
        assert not b.index.search("walrus").rows
        b.resume("to go").fact("still", "alive")
        a.delete(session)
        assert asker.get("/v1/sessions/to%20go").status == 404
        with pytest.raises(NotFoundError):
            b.resume("to go")
        assert b.session("to go").id != session.id
