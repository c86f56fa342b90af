"""Changes of the state made by the native core: the bytes, the state and the way back that Python makes of them."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.every import every
from tests.native.core import installed_core
from tests.state.test_effects import ROWS, after
from wakelog.errors import WakelogError
from wakelog.model.document import empty_document
from wakelog.state.changes import DeltaWriter, StateChanges, open_changes
from wakelog.state.effects import EventPlace, write_effect
from wakelog.state.fold import Fold, Undo

core = installed_core()

Doc = dict[str, Any]

START: Doc = {
    **empty_document(),
    "turn": {"number": 1, "attempt": 1, "status": "open", "holder": "h"},
    "labels": {"a": "1", "~/": "2"},
    "facts": {"a": {"value": [1], "seq": 2}, "~/": {"value": None, "seq": 3}},
    "data": {"a": {"b": [1, {"c": 2}]}},
}
parts = st.sampled_from([*START, "goal_from", "no such part"])
keys = st.sampled_from(["a", "~/", "files", "status", "value", "", "0", "é"])
values = st.sampled_from(["x", 'é"\x00', 1, 2**60, True, None, 1.5, [], [1], {"a": {"$payload": 1}}, {"seq": 9}])
paths = st.builds(lambda part, more: (part, *more), parts, st.lists(keys, max_size=3))
calls = st.lists(st.tuples(st.just("put"), paths, values) | st.tuples(st.just("remove"), paths), max_size=4)

Outcome = tuple[Any, Doc, Doc, str, str]


def outcome(
    open_: Callable[[Fold, Undo], Any], doc: Doc, write: Callable[[Doc, Any], None], is_hashed: bool
) -> Outcome:
    """The delta or the error, the state after it and after the way back, and the hashes of both."""
    fold = Fold(deepcopy(doc))
    undo: Undo = []
    if is_hashed:
        fold.state_hash()
    changes = open_(fold, undo)
    found: Any
    try:
        write(fold.doc, changes)
        found = changes.finish()
    except (WakelogError, KeyError, TypeError, AttributeError) as exc:
        fold.undo(undo)
        return type(exc), {}, fold.doc, "", fold.state_hash()
    changed, hashed = deepcopy(fold.doc), fold.state_hash()
    fold.undo(undo)
    return found, changed, fold.doc, hashed, fold.state_hash()


def test_the_core_is_what_appends_use() -> None:
    assert type(open_changes(Fold({}), [])) is core.StateChanges


@every("kind", sorted(ROWS))
def test_an_effect_is_the_same(kind: str) -> None:
    events, _ = ROWS[kind]

    def write(doc: Doc, out: DeltaWriter) -> None:
        write_effect(doc, events[-1], EventPlace(9, 3, trust="untrusted", source="web"), out)

    doc = after(*events[:-1])
    for is_hashed in (False, True):
        assert outcome(open_changes, doc, write, is_hashed) == outcome(StateChanges, doc, write, is_hashed)


@given(calls, st.booleans())
@example([("put", ("turn", "status"), "x"), ("remove", ("turn", "holder"))], True)
@example([("put", ("facts", "~/", "value"), 1.5), ("remove", ("facts", "~/"))], True)
@example([("put", ("goal_from",), {"seq": 1}), ("put", ("goal_from", "seq"), 2), ("remove", ("goal_from",))], True)
@example([("put", ("data", "a", "b"), "x"), ("remove", ("data", "a"))], True)
@example([("put", ("no such part", "a"), "x")], False)
def test_any_change_is_the_same(made: list[Any], is_hashed: bool) -> None:
    def write(_: Doc, out: Any) -> None:
        for name, path, *value in deepcopy(made):
            getattr(out, name)(*path, *value)

    assert outcome(open_changes, START, write, is_hashed) == outcome(StateChanges, START, write, is_hashed)
