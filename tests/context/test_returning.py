"""Out of the window and back: by key, by event, by range; and what cannot come back says why."""

from typing import Any

import pytest

from tests.context.conftest import call, work
from tests.context.validity import check
from wakelog.context.window import read_window
from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError
from wakelog.log.removal import erase, prune
from wakelog.model import events as ev
from wakelog.session import Session


def _said(session: Session[Any]) -> list[tuple[str, str]]:
    return [(i.key, i.text) for i in read_window(session.log).items]


def test_evicted_keys_hold_handles_and_sizes(session: Session[Any]) -> None:
    [seq] = work(session, 1)
    left = session.context.evict(f"e{seq}:output")
    assert (left.handle, left.what) == (seq, "output")
    listed = session.state().evicted_keys
    assert listed == {f"e{seq}:output": {"handle": seq, "tokens": left.tokens, "seq": session.head.seq}}
    assert left.tokens > 100


@pytest.mark.parametrize("by", ["key", "request", "outcome"])
def test_an_item_is_evicted_by_its_key_or_any_event_in_it(session: Session[Any], by: str) -> None:
    [seq] = work(session, 1)
    before = _said(session)
    names: dict[str, Any] = {"key": f"e{seq}", "request": seq, "outcome": seq + 1}
    session.context.evict(names[by])
    assert _said(session) == [each for each in before if each[0] != f"e{seq}"]
    check(session.context.window())
    back = session.context.restore(f"e{seq}")
    assert [i.key for i in back.items] == [f"e{seq}"]
    assert back.gone == ()
    assert _said(session) == before
    assert session.state().evicted_keys == {}


def test_evicting_what_has_left_writes_nothing(session: Session[Any]) -> None:
    [seq] = work(session, 1)
    first = session.context.evict(seq)
    head = session.head.seq
    assert session.context.evict(seq) == first
    assert session.context.evict(f"e{seq}:output") == first, "its output left with it"
    assert session.head.seq == head


