"""The interface between the index and its database.

The same code makes rows, watermarks and answers for every database. There are two: SQLite, in a file beside the log or
in memory (database.py), and the PostgreSQL database that has the log itself (shared_index.py). Every statement is
written once, in SQL that both understand. That gives these rules:

- conditions are `case when … then … end`, flags are numbers (`hidden = 0`), sums are cast back to bigint;
- every table that is read has an alias, because the shared database adds a condition to it (dialect.py);
- many rows are passed as JSON and split with `json_each(:name)` and `cast(value ->> 0 as bigint)`;
- `cross join … on` tells SQLite the order of a join; elsewhere it is a normal join;
- `has_text(column, :part)` says whether a text contains a part, ignoring the case of ASCII letters. For other letters
  the result would depend on the server, and SQLite's own `lower` and `like` stop at the first NUL.

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
_LOWER = str.maketrans(CAPITALS, CAPITALS.lower())

Row = tuple[Any, ...]
Values = Sequence[Any] | Mapping[str, Any]
Texts = Callable[[str, int], str]
"""From a session and a seq to the text of the event; empty if it is gone."""


class Damaged(Exception):
    """The index has something that it cannot have written, or lacks a table. It must be rebuilt."""


class ProjectionConflict(Exception):
    """Another process projected the same changes at the same time. Nothing was written; try again."""


class StatementResult(Protocol):
    """The rows of a statement."""

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
    """The text, because a view shows it."""
    WORDS = 2
    """The text, and its words at once: other questions than searches use them, or the log no longer has the text."""


IndexedText = tuple[int, str, Keep]
"""One number for session and seq, the text, and what to keep of it."""


class WordIndex(Protocol):
    """Which event contains which words (words.py). A text is identified by one number for session and seq."""

    @property
    def wants_all(self) -> bool:
        """Whether all texts are added with their rows. Otherwise only texts to keep are, and words are added by the
        first search (word_backlog.py)."""

    def add(self, texts: Sequence[IndexedText]) -> None:
        """Adds texts."""

    def add_words(self, texts: Sequence[tuple[int, str]]) -> None:
        """Adds the words of texts that were not added with their rows."""

    def remove(self, first: int, last: int) -> None:
        """Removes the texts of this range."""

    def finish(self) -> None:
        """Called before the transaction is committed."""

    def find(
        self, statement: str, terms: Sequence[tuple[str, bool]], values: dict[str, Any], limit: int, texts: Texts
    ) -> list[Row]:
        """Runs the statement of search.py over the texts that match all of `terms`, the best first. Each row ends with
        the text, a snippet of it, and its weight. `texts` reads texts that are not kept here."""


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
        """A connection inside a read transaction: all its answers are about the same moment."""

    def writing(self) -> AbstractContextManager[Connection]:
        """A connection inside a transaction. From its first write on, no other process can write."""

    def reset(self) -> None:
        """Empties the index, whatever state it is in."""

    def scrub(self) -> None:
        """Overwrites removed rows, as far as that can be done now, and records it in wl_meta."""

    def close(self) -> None: ...


def no_text(session: str, seq: int) -> str:
    """For questions that need only texts kept in the index."""
    return ""


def as_key(text: str) -> str:
    """A text short enough for a key of any database; a long one is cut and ends with its hash."""
    return text if len(text) <= KEY_MAX else f"{text[:KEY_MAX]}\1{hashlib.sha256(text.encode()).hexdigest()}"


def lower_ascii(text: str) -> str:
    """A text with ASCII letters in lower case, as `has_text` compares it."""
    return text.translate(_LOWER)


def as_rows(rows: Iterable[Row]) -> str:
    """Rows as JSON, for `json_each`."""
    return msgspec.json.encode(list(rows)).decode()
