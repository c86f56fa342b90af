"""The TypeScript reader on encrypted bundles: the chain without a key, everything with one."""

import base64
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.encryption.keys import key_file, use_rings
from tests.readers.lasting import LASTING
from wakelog import events as ev
from wakelog.log.removal import erase, prune
from wakelog.session import Session
from wakelog.store import Store

LARGE = "a large value, stored beside the records; 🜁 é\n" * 200


class World:
    """An encrypted store with a session that has everything, and forks of it, one made without the key."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        use_rings(monkeypatch, folder)
        self.folder = folder
        self.source = key_file(folder)
        self.store: Store = wakelog.open(folder / "store", encryption_key=self.source)
        session = self.session = self.store.session("work", goal="größer")
        with session.turn(user=LARGE):
            session.fact("k", "v" * 300)
            session.files.record("src/a.py", added=3)
            session.append(ev.ActionRecorded(action="a", tool="read", effect="read", output=LARGE + "!"))
        session.append(ev.NoteAdded(text="mine"), commit_id="mine")
        session.checkpoint("here")
        erase(session.log, [4], why="asked for")
        fork = session.fork(name="pruned")
        fork.append(ev.ActionRequested(action="open", tool="send", effect="external"))
        with wakelog.open(folder / "store") as closed:
            closed.resume("pruned").fork(name="blind")
        self.blind = self.store.resume("blind")
        self.blind.fact("own", 1)
        fork.append(ev.ActionSucceeded(action="open"))

    def bundle(self, session: Session[Any]) -> bytes:
        out = io.BytesIO()
        session.export_bundle(out, encrypted=True)
        return out.getvalue()

    def read(self, data: bytes, *, key: str = "", ring: Path | None = None) -> dict[str, Any]:
        path = self.folder / "b.wakelog"
        path.write_bytes(data)
        keys = ["--ring", str(ring or self.store.encryption.ring_path), "--key", key.removeprefix("file:")]
        [answer] = LASTING["typescript"].answers([(path, *(keys if key else []))])
        return answer


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_without_keys_the_chain_is_checked_and_with_them_everything(world: World) -> None:
    with world.session.turn(user="on"):
        world.session.message("assistant", LARGE)
    prunable = world.store.session("alone", goal="g")
    prunable.fact("k", LARGE)
    prunable.fact("l", 2)
    prune(prunable.log, 2)
    for session in (world.session, world.blind, prunable):
        data = world.bundle(session)
        closed = world.read(data)
        assert closed["ok"], closed
        assert (closed["head_hash"], closed["events"]) == (session.head.hash.hex(), session.head.seq)
        assert closed["encrypted"] + closed["pruned"] >= session.head.seq - 1
        assert closed["state"] == {}
        opened = world.read(data, key=world.source)
        assert opened["ok"], opened
        assert "encrypted" not in opened
        assert opened["head_hash"] == session.head.hash.hex()
        assert opened["state"] == session.log.state()
        assert opened["state_hash"] == session.log.state_hash()
    assert opened["pruned"] == 2


def _altered(data: bytes, change: Callable[[list[Any]], None]) -> bytes:
    lines = [json.loads(line) for line in data.splitlines()][:-1]
    change(lines)
    text = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    end = {"end": len(lines), "sha256": hashlib.sha256(text).hexdigest()}
    return text + json.dumps(end).encode() + b"\n"


def _flip(lines: list[Any]) -> None:
    body = bytearray(base64.b64decode(lines[2]["records"][0][2].removeprefix("wle1:")))
    body[-1] ^= 1
    lines[2]["records"][0][2] = "wle1:" + base64.b64encode(body).decode()


def _swap(lines: list[Any]) -> None:
    one, two = lines[2]["records"][0], lines[3]["records"][0]
    one[2], two[2] = two[2], one[2]


def _plain(lines: list[Any]) -> None:
    lines[2]["records"][0][2] = '{"text":"obey"}'


def _later(lines: list[Any]) -> None:
    header = json.loads(lines[2]["records"][0][0])
    lines[2]["records"][0][0] = json.dumps({**header, "at": header["at"] + 1})


@pytest.mark.parametrize(
    ("change", "without", "said"),
    [(_flip, True, "altered"), (_swap, True, "altered"), (_plain, False, "encrypted"), (_later, False, "chain")],
)
def test_what_was_altered_is_refused(
    world: World, change: Callable[[list[Any]], None], *, without: bool, said: str
) -> None:
    data = _altered(world.bundle(world.session), change)
    assert world.read(data)["ok"] == without, "only the key tells whether encrypted bytes were altered"
    opened = world.read(data, key=world.source)
    assert not opened["ok"]
    if without or change is _later:
        assert said in opened["error"]


def test_a_fork_without_the_key_that_says_more_is_refused(world: World) -> None:
    def more(lines: list[Any]) -> None:
        record = next(r for line in lines[1:] for r in line["records"] if r[2].startswith("{"))
        record[2] = record[2].replace('"delta":[', '"delta":[{"op":"add","path":"/goal","value":"obey"},')
        record[1] = ""

    assert "not encrypted" in world.read(_altered(world.bundle(world.blind), more))["error"]


def test_wrong_keys_are_told_apart_and_no_error_holds_one(world: World, tmp_path: Path) -> None:
    data = world.bundle(world.session)
    other = key_file(tmp_path, "other.key")
    wrong = world.read(data, key=other)
    assert "not the master key" in wrong["error"]
    (tmp_path / "bad.key").write_text("hunter2")
    bad = world.read(data, key=str(tmp_path / "bad.key"))
    assert "32 bytes" in bad["error"]
    empty = tmp_path / "empty.keys"
    empty.write_text("{}\n")
    assert "not a key ring" in world.read(data, key=world.source, ring=empty)["error"]
    world.store.encryption.delete("work")
    assert "was deleted" in world.read(data, key=world.source)["error"]
    for answer in (wrong, bad):
        for secret in (Path(other.removeprefix("file:")).read_text(), "hunter2"):
            assert secret not in json.dumps(answer)
    plain = io.BytesIO()
    with wakelog.open(tmp_path / "plain") as store:
        store.session("p").export_bundle(plain)
    assert "not encrypted" in world.read(plain.getvalue(), key=world.source)["error"]
