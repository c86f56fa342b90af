"""Many processes that open a new store at once all get the same one."""

import subprocess
import sys
from pathlib import Path

import pytest

import wakelog
from tests.engines.postgres_server import Server

PROCESSES = 8


@pytest.mark.parametrize("times", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_eight_processes_open_a_new_store_at_once_again_and_again(postgres: Server, times: int) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.engines.opening_writer", f"p{i}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        for i in range(PROCESSES)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for number in range(times):
            postgres.sql(f"create database opened{times}x{number} template template0 locale 'C'")
            url = f"postgresql://postgres@127.0.0.1:{postgres.port}/opened{times}x{number}"
            for process in processes:
                assert process.stdin is not None
                process.stdin.write(f"{url}\n")
                process.stdin.flush()
            for process in processes:
                assert process.stdout is not None
                assert process.stdout.readline() == "ok\n"
            with wakelog.open(url, create=False) as store:
                assert {h.name for h in store.sessions()} == {"shared", *(f"p{i}" for i in range(PROCESSES))}
                assert len(store.resume("shared").state().facts) == PROCESSES
                assert all(store.resume(h.session).verify().ok for h in store.sessions())
    finally:
        for process in processes:
            process.communicate(timeout=180)
