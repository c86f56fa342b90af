"""Keys: stored hashed, refused at once if revoked or expired, safe to change while a server runs."""

import json
import os
import stat
import time
from itertools import count
from pathlib import Path

import pytest

from tests.http.asking import Asker
from tests.http.conftest import Serve
from wakelog.errors import ConflictError, CorruptLogError, InvalidInputError, NotAllowedError, NotFoundError
from wakelog.http.keys import ANY, SCOPES, Keys, check_namespace, make_key
from wakelog.http.namespaces import NamespaceStores
from wakelog.http.server import RunningServer
from wakelog.http.shared_keys import SharedKeys
from wakelog.testing.contract.base import in_parallel


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "store" / "keys.json")


def test_the_secret_is_kept_nowhere(keys: Keys) -> None:
    key, token = make_key("ci", "write", ("a",), now=1)
    keys.add(key)
    assert keys.path is not None
    written = keys.path.read_text()
    assert token not in written
    assert token.split("_", 2)[2] not in written
    assert json.loads(written)["keys"][0]["id"] in token
    assert stat.S_IMODE(os.stat(keys.path).st_mode) == 0o600


def test_a_token_is_found_and_anything_like_it_is_not(keys: Keys) -> None:
    key, token = make_key("ci", "write", ("a",), now=1)
    keys.add(key)
    assert keys.find(token, 5) == key
    prefix, ident, secret = token.split("_", 2)
    wrong = [
        *(
            "",
            "wlk",
            "wlk__",
            token[:-1],
            token + "x",
            token.upper(),
            secret,
            f"{prefix}_{ident}_",
            f"x_{ident}_{secret}",
        ),
        f"{prefix}_aaaaaaaa_{secret}",
        "\ud800",
    ]
    assert [keys.find(each, 5) for each in wrong] == [None] * len(wrong)


def test_no_two_keys_are_alike() -> None:
    assert len({make_key("n", "read", ("a",), now=1)[1] for _ in range(100)}) == 100


def test_an_expired_key_is_none(keys: Keys) -> None:
    key, token = make_key("ci", "write", ("a",), now=10, expires=20)
    keys.add(key)
    assert keys.find(token, 19) is not None
    assert keys.find(token, 20) is None
    assert not keys.is_valid(key, 20)


def test_a_scope_includes_those_before_it() -> None:
    for held in SCOPES:
        key, _ = make_key("n", held, ("a",), now=1)
        assert [scope for scope in SCOPES if key.may(scope)] == list(SCOPES[: SCOPES.index(held) + 1])


def test_a_key_sees_the_namespaces_it_is_made_for() -> None:
    some, _ = make_key("n", "read", ("a", "b"), now=1)
    everything, _ = make_key("n", "read", (ANY,), now=1)
    assert [some.sees(name) for name in ("a", "b", "c", "*", "")] == [True, True, False, False, False]
    assert everything.sees("whatever")


def test_names_are_unique_and_revoking_goes_by_name_or_id(keys: Keys) -> None:
    one, other = (make_key(name, "read", ("a",), now=1)[0] for name in ("one", "other"))
    keys.add(one)
    keys.add(other)
    with pytest.raises(ConflictError):
        keys.add(make_key("one", "read", ("a",), now=1)[0])
    assert keys.revoke("one") == one
    assert keys.revoke(other.id) == other
    with pytest.raises(NotFoundError):
        keys.revoke("one")
    assert keys.all() == []


def test_changes_by_several_processes_are_all_kept(keys: Keys) -> None:
    made = [make_key(f"k{i}", "read", ("a",), now=1)[0] for i in range(20)]
    in_parallel(lambda key: Keys(keys.path).add(key), made)
    assert {key.name for key in keys.all()} == {f"k{i}" for i in range(20)}


def test_the_last_use_is_noted_and_a_key_that_is_gone_stays_gone(keys: Keys) -> None:
    key, token = make_key("ci", "write", ("a",), now=1)
    keys.add(key)
    keys.find(token, 77)
    Keys(keys.path).revoke("ci")
    keys.note_use()
    assert Keys(keys.path).all() == []
    keys.add(key)
    keys.find(token, 78)
    keys.note_use()
    assert [each.last_used for each in Keys(keys.path).all()] == [78]


