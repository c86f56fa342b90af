"""Pictures: what they contain, what is listed without content, and when a file is read again."""

import hashlib
import os
import socket
import time
from pathlib import Path

import pytest

from tests.files.conftest import Shell
from tests.files.repository import needs_git
from wakelog.files import manifest
from wakelog.files.capture import Capture
from wakelog.files.file_stamps import is_settled, stamp_of


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were read, in order."""
    seen: list[str] = []
    real = manifest.read_whole

    def counted(path: str, **kwargs: int) -> object:
        seen.append(os.path.basename(path))
        return real(path, **kwargs)

    monkeypatch.setattr(manifest, "read_whole", counted)
    return seen


def settle(folder: Path) -> None:
    """Waits until the file system's clock has advanced, so that a stat can be trusted."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    while not all(is_settled(stamp_of(path.lstat()), time.time_ns()) for path in files):
        pass


def test_an_unchanged_file_is_read_once(repo: Path, shell: Shell, reads: list[str]) -> None:
    shell("echo 1 > a; echo 1 > b")
    settle(repo)
    capture = Capture([repo], folder=repo)
    capture.before()
    assert sorted(reads) == ["a", "b"]
    shell("echo 22 > b")
    settle(repo)
    capture.before()
    capture.before()
    assert sorted(reads) == ["a", "b", "b"]


def test_a_change_within_one_tick_of_the_clock_is_seen(repo: Path) -> None:
    """Same size, same inode, and often the same times: only the content shows the change."""
    path = repo / "a"
    path.write_text("0")
    capture = Capture([repo], folder=repo)
    for number in range(1, 200):
        picture = capture.before()
        path.write_text(str(number % 10))
        assert [e.after for e in capture.changes(picture)] == [str(number % 10)]


def test_a_change_that_puts_the_times_back_is_seen(repo: Path, shell: Shell) -> None:
    shell("echo 1 > a")
    settle(repo)
    capture = Capture([repo], folder=repo)
    picture = capture.before()
    shell("touch -r a ../stamp; echo 2 > a; touch -r ../stamp a")
    assert [e.after for e in capture.changes(picture)] == ["2\n"]


def test_links_are_recorded_as_links_and_never_followed(repo: Path, shell: Shell) -> None:
    shell("mkdir ../out; echo secret > ../out/f; ln -s ../out dir; ln -s ../out/f file; ln -s nowhere dangling")
    capture = Capture([repo], folder=repo)
    picture = capture.before()
    assert {p: s.kind for p, s in picture.seen.items()} == {"dir": "link", "file": "link", "dangling": "link"}
    shell("rm file; ln -s elsewhere file; echo changed > ../out/f")
    [event] = capture.changes(picture)
    assert (event.path, event.before, event.after, event.after_mode) == ("file", "../out/f", "elsewhere", "120000")


