"""Sessions that ended without a word: deleted ones stay deleted, quiet ones are closed, calls that were given up are
told once, and so is what hooks told when the transcript is found."""

import os
from pathlib import Path
from typing import Any, Literal

import pytest

import wakelog
from tests.importers.claude import NAME, SESSION, START, Lines, bring_in, call, calls, events, live_store, seen, text
from wakelog.config.retention_policy import RetentionPolicy
from wakelog.importers.transcript_import import import_transcript
from wakelog.maintenance.retention import apply, plan
from wakelog.model import events as ev
from wakelog.store import Store

FILE = f"{SESSION}.jsonl"
DAY = 24 * 3_600_000_000


def short() -> Lines:
    lines = Lines()
    lines.prompt("Make it.")
    lines.reply("m1", call("t1", "Bash", command="make"))
    lines.result("t1", "made")
    lines.reply("m2", text("Done."))
    return lines


def clocked() -> tuple[Store, list[int]]:
    now = [START + 60_000_000]
    return wakelog.open("memory:", clock=lambda: now[0]), now


# Deleted


def test_a_deleted_session_stays_deleted_until_it_is_asked_for(tmp_path: Path) -> None:
    lines, store = short(), live_store()
    store.delete(bring_in(lines, tmp_path, store))
    lines.prompt("And on.")
    path = lines.write(tmp_path / FILE)
    report = import_transcript(store, path)
    assert report.deleted == (NAME,)
    assert report.sessions == ()
    assert not store.is_open(NAME)
    again = import_transcript(store, path, again=True)
    assert again.deleted == ()
    assert seen(store.resume(NAME)) == ["Make it.", "(asks for Bash)", "Done.", "And on."]
    lines.reply("m3", text("On."))
    assert import_transcript(store, lines.write(path)).new_records == 1  # once it is back, it is as any other


def test_a_session_that_was_deleted_twice_stays_deleted(tmp_path: Path) -> None:
    lines, store = short(), live_store()
    store.delete(bring_in(lines, tmp_path, store))
    import_transcript(store, tmp_path / FILE, again=True)
    store.delete(store.resume(NAME))
    assert import_transcript(store, tmp_path / FILE).deleted == (NAME,)


def test_a_fork_that_is_deleted_says_nothing_about_its_transcript(tmp_path: Path) -> None:
    lines, store = short(), live_store()
    session = bring_in(lines, tmp_path, store)
    store.delete(session.fork(name="try"))
    store.delete(session.fork(name="another"))
    lines.prompt("And on.")
    assert import_transcript(store, lines.write(tmp_path / FILE)).new_records == 1


def test_a_deleted_sub_agent_inside_a_transcript_stays_deleted(tmp_path: Path) -> None:
    lines, store = Lines(), live_store()
    lines.prompt("Look.")
    lines.reply("m1", call("t1", "Task", prompt="Deeper."))
    lines.prompt("Deeper.", parent=None, isSidechain=True)
    lines.reply("c1", text("Deep."), isSidechain=True)
    bring_in(lines, tmp_path, store)
    (child,) = [head.name for head in store.sessions() if head.name != NAME]
    store.delete(store.resume(child))
    lines.result("t1", "Deep.", parent=lines.lines[1]["uuid"])
    report = import_transcript(store, lines.write(tmp_path / FILE))
    assert report.deleted == (child,)
    assert [head.name for head in store.sessions()] == [NAME]


def test_what_was_deleted_is_remembered_by_every_kind_of_store(tmp_path: Path) -> None:
    path = short().write(tmp_path / FILE)
    for url in ("memory:", str(tmp_path / "store")):
        with wakelog.open(url) as store:
            import_transcript(store, path)
            store.delete(store.resume(NAME))
            assert import_transcript(store, path).deleted == (NAME,)
    with wakelog.open(tmp_path / "store") as store:
        assert import_transcript(store, path).deleted == (NAME,)


# Quiet


def test_a_session_without_a_new_record_for_long_is_closed_and_the_next_record_reopens_it(tmp_path: Path) -> None:
    store, now = clocked()
    lines = short()
    session = bring_in(lines, tmp_path, store)
    now[0] += 6 * DAY
    import_transcript(store, tmp_path / FILE)
    assert session.status == "active"
    now[0] += 2 * DAY
    import_transcript(store, tmp_path / FILE)
    assert session.status == "closed"
    events_then = session.head.seq
    import_transcript(store, tmp_path / FILE)
    assert session.head.seq == events_then
    lines.prompt("And on.")
    now[0] = START + DAY
    import_transcript(store, lines.write(tmp_path / FILE))
    assert session.status == "active"
    assert seen(session)[-1] == "And on."
    assert store.index.sessions()[0].last_at < START + 60_000_000  # when it was used, and not when it was imported


