"""Restoring files: exactly what was there; never over somebody's edits, outside the root, or in git's data."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import wakelog
from tests.files.conftest import Agent, Shell, git_state, record_changes, run, tree
from tests.files.repository import needs_git
from tests.seeds import examples
from wakelog.errors import ConflictError, NotAllowedError, NotFoundError
from wakelog.files.capture import Capture
from wakelog.files.restore import restore
from wakelog.files.restore_plan import RestorePlan, plan_restore
from wakelog.files.tree_writer import OpenRoot, locate
from wakelog.log.removal import erase
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.session import Session
from wakelog.store import Store

TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


def _does(plan: RestorePlan) -> dict[str, str]:
    return {step.path: step.do for step in plan.steps}


def _why(agent: Agent, at: str, path: str, **how: Any) -> str:
    plan = agent.session.files.restore(at, dry_run=True, **how).plan
    return next(step.why for step in plan.steps if step.path == path)


# All of it, at random

NAMES = ["a", "b", "d/a", "d/e/f", "new\nline", "ünï", "x y", "d/e", "link", "d"]
CONTENTS = [b"", b"one\n", b"two\nlines\n", b"\x00\xff\xfe", "ünï".encode(), b"no end", bytes(range(256)) * 8]
edit = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(NAMES), st.sampled_from(CONTENTS)),
    st.tuples(st.just("remove"), st.sampled_from(NAMES), st.just(b"")),
    st.tuples(st.just("chmod"), st.sampled_from(NAMES), st.sampled_from([b"755", b"644", b"600"])),
    st.tuples(st.just("link"), st.sampled_from(NAMES), st.sampled_from([b"a", b"d/a", b"nowhere"])),
    st.tuples(st.just("move"), st.sampled_from(NAMES), st.sampled_from([n.encode() for n in NAMES])),
)
turns = st.lists(st.lists(edit, min_size=1, max_size=4), min_size=1, max_size=5)


def _edit(folder: Path, what: str, name: str, value: bytes) -> None:
    """One edit; nothing if it is impossible."""
    path = folder / name
    try:
        if what == "remove":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        elif what == "chmod":
            if not path.is_symlink() and path.is_file():
                path.chmod(int(value, 8))
        elif what == "move":
            os.rename(path, folder / os.fsdecode(value))
        else:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            for parent in reversed(path.relative_to(folder).parents[:-1]):
                place = folder / parent
                if place.is_symlink() or place.is_file():
                    place.unlink()
                place.mkdir(exist_ok=True)
            if what == "link" or path.is_symlink():
                path.unlink(missing_ok=True)
            os.symlink(value, path) if what == "link" else path.write_bytes(value)
    except OSError:
        return


def _contents(folder: Path) -> dict[str, tuple[str, bytes, int]]:
    return tree(folder)


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a commit. Copying it is much faster than making one."""
    folder = tmp_path_factory.mktemp("committed") / "repo"
    folder.mkdir()
    run("git init -q && git -c user.name=Ann -c user.email=ann@example.com commit -q --allow-empty -m x", folder)
    return folder


