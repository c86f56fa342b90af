"""Read-only SQL over the documented views (docs/reference/views.md).

The statement may come from a model. So it runs on a connection that can only read the views:

- opened read-only, with `query_only`, `defensive` and an untrusted schema; no attached databases, no extensions;
- an authoriser that allows it to select, call functions, recurse, and read the views and their tables through them; not
  `sqlite_schema`, and not the tables themselves;
- limits: one statement, and maxima for rows, bytes of a value, bytes of all rows, memory and time.

SQLite tells the authoriser through which view a table is read. But it says the same for a common table expression with
a view's name: `with events as (select * from wl_event) …` would pass. So the text must not contain the names of our
tables at all. They are called wl_…, which is never written by accident, and SQL has no other way to spell a name.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

import apsw

from wakelog.errors import InvalidInputError, NotAllowedError, WakelogError
from wakelog.index.connection import Damaged
from wakelog.index.database import Database
from wakelog.index.results import AsOf, Table

VIEWS = ("sessions", "turns", "events", "files", "decisions", "facts", "tools", "errors", "messages")
ROWS_MAX = 100_000
SQL_MAX = 100_000
VALUE_MAX = 256 * 1024
RESULT_MAX = 16 << 20
MEMORY_MAX = 256 << 20

_READABLE = frozenset({*VIEWS, "json_each", "json_tree"})
_FORBIDDEN_FUNCTIONS = frozenset({"load_extension", "fts3_tokenizer", "fts5", "writefile", "readfile", "edit"})
_OWN_TABLE = re.compile(r"(?<![\w$])wl_\w+", re.IGNORECASE)
_NOTHING = re.compile(r"(\s|;|--[^\n]*(\n|$)|/\*.*?(\*/|$))*", re.DOTALL)
_REFUSALS = ("not authorized", "because it is a view", "may not be")
_STEPS = 1000
_MOVES = frozenset({apsw.SQLITE_SELECT, apsw.SQLITE_RECURSIVE})
_LIMITS = {
    apsw.SQLITE_LIMIT_LENGTH: VALUE_MAX,
    apsw.SQLITE_LIMIT_SQL_LENGTH: SQL_MAX,
    apsw.SQLITE_LIMIT_ATTACHED: 0,
    apsw.SQLITE_LIMIT_COLUMN: 200,
    apsw.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    apsw.SQLITE_LIMIT_FUNCTION_ARG: 32,
    apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 200,
    apsw.SQLITE_LIMIT_VDBE_OP: 250_000,
    apsw.SQLITE_LIMIT_WORKER_THREADS: 0,
}


def prepare(db: apsw.Connection) -> None:
    """Restricts a read-only connection to reading the views."""
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    db.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)  # "text" in double quotes is a name, and a misspelt one is an error
    db.pragma("temp_store", "memory")
    db.pragma("query_only", 1)
    named: Any = db.execute("select name from sqlite_schema union select name from pragma_module_list").fetchall()
    for limit, value in _LIMITS.items():
        db.limit(limit, value)
    db.authorizer = _Authorizer(frozenset(name.lower() for (name,) in named))


def run(
    database: Database, as_of: AsOf, sql: str, params: Sequence[Any] | dict[str, Any], max_rows: int, timeout_s: float
) -> Table:
    """Runs one statement within the limits."""
    _check(sql, max_rows, timeout_s)
    guard = _Guard(timeout_s)
    with database.asking(prepare) as db:
        cursor = db.cursor()
        db.set_progress_handler(guard, _STEPS)
        try:
            return _collect(cursor, as_of, sql, params, max_rows)
        except apsw.Error as exc:
            raise _refusal(exc, guard) from exc
        finally:
            db.set_progress_handler(None)
            cursor.close(True)


def _check(sql: str, max_rows: int, timeout_s: float) -> None:
    if "\0" in sql or sql.encode(errors="ignore").decode() != sql:
        raise InvalidInputError("the statement holds characters that are not text", kind="bad-sql")
    if _NOTHING.fullmatch(sql):
        raise InvalidInputError("there is no statement to run", kind="bad-sql", hint="select * from sessions")
    if len(sql.encode()) > SQL_MAX:
        raise InvalidInputError(f"the statement is longer than {SQL_MAX} bytes", kind="bad-sql", hint="shorten it")
    if not 1 <= max_rows <= ROWS_MAX:
        raise InvalidInputError(f"max_rows is {max_rows}; it must be from 1 to {ROWS_MAX}", kind="bad-limit")
    if not 0 < timeout_s <= 3600:
        raise InvalidInputError(f"timeout_s is {timeout_s}; it must be above 0 and at most 3600", kind="bad-limit")
    own = _OWN_TABLE.search(sql)
    if own:
        raise NotAllowedError(
            f"{own[0]} is not for reading: the tables behind the views change without notice",
            kind="not-a-view",
            hint=f"the views are {', '.join(VIEWS)}",
        )


def _collect(
    cursor: apsw.Cursor, as_of: AsOf, sql: str, params: Sequence[Any] | dict[str, Any], max_rows: int
) -> Table:
    cursor.exec_trace = statement = _OneStatement(sql)
    rows: list[tuple[Any, ...]] = []
    size = 0
    for row in cursor.execute(sql, params):
        size += sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
        if len(rows) == max_rows or size > RESULT_MAX:
            return Table(statement.columns, tuple(rows), True, as_of)
        rows.append(tuple(row))
    return Table(statement.columns, tuple(rows), False, as_of)


class _Guard:
    """A progress handler that stops a statement which takes too long or too much memory, and remembers which."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s
        self._memory = apsw.memory_used() + MEMORY_MAX
        self.reason: WakelogError | None = None

    def __call__(self) -> bool:
        if time.monotonic() > self._deadline:
            self.reason = NotAllowedError(
                f"the query took longer than {self._timeout_s:g} s and was stopped",
                kind="query-too-slow",
                hint="narrow it with where and limit, or allow it more time",
            )
        elif apsw.memory_used() > self._memory:
            self.reason = NotAllowedError(
                f"the query took more than {MEMORY_MAX >> 20} MB of memory and was stopped",
                kind="query-too-big",
                hint="select fewer or shorter columns, or narrow it with where",
            )
        return self.reason is not None