def test_going_back_in_a_session_that_was_closed_reopens_it(tmp_path: Path) -> None:
    store, now = clocked()
    lines = short()
    now[0] += 8 * DAY
    session = bring_in(lines, tmp_path, store)
    assert session.status == "closed"
    lines.prompt("Make another.", parent=None)
    now[0] = START + DAY
    path = lines.write(tmp_path / FILE)
    head = session.head.seq
    assert import_transcript(store, path, dry_run=True).sessions[0].turns == 1
    assert session.head.seq == head
    import_transcript(store, path)
    assert (session.status, seen(session)) == ("active", ["Make another."])


def test_a_dry_run_does_not_go_back(tmp_path: Path) -> None:
    lines, store = short(), live_store()
    session = bring_in(lines, tmp_path, store)
    lines.prompt("Make another.", parent=None)
    head = session.head.seq
    import_transcript(store, lines.write(tmp_path / FILE), dry_run=True)
    assert session.head.seq == head


def test_a_file_that_is_dated_centuries_ahead_is_imported_and_known_again(tmp_path: Path) -> None:
    store = live_store()
    path = short().write(tmp_path / FILE)
    os.utime(path, ns=(0, 10_413_792_000 * 1_000_000_000))
    assert import_transcript(store, path).new_records == 4
    assert import_transcript(store, path).new_records == 0


def test_how_long_is_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKELOG_IMPORT_IDLE", "2h")
    store, now = clocked()
    now[0] += 3 * 3_600_000_000
    assert bring_in(short(), tmp_path, store).status == "closed"
    monkeypatch.setenv("WAKELOG_IMPORT_IDLE", "forever")
    store, now = clocked()
    now[0] += 1000 * DAY
    assert bring_in(short(), tmp_path, store).status == "active"


def test_a_session_in_the_middle_of_a_call_is_closed_too(tmp_path: Path) -> None:
    store, now = clocked()
    lines = Lines()
    lines.prompt("Make it.")
    lines.reply("m1", call("t1", "Bash", command="make"))
    session = bring_in(lines, tmp_path, store)
    assert list(session.log.part("pending_actions")) == ["t1"]
    now[0] += 8 * DAY
    import_transcript(store, tmp_path / FILE)
    assert session.status == "closed"
    assert [e["outcome"] for e in events(session, "turn.ended")] == ["interrupted"]


def test_going_back_in_the_agent_has_the_time_of_the_agent(tmp_path: Path) -> None:
    store, now = clocked()
    lines = short()
    lines.prompt("No, test it.", parent=lines.lines[0]["uuid"])
    now[0] += 3 * DAY
    session = bring_in(lines, tmp_path, store)
    (rewound,) = session.events(kind="history.rewound")
    assert START < rewound.happened_at < START + 60_000_000
    assert store.index.sessions()[0].last_at < START + 60_000_000


def test_calls_outside_of_a_turn_do_not_run_for_ever(tmp_path: Path) -> None:
    store, now = clocked()
    lines = Lines()
    lines.reply("m1", call("t1", "Bash", command="make"))  # a file that begins after the prompt
    session = bring_in(lines, tmp_path, store)
    assert list(session.log.part("pending_actions")) == ["t1"]
    now[0] += 8 * DAY
    import_transcript(store, tmp_path / FILE)
    assert session.status == "closed"
    lines.reply("m2", call("t2", "Bash", command="make -B"))
    import_transcript(store, lines.write(tmp_path / FILE))
    assert session.status == "closed"
    assert list(session.log.part("pending_actions")) == []
    assert [(c["action"], c["outcome"]) for c in calls(session)] == [("t1", "interrupted"), ("t2", "interrupted")]
    before = session.head.seq
    import_transcript(store, tmp_path / FILE)
    assert session.head.seq == before


def test_retention_applies_to_a_left_session_also_when_its_file_is_gone(tmp_path: Path) -> None:
    store, now = clocked()
    session = bring_in(short(), tmp_path, store)
    store.session("work").append(ev.MessageAdded(role="user", content="Nobody imported this."))
    (tmp_path / FILE).unlink()
    now[0] += 30 * DAY
    assert session.status == "active"
    actions: tuple[Literal["archive", "delete"], ...] = ("archive", "delete")
    for action in actions:
        policy = RetentionPolicy(keep_us=20 * DAY, action=action)
        planned = plan(store, policy, now[0])
        assert {p.name: p.action for p in planned} == {NAME: action, "work": "skip"}
        if action == "archive":
            assert [a.problem for a in apply(store, planned)] == [""]
            assert session.status == "archived"
            now[0] += 30 * DAY


