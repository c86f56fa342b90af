"""Namespaces: a store each, wherever the server keeps them."""

from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.engines.postgres_server import Server as Postgres
from tests.http.asking import Asker
from tests.http.conftest import Serve
from tests.http.tailing import Tail
from wakelog.errors import NotFoundError, UnsupportedError
from wakelog.http.namespaces import LOGS_MAX, Namespace, NamespaceStores
from wakelog.store import open as open_store


def test_a_namespace_is_a_folder_with_a_store_that_needs_no_server(serve: Serve, tmp_path: Path) -> None:
    running = serve(tmp_path / "root", rate=0)
    for space in ("", "/ns/team-a"):
        with wakelog.open(running.url + space, key=running.key) as store:
            store.session("s").fact("where", space)
    with wakelog.open(tmp_path / "root") as default, wakelog.open(tmp_path / "root" / "ns" / "team-a") as team:
        assert default.resume("s").state().facts["where"].value == ""
        assert team.resume("s").state().facts["where"].value == "/ns/team-a"


@pytest.mark.parametrize("kind", ["memory", "postgres"])
def test_other_stores_have_namespaces_too(kind: str, serve: Serve, request: pytest.FixtureRequest) -> None:
    url = "memory:"
    if kind == "postgres":
        database: Postgres = request.getfixturevalue("postgres")
        url = f"{database.url}?namespace=served"
    running = serve(url, rate=0)
    stores = [wakelog.open(f"{running.url}{space}", key=running.key) for space in ("", "/ns/spaces-a", "/ns/spaces-b")]
    for number, store in enumerate(stores):
        store.session("s").fact("n", number)
    for number, store in enumerate(stores):
        assert store.resume("s").state().facts["n"].value == number
        assert len(list(store.sessions())) == 1
        assert [row.name for row in store.index.sessions()] == ["s"]
        store.close()


def test_a_single_file_has_no_namespaces(tmp_path: Path) -> None:
    spaces = NamespaceStores(str(tmp_path / "one.db"))
    spaces.get("default").store.session("s")
    with pytest.raises(UnsupportedError):
        spaces.get("other", create=True)
    assert spaces.key_file == tmp_path / "keys.json"
    spaces.close()


def test_one_that_is_not_there_is_not_made_by_looking(tmp_path: Path) -> None:
    spaces = NamespaceStores(str(tmp_path))
    with pytest.raises(NotFoundError):
        spaces.get("other")
    assert spaces.names() == ["default"]
    spaces.get("other", create=True)
    assert spaces.names() == ["default", "other"]
    spaces.close()


def test_a_space_keeps_one_log_a_session_and_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wakelog.http.namespaces.LOGS_MAX", 3)
    assert LOGS_MAX > 3
    space = Namespace("x", open_store("memory:"))
    ids = [space.store.session(f"s{n}").id for n in range(5)]
    logs = [space.log(each) for each in ids]
    assert space.log(ids[-1]) is logs[-1]
    assert len(space._logs) == 3
    space.store.delete(space.session("s4"))
    with pytest.raises(NotFoundError):
        space.log(ids[-1])
    with pytest.raises(NotFoundError):
        space.session(ids[-1])


def test_the_feed_of_a_database_goes_on_where_it_was(serve: Serve, postgres: Postgres) -> None:
    running = serve(f"{postgres.url}?namespace=fed", rate=0)
    asker = Asker(running.url, running.key)
    with wakelog.open(running.url, key=running.key) as store:
        sessions = [store.session(name) for name in ("a", "b")]
        for number in range(15):
            for session in sessions:
                session.append(wakelog.UserMessage(str(number)), wakelog.ModelMessage("so be it"))
    seen: list[tuple[str, int]] = []
    last: str | None = None
    while len(seen) < 62:
        with Tail(asker, "/v1/tail", last=last, after=None if last else "") as tail:
            events = tail.take(min(7, 62 - len(seen)))
        seen += [(event.data["session"], event.data["seq"]) for event in events]
        last = events[-1].id
    for session in sessions:
        assert [seq for where, seq in seen if where == session.id] == list(range(1, 32))


def test_a_session_asked_for_by_name_again_is_one_look_at_its_head(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store("memory:") as store:
        space = Namespace("default", store)
        first = store.session("s").id
        assert space.session("s").id == first
        asked: list[str] = []

        def noted(name: str) -> Any:
            original = getattr(store.engine, name)

            def ask(*args: Any) -> Any:
                asked.append(name)
                return original(*args)

            return ask

        for name in ("find", "head"):
            monkeypatch.setattr(store.engine, name, noted(name))
        assert space.session("s").id == first
        assert asked == ["head"]


def test_a_name_that_is_free_again_is_the_next_sessions() -> None:
    with open_store("memory:") as store:
        space = Namespace("default", store)
        store.session("s")
        first = space.session("s")
        store.delete(first)
        with pytest.raises(NotFoundError):
            space.session("s")
        second = store.session("s")
        assert space.session("s").id == second.id != first.id
