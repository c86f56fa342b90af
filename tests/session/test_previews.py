"""Verbs that show what would happen, or what was there: previews, plans, the window at a point."""

from pathlib import Path

import pytest

import wakelog
from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError, NotFoundError
from wakelog.model import events as ev
from wakelog.model.events import Cost
from wakelog.store import Store


@pytest.fixture
def store() -> Store:
    return wakelog.open("memory:")


def test_preview_of_a_rewind_tells_what_the_rewind_does(store: Store) -> None:
    session = store.session("s")
    session.fact("a", 1)
    session.fact("b", 2)
    head = session.head.seq
    preview = session.history.preview_rewind("e2")
    assert session.head.seq == head
    assert (preview.to, preview.head) == (2, head)
    assert [(part.part, part.now, part.then) for part in preview.parts] == [("facts", 2, 1)]
    session.rewind("e2")
    assert len(session.state().facts) == 1


def test_preview_of_a_rewind_counts_the_messages_that_there_are(store: Store) -> None:
    session = store.session("imported")
    for words in ("one", "two"):
        session.append(ev.TurnStarted(input=words))
        session.append(ev.ActionRecorded(action=words, tool="model", effect="model", output=f"done {words}"))
        session.append(ev.TurnEnded())
    preview = session.history.preview_rewind("@1")
    assert preview.messages_now == len(session.messages()) == 4
    assert preview.messages_then == len(session.messages("@1")) == 2


def test_preview_of_a_rewind_is_refused_where_the_rewind_is(store: Store) -> None:
    session = store.session("s")
    session.life.end()
    with pytest.raises(NotAllowedError):
        session.history.preview_rewind(1)


def test_preview_of_an_adoption_writes_nothing_and_refuses_as_it_does(store: Store) -> None:
    session = store.session("s")
    fork = session.fork(name="f")
    fork.fact("found", 1)
    head = session.head.seq
    assert session.history.preview_adopt(fork).copied == {"fact.recorded": 1}
    assert session.head.seq == head
    session.fact("meanwhile", 1)
    with pytest.raises(ConflictError):
        session.history.preview_adopt(fork)
    assert session.history.preview_adopt(fork, force=True).to == head


def test_undo_tells_what_it_took_back(store: Store) -> None:
    session = store.session("s")
    session.fact("a", 1)
    session.rewind(1)
    session.fact("later", 1)
    undone = session.undo()
    assert (undone.mode, undone.went_to, undone.operation, undone.left_view) == ("rewind", 1, 3, 1)
    assert set(session.state().facts) == {"a"}


def test_one_place_compares_the_attempts_of_its_turn(store: Store) -> None:
    session = store.session("s")
    for word in ("one", "two"):
        with session.turn(user="go", retry=word == "two"):
            session.decide(word)
    assert [course.name for course in session.history.compare("@1").courses] == ["s@1.1", "s@1.2"]
    other = store.session("other")
    with other.turn(user="go"):
        other.decide("three")
    found = session.history.compare((session, "@1.2"), (other, "@1"))
    assert [course.name for course in found.courses] == ["s@1.2", "other@1"]
    with pytest.raises(InvalidInputError, match="two sides"):
        other.history.compare("@1")


def test_window_at_a_turn_is_what_its_model_call_saw(store: Store) -> None:
    session = store.session("s")
    with session.turn(user="first question"):
        session.model(lambda **given: "an answer", model="m", context=session.context.window())
    with session.turn(user="second question"):
        pass
    seen = session.context.seen("@1", moved=True)
    assert seen.seen.call
    assert [item.text for item in seen.seen.items] == ["first question"]
    assert seen.moved is not None
    assert [item.text for item in seen.moved.entered] == ["first question"]
    now = session.context.seen()
    assert not now.seen.call
    assert now.seen.items[-1].text == "second question"


def test_events_newest_first_are_the_same_events(store: Store) -> None:
    session = store.session("s")
    session.append(*(wakelog.events.NoteAdded(text=str(n)) for n in range(1200)))
    forward = [entry.seq for entry in session.events(after=3, upto=1100)]
    assert [entry.seq for entry in session.events(after=3, upto=1100, newest_first=True)] == forward[::-1]
    assert next(session.events(newest_first=True)).seq == session.head.seq


def test_commit_holds_what_was_stored_together(store: Store) -> None:
    session = store.session("s")
    session.append(wakelog.events.NoteAdded(text="a"), wakelog.events.NoteAdded(text="b"))
    assert (session.history.commit(3).first, session.history.commit(3).last) == (2, 3)
    with pytest.raises(NotFoundError):
        session.history.commit(9)


def test_plan_is_carried_out_as_it_was_made(store: Store, tmp_path: Path) -> None:
    session = store.session("s")
    file = tmp_path / "a.txt"
    file.write_text("one\n", encoding="utf-8")
    session.files.capture(folder=tmp_path)

    @session.tool(effect="write")
    def edit(text: str) -> None:
        file.write_text(text, encoding="utf-8")

    with session.turn(user="go"):
        edit("two\n")
    plan = session.files.plan(1)
    assert file.read_text(encoding="utf-8") == "two\n"
    [diff] = session.files.plan_diff(plan)
    assert (diff.path, diff.added, diff.removed) == ("a.txt", 1, 1)
    changed = next(session.events(kind="file.changed"))
    assert session.files.change(changed) is not None
    assert session.files.change(session.log.entry(1)) is None
    assert session.files.restore(plan).plan is plan
    assert file.read_text(encoding="utf-8") == "one\n"


def test_taking_back_a_fact_that_is_not_there_names_those_that_are(store: Store) -> None:
    session = store.session("s")
    session.fact("port", 80)
    head = session.head.seq
    with pytest.raises(NotFoundError, match="port") as caught:
        session.retract("prot")
    assert caught.value.kind == "fact-not-found"
    assert session.head.seq == head
    session.retract("port")
    with pytest.raises(NotFoundError, match="none"):
        session.retract("port")


def test_removing_a_checkpoint_that_is_not_there_names_those_that_are(store: Store) -> None:
    session = store.session("s")
    session.checkpoint("before-fix")
    with pytest.raises(NotFoundError, match="before-fix") as caught:
        session.checkpoint("before", remove=True)
    assert caught.value.kind == "checkpoint-not-found"
    session.checkpoint("before-fix", remove=True)
    assert session.state().checkpoints == {}


def test_fact_is_taken_back_once_in_a_turn_that_is_done(store: Store) -> None:
    session = store.session("s")
    session.fact("k", 1)
    for _ in range(2):
        with session.turn(id="once"):
            session.retract("k")
    assert session.state().facts == {}


def test_diff_leaves_out_what_cost_nothing(store: Store) -> None:
    session = store.session("s")

    @session.tool(effect="pure", cost=lambda result: Cost(tokens_out=0))
    def look() -> int:
        return 1

    with session.turn(user="go"):
        look()
    assert [change.pointer for change in session.diff("@1").of("budget") if not change.after] == []
