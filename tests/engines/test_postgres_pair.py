"""A synchronous pair: the primary is killed under load, the standby takes over, and nothing acknowledged is lost."""

import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import wakelog
from tests.engines.postgres_server import Pair

PROCESSES = 2


def told(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def wait_for(path: Path, word: str, count: int) -> None:
    deadline = time.monotonic() + 60
    while sum(line[0] == word for line in told(path)) < count:
        assert time.monotonic() < deadline, f"{path.name} did not get to {count} × {word}"
        time.sleep(0.02)


def test_a_killed_primary_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    pair = Pair()
    try:
        files = [tmp_path / f"w{i}.log" for i in range(PROCESSES)]
        writers = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.engines.pair_writer", pair.url, f"w{i}", str(files[i])],
                stdin=subprocess.PIPE,
                cwd=Path(__file__).parents[2],
            )
            for i in range(PROCESSES)
        ]
        for file in files:
            wait_for(file, "ack", 30)
        pair.fail_over()
        before = {file: sum(line[0] == "ack" for line in told(file)) for file in files}
        for file in files:
            wait_for(file, "ack", before[file] + 30)
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write(b"\n")
            writer.stdin.close()
            assert writer.wait(60) == 0
        acknowledged: dict[str, list[int]] = defaultdict(list)
        lost = 0
        for file in files:
            for word, name, number, *_ in told(file):
                if word == "ack":
                    acknowledged[name].append(int(number))
                lost += word == "lost"
        assert lost, "nobody noticed: the primary was not killed under load"
        with wakelog.open(pair.url) as store:
            assert {h.name for h in store.sessions()} == set(acknowledged)
            for name, numbers in acknowledged.items():
                session = store.resume(name)
                facts = [e.body["value"] for e in session.events(kind="fact.recorded")]
                assert numbers == list(range(len(numbers)))
                assert facts[: len(numbers)] == numbers
                # At most the one that was in flight when the writer stopped is there unacknowledged.
                assert len(facts) <= len(numbers) + 1
                assert session.verify().ok
    finally:
        pair.stop()
