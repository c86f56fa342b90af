"""`WakelogSaver`: LangGraph's checkpointer over a wakelog store.

A thread is a session of the same name. The methods are the framework's; thread_log.py does the work.
"""

from __future__ import annotations

import functools
import hashlib
import heapq
import itertools
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from wakelog.adapters.langgraph.both_colours import NeedsNoSetup
from wakelog.adapters.langgraph.codec import ValueCodec
from wakelog.adapters.langgraph.thread_log import ThreadLog
from wakelog.adapters.stores import Place, StoreUser
from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.importers.writer.reply_costs import ReplyCosts
from wakelog.model.names import is_name
from wakelog.runtime.bridge import in_thread
from wakelog.session import Session

T = TypeVar("T")
AGENT = "langgraph"
_THREADS_MAX = 256
_EMPTY_MAX = 4096
_DERIVED_NAME = re.compile(r"langgraph-.*-[0-9a-f]{8}")
_PAGE = 16
_RUN = "__pregel_runtime"
"""In the config if a running graph calls the saver; missing if somebody calls it directly."""
_OF_GRAPH = "recursion_limit"
"""In the config if a graph calls the saver, running or not: graphs fill in every key."""


def session_name(thread: str) -> str:
    """The name of a thread's session: the thread's id, or a name derived from it if the id is not a valid name."""
    if is_name(thread) and not _DERIVED_NAME.fullmatch(thread):
        return thread
    slug = re.sub(r"[^A-Za-z0-9]+", "-", thread).strip("-").lower()[:48] or "thread"
    return f"langgraph-{slug}-{hashlib.sha256(thread.encode('utf-8', 'replace')).hexdigest()[:8]}"