def test_a_file_that_cannot_be_read_lets_nobody_in_and_is_not_overwritten(keys: Keys) -> None:
    assert keys.path is not None
    keys.path.parent.mkdir()
    keys.path.write_text("{nonsense")
    with pytest.raises(CorruptLogError):
        keys.find(make_key("n", "read", ("a",), now=1)[1], 1)
    with pytest.raises(CorruptLogError):
        keys.add(make_key("n", "read", ("a",), now=1)[0])
    assert keys.path.read_text() == "{nonsense"


def test_a_store_in_memory_has_a_launch_key_only() -> None:
    made = make_key("launch", "admin", (ANY,), now=1)
    keys = Keys(None, made)
    assert keys.find(made[1], 1) == made[0]
    with pytest.raises(NotAllowedError):
        keys.add(made[0])


@pytest.mark.parametrize("name", ["", "A", "a/b", "..", "a..b", "-a", "x" * 64, "a b", "ä", "*"])
def test_some_names_are_no_namespaces(name: str) -> None:
    with pytest.raises(InvalidInputError):
        check_namespace(name)


# With a server


def test_a_key_made_while_the_server_runs_is_let_in_and_a_revoked_one_refused_at_once(running: RunningServer) -> None:
    mine = NamespaceStores(running.server.settings.url).keys()  # as another process would do
    for n in range(3):
        key, token = make_key(f"ci{n}", "read", ("default",), now=running.server.clock())
        assert Asker(running.url, token).get("/v1/info").kind == "key-refused"
        mine.add(key)
        assert Asker(running.url, token).get("/v1/info").status == 200
        mine.revoke(f"ci{n}")
        # At once for a file; within a second for a database, or longer on a busy machine.
        limit = time.monotonic() + (60 if isinstance(mine, SharedKeys) else 0)
        while Asker(running.url, token).get("/v1/info").kind != "key-refused":
            assert time.monotonic() < limit
            time.sleep(0.05)
    mine.close()


def test_a_key_that_expires_meanwhile_is_refused(serve: Serve) -> None:
    ticks = count(1_700_000_000_000_000, 1_000_000)
    running = serve(rate=0, clock=lambda: next(ticks))
    key, token = make_key("short", "read", ("default",), now=0, expires=next(ticks) + 20_000_000)
    running.server.keys.add(key)
    replies = [Asker(running.url, token).get("/v1/info").status for _ in range(40)]
    assert replies == sorted(replies)
    assert set(replies) == {200, 401}


def test_the_launch_key_is_good_for_one_launch(serve: Serve) -> None:
    first, second = serve(rate=0), serve(rate=0)
    assert first.key != second.key
    assert Asker(second.url, first.key).get("/v1/info").status == 401


def test_refused_keys_are_not_told_apart(running: RunningServer) -> None:
    key, token = make_key("ci", "read", ("default",), now=0, expires=1)
    running.server.keys.add(key)
    replies = [Asker(running.url, each).get("/v1/info") for each in (token, token + "x", "wlk_zzzzzzzz_y")]
    assert len({(r.status, r.content) for r in replies}) == 1


def test_what_is_logged_names_the_key_by_its_id_and_no_content(
    running: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "wakelog.http")
    asker = Asker(running.url, running.key)
    asker.post("/v1/sessions", {"name": "s", "goal": "very private"})
    asker.get("/v1/search", q="very private")
    limit = time.monotonic() + 60
    while len(records := [r for r in caplog.records if r.name == "wakelog.http" and r.getMessage() == "request"]) < 2:
        assert time.monotonic() < limit, "the requests were not noted"
        time.sleep(0.001)  # a request is recorded after it was answered
    assert [(r.__dict__["method"], r.__dict__["route"], r.__dict__["status"]) for r in records] == [
        ("POST", "/v1/sessions", 200),
        ("GET", "/v1/search", 200),
    ]
    said = str([r.__dict__ for r in records])
    assert running.key not in said
    assert running.key.split("_")[1] in said
    assert "private" not in said
