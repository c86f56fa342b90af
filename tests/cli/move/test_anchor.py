"""`wakelog anchor`, `anchor-key` and `verify --against`, as a person uses them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli
from tests.files.repository import needs_git
from wakelog import UserMessage


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain_terminal: None) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAKELOG_STORE", str(tmp_path / "store"))
    with wakelog.open(tmp_path / "store") as store:
        for name in ("a", "b"):
            store.session(name, folder="").append(UserMessage("hi"))
    return tmp_path


@pytest.fixture
def signer(cli: Cli) -> str:
    return cli("anchor-key", "ci.example", "--out", "anchor.key").out.strip()


def test_a_key_is_made_once_and_its_public_half_is_told(cli: Cli, signer: str) -> None:
    assert signer.startswith("ci.example+")
    assert Path("anchor.key").stat().st_mode & 0o777 == 0o600
    assert cli("anchor-key", "--of", "anchor.key").out.strip() == signer
    assert cli("anchor-key", "--of", "anchor.key", "--json").data["public"] == signer
    again = cli("anchor-key", "ci.example", "--out", "anchor.key")
    assert (again.code, again.out) == (6, "")
    assert "already exists" in again.err


@pytest.mark.parametrize(
    "args",
    [
        ["anchor-key"],
        ["anchor-key", "x"],
        ["anchor-key", "x", "--of", "y"],
        ["anchor", "--to", "anchors"],
        ["anchor", "--git", "."],
        ["anchor", "--key", "anchor.key", "--every", "5m"],
        ["anchor", "--key", "anchor.key", "--to", "anchors", "--every", "forever"],
        ["anchor", "--key", "anchor.key", "--to", "anchors", "--every", "soon"],
        ["anchor", "a", "--key", "anchor.key", "--to", "anchors", "--every", "5m"],
        ["verify", "a", "--kept", "x"],
        ["verify", "a", "--against", "anchor.key", "--signer", "anchor.key"],
    ],
)
def test_a_wrong_command_line_is_told(cli: Cli, signer: str, args: list[str]) -> None:
    done = cli(*args)
    assert done.code == 2, done.err
    assert not done.out
    assert "PRIVATE" not in done.err


def test_a_signed_anchor_of_one_session_holds(cli: Cli, signer: str) -> None:
    cli("anchor", "a", "--key", "anchor.key", "--out", "a.anchor")
    done = cli("verify", "--against", "a.anchor", "--signer", signer, "--json")
    assert (done.code, done.data[0]["signer"], done.data[0]["anchored"]) == (0, "ci.example", True)
    assert "signed       by ci.example" in cli("verify", "a", "--against", "a.anchor", "--signer", signer).out
    document = cli("anchor", "a", "--key", "anchor.key", "--json")
    Path("a.json").write_text(document.out)
    assert cli("verify", "--against", "a.json", "--signer", signer).code == 2, "it is told to leave the key out"
    unsigned = cli("verify", "--against", "a.anchor", "--json")
    assert unsigned.error["kind"] == "no-signer"
    assert cli("verify", "--against", "nowhere").code == 3


def test_a_forged_anchor_is_refused(cli: Cli, signer: str) -> None:
    cli("anchor", "a", "--key", "anchor.key", "--out", "a.anchor")
    Path("a.anchor").write_text(Path("a.anchor").read_text().replace(" 2 ", " 1 "))
    done = cli("verify", "--against", "a.anchor", "--signer", signer, "--json")
    assert (done.code, done.error["kind"]) == (4, "bad-proof")


def test_a_document_that_is_no_anchor_is_told_what_it_lacks(cli: Cli) -> None:
    Path("odd.json").write_text("{}")
    told = cli("verify", "a", "--against", "odd.json")
    assert (told.code, "missing required field `session`" in told.err) == (2, True)


def test_a_log_of_anchors_is_held_against_the_store(cli: Cli, signer: str, place: Path) -> None:
    made = cli("anchor", "--key", "anchor.key", "--to", "anchors", "--out", "kept", "--json").data
    assert (made["round"], made["size"], len(made["heads"])) == (1, 2, 2)
    assert made["receipt"] == Path("kept").read_text()
    assert cli("anchor", "--key", "anchor.key", "--to", "anchors").out == "Nothing new: anchors has every head\n"
    shutil.copytree(place / "store", place / "old")
    cli("note", "a", "-m", "one more")
    assert "Anchored 1 head in round 2" in cli("anchor", "a", "--key", "anchor.key", "--to", "anchors").out
    fine = cli("verify", "-A", "--against", "anchors", "--signer", signer, "--kept", "kept", "--json")
    assert fine.code == 0
    assert fine.data["log"]["ok"]
    assert [each["anchors"]["verdict"] for each in fine.data["sessions"]] == ["holds", "holds"]
    cut = cli("verify", "a", "--against", "anchors", "--signer", signer, "--store", "old")
    assert cut.code == 4
    assert "cut-off      it ends at e2, and had e3" in cut.out
    assert cli("verify", "b", "--against", "anchors", "--signer", signer, "--store", "old").code == 0
    refused = cli("anchor", "--key", "anchor.key", "--to", "anchors", "--store", "old", "--json")
    assert (refused.code, refused.error["kind"]) == (4, "anchor-not-held")


def test_a_rolled_back_store_and_a_missing_session_are_shown(cli: Cli, signer: str, place: Path) -> None:
    cli("anchor", "--key", "anchor.key", "--to", "anchors")
    shutil.copytree(place / "store", place / "old")
    for name in ("a", "b"):
        cli("note", name, "-m", "one more")
    with wakelog.open(place / "store") as store:
        store.session("c", folder="")
    cli("anchor", "--key", "anchor.key", "--to", "anchors")
    done = cli("verify", "-A", "--against", "anchors", "--signer", signer, "--store", "old")
    assert done.code == 4
    assert "rolled back  the store is as it was between" in done.out
    assert "3 sessions lost events" in done.out
    assert "missing      it had 1 events, and is not in this store" in done.out


def test_a_log_needs_a_key_to_be_believed(cli: Cli, signer: str) -> None:
    cli("anchor", "--key", "anchor.key", "--to", "anchors")
    assert cli("verify", "-A", "--against", "anchors", "--json").error["kind"] == "no-signer"
    other = cli("anchor-key", "ci.example", "--out", "other.key").out.strip()
    done = cli("verify", "-A", "--against", "anchors", "--signer", other)
    assert done.code == 4
    assert "none of the given keys" in done.out


@needs_git
def test_receipts_in_git_notes_are_held_against_the_log(cli: Cli, signer: str) -> None:
    for args in (["init", "-q"], ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x", "--allow-empty"]):
        subprocess.run(["git", *args], check=True)
    assert cli("verify", "-A", "--against", ".", "--signer", signer, "--kept", "git:.").code == 3
    cli("anchor", "--key", "anchor.key", "--to", "anchors", "--git", ".")
    done = cli("verify", "-A", "--against", "anchors", "--signer", signer, "--kept", "git:.")
    assert done.code == 0
    assert "agrees with the receipt of" in done.out


def test_a_key_on_the_command_line_is_refused_and_not_shown(cli: Cli, signer: str) -> None:
    secret = Path("anchor.key").read_text().strip()
    done = cli("anchor", "a", "--key", secret)
    assert done.code == 2
    assert secret.split("+", 4)[4] not in done.err + done.out
    shown = cli("verify", "a", "--against", "anchor.key", "--signer", secret)
    assert shown.code == 2
    assert secret.split("+", 4)[4] not in shown.err + shown.out


def test_no_secret_is_in_the_list_of_processes_or_in_what_is_kept(signer: str, place: Path) -> None:
    """A command that gives the key sees the arguments and the files of the one who asked."""
    secret = Path("anchor.key").read_text().strip()
    spy = place / "spy.py"
    spy.write_text(
        "import os,sys,pathlib\n"
        "who = ('self', os.getppid()) if os.path.isdir('/proc/self') else ()\n"
        "lines = [pathlib.Path(f'/proc/{each}/cmdline').read_bytes() for each in who]\n"
        "pathlib.Path('seen').write_bytes(b' '.join(lines))\n"
        "print(pathlib.Path('anchor.key').read_text())\n"
    )
    command = [
        sys.executable,
        "-m",
        "wakelog",
        "anchor",
        "--key",
        f"command:{sys.executable} spy.py",
        "--to",
        "anchors",
    ]
    done = subprocess.run(command, capture_output=True, env=dict(os.environ), timeout=120)
    assert done.returncode == 0, done.stderr
    kept = [path.read_bytes() for path in place.rglob("*") if path.is_file() and path.name != "anchor.key"]
    hidden = secret.split("+", 4)[4].encode()
    assert all(hidden not in each for each in [*kept, done.stdout, done.stderr])
