"""Turns: how they start and end, how a draft is stored, what a crash leaves behind."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

from wakelog import ConflictError, InvalidInputError, NotAllowedError, events
from wakelog.store import Store


def test_a_clean_exit_makes_the_draft_one_patch_and_ends_the_turn_in_one_commit(store: Store) -> None:
    session = store.session("s", data={"plan": []})
    with session.turn(user="go") as turn:
        turn.data["plan"].append("first")
        turn.data["plan"].append("second")
        before = session.head.seq
    last = list(session.events(after=before))
    assert [e.kind for e in last] == ["state.patched", "turn.ended"]
    assert last[0].commit_id == last[1].commit_id
    assert session.data == {"plan": ["first", "second"]}


def test_an_exception_drops_the_draft_records_the_error_and_goes_on_unchanged(store: Store) -> None:
    session = store.session("s", data={"n": 0})
    with pytest.raises(ZeroDivisionError), session.turn(user="go") as turn:
        turn.data["n"] = 1
        raise ZeroDivisionError("by nothing")
    assert session.data == {"n": 0}
    assert session.state().turn.status == "failed"
    assert session.log.state()["last_error"]["message"] == "by nothing"


def test_an_interrupt_is_recorded_as_one(store: Store) -> None:
    session = store.session("s")
    with pytest.raises(KeyboardInterrupt), session.turn(user="go"):
        raise KeyboardInterrupt
    assert session.state().turn.status == "interrupted"


def test_a_cancelled_async_turn_is_recorded_as_interrupted(store: Store) -> None:
    session = store.session("s")

    async def work() -> None:
        async with session.turn(user="go"):
            await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.create_task(work())
        while not session.head.turn:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert session.state().turn.status == "interrupted"


def test_every_verb_can_be_awaited(store: Store) -> None:
    session = store.session("s")

    async def main() -> int:
        return await session.aio.fact("a", 1)

    assert asyncio.run(main()) == session.head.seq


def test_a_turn_left_open_by_a_dead_process_is_interrupted_by_the_next_and_its_calls_are_settled(store: Store) -> None:
    dead = store.session("s")
    dead.append(events.TurnStarted(), events.ActionRequested(action="w", tool="mail"), events.ActionStarted(action="w"))
    dead.append(events.ActionRequested(action="r", tool="grep", effect="read"))
    session = store.resume("s")
    with session.turn(user="again") as turn:
        assert turn.number == 2
    assert session.history.attempts(1)[0].outcome == "interrupted"
    assert {a: p.status for a, p in session.state().pending_actions.items()} == {"w": "uncertain"}


def test_two_turns_at_once_are_refused(store: Store) -> None:
    session = store.session("s")
    with session.turn(user="one"), pytest.raises(NotAllowedError, match="still open"), session.turn(user="two"):
        pass
    assert session.state().turn.status == "completed"


def test_a_draft_whose_data_another_writer_changed_is_a_conflict_and_the_turn_is_interrupted(store: Store) -> None:
    session = store.session("s", data={"n": 0})
    other = store.resume("s")
    with pytest.raises(ConflictError) as caught, session.turn(user="go") as turn:
        turn.data["n"] = 1
        other.patch([{"op": "replace", "path": "/data/n", "value": 7}])
    assert caught.value.kind == "draft-conflict"
    assert session.data == {"n": 7}
    assert session.state().turn.status == "interrupted"


def test_a_draft_lands_although_others_appended_what_does_not_touch_it(store: Store) -> None:
    session = store.session("s", data={"n": 0})
    other = store.resume("s")
    with session.turn(user="go") as turn:
        turn.data["n"] = 1
        other.fact("x", 1)
    assert session.data == {"n": 1}


def test_a_retry_is_the_next_attempt_of_the_same_turn_and_only_it_is_in_view(store: Store) -> None:
    session = store.session("s", data={"log": []})
    with session.turn(user="try") as turn:
        turn.data["log"].append("first")
    with session.turn(user="try", retry=True) as turn:
        assert (turn.number, turn.attempt) == (1, 2)
        turn.data["log"].append("second")
    assert session.data == {"log": ["second"]}
    assert [(s.attempt, s.outcome) for s in session.history.attempts(1)] == [(1, "completed"), (2, "completed")]
    assert len(session.messages()) == 1
    assert [e.header.attempt for e in session["@1.1"]] == [1] * 4


class AsStruct(msgspec.Struct):
    plan: list[str] = []


@dataclass
class AsDataclass:
    plan: list[str] = field(default_factory=list)


class AsTypedDict(TypedDict):
    plan: list[str]


class AsPydantic(pydantic.BaseModel):
    plan: list[str] = []


@pytest.mark.parametrize("kind", [AsStruct, AsDataclass, AsPydantic])
def test_data_can_be_a_type_of_the_callers_choice(store: Store, kind: type[Any]) -> None:
    session = store.session(f"s-{kind.__name__}", data=kind)
    with session.turn(user="go") as turn:
        turn.data.plan.append("x")
    assert session.data == kind(plan=["x"])
    again = store.resume(f"s-{kind.__name__}", data=kind)
    assert isinstance(again.data, kind)
    with pytest.raises(InvalidInputError) as caught:
        session.patch([{"op": "add", "path": "/data/plan", "value": 3}])
    assert caught.value.kind == "schema-mismatch"
    assert session.data == kind(plan=["x"])


class Aliased(pydantic.BaseModel):
    count: int = pydantic.Field(default=0, alias="Count")


@dataclass
class Nested:
    model: Aliased = field(default_factory=Aliased)
    seen: dict[int, str] = field(default_factory=dict)


def test_what_was_written_to_a_field_with_an_alias_is_read_again(store: Store) -> None:
    session = store.session("s", data=Aliased)
    with session.turn("go") as turn:
        turn.data.count = 5
    assert session.data.count == store.resume("s", data=Aliased).data.count == 5


def test_a_dataclass_may_hold_models_and_keys_that_are_numbers(store: Store) -> None:
    session = store.session("s", data=Nested)
    with session.turn("go") as turn:
        turn.data.model.count = 5
        turn.data.seen[7] = "seven"
    assert session.data == Nested(Aliased(Count=5), {7: "seven"})


@pytest.mark.parametrize(
    "data", [object(), {"a": 1}.items(), dataclass(type("Full", (), {"__annotations__": {"a": int}}))]
)
def test_data_that_cannot_be_stored_says_what_to_pass(store: Store, data: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        store.session("s", data=data)
    assert caught.value.kind == "bad-data"
    assert caught.value.hint


def test_data_can_be_described_by_a_json_schema(store: Store) -> None:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"n": {"type": "integer"}}}
    session = store.session("s", data=schema)
    session.patch([{"op": "add", "path": "/data/n", "value": 1}])
    with pytest.raises(InvalidInputError):
        session.patch([{"op": "add", "path": "/data/n", "value": "one"}])


def test_older_data_is_brought_forward_by_named_migrations_and_that_is_an_event(store: Store) -> None:
    class Triage(msgspec.Struct):
        plan: list[str] = []

    store.session("s", data=Triage)
    old = store.resume("s")
    old.patch([{"op": "add", "path": "/data/plan/-", "value": "x"}])

    class Step(msgspec.Struct):
        text: str

    newer: Any = msgspec.defstruct("Triage", [("plan", list[Step], [])])
    with pytest.raises(InvalidInputError) as caught:
        store.resume("s", data=newer, version=2)
    assert caught.value.kind == "schema-mismatch"

    def upgrade(data: dict) -> dict:
        return {"plan": [{"text": text} for text in data["plan"]]}

    session = store.resume("s", data=newer, version=2, migrate={1: upgrade})
    assert session.data.plan == [Step("x")]
    assert [e.kind for e in session.events()][-2:] == ["state.patched", "labels.set"]
    seq = session.head.seq
    store.resume("s", data=newer, version=2, migrate={1: upgrade})
    assert session.head.seq == seq
