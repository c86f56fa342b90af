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
from wakelog.index.facets import EARLY_WORDS, facets_of
from wakelog.index.rows import BATCH_CHARS
from wakelog.log.reader import check_commit
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit

_BEHIND = "select s.no, s.id, s.worded, s.head from wl_session s where s.worded < s.head{0} order by s.no"
_OF_TREE = " and s.root = :root"
_WORDED = "update wl_session set worded = ? where no = ?"


class WordBacklog:
    """The missing words of one fork tree, or of all sessions if `root` is empty."""

    def __init__(self, engine: Engine, root: str) -> None:
        self._engine = engine
        self._root = root
        self._unreadable: set[int] = set()
        self._texts: list[tuple[int, str]] = []
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
        db.executemany(_WORDED, moved)
        self._texts, self._chars = [], 0

    def _read(self, no: int, session: SessionId, worded: Seq, head: Seq) -> Seq:
        """Collects the texts of a session's events after `worded`; returns the last event read."""
        payloads = PayloadReader(self._engine, session)
        try:
            for commit in self._engine.read(session, after=worded, upto=head, payloads=True):
                for seq, text in _texts(commit, payloads):
                    self._texts.append((no << SEQ_BITS | seq, text))
                    self._chars += len(text)
                worded = commit.last
                if self._chars >= BATCH_CHARS:
                    return worded
        except UNREADABLE:
            self._unreadable.add(no)
            return worded
        return head


def _texts(commit: Commit, payloads: PayloadReader) -> list[tuple[Seq, str]]:
    """The texts of a commit's events, every byte verified; none if it was altered."""
    out = []
    try:
        headers, _ = check_commit(commit)
        bodies = [decode_body(record.body) for record in commit.records]
    except CorruptLogError:
        return []
    payloads.at_hand = dict(commit.payloads)
    for header, record, body in zip(headers, commit.records, bodies, strict=True):
        if record.body and header.kind not in EARLY_WORDS:
            fetch = functools.partial(payloads.fetch, header.seq)
            if text := facets_of(header.kind, body, fetch).text:
                out.append((header.seq, text))
    return out
