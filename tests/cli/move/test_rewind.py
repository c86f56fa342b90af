"""Rewinding from the command line: told first, asked, and taken back."""

import pytest

from tests.cli.conftest import Cli
from wakelog.diff.rewind_preview import preview_rewind
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.store import Store


def test_dry_run_writes_nothing(move: Cli, store: Store) -> None:
    before = store.resume("fix-bug").head
    assert move("rewind", "fix-bug@4", "--dry-run").code == 0
    assert store.resume("fix-bug").head == before


def test_without_a_terminal_it_needs_a_yes_and_writes_nothing(move: Cli, store: Store) -> None:
    before = store.resume("fix-bug").head
    result = move("rewind", "fix-bug@4")
    assert (result.code, store.resume("fix-bug").head) == (2, before)
    assert "--yes" in result.err


def test_undo_brings_back_the_state_that_was(move: Cli, store: Store) -> None:
    session = store.resume("fix-bug")
    was = session.state()
    move("rewind", "fix-bug@4", "--yes")
    assert session.state().facts != was.facts
    move("undo", "fix-bug")
    now = session.state()
    assert (now.facts, now.data, now.decisions_made, now.labels) == (
        was.facts,
        was.data,
        was.decisions_made,
        was.labels,
    )


def test_undo_says_what_leaves_the_view(move: Cli, store: Store) -> None:
    move("rewind", "fix-bug@4", "--yes")
    session = store.resume("fix-bug")
    session.fact("new", 1)
    session.append(
        ev.ActionRequested(action="m", tool="send_email"), ev.ActionStarted(action="m"), ev.ActionSucceeded(action="m")
    )
    data = move("undo", "fix-bug", "--json").data
    assert data["left_view"] == 4
    assert [e["tool"] for e in data["effects"]] == ["send_email"]
    assert "new" not in store.resume("fix-bug").state().facts
    assert move(*data["back"].split()[1:], "--yes").code == 0
    assert "new" in store.resume("fix-bug").state().facts


def test_preview_counts_what_the_rewind_then_does(move: Cli, store: Store) -> None:
    session = store.resume("fix-bug")
    preview = preview_rewind(session.log, session.seq("@4"))
    session.rewind("@4")
    state = session.state()
    parts = {p.part: p.then for p in preview.parts}
    assert (parts["facts"], parts["decisions"], parts["files"]) == (
        len(state.facts),
        len(state.decisions_made),
        len(state.files_modified),
    )
    assert preview.messages_then == len(session.messages())


def test_preview_lists_only_effects_that_may_have_happened(store: Store) -> None:
    session = store.session("effects")
    session.append(ev.TurnStarted())
    start = session.head.seq
    calls = {"denied": True, "asked": True, "ran": False, "looked": False, "gone": False}
    for tool, approval in calls.items():
        effect: ev.Effect = "read" if tool == "looked" else "external"
        session.append(ev.ActionRequested(action=tool, tool=tool, effect=effect, approval=approval))
        if not approval:
            session.append(ev.ActionStarted(action=tool))
    session.append(ev.ActionDenied(action="denied"), ev.ActionSucceeded(action="ran"))
    session.append(
        EventDraft(ev.ActionUncertain(action="gone")),
        EventDraft(ev.ActionReconciled(action="gone", outcome="never_ran")),
    )
    session.append(ev.ActionRecorded(action="r", tool="imported", effect="write"))
    effects = preview_rewind(session.log, start).effects
    assert [(e.tool, e.outcome) for e in effects] == [("ran", "succeeded"), ("imported", "succeeded")]


def test_hostile_names_are_inert_in_the_preview(move: Cli, store: Store) -> None:
    session = store.session("x\x1b[31mred")
    session.fact("a", 1)
    session.files.record("evil\x1b]0;t\x07.py", added=1)
    session.append(ev.ActionRecorded(action="r", tool="\u202etool", effect="external"))
    for args in (
        ("rewind", f"{session.name}@0", "--dry-run"),
        ("resume", session.name),
        ("delete", session.name, "--dry-run"),
    ):
        result = move(*args)
        assert result.code == 0, result.err
        assert not any(c in result.out for c in "\x1b\x07\u202e")


def test_a_session_being_written_says_so(move: Cli, store: Store) -> None:
    store.resume("fix-bug").life.take_lease("worker-1")
    assert "worker-1 is writing" in move("rewind", "fix-bug@4", "--dry-run").out


@pytest.mark.parametrize("selector", ["fix-bug@77", "no-such@1", "-s fix-bug e9999", "-s fix-bug cp:none"])
def test_what_is_not_there_is_exit_3(move: Cli, selector: str) -> None:
    result = move("rewind", *selector.split(), "--json")
    assert result.code == 3
    assert result.error["kind"].endswith("not-found")
