"""The eventsourcing library: an aggregate with one domain event for each thing that happened, one `save` a turn.

Favourable: the aggregate stays in memory between turns, where the documentation reloads it for each command. A snapshot
of the whole aggregate is taken at a fixed interval, as the documentation shows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from benchmarks.protocol import Contender, Settings, pragmas
from benchmarks.turns import State, Turn


def version_after(n: int) -> int:
    """The aggregate's version after a turn: its creation, ten events a turn, one for a decision; turn 1 pops none."""
    return 1 + 10 * n + n // 3 - (1 if n else 0)


class EventsourcingSqlite(Contender):
    def __init__(self, place: str, session: str = "bench", beside: Self | None = None) -> None:
        from benchmarks.peers.eventsourcing_model import AgentSession, App

        super().__init__(place, session)
        self._type: Any = AgentSession
        self.app: Any = beside.app if beside else App(env=self._environment())
        self._id = self._type.create_id(session)
        self._aggregate: Any = None

    def _environment(self) -> dict[str, str]:
        file = str(Path(self.place) / "events.db")
        return {
            "PERSISTENCE_MODULE": "eventsourcing.sqlite",
            "SQLITE_DBNAME": file,
            "SQLITE_LOCK_TIMEOUT": "30",
        }

    def append(self, turn: Turn) -> None:
        if self._aggregate is None:
            self._aggregate = self._find()
        try:
            self._aggregate.play(turn)
            self.app.save(self._aggregate)
        except Exception:
            self._aggregate = None  # another writer came first: what is in memory is of no use any more
            raise

    def _find(self) -> Any:
        from eventsourcing.application import AggregateNotFoundError

        try:
            return self.app.repository.get(self._id)
        except AggregateNotFoundError:
            return self._type(name=self.session)

    def load(self, at: int | None = None) -> State:
        version = None if at is None else version_after(at)
        state: State = self.app.repository.get(self._id, version=version).state
        return state

    def settings(self) -> Settings:
        with self.app.factory.datastore.get_connection(commit=True) as connection:
            return pragmas(lambda statement: connection._sqlite_conn.execute(statement).fetchone()[0])

    def close(self) -> None:
        self.app.close()


class EventsourcingPostgres(EventsourcingSqlite):
    def _environment(self) -> dict[str, str]:
        url = urlsplit(self.place)
        return {
            "PERSISTENCE_MODULE": "eventsourcing.postgres",
            "POSTGRES_DBNAME": url.path.strip("/"),
            "POSTGRES_HOST": str(url.hostname),
            "POSTGRES_PORT": str(url.port),
            "POSTGRES_USER": str(url.username),
            "POSTGRES_PASSWORD": "none",
        }

    def settings(self) -> Settings:
        with self.app.factory.datastore.get_connection() as connection, connection.cursor() as cursor:
            return dict(cursor.execute("show synchronous_commit").fetchone())
