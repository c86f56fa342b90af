"""What model calls work with: a change of model, system prompt or tools is told, once."""

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


def test_another_process_knows_the_label(tmp_path: Any) -> None:
    for model in ("a", "b"):
        with wakelog.open(tmp_path / "store.db") as store:
            session = store.session("fix", labels={"model": "a"})
            ask(session, {"model": model})
            found = told(session)
    assert found == [({"model": "b"}, {})]
