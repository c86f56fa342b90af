"""The index of a store behind a server: the server's own, asked over the wire.

Only a question that is not among the typed ones is answered here, from an index in memory that reads the whole log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from wakelog.engines.remote import RemoteEngine
from wakelog.index.index import Index
from wakelog.index.questions import QUESTIONS, Asked
from wakelog.index.results import Table
from wakelog.index.statements import Reading


class AskSql(msgspec.Struct, frozen=True):
    """A read-only SELECT, as the server's `/v1/query` takes it."""

    sql: str
    params: Sequence[Any] | dict[str, Any]
    max_rows: int
    timeout_s: float


class RemoteIndex(Index):
    """What a server's index can be asked."""

    def __init__(self, engine: RemoteEngine) -> None:
        super().__init__(engine, None)
        self._remote = engine
        self._is_used = False

    def ask(self, question: Callable[[Reading], Any]) -> Any:
        self._is_used = True
        return super().ask(question)

    def query_sql(
        self,
        statement: str,
        params: Sequence[Any] | dict[str, Any] = (),
        *,
        max_rows: int = 1000,
        timeout_s: float = 2.0,
    ) -> Table:
        given = AskSql(statement, params if isinstance(params, dict) else list(params), max_rows, timeout_s)
        return self._remote.ask("/v1/query", given, Table)

    def scrub(self) -> None:
        """The server scrubs its own; here there is something only if something was asked here."""
        if self._is_used:
            super().scrub()


def _from_afar(asked: Asked) -> Callable[..., Any]:
    def question(self: RemoteIndex, *args: Any, **kwargs: Any) -> Any:
        return self._remote.ask(f"/v1{asked.path}", asked.given(args, kwargs), asked.answer)

    question.__name__, question.__doc__ = asked.name, asked.doc
    return question


for _each in QUESTIONS.values():
    setattr(RemoteIndex, _each.name, _from_afar(_each))