# Found at random: an empty folder, whose last file was deleted, is where a file was; also one inside another.
@example([[("write", "d/e", b"1")], [("write", "d/e/f", b"2"), ("remove", "d/e/f", b"")]], 1, 0)
@example([[("write", "d/e", b"")], [("write", "d/e/f", b""), ("remove", "d/e/f", b"")]], 0, 1)
@example([[("link", "d/e", b"a")], [("link", "d/e/f", b"a"), ("move", "d/e/f", b"d/a")]], 1, 2)
@example([[("write", "d/e", b"1")], [("write", "d/e/f", b"2")], [("remove", "d/e/f", b"")]], 1, 2)
@example([[("write", "d", b"1")], [("write", "d/e/f", b"2"), ("remove", "d/e/f", b"")]], 1, 0)
# A link where a folder was, and a folder where a link was, restored twice.
@needs_git
@example([[("link", "d", b"a")], [("write", "d/e/f", b"1")], [("link", "d", b"a")]], 2, 2)
@example([[("write", "d/e/f", b"1")], [("link", "d", b"a")], [("write", "d/a", b"1")]], 1, 1)
@example([[("write", "d/e/f", b"1")], [("link", "d/e", b"a")], [("link", "d", b"a")]], 2, 1)
@settings(max_examples=examples(40))
@given(turns, st.integers(0, 4), st.integers(0, 4))
def test_any_history_can_be_gone_back_and_forth(
    tmp_path_factory: pytest.TempPathFactory, committed: Path, turns: list[list[Any]], to: int, then: int
) -> None:
    """The tree after each turn is remembered. A restore gives that tree; undo and redo give the others."""
    folder = tmp_path_factory.mktemp("random")
    shutil.copytree(committed, folder, dirs_exist_ok=True)
    with wakelog.open("memory:") as store:
        session = store.session("s")
        capture = session.files.capture(folder, folder=folder)
        trees, states = [_contents(folder)], [session.log.state_hash()]
        points = [session.head.seq]
        for edits in turns:
            with session.turn("edit"):
                picture = capture.before()
                for each in edits:
                    _edit(folder, *each)
                record_changes(session.log, capture, picture)
            trees.append(_contents(folder))
            states.append(session.log.state_hash())
            points.append(session.head.seq)
        git = git_state(folder)
        first, second = to % len(points), then % len(points)
        last, last_state = _contents(folder), session.state()
        report = session.files.restore(points[first], state=True)
        assert not report.is_partial, report
        assert _contents(folder) == trees[first]
        report = session.files.restore(points[second], state=True)
        assert not report.is_partial, report
        assert _contents(folder) == trees[second]
        session.undo()
        assert _contents(folder) == trees[first]
        session.undo()
        assert _contents(folder) == last
        now = session.state()
        assert (now.files_modified, now.working_set) == (last_state.files_modified, last_state.working_set)
        session.redo()
        assert _contents(folder) == trees[first]
        session.redo()
        assert _contents(folder) == trees[second]
        with pytest.raises(NotFoundError):
            session.redo()
        assert git_state(folder) == git
        assert session.verify().ok
    shutil.rmtree(folder)


# What it does, one thing at a time


@needs_git
def test_edits_through_a_shell_come_back(agent: Agent, repo: Path, shell: Shell) -> None:
    shell("printf 'a\\nb\\n' > f; echo keep > same; git add -A; git commit -qm x")
    start = tree(repo)
    agent("sed -i s/a/A/ f; echo new > made; mkdir d; echo 1 > d/x")
    agent("rm f; chmod +x same; echo 2 > d/x")
    git = git_state(repo)
    plan = agent.session.files.restore("@0", dry_run=True).plan
    assert _does(plan) == {"f": "restore", "made": "delete", "d/x": "delete", "same": "restore"}
    assert not plan.is_partial
    report = agent.session.files.restore("@0")
    assert tree(repo) == start
    assert not (repo / "d").exists(), "a folder that is empty without it goes, as with git"
    assert git_state(repo) == git
    assert not report.is_partial


def test_a_folder_that_was_a_link_before_is_gone_back_from_twice(agent: Agent, repo: Path) -> None:
    """The path of a file that should not exist leads through a link. Both are right as they are."""
    agent("ln -s nowhere d")
    agent("rm d; mkdir d; echo 1 > d/f")
    for _ in range(2):
        report = agent.session.files.restore("@1")
        assert not report.is_partial, report
        assert (repo / "d").readlink() == Path("nowhere")


def test_an_empty_folder_makes_room_for_the_file_that_was_there(agent: Agent, repo: Path) -> None:
    agent("echo 1 > d")
    agent("rm d; mkdir -p d/e/f d/g")
    report = agent.session.files.restore("@1")
    assert not report.is_partial, report
    assert (repo / "d").read_text() == "1\n"


