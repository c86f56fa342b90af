"""What counts as a value, and what is refused at the door, wherever it hides."""

import datetime
import enum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.every import every
from wakelog.codec.records import check_event
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import InvalidInputError
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.payloads import Payload
from wakelog.model.records import EventDraft
from wakelog.model.values import DEPTH_MAX, INT_MAX, RESERVED_KEYS, check_value
from wakelog.state.patch import equal
from wakelog.testing.builders import new_session
from wakelog.testing.strategies import values


class Colour(enum.IntEnum):
    RED = 1


NOT_VALUES = {
    "nan": float("nan"),
    "infinity": float("inf"),
    "minus-infinity": float("-inf"),
    "int-too-large": 2**53,
    "int-too-small": -(2**53),
    "float-too-large": 1e300,
    "lone-surrogate": "a\ud800",
    "lone-surrogate-in-key": {"\udfff": 1},
    "key-not-text": {1: 1},
    "bytes": b"raw",
    "set": {1},
    "datetime": datetime.datetime(2024, 1, 1),
    "object": object(),
    "enum": Colour.RED,
    "too-deep": [[]],
}
for _ in range(DEPTH_MAX):
    NOT_VALUES["too-deep"] = [NOT_VALUES["too-deep"]]
HOLDERS = {
    "bare": lambda x: x,
    "in-a-list": lambda x: [0, x],
    "in-a-dict": lambda x: {"k": x},
    "deep": lambda x: {"a": [{"b": (1, [x])}]},
}


@every("held", HOLDERS)
@every("name", NOT_VALUES)
def test_what_is_no_value_is_refused_with_a_hint(name: str, held: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        check_value(HOLDERS[held](NOT_VALUES[name]), "thing")
    assert refused.value.kind == "not-a-value"
    assert refused.value.hint
    assert "thing" in str(refused.value)


@pytest.mark.parametrize("key", sorted(RESERVED_KEYS))
def test_reserved_keys_are_refused_with_a_hint(key: str) -> None:
    for value in ({key: 1}, [{"a": {key: 1}}]):
        with pytest.raises(InvalidInputError) as refused:
            check_value(value)
        assert key in str(refused.value)
        assert refused.value.hint


@given(values)
def test_a_value_is_passed_on_as_it_is(value: Any) -> None:
    assert check_value(value) is value


@given(values)
def test_a_value_survives_the_way_through_json(value: Any) -> None:
    assert equal(msgspec.json.decode(msgspec.json.encode(value)), value)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (1.0, 1),
        (-0.0, 0),
        (0.0, 0),
        (float(INT_MAX), INT_MAX),
        ([1.0, 0.5], [1, 0.5]),
        ({"a": (1.0, 2)}, {"a": [1, 2]}),
        ((), []),
    ],
)
def test_integral_floats_become_ints_and_tuples_lists(value: Any, stored: Any) -> None:
    assert equal(check_value(value), stored)


def test_what_was_passed_in_is_not_changed() -> None:
    inner = [1.0]
    value = {"a": inner}
    assert check_value(value) == {"a": [1]}
    assert type(value["a"][0]) is float


def test_the_limits_themselves_are_values() -> None:
    deep: Any = 0
    for _ in range(DEPTH_MAX):
        deep = [deep]
    for value in (INT_MAX, -INT_MAX, 5e-324, deep, "\U0010ffff", "\x00"):
        assert check_value(value) is value


# The same at the door of the log: whatever carries it, nothing is stored and the log goes on.


def _carriers() -> dict[str, Any]:
    return {
        "fact": lambda x: ev.FactRecorded(key="k", value=x),
        "message": lambda x: ev.MessageAdded(role="user", content=x),
        "input": lambda x: ev.ActionRequested(action="a", tool="t", input=x),
        "params": lambda x: ev.ActionRequested(action="a", tool="t", params={"p": x}),
        "patch": lambda x: ev.StatePatched(patch=[{"op": "add", "path": "/data/x", "value": x}]),
        "output": lambda x: ev.ActionEvidence(action="a", output=x),
        "foreign": lambda x: ev.Foreign(foreign_kind="x.mine", data={"x": x}),
    }


def _new_log() -> Log:
    return Log.create(MemoryEngine(), new_session(), ev.SessionOpened())


@pytest.fixture
def log() -> Log:
    return _new_log()


@every("held", HOLDERS)
@every("carrier", _carriers())
@every("name", NOT_VALUES)
def test_no_event_brings_in_what_is_no_value(name: str, carrier: str, held: str) -> None:
    if name == "bytes" and held == "bare" and carrier in ("message", "input", "output"):
        return  # bytes are a payload there
    log = _new_log()
    before = log.state_hash()
    with pytest.raises(InvalidInputError):
        log.append(_carriers()[carrier](HOLDERS[held](NOT_VALUES[name])))
    assert log.head().seq == 1
    assert log.state_hash() == before
    log.append(ev.FactRecorded(key="k", value=1))


