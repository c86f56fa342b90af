"""Commits sealed by the native core: the same bytes, state and way back as by Python, or left to Python."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.native.core import installed_core
from wakelog.errors import WakelogError
from wakelog.log import seal as sealing
from wakelog.log.admission import admit
from wakelog.log.native_seal import seal_natively
from wakelog.log.seal import Tip, seal
from wakelog.model import events as ev
from wakelog.model.ids import SessionId
from wakelog.model.records import EventDraft
from wakelog.state.fold import Fold

installed_core()

SESSION = SessionId("s_" + "0" * 26)
LONG = "A text that is stored as a payload.\n" * 20

ids = st.sampled_from(["a", "b", "~/é", ""])
texts = st.sampled_from(["", "x", 'é"\x00', LONG, LONG + "!"])
amounts = st.sampled_from([0, 0, 1, -1, 2**53 - 1])
costs = st.builds(ev.Cost, tokens_in=amounts, tokens_out=amounts, usd_micros=amounts, duration_us=amounts)
lists = st.lists(texts, max_size=2).map(tuple)
outcomes = st.sampled_from(["completed", "failed", "interrupted"])
patches: Any = st.lists(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "remove", "replace", "move"]),
            "path": st.sampled_from(["/data/a", "/data/a/0", "/data/b", "/data", "/database", "/turn"]),
        },
        optional={"value": st.sampled_from(["x", 1, 1.5, None, [], {}, {"k": [LONG]}])},
    ),
    max_size=3,
)
events = st.one_of(
    st.builds(ev.TurnStarted, retry=st.booleans(), holder=texts, input=texts),
    st.builds(ev.TurnEnded, outcome=outcomes, output=texts),
    st.builds(ev.TurnEnded, outcome=outcomes, error=st.just(ev.Failure("x"))),
    st.builds(ev.MessageAdded, role=ids, content=texts),
    st.builds(ev.NoteAdded, text=texts),
    st.builds(ev.DecisionMade, choice=texts, because=texts, alternatives=lists, evidence=st.sampled_from([(), (1,)])),
    st.builds(ev.DeadEndNoted, tried=texts, learned=texts),
    st.builds(ev.FileChanged, path=ids, change=st.sampled_from(["created", "modified"])),
    st.builds(ev.ActionRequested, action=ids, tool=ids, approval=st.booleans(), key=texts, input_hash=ids),
    st.builds(ev.ActionStarted, action=ids, attempt=amounts),
    st.builds(ev.ActionSucceeded, action=ids, output=texts, cost=costs),
    st.builds(
        ev.ActionRecorded,
        action=ids,
        tool=ids,
        outcome=st.sampled_from(["succeeded", "denied", "failed", "timed_out"]),
        cost=costs,
        reused=amounts,
    ),
    st.builds(ev.ActionApproved, action=ids),
    st.builds(ev.ActionFailed, action=ids, error=st.just(ev.Failure("x")), retry=st.booleans()),
    st.builds(ev.StatePatched, patch=patches, why=texts),
    st.builds(ev.ItemsKept, format=ids, counts=st.sampled_from([(), (1, 2)]), rest=texts, ids=lists),
    st.builds(ev.FactRecorded, key=ids, value=texts),
    st.builds(ev.LabelsSet, labels=st.dictionaries(ids, texts, max_size=1)),
    st.sampled_from([ev.SessionPaused(), ev.SessionResumed()]),
)
drafts = st.builds(
    EventDraft,
    event=events,
    actor=st.sampled_from(["agent", "user", "é", "".join(["ag", "ent"])]),
    cause=st.sampled_from([0, 1, 2, 99, -1, True]),
    derived_from=st.sampled_from(
        [(), ((1, 1),), ((1, 1), (1, 2)), ((2, 1),), ((0, 1),), ((1, 99),), ((1,),), [(1, 1)]]
    ),
    source=st.sampled_from(["", "web", "ü", "~/a"]),
    trust=st.sampled_from(["trusted", "trusted", "unverified", "untrusted", "".join(["trus", "ted"]), "blindly"]),
    within=st.sampled_from([None, None, (1, 1), (2, 1)]),
)
commits = st.lists(st.lists(events | drafts, min_size=1, max_size=4), max_size=6)


@contextmanager
def without_core() -> Iterator[None]:
    with patch.object(sealing, "seal_natively", None):
        yield


class Session:
    """A session that is only sealed, never stored."""

    def __init__(self) -> None:
        self.tip = Tip(Fold())
        self.seal([ev.SessionOpened(goal="g")])

    def seal(self, given: list[Any], *, is_undone: bool = False) -> Any:
        """The commit, or the error; and the tip after it."""
        try:
            with patch("wakelog.log.seal.os.urandom", bytes):
                sealed = seal(self.tip, SESSION, admit(given, None), now=1)
        except WakelogError as exc:
            return type(exc), str(exc), self.stands()
        answer = sealed.commit
        if is_undone:
            sealed.undo()
        return answer, self.stands()

    def stands(self) -> Any:
        tip = self.tip
        return tip.fold.dump(), tip.seq, tip.hash, tip.at, tip.bytes_since, tip.payloads.known, tip.payloads.new


TURN: list[ev.Event] = [
    ev.TurnStarted(holder="h"),
    ev.ActionRequested(action="a", tool="t", key="k"),
    ev.ActionStarted(action="a", attempt=2),
    ev.ActionSucceeded(action="a", output=LONG, cost=ev.Cost(1, 2, 3, 4)),
    ev.ActionRecorded(action="b", tool="t", cost=ev.Cost(1)),
    ev.FileChanged(path="~/é"),
    ev.DecisionMade(choice="c", because="d", alternatives=("e",), assumptions=("f",)),
    ev.DeadEndNoted(tried="g"),
    ev.TurnEnded(outcome="interrupted"),
]


PATCHED: list[ev.Event | EventDraft] = [
    ev.StatePatched([{"op": "add", "path": "/data/a", "value": [{"k": LONG}]}], why="w"),
    ev.StatePatched([{"op": "add", "path": "/data/a/1", "value": 1}, {"op": "remove", "path": "/data/a/0"}]),
    ev.ItemsKept(format="f", counts=(2, 1), rest=LONG + "{}", ids=("i", "j")),
    EventDraft(ev.NoteAdded(text="n"), actor="tool", source="web", trust="unverified", derived_from=((1, 1), (1, 2))),
]


@given(commits, st.booleans(), st.integers(0, 5))
@example([TURN, [ev.TurnStarted(retry=True)], [ev.TurnStarted()]], True, 1)
@example([[EventDraft(event, actor="user") for event in TURN], [ev.TurnStarted(retry=True)]], False, 0)
@example([PATCHED, PATCHED], True, 1)
@example([TURN, [ev.MessageAdded(role="user", content=LONG)]], False, 5)
def test_a_commit_is_sealed_the_same(given_commits: list[list[Any]], is_hashed: bool, undone: int) -> None:
    one, other = Session(), Session()
    if is_hashed:
        one.tip.fold.state_hash()
        other.tip.fold.state_hash()
    for place, given_events in enumerate(given_commits):
        mine = one.seal(given_events, is_undone=place == undone)
        with without_core():
            theirs = other.seal(given_events, is_undone=place == undone)
        assert mine == theirs
        assert one.tip.fold.state_hash() == other.tip.fold.state_hash()


def test_a_usual_turn_is_sealed_by_the_core_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seal_natively is not None
    session = Session()
    monkeypatch.setattr(sealing, "_seal_in_python", None)
    assert session.seal(TURN)[0].turns == (1, 1)
    assert session.seal([EventDraft(ev.TurnStarted(), actor="user"), EventDraft(ev.TurnEnded(), within=(2, 1))])
    assert session.seal(PATCHED)[0].kinds == ("state.patched", "items.kept", "note.added")
