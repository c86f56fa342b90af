"""`WakelogStore`: LangGraph's long-term store, whose items are the facts of one session.

An item is a fact: its key is the namespace and the key, its value the item's. So the log tells who remembered what and
when, and an item that was changed has a history. Questions are answered by LangGraph's own store in memory, which
follows the log; so filters and, with `index`, search by meaning are just as there. An item that has a time to live
carries the moment it ends. It is retracted by a sweep, and refreshed, where that is wanted, when it is read.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from langchain_core.embeddings import Embeddings
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchItem, SearchOp, TTLConfig, ensure_embeddings
from langgraph.store.base.embed import EmbeddingsLambda
from langgraph.store.memory import InMemoryStore

from wakelog.adapters.langgraph.codec import ValueCodec
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.runtime.bridge import in_thread
from wakelog.session import Session
from wakelog.state.patch import escape, tokens_of
from wakelog.store import Store
from wakelog.store import open as open_store

Place = tuple[tuple[str, ...], str]
_FOLLOWED = frozenset({"fact.recorded", "fact.retracted"})
_MOVES = frozenset({"history.rewound", "history.adopted", "payload.erased"})
_MINUTE_US = 60_000_000
_LITTLE_US = 1_000_000
"""A life that would be so little longer is left as it is: reading in a loop is not worth an event each time."""


class WakelogStore(BaseStore):
    """A store of items as facts: `graph.compile(store=WakelogStore("path"))`.

    `store` is what `WakelogSaver` takes. `session` names the session that has the items. `index` is LangGraph's own
    setting for search by meaning; the vectors are made anew in each process. `ttl` is its setting for how long items
    live: with a `sweep_interval_minutes`, whoever uses the store sweeps it so often.
    """

    supports_ttl = True

    def __init__(
        self,
        store: Store | str | os.PathLike[str] | None = None,
        *,
        session: str = "langgraph-memory",
        index: Any = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        self._is_own = not isinstance(store, Store)
        self.store: Store = store if isinstance(store, Store) else open_store(store)
        self._name = session
        self._index = {**index, "embed": _Embedder(ensure_embeddings(index.get("embed")))} if index else None
        self.ttl_config = ttl
        self._codec = ValueCodec(JsonPlusSerializer())
        self._lock = threading.RLock()
        self._session: Session[Any] | None = None
        self._mirror = InMemoryStore(index=self._index)
        self._lives: dict[Place, tuple[int, float]] = {}
        """Of items that end: when, and how many minutes they live after they were last used."""
        self._seq: Seq = 0
        self._swept_at = self.store.clock()

    def close(self) -> None:
        """Closes the store, where it was opened here."""
        if self._is_own:
            self.store.close()

    def __enter__(self) -> WakelogStore:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def session(self) -> Session[Any]:
        """The session that has the items."""
        if self._session is None:
            self._session = self.store.session(self._name, agent="langgraph", labels={"agent": "langgraph"})
        return self._session

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Answers and does several things. Questions are answered before anything is changed."""
        given = list(ops)
        with self._lock:
            self._sweep_if_due()
            self._follow()
            asked = [op for op in given if not isinstance(op, PutOp)]
            answers = [self._own(answer, op) for op, answer in zip(asked, self._mirror.batch(asked), strict=True)]
            puts = {(tuple(op.namespace), op.key): op for op in given if isinstance(op, PutOp)}
            read = {place for op, answer in zip(asked, answers, strict=True) for place in _refreshed(op, answer)}
            if puts or not read.isdisjoint(self._lives):
                retry_on_moved_head(self.session.id, "to remember in", lambda: self._put(puts, read))
            rest = iter(answers)
            return [None if isinstance(op, PutOp) else next(rest) for op in given]

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        return await in_thread(self.batch, list(ops))

    def _own(self, answer: Any, op: Any) -> Any:
        """An answer that whoever asked may change."""
        if isinstance(op, GetOp):
            return None if answer is None else self._copied(answer)
        if isinstance(answer, list) and answer and isinstance(answer[0], SearchItem):
            return [self._copied(item, score=item.score) for item in answer]
        return answer

    def _copied(self, item: Item, **more: Any) -> Item:
        kind = SearchItem if more else Item
        return kind(
            namespace=item.namespace,
            key=item.key,
            value=self._codec.copied(item.value),
            created_at=item.created_at,
            updated_at=item.updated_at,
            **more,
        )

    # Items that end

    def sweep_ttl(self) -> int:
        """Retracts the items whose time is over; the number of them."""
        with self._lock:
            return retry_on_moved_head(self.session.id, "to sweep", self._sweep)

    def _sweep_if_due(self) -> None:
        minutes = (self.ttl_config or {}).get("sweep_interval_minutes")
        if minutes and self.store.clock() - self._swept_at >= minutes * _MINUTE_US:
            self.sweep_ttl()

    def _sweep(self) -> int:
        self._follow()
        now = self._swept_at = self.store.clock()
        over = [place for place, (ends, _) in self._lives.items() if ends <= now]
        if over:
            drafts = [EventDraft(ev.FactRetracted(key=_key(*place)), actor="runtime") for place in over]
            self.session.log.append(*drafts, expect=self._seq)
            self._follow()
        return len(over)

    def _hide_ended(self) -> None:
        """Takes what is over, and not swept yet, out of the answers, if that is wanted."""
        if (self.ttl_config or {}).get("omit_expired") and self._lives:
            now = self.store.clock()
            self._mirror.batch([PutOp(*place, None) for place, (ends, _) in self._lives.items() if ends <= now])

    # Following the log

    def _follow(self) -> None:
        log = self.session.log
        if log.head().seq != self._seq and not self._followed():
            self._mirror, self._lives = InMemoryStore(index=self._index), {}
            seq, state = log.now()
            self._mirrored({key: fact.get("value") for key, fact in state["facts"].items()})
            self._seq = seq
        self._hide_ended()

    def _followed(self) -> bool:
        """Reads what is new; False where all has to be read again."""
        if not self._seq:
            return False
        new: dict[str, Value] = {}
        last = self._seq
        for entry in self.session.log.entries(after=last):
            if entry.kind in _MOVES:
                return False
            if entry.kind in _FOLLOWED:
                new[entry.body["key"]] = entry.body.get("value")
            last = entry.seq
        self._mirrored(new)
        self._seq = last
        return True

    def _mirrored(self, facts: dict[str, Value]) -> None:
        """Puts facts where they are asked for. What somebody else recorded here is no item, and left out."""
        found = {place: stored for key, stored in facts.items() if (place := _place(key)) is not None}
        ops = []
        for place, stored in found.items():
            self._lives.pop(place, None)
            value = None
            if type(stored) is dict and "value" in stored:
                value = self._codec.revived(stored["value"])
                if "ends" in stored:
                    self._lives[place] = stored["ends"], float(stored["minutes"])
            ops.append(PutOp(*place, value, stored.get("index") if value is not None else None))
        self._mirror.batch(ops)
        for place, stored in found.items():
            item = self._mirror.get(*place)
            if item is not None:
                item.created_at, item.updated_at = _moment(stored.get("created")), _moment(stored.get("updated"))

    def _put(self, puts: dict[Place, PutOp], read: set[Place]) -> None:
        self._follow()
        now = self.store.clock()
        drafts = [draft for place, op in puts.items() if (draft := self._changed(place, op, now)) is not None]
        facts = self.session.state().facts
        for place in read & self._lives.keys() - puts.keys():
            ends, minutes = self._lives[place]
            later, fact = now + int(minutes * _MINUTE_US), facts.get(_key(*place))
            if later - ends >= _LITTLE_US and fact is not None:
                drafts.append(EventDraft(ev.FactRecorded(key=_key(*place), value={**fact.value, "ends": later})))
        if drafts:
            self.session.log.append(*drafts, expect=self._seq)
            self._follow()

    def _changed(self, place: Place, op: PutOp, now: int) -> EventDraft | None:
        there, named = self._mirror.get(*place), _key(*place)
        if op.value is None:
            return EventDraft(ev.FactRetracted(key=named)) if there is not None else None
        created = now if there is None else int(there.created_at.timestamp() * 1e6)
        fact = {"value": self._codec.stored(op.value, f"item {named}"), "created": created, "updated": now}
        if op.index is not None:
            fact["index"] = op.index
        if op.ttl is not None:
            fact |= {"ends": now + int(op.ttl * _MINUTE_US), "minutes": op.ttl}
        return EventDraft(ev.FactRecorded(key=named, value=fact))


