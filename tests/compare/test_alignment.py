"""Alignment: every step in one row, the same from both sides, and a change found where it was made."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakelog import events
from wakelog.compare.comparison import Pair, compare
from wakelog.compare.trajectory import select_extent
from wakelog.engines.memory import MemoryEngine
from wakelog.log import Log
from wakelog.testing.builders import new_session

Made = tuple[str, int, int]
"""Kind, input, result: enough to distinguish steps."""


def events_of(number: int, made: Made) -> list[events.Event]:
    kind, given_, result = made
    action = f"a{number}"
    if kind == "tool":
        asked = events.ActionRequested(action=action, tool=f"t{given_ % 2}", input={"n": given_}, effect="read")
        return [asked, events.ActionStarted(action=action), events.ActionSucceeded(action=action, output=result)]
    if kind == "failing":
        asked = events.ActionRequested(action=action, tool="t0", input=given_)
        return [asked, events.ActionFailed(action=action, error=events.Failure("boom", str(result)))]
    if kind == "model":
        asked = events.ActionRequested(action=action, tool="m", effect="model", params={"seed": given_})
        return [asked, events.ActionSucceeded(action=action, output=f"says {result}")]
    if kind == "message":
        return [events.MessageAdded(role="assistant", content=f"{given_}")]
    if kind == "decision":
        return [events.DecisionMade(choice=f"{given_}", because=f"{result}")]
    return [events.FactRecorded(key=f"k{given_ % 3}", value=given_)]


kinds = st.sampled_from(["tool", "failing", "model", "message", "decision", "fact"])
made = st.tuples(kinds, st.integers(0, 3), st.integers(0, 1))
courses = st.lists(made, max_size=14)


def log_of(steps: list[Made]) -> Log:
    log = Log.create(MemoryEngine(), new_session(), events.SessionOpened())
    everything = [event for n, each in enumerate(steps) for event in events_of(n, each)]
    if everything:
        log.append(*everything)
    return log


def pair_of(a: list[Made], b: list[Made]) -> Pair:
    return compare(select_extent(log_of(a)), select_extent(log_of(b))).pairs[0]


@given(courses, courses)
def test_every_step_of_both_courses_stands_in_one_row_in_order(a: list[Made], b: list[Made]) -> None:
    pair = pair_of(a, b)
    assert len(pair.a.steps) == len(a)
    assert [row.a for row in pair.rows if row.a is not None] == list(range(len(a)))
    assert [row.b for row in pair.rows if row.b is not None] == list(range(len(b)))
    for row in pair.rows:
        one, two = pair.steps(row)
        if row.verdict == "same":
            assert one is not None
            assert two is not None
            assert (one.key, one.result) == (two.key, two.result)
        elif row.verdict == "differs":
            assert one is not None
            assert two is not None
            assert one.kind == two.kind
            assert row.what


@given(courses, courses)
def test_from_the_other_side_it_looks_the_same(a: list[Made], b: list[Made]) -> None:
    one, two = pair_of(a, b), pair_of(b, a)
    turned = {"only a": "only b", "only b": "only a"}
    assert {(r.a, r.b, r.verdict, r.what) for r in one.rows} == {
        (r.b, r.a, turned.get(r.verdict, r.verdict), r.what) for r in two.rows
    }
    if one.divergence is None or two.divergence is None:
        assert one.divergence == two.divergence is None
    else:
        assert (one.divergence.a, one.divergence.b) == (two.divergence.b, two.divergence.a)
        assert one.divergence.same_before == two.divergence.same_before


@given(courses)
def test_the_same_course_in_another_log_has_no_divergence(a: list[Made]) -> None:
    pair = pair_of(a, a)
    assert pair.divergence is None
    assert not pair.ends
    assert {row.verdict for row in pair.rows} <= {"same"}


@given(courses, made, st.integers(0, 13), st.sampled_from(["put in", "left out", "changed"]))
def test_a_change_at_a_step_is_found_at_that_step(a: list[Made], new: Made, at: int, how: str) -> None:
    at = min(at, len(a) - (how != "put in"))
    if at < 0:
        return
    b = [*a[:at], *([new] if how != "left out" else []), *a[at + (how != "put in") :]]
    same = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if _seen(x) != _seen(y)), min(len(a), len(b)))
    found = pair_of(a, b).divergence
    if same == len(a) == len(b):
        assert found is None
    else:
        assert found is not None
        assert found.same_before == same
        assert found.a == (same if same < len(a) else None)
        assert found.b == (same if same < len(b) else None)


def _seen(step: Made) -> Made:
    """The parts of a step that a comparison shows: facts and messages have no result."""
    kind, given_, result = step
    return (kind, given_, 0 if kind in ("message", "fact") else result)


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_thousands_of_steps_are_compared_in_full(count: int) -> None:
    def steps(changed: int) -> list[Made]:
        return [("tool", n % 50, 1 if n == changed else 0) for n in range(count)]

    changed, more = count * 7 // 10, count * 9 // 10
    a = log_of(steps(-1))
    b = log_of([*steps(changed)[:more], ("fact", 1, 0), *steps(-1)[more:]])
    pair = compare(select_extent(a), select_extent(b)).pairs[0]
    assert len(pair.rows) == count + 1
    assert pair.divergence is not None
    assert pair.divergence.same_before == changed
    assert pair.same == count - 1
    assert pair.notes == ()


def said_by(model: str, *blocks: dict[str, object]) -> Log:
    log = Log.create(MemoryEngine(), new_session(), events.SessionOpened())
    answer = {"type": "message", "role": "assistant", "content": list(blocks)}
    params = {"model": model} if model else {}
    log.append(events.ActionRecorded(action="r1", tool="model", effect="model", output=answer, params=params))
    return log


def test_the_same_words_in_the_shape_of_another_program_are_the_same() -> None:
    ours = said_by("m", {"type": "text", "text": "hello"}, {"type": "tool_use", "id": "c", "name": "look"})
    theirs = said_by("", {"type": "output_text", "text": "hello", "annotations": []})
    other = said_by("n", {"type": "output_text", "text": "good bye", "annotations": []})
    (same,) = compare(select_extent(ours), select_extent(theirs)).pairs
    assert [(row.verdict, row.minor) for row in same.rows] == [("same", ("shape",))]
    (apart,) = compare(select_extent(ours), select_extent(other)).pairs
    assert apart.rows[0].what == ("model", "output")
    assert apart.divergence is not None
    shown = [(each.pointer, each.a, each.b) for each in apart.divergence.differences if each.what == "output"]
    assert shown == [("/said", "hello", "good bye")]


def test_messages_that_an_adapter_keeps_are_no_steps_and_other_data_is() -> None:
    log = Log.create(MemoryEngine(), new_session(), events.SessionOpened(data={"$langgraph": {}, "messages": []}))
    message = {"type": "human", "content": "hello"}
    home = {"op": "add", "path": "/data/$langgraph/x", "value": 1}
    log.append(events.StatePatched(patch=[home, {"op": "add", "path": "/data/messages/0", "value": message}]))
    log.append(events.StatePatched(patch=[{"op": "add", "path": "/data/messages/1", "value": message}]))
    log.append(events.StatePatched(patch=[home, {"op": "add", "path": "/data/count", "value": 2}]))
    course = compare(select_extent(log), select_extent(log)).courses[0]
    assert [step.seq for step in course.steps] == [3, 4]
