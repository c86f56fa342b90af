"""Adds the words that searches need, when they are first needed.

Splitting texts into words takes a third of the time of an index, and most questions need no words. So in a file the
projector makes rows only. Words are added by the first search, or by a process that has nothing else to do; `worded`
says how far they are. They are read from the log as it is then, so content that was erased or pruned meanwhile is never
added. A search in one session waits for the words of its fork tree only.

Sessions that cannot be read now are tried again by the next search; altered commits are skipped. An index on a server
gets its words together with the rows (words.py).
"""

from __future__ import annotations

import functools
from typing import Any

from wakelog.codec.records import decode_body
from wakelog.engine import Engine
from wakelog.errors import CorruptLogError
from wakelog.index.connection import SEQ_BITS, Connection
from wakelog.index.event_texts import UNREADABLE, PayloadReader
from wakelog.index.facets import EARLY_WORDS, TEXT_MAX, Fetch, facets_of
from wakelog.index.rows import BATCH_CHARS
from wakelog.log.reader import check_commit
from wakelog.model.ids import Seq, SessionId
from wakelog.model.read_texts import READ_FIELDS, texts_of
from wakelog.model.records import Commit
from wakelog.model.values import Value

_BEHIND = "select s.no, s.id, s.worded, s.head from wl_session s where s.worded < s.head{0} order by s.no"
_OF_TREE = " and s.root = :root"
_WORDED = "update wl_session set worded = ? where no = ?"
_PARTLY = "insert into wl_partly_worded values (?, ?)"


class WordBacklog:
    """The missing words of one fork tree, or of all sessions if `root` is empty."""

    def __init__(self, engine: Engine, root: str) -> None:
        self._engine = engine
        self._root = root
        self._unreadable: set[int] = set()
        self._texts: list[tuple[int, str]] = []
        self._partly: list[tuple[int, Seq]] = []
        self._chars = 0
        self.done = 0
        """How many events were read."""
        self.left = 0
        """How many are left to read."""
        self.is_done = False

    def add_some(self, db: Connection) -> None:
        """Adds words for one transaction. Each transaction looks up again what is missing, because another process may
        have added it, or projected a session again."""
        found: Any = db.execute(_BEHIND.format(_OF_TREE if self._root else ""), {"root": self._root}).fetchall()
        behind = [row for row in found if row[0] not in self._unreadable]
        self.left = sum(head - worded for _, _, worded, head in behind)
        moved: list[tuple[Seq, int]] = []
        for no, session, worded, head in behind:
            reached = self._read(no, session, worded, head)
            moved.append((reached, no))
            self.done += reached - worded
            self.left -= reached - worded
            if self._chars >= BATCH_CHARS:
                break
        else:
            self.is_done = True
        db.words.add_words(self._texts)
        db.executemany(_PARTLY, self._partly)
        db.executemany(_WORDED, moved)
        self._texts, self._partly, self._chars = [], [], 0

    def _read(self, no: int, session: SessionId, worded: Seq, head: Seq) -> Seq:
        """Collects the texts of a session's events after `worded`; returns the last event read."""
        payloads = PayloadReader(self._engine, session)
        try:
            for commit in self._engine.read(session, after=worded, upto=head, payloads=True):
                for seq, text, is_whole in _texts(commit, payloads):
                    if text:
                        self._texts.append((no << SEQ_BITS | seq, text))
                        self._chars += len(text)
                    if not is_whole:
                        self._partly.append((no, seq))
                worded = commit.last
                if self._chars >= BATCH_CHARS:
                    return worded
        except UNREADABLE:
            self._unreadable.add(no)
            return worded
        return head


def _texts(commit: Commit, payloads: PayloadReader) -> list[tuple[Seq, str, bool]]:
    """The texts of a commit's events, every byte verified, and whether each is all that a model could read. None if the
    commit was altered; then its first event is reported as incomplete."""
    out = []
    try:
        headers, _ = check_commit(commit)
        bodies = [decode_body(record.body) for record in commit.records]
    except CorruptLogError:
        return [(commit.first, "", False)]
    payloads.at_hand = dict(commit.payloads)
    for header, record, body in zip(headers, commit.records, bodies, strict=True):
        kind = header.kind
        if not record.body or kind in EARLY_WORDS:
            continue
        fetch: Fetch = functools.partial(payloads.fetch, header.seq)
        if kind not in READ_FIELDS:
            text, is_whole = facets_of(kind, body, fetch).text, True
        else:
            fetch = _fetch_once(fetch)
            text = facets_of(kind, body, fetch).text
            is_whole = len(text) < TEXT_MAX and all(
                _is_in(text, body[field], fetch) for field in READ_FIELDS[kind] if field in body
            )
        if text or not is_whole:
            out.append((header.seq, text, is_whole))
    return out


def _fetch_once(fetch: Fetch) -> Fetch:
    held: dict[int, Value] = {}

    def fetched(mention: dict[str, Value]) -> Value:
        if id(mention) not in held:
            held[id(mention)] = fetch(mention)
        return held[id(mention)]

    return fetched


def _is_in(text: str, value: Value, fetch: Fetch) -> bool:
    """Whether a text has all texts of a value, to the last character."""
    if type(value) is dict and "$payload" in value:
        value = fetch(value)
        if value is None:
            return False
    return value in text if type(value) is str else all(each in text for each in texts_of(value))
