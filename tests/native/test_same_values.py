"""What the native core lets through at the door is what Python lets through: values as they are, and clean events."""

import copy
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.native.core import installed_core
from wakelog.codec import canonical
from wakelog.errors import InvalidInputError
from wakelog.model import events as ev
from wakelog.model import values
from wakelog.model.payloads import Payload
from wakelog.redaction import Redactor
from wakelog.state.diff import common_head_in_python

core = installed_core()

NATIVE, PURE = Redactor(), Redactor()
PURE.scanner = None

keys = st.sampled_from(
    ["a", "value", "op", "path", "password", "Api-Key", "dbPass", "compass", "auth", "to\u212aen", "$payload", "é"]
) | st.text(max_size=3)
texts = st.sampled_from(
    ["", "short", "hunter22hunter", "/db/password", "/data/x", "token=aB3dE5gH7jK9mN1p", "ghp_" + "aB3" * 12, "\ud800"]
) | st.text(max_size=12)
scalars = st.one_of(
    texts, st.none(), st.booleans(), st.integers(-(1 << 60), 1 << 60), st.floats(), st.binary(max_size=9)
)
nested = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4) | st.tuples(inner),
    max_leaves=8,
)
payloads = st.builds(Payload, texts.map(lambda t: t.encode("utf-8", "replace")), st.sampled_from(["text", "bytes"]))
json_payloads = st.sampled_from([b'{"password":"hunter22hunter"}', b'{"a":"b"}', b"{", b"\xff"]).map(
    lambda content: Payload(content, "json")
)
events = st.one_of(
    st.builds(ev.FactRecorded, key=keys, value=nested),
    st.builds(ev.ActionRecorded, action=texts, tool=st.just("t"), input=nested, output=nested | payloads),
    st.builds(ev.MessageAdded, role=st.just("user"), content=texts | payloads | json_payloads),
    st.builds(ev.StatePatched, patch=st.lists(st.dictionaries(keys, nested, max_size=4), max_size=2)),
    st.builds(ev.TurnEnded, outcome=st.just("failed"), error=st.builds(ev.Failure, type=texts, message=texts)),
)


def outcome(value: Any) -> Any:
    try:
        return repr(values._check(value, "value", 0, False))
    except InvalidInputError as exc:
        return exc.kind, exc.message


def deep(levels: int) -> Any:
    value: Any = "end"
    for _ in range(levels):
        value = [value]
    return value


@given(nested)
@example(deep(64))
@example(deep(65))
@example({1: "a key that is no text"})
@example(2**53)
@example(-(2**53) + 1)
@example([1.5, -0.0])
@example(float("inf"))
@example(1e300)
def test_a_plain_value_is_one_that_python_leaves_as_it_is(value: Any) -> None:
    if core.is_plain(value):
        assert values._check(value, "value", 0, False) is value
        assert outcome(value) == repr(value)


def test_what_tools_are_given_is_plain() -> None:
    assert core.is_plain({"path": "a.py", "lines": [1, 2, 2.5, None, True], "more": {"é": "ü" * 500}})


@given(nested, st.sampled_from(["a", "é", "password"]))
@example([1.5, {"b": {"a": 1}}], "a")
def test_a_mark_is_refused_as_by_python(value: Any, mark: str) -> None:
    assert core.is_plain(value, mark) == (core.is_plain(value) and values.is_plain_in_python(value, mark))


@given(st.lists(events, max_size=3))
@example([ev.FactRecorded(key="password", value="hunter22hunter")])
@example([ev.FactRecorded(key="auth", value="über 20 Zeichen lang")])
@example([ev.StatePatched(patch=[{"op": "add", "path": "/data/token", "value": "hunter22hunter"}])])
def test_events_are_clean_for_the_core_when_they_are_for_python(given_events: list[ev.Event]) -> None:
    for _ in range(2):  # the first time the core does not know the types yet
        assert NATIVE.are_clean(given_events) == PURE.are_clean(given_events)


def test_a_clean_turn_is_known_by_the_core_alone() -> None:
    turn = [ev.MessageAdded(role="user", content="rename the function"), ev.TurnEnded()]
    turn.append(ev.ActionRecorded(action="a", tool="t", input={"path": "a.py"}, output=Payload(b"x" * 600, "text")))
    PURE.are_clean(turn)  # makes the types known
    from wakelog.redaction.values import _walks

    assert NATIVE.scanner is not None
    assert NATIVE.scanner.are_clean(turn, _walks)


json = st.recursive(
    st.sampled_from([0, 1, True, False, 1.0, 2**70, "a", "é", None]) | st.integers() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)
others = st.lists(json | nested | st.sampled_from([(), b"a", (1,)]), max_size=4)


@given(st.lists(json, max_size=4), others)
@example([[1]], [(1,)])
@example(["a"], ["\ud800"])
@example([1, {"a": [1, 2.5], "b": None}, "x"], [1, {"b": None, "a": [1, 2.5]}, "y"])
@example([1], [True])
@example([[1.0]], [[1]])
def test_lists_have_the_same_items_in_common(one: list[Any], other: list[Any]) -> None:
    assert core.common_head(one, other) == common_head_in_python(one, other)
    assert core.common_head(one, [*copy.deepcopy(one), *other]) == len(one)


@given(nested)
@example({"\ud7ff": 1})
@example({"\ue000": 1})
@example([{"a": (1, 2.5)}, deep(80)])
def test_floats_are_seen_the_same(value: Any) -> None:
    assert canonical._is_plain(value) == canonical.is_plain_in_python(value)
