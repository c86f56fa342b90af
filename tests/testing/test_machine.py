"""Random verbs on real logs and on the toy."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.seeds import examples
from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.testing.machine import LogMachine

COMMON = settings(
    stateful_step_count=25,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


class MemoryMachine(LogMachine):
    def make_engine(self, folder: Path) -> Engine:
        return MemoryEngine()

    def reopen(self, engine: Engine) -> Engine:
        return engine


class SqliteMachine(LogMachine):
    def make_engine(self, folder: Path) -> Engine:
        return SqliteEngine(folder / "log.db")


MemoryMachine.TestCase.settings = settings(COMMON, max_examples=examples(40))
SqliteMachine.TestCase.settings = settings(COMMON, max_examples=examples(25))

TestLogsOverMemory = MemoryMachine.TestCase
TestLogsOverSqlite = SqliteMachine.TestCase


@pytest.mark.slow
@pytest.mark.parametrize("machine", [MemoryMachine, SqliteMachine])
def test_for_longer(machine: type[LogMachine]) -> None:
    run_state_machine_as_test(machine, settings=settings(COMMON, max_examples=examples(300), stateful_step_count=40))
