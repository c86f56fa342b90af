"""`wakelog store create --encrypt`, `store keys` and what else a person sees of an encrypted store."""

from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli
from wakelog import UserMessage

KEY = "WAKELOG_ENCRYPTION_KEY"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain_terminal: None, cli: Cli) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAKELOG_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("WAKELOG_KEY_RINGS", str(tmp_path / "rings"))
    monkeypatch.delenv(KEY, raising=False)
    assert cli("store", "keys", "new", "master.key").code == 0
    assert cli("store", "create", "--encrypt", "file:master.key").code == 0
    with wakelog.open(tmp_path / "store", encryption_key="file:master.key") as store:
        store.session("work", goal="kingfisher", folder="").append(UserMessage("hi"))
    return tmp_path


def test_a_new_key_is_private_and_is_not_shown(cli: Cli) -> None:
    made = cli("store", "keys", "new", "other.key", "--json")
    secret = Path("other.key").read_text().strip()
    assert Path("other.key").stat().st_mode & 0o777 == 0o600
    assert secret not in made.out + made.err
    assert cli("store", "keys", "new", "other.key").code == 6
    given = cli("store", "create", "another", "--encrypt", secret)
    assert given.code == 2
    assert secret not in given.out + given.err
    assert not Path("another").exists()


def test_without_the_key_it_lists_verifies_and_says_what_it_cannot(cli: Cli) -> None:
    assert cli("ls", "--json").data[0]["name"] == "work"
    assert "encrypted" in cli("ls").out
    verified = cli("verify", "work")
    assert verified.code == 0
    assert "the content was not" in verified.out
    assert "opened without the key" in cli("store", "info").out
    assert cli("store", "check").code == 0
    assert "encryption" in cli("doctor").out
    for args in (["show", "work"], ["search", "kingfisher"], ["export", "work", "-o", "x"], ["store", "keys", "list"]):
        refused = cli(*args)
        assert refused.code == 6
        assert KEY in refused.err
        assert "kingfisher" not in refused.out
    assert not Path("x").exists()
    assert cli("export", "work", "--encrypted", "-o", "work.wakelog").code == 0
    assert cli("export", "work", "--encrypted", "--format", "md").code == 2


def test_keys_are_listed_rotated_and_deleted(cli: Cli) -> None:
    old, new = {KEY: "file:master.key"}, {KEY: "file:next.key"}
    (listed,) = cli("store", "keys", "list", "--json", env=old).data["keys"]
    assert listed["sessions"] == ["work"]
    assert cli("store", "backup", "backup.db", env=old).code == 0
    cli("store", "keys", "new", "next.key")
    assert cli("store", "keys", "rotate", "file:next.key", "--json", env=old).data == {"keys": 1}
    refused = cli("show", "work", env=old)
    assert refused.code == 2
    assert "wrong-encryption-key" in refused.err
    assert "kingfisher" in cli("status", "work", env=new).out
    deleted = cli("store", "keys", "delete", "work", "--yes", "--json", env=new).data
    assert (deleted["key_id"], deleted["sessions"]) == (listed["key_id"], ["work"])
    assert cli("ls", "--json", env=new).data == []
    gone = cli("--store", "backup.db", "show", "work", env=new)
    assert gone.code == 3
    assert "content-key-deleted" in gone.err
    assert "erased" in cli("--store", "backup.db", "ls", env=new).out
    assert "the content is gone" in cli("--store", "backup.db", "verify", "work", env=new).out


def test_a_copy_is_encrypted_unless_it_is_asked_to_be_plain(cli: Cli) -> None:
    key = {KEY: "file:master.key"}
    assert cli("store", "copy", "copy").code == 0
    assert "kingfisher" in cli("--store", "copy", "status", "work", env=key).out
    assert cli("--store", "copy", "status", "work").code == 6
    with wakelog.open("plain") as plain:
        plain.session("mine", folder="")
    refused = cli("store", "copy", "plain", env=key)
    assert refused.code == 6
    assert "--decrypt" in refused.err
    assert cli("store", "copy", "plain", "--decrypt", env=key).code == 0
    assert "kingfisher" in cli("--store", "plain", "status", "work").out
    exported = cli("export", "work", "-o", "open.wakelog", env=key)
    assert exported.code == 0
    assert "this file is not" in exported.err
