"""Schemathesis over the whole interface: whatever is sent, the server answers as its document says, and never fails.

One check is left out: that every request which fits the schema is accepted. Many are refused for what they mean: a
place that is not in the session, a patch that does not apply, SQL that is none.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi import checks

from tests.http.world import World
from wakelog.http.openapi import document
from wakelog.http.serving import Running, serving
from wakelog.http.state import Settings
from wakelog.http.table import all_routes

STREAMS = {route.name for route in all_routes() if route.media == "text/event-stream"}
LEFT_OUT = [checks.positive_data_acceptance]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(Settings(url=str(tmp_path_factory.mktemp("served")), rate=0)) as running:
        World(running, "default").close()
        yield running


def _operations() -> dict[str, Any]:
    schema = schemathesis.openapi.from_dict(dict(document()))
    found = {}
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.definition.raw["operationId"] not in STREAMS:
            found[operation.definition.raw["operationId"]] = operation
    return found


OPERATIONS = _operations()


def fuzz(name: str, running: Running, examples: int, number: int) -> None:
    """Sends requests made for one route, fitting and not, and holds the answers against the document."""
    operation = OPERATIONS[name]
    both = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
    strategies = [operation.as_strategy(generation_mode=mode) for mode in both]
    headers = {"Authorization": f"Bearer {running.key}"}

    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of(*strategies))
    def play(case: schemathesis.Case) -> None:
        case.call_and_validate(base_url=running.url, headers=headers, excluded_checks=LEFT_OUT, timeout=60)

    play()


def test_every_route_is_fuzzed() -> None:
    assert set(OPERATIONS) | STREAMS == {route.name for route in all_routes()}


@pytest.mark.parametrize("name", OPERATIONS)
def test_whatever_is_sent_is_answered_as_documented(name: str, running: Running) -> None:
    fuzz(name, running, examples=6, number=1)


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 3, 4])
@pytest.mark.parametrize("name", OPERATIONS)
def test_whatever_is_sent_at_length(name: str, number: int, running: Running) -> None:
    fuzz(name, running, examples=120, number=number)
