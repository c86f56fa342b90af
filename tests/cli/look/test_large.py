"""A hundred thousand events: every command answers soon, and in memory that does not follow the history."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from wakelog.model import events as ev
from wakelog.store import open as open_store

TURNS, EVENTS_PER_TURN = 2000, 50
MEMORY_BYTES = 400 << 20
SECONDS = 20

COMMANDS = (
    ("status",),
    ("ls",),
    ("log",),
    ("log", "--oneline", "-n", "0"),
    ("log", "--events"),
    ("log", "--events", "-n", "0", "--ndjson"),
    ("log", "--tool", "rare"),
    ("log", "@1..@3", "-p"),
    ("show", "@1000"),
    ("show", "e50000"),
    ("state",),
    ("state", "/facts", "--at", "@1000"),
    ("diff",),
    ("diff", "@1", "@2000"),
    ("blame", "/facts/key7"),
    ("search", "needle"),
    ("query", "select count(*) from events"),
    ("tail",),
    ("tail", "--all"),
    ("ps",),
)


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "store"
    with open_store(path) as store:
        session = store.session("large", goal="be large")
        for turn in range(1, TURNS + 1):
            events: list[ev.Event] = [ev.TurnStarted(input=f"turn {turn}")]
            for number in range((EVENTS_PER_TURN - 4) // 2):
                action, tool = f"a{turn}.{number}", "rare" if turn == 777 and number == 3 else f"tool{number % 5}"
                events.append(ev.ActionRecorded(action=action, tool=tool, output=f"output {number} of turn {turn}"))
                events.append(ev.MessageAdded(role="assistant", content=f"step {number} of turn {turn}"))
            events.append(ev.FactRecorded(key=f"key{turn % 100}", value=turn))
            events.append(ev.NoteAdded(text="the needle" if turn == 1234 else "hay"))
            events.append(ev.TurnEnded())
            session.append(*events)
        assert session.head.seq > 99_000
    return path


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
sys.argv[1:] = sys.argv[2:]
from wakelog.cli import main
main()
"""


def _cpu_s() -> float:
    """Processor time of children so far: unlike the clock on the wall it does not depend on who else is busy."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.slow
def test_every_command_answers_about_a_hundred_thousand_events(large: Path) -> None:
    slow = {}
    for args in COMMANDS:
        before = _cpu_s()
        done = subprocess.run(
            [sys.executable, "-c", LIMITED, str(MEMORY_BYTES), *args, "--store", str(large)],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, (args, done.stderr[-2000:])
        assert done.stdout
        took = _cpu_s() - before
        # The first question that needs the index pays for making it.
        if took > (SECONDS * 6 if args == ("ls",) else SECONDS):
            slow[args] = took
    assert not slow
