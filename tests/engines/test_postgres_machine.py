"""Random verbs on logs over PostgreSQL, against the toy."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.engines.postgres_server import Server
from tests.seeds import examples
from wakelog.engine import Engine
from wakelog.engines.postgres import PostgresEngine
from wakelog.testing.machine import LogMachine


def machine(server: Server) -> type[LogMachine]:
    class PostgresMachine(LogMachine):
        def make_engine(self, folder: Path) -> Engine:
            return PostgresEngine(server.url, ns=str(folder))

    return PostgresMachine


def _settings(count: int, steps: int) -> settings:
    return settings(
        max_examples=examples(count),
        stateful_step_count=steps,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


def test_random_verbs(postgres: Server) -> None:
    run_state_machine_as_test(machine(postgres), settings=_settings(8, 20))


@pytest.mark.slow
def test_for_longer(postgres: Server) -> None:
    run_state_machine_as_test(machine(postgres), settings=_settings(100, 40))
