"""Labels of model calls: a change of model, system prompt or tools is recorded once."""

from typing import Any

import pytest

import wakelog
from wakelog.codec.canonical import hash_value
from wakelog.session import Session

ADD = {"name": "add"}
MUL = {"name": "mul"}


@pytest.fixture
def session() -> Session[Any]:
    return wakelog.open("memory:").session("fix")


def create(**given: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": "ok"}


def told(session: Session[Any]) -> list[tuple[dict[str, str], dict[str, str]]]:
    return [(e.body["labels"], e.body.get("before", {})) for e in session.log.entries() if e.kind == "labels.set"]


def ask(session: Session[Any], *calls: dict[str, Any]) -> None:
    with session.turn("go"):
        for given in calls:
            session.model(create, **{"messages": [{"role": "user", "content": "hi"}], "model": "a", **given})


def test_the_first_call_tells_nothing_and_a_changed_model_is_told_before_its_call(session: Session[Any]) -> None:
    ask(session, {})
    ask(session, {})
    assert told(session) == []
    ask(session, {"model": "b"})
    assert told(session) == [({"model": "b"}, {"model": "a"})]
    kinds = [e.kind for e in session.log.entries()]
    assert kinds[kinds.index("labels.set") + 1] == "action.requested"
    ask(session, {"model": "c"})
    assert told(session)[1:] == [({"model": "c"}, {})]
    assert session.state().labels["model"] == "c"


@pytest.mark.parametrize(
    ("before", "after", "name", "values"),
    [
        ({"system": "be kind"}, {"system": "be brief"}, "system_prompt", ("be kind", "be brief")),
        ({"instructions": "be kind"}, {"instructions": "be brief"}, "system_prompt", ("be kind", "be brief")),
        (
            {"messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "1"}]},
            {"messages": [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "2"}]},
            "system_prompt",
            (["be kind"], ["be brief"]),
        ),
        ({"tools": [ADD]}, {"tools": [ADD, MUL]}, "tools", ([ADD], [ADD, MUL])),
    ],
)
def test_prompt_and_tools_are_told_by_their_hash(
    session: Session[Any], before: dict[str, Any], after: dict[str, Any], name: str, values: tuple[Any, Any]
) -> None:
    ask(session, before)
    ask(session, before)
    ask(session, after)
    assert told(session) == [({name: hash_value(values[1])}, {name: hash_value(values[0])})]


def test_models_used_by_turns_are_told_once_a_turn(session: Session[Any]) -> None:
    ask(session, *({"model": model} for model in "ababab"))
    assert told(session) == [({"model": "b"}, {"model": "a"})]


def test_a_call_without_a_model_or_prompt_says_nothing_of_them(session: Session[Any]) -> None:
    ask(session, {"system": "be kind"})
    ask(session, {"model": ""})
    assert told(session) == []


@pytest.mark.parametrize(
    ("first", "then", "name"),
    [
        ({"model": "a"}, {"model": "b"}, "model"),
        ({"system": "be kind"}, {"system": "be brief"}, "system_prompt"),
        ({"tools": [ADD]}, {"tools": [MUL]}, "tools"),
        ({"tools": [{"name": "x" * 2000}]}, {"tools": [MUL]}, "tools"),
    ],
)
def test_another_process_knows_what_the_last_call_worked_with(
    tmp_path: Any, first: dict[str, Any], then: dict[str, Any], name: str
) -> None:
    for given in (first, first, then):
        with wakelog.open(tmp_path / "store.db") as store:
            session = store.session("fix")
            ask(session, given)
            found = told(session)
    [(labels, before)] = found
    assert [*labels, *before] == [name, name]
    assert labels != before


def test_a_replay_comes_to_the_same_state(session: Session[Any]) -> None:
    calls = ({"model": "a", "system": "kind"}, {"model": "b", "system": "brief"})
    for given in calls:
        ask(session, given)
    assert len(told(session)) == 1
    with session.replay("@2") as replay:
        replay.run(lambda s, _: ask(s, calls[1]))
    assert replay.report.ok
    assert replay.session.log.state_hash() == session.log.state_hash()


def test_a_window_of_our_own_is_no_system_prompt(session: Session[Any]) -> None:
    for n in range(3):
        with session.turn(f"go {n}"):
            session.fact("n", n)
            session.model(create, messages=session.context.window(500), model="a")
    assert told(session) == []


def test_a_prompt_that_differs_each_time_is_told_once_a_turn(session: Session[Any]) -> None:
    ask(session, *({"system": f"it is {n} o'clock"} for n in range(4)))
    assert len(told(session)) == 1