def test_a_decision_of_a_closed_session_can_be_accepted_and_it_stays_closed(tmp_path: Path) -> None:
    store, now = clocked()
    lines = Lines()
    lines.prompt("Uploads fail, find out why.")
    said = "Found it. I'll stream the body instead of buffering it, so that memory stays flat."
    lines.reply("m1", text(said), call("t1", "Edit", file_path="a.py", old_string="1", new_string="2"))
    lines.result("t1", "updated", {"filePath": "a.py", "oldString": "1", "newString": "2", "originalFile": "1"})
    lines.reply("m2", text("Done."))
    now[0] += 30 * DAY
    session = bring_in(lines, tmp_path, store)
    assert session.status == "closed"
    (decision,) = [item for item in session.insight().items if item.kind == "decision"]
    seq = session.accept(decision.id, kind="decision")
    assert session.log.entry(seq).kind == "decision.made"
    assert session.status == "closed"


# Given up


def test_an_answer_that_comes_after_its_call_was_given_up_is_told_once(tmp_path: Path) -> None:
    store, now = clocked()
    lines = Lines()
    lines.prompt("Make it.")
    lines.reply("m1", call("t1", "Bash", command="make"))
    lines.write(tmp_path / FILE)
    now[0] += 2 * DAY
    import_transcript(store, tmp_path / FILE)
    session = store.resume(NAME)
    assert [c["outcome"] for c in calls(session)] == ["interrupted"]
    lines.result("t1", "made")
    lines.reply("m2", text("Done."))
    import_transcript(store, lines.write(tmp_path / FILE))
    import_transcript(store, lines.write(tmp_path / FILE))
    assert [c["action"] for c in calls(session)] == ["t1"]
    assert [(e["action"], e["outcome"]) for e in events(session, "action.evidence")] == [("t1", "succeeded")]


def test_an_answer_after_a_pending_call_was_given_up_is_told_once(tmp_path: Path) -> None:
    store, now = clocked()
    lines = Lines()
    lines.prompt("Make it.")
    lines.reply("m1", call("t1", "Bash", command="make"))
    session = bring_in(lines, tmp_path, store)
    now[0] += 2 * DAY
    import_transcript(store, tmp_path / FILE)
    lines.result("t1", "made")
    import_transcript(store, lines.write(tmp_path / FILE))
    assert [c["action"] for c in calls(session)] == ["t1"]
    assert len(events(session, "action.evidence")) == 1


def test_a_call_that_was_given_up_is_not_asked_for_again_when_the_file_goes_on(tmp_path: Path) -> None:
    store, now = clocked()
    lines = Lines()
    lines.prompt("Make it.")
    lines.reply("m1", call("t1", "Bash", command="make"))
    lines.write(tmp_path / FILE)
    now[0] += 2 * DAY
    import_transcript(store, tmp_path / FILE)
    now[0] = START + 10_000_000
    lines.reply("m2", call("t2", "Bash", command="make -B"))
    import_transcript(store, lines.write(tmp_path / FILE))
    session = store.resume(NAME)
    assert [c["action"] for c in calls(session)] == ["t1", "t2"]
    assert list(session.log.part("pending_actions")) == ["t2"]


# Hooks first


def told_by_hooks(store: Store) -> Any:
    """What intake makes where there is no transcript."""
    labels = {"agent": "claude-code", "origin": SESSION, "capture": "hooks"}
    session = store.session(NAME, agent="claude-code", labels=labels, limits={}, folder="")
    session.append(
        ev.TurnStarted(input="Make it."),
        ev.MessageAdded(role="user", content="Make it."),
        ev.ActionRecorded(action="t1", tool="Bash", input={"command": "make"}, output="made"),
        ev.ActionRecorded(action="t0", tool="Bash", input={"command": "ls"}, output="a"),
        ev.MessageAdded(role="assistant", content="Done."),
        ev.TurnEnded(),
    )
    return session


@pytest.mark.parametrize("is_closed", [False, True])
def test_what_hooks_told_stands_once_in_view_when_the_transcript_is_found(tmp_path: Path, is_closed: bool) -> None:
    store = live_store()
    session = told_by_hooks(store)
    if is_closed:
        session.life.end()
    lines = short()
    path = lines.write(tmp_path / FILE)
    import_transcript(store, path)
    lines.prompt("And on.")
    import_transcript(store, lines.write(path))
    session = store.resume(NAME)
    assert seen(session) == ["Make it.", "(asks for Bash)", "Done.", "And on."]
    in_view = [
        entry.body["action"]
        for first, last in session.log.view()
        for entry in session.log.entries(after=first - 1, upto=last)
        if entry.kind == "action.recorded" and entry.body.get("effect") != "model"
    ]
    assert in_view == ["t1"]
    assert "capture" not in session.log.part("labels")
    (note,) = events(session, "note.added")
    assert "Bash" in note["text"]
    assert "t1" not in note["text"]