@pytest.mark.parametrize("made", ["echo mine > d/e/own", "ln -s nowhere d/e/own"])
def test_a_folder_with_somebodys_file_in_it_does_not_make_room(
    agent: Agent, repo: Path, shell: Shell, made: str
) -> None:
    """And the plan says so before anything is touched, whether or not it is forced."""
    agent("echo 1 > d")
    agent("rm d; mkdir -p d/e d/hollow; echo 2 > d/e/f")
    shell(made)
    for force in (False, True):
        plan = agent.session.files.restore("@1", dry_run=True, force=force).plan
        assert _does(plan) == {"d": "conflict", "d/e/f": "delete"}
        assert _why(agent, "@1", "d", force=force) == "a folder is there now, and d/e/own in it would be lost"
    agent.session.files.restore("@1")
    assert (repo / "d/e/own").is_symlink() or (repo / "d/e/own").read_text() == "mine\n"


def test_what_a_link_leads_to_is_never_removed(agent: Agent, repo: Path) -> None:
    agent("mkdir d; echo 1 > d/f")
    (repo / "own").mkdir()
    (repo / "own" / "f").write_text("mine")
    (repo / "d" / "f").unlink()
    (repo / "d").rmdir()
    (repo / "d").symlink_to("own")
    agent.session.files.restore("@0", force=True)
    assert (repo / "own" / "f").read_text() == "mine"


def test_the_log_stays_true(agent: Agent, repo: Path, shell: Shell) -> None:
    """A restore is recorded as the user's change, so that the next step builds on it."""
    shell("echo 0 > f")
    agent("echo 1 > f")
    agent("echo 2 > f")
    agent.session.files.restore("@1", why="try again")
    restored = [e for e in agent.session.events(kind="file.changed") if e.header.actor == "user"]
    assert [(e.body["path"], e.body["before"], e.body["after"]) for e in restored] == [("f", "2\n", "1\n")]
    operation = agent.session.log.entry(agent.session.head.seq)
    assert (operation.kind, operation.body["why"]) == ("history.rewound", "try again")
    assert operation.body["files"] == agent.session.seq("@1")
    agent("echo 3 >> f")
    assert _does(agent.session.files.restore("@0", dry_run=True).plan) == {"f": "restore"}
    agent.session.files.restore("@0")
    assert (repo / "f").read_text() == "0\n"


def test_files_alone_leave_the_state_and_the_view_alone(agent: Agent, repo: Path) -> None:
    agent("echo 1 > f")
    agent.session.fact("known", 1)
    before, messages = agent.session.log.state_hash(), agent.session.messages()
    agent.session.files.restore("@0")
    assert not (repo / "f").exists()
    assert (agent.session.log.state_hash(), agent.session.messages()) == (before, messages)
    agent.session.fact("later", 2)
    agent.session.undo()
    assert (repo / "f").read_text() == "1\n"
    assert "later" in agent.session.state().facts, "what was done since stays in view"


def test_undoing_a_restore_leaves_what_the_agent_did_to_other_files_since(agent: Agent, repo: Path) -> None:
    agent("echo 1 > f")
    agent.session.files.restore("@0")
    agent("echo 2 > g")
    agent.session.undo()
    assert ((repo / "f").read_text(), (repo / "g").read_text()) == ("1\n", "2\n")


def test_a_point_is_what_the_next_change_found(agent: Agent, repo: Path, shell: Shell) -> None:
    """An edit by hand between the point and the next change is part of what is restored."""
    agent("echo 1 > f")
    shell("echo mine >> f")
    agent("echo 2 >> f")
    agent.session.files.restore("@1")
    assert (repo / "f").read_text() == "1\nmine\n"


# Conflicts


def test_what_somebody_edited_since_is_kept(agent: Agent, repo: Path, shell: Shell) -> None:
    shell("echo 0 > f; echo 0 > g; echo 0 > h; echo 0 > i")
    agent("echo 1 > f; echo 1 > g; rm h; echo 1 > i; echo 1 > made")
    shell("echo mine > f; rm g; echo mine > h; chmod +x i; echo more >> made")
    before = tree(repo)
    report = agent.session.files.restore("@0")
    assert set(_does(report.plan).values()) == {"conflict"}
    assert tree(repo) == before
    assert report.is_partial
    assert report.operation == 0, "nothing was done, and nothing is recorded"
    assert "you edited it after @1" in _why(agent, "@0", "f")
    assert "you deleted it after @1" in _why(agent, "@0", "g")
    assert "you created it again after @1" in _why(agent, "@0", "h")


