"""Settings and servers that all tests share."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import signals
from tests.engines.leaks import open_connections
from tests.engines.nats_server import NatsServer
from tests.engines.on_postgres import is_sampled
from tests.engines.postgres_server import Server
from tests.seeds import EXAMPLES, SEED

# No deadline: a machine under load is not a bug. The blob brings a failure back on another machine.
settings.register_profile(
    "wakelog",
    deadline=None,
    print_blob=True,
    max_examples=EXAMPLES,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# For `make test`: a quarter of the examples, the same ones every time. `make test-all` tries all.
settings.register_profile("quick", settings.get_profile("wakelog"), max_examples=EXAMPLES // 4)
# For `make test-fuzz`, which gives the seed too.
settings.register_profile("fuzz", settings.get_profile("wakelog"), derandomize=False, max_examples=10 * EXAMPLES)
settings.load_profile("wakelog")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        is_again = item.get_closest_marker("postgres") or item.get_closest_marker("nats")
        if is_again and not is_sampled(item.nodeid):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Listing tests makes little garbage and a great many objects, which looking for it would go through again and
    again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: no collection of garbage has to look at it again."""
    gc.freeze()


def pytest_report_header() -> str:
    return f"seed: {SEED}"


@pytest.fixture(scope="session", autouse=True)
def _own_signals() -> Iterator[None]:
    with signals.default_for_children():
        yield


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Indexes of shared stores are kept in the user's cache: not those of tests."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("WAKELOG_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def _no_git_labels() -> Iterator[None]:
    """Tests run inside a repository, which is not what their sessions are about. Tests of these labels turn them on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAKELOG_GIT_LABELS", "false")
        yield


@pytest.fixture(scope="session", autouse=True)
def _own_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What hooks of whoever runs the tests have written is not taken into the stores of tests."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("data")
        patch.setenv("WAKELOG_DATA", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def _no_connection_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that uses PostgreSQL leaves no connection open; what lasts longer than a test may stay."""
    if not ({"postgres", "rough"} & {*request.fixturenames} or request.node.get_closest_marker("postgres")):
        yield
        return
    before = {id(each) for each in open_connections()}
    yield
    left = [each for each in open_connections() if id(each) not in before]
    assert not left, f"{len(left)} connections were left open"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A real PostgreSQL server, started when the first test asks for it."""
    server = Server().create().start(fsync="off")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def nats() -> Iterator[NatsServer]:
    """A real NATS server, started when the first test asks for it. It does not sync: its tests pull no plug."""
    server = NatsServer(sync="").start().wait()
    yield server
    server.stop()
