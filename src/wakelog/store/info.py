"""What is in a store: sessions, events, bytes on disk and by kind of event, and what will be kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from wakelog.codec.records import decode_header
from wakelog.model.records import Head
from wakelog.store.holds import find_holds
from wakelog.store.measures import file_bytes, file_of
from wakelog.store.retention import Policy

if TYPE_CHECKING:
    from wakelog.store import Store

SAMPLE = 100_000
"""Above this many events, bytes by kind are estimated from the newest events of each session."""

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
    held: int
    unreadable: int
    """Sessions whose state does not fold: damaged or altered."""
    events: int
    files: dict[str, int]
    by_kind: tuple[KindBytes, ...]
    is_sampled: bool
    """Whether `by_kind` is an estimate."""
    oldest: int | None
    newest: int | None
    retention: str
    redacts: bool
    """Whether secrets are taken out of what is appended through this store object."""


def info(
    store: Store, policy: Policy | None = None, *, full: bool = False, progress: Progress | None = None
) -> StoreInfo:
    """Counts everything. Bytes by kind are estimated in a big store, unless `full`."""
    heads = list(store.sessions())
    events = sum(map(_own_events, heads))
    share = 1.0 if full or events <= SAMPLE else SAMPLE / events
    kinds = _by_kind(store, heads, share, progress)
    path = file_of(store.engine)
    held = find_holds(store)
    return StoreInfo(
        path=str(path) if path else getattr(store.engine, "url", None),
        engine=type(store.engine).__name__.removesuffix("Engine").lower(),
        durability=store.engine.durability,
        sessions=len(heads),
        by_status=dict(Counter(h.status for h in heads).most_common()),
        forks=sum(h.fork is not None for h in heads),
        held=len(held.found),
        unreadable=len(held.unreadable),
        events=events,
        files=file_bytes(path) if path else {},
        by_kind=kinds,
        is_sampled=share < 1,
        oldest=min((_opened_at(store, h) for h in heads), default=None),
        newest=max((h.at for h in heads), default=None),
        retention=str(policy or Policy()),
        redacts=store.redact is not None,
    )


def _own_events(head: Head) -> int:
    """A fork's shared events are its parent's."""
    return head.seq - (head.fork.at if head.fork else 0)


def _opened_at(store: Store, head: Head) -> int:
    first = head.fork.at + 1 if head.fork else 1
    return next((c.at for c in store.engine.read(head.session, after=first - 1, upto=first)), head.at)


def _by_kind(store: Store, heads: list[Head], share: float, progress: Progress | None) -> tuple[KindBytes, ...]:
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for head in heads:
        wanted = max(1, int(_own_events(head) * share))
        for commit in store.engine.read(head.session, after=head.seq - wanted):
            for record in commit.records:
                kind = decode_header(record.header).kind
                counts[kind] += 1
                sizes[kind] += len(record.header) + len(record.body)
            if progress is not None:
                progress(len(commit.records))
    return tuple(KindBytes(k, round(counts[k] / share), round(size / share)) for k, size in sizes.most_common())
