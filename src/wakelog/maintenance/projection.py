"""Keeps the index up to date while sessions are written: what `wakelog project` does.

If the store has shards and a shared index, several projectors divide the shards: each takes every n-th. They find each
other in the index itself, so nothing has to be configured. If one is killed, the others take over its shards after some
seconds. In any other store, one projector updates the one index.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from wakelog.engine import require
from wakelog.engines.group_commit import Bell
from wakelog.errors import UnavailableError, UnsupportedError

if TYPE_CHECKING:
    from wakelog.index.sharded_index import ShardedIndex
    from wakelog.store import Store

BEAT_S = 2.0
NEWS_S = 0.5
"""How long to wait for news before polling."""
RETRY_S = 1.0
NEW_NAMESPACES_S = 5.0
"""How often to look for namespaces that were created meanwhile, or whose projector failed."""
FAILED_S, FAILED_MAX_S = 5.0, 300.0
"""How long a namespace rests after its projector failed; each time twice as long."""


class ShardProgress(msgspec.Struct, frozen=True):
    """How far one shard is projected."""

    shard: int
    place: int
    end: int
    behind: int
    """About how many messages of the shard are not projected yet. A commit may have several messages."""
    owner: str
    """The projector that owns it; empty if none does."""


def progress_of(store: Store) -> Sequence[ShardProgress]:
    """Returns how far each shard is in the shared index. Raises UnsupportedError if there is none."""
    index = require(
        _sharded(store),
        UnsupportedError(
            "the index of this store is not filled shard by shard",
            kind="no-projection",
            hint="a store on a NATS cluster can have one: nats://host,host,host/store?index=postgresql://…",
        ),
    )
    feeds = store.engine.abilities.shard_feeds
    assert feeds is not None
    rows = index.shard_rows()
    results = []
    for shard, end in enumerate(feeds.ends()):
        row = rows.get(shard)
        place = row.place if row is not None else 0
        behind = end - place if feeds.shard_changes(shard, place, 1) else 0
        results.append(ShardProgress(shard, place, end, behind, row.owner if row is not None else ""))
    return results


class Projection:
    """A running projector. Close it, so that others take over at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sharded = _sharded(store)
        self._stop = threading.Event()
        self._beating: threading.Thread | None = None
        self.shards: tuple[int, ...] = ()
        """The shards of this projector, out of `of`."""
        self.of = 0
        self.projectors = 1
        """How many projectors run."""
        self.changes = 0
        """How many changes it has projected."""

    @property
    def name(self) -> str:
        return self._sharded.owner if self._sharded is not None else ""

    def stop(self) -> None:
        """Makes `run` end soon. Any thread or signal handler may call it."""
        self._stop.set()

    def run(
        self, on_step: Callable[[Projection], None] = lambda _: None, on_error: Callable[[str], None] = print
    ) -> None:
        """Runs until it is stopped. If the store is unavailable, reports the error and retries."""
        while not self._stop.is_set():
            try:
                if not self.step():
                    on_step(self)
                    self._store.engine.wait(None, after=0, timeout_s=NEWS_S)
                on_step(self)
            except UnavailableError as exc:
                on_error(exc.message)
                self._stop.wait(RETRY_S)

    def step(self) -> int:
        """Projects some of what is new, and returns the number of changes."""
        if self._sharded is None:
            return self._catch_up()
        self._share(self._sharded)
        done = 0
        for shard in self.shards:
            row = self._sharded.take(shard)
            done += self._sharded.project(row) if row is not None else 0
        self.changes += done
        return done

    def _catch_up(self) -> int:
        index = self._store.index
        done = len(index.peek())
        if done:
            index.catch_up()
            index.catch_up_words()
        self.changes += done
        return done

    def _share(self, index: ShardedIndex) -> None:
        """Takes every n-th shard, by the position among the running projectors, and releases the others."""
        if self._beating is None:
            self._names = index.beat()
            self._beating = threading.Thread(target=self._beat, args=(index,), name="wakelog beat", daemon=True)
            self._beating.start()
        feeds = self._store.engine.abilities.shard_feeds
        assert feeds is not None
        names = self._names
        self.of, self.projectors = len(feeds.ends()), max(1, len(names))
        place = names.index(index.owner) if index.owner in names else 0
        wanted = tuple(range(place, self.of, self.projectors))
        if others := [shard for shard in self.shards if shard not in wanted]:
            index.give_back(others)
        self.shards = wanted

    def _beat(self, index: ShardedIndex) -> None:
        while not self._stop.wait(BEAT_S):
            with contextlib.suppress(UnavailableError):  # the next step reports it
                self._names = index.beat()

    def close(self) -> None:
        self._stop.set()
        if self._beating is not None and self._sharded is not None:
            self._beating.join(10 * BEAT_S)
            with contextlib.suppress(UnavailableError):
                self._sharded.leave()

    def __enter__(self) -> Projection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class NamespaceProjections:
    """Projectors for all namespaces of a store, one thread each, also for namespaces that are created later."""

    def __init__(self, names: Callable[[], Iterable[str]], open_store: Callable[[str], Store]) -> None:
        self._names = names
        self._open_store = open_store
        self._stop = threading.Event()
        self._look = Bell()
        """Wakes `run`."""
        self._running: dict[str, tuple[Projection, threading.Thread]] = {}
        self._resting: dict[str, tuple[float, float]] = {}
        """Namespaces whose projector failed: the pause, and when it ends."""
        self._failure: Exception | None = None

    def stop(self) -> None:
        """Makes `run` end soon. Any thread or signal handler may call it."""
        self._stop.set()
        self._look.ring()

    def run(self, on_step: Callable[[str, Projection], None], on_error: Callable[[str, str], None]) -> None:
        """Runs until it is stopped. Several threads call `on_step` and `on_error`, with the name of the namespace. A
        projector that fails is started again after a pause, and the others go on. If all have failed, the last error is
        raised."""
        while not self._stop.is_set():
            try:
                for name in self._names():
                    if name not in self._running and time.monotonic() >= self._resting.get(name, (0.0, 0.0))[1]:
                        self._start(name, on_step, on_error)
            except UnavailableError as exc:
                on_error("", exc.message)
            self._look.wait(NEW_NAMESPACES_S)
            if self._failure is not None and not self._running:
                break  # before one of them is started again
        was_stopped = self._stop.is_set()
        self.close()
        if self._failure is not None and not was_stopped:
            raise self._failure

    def _start(
        self, name: str, on_step: Callable[[str, Projection], None], on_error: Callable[[str, str], None]
    ) -> None:
        try:
            projection = Projection(self._open_store(name))
        except UnavailableError:
            raise
        except Exception as exc:
            self._rest(name, exc, on_error)
            return

        def work() -> None:
            try:
                with projection:
                    projection.run(lambda now: on_step(name, now), lambda what: on_error(name, what))
            except Exception as exc:
                self._rest(name, exc, on_error)

        thread = threading.Thread(target=work, name=f"wakelog project {name}", daemon=True)
        self._running[name] = projection, thread
        thread.start()

    def _rest(self, name: str, failure: Exception, on_error: Callable[[str, str], None]) -> None:
        pause = min(2 * self._resting.get(name, (FAILED_S / 2, 0.0))[0], FAILED_MAX_S)
        self._resting[name] = pause, time.monotonic() + pause
        try:
            on_error(name, str(failure) or type(failure).__name__)
        finally:
            self._failure = failure
            self._running.pop(name, None)
            self._look.ring()

    def close(self) -> None:
        """Stops all projectors, and waits until they have released their shards."""
        self._stop.set()
        running = list(self._running.values())  # one that fails now takes itself out
        for projection, _ in running:
            projection.stop()
        for _, thread in running:
            thread.join(10 * BEAT_S)

    def __enter__(self) -> NamespaceProjections:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _sharded(store: Store) -> ShardedIndex | None:
    abilities = store.engine.abilities
    if abilities.index is None or abilities.encryption is not None:
        return None
    from wakelog.index.sharded_index import ShardedIndex

    index = store.index
    assert isinstance(index, ShardedIndex)
    return index


def catch_up(store: Store) -> float:
    """Projects everything that is stored now, and returns the seconds it took."""
    began = time.monotonic()
    store.index.catch_up()
    store.index.catch_up_words()
    return time.monotonic() - began
