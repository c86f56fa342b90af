"""A server on a real port, in a thread of this process."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.engines.on_nats import ON_NATS, nats_url
from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from wakelog.http.server import RunningServer, serving
from wakelog.http.state import Settings

Serve = Callable[..., RunningServer]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts servers; each is stopped in the end."""
    with ExitStack() as stack:

        def start(url: str | Path | None = None, *, clock: Any = None, **settings: Any) -> RunningServer:
            options = {"clock": clock} if clock else {}
            folder = str(tmp_path / "store" if url is None else url)
            patient = {"answer_s": 300.0, "body_s": 300.0, **settings}  # a busy machine is not a bug
            return stack.enter_context(serving(Settings(url=folder, **patient), **options))

        yield start


@pytest.fixture(params=["sqlite", ON_POSTGRES, ON_NATS])
def running(request: pytest.FixtureRequest, serve: Serve, tmp_path: Path) -> RunningServer:
    url = None
    if request.param != "sqlite":
        url = (postgres_url if request.param == "postgres" else nats_url)(request, tmp_path)
    return serve(url, rate=0)