@pytest.mark.parametrize(
    "event",
    [
        ev.GoalSet(goal="\ud800"),
        ev.DecisionMade(choice="\ud800"),
        ev.FactRecorded(key="\ud800", value=1),
        ev.FileChanged(path="\ud800"),
        ev.MessageAdded(role="\ud800", content="x"),
        ev.LabelsSet(labels={"\ud800": "x"}),
        ev.LabelsSet(labels={"x": "\ud800"}),
        ev.NoteAdded(text="\ud800"),
        ev.NoteAdded(text="fine", why="\ud800"),
        ev.FlagRaised(flag="\ud800"),
        ev.ActionRequested(action="\ud800", tool="t"),
        ev.TurnEnded(error=ev.Failure("\ud800")),
        EventDraft(ev.NoteAdded(text="fine"), actor="\ud800"),
        EventDraft(ev.NoteAdded(text="fine"), source="\ud800"),
        ev.Foreign(foreign_kind="x.\ud800", data={}),
    ],
    ids=lambda e: type(e).__name__,
)
def test_lone_surrogates_are_refused_in_every_text(log: Log, event: Any) -> None:
    if isinstance(event, ev.TurnEnded):
        log.append(ev.TurnStarted())
    before = log.head().seq
    with pytest.raises(InvalidInputError):
        log.append(event)
    assert log.head().seq == before
    log.append(ev.NoteAdded(text="goes on"))


@pytest.mark.parametrize(
    "event",
    [
        ev.BudgetSpent(cost=ev.Cost(usd_micros=2**53)),
        ev.BudgetSpent(cost=ev.Cost(tokens_in=2**70)),
        ev.BudgetSet(limits={"tokens": 2**53}),
        ev.ContextEvicted(key="k", handle=2**53),
        ev.NoteAdded(text="t", on=2**64),
        ev.NoteAdded(text="t", occurred_at=2**53),
        ev.NoteAdded(text="t", occurred_at=2**70),
    ],
    ids=str,
)
def test_numbers_that_json_readers_round_are_refused_in_every_field(log: Log, event: ev.Event) -> None:
    with pytest.raises(InvalidInputError):
        log.append(event)
    assert log.head().seq == 1


# The wrong types are the point, hence constructors that nobody checks.
untyped: Any = ev
UntypedDraft: Any = EventDraft


@pytest.mark.parametrize(
    "event",
    [
        untyped.FactRecorded(key=5, value=1),
        untyped.FactRecorded(key=None, value=1),
        untyped.GoalSet(goal=5),
        untyped.DecisionMade(choice=["a"]),
        untyped.FileChanged(path="f", change="renamed"),
        untyped.LabelsSet(labels=["a"]),
        untyped.StatePatched(patch=["x"]),
        untyped.StatePatched(patch={"op": "add"}),
        untyped.BudgetSpent(cost=5),
        untyped.ResourceTouched(resource="r", category="planet"),
        untyped.ActionRequested(action=1, tool="t"),
        untyped.CheckpointNamed(name="n", at="1"),
        UntypedDraft(ev.NoteAdded(text="t"), trust="a bit"),
        UntypedDraft(ev.NoteAdded(text="t"), actor=5),
        UntypedDraft(ev.NoteAdded(text="t"), cause="1"),
        UntypedDraft(ev.NoteAdded(text="t"), derived_from=((1, "2"),)),
        UntypedDraft(ev.NoteAdded(text="t"), derived_from=5),
    ],
    ids=str,
)
def test_fields_of_the_wrong_type_are_refused_and_the_log_stays_readable(log: Log, event: Any) -> None:
    with pytest.raises(InvalidInputError):
        log.append(event)
    assert log.head().seq == 1
    log.append(ev.NoteAdded(text="goes on"))
    assert [e.kind for e in log.entries()] == ["session.opened", "note.added"]


def test_integral_floats_are_ints_in_the_state_too(log: Log) -> None:
    log.append(ev.FactRecorded(key="a", value=3.0), ev.FactRecorded(key="b", value=[0.0]))
    assert equal(log.state()["facts"]["a"]["value"], 3)
    assert equal(log.state()["facts"]["b"]["value"], [0])


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_zero_is_an_int_too(log: Log, zero: float) -> None:
    log.append(ev.FactRecorded(key="a", value=zero))
    assert equal(log.state()["facts"]["a"]["value"], 0)


@pytest.mark.parametrize("key", sorted(RESERVED_KEYS))
def test_reserved_keys_are_kept_in_payloads_and_refused_elsewhere(log: Log, key: str) -> None:
    value = {"a": [{key: "f" * 64}]}
    log.append(ev.MessageAdded(role="user", content=value))
    entry = log.entry(2)
    assert log.value(entry, entry.body["content"]) == value
    for event in (
        ev.FactRecorded(key="k", value=value),
        ev.StatePatched(patch=[{"op": "add", "path": "/data/x", "value": value}]),
        ev.SessionOpened(data=value),
        ev.Foreign(foreign_kind="x.mine", data=value),
    ):
        with pytest.raises(InvalidInputError):
            check_event(event)


@pytest.mark.parametrize(
    "name",
    ["nan", "infinity", "lone-surrogate", "object", "bytes", "int-too-large"],
)
def test_what_is_no_value_does_not_slip_in_beside_a_reserved_key(log: Log, name: str) -> None:
    for value in ({"$erased": NOT_VALUES[name]}, {"$erased": 1, "b": [NOT_VALUES[name]]}):
        with pytest.raises(InvalidInputError):
            log.append(ev.MessageAdded(role="user", content=value))


@given(content=st.binary(max_size=2000))
def test_bytes_come_back_as_bytes(content: bytes) -> None:
    log = Log.create(MemoryEngine(), new_session(), ev.SessionOpened())
    log.append(ev.MessageAdded(role="user", content=content), ev.MessageAdded(role="user", content=Payload(content)))
    for entry in log.entries(after=1):
        assert log.value(entry, entry.body["content"]) == content
