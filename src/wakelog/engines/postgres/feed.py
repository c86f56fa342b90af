"""The store-wide feed without a sequence: by the time at which a commit was stored.

A commit gets its time when it is inserted and is seen when its transaction ends, so one can appear behind another that
is newer. What is older than every transaction that may have stored something now, the horizon, is final, however long
such a transaction takes: there a cursor is a time. What is
newer is told at once and remembered in the cursor, session by session, until the horizon has passed it. So nothing is
missed or told twice, and a cursor is as long as what is stored in the moment that a transaction takes.

Times never go back, also when another server takes over whose clock is behind: a writer asks, with each new connection,
for the newest time there is, and stores nothing at or before it."""

from __future__ import annotations

from typing import Any

import asyncpg
import msgspec

from wakelog.engine import FeedChange
from wakelog.engines.postgres import statements as sql
from wakelog.errors import InvalidInputError
from wakelog.model.ids import SessionId

SLACK_US = 10_000_000
"""How far the horizon lies back where the server does not tell what is at work. An append that takes longer there is
told only when its session changes again."""
PAGE_MAX = 10_000

Seen = dict[str, tuple[int, int]]
"""Session → the last event told, and when it was stored."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[int, Seen]).decode


def read_cursor(cursor: str) -> tuple[int, Seen]:
    """The time up to which everything was told, and what was told beyond it."""
    if not cursor:
        return -1, {}
    try:
        return _decode(cursor)
    except msgspec.DecodeError as exc:
        raise InvalidInputError(f"{cursor[:40]!r} is not a cursor of this store", kind="bad-cursor") from exc


async def changes(db: Any, ns: str, cursor: str, limit: int) -> list[FeedChange]:
    """What the cursor has not seen, in the order of storing."""
    done, seen = read_cursor(cursor)
    horizon = await _horizon(db)  # before the rows are read: a transaction that begins later stores later
    page = _Page(done, seen, horizon, limit)
    place: tuple[Any, ...] = (done + 1, "", "", 0)
    size = min(PAGE_MAX, limit + len(seen) + 1)
    while True:
        rows = await db.fetch(sql.CHANGES, ns, *place, size)
        if page.take(rows) or len(rows) < size:
            return page.found
        last = rows[-1]
        place = (last["stored_at"], last["root"], last["session"], last["first"])


async def end(db: Any, ns: str) -> str:
    """A cursor after everything that can be seen now; nothing older is read."""
    horizon = await _horizon(db)
    rows = await db.fetch(sql.CHANGES, ns, horizon, "", "", 0, 1 << 40)
    return _written(horizon - 1, {row["session"]: (row["last"], row["stored_at"]) for row in rows})


async def _horizon(db: Any) -> int:
    """Nothing will still appear that was stored before."""
    try:
        row = await db.fetchrow(sql.HORIZON)
    except (asyncpg.SyntaxOrAccessError, asyncpg.FeatureNotSupportedError):  # an engine without such tables
        row = {"is_told": False, "now": await db.fetchval(f"select {sql.NOW}")}
    horizon: int = row["oldest"] if row["is_told"] else row["now"] - SLACK_US
    return horizon


def _written(done: int, seen: Seen) -> str:
    return _encode((done, seen)).decode()


class _Page:
    """Changes as they are found."""

    def __init__(self, done: int, seen: Seen, horizon: int, limit: int) -> None:
        self._done, self._seen, self._horizon, self._limit = done, seen, horizon, limit
        self.found: list[FeedChange] = []

    def take(self, rows: list[Any]) -> bool:
        """True when the page is full."""
        for row in rows:
            session, last, at = row["session"], row["last"], row["stored_at"]
            if last <= self._seen.get(session, (0, 0))[0]:
                continue
            if len(self.found) == self._limit:
                return True
            self._tell(session, last, at)
        return len(self.found) == self._limit

    def _tell(self, session: str, last: int, at: int) -> None:
        # Others of the same microsecond may come after this one, so the time before it is what is done with.
        done = max(self._done, min(at, self._horizon) - 1)
        self._seen[session] = (last, at)
        if done > self._done:
            self._done = done
            self._seen = {s: mark for s, mark in self._seen.items() if mark[1] > done}
        self.found.append(FeedChange(SessionId(session), last, _written(done, self._seen)))
