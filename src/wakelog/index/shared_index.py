"""The index of a store on a server, in tables of the same database: built once for everybody.

Every process brings it up to date before it answers, and all processes share the result. There is no lock. A batch is
one transaction that first updates the namespace's row in wl_meta, on the condition that no other process moved the
cursor. So one process writes at a time; another finds the row changed and looks again. Answers are read in one
snapshot.

Read-only SQL for people runs on SQLite, in a file on this machine (config/folders.py). It is SQLite's language, and no
foreign statement runs on the server that takes the appends.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import asyncpg

from wakelog.engine import Engine
from wakelog.engines.loop_thread import LoopThread
from wakelog.engines.postgres import PostgresEngine, distribution
from wakelog.engines.postgres.errors import translate_error
from wakelog.errors import InvalidInputError, UnavailableError, UnsupportedError, WakelogError
from wakelog.index import dialect
from wakelog.index.connection import Damaged, ProjectionConflict, Values
from wakelog.index.database import SCHEMA_VERSION
from wakelog.index.index import Index
from wakelog.index.results import Table
from wakelog.index.words import SharedWords

T = TypeVar("T")

READERS_MAX = 4
"""How many connections of a process answer questions at once."""
ROWS_MAX = 5000
"""How many rows one statement inserts."""
STALLED_MS = 60_000
"""The server ends the transaction of a process that hangs in a batch after this time, so that others can go on."""

_DAMAGE = (
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedColumnError,
    asyncpg.IntegrityConstraintViolationError,
)
_OVERTAKEN = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
_CAME_FIRST = (asyncpg.UniqueViolationError, asyncpg.DuplicateTableError, asyncpg.DuplicateObjectError)

_VERSION_TABLE = "create table if not exists wi_version (one bigint not null primary key, version bigint not null)"
_VERSION = "select version from wi_version where one = 1"
_SET_VERSION = (
    "insert into wi_version values (1, $1::bigint) on conflict (one) do update set version = excluded.version"
)
_META = "insert into wl_meta values (?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (one) do "
_FIRST_META = _META + "nothing"
_NEW_META = _META + (
    "update set cursor = excluded.cursor, session = excluded.session, seq = excluded.seq, hash = excluded.hash,"
    " at = excluded.at, made = excluded.made, removed = wl_meta.removed + 1"
)
_SCRUBBED = "update wl_meta set clean = removed where one = 1 and made = ? and removed = ?"

_INHERITED: list[Any] = []


class Rows:
    """The rows of a statement."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = [tuple(map(dialect.from_stored, row)) for row in rows]

    @property
    def get(self) -> Any:
        row = self.fetchone()
        return row[0] if row is not None and len(row) == 1 else row

    def fetchone(self) -> Any:
        return self._rows[0] if self._rows else None

    def fetchall(self) -> list[Any]:
        return self._rows


class SharedConnection:
    """A connection to the server as the index uses it (connection.py)."""

    def __init__(self, place: SharedDatabase, db: Any) -> None:
        self._place = place
        self._db = db
        self.words = SharedWords(self, place.ns)

    def execute(self, sql: str, values: Values = (), /) -> Rows:
        text, bound = dialect.bind_values(sql, values, self._place.ns)
        return Rows(self._place.run(self._db.fetch(text, *bound)))

    def fetch(self, sql: str, *values: Any) -> list[Any]:
        """Runs a statement in PostgreSQL's own SQL; $1, if it has one, is the namespace."""
        bound = (self._place.ns, *values) if "$1" in sql else ()
        return list(self._place.run(self._db.fetch(sql, *bound)))

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]], /) -> None:
        ns = self._place.ns
        if rows and sql.startswith("insert"):
            for at in range(0, len(rows), ROWS_MAX):
                columns = [
                    list(map(dialect.to_stored, column)) for column in zip(*rows[at : at + ROWS_MAX], strict=True)
                ]
                self._place.run(self._db.execute(dialect.for_many(sql), ns, *columns))
        elif rows:
            text, _ = dialect.bind_values(sql, rows[0], ns)
            self._place.run(self._db.executemany(text, [(ns, *map(dialect.to_stored, row)) for row in rows]))


