"""Which process projects which shard, and how far it is: one row for each shard in the database of the index.

`place` in a row is the watermark. It is moved in the transaction that writes the rows up to there. That transaction
begins by updating the row, on the condition that owner, place and index are still the same. So a process that was
overtaken writes nothing, and a process that is killed leaves nothing half done.

A lease only distributes the work: a row has an owner for some seconds, by the clock of the database. Permanent
projectors are listed, and each takes every n-th shard. Other processes take a shard only while it is free.

Numbers for new sessions come in blocks from a separate row (shard -1), because several processes assign them at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from wakelog.engines.postgres import distribution
from wakelog.errors import UnsupportedError, WakelogError
from wakelog.index.shared_index import SharedConnection, SharedDatabase
from wakelog.model.ids import Seq, SessionId

LEASE_MS = 10_000
NUMBERS = 64
"""How many session numbers a process takes at a time."""

_SHARD_TABLE = """
create table if not exists wi_shard (
    ns text not null, shard bigint not null, made bytea not null, place bigint not null, session text not null,
    seq bigint not null, hash bytea not null, at bigint not null, owner text not null, until bigint not null,
    primary key (ns, shard)
)
"""
_PROJECTOR_TABLE = """
create table if not exists wi_projector (
    ns text not null, id text not null, until bigint not null, primary key (ns, id)
)
"""
_NOW = "(extract(epoch from clock_timestamp()) * 1000)::bigint"
_ROWS = f"""
select s.shard, s.place, s.session, s.seq, s.hash, s.at, s.made, case when s.until > {_NOW} then s.owner else '' end
from wi_shard s join wi_meta m on m.ns = s.ns and m.made = s.made
where s.ns = $1::text and s.shard >= 0 order by s.shard
"""
# A row of an earlier index counts as empty.
_TAKE = f"""
insert into wi_shard
select m.ns, $2::bigint, m.made, 0, '', 0, ''::bytea, 0, $3::text, {_NOW} + $4::bigint from wi_meta m
where m.ns = $1::text
on conflict (ns, shard) do update set
    place = case when wi_shard.made = excluded.made then wi_shard.place else 0 end,
    session = case when wi_shard.made = excluded.made then wi_shard.session else '' end,
    made = excluded.made, owner = excluded.owner, until = excluded.until
where wi_shard.owner = excluded.owner or wi_shard.until <= {_NOW}
returning shard, place, session, seq, hash, at, made, owner
"""
_BEGIN = f"""
update wi_shard set until = case when until > {_NOW} + $6::bigint then until else {_NOW} + $6::bigint end
where ns = $1::text and shard = $2::bigint and owner = $3::text and place = $4::bigint and made = $5::bytea
returning shard
"""
_NEWEST = """
update wi_shard set at = case when at < $3::bigint then $3::bigint else at end{0}
where ns = $1::text and shard = $2::bigint
"""
_MOVE = _NEWEST.format(", place = $4::bigint, session = $5::text, seq = $6::bigint, hash = $7::bytea")
_GIVE_BACK = "update wi_shard set until = 0 where ns = $1::text and shard = any($2::bigint[]) and owner = $3::text"
_NUMBER = """
insert into wi_shard values ($1::text, -1, ''::bytea, $2::bigint, '', 0, ''::bytea, 0, '', 0)
on conflict (ns, shard) do update set place = wi_shard.place + excluded.place returning place
"""
_BEAT = f"""
insert into wi_projector values ($1::text, $2::text, {_NOW} + $3::bigint)
on conflict (ns, id) do update set until = excluded.until
"""
_GONE = f"delete from wi_projector where ns = $1::text and (until <= {_NOW} or id = $2::text)"
_LIVE = f"select id from wi_projector where ns = $1::text and until > {_NOW} order by id"


async def _refuse_workers(db: Any) -> None:
    """Projectors lock a table, and ask for the time in every statement: a sharded server has one or the other not."""
    if await distribution.is_distributed(db):
        raise UnsupportedError(
            "this database spreads a store over workers, and projectors cannot share an index there",
            kind="index-distributed",
            hint="name another database: ?index=postgresql://…",
        )


class ShardRow(msgspec.Struct, frozen=True):
    """How far a shard was projected, its newest projected commit, and its owner (empty: none)."""

    shard: int
    place: int
    session: SessionId
    seq: Seq
    hash: bytes
    at: int
    made: bytes
    owner: str


class ShardedDatabase(SharedDatabase):
    """The database of an index that several processes write at once, each its own shards."""

    async def _make(self, db: Any) -> None:
        await super()._make(db)
        await self._made(db, (_SHARD_TABLE, _PROJECTOR_TABLE))

    def _open(self) -> None:
        super()._open()
        with self._translated_errors(), self._connection() as db:
            self.run(_refuse_workers(db))
            self.run(self._made(db, (_SHARD_TABLE, _PROJECTOR_TABLE)))

    def _translate(self, exc: Exception) -> WakelogError:
        """The log is on other servers, so an error says which one it is about."""
        error = super()._translate(exc)
        error.message = f"the database of the index: {error.message}"
        error.args = (error.message,)
        return error

    def _stop_others(self, db: SharedConnection) -> None:
        """Waits for all writers, and blocks new ones until the index is empty."""
        db.fetch("lock table wi_shard in exclusive mode")
        db.fetch("delete from wi_shard where ns = $1::text and shard >= 0")


def rows(db: SharedConnection) -> dict[int, ShardRow]:
    return {row[0]: ShardRow(*row) for row in db.fetch(_ROWS)}


def take(db: SharedConnection, shard: int, owner: str) -> ShardRow | None:
    """Makes `owner` the owner of a shard; None if another process is. Reads first, because taking a row waits for its
    writer."""
    row = rows(db).get(shard)
    if row is not None and row.owner not in ("", owner):
        return None
    results = db.fetch(_TAKE, shard, owner, LEASE_MS)
    return ShardRow(*results[0]) if results else None


def begin(db: SharedConnection, row: ShardRow) -> bool:
    """Begins a writing transaction; False if the shard was moved or taken by another process."""
    return bool(db.fetch(_BEGIN, row.shard, row.owner, row.place, row.made, LEASE_MS))


def note_newest(db: SharedConnection, row: ShardRow, at: int) -> None:
    db.fetch(_NEWEST.format(""), row.shard, at)


def move(db: SharedConnection, row: ShardRow, at: int, place: int, mark: tuple[SessionId, Seq, bytes]) -> None:
    db.fetch(_MOVE, row.shard, at, place, *mark)


def give_back(db: SharedConnection, shards: Iterable[int], owner: str) -> None:
    db.fetch(_GIVE_BACK, list(shards), owner)


def next_numbers(db: SharedConnection) -> range:
    """A block of numbers for new sessions."""
    last: int = db.fetch(_NUMBER, NUMBERS)[0][0]
    return range(last - NUMBERS + 1, last + 1)


def beat(db: SharedConnection, owner: str) -> list[str]:
    """Records that a projector is alive; returns all live ones."""
    db.fetch(_BEAT, owner, LEASE_MS)
    return live(db)


def live(db: SharedConnection) -> list[str]:
    """The running projectors."""
    return [row[0] for row in db.fetch(_LIVE)]


def leave(db: SharedConnection, owner: str) -> None:
    """Removes a projector, and all dead ones, from the list."""
    db.fetch(_GONE, owner)
