"""The tables of a Parquet archive, written and read by DuckDB (the extra `archive`).

    events     one row per event: columns for queries, and `header`, `salt` and `body` exactly as they are stored
    commits    one row per commit: `line` is its line of a bundle, without records and payloads
    payloads   one row per payload: its hash and its bytes

Each table is partitioned by `day` (UTC, of the commit) and `project`. DuckDB imports the rows from lines of JSON: that
keeps every body byte for byte, and is faster than inserting from Python.
"""

from __future__ import annotations

import contextlib
import datetime
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from wakelog.errors import InvalidInputError, NotAllowedError, missing_extra
from wakelog.index.results import AsOf, Table

_PLACE = {"run": "VARCHAR", "day": "DATE", "project": "VARCHAR"}
TABLES: Final[dict[str, dict[str, str]]] = {
    "events": {
        "session": "VARCHAR",
        "name": "VARCHAR",
        "seq": "BIGINT",
        "recorded_at": "TIMESTAMP",
        "kind": "VARCHAR",
        "turn": "BIGINT",
        "attempt": "BIGINT",
        "actor": "VARCHAR",
        "trust": "VARCHAR",
        "source": "VARCHAR",
        "tool": "VARCHAR",
        "commit_id": "VARCHAR",
        "header": "VARCHAR",
        "salt": "VARCHAR",
        "body": "VARCHAR",
        **_PLACE,
    },
    "commits": {
        "session": "VARCHAR",
        "first": "BIGINT",
        "last": "BIGINT",
        "hash": "VARCHAR",
        "line": "VARCHAR",
        **_PLACE,
    },
    "payloads": {"session": "VARCHAR", "first": "BIGINT", "hash": "VARCHAR", "content": "BLOB", **_PLACE},
}
LINE_MAX = 1 << 30
PAGE_ROWS = 2000


def connect() -> Any:
    try:
        import duckdb
    except ImportError as exc:
        raise missing_extra("an archive in Parquet needs DuckDB", "archive") from exc
    return duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})


class RowFiles:
    """The rows of one run, collected in a folder until they are written as Parquet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = {table: (folder / f"{table}.ndjson").open("wb") for table in TABLES}
        self.counts = dict.fromkeys(TABLES, 0)

    def add(self, table: str, row: dict[str, Any]) -> None:
        self._files[table].write(msgspec.json.encode(row) + b"\n")
        self.counts[table] += 1

    def write_parquet(self, run: str) -> Iterator[tuple[str, Path]]:
        """Writes all tables, and yields each file with its key in the archive."""
        for file in self._files.values():
            file.close()
        with contextlib.closing(connect()) as db:
            for table, columns in TABLES.items():
                if not self.counts[table]:
                    continue
                out = self._folder / table
                types = ", ".join(f"'{n}': '{'VARCHAR' if t == 'BLOB' else t}'" for n, t in columns.items())
                names = ", ".join(
                    f'from_base64("{n}") as "{n}"' if t == "BLOB" else f'"{n}"' for n, t in columns.items()
                )
                db.execute(
                    f"copy (select {names} from read_json($file, format = 'newline_delimited', columns = {{{types}}}, "
                    f"maximum_object_size = {LINE_MAX}) order by session, {'seq' if table == 'events' else 'first'}) "
                    f"to '{_quoted(out)}' (format parquet, compression zstd, partition_by (day, project), "
                    f"write_partition_columns false, filename_pattern '{run}_{{i}}')",
                    {"file": str(self._folder / f"{table}.ndjson")},
                )
                for path in sorted(out.rglob("*.parquet")):
                    yield f"{table}/{path.relative_to(out).as_posix()}", path

    def close(self) -> None:
        for file in self._files.values():
            file.close()


class Tables:
    """An archive's files as three tables. `sessions` says from which run on a session's rows count."""

    def __init__(
        self, files: dict[str, list[Path]], sessions: Sequence[tuple[str, str, int, str, str, str]], as_of: str = ""
    ) -> None:
        self._as_of = as_of
        self._db = connect()
        self._db.execute(
            "create table sessions(session varchar, name varchar, head bigint, hash varchar, status varchar, "
            "since varchar)"
        )
        if sessions:
            self._db.executemany("insert into sessions values (?, ?, ?, ?, ?, ?)", list(sessions))
        for table, columns in TABLES.items():
            paths = [str(path) for path in files.get(table, ())]
            if paths:
                listed = ", ".join(f"'{_quoted(Path(path))}'" for path in paths)
                kept = ", ".join(f't."{name}"' for name in columns)
                self._db.execute(
                    f"create view {table} as select {kept} from read_parquet([{listed}], hive_partitioning = true, "
                    "hive_types = {'day': DATE, 'project': VARCHAR}) t left join sessions s on t.session = s.session "
                    "where t.run >= coalesce(s.since, '')"
                )
            else:
                typed = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
                self._db.execute(f"create table {table}({typed})")
        allowed = ", ".join(f"'{_quoted(path)}'" for paths in files.values() for path in paths)
        self._db.execute(f"set allowed_paths = [{allowed}]")
        self._db.execute("set enable_external_access = false")
        self._db.execute("set lock_configuration = true")

    def rows(self, statement: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Yields the rows of one of our own statements."""
        found = self._db.cursor().execute(statement, list(values))
        while page := found.fetchmany(PAGE_ROWS):
            yield from page

    def query(self, sql: str, *, max_rows: int, timeout_s: float) -> Table:
        """Runs one SELECT of the user. It can read only the tables."""
        import duckdb

        try:
            statements = self._db.extract_statements(sql)
        except duckdb.Error as exc:
            raise InvalidInputError(f"the query cannot be read: {exc}", kind="bad-sql") from exc
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InvalidInputError("a query is one SELECT", kind="bad-sql")
        timer = threading.Timer(timeout_s, self._db.interrupt)
        timer.start()
        try:
            found = self._db.execute(statements[0])
            rows = found.fetchmany(max_rows + 1)
            columns = tuple(column[0] for column in found.description)
            return Table(
                columns,
                tuple(tuple(map(_plain, row)) for row in rows[:max_rows]),
                len(rows) > max_rows,
                AsOf(self._as_of, 0, 0),
            )
        except duckdb.InterruptException as exc:
            raise NotAllowedError(
                f"the query took longer than {timeout_s:g} seconds",
                kind="query-too-slow",
                hint="allow more with --timeout",
            ) from exc
        except duckdb.Error as exc:
            raise InvalidInputError(f"the query failed: {exc}", kind="bad-sql") from exc
        finally:
            timer.cancel()

    def close(self) -> None:
        self._db.close()


def _plain(value: Any) -> Any:
    """Converts a value to JSON or bytes; times to RFC 3339."""
    if isinstance(value, datetime.datetime):
        return value.isoformat() + ("Z" if value.tzinfo is None else "")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, dict | list | tuple):
        return msgspec.to_builtins(value, enc_hook=str)
    return value if value is None or isinstance(value, str | int | float | bytes) else str(value)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