class SharedDatabase:
    """The connections of one process to the index of one namespace (an `IndexPlace`). The transaction that updates
    wl_meta first is the only writer."""

    path: Path | None = None
    place = "the index in the database"

    def __init__(self, url: str, ns: str) -> None:
        self.ns = ns
        self._url = url
        self._is_closed = False
        self._begin()
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._writing = threading.RLock()
        self._readers = threading.BoundedSemaphore(READERS_MAX)
        self._idle: list[Any] = []
        self._loop = LoopThread("wakelog index")

    @contextlib.contextmanager
    def reading(self) -> Iterator[SharedConnection]:
        self._check()
        with (
            self._readers,
            self._translated_errors(),
            self._transaction(isolation="repeatable_read", readonly=True) as db,
        ):
            yield db

    @contextlib.contextmanager
    def writing(self) -> Iterator[SharedConnection]:
        self._check()
        with self._writing, self._translated_errors(), self._transaction() as db:
            yield db

    @contextlib.contextmanager
    def separate_transaction(self) -> Iterator[SharedConnection]:
        """A short separate transaction, possible even while this process writes."""
        self._check()
        with self._translated_errors(), self._transaction() as db:
            yield db

    def reset(self) -> None:
        self._check()
        self._prepare()
        with self.writing() as db:
            self._stop_others(db)
            db.execute(_NEW_META, _fresh())
            for table in dialect.TABLES:
                if table != "wl_meta":
                    db.execute(f"delete from {table} where 1 = 1")

    def _stop_others(self, db: SharedConnection) -> None:
        """Nothing to do: writers update wl_meta first, and so does a reset."""

    def scrub(self) -> None:
        """Has the server free the space of removed rows for reuse. Its archives are up to its administrator."""
        with self.reading() as db:
            made, removed = db.execute("select m.made, m.removed from wl_meta m").fetchone()
        for table in dialect.TABLES:
            with contextlib.suppress(UnavailableError), self._translated_errors(), self._connection() as connection:
                self.run(connection.execute(f"vacuum {dialect.table_name(table)}"))
        # A GIN index keeps every word it ever had. Only rebuilding it drops the removed ones.
        with contextlib.suppress(UnavailableError), self._translated_errors(), self._connection() as connection:
            self.run(connection.execute(f"reindex index {dialect.WORDS_INDEX}"))
        with self.writing() as db:
            db.execute(_SCRUBBED, (made, removed))

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._pid == os.getpid():
            for db in self._idle:
                with contextlib.suppress(Exception):
                    self.run(db.close(timeout=5))
            self._loop.stop()

    # The server

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run(work)

    def _check(self) -> None:
        if self._is_closed:
            raise UnavailableError("the index was closed", kind="store-closed", hint="open it again")
        if self._pid != os.getpid():
            # A forked child: the loop and its connections belong to the parent. They are kept alive, because garbage
            # collecting a connection would close it on the server.
            _INHERITED.append((self._loop, self._idle))
            self._begin()

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Any]:
        """Lends a connection that is not in use. A connection that was lost is not kept."""
        db = None
        while db is None or db.is_closed():
            try:
                db = self._idle.pop()
            except IndexError:
                db = self.run(self._connect())
        try:
            yield db
        finally:
            if not db.is_closed() and not db.is_in_transaction() and not self._is_closed:
                self._idle.append(db)
            else:
                self._loop.soon(db.terminate)

    async def _connect(self) -> Any:
        return await asyncpg.connect(
            self._url,
            command_timeout=60,
            statement_cache_size=500,
            server_settings={"idle_in_transaction_session_timeout": str(STALLED_MS)},
        )

    @contextlib.contextmanager
    def _transaction(self, **options: Any) -> Iterator[SharedConnection]:
        with self._connection() as db:
            transaction = db.transaction(**options)
            self.run(transaction.start())
            try:
                yield SharedConnection(self, db)
            except BaseException:
                with contextlib.suppress(Exception):
                    self.run(transaction.rollback())
                raise
            self.run(transaction.commit())

    def _prepare(self) -> None:
        with self._translated_errors(), self._connection() as db:
            self.run(self._make(db))

    async def _make(self, db: Any) -> None:
        """Creates missing tables, statement by statement. Another process may do the same at the same time."""
        found = await _version(db)
        if found is not None and found > SCHEMA_VERSION:
            raise UnsupportedError(
                f"the index in this database has version {found}, and this wakelog knows {SCHEMA_VERSION}",
                kind="index-newer",
                hint="upgrade wakelog, or put index=local into the store's url",
            )
        if found is not None and found < SCHEMA_VERSION:
            for table in dialect.TABLES:
                await db.execute(f"drop table if exists {dialect.table_name(table)}")
        await self._made(db, (_VERSION_TABLE, *dialect.schema()))
        if await distribution.is_distributed(db):
            first, *others = sorted(map(dialect.table_name, dialect.TABLES), key="wi_meta".__ne__)
            await distribution.distribute(db, ("wi_version", first, *others))
        await db.execute(_SET_VERSION, SCHEMA_VERSION)

    async def _made(self, db: Any, statements: Sequence[str]) -> None:
        for statement in statements:
            with contextlib.suppress(*_CAME_FIRST):  # `if not exists` does not prevent a race
                await db.execute(statement)

    def _open(self) -> None:
        """Makes sure that the tables exist in this version, with a row for this namespace."""
        with self._translated_errors(), self._connection() as db:
            if self.run(_version(db)) != SCHEMA_VERSION:
                self.run(self._make(db))
            SharedConnection(self, db).execute(_FIRST_META, _fresh())

    @contextlib.contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Translates the driver's errors. Damage becomes `Damaged`, which makes the index rebuild."""
        try:
            yield
        except _DAMAGE as exc:
            raise Damaged(str(exc)) from exc
        except asyncpg.DataError as exc:
            raise InvalidInputError(f"the database cannot answer this query: {exc}") from exc
        except _OVERTAKEN as exc:
            raise ProjectionConflict(str(exc)) from exc
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as exc:
            raise self._translate(exc) from exc

    def _translate(self, exc: Exception) -> WakelogError:
        return translate_error(exc)


