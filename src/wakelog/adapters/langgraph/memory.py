"""`WakelogStore`: LangGraph's long-term store, whose items are the facts of one session.

An item is a fact: its key is the namespace and the key, its value the item's. So the log tells who remembered what and
when, and an item that was changed has a history. Questions are answered by LangGraph's own store in memory, which
follows the log; so filters and, with `index`, search by meaning are just as there.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchItem
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


class WakelogStore(BaseStore):
    """A store of items as facts: `graph.compile(store=WakelogStore("path"))`.

    `store` is what `WakelogSaver` takes. `session` names the session that has the items. `index` is LangGraph's own
    setting for search by meaning; the vectors are made anew in each process.
    """

    def __init__(
        self,
        store: Store | str | os.PathLike[str] | None = None,
        *,
        session: str = "langgraph-memory",
        index: Any = None,
    ) -> None:
        self._is_own = not isinstance(store, Store)
        self.store: Store = store if isinstance(store, Store) else open_store(store)
        self._name = session
        self._index = index
        self._codec = ValueCodec(JsonPlusSerializer())
        self._lock = threading.RLock()
        self._session: Session[Any] | None = None
        self._mirror = InMemoryStore(index=index)
        self._seq: Seq = 0

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
            self._follow()
            asked = [op for op in given if not isinstance(op, PutOp)]
            answers = iter([self._own(answer, op) for op, answer in zip(asked, self._mirror.batch(asked), strict=True)])
            puts = {(tuple(op.namespace), op.key): op.value for op in given if isinstance(op, PutOp)}
            if puts:
                retry_on_moved_head(self.session.id, "to remember in", lambda: self._put(puts))
            return [None if isinstance(op, PutOp) else next(answers) for op in given]

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

    # Following the log

    def _follow(self) -> None:
        log = self.session.log
        if log.head().seq == self._seq:
            return
        if self._seq:
            for entry in log.entries(after=self._seq):
                if entry.kind in _MOVES:
                    break
                if entry.kind in _FOLLOWED:
                    self._mirrored(entry.body["key"], entry.body.get("value"))
                self._seq = entry.seq
            else:
                return
        self._mirror = InMemoryStore(index=self._index)
        self._seq, state = log.now()
        for key, fact in state["facts"].items():
            self._mirrored(key, fact.get("value"))

    def _mirrored(self, key: str, stored: Value) -> None:
        place = _place(key)
        if place is None:
            return  # a fact that somebody else recorded here
        value = self._codec.revived(stored["value"]) if type(stored) is dict and "value" in stored else None
        self._mirror.batch([PutOp(*place, value)])
        item = self._mirror.get(*place)
        if item is not None:
            item.created_at, item.updated_at = _moment(stored.get("created")), _moment(stored.get("updated"))

    def _put(self, puts: dict[Place, Any]) -> None:
        self._follow()
        now = self.store.clock()
        drafts: list[EventDraft] = []
        for (namespace, key), value in puts.items():
            there, named = self._mirror.get(namespace, key), _key(namespace, key)
            if value is not None:
                created = now if there is None else int(there.created_at.timestamp() * 1e6)
                stored = self._codec.stored(value, f"item {named}")
                fact = {"value": stored, "created": created, "updated": now}
                drafts.append(EventDraft(ev.FactRecorded(key=named, value=fact)))
            elif there is not None:
                drafts.append(EventDraft(ev.FactRetracted(key=named)))
        if drafts:
            self.session.log.append(*drafts, expect=self._seq)
            self._follow()


def _key(namespace: tuple[str, ...], key: str) -> str:
    return "".join(f"/{escape(label)}" for label in (*namespace, key))


def _place(key: str) -> Place | None:
    if key[:1] != "/":
        return None
    tokens = tokens_of(key)
    return (tuple(tokens[:-1]), tokens[-1]) if len(tokens) > 1 else None


def _moment(at: Value) -> datetime:
    return datetime.fromtimestamp((at if type(at) is int else 0) / 1e6, UTC)
