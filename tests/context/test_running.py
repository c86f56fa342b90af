"""A window in use: an agent's loop over the runtime, cut and continued, shows the model the same again."""

from typing import Any

import pytest

from tests.context.validity import check
from wakelog.context.recorded_window import seen_at
from wakelog.errors import NotAllowedError
from wakelog.session import Session
from wakelog.store import Store


class Model:
    """Asks for one call, then answers. Remembers what it was shown."""

    def __init__(self) -> None:
        self.shown: list[list[Any]] = []

    def __call__(self, messages: list[Any]) -> dict[str, Any]:
        self.shown.append(list(messages))
        if not any(m["role"] == "tool" for m in messages):
            call = {"id": f"random-{len(self.shown)}", "type": "function"}
            call["function"] = {"name": "look", "arguments": '{"at":"a"}'}  # type: ignore[assignment]
            return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}}]}
        return {"choices": [{"message": {"role": "assistant", "content": "It is a."}}]}


class Killed(BaseException):
    """The process ends here."""


def _agent(session: Session[Any], model: Model, looked: list[str], *, dies: str = "") -> str:
    @session.tool(effect="external")
    def look(at: str) -> str:
        looked.append(at)
        if dies == "in the call":
            raise Killed
        return f"saw {at}"

    with session.turn("look at a"):
        while True:
            context = session.context.window(2000)
            check(context)
            answer = session.model(model, messages=context)["choices"][0]["message"]
            if not answer.get("tool_calls"):
                return str(answer["content"])
            for call in answer["tool_calls"]:
                session.call("look", {"at": "a"}, id=call["id"])
            if dies == "after the call":
                raise Killed


def test_a_cut_turn_goes_on_without_asking_or_paying_again(store: Store) -> None:
    model, looked = Model(), list[str]()
    with pytest.raises(Killed):
        _agent(store.session("s", goal="know a"), model, looked, dies="after the call")
    assert _agent(store.session("s"), model, looked) == "It is a."
    assert looked == ["a"], "the effect happened once"
    assert len(model.shown) == 2, "and each question was asked once: the model was shown the same again"


def test_a_turn_cut_in_a_call_stops_there_again_without_asking_the_model(store: Store) -> None:
    model, looked = Model(), list[str]()
    with pytest.raises(Killed):
        _agent(store.session("s"), model, looked, dies="in the call")
    with pytest.raises(NotAllowedError) as stopped:
        _agent(store.session("s"), model, looked)
    assert stopped.value.kind == "uncertain-call"
    assert looked == ["a"]
    assert len(model.shown) == 1, "the pending call it left behind does not change what the model is shown"
    session = store.session("s")
    [action] = session.state().pending_actions
    session.calls.reconcile(action, "succeeded", output="saw a")
    assert _agent(session, model, looked) == "It is a."
    assert looked == ["a"]
    assert len(model.shown) == 2


def test_a_model_call_names_what_it_was_shown(store: Store) -> None:
    model = Model()
    session = store.session("s", goal="know a")
    _agent(session, model, [])
    seen = seen_at(session.log, session.head.seq)
    assert seen.recorded
    assert [(i.kind, i.role) for i in seen.items] == [
        ("message", "user"),
        ("message", "assistant"),
        ("call", "assistant"),
    ]
    assert len(session.log.entry(seen.call).header.derived_from) == 1
    assert "saw a" in seen.items[-1].text


def test_the_answer_is_trusted_as_little_as_the_least_in_its_window(store: Store) -> None:
    session = store.session("s")
    with session.turn("read", source="mail:x", trust="untrusted"):
        session.model(lambda messages: "hm", messages=session.context.window(500))
    assert next(e.header.trust for e in session.events(kind="action.succeeded")) == "untrusted"