def _fresh() -> tuple[Any, ...]:
    """The wl_meta row of an empty index."""
    return (1, "", "", 0, b"", 0, os.urandom(8), 0, 0)


async def _version(db: Any) -> int | None:
    try:
        version: int | None = await db.fetchval(_VERSION)
        return version
    except asyncpg.UndefinedTableError:
        return None


class SharedIndex(Index):
    """The index of a namespace of a PostgreSQL database, in that database."""

    def __init__(self, engine: Engine, path: Path | None, place: SharedDatabase | None = None) -> None:
        if place is None:
            assert isinstance(engine, PostgresEngine)
            place = SharedDatabase(engine.url, engine.ns)
        super().__init__(engine, path, place)
        self._local_path = path
        self._local: Index | None = None

    def query_sql(
        self,
        statement: str,
        params: Sequence[Any] | dict[str, Any] = (),
        *,
        max_rows: int = 1000,
        timeout_s: float = 2.0,
    ) -> Table:
        """Runs a read-only SELECT over the documented views, in SQLite on this machine."""
        if self._local is None:
            self._local = Index(self.engine, self._local_path)
        return self._local.query_sql(statement, params, max_rows=max_rows, timeout_s=timeout_s)

    def scrub(self) -> None:
        """Scrubs the shared index, and the local file if there is one. An empty index is left alone."""
        with self._database.reading() as db:
            is_empty = db.execute("select s.no from wl_session s limit 1").get is None
        if not is_empty:
            super().scrub()
        if self._local is not None or (self._local_path is not None and self._local_path.exists()):
            self._local = self._local or Index(self.engine, self._local_path)
            self._local.scrub()

    def close(self) -> None:
        super().close()
        if self._local is not None:
            self._local.close()