def test_an_edit_between_two_turns_is_not_lost_either(agent: Agent, repo: Path, shell: Shell) -> None:
    shell("echo 0 > f")
    agent("echo 1 >> f")
    shell("echo mine >> f")
    agent("echo 2 >> f")
    assert _why(agent, "@0", "f") == "you edited it between @1 and @2"
    agent.session.files.restore("@0")
    assert (repo / "f").read_text() == "0\n1\nmine\n2\n"


def test_force_replaces_and_keeps_a_copy(agent: Agent, repo: Path, shell: Shell) -> None:
    shell("echo 0 > f; mkdir d; echo 0 > d/g")
    agent("echo 1 > f; echo 1 > d/g; echo 1 > new")
    shell("echo mine > f; echo mine > d/g; echo mine > new")
    report = agent.session.files.restore("@0", force=True)
    assert not report.is_partial
    assert tree(repo) == {"f": ("file", b"0\n", 0o644), "d/g": ("file", b"0\n", 0o644)}
    saved = {r.path: Path(r.saved).read_text() for r in report.results}
    assert saved == {"f": "mine\n", "d/g": "mine\n", "new": "mine\n"}
    assert all(r.saved.startswith(str(repo / ".wakelog/rescue/")) for r in report.results)
    agent.session.undo()
    assert (repo / "f").read_text() == "mine\n", "undo gives back what was really there"
    assert (repo / "new").read_text() == "mine\n"


def test_a_copy_never_replaces_another(agent: Agent, repo: Path, shell: Shell) -> None:
    agent("echo 1 > f")
    places = set()
    for text in ("one", "two", "three"):
        (repo / "f").write_text(text)
        [result] = agent.session.files.restore("@0", force=True).results
        assert Path(result.saved).read_text() == text
        places.add(result.saved)
    assert len(places) == 3


def test_what_changes_between_the_plan_and_the_write_is_kept(agent: Agent, repo: Path, shell: Shell) -> None:
    shell("echo 0 > f; echo 0 > g")
    agent("echo 1 > f; echo 1 > g; echo 1 > h")
    plan = plan_restore(agent.session.log, 1, folder=str(repo))
    shell("echo mine > f; echo mine > h")
    report = restore(agent.session.log, plan)
    assert {r.path: r.did for r in report.results} == {"f": "kept", "g": "restored", "h": "kept"}
    assert (repo / "f").read_text() == (repo / "h").read_text() == "mine\n"
    assert report.is_partial


