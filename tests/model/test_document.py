"""The state document as a type: folded documents convert to it, and the empty one is complete."""

from typing import Any

import msgspec
import pytest

from wakelog.engines.memory import MemoryEngine
from wakelog.log import Log
from wakelog.log.removal import erase
from wakelog.model import events as ev
from wakelog.model.document import REWOUND_PARTS, State, empty_document, name_objects
from wakelog.testing.builders import new_session
from wakelog.testing.toy import RESTORED

ABSENT = {"goal_from"}
"""Parts that the document lacks when there is nothing to say, so that older hashes of states stay true."""


def rich_log() -> Log:
    """A session with something in every part of the state."""
    log = Log.create(
        MemoryEngine(),
        new_session(),
        ev.SessionOpened(goal="g", labels={"team": "a"}, limits={"tokens": 100}, data={"todo": [{"done": False}]}),
    )
    log.append(
        ev.TurnStarted(input="hello"),
        ev.ActionRequested(action="a", tool="search", key="k", input_hash="h"),
        ev.ActionStarted(action="a"),
        ev.ActionRequested(action="b", tool="edit", approval=True),
        ev.ActionRequested(action="c", tool="edit"),
        ev.ActionFailed(action="c", error=ev.Failure("io", message="m"), cost=ev.Cost(tokens_in=3)),
        ev.InputRequested(request="q", prompt="sure?", options=("yes", "no")),
        ev.DecisionMade(choice="c", because="b", alternatives=("x",), assumptions=("y",), evidence=(1, "url")),
        ev.FactRecorded(key="k", value={"deep": [1]}),
        ev.DeadEndNoted(tried="t", learned="l"),
        ev.ArtefactRecorded(name="n", uri="u", media="m"),
        ev.FileChanged(path="f", change="created"),
        ev.ResourceTouched(resource="r"),
        ev.SubagentSpawned(session="s", task="t"),
        ev.ContextEvicted(key="k", handle=1, tokens=9),
        ev.FlagRaised(flag="f", message="m"),
        ev.CheckpointNamed(name="c", at=1),
        ev.BudgetSet(limits={"usd_micros": 5}),
        ev.LeaseTaken(epoch=1, holder="w"),
    )
    log.append(ev.StatePatched(patch=[{"op": "add", "path": "/data/todo/1", "value": {"done": True}}]))
    return log


def test_a_rich_session_converts_to_the_typed_document() -> None:
    log = rich_log()
    state = msgspec.convert(log.state(), State)
    assert state.turn.number == 1
    assert {k: p.status for k, p in state.pending_actions.items()} == {"a": "running", "b": "waiting", "q": "waiting"}
    assert state.pending_actions["q"].prompt == "sure?"
    assert state.decisions_made["9"].evidence == (1, "url")
    assert state.facts["k"].value == {"deep": [1]}
    assert state.budget.spent["tokens"] == 3
    assert state.working_set.data_sources == {"r": 14}
    assert state.lease.epoch == 1
    assert state.data == {"todo": [{"done": False}, {"done": True}]}
    # Nothing is lost on the way, apart from defaults that stand for what is not there.
    empty = {part for part, value in msgspec.to_builtins(state).items() if not value}
    assert empty == {"trust", "goal_from"}


def test_it_still_converts_after_a_rewind_and_in_a_fork() -> None:
    log = rich_log()
    log.rewind(1)
    for state in (log.state(), log.fork(5).state()):
        assert msgspec.convert(state, State).goal == "g"


def test_it_still_converts_after_an_erasure() -> None:
    log = rich_log()
    erase(log, range(1, log.head().seq + 1))
    msgspec.convert(log.state(), State)


def test_the_empty_document_has_every_part_of_the_type_and_no_other() -> None:
    doc = empty_document()
    assert set(doc) | ABSENT == {field.name for field in msgspec.structs.fields(State)}
    assert not set(doc) & ABSENT
    assert msgspec.to_builtins(msgspec.convert(doc, State)) == {**doc, **dict.fromkeys(ABSENT)}
    assert empty_document() is not doc
    assert empty_document()["facts"] is not doc["facts"]


def test_what_is_restored_is_told_the_same_way_twice() -> None:
    assert set(REWOUND_PARTS) == set(RESTORED)
    assert set(REWOUND_PARTS) <= set(empty_document())


def test_the_document_has_a_json_schema() -> None:
    schema = msgspec.json.schema(State)
    assert set(schema["$defs"]["State"]["properties"]) == set(empty_document()) | ABSENT
    assert not ABSENT & set(schema["$defs"]["State"]["required"])


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"$object": "a.b.HumanMessage", "content": "hi", "id": "1"}, {"HumanMessage": "hi"}),
        ([{"$object": "Point", "x": 1, "y": None}, 2], [{"Point": {"x": 1}}, 2]),
        ({"inner": {"$object": "a.Empty"}, "b": []}, {"inner": {"Empty": {}}, "b": []}),
        ({"$object": 5}, {"$object": 5}),
        ({"n": {"$exact": ["int", "9007199254740993"]}}, {"n": "9007199254740993"}),
        ({"$exact": ["object", []]}, {"$exact": ["object", []]}),
        ("text", "text"),
    ],
)
def test_what_an_adapter_stored_is_named_for_people(value: Any, shown: Any) -> None:
    assert name_objects(value) == shown
