"""A session in memory, and a scribe that records what an importer or an agent would."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

import wakelog
from wakelog.model import events as ev
from wakelog.session import Session
from wakelog.store import Store
from wakelog.testing.builders import START_US


class Scribe:
    """Records turns as importers do: a whole answer for each message of a model, a call in one event."""

    def __init__(self, session: Session[Any]) -> None:
        self.session = session
        self._names = count(1)

    def start(self, words: str) -> None:
        self.session.append(ev.TurnStarted(input=words))

    def end(self) -> None:
        self.session.append(ev.TurnEnded())

    def answers(self, *content: dict[str, Any]) -> int:
        answer = {"role": "assistant", "type": "message", "content": list(content), "model": "m"}
        action = f"m{next(self._names)}"
        event = ev.ActionRecorded(action=action, tool="model", effect="model", output=answer)
        return self.session.append(event).seq

    def says(self, text: str) -> int:
        return self.answers({"type": "text", "text": text})

    def calls(self, tool: str, given: Any, output: Any = "ok", **more: Any) -> int:
        event = ev.ActionRecorded(action=f"a{next(self._names)}", tool=tool, input=given, output=output, **more)
        return self.session.append(event).seq

    def edits(self, path: str) -> int:
        seq = self.calls("Edit", {"file_path": path}, effect="write")
        self.session.append(ev.FileChanged(path=path, action=f"a{next(self._names) - 1}"))
        return seq


@pytest.fixture
def store() -> Iterator[Store]:
    ticks = count(START_US, 1_000_000)
    with wakelog.open("memory:", clock=lambda: next(ticks)) as opened:
        yield opened


@pytest.fixture
def session(store: Store) -> Session[Any]:
    return store.session("s")


@pytest.fixture
def scribe(session: Session[Any]) -> Scribe:
    return Scribe(session)
