"""`kill -9` while appending: what was acknowledged is there, the rest whole or not at all, and life goes on."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.crash.processes import child, finish, run
from tests.crash.workload import Journal, check_survived
from tests.seeds import some
from wakelog.testing.faults import POINTS

APPEND_POINTS = [point for point in POINTS if "scrub" not in point]


def _kill_at_random(path: Path, seed: str, *, threads: int) -> Journal:
    with child("append_until_killed", path=str(path), seed=seed, threads=threads) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(random.Random(seed).uniform(0, 0.3))
        os.kill(process.pid, signal.SIGKILL)
        return Journal.read([first, *finish(process, killed=True)])


def _kill_at_point(path: Path, seed: str, point: str, times: int, threads: int) -> Journal:
    with child("append_until_point", path=str(path), seed=seed, point=point, times=times, threads=threads) as process:
        return Journal.read(finish(process, killed=True))


@pytest.mark.parametrize("threads", some([4, 2, 1]))
def test_acknowledged_appends_survive_a_kill_at_any_time(tmp_path: Path, threads: int) -> None:
    everything = Journal()
    for round_ in range(2):  # the second child finds what the first one left
        seed = f"kill-{threads}-{round_}"
        journal = _kill_at_random(tmp_path, seed, threads=threads)
        everything.tried |= journal.tried
        everything.acknowledged += journal.acknowledged
        check_survived(tmp_path, everything, seed)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(60))
def test_acknowledged_appends_survive_many_kills(tmp_path: Path, number: int) -> None:
    seed = f"kills-{number}"
    check_survived(tmp_path, _kill_at_random(tmp_path, seed, threads=1 + number % 8), seed)


@pytest.mark.parametrize("point", APPEND_POINTS)
@pytest.mark.parametrize(("times", "threads"), some([(25, 3), (1, 1), (30, 1)]))
def test_a_process_that_dies_inside_an_append_leaves_it_whole_or_absent(
    tmp_path: Path, point: str, times: int, threads: int
) -> None:
    seed = f"{point}-{times}-{threads}"
    journal = _kill_at_point(tmp_path, seed, point, times, threads)
    check_survived(tmp_path, journal, seed)


@pytest.mark.slow
@pytest.mark.parametrize("point", APPEND_POINTS)
@pytest.mark.parametrize("times", [*range(2, 12), 50, 100, 150])
def test_a_process_that_dies_inside_an_append_at_many_points(tmp_path: Path, point: str, times: int) -> None:
    seed = f"{point}-{times}"
    journal = _kill_at_point(tmp_path, seed, point, times, threads=1 + times % 3)
    check_survived(tmp_path, journal, seed)


def test_what_was_committed_before_the_answer_is_found_again_by_its_id(tmp_path: Path) -> None:
    journal = _kill_at_point(tmp_path, "lost-answer", "after-commit", 20, 1)
    acknowledged = len(journal.acknowledged)
    check_survived(tmp_path, journal, "lost answer")
    assert len(journal.acknowledged) > acknowledged


@pytest.mark.parametrize("times", [150, pytest.param(5000, marks=pytest.mark.slow)])
def test_a_thread_interrupted_again_and_again_holds_up_nobody_and_loses_nothing(tmp_path: Path, times: int) -> None:
    lines = run("append_under_interrupts", path=str(tmp_path), seed="interrupted", times=times)
    assert int(lines[-1].removeprefix("interrupted ")) > times // 10, "the test does not interrupt"
    check_survived(tmp_path, Journal.read(lines), "interrupts")
