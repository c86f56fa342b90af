"""Schemathesis over the whole interface: whatever is sent, the server answers as its document says, and never fails.

What fits the schema is sent about a session that is there, a fresh fork each time; what does not fit must be refused.
One check is left out: that everything which fits is accepted. Many requests are refused for what they mean: a place
that is not in the session, a patch that does not apply, SQL that is none.
"""

import functools
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from schemathesis.specs.openapi import checks

from tests.http.world import World
from tests.seeds import SEED, examples
from wakelog.http.guards import Rates
from wakelog.http.openapi import document
from wakelog.http.routes import all_routes
from wakelog.http.server import RunningServer, serving
from wakelog.http.state import Settings

STREAMS = {route.name for route in all_routes() if route.media == "text/event-stream"}
NAMES = [route.name for route in all_routes() if route.name not in STREAMS]
LEFT_OUT: Any = [checks.positive_data_acceptance]
FITS, DOES_NOT = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE
_numbers = count()


class Target:
    """A server with a world in it."""

    def __init__(self, running: RunningServer) -> None:
        self.running = running
        self.world = World(running, "default")

    def aim(self, case: schemathesis.Case) -> None:
        """Changes a request to name an existing session."""
        fork = self.world.session.fork(name=f"fuzzed {next(_numbers)}")
        if "session" in case.path_parameters:
            case.path_parameters["session"] = fork.name
        if isinstance(case.body, dict) and isinstance(case.body.get("session"), str):
            case.body["session"] = fork.id

    def send(self, case: schemathesis.Case) -> None:
        headers = {"Authorization": f"Bearer {self.running.key}"}
        case.call_and_validate(base_url=self.running.url, headers=headers, excluded_checks=LEFT_OUT, timeout=600)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    # Erasing rewrites files, which is slow on a busy machine; late answers have their own test.
    with serving(Settings(url=str(tmp_path_factory.mktemp("served")), rate=0, answer_s=600, body_s=600)) as running:
        running.server.failures = Rates(0, 0)  # wrong keys are tried a lot
        made = Target(running)
        yield made
        made.world.close()


@functools.cache
def operations() -> dict[str, Any]:
    """What the document holds, by name. Made when it is first needed, not by every process that lists the tests."""
    schema = schemathesis.openapi.from_dict(dict(document()))
    found: list[Any] = [result.ok() for result in schema.get_all_operations()]  # type: ignore[union-attr]
    return {operation.definition.raw["operationId"]: operation for operation in found}


def fuzz(name: str, target: Target, count: int, number: int) -> None:
    """Sends requests made for one route and holds the answers against the document."""

    def plan(mode: schemathesis.GenerationMode) -> Any:
        def decorate(play: Any) -> Any:
            wanted = settings(
                max_examples=examples(count),
                database=None,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            return seed(number)(wanted(given(case=operations()[name].as_strategy(generation_mode=mode))(play)))

        return decorate

    @plan(FITS)
    def fitting(case: schemathesis.Case) -> None:
        target.aim(case)
        target.send(case)

    @plan(DOES_NOT)
    def not_fitting(case: schemathesis.Case) -> None:
        assume([] not in (case.query or {}).values())  # an empty list sends nothing, so the request may be valid
        target.send(case)

    operation = operations()[name]
    can_be_wrong = operation.body or operation.query
    # test_routes.py already sends one valid request to every route.
    if not (can_be_wrong and examples(count) == 1):
        fitting()
    if can_be_wrong:
        not_fitting()


def test_every_route_is_fuzzed() -> None:
    assert set(operations()) == {*NAMES, *STREAMS}


@pytest.mark.seeded
@pytest.mark.parametrize("name", NAMES)
def test_whatever_is_sent_is_answered_as_documented(name: str, target: Target) -> None:
    fuzz(name, target, count=2, number=SEED)


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_whatever_is_sent_at_length(name: str, number: int, target: Target) -> None:
    fuzz(name, target, count=12, number=number)
