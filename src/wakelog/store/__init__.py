"""A store: all sessions in one place, found by name or by id."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import ConflictError, InvalidInputError, NotFoundError, UnsupportedError
from wakelog.log import Log
from wakelog.log.log import Clock, now_us
from wakelog.model import events as ev
from wakelog.model.ids import SessionId, is_session_id, root_id
from wakelog.model.records import Head

DEFAULT_FOLDER = ".wakelog"
_FILES = (".db", ".sqlite", ".sqlite3")


def open(url: str | os.PathLike[str] = DEFAULT_FOLDER, *, create: bool = True, clock: Clock = now_us) -> Store:
    """Opens a store: a folder or `.db` file on a local disk, or `memory:` for one that is gone with the process."""
    return Store(_engine(os.fspath(url), create), clock=clock)


def _engine(url: str, create: bool) -> Engine:
    if url in ("memory:", "memory://"):
        return MemoryEngine()
    scheme, separator, rest = url.partition("://")
    if separator and scheme != "sqlite":
        raise UnsupportedError(
            f"there is no engine for {scheme}:// stores", kind="unknown-engine", hint="use a path, or memory:"
        )
    from wakelog.engines.sqlite import SqliteEngine

    path = Path(rest if separator else url)
    return SqliteEngine(path if path.suffix in _FILES else path / "log.db", create=create)


class Store:
    """All sessions of one engine. Close it, or use it in a `with`."""

    def __init__(self, engine: Engine, *, clock: Clock = now_us) -> None:
        self.engine = engine
        self._clock = clock

    def log(self, name: str, *, goal: str | None = None, labels: dict[str, str] | None = None) -> Log:
        """The session of that name, created if there is none. Safe when several processes ask at once."""
        _check_name(name)
        session = self.engine.find(name)
        if session is None:
            # The name is settled first: if this process dies before the session is opened, the next one that asks
            # gets the same id and opens it.
            session = self.engine.claim(name, root_id(self._clock(), os.urandom(10)))
        try:
            return Log(self.engine, session, clock=self._clock)
        except NotFoundError as exc:
            if exc.kind != "session-not-found":
                raise
        opened = ev.SessionOpened(name=name, goal=goal, labels=labels or {})
        try:
            return Log.create(self.engine, session, opened, clock=self._clock)
        except ConflictError:
            return Log(self.engine, session, clock=self._clock)

    def resume(self, name_or_id: str) -> Log:
        """An existing session by name or id; never creates one."""
        session = self.engine.find(name_or_id)
        if session is None:
            if not is_session_id(name_or_id):
                raise NotFoundError(f"there is no session {name_or_id!r}", kind="session-not-found")
            session = SessionId(name_or_id)
        return Log(self.engine, session, clock=self._clock)

    def sessions(self) -> Iterator[Head]:
        """The heads of all sessions that are not deleted, oldest first."""
        after = ""
        while page := self.engine.sessions(after=after):
            yield from page
            after = page[-1].session

    def close(self) -> None:
        self.engine.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _check_name(name: str) -> None:
    if not name or is_session_id(name) or any(c in name for c in "@\n") or name[0] in "-.~" or name != name.strip():
        raise InvalidInputError(
            f"{name!r} cannot name a session: a name is not empty, does not look like an id, holds no @ or line break"
            " and does not start with - . or ~",
            kind="bad-name",
        )
