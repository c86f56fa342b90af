"""Checks an index against the log: the log is projected again, and the two results are compared row by row.

An index is a cache without hashes, so every process that can write it can forge a row. Only the log can show that. The
second projection is a temporary file. An index in a file is compared by its views, row by row as they are read. An
index in a shared database has no views, so there the tables are compared, a session at a time. The numbers of sessions
differ between two projections: they are left out, or replaced by the ids.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wakelog.engine import Engine
from wakelog.index.connection import SEQ_BITS, Connection, Damaged
from wakelog.index.database import Database
from wakelog.index.dialect import TABLES
from wakelog.index.index import Index
from wakelog.index.sql import VIEWS

TRIES = 5
"""How often to try to bring both to the same moment while others write."""

_SESSIONS = "select * from sessions order by id"
_OF = "where s.id = ? order by 1"
_PARTS = {
    **{view: f"select * from {view} where session = ? order by 2, 3" for view in VIEWS if view != "sessions"},
    "texts": (
        f"select t.id & {(1 << SEQ_BITS) - 1}, t.body from wl_session s join wl_text t"
        f" on t.id between s.no << {SEQ_BITS} and (s.no << {SEQ_BITS}) + {(1 << SEQ_BITS) - 1} {_OF}"
    ),
    "labels": f"select l.name, l.value from wl_session s join wl_label l on l.session = s.no {_OF}",
    "steps": (
        "select t.seq, t.asked, t.turn, t.attempt, t.label, t.target, t.act, t.outcome, t.input, t.signature,"
        f" t.duration_us, t.at, t.trust from wl_session s join wl_step t on t.session = s.no {_OF}"
    ),
    "touches": (
        "select t.kind, t.key, t.how, t.name, t.times, t.first, t.last, t.at, t.trust"
        " from wl_session s join wl_touch t on t.session = s.no where s.id = ? order by 1, 2, 3"
    ),
    "sums": (
        "select m.turn, m.attempt, m.phase, m.bucket, m.phases, m.calls, m.errors, m.duration_us"
        " from wl_session s join wl_sum m on m.session = s.no where s.id = ? order by 1, 2, 3, 4"
    ),
    "costs": (
        "select c.seq, c.turn, c.occurred, c.tool, c.model, c.call, c.sub, c.tokens, c.tokens_out, c.usd_micros,"
        f" c.duration_us from wl_session s join wl_cost c on c.session = s.no {_OF}"
    ),
}
"""The queries that are compared, by session. Each has an `order by`, because the rows may have any order."""


def differences(index: Index, engine: Engine) -> Iterator[tuple[str, str]]:
    """(session, what differs) for everything in an index that is not what the log says. An index in memory, or one that
    was never used, is not checked."""
    if index.path is None and not ((engine.abilities.keeps_index or engine.abilities.index) and _is_in_use(index)):
        return
    beside = index.path.parent if index.path is not None else None
    with (
        tempfile.TemporaryDirectory(prefix=".index-", dir=beside) as folder,
        Index(engine, None, Database(Path(folder) / "index.db", keeps_texts=index.path is None)) as fresh,
    ):
        try:
            yield from (_file_differences if index.path is not None else _shared_differences)(index, fresh)
        except Damaged as exc:
            yield "", f"it cannot be read: {exc}"


def _file_differences(index: Index, fresh: Index) -> Iterator[tuple[str, str]]:
    for _ in range(TRIES):
        index.catch_up()
        fresh.catch_up()
        with index.reading() as connection, fresh.reading() as made:
            if _cursor(connection) == _cursor(made):
                yield from _compared(connection, made)
                return


def _shared_differences(index: Index, fresh: Index) -> Iterator[tuple[str, str]]:
    """What differs twice in a row at the same head of its session. In a shared database the cursors can differ although
    the content does not, so they cannot show that both are at the same moment."""
    results: set[tuple[str, str, int]] | None = None
    for _ in range(2):
        index.catch_up()
        fresh.catch_up()
        with index.reading() as connection, fresh.reading() as made:
            now = set(_compared_tables(connection, made))
        results = now if results is None else results & now
        if not results:
            return
    for session, what, _ in sorted(results or ()):
        yield session, what


def _is_in_use(index: Index) -> bool:
    with index.reading() as db:
        return db.execute("select s.no from wl_session s limit 1").get is not None


def _cursor(db: Connection) -> str:
    return str(db.execute("select m.cursor from wl_meta m").get)


def _compared(connection: Connection, made: Connection) -> Iterator[tuple[str, str]]:
    if _kept(connection) != _kept(made):
        yield "", "kept totals"
    for here, there in _pairs(connection, made, _SESSIONS, ()):
        if here != there:
            # From here on the two lists are not aligned. One name is enough: the index is rebuilt anyway.
            yield str((here or there)[0]), "sessions"
            return
        session = here[0]
        for what, query in _PARTS.items():
            if any(ours != theirs for ours, theirs in _pairs(connection, made, query, (session,))):
                yield session, what


def _pairs(connection: Connection, made: Connection, query: str, values: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    return itertools.zip_longest(*(iter(db.execute(query, values).fetchone, None) for db in (connection, made)))


def _compared_tables(connection: Connection, made: Connection) -> Iterator[tuple[str, str, int]]:
    """(session, which table, where the log has the session)."""
    if _kept(connection) != _kept(made):
        yield "", "kept totals", 0
    here, there = _sessions(connection), _sessions(made)
    for session in {*here, *there}:
        if session not in here or session not in there:
            yield session, "session", there.get(session, (0, 0))[1]
            continue
        (ours, _), (theirs, head) = here[session], there[session]
        for what, query in _TABLES.items():
            if _rows(connection, query, ours) != _rows(made, query, theirs):
                yield session, what, head


def _kept(db: Connection) -> list[Any]:
    return sorted(map(tuple, db.execute("select k.id, k.totals, k.calls from wl_kept k").fetchall()))


def _sessions(db: Connection) -> dict[str, tuple[int, int]]:
    rows = db.execute("select s.id, s.no, s.head from wl_session s").fetchall()
    return {session: (number, head) for session, number, head in rows}


def _rows(db: Connection, query: str, number: int) -> list[str]:
    """The rows of a session, sorted here, because databases sort text differently."""
    return sorted(map(repr, map(tuple, db.execute(query, {"no": number}).fetchall())))


def _table_queries() -> dict[str, str]:
    """For each table, the query for a session's rows, without columns that differ between projections."""
    out = {}
    for table, shape in TABLES.items():
        name = table.removeprefix("wl_")
        if table in ("wl_meta", "wl_lineage", "wl_text", "wl_kept"):
            continue
        number = "no" if table == "wl_session" else "session"
        columns = ", ".join(
            f"t.{column}" for column in shape.columns if column not in (number, "born", "carried", "worded")
        )
        out[name] = f"select {columns} from {table} t where t.{number} = :no"
    out["lineage"] = (
        "select t.first, t.last, h.id from wl_lineage t join wl_session h on h.no = t.holder where t.session = :no"
    )
    first = f":no * {1 << SEQ_BITS}"
    out["text"] = f"select t.id - {first}, t.body from wl_text t where t.id between {first} and {first} + {_SEQ_MAX}"
    return out


_SEQ_MAX = (1 << SEQ_BITS) - 1
_TABLES = _table_queries()
