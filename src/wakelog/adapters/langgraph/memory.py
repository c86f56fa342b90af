"""`WakelogStore`: LangGraph's long-term store, whose items are the facts of one session.

An item is a fact. The fact's key is the item's namespace and key, its value the item's value. So the log has the
history of every item. Reads are answered by LangGraph's own InMemoryStore, a mirror that follows the log: filters and,
with `index`, semantic search work the same as there. An item with a time to live carries the moment at which it
expires. A sweep retracts it, and a read can refresh it.
"""

from __future__ import annotations

import asyncio
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

try:
    from langgraph.store.base import validate_op_namespace
except ImportError:  # earlier releases check namespaces in the methods only

    def validate_op_namespace(op: Any) -> None:
        pass


from wakelog.adapters.langgraph.both_colours import Count, NeedsNoSetup, Sweeper
from wakelog.adapters.langgraph.codec import ValueCodec
from wakelog.adapters.stores import Place, StoreUser
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.model.values import Value
from wakelog.runtime.bridge import in_thread
from wakelog.session import Session
from wakelog.state.patch import escape, tokens_of

ItemKey = tuple[tuple[str, ...], str]
_FACT_KINDS = frozenset({"fact.recorded", "fact.retracted"})
_RELOAD_KINDS = frozenset({"history.rewound", "history.adopted", "payload.erased"})
_MINUTE_US = 60_000_000
_SWEEP_MINUTES = 5
_MIN_REFRESH_US, _MIN_REFRESH_SHARE = 1_000_000, 0.1
"""A read refreshes an item only if that adds at least this much, or this share of a short life: reading in a loop must
not append events."""


