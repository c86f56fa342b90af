"""What is in a store: sessions, events, bytes on disk and by kind of event, and what retention will keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from wakelog.codec.records import decode_header
from wakelog.config.retention_policy import RetentionPolicy
from wakelog.engines.blobs import BlobEngine
from wakelog.errors import NotFoundError
from wakelog.maintenance.byte_sizes import file_bytes
from wakelog.maintenance.holds import find_holds
from wakelog.maintenance.scrub import Pass, last_pass
from wakelog.model.records import Head
from wakelog.model.shards import ShardPlacement
from wakelog.store import Store

SAMPLE = 100_000
"""Above this many events, bytes by kind are estimated from the newest events of some sessions."""
NEAR = 50
SAMPLE_SESSIONS = 300
"""Above this many sessions, what needs a look into each is estimated from so many, or left out."""

Progress = Callable[[int], None]
"""Told, now and then, how many more events have been read."""


class KindBytes(msgspec.Struct, frozen=True):
    """How often a kind of event occurs, and how many bytes its headers and bodies take before compression."""

    kind: str
    events: int
    bytes: int


class StoreInfo(msgspec.Struct, frozen=True):
    """One store at one moment."""

    path: str | None
    engine: str
    durability: str
    sessions: int
    by_status: dict[str, int]
    forks: int
    held: int | None
    """None: not counted, because each session would have to be opened."""
    unreadable: int | None
    """Sessions whose state does not fold: damaged or altered; None as for `held`."""
    events: int
    files: dict[str, int]
    by_kind: tuple[KindBytes, ...]
    is_sampled: bool
    """Whether `by_kind` is an estimate."""
    oldest: int | None
    newest: int | None
    retention: str
    version: int | None
    """Of the tables, where they have versions."""
    waiting: int
    """Steps of a migration that the store lacks; it can be used without them."""
    blobs: str | None
    """Where big payloads are kept, if not in the store."""
    scrubbed: Pass | None
    """The last pass of `store scrub` that came to its end."""
    redacts: bool
    """Whether secrets are taken out of what is appended through this store object."""
    encryption: str | None = None
    """The key ring of an encrypted store; None when it is not encrypted."""
    has_key: bool = False
    """Whether it was opened with its key. Without, nothing that needs the content is counted."""
    shards: tuple[ShardPlacement, ...] = ()
    """Where each shard is kept, for a store that has shards."""
    workers: dict[str, int] = {}
    """The servers of a sharded database that keep the log, and how many parts of it each has."""


def info(
    store: Store, policy: RetentionPolicy | None = None, *, full: bool = False, progress: Progress | None = None
) -> StoreInfo:
    """Counts everything. Bytes by kind are estimated in a big store, unless `full`."""
    heads = list(store.sessions())
    events = sum(map(_own_events, heads))
    is_small = full or len(heads) <= SAMPLE_SESSIONS
    kinds, share = _by_kind(store, heads, events, full, progress)
    encryption = store.engine.abilities.encryption
    held = find_holds(store) if is_small and (encryption is None or encryption.has_key) else None
    stored = encryption.below if encryption is not None else store.engine
    engine = stored.engine if isinstance(stored, BlobEngine) else stored
    path, sizes, migrations = engine.abilities.path, engine.abilities.sizes, engine.abilities.migrations
    shards = tuple(engine.abilities.shards.placement()) if engine.abilities.shards else ()
    return StoreInfo(
        path=engine.abilities.place or None,
        engine=type(engine).__name__.removesuffix("Engine").lower(),
        durability=engine.durability,
        workers=engine.abilities.workers() if engine.abilities.workers is not None else {},
        sessions=len(heads),
        by_status=dict(Counter(h.status for h in heads).most_common()),
        forks=sum(h.fork is not None for h in heads),
        held=len(held.found) if held is not None else None,
        unreadable=len(held.unreadable) if held is not None else None,
        events=events,
        files=file_bytes(path)
        if path
        else sizes.table_bytes()
        if sizes
        else {f"shard {each.shard}": each.bytes for each in shards},
        by_kind=kinds,
        is_sampled=share < 1,
        # Ids sort by age, so in a big store the oldest is among the first.
        oldest=min((_opened_at(store, h) for h in (heads if is_small else heads[:NEAR])), default=None),
        newest=max((h.at for h in heads), default=None),
        retention=str(policy or RetentionPolicy()),
        version=migrations.version() if migrations else None,
        waiting=len(migrations.waiting()) if migrations else 0,
        blobs=stored.url if isinstance(stored, BlobEngine) else None,
        scrubbed=last_pass(store),
        redacts=store.redact is not None,
        encryption=encryption.ring if encryption is not None else None,
        has_key=encryption is not None and encryption.has_key,
        shards=shards,
    )


def _own_events(head: Head) -> int:
    """A fork's shared events are its parent's."""
    return head.seq - (head.fork.at if head.fork else 0)


def _opened_at(store: Store, head: Head) -> int:
    first = head.fork.at + 1 if head.fork else 1
    return next((c.at for c in store.engine.read(head.session, after=first - 1, upto=first)), head.at)


def _by_kind(
    store: Store, heads: list[Head], events: int, full: bool, progress: Progress | None
) -> tuple[tuple[KindBytes, ...], float]:
    """Events and bytes by kind, and which share of all events that was counted from."""
    step = 1 if full else max(1, len(heads) // SAMPLE_SESSIONS)
    chosen = heads[::step]
    there = sum(map(_own_events, chosen))
    part = 1.0 if full or there <= SAMPLE else SAMPLE / there
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for head in chosen:
        wanted = max(1, int(_own_events(head) * part))
        try:
            commits = list(store.engine.read(head.session, after=head.seq - wanted, upto=head.seq))
        except NotFoundError:
            continue  # deleted meanwhile
        for commit in commits:
            for record in commit.records:
                kind = decode_header(record.header).kind
                counts[kind] += 1
                sizes[kind] += len(record.header) + len(record.body)
            if progress is not None:
                progress(len(commit.records))
    is_whole = step == 1 and part == 1.0
    share = 1.0 if is_whole else min(0.999, counts.total() / events) if events else 1.0
    return tuple(KindBytes(k, round(counts[k] / share), round(size / share)) for k, size in sizes.most_common()), share
