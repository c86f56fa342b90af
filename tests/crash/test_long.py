"""A hundred thousand events in one session: everything is right, and memory does not follow the length."""

from pathlib import Path

import pytest

from tests.crash.processes import run
from tests.crash.workload import named, opened
from wakelog.log.verify import verify
from wakelog.model import events as ev

EVENTS = 100_000
KEYS = 50


def _fact(seq: int) -> ev.Event:
    return ev.FactRecorded(key=f"k{seq % KEYS}", value=seq)


def _fill(path: Path, events: int, per_commit: int) -> None:
    with opened(path) as engine:
        log = named(engine, "alpha")
        for first in range(2, events + 1, per_commit):
            log.append(*(_fact(seq) for seq in range(first, min(first + per_commit, events + 1))))


def _facts_at(seq: int) -> dict[str, int]:
    return {f"k{at % KEYS}": at for at in range(max(2, seq - KEYS + 1), seq + 1)}


@pytest.mark.parametrize("per_commit", [100, pytest.param(1, marks=pytest.mark.slow)])
def test_a_hundred_thousand_events_are_read_right_in_little_memory(tmp_path: Path, per_commit: int) -> None:
    _fill(tmp_path / "long", EVENTS, per_commit)
    _fill(tmp_path / "short", EVENTS // 50, per_commit)
    with opened(tmp_path / "long") as engine:
        log = named(engine, "alpha")
        assert log.head().seq == EVENTS
        for seq in (EVENTS, EVENTS // 2, 3 * KEYS):
            facts = log.state(seq)["facts"]
            assert {key: fact["value"] for key, fact in facts.items()} == _facts_at(seq)
        assert [entry.seq for entry in log.entries(after=EVENTS - 10)] == list(range(EVENTS - 9, EVENTS + 1))
        assert log.entry(EVENTS // 3).event.value == EVENTS // 3  # type: ignore[attr-defined]
        report = verify(log, log.anchor())
        assert report.ok
        assert report.events == EVENTS
    lines = run("read_in_little_memory", short=str(tmp_path / "short"), long=str(tmp_path / "long"))
    few, many, short_kb, long_kb = map(int, lines[0].split())
    assert (few, many) == (EVENTS // 50, EVENTS)
    # The events alone are dozens of megabytes once they are objects; a page of them at a time is not.
    assert long_kb - short_kb < 25_000, f"reading {many} events took {long_kb - short_kb} KB more than {few}"