def test_what_comes_into_being_meanwhile_is_not_replaced(
    agent: Agent, repo: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the last look and the write: the file is put there only if nothing is."""
    shell("echo 0 > f")
    agent("rm f")
    real = os.link

    def late(*args: Any, **kwargs: Any) -> None:
        (repo / "f").write_text("mine")
        real(*args, **kwargs)

    monkeypatch.setattr(os, "link", late)
    report = agent.session.files.restore("@0")
    assert [r.did for r in report.results] == ["kept"]
    assert (repo / "f").read_text() == "mine"
    assert [p.name for p in repo.iterdir() if p.name.startswith(".wakelog-part")] == []


def test_two_restores_at_once_are_refused(agent: Agent, repo: Path) -> None:
    agent("echo 1 > f")
    with OpenRoot(str(repo)) as held, held.locked(), pytest.raises(ConflictError) as caught:
        agent.session.files.restore("@0")
    assert caught.value.kind == "restore-under-way"


# Unknown


def test_what_was_not_captured_is_named_with_the_reason(session: Session[Any], repo: Path, shell: Shell) -> None:
    shell("head -c 3000 /dev/zero > large; echo 'x.log' > .gitignore; echo 1 > x.log")
    capture = session.files.capture(repo, folder=repo, max_file_bytes=1000)
    picture = capture.before()
    shell("echo 1 > large; echo 2 > x.log; printf x > \"$(printf 'bad\\377')\"")
    session.append(ev.ActionRecorded(action="a1", tool="shell", input={"command": "make  all"}))
    record_changes(session.log, capture, picture, action="a1")
    session.append(ev.FileChanged(path="only-named"), ev.FileChanged(path="made-up", change="created"))
    plan = session.files.restore(1, dry_run=True).plan
    told = {s.path: (s.do, s.why) for s in plan.steps}
    assert told["large"] == ("unknown", "too large, 0.0 MB")
    assert told["x.log"] == ("ignored", "ignored by git, content not captured")
    assert told["only-named"] == ("unknown", "content not captured")
    assert told["bad\\xff"][0] in ("unknown", "conflict", "already")
    assert told["made-up"] == ("already", "it is already restored")
    assert {s.by for s in plan.steps if s.path == "large"} == {"shell `make all`"}
    before = tree(repo)
    assert session.files.restore(1).is_partial
    assert tree(repo) == before


def test_calls_that_nobody_watched_are_named(session: Session[Any], repo: Path) -> None:
    """A session that edited only through an uncaptured shell never looks as if nothing had changed."""
    start = session.head.seq
    session.append(ev.ActionRecorded(action="a", tool="Bash", effect="external", input={"command": "sed -i s/a/b/ f"}))
    session.append(ev.ActionRecorded(action="b", tool="look", effect="read"))
    plan = session.files.restore(start, dry_run=True).plan
    assert [plan.commands[c.action] for c in plan.unseen] == ["Bash `sed -i s/a/b/ f`"]
    assert plan.is_partial


def test_a_captured_call_that_changed_nothing_is_not_unknown(agent: Agent, repo: Path) -> None:
    agent("true")
    plan = agent.session.files.restore("@0", dry_run=True).plan
    assert (plan.steps, plan.unseen, plan.is_partial) == ((), (), False)


BEGUN = (
    ev.ActionRequested(action="a", tool="shell", input={"command": "x"}, policy={"captures": True}),
    EventDraft(ev.ActionStarted(action="a"), actor="runtime"),
)
CUT = (*BEGUN, EventDraft(ev.ActionUncertain(action="a"), actor="runtime"))
FAILED = ev.ActionFailed(action="a", error=ev.Failure("x", "x"), retry=True)


@pytest.mark.parametrize(
    "story",
    [
        BEGUN,
        CUT,
        (*CUT, EventDraft(ev.ActionReconciled(action="a", outcome="succeeded"), actor="user")),
        (*CUT, EventDraft(ev.ActionAbandoned(action="a"), actor="user")),
        (*CUT, EventDraft(ev.ActionEvidence(action="a", outcome="succeeded"), actor="tool")),
        (*CUT, EventDraft(ev.ActionSucceeded(action="a"), actor="tool")),
        (*CUT, EventDraft(FAILED, actor="runtime"), BEGUN[1], EventDraft(ev.ActionSucceeded(action="a"), actor="tool")),
        (*BEGUN, EventDraft(FAILED, actor="tool"), ev.FileChanged(path="f", action="a"), BEGUN[1]),
        (*BEGUN, EventDraft(ev.ActionUncertain(action="a"), actor="tool"), ev.FileChanged(path="f", action="a")),
        (*BEGUN, EventDraft(ev.ActionTimedOut(action="a"), actor="tool")),
    ],
    ids=[
        "still at work",
        "cut off by a crash",
        "reconciled by a person",
        "given up by a person",
        "told of by a late worker",
        "ended late",
        "tried again after the crash",
        "cut off in its second try",
        "stopped",
        "timed out",
    ],
)
def test_a_watched_call_that_nobody_saw_end_is_named(session: Session[Any], story: tuple[Any, ...]) -> None:
    start = session.head.seq
    for event in story:
        session.append(event)
    plan = session.files.restore(start, dry_run=True).plan
    assert [c.action for c in plan.unseen] == ["a"]


@pytest.mark.parametrize(
    "end",
    [
        (EventDraft(ev.ActionSucceeded(action="a"), actor="tool"),),
        (EventDraft(FAILED, actor="tool"), BEGUN[1], EventDraft(ev.ActionSucceeded(action="a"), actor="tool")),
        (EventDraft(ev.ActionUncertain(action="a", error=ev.Failure("lost", "x")), actor="tool"),),
    ],
    ids=["succeeded", "failed and tried again", "returned with a doubt"],
)
def test_a_watched_call_that_was_seen_to_end_is_not_named(session: Session[Any], end: tuple[Any, ...]) -> None:
    start = session.head.seq
    for event in (*BEGUN, *end):
        session.append(event)
    assert session.files.restore(start, dry_run=True).plan.unseen == ()


def test_a_call_of_the_same_name_that_nobody_watched_is_named(session: Session[Any]) -> None:
    start = session.head.seq
    session.append(*BEGUN, EventDraft(ev.ActionSucceeded(action="a"), actor="tool"))
    session.append(ev.ActionRecorded(action="a", tool="Bash", effect="external"))
    assert [c.tool for c in session.files.restore(start, dry_run=True).plan.unseen] == ["Bash"]


def test_a_redacted_content_is_not_taken_for_the_file(agent: Agent, repo: Path, shell: Shell) -> None:
    shell(f"echo 'token = {TOKEN}' > conf; echo plain > other")
    agent("echo plain > conf; echo more >> other")
    [conf] = [e for e in agent.session.events(kind="file.changed") if e.body["path"] == "conf"]
    assert TOKEN not in str(conf.body)
    assert "before_hash" not in conf.body, "nothing is left to try out guesses against"
    report = agent.session.files.restore("@0")
    assert {r.path: (r.did, r.why) for r in report.results} == {"conf": ("kept", "redacted"), "other": ("restored", "")}
    assert (repo / "conf").read_text() == "plain\n"
    assert report.is_partial


def test_a_file_that_holds_a_secret_now_is_copied_aside(agent: Agent, repo: Path, shell: Shell) -> None:
    shell("echo plain > conf")
    agent(f"echo 'token = {TOKEN}' > conf")
    report = agent.session.files.restore("@0")
    assert not report.is_partial
    [result] = report.results
    assert (repo / "conf").read_text() == "plain\n"
    assert TOKEN in Path(result.saved).read_text()
    undone = agent.session.undo()
    assert undone.files is not None
    assert "a copy is kept in .wakelog/rescue/" in undone.files.results[0].why
    stored = agent.session.log.engine.read(agent.session.id, payloads=True)
    assert TOKEN not in str([(c.records, c.payloads) for c in stored])
    if (file := repo / ".wakelog/log.db").exists():
        assert TOKEN not in file.read_bytes().decode("latin-1")


def test_an_edit_of_a_file_with_a_secret_is_seen(agent: Agent, repo: Path, shell: Shell) -> None:
    shell("echo plain > conf")
    agent(f"echo 'token = {TOKEN}' > conf")
    shell("echo mine >> conf")
    assert _does(agent.session.files.restore("@0", dry_run=True).plan) == {"conf": "conflict"}


def test_an_erased_content_is_gone(agent: Agent, repo: Path, shell: Shell) -> None:
    shell("echo 0 > f; echo 0 > g")
    agent("echo 1 > f; echo 1 > g")
    [f, _] = agent.session.events(kind="file.changed")
    erase(agent.session.log, [f.seq], why="asked to")
    plan = agent.session.files.restore("@0", dry_run=True).plan
    assert {s.path: (s.do, s.why) for s in plan.steps} == {"f": ("unknown", "erased"), "g": ("restore", "")}


def test_what_an_erased_change_left_cannot_be_told_from_an_edit(agent: Agent, repo: Path, shell: Shell) -> None:
    shell("echo 0 > f")
    agent("echo 1 > f")
    agent("echo 2 > f")
    [_, last] = agent.session.events(kind="file.changed")
    erase(agent.session.log, [last.seq], why="asked to")
    [step] = agent.session.files.restore("@0", dry_run=True).plan.steps
    assert (step.do, "is unknown" in step.why) == ("conflict", True)


def test_a_closed_session_is_told_to_be_reopened_before_anything_is_touched(agent: Agent, repo: Path) -> None:
    agent("echo 1 > f")
    agent.session.life.end()
    with pytest.raises(NotAllowedError) as caught:
        agent.session.files.restore("@0")
    assert "reopen" in caught.value.hint
    assert (repo / "f").exists()


# Hostile logs


@pytest.mark.parametrize(
    "path",
    [
        "../outside",
        "d/../../outside",
        "/etc/hostname-of-nobody",
        "./x",
        "a//b",
        "",
        "a\0b",
        ".git/hooks/post-commit",
        "d/.GIT/config",
        ".git\u200c/config",
        ".wakelog/log.db",
        "GIT~1/config",
        "d/",
        "[redacted:github-token]/x",
    ],
)
def test_a_recorded_path_leads_nowhere_else(session: Session[Any], repo: Path, tmp_path: Path, path: str) -> None:
    """Undoing a deletion creates the file again; that must not work for any of these paths."""
    assert isinstance(locate(path, str(repo), [str(repo)]), str)
    if path and "\0" not in path:
        outside = tree(tmp_path)
        git = git_state(repo)
        session.append(ev.FileChanged(path=path, change="deleted", before="evil"))
        report = session.files.restore(1)
        assert [r.did for r in report.results] == ["kept"]
        assert tree(tmp_path) == outside
        assert git_state(repo) == git


def test_a_link_planted_in_the_way_is_not_followed(session: Session[Any], repo: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("theirs")
    session.append(
        ev.FileChanged(path="d/f", before="evil", after="theirs"),
        ev.FileChanged(path="d/new", change="deleted", before="evil"),
        ev.FileChanged(path="f", before="evil", after="theirs"),
    )
    (repo / "d").symlink_to(outside)
    (repo / "f").symlink_to(outside / "f")
    report = session.files.restore(1, force=True)
    assert {p.name: p.read_text() for p in outside.iterdir()} == {"f": "theirs"}
    assert [r.did for r in report.results if r.path != "f"] == ["kept", "kept"]
    assert not (repo / "f").is_symlink(), "a link itself may be replaced; what it points to is not"


def test_a_folder_swapped_for_a_link_at_the_last_moment_is_not_followed(
    agent: Agent, repo: Path, shell: Shell, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    shell("mkdir d; echo 0 > d/f")
    agent("echo 1 > d/f")
    plan = plan_restore(agent.session.log, 1, folder=str(repo))
    shell(f"cp d/f {outside}/f; rm -r d; ln -s {outside} d")
    report = restore(agent.session.log, plan)
    assert [(r.did, r.why) for r in report.results] == [("kept", "a folder in its path is a symbolic link")]
    assert (outside / "f").read_text() == "1\n"


@pytest.mark.parametrize("target", ["/etc/passwd", "../../x", "d/../../x"])
def test_no_link_is_made_that_points_outside(session: Session[Any], repo: Path, target: str) -> None:
    session.append(ev.FileChanged(path="l", change="deleted", before=target, before_mode="120777"))
    [result] = session.files.restore(1).results
    assert (result.did, result.why) == ("kept", "it was a symbolic link that points outside")
    assert not os.path.lexists(repo / "l")


def test_recorded_permissions_grant_no_more_than_a_file_may_have(session: Session[Any], repo: Path) -> None:
    session.append(ev.FileChanged(path="x", change="deleted", before="#!/bin/sh\n", before_mode="104777"))
    session.append(ev.FileChanged(path="y", change="deleted", before="y", before_mode="nonsense"))
    assert not session.files.restore(1).is_partial
    assert (repo / "x").stat().st_mode & 0o7777 == 0o777
    assert (repo / "y").stat().st_mode & 0o7000 == 0


def test_a_content_that_is_not_what_its_hash_says_is_not_restored(session: Session[Any], repo: Path) -> None:
    session.append(ev.FileChanged(path="x", change="deleted", before="other", before_hash="0" * 64))
    [result] = session.files.restore(1).results
    assert (result.did, result.why) == ("kept", "redacted")


# Where


def test_one_stands_anywhere_in_the_project(agent: Agent, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent("mkdir -p a/b; echo 1 > a/b/f")
    agent.session._runtime.capture = None
    monkeypatch.chdir(repo / "a/b")
    agent.session.files.restore("@0")
    assert not (repo / "a").exists()


def test_only_some_paths(agent: Agent, repo: Path) -> None:
    agent("mkdir d; echo 1 > d/f; echo 1 > d2; echo 1 > g")
    agent.session.files.restore("@0", paths=["d/"])
    assert set(tree(repo)) == {"d2", "g"}


def test_a_root_elsewhere_is_restored_when_it_is_named(session: Session[Any], repo: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "f").write_text("0")
    capture = session.files.capture(repo, other, folder=repo)
    picture = capture.before()
    (other / "f").write_text("1")
    record_changes(session.log, capture, picture)
    plan = plan_restore(session.log, 1, folder=str(repo))
    assert [s.do for s in plan.steps] == ["unknown"]
    assert "outside" in plan.steps[0].why
    session.files.restore(1)
    assert (other / "f").read_text() == "0"


def test_a_root_that_is_gone_is_made_again(session: Session[Any], repo: Path, shell: Shell) -> None:
    shell("mkdir -p src/deep; echo 0 > src/deep/f; echo 0 > one")
    capture = session.files.capture(repo / "src", repo / "one", folder=repo)
    picture = capture.before()
    shell("rm -r src one")
    record_changes(session.log, capture, picture)
    assert not session.files.restore(1).is_partial
    assert set(tree(repo)) == {"src/deep/f", "one"}


def test_a_fork_knows_only_its_own(agent: Agent, store: Store, repo: Path) -> None:
    """Later changes by the parent look like somebody else's edits to a fork, and are kept."""
    agent("echo 1 > f")
    fork = agent.session.fork(name="fork")
    agent("echo 2 > f")
    [step] = fork.files.restore("@0", dry_run=True).plan.steps
    assert step.do == "conflict"
    assert Capture([repo], folder=repo).before().seen


def test_undo_of_a_rewind_without_files_touches_none(agent: Agent, repo: Path) -> None:
    agent("echo 1 > f")
    agent.session.rewind(1)
    (repo / "f").write_text("mine")
    assert agent.session.undo().files is None
    assert (repo / "f").read_text() == "mine"


def test_undo_can_leave_files_as_they_are(agent: Agent, repo: Path) -> None:
    agent("echo 1 > f")
    agent.session.files.restore("@0", state=True)
    undone = agent.session.undo(files=False)
    assert undone.left_files
    assert not (repo / "f").exists()
    assert agent.session.state().files_modified["f"].change == "created"


def test_undo_keeps_what_was_edited_since(agent: Agent, repo: Path, shell: Shell) -> None:
    shell("echo 0 > f; echo 0 > g")
    agent("echo 1 > f; echo 1 > g")
    agent.session.files.restore("@0", state=True)
    shell("echo mine > f")
    undone = agent.session.undo()
    assert undone.files is not None
    assert undone.files.is_partial
    assert ((repo / "f").read_text(), (repo / "g").read_text()) == ("mine\n", "1\n")


def test_from_another_folder_files_come_back_where_they_were_captured(
    agent: Agent, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent("echo 1 > f")
    agent("echo 2 > f")
    agent.session._runtime.capture = None
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert agent.session.files.restore("@1").is_partial is False
    assert (repo / "f").read_text() == "1\n"
    assert list(elsewhere.iterdir()) == []


def test_where_the_folder_is_gone_it_is_named_and_nobody_is_said_to_have_deleted_anything(
    agent: Agent, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent("echo 1 > f")
    agent("echo 2 > f")
    agent.session._runtime.capture = None
    moved = tmp_path / "moved"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr("os.path.isdir", lambda path, real=os.path.isdir: real(path) and str(path) != str(repo))
    with pytest.raises(NotFoundError) as caught:
        agent.session.files.restore("@1")
    assert caught.value.kind == "folder-not-found"
    assert str(repo) in caught.value.message
    moved.mkdir()
    (moved / ".git").mkdir()
    (moved / "f").write_text("2\n")
    monkeypatch.chdir(moved)
    agent.session.files.restore("@1")
    assert (moved / "f").read_text() == "1\n"
