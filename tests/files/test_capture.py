"""Capturing what a shell does, however it does it."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.files.conftest import Agent, Shell, record_changes
from wakelog.errors import NotFoundError
from wakelog.files.capture import Capture
from wakelog.files.project import project_folder
from wakelog.session import Session


def _told(capture: Capture, picture: Any, action: str = "") -> list[tuple[str, str, Any, Any]]:
    return [(e.path, e.change, e.before, e.after) for e in capture.changes(picture, action)]


def test_a_shell_is_captured_whatever_it_does(repo: Path, shell: Shell) -> None:
    shell(
        "printf 'a\\nb\\nc\\n' > edited; echo 1 > gone; echo 1 > moved; echo '#!/bin/sh' > tool; mkdir d; echo 1 > d/f"
    )
    capture = Capture([repo], folder=repo)
    picture = capture.before()
    shell("sed -i s/b/B/ edited; rm gone; mv moved renamed; chmod +x tool; rm -r d; mkdir -p n/m; printf x > n/m/new")
    events = {e.path: e for e in capture.changes(picture, action="shell-1")}
    assert {p: e.change for p, e in events.items()} == {
        "edited": "modified",
        "gone": "deleted",
        "moved": "deleted",
        "renamed": "created",
        "tool": "modified",
        "d/f": "deleted",
        "n/m/new": "created",
    }
    edited = events["edited"]
    assert (edited.before, edited.after, edited.added, edited.removed) == ("a\nb\nc\n", "a\nB\nc\n", 1, 1)
    assert edited.action == "shell-1"
    assert events["moved"].before_hash == events["renamed"].after_hash
    assert (events["tool"].before_mode, events["tool"].after_mode) == ("100644", "100755")
    assert (events["tool"].added, events["tool"].removed) == (0, 0)
    assert (events["n/m/new"].added, events["gone"].removed) == (1, 1)
    assert capture.changes(capture.before()) == []


def test_bytes_that_are_not_text_are_kept_as_bytes(repo: Path, session: Session[Any]) -> None:
    path = repo / "icon"
    path.write_bytes(b"\x89PNG\xff\x00")
    capture = session.files.capture(repo, folder=repo)
    picture = capture.before()
    path.write_bytes(b"\xfe" * 2000)
    record_changes(session.log, capture, picture)
    entry = next(session.events(kind="file.changed"))
    assert session.log.value(entry, entry.body["before"]) == b"\x89PNG\xff\x00"
    assert session.log.value(entry, entry.body["after"]) == b"\xfe" * 2000
    assert entry.body["after"]["$payload"] == entry.body["after_hash"]


def test_the_same_content_is_stored_once(repo: Path, shell: Shell, session: Session[Any]) -> None:
    capture = session.files.capture(repo, folder=repo)
    picture = capture.before()
    (repo / "a").write_bytes(os.urandom(50_000))
    shell("cp a b; cp a c")
    record_changes(session.log, capture, picture)
    picture = capture.before()
    shell("rm a b")
    record_changes(session.log, capture, picture)
    [first, *_] = commits = list(session.log.engine.read(session.id, after=1, payloads=True))
    assert len(commits) == 2
    assert [len(content) for commit in commits for _, content in commit.payloads] == [50_000]
    assert len(first.records) == 3


def test_what_changed_between_two_calls_is_not_the_seconds_work(repo: Path, shell: Shell) -> None:
    shell("echo 1 > mine; echo 1 > theirs")
    capture = Capture([repo], folder=repo)
    capture.before()
    shell("echo edited > mine")
    picture = capture.before()
    shell("echo 2 > theirs")
    assert _told(capture, picture) == [("theirs", "modified", "1\n", "2\n")]


def test_calls_that_overlap_tell_each_change_once_and_in_one_line(repo: Path, shell: Shell) -> None:
    shell("echo 0 > f")
    capture = Capture([repo], folder=repo)
    one = capture.before()
    shell("echo 1 > f")
    two = capture.before()
    shell("echo 2 > f; echo new > g")
    assert _told(capture, two) == [("f", "modified", "1\n", "2\n"), ("g", "created", None, "new\n")]
    shell("echo 3 > f; rm g")
    assert _told(capture, one) == [("f", "modified", "2\n", "3\n"), ("g", "deleted", "new\n", None)]
    assert _told(capture, capture.before()) == []


def test_threads_may_share_one(repo: Path, session: Session[Any]) -> None:
    """In any order, the reported changes lead from the first content to the last without a gap."""
    capture = session.files.capture(repo, folder=repo)
    for name in "abcd":
        (repo / name).write_text("0")
    capture.before()
    failures: list[BaseException] = []
    chains: dict[str, list[tuple[Any, Any]]] = {name: [] for name in "abcd"}
    lock = threading.Lock()

    def work(name: str) -> None:
        try:
            for number in range(1, 9):
                picture = capture.before()
                (repo / name).write_text(f"{name}{number}")
                with lock:
                    for event in capture.changes(picture, action=name):
                        chains[event.path].append((event.before, event.after))
        except BaseException as exc:
            failures.append(exc)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    for name, chain in chains.items():
        assert chain[-1][1] == f"{name}8"
        assert len(chain) == len(set(chain))


def test_files_may_come_and_go_while_a_picture_is_taken(repo: Path) -> None:
    capture = Capture([repo], folder=repo)
    stop = threading.Event()

    def stir() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            place = repo / f"d{number % 7}"
            place.mkdir(exist_ok=True)
            (place / f"f{number % 5}").write_text(str(number))
            if number % 3 == 0:
                (place / f"f{number % 5}").unlink()
            if number % 11 == 0:
                for path in place.iterdir():
                    path.unlink()
                place.rmdir()

    thread = threading.Thread(target=stir)
    thread.start()
    try:
        for _ in range(40):
            picture = capture.before()
            for event in capture.changes(picture):
                assert event.path.startswith("d")
    finally:
        stop.set()
        thread.join()


def test_a_call_of_the_runtime_is_captured_and_names_its_action(agent: Agent, repo: Path) -> None:
    agent("echo 1 > f")
    [entry] = agent.session.events(kind="file.changed")
    assert entry.header.actor == "tool"
    assert entry.body["action"] == next(agent.session.events(tool="shell")).body["action"]
    assert agent.session.state().files_modified["f"].change == "created"


def test_a_call_without_effects_costs_no_picture(session: Session[Any], repo: Path) -> None:
    capture = session.files.capture(repo, folder=repo)

    @session.tool(effect="read")
    def look() -> int:
        return 1

    tick = capture._tick
    with session.turn("look"):
        look()
    assert capture._tick == tick


def test_roots_are_named_from_the_projects_folder_on(repo: Path, shell: Shell, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    shell("mkdir -p src/deep docs; echo 1 > src/deep/f; echo 1 > docs/f; echo 1 > top")
    capture = Capture(["src", "src/deep", outside], folder=repo)
    assert set(capture.before().seen) == {"src/deep/f"}
    picture = capture.before()
    shell(f"echo 2 > src/deep/f; echo 2 > docs/f; echo 2 > top; echo 2 > {outside}/f")
    assert [e.path for e in capture.changes(picture)] == [f"{outside}/f", "src/deep/f"]


def test_a_session_that_starts_in_a_project_loads_nothing_that_captures_files(shell: Shell, tmp_path: Path) -> None:
    shell("git -c user.name=a -c user.email=a@b commit -q --allow-empty -m begin")
    script = """
