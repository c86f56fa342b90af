"""What each verb records, and how it is read back."""

import threading

import pytest

import wakelog
from wakelog import ConflictError, ModelMessage, NotAllowedError, NotFoundError, UserMessage, events
from wakelog.store import Store


def test_messages_are_read_from_the_log_and_not_kept_in_the_state(store: Store) -> None:
    session = store.session("s")
    long = "x" * 5000
    session.append(UserMessage("What is 6 x 7?"), ModelMessage(long))
    assert [m.role for m in session.messages()] == ["user", "assistant"]
    assert session.messages()[-1].text == long
    assert long not in str(session.log.state())


def test_each_verb_leaves_its_trace_in_the_state(store: Store) -> None:
    session = store.session("s", goal="g", labels={"team": "a"}, limits={"tokens": 10})
    session.fact("k", {"deep": [1]}, why="seen", source="web:x", trust="untrusted")
    decision = session.decide("a", because="b", alternatives=["c"], assumptions=["d"], evidence=[1, "e"])
    session.dead_end("tried", learned="that")
    session.artefact("report", uri="file:r.md")
    session.files.record("src/a.py", "created", added=3)
    session.context.touch("postgres")
    session.set_goal("h")
    session.label({"team": None, "prod": "yes"})
    session.budget.set(tokens=20)
    session.checkpoint("here")
    state = session.state()
    assert state.facts["k"].value == {"deep": [1]}
    assert state.facts["k"].trust == "untrusted"
    assert "web:x" in state.trust
    assert state.decisions_made[str(decision)].alternatives == ("c",)
    assert next(iter(state.dead_ends.values()))["learned"] == "that"
    assert state.artefacts["report"]["uri"] == "file:r.md"
    assert state.files_modified["src/a.py"].change == "created"
    assert set(state.working_set.data_sources) == {"postgres"}
    assert state.goal == "h"
    assert state.labels == {"prod": "yes"}
    assert state.budget.limits == {"tokens": 20}
    assert state.checkpoints["here"] == session.head.seq - 1
    session.retract("k")
    assert not session.state().facts


def test_decisions_are_told_as_sentences_with_their_reason(store: Store) -> None:
    session = store.session("s")
    with session.turn(user="go"):
        session.decide("redis", because="it is there", alternatives=["postgres", "a file"])
    assert session.diff().decisions == ("chose redis instead of postgres, a file because it is there",)


def test_a_change_carries_event_tool_and_reason_and_says_how_the_reason_is_known(store: Store) -> None:
    session = store.session("s")
    with session.turn(user="go"):
        session.fact("before", 1)
        session.decide("edit it", because="the test says so")
        session.append(events.ActionRequested(action="e", tool="edit", effect="write"))
        session.fact("after", 2)
        session.fact("told", 3, why="I looked")
    changes = {c.pointer: c.writer for c in session.diff().changes if c.writer is not None}
    assert changes["/facts/told"].known == "recorded"
    assert changes["/facts/told"].why == "I looked"
    assert changes["/facts/after"].known == "derived"
    assert changes["/facts/after"].why == "the test says so"
    assert changes["/facts/before"].known == "unknown"
    assert changes["/pending_actions/e"].tool == "edit"


def test_a_diff_works_across_forks_and_across_sessions(store: Store) -> None:
    session = store.session("s")
    with session.turn(user="go"):
        session.fact("a", 1)
    fork = session.fork("@1", name="f")
    fork.fact("a", 2, why="other way")
    session.fact("b", 3)
    found = {c.pointer: (c.before, c.after) for c in session.diff(other=fork).of("facts")}
    assert found["/facts/a"][1]["value"] == 2
    assert found["/facts/b"][1] is None
    other = store.session("t")
    other.fact("z", 1)
    assert [c.pointer for c in session.diff(other=other).of("facts")] == ["/facts/a", "/facts/b", "/facts/z"]


def test_blame_names_the_last_writer_of_each_key(store: Store) -> None:
    session = store.session("s", data={"plan": {"a": 1, "b": 1}})
    session.patch([{"op": "replace", "path": "/data/plan/b", "value": 2}], why="better")
    found = {b.pointer: b.writer for b in session.history.blame("/data/plan") if b.writer is not None}
    assert found["/data/plan/a"].seq == 1
    assert found["/data/plan/b"].why == "better"


def test_slices_by_turn_attempt_kind_tool_and_time(store: Store) -> None:
    session = store.session("s")
    for n in (1, 2, 3):
        with session.turn(user=str(n)):
            call = events.ActionRecorded(action=f"a{n}", tool="grep" if n != 2 else "edit", effect="read")
            session.append(call)
    assert {e.header.turn for e in session.events(turn=2)} == {2}
    assert {e.header.turn for e in session.events(turn=(2, 3))} == {2, 3}
    assert len(list(session.events(kind="action"))) == 3
    assert len(list(session.events(kind=("turn.started", "turn.ended")))) == 6
    assert [e.header.turn for e in session.events(tool="edit")] == [2]
    middle = session.log.entry(session.seq("@2")).header.at
    assert all(e.header.at >= middle for e in session.events(since=middle))
    assert all(e.header.at <= middle for e in session.events(until=middle))


