"""New sessions are listed in the order in which they were made, however fast that is."""

import threading
from pathlib import Path

import pytest

import wakelog
from wakelog.model.ids import is_session_id
from wakelog.store import new_ids
from wakelog.store.new_ids import new_root_id

AT_US = 1_790_000_000_123_456


@pytest.mark.parametrize("where", ["memory:", "folder"])
def test_sessions_of_one_millisecond_are_listed_in_order(tmp_path: Path, where: str) -> None:
    names = [f"n{number}" for number in range(50)]
    with wakelog.open(where if where == "memory:" else tmp_path / where, clock=lambda: AT_US) as store:
        for name in names:
            store.session(name)
        assert [head.name for head in store.sessions()] == names


def test_so_are_those_of_several_stores_and_threads_of_a_process() -> None:
    made: list[list[str]] = [[] for _ in range(4)]

    def make(into: list[str]) -> None:
        into.extend(new_root_id(AT_US) for _ in range(200))

    threads = [threading.Thread(target=make, args=(into,)) for into in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(into == sorted(into) for into in made)
    ids = {one for into in made for one in into}
    assert len(ids) == 800
    assert all(map(is_session_id, ids))


def test_ids_sort_by_time_and_a_clock_that_goes_back_is_believed() -> None:
    later, earlier = new_root_id(AT_US + 1000), new_root_id(AT_US)
    assert earlier < later


def test_where_no_number_is_left_it_is_random_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_ids, "_last", (AT_US // 1000, (1 << new_ids.ENTROPY_BITS) - 1))
    assert is_session_id(new_root_id(AT_US))
