"""Which later events depend on an event, also in every fork that shares it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import wakelog
from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.session import Session
from wakelog.store import Store
from wakelog.store.erasure import followers, scan


@pytest.fixture(params=["memory", ON_POSTGRES])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = postgres_url(request, tmp_path) if request.param == "postgres" else "memory:"
    with wakelog.open(url, redact=None) as opened:
        yield opened


def _flow(session: Session, *sources: int) -> int:
    flow = tuple((s, s) for s in sources)
    return session.append(EventDraft(ev.FactRecorded(key="k", value=1), derived_from=flow)).seq


def _found(session: Session, *targets: int) -> list[tuple[str, int]]:
    return [(f.session, f.seq) for f in followers(session.log, targets)]


def test_walks_through_what_names_what_names_it(store: Store) -> None:
    s = store.session("s")
    first = s.message("user", "x")
    second = _flow(s, first)
    other = s.message("user", "y")
    third = _flow(s, second, other)
    _flow(s, other)
    assert _found(s, first) == [(s.id, second), (s.id, third)]
    assert _found(s, first, second) == [(s.id, third)], "a target is not its own consequence"


def test_outcomes_name_their_request(store: Store) -> None:
    s = store.session("s")
    asked = s.append(ev.ActionRequested(action="a", tool="t")).seq
    s.append(ev.ActionStarted(action="a"), ev.ActionSucceeded(action="a"))
    assert _found(s, asked) == [(s.id, asked + 1), (s.id, asked + 2)]


def test_numbers_beyond_a_fork_point_are_not_confused(store: Store) -> None:
    parent = store.session("parent")
    said = parent.message("user", "x")
    left = parent.fork(name="left")
    right = parent.fork(name="right")
    a = left.message("user", "only left")
    right.message("user", "only right")  # the same number as a, another event
    right_after = _flow(right, a)
    assert _found(left, a) == []
    assert _found(parent, said) == []
    shared = _flow(right, said)
    assert _found(left, said) == [(right.id, shared)], "seen from one fork, what came of it in another"
    assert _found(right, a) == [(right.id, right_after)]


def test_forks_of_forks_know_what_came_in_between(store: Store) -> None:
    root = store.session("root")
    said = root.message("user", "x")
    child = root.fork(name="child")
    middle = _flow(child, said)
    grandchild = child.fork(name="grandchild")
    last = _flow(grandchild, middle)
    assert set(_found(root, said)) == {(child.id, middle), (grandchild.id, last)}
    store.delete(child)
    assert (grandchild.id, last) in _found(root, said), "also through one that was deleted"


def test_ranges_name_all_they_span(store: Store) -> None:
    s = store.session("s")
    first = s.message("user", "x")
    for _ in range(20):
        s.message("user", "y")
    wide = s.append(EventDraft(ev.FactRecorded(key="k", value=1), derived_from=((1, s.head.seq),))).seq
    assert _found(s, first) == [(s.id, wide)]


def test_scan_passes_over_what_is_gone(store: Store) -> None:
    from wakelog.log.removal import erase

    s = store.session("s")
    seq = s.message("user", "secret")
    found = [f.seq for f in scan(s.log, lambda e: ["s"] if "secret" in str(e) else [])]
    assert found == [seq]
    erase(s.log, [seq])
    assert list(scan(s.log, lambda e: ["s"] if "secret" in str(e) else [])) == []