import os, sys, wakelog
with wakelog.open(sys.argv[1]) as store:
    session = store.session("hello", folder=os.getcwd())
    assert session.log.part("labels")["project"]
print([name for name in ("wakelog.files.capture", "subprocess") if name in sys.modules])
"""
    place = str(tmp_path / "store.db")
    done = subprocess.run([sys.executable, "-c", script, place], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_project_is_where_git_or_a_store_is(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repo / "a/b").mkdir(parents=True)
    assert project_folder(repo / "a/b") == str(repo)
    (repo / "a/.wakelog").mkdir()
    assert project_folder(repo / "a/b") == str(repo / "a")
    monkeypatch.chdir(repo / "a/b")
    (repo / "a/b/f").write_text("1")
    assert set(Capture(["."]).before().seen) == {"b/f"}


def test_a_root_that_is_not_there_is_refused(repo: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        Capture(["nowhere"], folder=repo)
    assert caught.value.kind == "root-not-found"


def test_a_root_may_vanish_and_be_one_file(repo: Path, shell: Shell) -> None:
    shell("mkdir d; echo 1 > d/f; echo 1 > one")
    capture = Capture(["d", "one"], folder=repo)
    picture = capture.before()
    shell("rm -r d; echo 2 > one; echo 2 > two")
    assert _told(capture, picture) == [("d/f", "deleted", "1\n", None), ("one", "modified", "1\n", "2\n")]


def test_the_stores_own_files_are_no_change(repo: Path, session: Session[Any], tmp_path: Path) -> None:
    import wakelog

    for place in (repo / "plain", repo / "one.db"):
        with wakelog.open(place) as store:
            own = store.session("own")
            capture = own.files.capture(repo, folder=repo)
            picture = capture.before()
            own.fact("a", "b" * 10_000)
            own.fact("index", list(store.index.search("b")) == [])
            assert capture.changes(picture) == []


# Across processes

HOOK = """
import sys
from wakelog.files.capture import Capture
capture = Capture([sys.argv[1]], folder=sys.argv[1], cache=sys.argv[2])
if sys.argv[3] == "before":
    capture.keep("call-1", capture.before())
else:
    picture = capture.kept("call-1")
    assert capture.kept("call-1") is None
    for e in capture.changes(picture):
        print(e.path, e.change, repr(e.before), repr(e.after))
"""


def test_before_and_after_may_be_two_processes(repo: Path, shell: Shell, tmp_path: Path) -> None:
    cache = tmp_path / "cache.db"
    shell("echo 1 > f; echo 1 > same")

    def hook(when: str) -> str:
        command = [sys.executable, "-c", HOOK, str(repo), str(cache), when]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    hook("before")
    assert cache.stat().st_mode & 0o777 == 0o600
    shell("echo 2 > f")
    assert hook("after") == "f modified '1\\n' '2\\n'\n"


def test_a_damaged_cache_is_made_anew(repo: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache.db"
    cache.write_bytes(b"no database at all" * 500)
    (repo / "f").write_text("1")
    capture = Capture([repo], folder=repo, cache=cache)
    picture = capture.before()
    (repo / "f").write_text("2")
    assert _told(capture, picture) == [("f", "modified", "1", "2")]
    capture.close()


def test_a_forked_child_goes_on_capturing(repo: Path, tmp_path: Path) -> None:
    (repo / "f").write_text("1")
    for cache in (None, tmp_path / "cache.db"):
        capture = Capture([repo], folder=repo, cache=cache)
        picture = capture.before()
        child = os.fork()
        if not child:
            (repo / "f").write_text("2")
            os._exit(0 if _told(capture, picture) == [("f", "modified", "1", "2")] else 1)
        assert os.waitpid(child, 0)[1] == 0
        (repo / "f").write_text("1")
