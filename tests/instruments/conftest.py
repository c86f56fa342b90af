"""A store, the providers on loopback, and a way to read what was recorded."""

import importlib.util
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import wakelog
from tests.instruments.apis import APIS, Api
from tests.runtime.providers import Provider, provider
from wakelog.instruments.endpoints import Endpoints
from wakelog.instruments.proxy import ModelProxy
from wakelog.instruments.recorder import ConversationRecorder
from wakelog.log.reader import Entry
from wakelog.session import Session
from wakelog.store import Store

VARIABLES = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL", "google-genai": "GOOGLE_GEMINI_BASE_URL"}


class Recorded(msgspec.Struct):
    """The sessions of a store, as tests ask about them."""

    store: Store

    @property
    def sessions(self) -> list[Session[Any]]:
        found = [self.store.resume(head.session) for head in self.store.sessions()]
        return sorted(found, key=lambda session: (len(session.name), session.name))

    @property
    def session(self) -> Session[Any]:
        (found,) = self.sessions
        return found

    def of(self, *kinds: str, session: Session[Any] | None = None) -> list[Entry]:
        return [e for e in (session or self.session).log.entries() if e.kind in kinds]

    def kinds(self, session: Session[Any] | None = None) -> list[str]:
        return [e.kind for e in (session or self.session).log.entries()]

    def said(self, session: Session[Any] | None = None) -> list[tuple[str, str]]:
        return [(m.role, m.text) for m in (session or self.session).messages()]


class Through:
    """The providers, seen through the proxy."""

    def __init__(self, remote: Provider, recorded: Recorded) -> None:
        self.warnings: list[str] = []
        self.recorder = ConversationRecorder(
            lambda number: recorded.store.session(f"seen-{number}"), source="record", warn=self.warnings.append
        )
        self.endpoints = Endpoints(dict.fromkeys(VARIABLES.values(), remote.url))
        self.proxy = ModelProxy(self.endpoints, self.recorder)

    def to(self, library: str = "openai") -> Any:
        seen = Provider()
        seen.url = self.endpoints.variables(self.proxy.address, {})[VARIABLES[library]]
        return seen

    def close(self) -> None:
        """Until everything is written."""
        self.recorder.close()


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was recorded is there when a call returns, however busy the machine is."""
    monkeypatch.setattr("wakelog.instruments.writer_thread.WAIT_S", 120.0)


@pytest.fixture
def remote() -> Iterator[Provider]:
    with provider() as told:
        yield told


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    with wakelog.open("memory:") as store:
        yield Recorded(store)
        wakelog.uninstrument()


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest) -> Api:
    found = APIS[request.param]
    if importlib.util.find_spec(found.module.partition(".")[0]) is None:
        pytest.skip(f"{found.library} is not installed")
    return found


@pytest.fixture
def through(remote: Provider, recorded: Recorded) -> Iterator[Through]:
    made = Through(remote, recorded)
    with made.proxy:
        yield made
    made.close()
