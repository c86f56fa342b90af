"""Sessions in memory with a clock that ticks, and a scribe that records what an agent would."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.session import Session
from wakelog.store import Store
from wakelog.testing.builders import START_US


@pytest.fixture(params=["memory", ON_POSTGRES])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    ticks = count(START_US, 1_000_000)
    url = postgres_url(request, tmp_path) if request.param == "postgres" else "memory:"
    with wakelog.open(url, clock=lambda: next(ticks), redact=None) as opened:
        yield opened


@pytest.fixture
def session(store: Store) -> Session[Any]:
    return store.session("s", goal="find the leak")


def call(
    session: Session[Any],
    tool: str = "read_file",
    output: Any = "some text",
    *,
    given: Any = None,
    source: str = "",
    trust: Any = "trusted",
    effect: Any = "read",
) -> int:
    """A call that succeeds; returns the seq of its request."""
    action = f"{tool}-{session.head.seq}"
    requested = ev.ActionRequested(action=action, tool=tool, effect=effect, input=given or {"path": "a.py"})
    seq = session.log.record(requested)
    session.append(
        EventDraft(ev.ActionSucceeded(action=action, output=output), actor="tool", source=source, trust=trust)
    )
    return seq


def work(session: Session[Any], turns: int, *, size: int = 400) -> list[int]:
    """Some turns of a question, a call with an answer of `size` characters, and a reply; returns the calls."""
    calls = []
    for _ in range(turns):
        number = session.head.turn + 1
        with session.turn(f"question {number}"):
            calls.append(call(session, output=f"answer {number} " + "x" * size))
            session.message("assistant", f"reply {number}")
    return calls
