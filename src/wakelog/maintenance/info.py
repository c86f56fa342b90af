"""Describes a store: sessions, events, bytes on disk and by kind of event, and its retention."""

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
OLDEST_CANDIDATES = 50
"""In a big store, the oldest session is searched among this many."""
SAMPLE_SESSIONS = 300
"""Above this many sessions, only this many are read for estimates, and what needs all of them is left out."""

Progress = Callable[[int], None]
"""Called now and then with the number of events read since the last call."""


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
    """None if not counted, because each session would have to be opened."""
    unreadable: int | None
    """Sessions whose state cannot be read, because they are damaged or altered; None as for `held`."""
    events: int
    files: dict[str, int]
    by_kind: tuple[KindBytes, ...]
    is_sampled: bool
    """Whether `by_kind` is an estimate."""
    oldest: int | None
    newest: int | None
    retention: str
    version: int | None
    """The version of the tables, if they have one."""
    waiting: int
    """How many migration steps are pending. The store can be used without them."""
    blobs: str | None
    """Where big payloads are stored, if not in the store."""
    scrubbed: Pass | None
    """The last complete pass of `store scrub`."""
    redacts: bool
    """Whether secrets are removed from what is appended through this store object."""
    encryption: str | None = None
    """The key ring of an encrypted store; None if it is not encrypted."""
    has_key: bool = False
    """Whether it was opened with its key. Without the key, nothing that needs content is counted."""
    shards: tuple[ShardPlacement, ...] = ()
    """Where each shard is stored, if the store has shards."""
    workers: dict[str, int] = {}
    """The servers of a sharded database that store the log, and how many parts each has."""


def info(
    store: Store, policy: RetentionPolicy | None = None, *, full: bool = False, progress: Progress | None = None
) -> StoreInfo:
    """Describes the store. In a big store bytes by kind are estimated, unless `full`."""
    heads = list(store.sessions())
    events = sum(map(_own_events, heads))
    is_small = full or len(heads) <= SAMPLE_SESSIONS
    kinds, share = _by_kind(store, heads, events, full, progress)
    encryption = store.engine.abilities.encryption
    holds = find_holds(store) if is_small and (encryption is None or encryption.has_key) else None
    stored = encryption.below if encryption is not None else store.engine
    engine = stored.engine if isinstance(stored, BlobEngine) else stored
    path, sizes, migrations = engine.abilities.path, engine.abilities.sizes, engine.abilities.migrations
    shards = tuple(engine.abilities.shards.placement()) if engine.abilities.shards else ()
    if path:
        files = file_bytes(path)
    else:
        files = sizes.table_bytes() if sizes else {f"shard {shard.shard}": shard.bytes for shard in shards}
    return StoreInfo(
        path=engine.abilities.place or None,
        engine=type(engine).__name__.removesuffix("Engine").lower(),
        durability=engine.durability,
        workers=engine.abilities.workers() if engine.abilities.workers is not None else {},
        sessions=len(heads),
        by_status=dict(Counter(h.status for h in heads).most_common()),
        forks=sum(h.fork is not None for h in heads),
        held=len(holds.found) if holds is not None else None,
        unreadable=len(holds.unreadable) if holds is not None else None,
        events=events,
        files=files,
        by_kind=kinds,
        is_sampled=share < 1,
        # Ids sort by age, so in a big store the oldest is among the first.
        oldest=min((_opened_at(store, h) for h in (heads if is_small else heads[:OLDEST_CANDIDATES])), default=None),
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
    """Counts a session's own events. Events that a fork shares count for its parent."""
    return head.seq - (head.fork.at if head.fork else 0)


def _opened_at(store: Store, head: Head) -> int:
    first = head.fork.at + 1 if head.fork else 1
    return next((c.at for c in store.engine.read(head.session, after=first - 1, upto=first)), head.at)


def _by_kind(
    store: Store, heads: list[Head], events: int, full: bool, progress: Progress | None
) -> tuple[tuple[KindBytes, ...], float]:
    """Counts events and bytes by kind. Returns them, and the share of all events that was read."""
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