def test_neighbours_are_listed_as_one_range_and_one_of_them_can_come_back(session: Session[Any]) -> None:
    work(session, 5)
    before = _said(session)
    session.context.evict("e3..e20")
    [key] = session.state().evicted_keys
    assert key.startswith("e3..e")
    inside = [each for each in before if int(each[0][1:]) <= 20]
    middle = inside[len(inside) // 2]
    session.context.restore(middle[0])
    assert _said(session) == [each for each in before if each == middle or each not in inside]
    assert len(session.state().evicted_keys) == 2
    check(session.context.window())
    for left in list(session.state().evicted_keys):
        session.context.restore(left)
    assert _said(session) == before


def test_calls_under_way_together_leave_one_by_one(session: Session[Any]) -> None:
    first = session.log.record(ev.ActionRequested(action="a", tool="x", input={"n": 1}))
    second = session.log.record(ev.ActionRequested(action="b", tool="y", input={"n": 2}))
    session.append(ev.ActionSucceeded(action="b", output="B" * 200), ev.ActionSucceeded(action="a", output="A" * 200))
    session.context.evict(f"e{second}:output")
    before = _said(session)
    session.context.evict(first)
    assert _said(session) == [each for each in before if each[0] == f"e{second}"]
    session.context.restore(first)
    assert _said(session) == before


def test_what_is_restored_is_pinned_until_the_turn_is_over(session: Session[Any]) -> None:
    calls = work(session, 6)
    session.context.window(300)
    with session.turn("what was the first answer?"):
        restored = session.context.restore(f"e{calls[0]}")
        assert restored.items[0].answer.startswith("answer 1")
        assert "answer 1 xxx" in str(list(session.context.window(360)))
    with session.turn("thanks"):
        assert "answer 1 xxx" not in str(list(session.context.window(240)))


def test_a_whole_call_comes_back_with_its_output(session: Session[Any]) -> None:
    [seq] = work(session, 1)
    before = _said(session)
    session.context.evict(f"e{seq}:output")
    session.context.evict(seq)
    session.context.restore(seq)
    assert _said(session) == before


def test_an_output_alone_comes_back(session: Session[Any]) -> None:
    [seq] = work(session, 1)
    before = _said(session)
    session.context.evict(f"e{seq}:output")
    assert session.context.restore(f"e{seq}:output").items[0].answer.startswith("answer 1")
    assert _said(session) == before


def test_keys_that_others_recorded_work_by_their_handle(session: Session[Any]) -> None:
    [seq] = work(session, 1)
    before = _said(session)
    session.append(ev.ContextEvicted(key="the big file", handle=seq + 1, tokens=100))
    context = session.context.window()
    check(context)
    assert '{"evicted":{"key":"the big file","tokens":100}}' in [m["content"] for m in context]
    session.context.restore("the big file")
    assert _said(session) == before


def test_after_a_prune_a_handle_answers_gone(session: Session[Any]) -> None:
    calls = work(session, 4)
    session.context.evict(f"e{calls[0]}:output")
    session.context.evict(calls[1])
    prune(session.log, calls[1] + 2)
    head = session.head.seq
    for key in (f"e{calls[0]}:output", f"e{calls[1]}"):
        back = session.context.restore(key)
        assert back.items == ()
        assert [g.reason for g in back.gone] == ["pruned"]
        assert back.gone[0].seq == int(key[1:].partition(":")[0])
    assert session.head.seq == head
    context = session.context.window()
    check(context)
    assert f"[e1..e{calls[1] + 2} were pruned: what was said there is gone]" in str(list(context))


def test_after_an_erasure_a_handle_answers_gone(session: Session[Any]) -> None:
    [seq] = work(session, 1)
    session.context.evict(f"e{seq}:output")
    erase(session.log, [seq + 1])
    back = session.context.restore(f"e{seq}:output")
    assert [(g.seq, g.reason) for g in back.gone] == [(seq + 1, "erased")]


def test_the_system_and_pending_calls_are_not_evicted(session: Session[Any]) -> None:
    system = session.message("system", "be brief")
    pending = session.log.record(ev.ActionRequested(action="p", tool="deploy"))
    for seq in (system, pending):
        with pytest.raises(NotAllowedError) as refused:
            session.context.evict(seq)
        assert refused.value.kind == "not-evictable"


@pytest.mark.parametrize("key", ["e999", "nonsense", "e1", 1, "e40..e50"])
def test_what_is_not_in_the_window_cannot_leave_it(session: Session[Any], key: Any) -> None:
    session.message("user", "hi")
    with pytest.raises(NotFoundError) as refused:
        session.context.evict(key)
    assert refused.value.kind == "not-in-window"
    with pytest.raises(NotFoundError):
        session.context.restore(key)
    with pytest.raises(NotFoundError):
        session.context.pin(key)


def test_a_message_has_no_output(session: Session[Any]) -> None:
    seq = session.message("user", "hi")
    with pytest.raises(InvalidInputError):
        session.context.evict(f"e{seq}:output")


def test_restoring_a_compaction_expands_it(session: Session[Any]) -> None:
    work(session, 2)
    before = _said(session)
    seq = session.context.compact("@1", "@1", "the first turn")
    [key] = session.state().evicted_keys
    back = session.context.restore(key)
    assert back.items[0].text == "question 1"
    assert _said(session) == before
    assert [e.kind for e in session.log.entries(after=seq)] == ["history.expanded"]


def test_pruned_calls_do_not_keep_the_window_from_being_read(session: Session[Any]) -> None:
    work(session, 3)
    fork = session.fork("@2")
    work(fork, 1)
    prune(session.log, session.seq("@1"))
    for each in (session, fork):
        check(each.context.window())
        check(each.context.window(shape="anthropic"))
    call(fork)
    assert "question 3" in str(list(fork.context.window()))
