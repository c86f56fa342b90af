"""Checks an index against the log: the log is projected again, and the two results are compared row by row.

An index is a cache without hashes, so anybody who can write its file can forge a row. Only the log can show that. The
second projection is a temporary file beside the first. Rows are compared as they are read, so memory does not grow with
the store.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wakelog.engine import Engine
from wakelog.index.connection import SEQ_BITS, Connection, Damaged
from wakelog.index.index import Index
from wakelog.index.sql import VIEWS

TRIES = 5
"""How often the two are brought to one moment, while others write."""

_SESSIONS = "select * from sessions order by id"
_OF = "where s.id = ? order by 1"
_PARTS = {
    **{view: f"select * from {view} where session = ? order by 2, 3" for view in VIEWS if view != "sessions"},
    "texts": (
        f"select t.id & {(1 << SEQ_BITS) - 1}, t.body from wl_session s join wl_text t"
        f" on t.id between s.no << {SEQ_BITS} and (s.no << {SEQ_BITS}) + {(1 << SEQ_BITS) - 1} {_OF}"
    ),
    "labels": f"select l.name, l.value from wl_session s join wl_label l on l.session = s.no {_OF}",
    "costs": (
        "select c.seq, c.turn, c.occurred, c.tool, c.model, c.call, c.sub, c.tokens, c.tokens_out, c.usd_micros,"
        f" c.duration_us from wl_session s join wl_cost c on c.session = s.no {_OF}"
    ),
}
"""What an index answers with, by session. `order by` puts the rows in one order however they came to be."""


def differences(index: Index, engine: Engine) -> Iterator[tuple[str, str]]:
    """(session, what of it) for everything in an index that is not what the log says. An index that is kept in memory
    or in a shared database is not looked at."""
    if index.path is None:
        return
    with (
        tempfile.TemporaryDirectory(prefix=".index-", dir=index.path.parent) as folder,
        Index(engine, Path(folder) / "index.db") as fresh,
    ):
        for _ in range(TRIES):
            index.catch_up()
            fresh.catch_up()
            with index.reading() as kept, fresh.reading() as made:
                if _cursor(kept) == _cursor(made):
                    try:
                        yield from _compared(kept, made)
                    except Damaged as exc:
                        yield "", f"it cannot be read: {exc}"
                    return


def _cursor(db: Connection) -> str:
    return str(db.execute("select m.cursor from wl_meta m").get)


def _compared(kept: Connection, made: Connection) -> Iterator[tuple[str, str]]:
    for here, there in _pairs(kept, made, _SESSIONS, ()):
        if here != there:
            # From here on the two lists no longer stand side by side; one name is enough to make the index anew.
            yield str((here or there)[0]), "sessions"
            return
        session = here[0]
        for what, query in _PARTS.items():
            if any(ours != theirs for ours, theirs in _pairs(kept, made, query, (session,))):
                yield session, what


def _pairs(kept: Connection, made: Connection, query: str, values: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    return itertools.zip_longest(*(iter(db.execute(query, values).fetchone, None) for db in (kept, made)))