def test_what_is_not_a_file_is_named(repo: Path) -> None:
    capture = Capture([repo], folder=repo)
    picture = capture.before()
    os.mkfifo(repo / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(repo)  # the path of a socket must be short
        listener.bind("sock")
        os.chdir(here)
        found = {e.path: e.missing for e in capture.changes(picture)}
    assert found == {"pipe": {"after": "a pipe"}, "sock": {"after": "a socket"}}


def test_a_file_too_large_is_named_and_not_kept(repo: Path, reads: list[str]) -> None:
    capture = Capture([repo], folder=repo, max_file_bytes=1000)
    picture = capture.before()
    (repo / "huge").write_bytes(bytes(10_001))
    (repo / "large").write_bytes(bytes(1001))
    (repo / "small").write_bytes(bytes(1000))
    huge, large, small = capture.changes(picture)
    assert huge.missing == large.missing == {"after": "too large, 0.0 MB"}
    assert (huge.after, huge.after_hash, large.after) == (None, "", None)
    assert large.after_hash == hashlib.sha256(bytes(1001)).hexdigest(), "so that an edit of it can be told"
    assert small.after == "\0" * 1000
    assert sorted(reads) == ["large", "small"]
    picture = capture.before()
    with (repo / "huge").open("ab") as file:
        file.write(b"x")
    [event] = capture.changes(picture)
    assert set(event.missing) == {"before", "after"}


def test_contents_beyond_the_limit_are_named(repo: Path) -> None:
    capture = Capture([repo], folder=repo, max_total_bytes=4000)
    for number in range(8):
        (repo / f"f{number}").write_bytes(os.urandom(1000))
    picture = capture.before()
    assert capture.size_bytes <= 4000
    for number in range(8):
        (repo / f"f{number}").write_bytes(b"")
    events = capture.changes(picture)
    assert len(events) == 8
    known = [e for e in events if e.before is not None]
    assert 2 <= len(known) < 8
    assert all(e.missing == {"before": "the limit for contents was reached"} for e in events if e.before is None)
    assert all(e.before_hash for e in events), "a hash is known of each"


def test_what_nobody_needs_any_more_makes_room(repo: Path) -> None:
    path = repo / "f"
    path.write_bytes(b"")
    capture = Capture([repo], folder=repo, max_total_bytes=10_000)
    for _ in range(50):
        picture = capture.before()
        path.write_bytes(os.urandom(2000))
        [event] = capture.changes(picture)
        assert event.before is not None
        assert event.after is not None
        del picture


def test_an_unreadable_file_is_said(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo / "f").write_text("1")
    real = os.open

    def refusing(path: object, *args: int, **kwargs: int) -> int:
        if str(path).endswith("/f"):
            raise PermissionError(13, "Permission denied")
        return real(path, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refusing)
    capture = Capture([repo], folder=repo)
    assert capture.before().seen["f"].missing == "unreadable, Permission denied"


def test_a_folder_closed_to_us_is_said(repo: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so the refusal is simulated."""
    shell("mkdir closed; echo 1 > closed/a; echo 1 > b")
    settle(repo)
    capture = Capture([repo], folder=repo)
    picture = capture.before()
    real = os.scandir

    def refusing(path: str) -> object:
        if str(path).endswith("/closed"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refusing)
    found = {e.path: (e.change, e.missing) for e in capture.changes(picture)}
    assert found == {"closed/": ("created", {"after": "unreadable, Permission denied"})}, (
        "what is in it was not deleted"
    )
    picture = capture.before()
    monkeypatch.setattr(os, "scandir", real)
    found = {e.path: (e.change, e.missing) for e in capture.changes(picture)}
    assert found == {"closed/": ("deleted", {"before": "unreadable, Permission denied"})}, "nor made"


def test_a_file_that_is_written_to_all_the_time_is_said(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo / "f").write_text("1")
    real = manifest.read_whole

    def moving(path: str, **kwargs: int) -> object:
        content, before, after = real(path, **kwargs)
        return content, before, (after[0], after[1] + 1, *after[2:])

    monkeypatch.setattr(manifest, "read_whole", moving)
    assert Capture([repo], folder=repo).before().seen["f"].missing == "written to while it was read"


def test_names_of_any_kind(repo: Path) -> None:
    names = ["new\nline", "tab\t", "ünï", "\u202egnp.exe", " ", "-rf", "a" * 255]
    capture = Capture([repo], folder=repo)
    picture = capture.before()
    for name in names:
        (repo / name).write_text(name)
    (repo / os.fsdecode(b"bad\xff")).write_text("x")
    found = {e.path: e for e in capture.changes(picture)}
    assert set(found) == {*names, "bad\\xff"}
    assert all(found[name].after == name for name in names)
    assert found["bad\\xff"].missing == {"after": "its name is not UTF-8"}
    assert found["bad\\xff"].after is None


def test_what_is_ignored_is_watched_from_outside(repo: Path, shell: Shell) -> None:
    shell("printf 'build/\\n.env\\n__pycache__\\n' > .gitignore; mkdir -p build/deep __pycache__")
    shell("echo 1 > build/deep/o; echo 1 > .env")
    capture = Capture([repo], folder=repo)
    picture = capture.before()
    assert capture.changes(picture) == []
    shell("echo SECRET=1 >> .env; echo 2 > build/deep/o; echo 2 > __pycache__/x")
    events = capture.changes(picture)
    assert [(e.path, e.change, e.before, e.after) for e in events] == [
        (".env", "modified", None, None),
        ("build/", "modified", None, None),
    ]
    assert all(e.missing == {"before": "ignored by git", "after": "ignored by git"} for e in events)


@needs_git
def test_gits_own_data_and_ours_are_never_looked_into(repo: Path, shell: Shell) -> None:
    capture = Capture([repo], folder=repo)
    picture = capture.before()
    shell("mkdir -p .wakelog a/.wakelog; echo 1 > .wakelog/x; echo 1 > a/.wakelog/x; git commit -q --allow-empty -m x")
    assert capture.changes(picture) == []
