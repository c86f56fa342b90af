"""`os.fork` with an open store: parent and child go on with the same objects, and neither harms the other."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.crash.processes import child, finish, run
from tests.crash.workload import Journal, check_survived

SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 30))]


@pytest.mark.parametrize("seed", SEEDS)
def test_parent_and_children_go_on_with_inherited_objects_while_threads_write(tmp_path: Path, seed: int) -> None:
    journal = Journal.read(run("fork_among_threads", path=str(tmp_path), seed=f"fork-{seed}", forks=4))
    children = {commit_id for commit_id in journal.tried if "child" in commit_id}
    assert len(children) == 4 * 16, "a child did not do its work"
    check_survived(tmp_path, journal, f"fork among threads, seed {seed}")


def test_a_parent_that_closes_first_does_not_take_its_childs_log_away(tmp_path: Path) -> None:
    journal = Journal.read(run("fork_then_close_first", path=str(tmp_path), seed="close"))
    assert len(journal.acknowledged) == 23
    check_survived(tmp_path, journal, "parent closed first")


def test_a_child_that_ends_late_does_not_remove_what_others_wrote_since(tmp_path: Path) -> None:
    with child("fork_and_outlive", path=str(tmp_path), seed="late", stdin=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        lines = [parent.stdout.readline() for _ in range(3)]  # try, ack, child: in any order
        assert "child\n" in lines
        parent.wait()
        with child("append_until_killed", path=str(tmp_path), seed="others", threads=2) as others:
            assert others.stdout is not None
            lines += [others.stdout.readline() for _ in range(40)]
            os.kill(others.pid, signal.SIGKILL)
            lines += finish(others, killed=True)
        assert (tmp_path / "log.db-wal").stat().st_size, "the killed process left nothing to lose"
        parent.stdin.write("go\n")
        parent.stdin.flush()
        lines += finish(parent)  # at the end of output: the child has ended too
    check_survived(tmp_path, Journal.read(lines), "a late child")


def test_the_child_of_a_closed_store_finds_it_closed(tmp_path: Path) -> None:
    assert run("fork_of_closed_store", path=str(tmp_path)) == ["store-closed"]


def test_a_fork_in_the_middle_of_an_append_harms_nobody(tmp_path: Path) -> None:
    lines = run("fork_in_signal_handler", path=str(tmp_path), seed="handler")
    journal = Journal.read(lines)
    assert len(journal.acknowledged) == 60
    assert {line for line in lines if line.split()[0] not in ("try", "ack")} <= {"looked", "store-forked"}
    check_survived(tmp_path, journal, "fork in a signal handler")


def test_a_fork_inside_the_hooks_of_another_fork_does_not_hang(tmp_path: Path) -> None:
    lines = run("fork_inside_fork", path=str(tmp_path), seed="nested")
    journal = Journal.read(lines)
    assert len(journal.acknowledged) == 2
    assert len([line for line in lines if line in ("looked", "store-forked")]) == 2
    check_survived(tmp_path, journal, "a fork inside a fork")


def test_a_fork_behind_pythons_back_is_refused_the_store_and_harms_nobody(tmp_path: Path) -> None:
    lines = run("fork_behind_pythons_back", path=str(tmp_path), seed="raw")
    assert "store-forked" in lines
    check_survived(tmp_path, Journal.read(lines), "a fork behind Python's back")
