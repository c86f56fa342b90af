"""Promises that hold for any history: what the verbs report is the fold, diffs are exact, undo is the way back."""

import operator
from typing import Any

import jsonpatch
from hypothesis import given, settings
from hypothesis import strategies as st

import wakelog
from tests.seeds import examples
from wakelog.state.digest import state_hash
from wakelog.testing.strategies import values

KEYS = st.sampled_from(["a", "b", "c/d", "e~f", "ключ"])
WORDS = st.text(min_size=1, max_size=8).filter(str.strip)
VERBS = st.one_of(
    st.tuples(st.just("fact"), KEYS, values),
    st.tuples(st.just("retract"), KEYS),
    st.tuples(st.just("decide"), WORDS),
    st.tuples(st.just("dead_end"), WORDS),
    st.tuples(st.just("files.record"), KEYS),
    st.tuples(st.just("context.touch"), KEYS),
    st.tuples(st.just("set_goal"), WORDS),
    st.tuples(st.just("checkpoint"), KEYS),
    st.tuples(st.just("data"), KEYS, values),
    st.tuples(st.just("rewind"), st.integers(0, 1000)),
)


def play(session: Any, verbs: list[tuple[Any, ...]]) -> None:
    for name, *args in verbs:
        if name == "data":
            with session.turn(user="change it") as turn:
                turn.data[args[0]] = args[1]
        elif name == "rewind":
            session.rewind(1 + args[0] % session.head.seq)
        elif name != "retract" or args[0] in session.state().facts:
            operator.attrgetter(name)(session)(*args)


def fold_with_a_foreign_library(session: Any, upto: int) -> Any:
    state: Any = {}
    for entry in session.log.entries(upto=upto):
        state = jsonpatch.apply_patch(state, entry.delta)
    return state


many = settings(max_examples=examples(40))


@many
@given(st.lists(VERBS, max_size=12))
def test_the_deltas_folded_by_another_library_give_the_reported_state(verbs: list[tuple[Any, ...]]) -> None:
    with wakelog.open("memory:") as store:
        session = store.session("s")
        play(session, verbs)
        assert fold_with_a_foreign_library(session, session.head.seq) == session.log.state()
        assert state_hash(session.log.state()) == session.log.state_hash()


@many
@given(st.lists(VERBS, min_size=1, max_size=12), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_diff_applied_to_the_first_state_gives_the_second(
    verbs: list[tuple[Any, ...]], first: int, second: int
) -> None:
    with wakelog.open("memory:") as store:
        session = store.session("s")
        play(session, verbs)
        a, b = 1 + first % session.head.seq, 1 + second % session.head.seq
        found = session.diff(a, b)
        assert jsonpatch.apply_patch(session.log.state(session.seq(a)), found.patch) == session.log.state(
            session.seq(b)
        )
        told = {"view", "turn", "lease"}
        changed = {op["path"].split("/")[1] for op in found.patch} - told
        assert changed == {c.pointer.split("/")[1] for c in found.changes}


@many
@given(st.lists(VERBS, min_size=1, max_size=10), st.integers(0, 10**6))
def test_undoing_a_rewind_gives_the_same_state_hash(verbs: list[tuple[Any, ...]], point: int) -> None:
    with wakelog.open("memory:") as store:
        session = store.session("s")
        play(session, verbs)
        before = session.log.state_hash()
        session.rewind(1 + point % session.head.seq)
        session.undo()
        assert session.log.state_hash() == before
        assert session.verify().ok
