"""Words in SQLite: its own full-text search over wl_text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from wakelog.index.rows import SEQ_BITS

TOKENIZER = ("unicode61", "remove_diacritics", "2")
"""Case and accents do not count; a word is a run of letters and digits. As in schema.sql."""
SNIPPET = "snippet(wl_words, 0, '«', '»', '…', 24)"

_ADD = "insert into wl_words (rowid, body) values (?, ?)"
_REBUILD = "insert into wl_words (wl_words) values ('rebuild')"
_PARTS = {
    "found": f"{SNIPPET}, wl_words.rank",
    "source": "wl_words",
    "session": f"wl_words.rowid >> {SEQ_BITS}",
    "seq": f"wl_words.rowid & {(1 << SEQ_BITS) - 1}",
}
_MATCHING = " and wl_words match :query and wl_words.rowid between :low and :high order by wl_words.rank limit :limit"


class FullText:
    """The words of one transaction."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._has_removed = False

    def add(self, texts: Sequence[tuple[int, str]]) -> None:
        if not self._has_removed:
            self._db.executemany(_ADD, texts)

    def remove(self, first: int, last: int) -> None:
        # Taking words out text by text costs far more, and leaves the beginnings of some in the inner pages.
        self._has_removed = True

    def finish(self) -> None:
        if self._has_removed:
            self._db.execute(_REBUILD)
            self._has_removed = False

    def find(self, statement: str, query: str, values: dict[str, Any], limit: int) -> list[tuple[Any, ...]]:
        sql = statement.format(**_PARTS) + _MATCHING
        rows: Any = self._db.execute(sql, {**values, "query": query, "limit": limit}).fetchall()
        return list(rows)


class Lite:
    """A connection to SQLite as the index uses it (connection.py)."""

    def __init__(self, db: apsw.Connection) -> None:
        self.execute = db.execute
        self.executemany = db.executemany
        self.words = FullText(db)
