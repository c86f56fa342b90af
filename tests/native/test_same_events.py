"""Events encoded by the native core: the bytes and payloads that Python makes of them, or left to Python."""

from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.native.core import installed_core
from wakelog.codec import records
from wakelog.codec.records import PayloadCollector, check_event, encode_event
from wakelog.engines.memory import MemoryEngine
from wakelog.log import Log, admission
from wakelog.model import events as ev
from wakelog.model.ids import SessionId
from wakelog.model.payloads import Payload
from wakelog.model.records import EventDraft

core = installed_core()

LONG = "Ein längerer Text, wie ihn Werkzeuge geben.\n" * 20

texts = (
    st.sampled_from(["", "agent", 'quoted "\\" \x00\x1f\x7f \u2028', "é" * 512, "x" * 513, LONG, "\ud800"]) | st.text()
)
EXTERNAL: Any = "".join(["exter", "nal"])
"""The default, but of another origin."""

numbers = st.sampled_from([0, 1, True, 1.0, 2**53 - 1, 2**53, -(2**53), 2**70]) | st.integers()
keys = st.sampled_from(["a", "$payload", "é", "\ud800"]) | st.text(max_size=3)
values = st.recursive(
    texts | numbers | st.none() | st.floats() | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3) | st.tuples(inner),
    max_leaves=8,
)
anything = values | st.builds(Payload, st.binary(max_size=700), st.sampled_from(["text", "bytes"]))
costs = st.builds(ev.Cost, tokens_in=numbers, duration_us=numbers, price=texts)
flags = st.booleans() | numbers
objects = st.dictionaries(keys, values, max_size=3)
effects = st.sampled_from(["read", "external", "write", "none"]) | texts
many = st.lists(texts, max_size=3).map(tuple) | st.lists(texts, max_size=2)
events = st.one_of(
    st.builds(ev.TurnStarted, input=anything, retry=flags, resumes=numbers, id=texts, holder=texts, why=texts),
    st.builds(ev.TurnEnded, outcome=st.sampled_from(["completed", "failed", "done"]), output=anything),
    st.builds(ev.TurnEnded, outcome=st.just("failed"), error=st.builds(ev.Failure, type=texts)),
    st.builds(ev.MessageAdded, role=texts, content=anything, name=texts, occurred_at=numbers),
    st.builds(ev.DecisionMade, choice=texts, alternatives=many, evidence=st.just(()) | many),
    st.builds(
        ev.ActionRequested, action=texts, tool=texts, effect=effects, input=anything, policy=objects, params=objects
    ),
    st.builds(ev.ActionStarted, action=texts, attempt=numbers),
    st.builds(ev.ActionSucceeded, action=texts, output=anything, output_summary=texts, cost=costs, stream=objects),
    st.builds(ev.ActionRecorded, action=texts, tool=texts, effect=effects, input=anything, output=anything, cost=costs),
    st.builds(
        ev.FileChanged, path=texts, added=numbers, before=anything, missing=st.dictionaries(texts, texts, max_size=1)
    ),
    st.builds(
        ev.ItemsKept, format=texts, counts=st.lists(numbers, max_size=3).map(tuple) | many, rest=anything, ids=many
    ),
    st.builds(ev.StatePatched, patch=st.lists(objects | values, max_size=2) | values, why=texts),
    st.builds(ev.FactRecorded, key=texts, value=values),
)


def encoded_natively(event: ev.Event) -> Any:
    shapes = {type(event): records._shape_of(type(event))}
    return core.Encoder(shapes, msgspec.structs.astuple).encode([event])[0]


@given(events)
@example(ev.ActionRecorded(action="a", tool="t", effect=EXTERNAL, input={"a": [{}]}, output=[LONG]))
@example(ev.ActionSucceeded(action="a", output={"text": LONG, "n": [1, None, True]}, cost=ev.Cost(1, 2, 3, 4)))
@example(ev.MessageAdded(role="user", content=None))
def test_an_event_has_the_same_bytes_and_payloads(event: ev.Event) -> None:
    found = encoded_natively(event)
    if found is None or type(event) not in records.PLAIN_KINDS:
        return  # left to Python, which has the last word
    collector = PayloadCollector({})
    body, read = encode_event(check_event(event), collector)
    assert (found[0], found[1] or {}) == (body, collector.new)
    for name in set(event.__struct_fields__) - set(event.payload_fields):
        mine, theirs = getattr(event, name), getattr(read, name)
        assert (mine, type(mine)) == (theirs, type(theirs)), name


USUAL: list[ev.Event] = [
    ev.TurnStarted(input="go on", id="t1"),
    ev.MessageAdded(role="user", content=LONG),
    ev.ActionRequested(action="a", tool="t", effect="read", input={"path": "a.py"}, policy={"timeout_s": 3}),
    ev.ActionStarted(action="a", attempt=2),
    ev.ActionSucceeded(action="a", output=LONG, output_summary="all", cost=ev.Cost(duration_us=12)),
    ev.ActionRecorded(action="b", tool="t", input={"n": [1, {"k": None}]}, output={"lines": [LONG, LONG]}),
    ev.FileChanged(path="a.py", change="created", added=3, after=LONG),
    ev.DecisionMade(choice="b", because="c", alternatives=("d", "é")),
    ev.NoteAdded(text="seen", on=3),
    ev.TurnEnded(output={"ok": True}),
]


def test_what_a_turn_usually_holds_is_encoded_by_the_core_alone() -> None:
    assert records.encode_plain is not None
    assert None not in records.encode_plain(USUAL)


def test_what_the_state_would_share_with_the_caller_is_left_to_python() -> None:
    assert records.encode_plain is not None
    shared = [ev.FactRecorded(key="k", value={"a": []}), ev.LabelsSet(labels={}), ev.SessionOpened(data={})]
    assert list(records.encode_plain(shared)) == [None] * 3


def test_a_log_has_the_same_hash_whoever_encodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a payload was stored before, where the caller chose the commit's id, and in a draft with a header."""
    monkeypatch.setattr("wakelog.log.seal.os.urandom", bytes)
    heads = []
    for is_native in (True, False):
        if not is_native:
            monkeypatch.setattr(admission, "encode_plain", None)
            monkeypatch.setattr(admission, "encode_clean", None)
        log = Log.create(MemoryEngine(), SessionId("s_" + "0" * 26), ev.SessionOpened(name="x"), clock=lambda: 1)
        log.append(*USUAL)
        log.append(*USUAL, commit_id="again")
        log.append(EventDraft(USUAL[1], actor="user", source="web", trust="untrusted"))
        heads.append((log.append(*USUAL, commit_id="again"), log.head(), log.state_hash()))
    assert heads[0] == heads[1]
    assert msgspec.json.encode(heads[0][0]) == msgspec.json.encode(heads[1][0])
