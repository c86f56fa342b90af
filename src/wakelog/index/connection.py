"""The interface between the index and its database.

The same code makes rows, watermarks and answers for every database. There are two: SQLite, in a file beside the log or
in memory (database.py), and the PostgreSQL database that has the log itself (shared.py). Every statement is written
once, in SQL that both understand. That gives these rules:

- conditions are `case when … then … end`, flags are numbers (`hidden = 0`), sums are cast back to bigint;
- every table that is read has an alias, because the shared database adds a condition to it (dialect.py);
- many rows are passed as JSON and split with `json_each(:name)` and `cast(value ->> 0 as bigint)`;
- `cross join … on` tells SQLite the order of a join; elsewhere it is a normal join;
- `has_text(column, :part)` says whether a text has a part, capitals of ASCII aside: what else is a capital depends on
  the server, and SQLite's own `lower` and `like` end at the first NUL.

Full-text search differs between the databases, so it has its own part (words.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import IntEnum
from pathlib import Path
from typing import Any, Protocol

import msgspec

KEY_MAX = 128
SEQ_BITS = 32
"""Session and seq make one number: `session << SEQ_BITS | seq`."""

CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SMALL = str.maketrans(CAPITALS, CAPITALS.lower())

Row = tuple[Any, ...]
Values = Sequence[Any] | Mapping[str, Any]
Texts = Callable[[str, int], str]
"""What an event says, by the session that holds it and its seq; empty when it is gone."""


class Damaged(Exception):
    """The index holds something that it cannot have written, or lacks a table. It has to be rebuilt."""


class Overtaken(Exception):
    """Another process took in the same changes at the same time. Nothing was written; look again."""


class StatementResult(Protocol):
    """What a statement gave."""

    @property
    def get(self) -> Any:
        """The only column of the first row, that row if it has several, or None."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> Any: ...


class Keep(IntEnum):
    """What the index keeps of a text besides its words."""

    NOTHING = 0
    """It is in the log."""
    TEXT = 1
    """The text: a view shows it, or many of them are looked through at once."""
    WORDS = 2
    """The text, and its words at once: they are looked through by more than searches, or not in the log any more."""


IndexedText = tuple[int, str, Keep]
"""A text by one number for session and seq."""


class WordIndex(Protocol):
    """Which event says which words (words.py). Texts go by one number for session and seq."""

    @property
    def wants_all(self) -> bool:
        """Whether every text is to be handed over with its rows. Else only those that are kept are, and words follow
        when somebody searches (word_backlog.py)."""

    def add(self, texts: Sequence[IndexedText]) -> None:
        """Adds texts."""

    def add_words(self, texts: Sequence[tuple[int, str]]) -> None:
        """Adds the words of texts that were not handed over before."""

    def remove(self, first: int, last: int) -> None:
        """Forgets the texts of this range."""

    def finish(self) -> None:
        """Called before the transaction is committed."""

    def find(
        self, statement: str, terms: Sequence[tuple[str, bool]], values: dict[str, Any], limit: int, texts: Texts
    ) -> list[Row]:
        """Runs the statement of search.py over what matches all of `terms`, the best first. Each row ends with the
        text, a snippet of it, and its weight. `texts` gives what is not kept here."""


class Connection(Protocol):
    """A connection inside a transaction."""

    @property
    def words(self) -> WordIndex: ...

    def execute(self, sql: str, values: Any = (), /) -> StatementResult: ...

    def executemany(self, sql: str, rows: Any, /) -> Any: ...


class IndexPlace(Protocol):
    """Where an index is kept."""

    @property
    def path(self) -> Path | None: ...

    @property
    def place(self) -> str:
        """What to call it in a message."""

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection inside a read transaction: everything it is asked is about the same moment."""

    def writing(self) -> AbstractContextManager[Connection]:
        """A connection inside a transaction. From the first write on nobody else writes, in any process."""

    def reset(self) -> None:
        """Empties the index, whatever state it is in."""

    def scrub(self) -> None:
        """Leaves nothing of removed rows behind, as far as that can be done now, and notes it in wl_meta."""

    def close(self) -> None: ...


def no_text(session: str, seq: int) -> str:
    """For who asks only for what is kept."""
    return ""


def as_key(text: str) -> str:
    """A text in a length that any database takes in a key; a long one is told from others by its hash."""
    return text if len(text) <= KEY_MAX else f"{text[:KEY_MAX]}\1{hashlib.sha256(text.encode()).hexdigest()}"


def small(text: str) -> str:
    """A text with the capitals of ASCII made small, as `has_text` compares it."""
    return text.translate(_SMALL)


def as_rows(rows: Iterable[Row]) -> str:
    """Rows as a statement takes them, in `json_each`."""
    return msgspec.json.encode(list(rows)).decode()
