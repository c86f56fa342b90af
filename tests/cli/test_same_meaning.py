"""The same question means the same everywhere: what the library answers, the command line, HTTP and MCP answer too."""

import json
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.cli.conftest import Cli
from tests.http.asking import Asker
from wakelog.http.server import serving
from wakelog.http.state import Settings
from wakelog.mcp.lazy_store import LazyStore
from wakelog.mcp.tools import Tools
from wakelog.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = wakelog.open(tmp_path / "store")
    session = store.session("agent", data={"n": 0})
    for number in range(1, 6):
        with session.turn(f"turn {number}") as turn:
            session.fact(f"f{number}", number)
            turn.data["n"] = number
        if number == 3:
            session.checkpoint("third")
    return store


PLACES: list[tuple[str, str, set[str]]] = [
    # a, b, the facts that changed
    ("", "", {"f5"}),
    ("@2", "", {"f2"}),
    ("@-1", "", {"f4"}),
    ("@2", "@", {"f3", "f4", "f5"}),
    ("@2", "@4", {"f3", "f4"}),
    ("@2..@4", "", {"f3", "f4"}),
    ("cp:third", "", {"f4", "f5"}),
    ("@0", "", {"f1", "f2", "f3", "f4", "f5"}),
    ("e4", "", {"f1"}),
]


@pytest.mark.parametrize(("a", "b", "facts"), PLACES)
def test_a_diff_means_the_same_in_library_command_line_http_and_mcp(
    store: Store, cli: Cli, tmp_path: Path, a: str, b: str, facts: set[str]
) -> None:
    session = store.resume("agent")
    assert session.log.entry(4).kind == "fact.recorded"
    found = session.diff(a or None, b or None)
    ends = (found.a[1], found.b[1])
    keys = [c.pointer for c in found.changes]
    assert {c.key for c in found.of("facts")} == facts
    words = [p for p in (f"agent{a}" if a.startswith("@") else f"agent@{a}" if a else "agent", b) if p]
    told = cli("diff", *words, "--json", "--store", str(tmp_path / "store")).data
    assert (told["a"]["seq"], told["b"]["seq"]) == ends
    assert [c["pointer"] for c in told["changes"]] == keys
    said = json.loads(Tools(LazyStore.of(store)).diff(session.id, a, b))
    assert (said["from"], said["to"]) == ends
    assert [c["key"] for c in said["changes"]] == keys
    with serving(Settings(url=str(tmp_path / "store"), rate=0)) as running:
        query: dict[str, Any] = {name: value for name, value in (("a", a), ("b", b)) if value}
        answer = Asker(running.url, running.key).get("/v1/sessions/agent/diff", **query).json
    assert (answer["a"][1], answer["b"][1]) == ends
    assert [c["pointer"] for c in answer["changes"]] == keys


@pytest.mark.parametrize("name", ["e86", "@5", "turn:3", "cp:x", "t:2h", "last-error", "a..b", "c:9f3a"])
def test_what_is_a_place_is_no_name_for_a_session_anywhere(store: Store, cli: Cli, tmp_path: Path, name: str) -> None:
    session = store.resume("agent")
    for act in (lambda: store.session(name), lambda: session.fork(name=name), lambda: session.fork(name=name)):
        with pytest.raises(wakelog.InvalidInputError) as caught:
            act()
        assert caught.value.kind == "bad-name"
        assert caught.value.hint
    result = cli("fork", "agent", "--name", name, "--json", "--store", str(tmp_path / "store"))
    assert (result.code, result.error["kind"]) == (2, "bad-name")
    with pytest.raises(Exception, match="cannot name a session"):
        Tools(LazyStore.of(store)).fork(session.id, name=name)
    with serving(Settings(url=str(tmp_path / "store"), rate=0)) as running:
        asker = Asker(running.url, running.key)
        assert asker.post("/v1/sessions/agent/fork", {"name": name}).kind == "bad-name"
    assert [head.name for head in store.sessions()] == ["agent"]


def test_a_session_is_found_by_the_beginning_of_its_name_and_exactly_first(
    store: Store, cli: Cli, tmp_path: Path
) -> None:
    for name in ("ev-2026", "deploy", "deploy-2", "deploy-3"):
        store.session(name)
    at = ("--json", "--store", str(tmp_path / "store"))
    assert cli("status", "-s", "ev", *at).data["name"] == "ev-2026"
    assert cli("log", "ev@", *at).code == 0
    assert cli("status", "-s", "deploy", *at).data["name"] == "deploy"
    several = cli("status", "-s", "dep", *at)
    assert (several.code, several.error["kind"]) == (3, "ambiguous-session")
    assert "deploy, deploy-2, deploy-3" in several.error["message"]
    wrong = cli("status", "-s", "agnet", *at)
    assert (wrong.code, wrong.error["hint"]) == (3, "did you mean agent?")
    assert cli("delete", "ev", "--yes", *at).code == 3


def test_a_fork_is_found_by_the_name_it_was_given(store: Store) -> None:
    fork = store.resume("agent").fork("@2", name="other")
    assert store.resume("other").id == fork.id
    with pytest.raises(wakelog.ConflictError) as caught:
        store.resume("agent").fork(name="other")
    assert caught.value.kind == "name-taken"
    assert [head.name for head in store.sessions()] == ["agent", "other"]