class _Embedder(Embeddings):
    """An embedding model that answers here, also one that is a coroutine."""

    def __init__(self, inner: Embeddings) -> None:
        self._inner = inner
        self._is_async = isinstance(inner, EmbeddingsLambda) and not hasattr(inner, "func")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]]
        if self._is_async:
            with ThreadPoolExecutor(1) as apart:  # this thread may be running a loop
                vectors = apart.submit(lambda: asyncio.run(self._inner.aembed_documents(texts))).result()
        else:
            vectors = self._inner.embed_documents(texts)
        return vectors

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = self.embed_documents([text])[0] if self._is_async else self._inner.embed_query(text)
        return vector


def _refreshed(op: Any, answer: Any) -> list[Place]:
    """The items in an answer that live longer for having been read."""
    if not isinstance(op, GetOp | SearchOp) or not op.refresh_ttl or not answer:
        return []
    return [(tuple(item.namespace), item.key) for item in (answer if isinstance(answer, list) else [answer])]


def _key(namespace: tuple[str, ...], key: str) -> str:
    return "".join(f"/{escape(label)}" for label in (*namespace, key))


def _place(key: str) -> Place | None:
    if key[:1] != "/":
        return None
    tokens = tokens_of(key)
    return (tuple(tokens[:-1]), tokens[-1]) if len(tokens) > 1 else None


def _moment(at: Value) -> datetime:
    return datetime.fromtimestamp((at if type(at) is int else 0) / 1e6, UTC)