class WakelogStore(NeedsNoSetup, StoreUser, BaseStore):
    """A store of items as facts: `graph.compile(store=WakelogStore("path"))`.

    `store` is the same as for `WakelogSaver`. `session` names the session that holds the items. `index` is LangGraph's
    setting for semantic search; each process computes the vectors again. `ttl` is LangGraph's setting for how long
    items live; with `sweep_interval_minutes`, a use of the store sweeps it when the interval is over.
    """

    supports_ttl = True

    def __init__(
        self,
        store: Place = None,
        *,
        session: str = "langgraph-memory",
        index: Any = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        super().__init__(store)
        self._name = session
        self.index_config = index
        self._index = {**index, "embed": _Embedder(ensure_embeddings(index.get("embed")))} if index else None
        self.ttl_config = ttl
        self._codec = ValueCodec(JsonPlusSerializer())
        self._lock = threading.RLock()
        self._session: Session[Any] | None = None
        self._mirror = _Mirror(index=self._index)
        self._expiry: dict[ItemKey, tuple[int, float]] = {}
        """When an item expires, and how many minutes it lives after its last use."""
        self._seq: Seq = 0
        self._swept_at = self.store.clock()
        self._sweep_minutes: float | None = (ttl or {}).get("sweep_interval_minutes")
        self._sweeper = Sweeper()

    async def __aenter__(self) -> WakelogStore:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await in_thread(self.close)

    @property
    def session(self) -> Session[Any]:
        """The session that holds the items."""
        if self._session is None:
            self._session = self.store.session(self._name, agent="langgraph", labels={"agent": "langgraph"})
        return self._session

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Runs several operations. All reads are answered before anything is changed."""
        ops = [_with_tuple(op) for op in ops]
        for op in ops:
            validate_op_namespace(op)
        with self._lock:
            self._sweep_if_due()
            self._follow()
            reads = [op for op in ops if not isinstance(op, PutOp)]
            answers = [self._detached(answer, op) for op, answer in zip(reads, self._mirror.batch(reads), strict=True)]
            puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
            used = {item for op, answer in zip(reads, answers, strict=True) for item in _items_to_refresh(op, answer)}
            if puts or not used.isdisjoint(self._expiry):
                retry_on_moved_head(self.session.id, "to remember in", lambda: self._store(puts, used))
            rest = iter(answers)
            return [None if isinstance(op, PutOp) else next(rest) for op in ops]

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        return await in_thread(self.batch, list(ops))

    def _detached(self, answer: Any, op: Any) -> Any:
        """A copy of an answer, which the caller may change."""
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
            value=self._codec.copy(item.value),
            created_at=item.created_at,
            updated_at=item.updated_at,
            **more,
        )

    # Expiry

    def sweep_ttl(self) -> Count:
        """Retracts the expired items; returns how many."""
        with self._lock:
            return Count(retry_on_moved_head(self.session.id, "to sweep", self._sweep))

    def start_ttl_sweeper(self, sweep_interval_minutes: int | None = None) -> Sweeper:
        """Sweeps at this interval from now on, whenever the store is used; by default, every five minutes. No thread is
        needed for that: nobody can see an expired item before the next use."""
        self._sweep_minutes = sweep_interval_minutes or self._sweep_minutes or _SWEEP_MINUTES
        if self._sweeper.done():
            self._sweeper = Sweeper()
        return self._sweeper

    def stop_ttl_sweeper(self, timeout: float | None = None) -> Count:
        """Sweeps no more, except by `sweep_ttl`. Completes the future that `start_ttl_sweeper` returned. The answer is
        true: nothing has to be waited for."""
        self._sweep_minutes = None
        if not self._sweeper.done():
            self._sweeper.set_result(None)
        return Count(1)

    def _sweep_if_due(self) -> None:
        minutes = self._sweep_minutes
        if minutes and self.store.clock() - self._swept_at >= minutes * _MINUTE_US:
            self.sweep_ttl()

    def _sweep(self) -> int:
        self._follow()
        now = self._swept_at = self.store.clock()
        expired = [item for item, (ends, _) in self._expiry.items() if ends <= now]
        if expired:
            drafts = [EventDraft(ev.FactRetracted(key=_fact_key(*item)), actor="runtime") for item in expired]
            self.session.log.append(*drafts, expect=self._seq)
            self._follow()
        return len(expired)

    def _hide_expired(self) -> None:
        """With `omit_expired`, hides items that have expired but are not swept yet."""
        if (self.ttl_config or {}).get("omit_expired") and self._expiry:
            now = self.store.clock()
            self._mirror.batch([PutOp(*item, None) for item, (ends, _) in self._expiry.items() if ends <= now])

    # Following the log

    def _follow(self) -> None:
        """Brings the mirror up to date."""
        log = self.session.log
        if log.head().seq != self._seq and not self._read_new():
            self._mirror, self._expiry = _Mirror(index=self._index), {}
            seq, state = log.now()
            self._mirror_facts({key: fact.get("value") for key, fact in state["facts"].items()})
            self._seq = seq
        self._hide_expired()

    def _read_new(self) -> bool:
        """Mirrors the new events. False if the facts have to be loaded again."""
        if not self._seq:
            return False
        new: dict[str, Value] = {}
        last = self._seq
        for entry in self.session.log.entries(after=last):
            if entry.kind in _RELOAD_KINDS:
                return False
            if entry.kind in _FACT_KINDS:
                new[entry.body["key"]] = entry.body.get("value")
            last = entry.seq
        self._mirror_facts(new)
        self._seq = last
        return True

    def _mirror_facts(self, facts: dict[str, Value]) -> None:
        """Puts facts into the mirror, except those that are no items because something else recorded them."""
        items = {item: stored for key, stored in facts.items() if (item := _item_key(key)) is not None}
        ops = []
        for item, stored in items.items():
            self._expiry.pop(item, None)
            value = None
            if type(stored) is dict and type(stored.get("value")) is dict:
                value = self._codec.decode(stored["value"])
                if "ends" in stored:
                    self._expiry[item] = stored["ends"], float(stored["minutes"])
            ops.append(PutOp(*item, value, stored.get("index") if value is not None else None))
        self._put_into_mirror(ops)
        for item, stored in items.items():
            mirrored = self._mirror.get(*item)
            if mirrored is not None:
                mirrored.created_at = _moment(stored.get("created"))
                mirrored.updated_at = _moment(stored.get("updated"))

    def _put_into_mirror(self, ops: list[PutOp]) -> None:
        """Mirrors items. One whose value has no text, because a process without an index stored it, is not embedded."""
        try:
            self._mirror.batch(ops)
        except TypeError:
            for op in ops:
                try:
                    self._mirror.batch([op])
                except TypeError:
                    self._mirror.batch([op._replace(index=False)])

    # Writing

    def _store(self, puts: dict[ItemKey, PutOp], used: set[ItemKey]) -> None:
        """Appends the changes, and refreshes the items that were used."""
        self._follow()
        _Mirror(index=self._index).batch(puts.values())  # refuses what could be stored, but not mirrored
        now = self.store.clock()
        drafts = [draft for item, op in puts.items() if (draft := self._fact_draft(item, op, now)) is not None]
        facts = self.session.state().facts
        for item in used & self._expiry.keys() - puts.keys():
            ends, minutes = self._expiry[item]
            life, fact = int(minutes * _MINUTE_US), facts.get(_fact_key(*item))
            later = now + life
            if later - ends >= min(_MIN_REFRESH_US, life * _MIN_REFRESH_SHARE) and fact is not None:
                drafts.append(EventDraft(ev.FactRecorded(key=_fact_key(*item), value={**fact.value, "ends": later})))
        if drafts:
            self.session.log.append(*drafts, expect=self._seq)
            self._follow()

    def _fact_draft(self, item: ItemKey, op: PutOp, now: int) -> EventDraft | None:
        before, key = self._mirror.get(*item), _fact_key(*item)
        if op.value is None:
            return EventDraft(ev.FactRetracted(key=key)) if before is not None else None
        created = now if before is None else int(before.created_at.timestamp() * 1e6)
        fact = {"value": self._codec.encode(dict(op.value), f"item {key}"), "created": created, "updated": now}
        if op.index is not None:
            fact["index"] = op.index
        if op.ttl is not None:
            fact |= {"ends": now + int(op.ttl * _MINUTE_US), "minutes": op.ttl}
        return EventDraft(ev.FactRecorded(key=key, value=fact))


class _Mirror(InMemoryStore):
    """LangGraph's own store, mended in two places. It embeds a text once, but then wants a vector for each place of the
    text, and refuses all items if two have the same. It lists a namespace whose items are gone, or in which somebody
    only looked for one; LangGraph's stores on a database do not."""

    def _insertinmem_store(
        self, to_embed: dict[str, list[tuple[tuple[str, ...], str, str]]], embeddings: list[list[float]]
    ) -> None:
        for places, vector in zip(to_embed.values(), embeddings, strict=True):
            for namespace, key, path in places:
                self._vectors[namespace][key][path] = vector

    def _handle_list_namespaces(self, op: Any) -> list[tuple[str, ...]]:
        for namespace in [namespace for namespace, items in self._data.items() if not items]:
            del self._data[namespace]
        found: list[tuple[str, ...]] = super()._handle_list_namespaces(op)
        return found


class _Embedder(Embeddings):
    """Makes an embedding model synchronous, also one that is a coroutine. It remembers the latest vectors, because an
    item is embedded before it is stored, and again when it is mirrored."""

    def __init__(self, inner: Embeddings) -> None:
        self._inner = inner
        self._is_async = isinstance(inner, EmbeddingsLambda) and not hasattr(inner, "func")
        self._latest: dict[str, list[float]] = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        new = [text for text in dict.fromkeys(texts) if text not in self._latest]
        if new:
            known = {text: self._latest[text] for text in texts if text in self._latest}
            self._latest = known | dict(zip(new, self._embed(new), strict=True))
        return [self._latest[text] for text in texts]

    def _embed(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]]
        if self._is_async:
            with ThreadPoolExecutor(1) as executor:  # this thread may be running a loop
                vectors = executor.submit(lambda: asyncio.run(self._inner.aembed_documents(texts))).result()
        else:
            vectors = self._inner.embed_documents(texts)
        return vectors

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = self._embed([text])[0] if self._is_async else self._inner.embed_query(text)
        return vector


def _with_tuple(op: Any) -> Any:
    """The operation with its namespace as a tuple. LangGraph's stores on a database take lists too."""
    if isinstance(op, GetOp | PutOp):
        return op._replace(namespace=tuple(op.namespace))
    return op._replace(namespace_prefix=tuple(op.namespace_prefix)) if isinstance(op, SearchOp) else op


def _items_to_refresh(op: Any, answer: Any) -> list[ItemKey]:
    """The items in an answer whose time to live starts again because they were read."""
    if not isinstance(op, GetOp | SearchOp) or not op.refresh_ttl or not answer:
        return []
    return [(tuple(item.namespace), item.key) for item in (answer if isinstance(answer, list) else [answer])]


def _fact_key(namespace: tuple[str, ...], key: str) -> str:
    return "".join(f"/{escape(label)}" for label in (*namespace, key))


def _item_key(key: str) -> ItemKey | None:
    if key[:1] != "/":
        return None
    tokens = tokens_of(key)
    return (tuple(tokens[:-1]), tokens[-1]) if len(tokens) > 1 else None


def _moment(at: Value) -> datetime:
    return datetime.fromtimestamp((at if type(at) is int else 0) / 1e6, UTC)
