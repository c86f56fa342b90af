"""Creates stores, also distributed ones, shows where shards are, and adds shards."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from wakelog.encryption.key_ring import MasterKey
from wakelog.engine import Engine, Shards, require
from wakelog.errors import ConflictError, NotFoundError, UnsupportedError
from wakelog.model.shards import ShardPlacement
from wakelog.store import Store
from wakelog.store.encryption import with_encryption
from wakelog.store.url import POSTGRES, open_engine, open_postgres


def create_store(
    url: str,
    *,
    shards: int | None = None,
    replicas: int | None = None,
    distributed: bool = False,
    encryption_key: str = "",
) -> Sequence[ShardPlacement]:
    """Creates a store and returns where its shards are, if it has any. Raises ConflictError if it exists. With
    `distributed`, the tables of a PostgreSQL store are distributed over the workers of a Citus cluster. With an
    `encryption_key`, as for `open`, its content is encrypted."""
    scheme = url.partition("://")[0]
    is_cluster = scheme in ("nats", "tls")
    if distributed and scheme not in POSTGRES:
        raise UnsupportedError(
            "only the tables of a PostgreSQL store can be distributed",
            kind="no-shards",
            hint="name it by postgresql://…; a NATS store always has shards",
        )
    master = MasterKey.read(encryption_key) if encryption_key else None
    try:
        with closing(open_engine(url, create=False)) as present:
            place = present.abilities.place
    except NotFoundError as exc:
        if exc.kind != "store-not-found":
            raise
    else:
        raise ConflictError(
            f"there is a store already: {place}" if place else "there is a store already",
            kind="store-exists",
            hint="wakelog store info shows it"
            + ("; wakelog store shards N gives it more shards" if is_cluster else ""),
        )
    if not is_cluster:
        if replicas is not None or (shards is not None and not distributed):
            raise UnsupportedError(
                "only a store on a NATS cluster has shards and replicas",
                kind="no-shards",
                hint="leave them out, or use nats://host,host,host/store",
            )
        engine: Engine = open_postgres(url, True, True, shards) if distributed else open_engine(url, create=True)
        with closing(engine):
            with_encryption(engine, master)
        return ()
    from wakelog.store.nats_url import open_nats

    spread = open_nats(url, True, shards=shards, replicas=replicas)
    with closing(spread):
        with_encryption(spread, master)
        return spread.placement()


def placement(store: Store) -> Sequence[ShardPlacement]:
    """Returns where each shard is; empty if the store has none."""
    shards = store.engine.abilities.shards
    return shards.placement() if shards is not None else ()


def add_shards(store: Store, count: int) -> Sequence[ShardPlacement]:
    """Gives the store `count` shards. New sessions use all of them; existing sessions do not move."""
    shards = require_shards(store)
    shards.add_shards(count)
    return shards.placement()


def require_shards(store: Store) -> Shards:
    return require(
        store.engine.abilities.shards,
        UnsupportedError(
            "this store has no shards",
            kind="no-shards",
            hint="a store on a NATS cluster has: nats://host,host,host/store",
        ),
    )
