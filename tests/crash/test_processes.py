"""Eight processes on one store: no lost update, no gap, no second session of a name, and followers miss nothing."""

from pathlib import Path

import pytest

from tests.crash.processes import run_all
from tests.crash.workload import Journal, check_whole, events_of, named, opened
from wakelog.log.verify import verify

PROCESSES = 8
sizes = pytest.mark.parametrize("count", [12, pytest.param(150, marks=pytest.mark.slow)])


def _appended(path: Path, names: list[list[str]], count: int) -> Journal:
    calls = [
        ("append_along", {"path": str(path), "names": own, "seed": f"p{i}", "count": count})
        for i, own in enumerate(names)
    ]
    said = run_all(calls)
    for lines in said:
        assert len(Journal.read(lines).acknowledged) == count
    everything = Journal.read(line for lines in said for line in lines)
    places = [(session, seq) for session, seq, _ in everything.acknowledged]
    assert len(set(places)) == len(places), "two processes were given the same place"
    return everything


@sizes
def test_eight_processes_on_one_session_lose_nothing_and_leave_no_gap(tmp_path: Path, count: int) -> None:
    journal = _appended(tmp_path, [["alpha"]] * PROCESSES, count)
    with opened(tmp_path) as engine:
        check_whole(engine, journal, "eight processes, one session")
        log = named(engine, "alpha")
        assert [entry.seq for entry in log.entries()] == list(range(1, log.head().seq + 1))
        ends = {seq for _, seq, _ in journal.acknowledged}
        assert log.head().seq in ends
        assert len({entry.commit_id for entry in log.entries()}) == PROCESSES * count + 1


@sizes
def test_eight_processes_on_many_sessions_lose_nothing(tmp_path: Path, count: int) -> None:
    names = [[f"own {i}", "shared", f"pair {i // 2}"] for i in range(PROCESSES)]
    journal = _appended(tmp_path, names, count)
    with opened(tmp_path) as engine:
        check_whole(engine, journal, "eight processes, many sessions")
        assert len(engine.sessions()) == PROCESSES + 1 + PROCESSES // 2


@sizes
def test_a_counter_kept_by_processes_that_insist_on_what_they_read_is_exact(tmp_path: Path, count: int) -> None:
    said = run_all([("count_up", {"path": str(tmp_path), "times": count})] * PROCESSES)
    counted = sorted(int(line.split()[1]) for lines in said for line in lines if line.startswith("counted"))
    assert counted == list(range(1, PROCESSES * count + 1))
    conflicts = sum(int(line.split()[1]) for lines in said for line in lines if line.startswith("conflicts"))
    assert conflicts, "nobody ever came second: the test shows nothing"
    with opened(tmp_path) as engine:
        log = named(engine, "counter")
        assert log.state()["data"]["count"] == PROCESSES * count
        assert log.head().seq == PROCESSES * count + 1
        assert verify(log).ok


@pytest.mark.parametrize("rounds", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_eight_processes_opening_a_new_store_at_once_agree_on_its_sessions(tmp_path: Path, rounds: int) -> None:
    paths = [str(tmp_path / str(i) / "deeper") for i in range(rounds)]
    names = ["alpha", "beta"]
    said = run_all([("open_new", {"paths": paths, "names": names})] * PROCESSES, rounds=rounds)
    assert all(lines == said[0] for lines in said), "they were given different sessions"
    assert len(set(said[0])) == rounds * len(names)
    for path in paths:
        with opened(path) as engine:
            assert sorted(head.name for head in engine.sessions()) == names
            assert all(head.seq == 1 for head in engine.sessions())


@sizes
def test_followers_in_other_processes_see_each_event_once_and_in_order(tmp_path: Path, count: int) -> None:
    with opened(tmp_path) as engine:
        named(engine, "alpha")
    writers = [
        ("append_along", {"path": str(tmp_path), "names": ["alpha", f"own {i}"], "seed": f"w{i}", "count": 2 * count})
        for i in range(3)
    ]
    total = 1 + sum(len(events_of(f"w{i}.{n}")) for i in range(3) for n in range(0, 2 * count, 2))
    followers = [("follow_along", {"path": str(tmp_path), "count": total})] * 2
    listeners = [("watch_changes", {"path": str(tmp_path), "count": 4 + 6 * count})]
    said = run_all([*writers, *followers, *listeners])
    with opened(tmp_path) as engine:
        wanted = [f"saw {entry.seq} {entry.hash.hex()}" for entry in named(engine, "alpha").entries()]
        assert said[3] == wanted
        assert said[4] == wanted
        for head in engine.sessions():
            heard = [int(line.split()[2]) for line in said[5] if line.split()[1] == head.session]
            assert heard == [commit.last for commit in engine.read(head.session)]