def test_the_tool_of_an_outcome_is_known_even_when_its_request_lies_before_the_slice(store: Store) -> None:
    session = store.session("s")
    session.append(events.ActionRequested(action="a", tool="mail"))
    after = session.head.seq
    session.append(events.ActionSucceeded(action="a"))
    assert [e.kind for e in session.events(after=after, tool="mail")] == ["action.succeeded"]


def test_nothing_new_takes_effect_while_paused_but_outcomes_are_accepted(store: Store) -> None:
    session = store.session("s")
    session.append(events.ActionRequested(action="a", tool="t"))
    session.life.pause(why="lunch")
    with pytest.raises(NotAllowedError, match="paused"):
        session.fact("k", 1)
    session.append(events.ActionSucceeded(action="a"))
    session.life.unpause()
    session.fact("k", 1)


def test_close_settles_what_is_open_and_reopen_brings_the_session_back(store: Store) -> None:
    session = store.session("s")
    session.append(
        events.TurnStarted(),
        events.ActionRequested(action="w", tool="mail"),
        events.ActionStarted(action="w"),
        events.ActionRequested(action="r", tool="grep", effect="read"),
    )
    session.life.end()
    assert {a: p.status for a, p in session.state().pending_actions.items()} == {"w": "uncertain"}
    with pytest.raises(NotAllowedError, match="closed"):
        session.fact("k", 1)
    session.life.archive()
    session.life.reopen()
    session.fact("k", 1)


def test_a_patch_on_a_state_that_moved_is_a_conflict(store: Store) -> None:
    session = store.session("s", data={"n": 1})
    seen = session.head.seq
    session.fact("x", 1)
    with pytest.raises(ConflictError):
        session.patch([{"op": "replace", "path": "/data/n", "value": 2}], expect=seen)
    assert session.data == {"n": 1}


def test_undo_leaves_an_agents_own_retries_alone(store: Store) -> None:
    session = store.session("s")
    with session.turn(user="go"):
        session.fact("n", 1)
    with session.turn(user="go", retry=True):
        session.fact("n", 2)
    with pytest.raises(NotFoundError, match="nothing to undo"):
        session.undo()


def test_a_verb_returns_its_own_event_although_a_redaction_was_noted_after_it(store: Store) -> None:
    session = store.session("s")
    seq = session.fact("token", "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8")
    assert session.log.entry(seq).kind == "fact.recorded"
    assert session.head.seq == seq + 1


def test_undo_walks_back_and_says_when_there_is_nothing_left(store: Store) -> None:
    session = store.session("s")
    for n in (1, 2, 3):
        session.fact("n", n)
    session.rewind(3)
    session.rewind(2)
    assert session.state().facts["n"].value == 1
    session.undo()
    assert session.state().facts["n"].value == 2
    session.undo()
    assert session.state().facts["n"].value == 3
    with pytest.raises(NotFoundError, match="nothing to undo"):
        session.undo()


def test_a_rewind_keeps_money_dead_ends_checkpoints_and_turn_numbers(store: Store) -> None:
    session = store.session("s")
    with session.turn(user="go"):
        session.append(events.BudgetSpent(cost=events.Cost(tokens_in=5, usd_micros=7)))
        session.dead_end("that way")
        session.fact("k", 1)
    session.checkpoint("cp")
    session.rewind(1)
    state = session.state()
    assert not state.facts
    assert state.budget.spent["usd_micros"] == 7
    assert state.dead_ends
    assert state.checkpoints
    with session.turn(user="again") as turn:
        assert turn.number == 2


def test_a_sub_agent_is_a_root_of_its_own_linked_both_ways(store: Store) -> None:
    parent = store.session("parent")
    child = store.spawn(parent, "child", task="look around")
    child.fact("seen", 1)
    parent.calls.returned(child.id, output="done", cost=events.Cost(tokens_out=3))
    assert child.log.entry(1).body["spawner"].startswith(parent.id)
    assert parent.state().subagents[child.id]["status"] == "completed"
    assert parent.state().budget.spent["tokens"] == 3
    assert "." not in child.id


def test_follow_sees_each_event_once_and_in_order(store: Store) -> None:
    session = store.session("s")
    seen: list[int] = []

    def watch() -> None:
        for entry in session.follow(after=0, timeout_s=60):
            seen.append(entry.seq)
            if len(seen) == 21:
                return

    thread = threading.Thread(target=watch)
    thread.start()
    for n in range(20):
        session.fact("n", n)
    thread.join(180)
    assert seen == list(range(1, 22))


def test_names_are_bound_once_and_prefixes_must_be_unambiguous(store: Store) -> None:
    session = store.session("s")
    fork = session.fork(name="f")
    with pytest.raises(ConflictError, match="taken"):
        session.fork(name="f")
    assert store.resume("f").id == fork.id
    assert store.resume(session.id[:12]).id == session.id
    with pytest.raises(NotFoundError):
        store.resume("s_ZZZZ")


def test_the_session_of_a_deleted_one_can_be_opened_anew_under_its_name(store: Store) -> None:
    old = store.session("s")
    store.delete(old)
    with pytest.raises(NotFoundError):
        store.resume(old.id)
    assert store.session("s").id != old.id


def test_a_session_shows_itself_readably(store: Store) -> None:
    assert repr(store.session("s")) == "<session s at event 1, turn @0, open>"
    assert wakelog.Session is type(store.session("s"))
