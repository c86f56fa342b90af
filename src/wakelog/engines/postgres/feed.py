"""The feed of all sessions, ordered by the time at which a commit was stored; there is no global sequence.

A commit gets its time when it is inserted, and becomes visible when its transaction ends. So it can appear after a
newer one. The *horizon* is the start of the oldest transaction that may still store something: everything before it is
final. Up to the horizon, a cursor is a time. Newer changes are returned at once, and the cursor lists them by session
until the horizon has passed them. So nothing is missed or repeated, and a cursor is only as long as the number of
commits that are stored while one transaction runs.

Times never go back, even if another server with a slower clock takes over: with each new connection a writer asks for
the newest time, and stores nothing at or before it.
"""

from __future__ import annotations

from typing import Any

import asyncpg
import msgspec

from wakelog.engine import FeedChange
from wakelog.engines.postgres import statements as sql
from wakelog.errors import InvalidInputError
from wakelog.model.ids import SessionId

SLACK_US = 10_000_000
"""How far back the horizon is if the server does not report running transactions, or not all, as on a sharded server.
An append that takes longer and was not reported appears only when its session changes again."""
PAGE_MAX = 10_000

Seen = dict[str, tuple[int, int]]
"""Session → the last event returned, and when it was stored."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[int, Seen]).decode


def read_cursor(cursor: str) -> tuple[int, Seen]:
    """The time up to which everything was returned, and what was returned beyond it."""
    if not cursor:
        return -1, {}
    try:
        return _decode(cursor)
    except msgspec.DecodeError as exc:
        raise InvalidInputError(f"{cursor[:40]!r} is not a cursor of this store", kind="bad-cursor") from exc


async def changes(db: Any, ns: str, cursor: str, limit: int) -> list[FeedChange]:
    """The changes after the cursor, in the order they were stored."""
    done, seen = read_cursor(cursor)
    horizon = await _horizon(db)  # before reading rows: a transaction that begins later stores later
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
    """A cursor after everything visible now, without reading older rows."""
    horizon = await _horizon(db)
    rows = await db.fetch(sql.CHANGES, ns, horizon, "", "", 0, 1 << 40)
    return _write_cursor(horizon - 1, {row["session"]: (row["last"], row["stored_at"]) for row in rows})


async def _horizon(db: Any) -> int:
    """The time before which no further commit can appear."""
    try:
        row = await db.fetchrow(sql.HORIZON)
    except (asyncpg.SyntaxOrAccessError, asyncpg.FeatureNotSupportedError):  # an engine without such tables
        row = {"is_told": False, "now": await db.fetchval(f"select {sql.NOW}")}
    slack: int = row["now"] - SLACK_US
    if not row["is_told"]:
        return slack
    oldest: int = row["oldest"]
    return min(oldest, slack) if row["is_sharded"] else oldest


def _write_cursor(done: int, seen: Seen) -> str:
    return _encode((done, seen)).decode()


class _Page:
    """Collects the changes of one page."""

    def __init__(self, done: int, seen: Seen, horizon: int, limit: int) -> None:
        self._done, self._seen, self._horizon, self._limit = done, seen, horizon, limit
        self.found: list[FeedChange] = []

    def take(self, rows: list[Any]) -> bool:
        """Adds the changes in the rows; True if the page is full."""
        for row in rows:
            session, last, at = row["session"], row["last"], row["stored_at"]
            if last <= self._seen.get(session, (0, 0))[0]:
                continue
            if len(self.found) == self._limit:
                return True
            self._add(session, last, at)
        return len(self.found) == self._limit

    def _add(self, session: str, last: int, at: int) -> None:
        # Another commit of the same microsecond may follow, so only the time before it is complete.
        done = max(self._done, min(at, self._horizon) - 1)
        self._seen[session] = (last, at)
        if done > self._done:
            self._done = done
            self._seen = {s: mark for s, mark in self._seen.items() if mark[1] > done}
        self.found.append(FeedChange(SessionId(session), last, _write_cursor(done, self._seen)))
