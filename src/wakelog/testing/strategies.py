"""Hypothesis strategies: JSON values that the log accepts, and events as an agent might append them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from wakelog.model import events as ev
from wakelog.model.values import INT_MAX, RESERVED_KEYS

# Few names, so that events meet each other; odd ones, so that escaping is tried.
NAMES = ("a", "a/b", "~1", "")
ACTIONS = ("call-1", "call-2", "call/3")
TOOLS = ("search", "edit~file")

texts: SearchStrategy[str] = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names: SearchStrategy[str] = st.sampled_from(NAMES)
# As values are once they are inside: integral floats have become ints.
numbers: SearchStrategy[int | float] = st.integers(-INT_MAX, INT_MAX) | st.floats(
    allow_nan=False, allow_infinity=False, width=64
).filter(lambda x: not x.is_integer())
scalars: SearchStrategy[Any] = st.none() | st.booleans() | numbers | texts
keys: SearchStrategy[str] = (names | st.sampled_from(["~", "0", "-", "ключ", "\ufb33", "\U0001f600"]) | texts).filter(
    lambda key: key not in RESERVED_KEYS
)


def _containers(inner: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4)


values: SearchStrategy[Any] = st.recursive(scalars, _containers, max_leaves=8)
"""Any JSON value that is stored as it is."""

objects: SearchStrategy[dict[str, Any]] = st.dictionaries(keys, values, max_size=4)

_actions = st.sampled_from(ACTIONS)
_costs = st.builds(
    ev.Cost, tokens_in=st.integers(0, 9), tokens_out=st.integers(0, 9), usd_micros=st.sampled_from([0, 0, 5])
)
_failures = st.builds(ev.Failure, type=st.sampled_from(["io", "refused"]), message=texts)

knowledge: SearchStrategy[ev.Event] = st.one_of(
    st.builds(ev.FactRecorded, key=names | keys, value=values),
    st.builds(ev.FactRetracted, key=names),
    st.builds(ev.DecisionMade, choice=texts, because=texts),
    st.builds(ev.DeadEndNoted, tried=texts, learned=texts),
    st.builds(ev.GoalSet, goal=st.none() | texts),
    st.builds(ev.LabelsSet, labels=st.dictionaries(names, st.none() | texts, max_size=3)),
    st.builds(ev.MessageAdded, role=st.sampled_from(["user", "model"]), content=values),
    st.builds(ev.FileChanged, path=st.sampled_from(["a.py", "b/c.py"])),
    st.builds(ev.FlagRaised, flag=names, message=texts),
    st.builds(ev.FlagCleared, flag=names),
    st.builds(ev.ContextEvicted, key=names, handle=st.integers(1, 5), tokens=st.integers(0, 9)),
    st.builds(ev.ContextRestored, key=names),
    st.builds(ev.CheckpointNamed, name=names, at=st.just(1)),
    st.builds(ev.BudgetSpent, cost=_costs),
    st.builds(ev.NoteAdded, text=texts),
)
"""Events that are legal whenever a session takes anything new."""

turns: SearchStrategy[ev.Event] = st.one_of(
    st.builds(ev.TurnStarted, retry=st.booleans()),
    st.builds(ev.TurnEnded, outcome=st.sampled_from(["completed", "failed"]), error=st.none() | _failures),
)

actions: SearchStrategy[ev.Event] = st.one_of(
    st.builds(ev.ActionRequested, action=_actions, tool=st.sampled_from(TOOLS), approval=st.booleans(), key=names),
    st.builds(ev.ActionRecorded, action=_actions, tool=st.sampled_from(TOOLS), cost=_costs),
    st.builds(ev.ActionApproved, action=_actions),
    st.builds(ev.ActionDenied, action=_actions),
    st.builds(ev.ActionStarted, action=_actions, attempt=st.integers(1, 3)),
    st.builds(ev.ActionSucceeded, action=_actions, cost=_costs),
    st.builds(ev.ActionFailed, action=_actions, error=_failures, retry=st.booleans(), cost=_costs),
    st.builds(ev.ActionTimedOut, action=_actions, retry=st.booleans()),
    st.builds(ev.ActionUncertain, action=_actions),
    st.builds(ev.ActionReconciled, action=_actions, outcome=st.sampled_from(["succeeded", "never_ran"])),
    st.builds(ev.ActionAbandoned, action=_actions),
    st.builds(ev.ActionEvidence, action=_actions),
)
"""Moves of a few actions, most of them not legal at the moment they are drawn."""

life: SearchStrategy[ev.Event] = st.one_of(
    st.builds(ev.SessionPaused),
    st.builds(ev.SessionResumed),
    st.builds(ev.SessionClosed),
    st.builds(ev.SessionReopened),
)


@st.composite
def patches(draw: st.DrawFn, data: dict[str, Any]) -> list[dict[str, Any]]:
    """A change below /data that fits what is there: an operation at a place chosen from the document."""
    container, path = _walk(draw, data, "/data")
    if isinstance(container, list):
        choices = ["add"] + (["remove", "replace"] if container else [])
        name = draw(st.sampled_from(choices))
        at: Any = draw(st.integers(0, len(container) - (name != "add")))
    else:
        name = draw(st.sampled_from(["add"] + (["remove", "replace"] if container else [])))
        at = draw(keys if name == "add" else st.sampled_from(sorted(container)))
    op = {"op": name, "path": f"{path}/{_escape(str(at))}"}
    return [op if name == "remove" else {**op, "value": draw(values)}]


def _walk(draw: st.DrawFn, node: Any, path: str) -> tuple[Any, str]:
    """Some object or list inside `node`, and where it is."""
    inside = list(enumerate(node)) if isinstance(node, list) else list(node.items())
    deeper = [(f"{path}/{_escape(str(key))}", value) for key, value in inside if isinstance(value, dict | list)]
    if not deeper or draw(st.booleans()):
        return node, path
    path, node = draw(st.sampled_from(deeper))
    return _walk(draw, node, path)


def _escape(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")
