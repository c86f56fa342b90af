"""Hypothesis strategies: JSON values that the log accepts, and events as an agent might append them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from wakelog.model import events as ev
from wakelog.model.values import INT_MAX, RESERVED_KEYS

# Few names, so that events refer to the same things; odd ones, to test escaping.
NAMES = ("a", "a/b~1", "")
ACTIONS = ("call", "call/2")
TOOLS = ("search", "edit~file")

texts: SearchStrategy[str] = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names: SearchStrategy[str] = st.sampled_from(NAMES)
# As values are after they were stored: integral floats have become ints.
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
"""Any JSON value that is stored unchanged."""

objects: SearchStrategy[dict[str, Any]] = st.dictionaries(keys, values, max_size=4)

_costs = st.builds(
    ev.Cost, tokens_in=st.integers(0, 9), tokens_out=st.integers(0, 9), usd_micros=st.sampled_from([0, 0, 5])
)

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
"""Events that are legal whenever a session accepts new events."""

_refused = ev.Failure("refused", message="no")
_cost = ev.Cost(tokens_in=3, usd_micros=5)


def _moves_of(action: str) -> list[ev.Event]:
    tool = TOOLS[len(action) % len(TOOLS)]
    return [
        ev.ActionRequested(action=action, tool=tool, key="once"),
        ev.ActionRequested(action=action, tool=tool, approval=True),
        ev.ActionRecorded(action=action, tool=tool, cost=_cost),
        ev.ActionApproved(action=action),
        ev.ActionDenied(action=action),
        ev.ActionStarted(action=action, attempt=2),
        ev.ActionSucceeded(action=action, cost=_cost),
        ev.ActionFailed(action=action, error=_refused, cost=_cost),
        ev.ActionFailed(action=action, error=_refused, retry=True),
        ev.ActionTimedOut(action=action),
        ev.ActionTimedOut(action=action, retry=True),
        ev.ActionUncertain(action=action),
        ev.ActionReconciled(action=action, outcome="never_ran"),
        ev.ActionAbandoned(action=action),
        ev.ActionEvidence(action=action),
    ]


MOVES: tuple[ev.Event, ...] = (
    *(move for action in ACTIONS for move in _moves_of(action)),
    ev.TurnStarted(),
    ev.TurnStarted(retry=True),
    ev.TurnEnded(),
    ev.TurnEnded(outcome="failed", error=_refused),
)
"""Moves of turns and actions. Which of them are legal depends on the moment."""

LIFE: tuple[ev.Event, ...] = (ev.SessionPaused(), ev.SessionResumed(), ev.SessionClosed(), ev.SessionReopened())
"""Moves of the session itself."""


@st.composite
def patches(draw: st.DrawFn, data: dict[str, Any]) -> list[dict[str, Any]]:
    """A valid change below /data: an operation at a place chosen from the document."""
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
