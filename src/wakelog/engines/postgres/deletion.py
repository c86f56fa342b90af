"""Deleting a session's data: its name, and its content once no fork reads through it."""

from __future__ import annotations

from typing import Any

from wakelog.engines.postgres import statements as sql
from wakelog.engines.postgres.rows import head_from_row
from wakelog.model.ids import SessionId, root_of

_END = 1 << 62


async def drop(db: Any, *, ns: str, session: SessionId) -> None:
    """Frees the name of a session whose tombstone is stored, and drops content that no fork reads."""
    key = (ns, root_of(session), session)
    name = await db.fetchval(sql.TITLE_OF, *key)
    if name:
        await db.execute(sql.DROP_NAME, ns, name, session)
        await db.execute(sql.DROP_TITLE, *key)
    await _drop_if_unread(db, ns, session)


async def _drop_if_unread(db: Any, ns: str, session: SessionId) -> None:
    """Drops a deleted session's content if no fork reads through it, and then does the same for its parents."""
    at: SessionId | None = session
    while at is not None:
        key = (ns, root_of(at), at)
        head = head_from_row(await db.fetchrow(sql.HEAD, *key))
        if head.status != "deleted" or await _is_read(db, ns, at):
            return
        await db.execute(sql.DROP_COMMITS, *key, head.seq)
        await db.execute(sql.DROP_IDS, *key, head.seq)
        await db.execute(sql.DROP_SNAPSHOTS, *key, 0, _END)
        await db.execute(sql.DROP_BEAT, *key)
        at = head.fork.parent if head.fork else None


async def _is_read(db: Any, ns: str, session: SessionId) -> bool:
    unseen = [session]
    while unseen:
        at = unseen.pop()
        forks = [head_from_row(row) for row in await db.fetch(sql.CHILDREN, ns, root_of(at), at)]
        if any(head.status != "deleted" for head in forks):
            return True
        unseen += [head.session for head in forks]
    return False
