"""A synchronous pair: the primary is killed under load, the standby takes over, and nothing acknowledged is lost."""

import subprocess
import sys
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

import pytest

import wakelog
from tests.engines.postgres_server import Pair
from wakelog.engines.postgres import PostgresEngine
from wakelog.errors import UnavailableError
from wakelog.store import Store

PROCESSES = 2


def told(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def wait_for(path: Path, word: str, count: int) -> None:
    deadline = time.monotonic() + 60
    while sum(line[0] == word for line in told(path)) < count:
        assert time.monotonic() < deadline, f"{path.name} did not get to {count} × {word}"
        time.sleep(0.02)


def end(process: subprocess.Popen[bytes]) -> None:
    """No child outlives its test, however that ends."""
    if process.poll() is None:
        process.kill()
        process.wait()


def test_a_killed_primary_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    with ExitStack() as stack:
        pair = Pair()
        stack.callback(pair.stop)
        files = [tmp_path / f"w{i}.log" for i in range(PROCESSES)]
        writers = []
        for i in range(PROCESSES):
            command = [sys.executable, "-m", "tests.engines.pair_writer", pair.url, f"w{i}", str(files[i])]
            writer = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=Path(__file__).parents[2])
            stack.callback(end, writer)
            writers.append(writer)
        for file in files:
            wait_for(file, "ack", 30)
        with Store(PostgresEngine(pair.standby.url, create=False, patience_s=0.2)) as standby:
            session = standby.resume(next(iter(standby.sessions())).session)
            assert session.verify().ok
            with pytest.raises(UnavailableError) as caught:
                session.fact("here", 1)
            assert caught.value.kind == "read-only-server"
        pair.fail_over()
        before = {file: sum(line[0] == "ack" for line in told(file)) for file in files}
        for file in files:
            wait_for(file, "ack", before[file] + 30)
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write(b"\n")
            writer.stdin.close()
            assert writer.wait(180) == 0
        acknowledged: dict[str, list[int]] = defaultdict(list)
        for file in files:
            for word, name, number, *_ in told(file):
                if word == "ack":
                    acknowledged[name].append(int(number))
                assert word != "again" or int(number), "nobody noticed: the primary was not killed under load"
        with wakelog.open(pair.url) as store:
            assert {h.name for h in store.sessions()} == set(acknowledged)
            for name, numbers in acknowledged.items():
                session = store.resume(name)
                facts = [e.body["value"] for e in session.events(kind="fact.recorded")]
                assert numbers == list(range(len(numbers)))
                assert facts[: len(numbers)] == numbers
                # At most the append in flight when the writer stopped is stored but not acknowledged.
                assert len(facts) <= len(numbers) + 1
                assert session.verify().ok