class _OneStatement:
    """Allows one statement only, and keeps its columns, which are not available later if there are no rows."""

    def __init__(self, sql: str) -> None:
        self._sql = sql
        self.columns: tuple[str, ...] = ()

    def __call__(self, cursor: apsw.Cursor, statement: str, bindings: Any) -> bool:
        if _NOTHING.fullmatch(statement):
            return True  # a comment at the end
        if not _NOTHING.fullmatch(self._sql[len(statement) :]):
            raise InvalidInputError(
                "only one statement is run at a time", kind="bad-sql", hint="send what follows the ; on its own"
            )
        self.columns = tuple(name for name, *_ in cursor.get_description())
        return True


class _Authorizer:
    """Allows selecting, recursion, functions, and reading the views and the tables through them.

    For `select count(*)` SQLite asks about a read of an empty column, even if the table is only a name inside the
    statement. Such a name is any that neither the database nor SQLite has.
    """

    def __init__(self, named: frozenset[str]) -> None:
        self._named = named

    def __call__(
        self, action: int, first: str | None, second: str | None, database: str | None, inner: str | None
    ) -> int:
        if action in _MOVES:
            return apsw.SQLITE_OK
        if action == apsw.SQLITE_FUNCTION:
            return apsw.SQLITE_DENY if (second or "").lower() in _FORBIDDEN_FUNCTIONS else apsw.SQLITE_OK
        if action == apsw.SQLITE_READ and first is not None:
            name = first.lower()
            # The text names none of our tables, so they are only ever reached through a view.
            if name in _READABLE or name.startswith("wl_"):
                return apsw.SQLITE_OK
            if not second and name not in self._named and not name.startswith(("sqlite_", "pragma_")):
                return apsw.SQLITE_OK
        return apsw.SQLITE_DENY


def _is_refusal(exc: apsw.Error) -> bool:
    """Whether SQLite refused the statement. The class of its error does not always say so."""
    return not isinstance(exc, apsw.SQLError) or any(words in str(exc) for words in _REFUSALS)


def _refusal(exc: apsw.Error, guard: _Guard) -> WakelogError:
    """Translates an error of SQLite. Damage is raised: it makes the index rebuild."""
    views = f"the views are {', '.join(VIEWS)}"
    match exc:
        case apsw.CorruptError() | apsw.NotADBError():
            raise Damaged(str(exc)) from exc
        case apsw.SQLError() if "main.wl_" in str(exc):
            raise Damaged(str(exc)) from exc  # a view misses its table
        case apsw.InterruptError():
            return guard.reason or NotAllowedError("the query was stopped", kind="query-too-slow")
        case apsw.AuthError() | apsw.ReadOnlyError() | apsw.SQLError() if _is_refusal(exc):
            return NotAllowedError(
                f"only reading the documented views is allowed here ({exc})", kind="not-a-view", hint=views
            )
        case apsw.TooBigError():
            return NotAllowedError(
                f"a value or a row in the query is larger than {VALUE_MAX >> 10} KB",
                kind="query-too-big",
                hint="take substr() of long texts",
            )
        case apsw.NoMemError():
            return NotAllowedError("the query takes too much memory", kind="query-too-big", hint="narrow it with where")
        case apsw.BindingsError():
            return InvalidInputError(f"the parameters do not fit the statement: {exc}", kind="bad-sql")
        case _:
            return InvalidInputError(f"the statement cannot be run: {exc}", kind="bad-sql", hint=views)
