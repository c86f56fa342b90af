"""Bisection finds the first bad turn in few tests, or says that it cannot; files can be checked out as they were."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import wakelog
from wakelog.errors import InvalidInputError, NotAllowedError
from wakelog.session import Session
from wakelog.session.bisection import Bisection, BisectPoint
from wakelog.store import Store


@pytest.fixture
def store() -> Iterator[Store]:
    with wakelog.open("memory:") as store:
        yield store


def _turns(store: Store, count: int) -> Session[Any]:
    session = store.session("s", data={"n": 0}, folder="")
    for number in range(1, count + 1):
        with session.turn(user=f"turn {number}") as turn:
            turn.data["n"] = number
    return session


def _n(session: Session[Any], point: BisectPoint) -> Any:
    return session.log.state(point.seq)["data"]["n"]


@pytest.mark.parametrize("count", [1, 2, 3, 16])
def test_the_first_bad_turn_is_found_wherever_it_is(store: Store, count: int) -> None:
    session = _turns(store, count)
    for first_bad in range(1, count + 1):
        tested: list[int] = []

        def is_good(point: BisectPoint, limit: int = first_bad, tested: list[int] = tested) -> bool:
            tested.append(point.turn)
            return bool(_n(session, point) < limit)

        found = session.history.bisect("@", "@0", is_good)
        assert found.first_bad is not None
        assert found.first_bad.turn == first_bad
        assert len(tested) <= count.bit_length()
        assert found.change is not None
        assert [(c.pointer, c.after) for c in found.change.changes if c.pointer == "/data/n"] == [
            ("/data/n", first_bad)
        ]


def test_what_cannot_be_tested_is_passed_over(store: Store) -> None:
    session = _turns(store, 8)
    found = session.history.bisect("@8", "@1", lambda p: None if p.turn in (4, 5) else p.turn < 3)
    assert found.first_bad is not None
    assert found.first_bad.turn == 3


def test_it_is_not_decided_where_everything_between_was_skipped(store: Store) -> None:
    session = _turns(store, 6)
    found = session.history.bisect("@6", "@1", lambda p: None if p.turn in (3, 4) else p.turn < 3)
    assert (found.first_bad, found.change) == (None, None)
    assert [p.turn for p in found.suspects] == [3, 4, 5]
    nothing = session.history.bisect("@6", "@1", lambda p: None)
    assert [p.turn for p in nothing.suspects] == [2, 3, 4, 5, 6]


def test_turns_that_were_rewound_are_not_tested(store: Store) -> None:
    session = _turns(store, 4)
    session.rewind("@2")
    with session.turn(user="again") as turn:
        turn.data["n"] = 9
    tested: list[int] = []

    def is_good(point: BisectPoint) -> bool:
        tested.append(point.turn)
        return bool(_n(session, point) < 9)

    found = session.history.bisect("@", "@0", is_good)
    assert found.first_bad is not None
    assert found.first_bad.turn == 5
    assert not {3, 4} & set(tested)
    with pytest.raises(InvalidInputError, match="was rewound"):
        session.history.start_bisect("@5", "@4")


def test_a_session_without_turns_is_searched_by_events(store: Store) -> None:
    session = store.session("s", folder="")
    for number in range(10):
        session.fact("n", number)
    found = session.history.bisect(
        "@", "e1", lambda p: session.log.state(p.seq)["facts"].get("n", {}).get("value", 0) < 6
    )
    assert found.first_bad is not None
    assert found.first_bad.place == "e8"


def test_the_good_point_comes_before_the_bad_one(store: Store) -> None:
    session = _turns(store, 3)
    for bad, good in (("@1", "@2"), ("@2", "@2")):
        with pytest.raises(InvalidInputError, match="must come before"):
            session.history.start_bisect(bad, good)


def test_a_search_goes_on_step_by_step_and_is_a_value(store: Store) -> None:
    session = _turns(store, 4)
    search = session.history.start_bisect("@", "@0")
    while search.next is not None:
        search = search.mark("bad")
        assert msgspec.json.decode(msgspec.json.encode(search), type=Bisection) == search
    found = session.history.end_bisect(search)
    assert found.first_bad is not None
    assert found.first_bad.turn == 1
    with pytest.raises(NotAllowedError, match="nothing left"):
        search.mark("good")


def test_a_verdict_that_contradicts_is_refused(store: Store) -> None:
    search = _turns(store, 4).history.start_bisect("@", "@0")
    with pytest.raises(InvalidInputError, match="known to be bad"):
        search.mark("good", search.points[-1])
    with pytest.raises(InvalidInputError, match="known to be good"):
        search.mark("bad", search.points[0])
    with pytest.raises(InvalidInputError, match="not good, bad or skip"):
        search.mark("perhaps")  # type: ignore[arg-type]


# Files


def test_files_come_out_as_they_were_at_a_point(store: Store, tmp_path: Path) -> None:
    session = store.session("s", folder="")
    first = session.files.record("src/a.py", "created", after="one\n", after_mode="100755")
    second = session.files.record("src/a.py", before="one\n", after="two\n")
    session.files.record("b.txt", "created", after="b")
    session.files.record("src/a.py", "deleted", before="two\n")
    out = tmp_path / "out"
    out.mkdir()
    done = session.files.checkout(first, out)
    assert (done.written, done.missing) == (("src/a.py",), ())
    assert (out / "src/a.py").read_text() == "one\n"
    assert (out / "src/a.py").stat().st_mode & 0o111
    session.files.checkout(second, out)
    assert (out / "src/a.py").read_text() == "two\n"
    last = session.files.checkout("@", out)
    assert (last.written, last.removed) == (("b.txt",), ("src/a.py",))
    assert not (out / "src/a.py").exists()


def test_what_leads_out_of_the_folder_or_is_not_known_is_not_written(store: Store, tmp_path: Path) -> None:
    session = store.session("s", folder="")
    (tmp_path / "out").mkdir()
    (tmp_path / "else").mkdir()
    (tmp_path / "out" / "link").symlink_to(tmp_path / "else")
    for path in ("../x", "/etc/x", "link/x", ".git/config"):
        session.files.record(path, "created", after="x")
    session.files.record("unknown")
    session.files.record("pointer", "created", after="target", after_mode="120000")
    done = session.files.checkout("@", tmp_path / "out")
    assert done.written == ()
    assert {path for path, _ in done.missing} == {"../x", "/etc/x", "link/x", ".git/config", "unknown", "pointer"}
    assert list((tmp_path / "else").iterdir()) == []
    assert not (tmp_path / "x").exists()


def test_a_place_that_cannot_be_written_is_told(store: Store, tmp_path: Path) -> None:
    session = store.session("s", folder="")
    session.files.record("a/b", "created", after="x")
    (tmp_path / "a").write_text("a file where a folder is wanted")
    with pytest.raises(NotAllowedError, match="cannot be written"):
        session.files.checkout("@", tmp_path)
