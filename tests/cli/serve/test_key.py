"""`wakelog key`: what people and programs see."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.stories import check_story
from tests.http.asking import Asker
from wakelog.http.keys import Keys
from wakelog.http.server import serving
from wakelog.http.state import Settings

FIELDS = {"id", "name", "scope", "namespaces", "created", "expires", "last_used"}
STORY: list[tuple[str, ...]] = [
    ("key", "ls"),
    ("key", "new", "ci", "--scope", "write", "--namespace", "team-a", "--namespace", "team-b"),
    ("key", "new", "board", "--scope", "read", "--all-namespaces", "--expires", "90d"),
    ("key", "new", "laptop"),
    ("key", "ls"),
    ("key", "new", "ci"),
    ("key", "new", "x", "--namespace", "Team A"),
    ("key", "new", "x", "--namespace", "a", "--all-namespaces"),
    ("key", "new", "x", "--expires", "soon"),
    ("key", "new", " "),
    ("key", "revoke", "ci"),
    ("key", "revoke", "ci"),
    ("key", "ls"),
]


@pytest.fixture
def desk(cli: Cli, plain_terminal: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAKELOG_STORE", "store")
    return cli


def test_the_same_words_as_before(desk: Cli) -> None:
    check_story(desk, STORY, "serve/key", _masked, shlex.join)


def _masked(text: str) -> str:
    text = re.sub(r"wlk_[a-z2-7]{8}_[\w-]{43}", "wlk_KEYID234_SECRET", text)
    text = re.sub(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b", "2026-01-01 00:00:00", text)
    return re.sub(r"(?m)^[a-z2-7]{8}(?=  )|(?<=\()[a-z2-7]{8}(?=\))", "keyid234", text)


def test_programs_get_documents(desk: Cli) -> None:
    made = desk("key", "new", "ci", "--expires", "1d", "--json").json
    assert made["schema"] == "wakelog.key/1"
    assert set(made["data"]) == {*FIELDS, "key"}
    assert made["data"]["namespaces"] == ["default"]
    [listed] = desk("key", "ls", "--json").data
    assert set(listed) == FIELDS
    assert listed == {k: v for k, v in made["data"].items() if k != "key"}
    assert desk("key", "new", "all", "--all-namespaces", "--json").data["namespaces"] is None
    assert [r["name"] for r in desk("key", "ls", "--ndjson").records] == ["ci", "all"]
    assert set(desk("key", "revoke", "all", "--json").data) == FIELDS
    assert desk("key", "revoke", "all", "--json").error["kind"] == "key-not-found"


def test_the_secret_goes_to_stdout_alone_so_that_it_can_be_piped(desk: Cli) -> None:
    result = desk("key", "new", "ci")
    token = result.out.strip()
    assert re.fullmatch(r"wlk_[a-z2-7]{8}_[\w-]{43}", token)
    assert token not in result.err
    found = Keys(Path("store/keys.json")).find(token, 1)
    assert found is not None
    assert found.scope == "write"


def test_another_file_of_keys_can_be_named(desk: Cli) -> None:
    desk("key", "new", "ci", "--keys", "elsewhere.json")
    assert not Path("store").exists()
    assert desk("key", "ls", "--keys", "elsewhere.json", "--json").data[0]["name"] == "ci"


def test_a_store_without_a_folder_needs_one(desk: Cli) -> None:
    result: Any = desk("key", "new", "ci", "--store", "memory:", "--json")
    assert result.error["kind"] == "no-key-file"


def test_the_hint_for_a_missing_scope_makes_a_key_that_has_it(desk: Cli, tmp_path: Path) -> None:
    url = str(tmp_path / "served")
    with serving(Settings(url=url, rate=0)) as running:
        little = desk("key", "new", "little", "--scope", "read", "--namespace", "team-a", "--store", url).out.strip()
        for number, (method, path) in enumerate((("GET", "/metrics"), ("POST", "/v1/namespace"))):
            told = Asker(running.url, little).ask(method, path)
            assert (told.status, told.kind) == (403, "scope-missing")
            wakelog, *command = told.json["hint"].replace("NAME", f"more{number}").split()
            assert wakelog == "wakelog"
            made = desk(*command, "--store", url)
            assert made.code == 0, made.err
            assert Asker(running.url, made.out.strip()).ask(method, path).status == 200