class WakelogSaver(NeedsNoSetup, StoreUser, BaseCheckpointSaver):
    """A checkpointer that stores threads as sessions: `graph.compile(checkpointer=WakelogSaver("path"))`.

    `store` is an open store, or an argument of `wakelog.open`: a path, a `postgresql://` or `http://` address, or
    nothing for the store of this folder. A store that the saver opened is closed by `close`, or by a `with`.
    """

    def __init__(self, store: Place = None, *, serde: SerializerProtocol | None = None) -> None:
        StoreUser.__init__(self, store)
        self._lock = threading.Lock()
        BaseCheckpointSaver.__init__(self, serde=serde or JsonPlusSerializer())

    @property
    def serde(self) -> SerializerProtocol:
        return self._codec_serde

    @serde.setter
    def serde(self, serde: SerializerProtocol) -> None:
        # LangGraph clones a saver to change its serializer. The clone needs its own copies of values.
        self._codec_serde = serde
        self._codec = ValueCodec(serde)
        self._costs = ReplyCosts(self.store)
        self._threads: dict[str, ThreadLog] = {}
        self._empty: dict[str, int] = {}

    async def __aenter__(self) -> WakelogSaver:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await in_thread(self.close)

    def session(self, thread_id: str) -> Session[Any]:
        """The session of a thread. NotFoundError if there is none."""
        return self.store.resume(session_name(str(thread_id)))

    # Threads

    def _thread(self, thread: str, *, create: bool = False) -> ThreadLog | None:
        with self._lock:
            found = self._threads.pop(thread, None)
            if found is None:
                name = session_name(thread)
                if not create and not self.store.is_open(name):
                    return None
                session = self.store.session(name, agent=AGENT, labels={"agent": AGENT, "thread": thread})
                found = ThreadLog(thread, session, self._codec, self._costs)
                found.note_runs_before_start(self._empty.pop(thread, 0))
            self._threads[thread] = found
            if len(self._threads) > _THREADS_MAX:
                idle = (name for name, other in self._threads.items() if not other.is_busy)
                self._threads.pop(next(idle, ""), None)
            return found

    def _note_empty(self, thread: str) -> None:
        """Counts a run that starts on a thread without a session."""
        with self._lock:
            if thread not in self._threads:
                self._empty[thread] = self._empty.pop(thread, 0) + 1
            while len(self._empty) > _EMPTY_MAX:
                del self._empty[next(iter(self._empty))]

    def _forget(self, thread: str) -> None:
        with self._lock:
            self._threads.pop(thread, None)

    def _on(self, thread: str, work: Callable[[ThreadLog], T], *, create: bool = False) -> T | None:
        """Runs `work` on a thread, again if somebody else deleted its session meanwhile. None if there is no thread."""
        while (found := self._thread(thread, create=create)) is not None:
            try:
                return work(found)
            except NotFoundError as exc:
                if exc.kind != "session-deleted":
                    raise
                self._forget(thread)
        return None

    def _thread_ids(self) -> Iterator[str]:
        for head in self.store.sessions():
            labels = self.store.resume(head.session).log.part("labels")
            if labels.get("agent") == AGENT and "thread" in labels:
                yield labels["thread"]

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, or the newest one of its thread."""
        thread, ns, id = _place(config)
        parents = config["configurable"].get("checkpoint_map")
        found = self._on(thread, lambda found: found.get(ns, id, parents))
        if found is None and not ns and not id:
            self._note_empty(thread)
        return found

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints of a thread, or of all threads, newest first."""

        def matches(metadata: Mapping[str, Any]) -> bool:
            return not filter or all(metadata.get(key) == value for key, value in filter.items())

        conf = config["configurable"] if config else {}
        threads = [str(conf["thread_id"])] if "thread_id" in conf else [*self._thread_ids()]
        ns, id = conf.get("checkpoint_ns"), conf.get("checkpoint_id") or ""
        until = (before or {}).get("configurable", {}).get("checkpoint_id") or ""
        work = functools.partial(ThreadLog.history, ns=ns, id=id, before=until, matches=matches, limit=limit)
        if _RUN in conf and ns and until and limit == 1:  # so a replay finds where its subgraph was
            work = functools.partial(ThreadLog.resumed, ns=ns, before=until)
        found = [self._on(thread, work) or iter(()) for thread in threads]
        newest_first = heapq.merge(*found, key=lambda item: item.checkpoint["id"], reverse=True)
        yield from itertools.islice(newest_first, None if limit is None else max(0, limit))

    def get_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, Any]:
        """What the ancestors of a checkpoint wrote to some channels, and the value they started from."""
        thread, ns, id = _place(config)
        found = self._on(thread, lambda found: found.delta_history(ns, id, channels)) if channels else {}
        return {name: {"writes": []} for name in channels} if found is None else found

    # Storing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint, as its difference to the one before."""
        thread, ns, parent = _place(config)
        full = get_checkpoint_metadata(config, metadata)
        by = {"is_run": _RUN in config["configurable"], "is_by_hand": _OF_GRAPH not in config}
        self._on(thread, lambda found: found.put(ns, parent, checkpoint, full, new_versions, **by), create=True)
        thread_id = config["configurable"]["thread_id"]
        return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint["id"]}}

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Stores what a task wrote after a checkpoint."""
        thread, ns, id = _place(config)
        self._on(thread, lambda found: found.put_writes(ns, id, writes, task_id, task_path), create=True)

    # Removing and copying

    def delete_thread(self, thread_id: str) -> None:
        """Deletes a thread and its session."""
        thread = str(thread_id)
        self._on(thread, lambda found: self.store.delete(found.session))
        self._forget(thread)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Removes the checkpoints of some runs. Later checkpoints stay complete: the log keeps what they build on."""
        _refuse_text(run_ids, "run ids")
        if run_ids:
            for thread in [*self._thread_ids()]:
                self._on(thread, lambda found: found.remove_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies a thread by forking its session, so the cost does not depend on its length."""
        source, target = str(source_thread_id), str(target_thread_id)
        found = self._thread(source)
        if found is None:
            return
        if self.store.is_open(session_name(target)):
            for copy in reversed([*self.list({"configurable": {"thread_id": source}})]):
                self.put_copy(target, copy)
            return
        fork = found.session.fork(name=session_name(target), why=f"copied from thread {source}")
        fork.label({"thread": target})

    def copy_from(self, other: BaseCheckpointSaver) -> int:
        """Copies the threads of another checkpointer, so that their graphs can continue here; returns the number of
        checkpoints. Checkpoints copied before are skipped, and so is a thread that was continued here."""
        from wakelog.adapters.langgraph.thread_copy import copy_threads

        return sum(copied.checkpoints for copied in copy_threads(self, other))

    def put_copy(self, thread: str, copy: CheckpointTuple) -> None:
        """Stores a checkpoint of another thread or checkpointer, with its task writes."""
        ns = copy.config["configurable"].get("checkpoint_ns", "")
        parent = copy.parent_config["configurable"].get("checkpoint_id", "") if copy.parent_config else ""
        self._on(thread, lambda found: found.put_copy(ns, parent, copy), create=True)

    def has_checkpoint(self, thread: str, ns: str, id: str) -> bool:
        """True if a checkpoint was ever stored, even if it was removed since."""
        return bool(self._on(thread, lambda found: found.has(ns, id)))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Removes checkpoints: all but the newest of each namespace, or with `delete` the threads."""
        _refuse_text(thread_ids, "thread ids")
        if strategy not in ("keep_latest", "delete"):
            raise InvalidInputError(
                f"{strategy!r} is not a strategy for pruning", kind="bad-strategy", hint="use keep_latest or delete"
            )
        for thread in map(str, thread_ids):
            if strategy == "delete":
                self.delete_thread(thread)
            else:
                self._on(thread, lambda found: found.keep_latest())

    # As coroutines

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await in_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        found = self.list(config, filter=filter, before=before, limit=limit)
        while page := await in_thread(lambda: list(itertools.islice(found, _PAGE))):
            for checkpoint in page:
                yield checkpoint

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await in_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await in_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await in_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await in_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await in_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await in_thread(self.prune, thread_ids, strategy=strategy)

    async def aget_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, Any]:
        return await in_thread(self.get_delta_channel_history, config=config, channels=channels)

    def get_next_version(self, current: Any, channel: None) -> Any:
        """The next version of a channel: a number, or a text if the thread was copied from a saver that uses texts."""
        if isinstance(current, str):
            number, _, rest = current.partition(".")
            return f"{int(number) + 1:0{len(number)}}.{rest}"
        return 1 if current is None else int(current) + 1


def _refuse_text(ids: Sequence[str], what: str) -> None:
    """TypeError, as in LangGraph's own stores, if one id was given without a list: each letter would be an id."""
    if isinstance(ids, str):
        raise TypeError(f"{what} are a sequence, not a str: pass [{ids!r}]")


def _place(config: RunnableConfig) -> tuple[str, str, str]:
    """The thread, namespace and checkpoint that a config names."""
    conf = config["configurable"]
    return str(conf["thread_id"]), conf.get("checkpoint_ns") or "", conf.get("checkpoint_id") or ""
