"""Keys: where they come from, that nobody sees them, and that the ring loses none."""

import base64
import logging
import os
import signal
import subprocess
import sys
import threading
import traceback
import types
from pathlib import Path

import pytest

import wakelog
from tests.encryption.keys import key_file, use_rings
from wakelog.encryption.key_ring import KeyRing, MasterKey
from wakelog.errors import (
    CorruptLogError,
    InvalidInputError,
    NotAllowedError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)
from wakelog.model.ids import SessionId

SECRET = bytes(range(100, 132))
TEXT = base64.b64encode(SECRET).decode()


@pytest.fixture(autouse=True)
def _rings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_rings(monkeypatch, tmp_path)


def tree(number: int) -> SessionId:
    return SessionId(f"s_{number:026d}")


def write_key(path: Path, text: str = TEXT, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_key_comes_from_a_file_the_environment_a_command_or_the_keyring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = MasterKey(SECRET).id
    path = write_key(tmp_path / "k", TEXT + "\n")
    monkeypatch.setenv("MY_KEY", SECRET.hex())
    keyring = types.ModuleType("keyring")
    keyring.get_password = lambda service, name: {("wakelog", "store"): TEXT}.get((service, name))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    for source in (str(path), f"file:{path}", "env:MY_KEY", f"command:cat {path}", "keyring:wakelog/store"):
        assert MasterKey.read(source).id == known
    with pytest.raises(NotFoundError, match="nothing under"):
        MasterKey.read("keyring:wakelog/other")
    with pytest.raises(InvalidInputError, match="SERVICE/NAME"):
        MasterKey.read("keyring:wakelog")

    def broken(service: str, name: str) -> str:
        raise ModuleNotFoundError("no.such.backend, asked with hunter2")

    keyring.get_password = broken  # type: ignore[attr-defined]
    with pytest.raises(UnavailableError, match="did not answer: ModuleNotFoundError") as told:
        MasterKey.read("keyring:wakelog/store")
    assert "hunter2" not in str(told.value)


def test_without_its_library_the_keyring_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(UnsupportedError) as told:
        MasterKey.read("keyring:wakelog/store")
    assert "wakelog[keyring]" in told.value.hint


def test_what_is_no_key_is_refused_and_not_repeated(tmp_path: Path) -> None:
    for text in ("hunter2", "", TEXT[:-4], SECRET.hex() + "00", "correct horse battery staple"):
        path = write_key(tmp_path / "k", text)
        with pytest.raises(InvalidInputError) as told:
            MasterKey.read(f"file:{path}")
        assert told.value.kind == "bad-encryption-key"
        assert not text or text not in "".join(traceback.format_exception(told.value))
    with pytest.raises(NotAllowedError, match="other users"):
        MasterKey.read(f"file:{write_key(tmp_path / 'open', mode=0o644)}")
    with pytest.raises(InvalidInputError, match="as an argument") as given:
        MasterKey.read(TEXT)
    assert TEXT not in str(given.value)


def test_no_secret_is_in_a_repr_a_log_or_the_ring(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    source = f"file:{write_key(tmp_path / 'k')}"
    with wakelog.open(tmp_path / "store", encryption_key=source) as store:
        store.session("s").fact("k", 1)
        ring = store.encryption._ring()
        key = ring.ensure_key(store.encryption.tree_keys()[0].tree)
        secrets = [SECRET, key._secret]
        said = f"{ring!r} {ring.master!r} {key!r} {store.encryption.tree_keys()} {ring.lines()} {caplog.text}".encode()
        said += ring.path.read_bytes() + (tmp_path / "store" / "log.db").read_bytes()
        for secret in secrets:
            for form in (secret, secret.hex().encode(), base64.b64encode(secret), repr(secret).encode()):
                assert form not in said
        assert ring.path.stat().st_mode & 0o077 == 0


def test_keys_that_are_made_at_once_are_all_kept(tmp_path: Path) -> None:
    master = MasterKey(SECRET)
    path = tmp_path / "ring.keys"
    rings = [KeyRing.create(path, master) for _ in range(4)]
    made: dict[tuple[int, SessionId], bytes] = {}

    def make(number: int) -> None:
        for each in range(25):
            made[number, tree(each)] = rings[number].ensure_key(tree(each)).id

    threads = [threading.Thread(target=make, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(made) == 100
    assert all(made[number, each] == made[0, each] for number, each in made)
    assert len(KeyRing(path, master).lines()) == 25


def test_a_key_that_another_process_deleted_is_used_no_more(tmp_path: Path) -> None:
    master = MasterKey(SECRET)
    mine, theirs = (KeyRing.create(tmp_path / "ring.keys", master) for _ in range(2))
    key = mine.ensure_key(tree(1))
    assert theirs.ensure_key(tree(1)).id == key.id
    theirs.delete(tree(1), at=7)
    with pytest.raises(NotFoundError):
        mine.ensure_key(tree(1))
    assert key._secret.hex() not in (tmp_path / "ring.keys").read_text()
    mine.ensure_key(tree(2))
    assert [(line.tree, line.deleted) for line in theirs.lines()] == [(tree(1), 7), (tree(2), 0)]


def test_a_line_of_the_ring_that_was_changed_or_moved_is_refused(tmp_path: Path) -> None:
    master = MasterKey(SECRET)
    path = tmp_path / "ring.keys"
    ring = KeyRing.create(path, master)
    ring.ensure_key(tree(1))
    ring.ensure_key(tree(2))
    whole = path.read_text()
    top, one, two, _ = whole.split("\n")
    path.write_text("\n".join([top, one.replace(tree(1), tree(3)), two, ""]))
    with pytest.raises(CorruptLogError, match="altered"):
        KeyRing(path, master).ensure_key(tree(3))
    path.write_text("{}\n")
    with pytest.raises(CorruptLogError, match="not a key ring"):
        KeyRing(path, master)


WRITER = """
import sys, wakelog
with wakelog.open(sys.argv[1], encryption_key=sys.argv[2]) as store:
    number = 0
    while True:
        session = store.session(f"s{number % 7}")
        print(session.name, session.fact("k", number), number, flush=True)
        number += 1
"""


def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path) -> None:
    key = key_file(tmp_path)
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "store"), key], stdout=subprocess.PIPE, env={**os.environ}
    )
    assert child.stdout is not None
    acknowledged = [child.stdout.readline().decode().split() for _ in range(60)]
    child.send_signal(signal.SIGKILL)
    acknowledged += [line.decode().split() for line in child.stdout if line.endswith(b"\n")]
    child.wait(60)
    child.stdout.close()
    with wakelog.open(tmp_path / "store", encryption_key=key) as store:
        for name, seq, number in acknowledged:
            assert store.resume(name).log.entry(int(seq)).body["value"] == int(number)
        assert all(report.ok for report in store.verify())
