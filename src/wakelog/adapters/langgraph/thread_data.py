"""How a thread is stored in its session's data, and the operations that lead from one checkpoint to the next.

    /data/<channel>                         the current channels of the graph
    /data/$langgraph/graphs/<namespace>     checkpoint   id, parent, time, metadata
                                            versions     of the channels
                                            seen         the versions that nodes have seen
                                            channels     of subgraphs, and LangGraph's private ones
    /data/$langgraph/writes/<checkpoint>    what tasks have written since, by task
    /data/$langgraph/removed                which checkpoints were removed

A checkpoint is the state at the event that stored it. So each one costs only its difference to the one before, and a
rewind of the session is a rewind of the graph. A subgraph that ran for one task is removed from the data by its
parent's next checkpoint.
"""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from wakelog.adapters.langgraph.channels import ChannelCopy, new_channel
from wakelog.adapters.langgraph.codec import ValueCodec
from wakelog.errors import InvalidInputError
from wakelog.importers.frameworks.langgraph.messages import has_next, is_public
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.state.diff import diff
from wakelog.state.patch import Delta, escape

HOME = "$langgraph"
ROOT = f"/data/{HOME}"
SEPARATE_FIELDS = frozenset({"channel_values", "channel_versions", "versions_seen", "id"})
"""Fields of a checkpoint that are stored separately."""
PLAIN_FIELDS = frozenset({"v", "ts", "updated_channels"})
"""Fields without user data: they are stored in plain form, also with an encrypting serializer."""
PLAIN = ValueCodec(JsonPlusSerializer())
_EARLIER_MAX = 8


def graph_path(ns: str) -> str:
    return f"{ROOT}/graphs/{escape(ns)}"


def channel_path(ns: str, name: str) -> str:
    if not ns and is_public(name):
        return f"/data/{escape(name)}"
    return f"{graph_path(ns)}/channels/{escape(name)}"


def checkpoint_key(ns: str, checkpoint: str) -> str:
    return f"{checkpoint}|{ns}" if ns else checkpoint


def is_for_one_task(ns: str) -> bool:
    """True for a subgraph that runs for one task: `node:task`. One that keeps its state has no task in its name."""
    return ":" in ns


class GraphCopy:
    """One graph of a thread, at its newest checkpoint."""

    __slots__ = ("channels", "checkpoint", "seen", "versions")

    def __init__(
        self,
        checkpoint: dict[str, Value],
        versions: dict[str, Value],
        seen: dict[str, Value],
        channels: dict[str, ChannelCopy],
    ) -> None:
        self.checkpoint = checkpoint
        self.versions = versions
        self.seen = seen
        self.channels = channels

    @property
    def id(self) -> str:
        return str(self.checkpoint["id"])

    @property
    def is_at_rest(self) -> bool:
        return bool(self.checkpoint.get("rest"))


class CheckpointDraft:
    """The parts of a checkpoint that is to be stored. The saver's serializer is used for values only: ids, versions and
    metadata are always stored in plain form."""

    def __init__(self, codec: ValueCodec, checkpoint: Any, metadata: Any, parent: str) -> None:
        _check_whole(checkpoint)
        self.id: str = checkpoint["id"]
        self.parent = parent
        self.made_at = 0
        """When it was made, if it is a copy from another thread or checkpointer."""
        self.values: dict[str, Any] = checkpoint["channel_values"]
        self.versions: dict[str, Value] = PLAIN.encode(checkpoint["channel_versions"], "channel_versions")
        self.seen: dict[str, Value] = PLAIN.encode(checkpoint["versions_seen"], "versions_seen")
        self.updated: list[str] = checkpoint.get("updated_channels") or []
        self.source = str(metadata.get("source", ""))
        self.step = metadata.get("step")
        self.is_at_rest = self.source in ("loop", "update") and not has_next(self.values, self.updated)
        self.header: dict[str, Value] = {"id": self.id, "fields": {}}
        for name, value in checkpoint.items():
            if name not in SEPARATE_FIELDS:
                self.header["fields"][name] = (PLAIN if name in PLAIN_FIELDS else codec).encode(value, name)
        if parent:
            self.header["parent"] = parent
        self.header["metadata"] = PLAIN.encode(dict(metadata), "metadata")
        if self.is_at_rest:
            self.header["rest"] = True


class ThreadCopy:
    """A thread as its session's data describes it at one event."""

    def __init__(self, codec: ValueCodec, seq: Seq, state: dict[str, Value]) -> None:
        data = state["data"]
        self._codec = codec
        self.seq = seq
        self.is_own = False
        """True if the last change was stored by this process."""
        self.turn: dict[str, Value] = state["turn"]
        self.pending: dict[str, Any] = state["pending_actions"]
        home = data.get(HOME)
        self.is_new = home is None
        self.has_other_data = home is None and bool(data)
        home = home or {}
        self.writes: dict[str, Any] = home.get("writes", {})
        self.earlier_writes: dict[str, dict[str, Any]] = {}
        """What tasks wrote on the latest checkpoints before the newest, as far as this process has followed them."""
        self.removed: dict[str, Any] = home.get("removed", {})
        self.graphs: dict[str, GraphCopy] = {}
        for ns, graph in home.get("graphs", {}).items():
            stored = graph["channels"] if ns else {**graph["channels"], **_public(data)}
            channels = {name: ChannelCopy(codec, value) for name, value in stored.items()}
            if "checkpoint" in graph:
                self.graphs[ns] = GraphCopy(graph["checkpoint"], graph["versions"], graph["seen"], channels)
        self.recorded_messages: set[str] = set()
        """The ids of messages that have an event."""
        self.turn_input: Value = None
        """The input that the turn started with, until its message is seen."""
        for channels in (*(graph["channels"] for graph in home.get("graphs", {}).values()), _public(data)):
            for value in channels.values():
                if type(value) is list:
                    ids = (item["id"] for item in value if type(item) is dict and type(item.get("id")) is str)
                    self.recorded_messages.update(ids)

    def working_copy(self, now: ThreadCopy | None = None) -> ThreadCopy:
        """A copy to change, while this one stays as it is. Turn and calls are taken from `now`: a rewind keeps them.
        The recorded message ids are shared: if storing fails, the thread is read again anyway."""
        fresh = object.__new__(ThreadCopy)
        fresh.__dict__.update(self.__dict__)
        if now is not None:
            fresh.turn, fresh.pending, fresh.seq = now.turn, now.pending, now.seq
        fresh.graphs, fresh.writes, fresh.earlier_writes = dict(self.graphs), dict(self.writes), {**self.earlier_writes}
        return fresh

    def put(
        self, ns: str, draft: CheckpointDraft, new_versions: dict[str, Any], ahead: dict[str, Any]
    ) -> tuple[Delta, Delta, Delta]:
        """Moves on to a checkpoint. `ahead` are the writes that wait for checkpoints that are not stored yet. Returns
        the operations that lead there, in order: those that create missing parts, those on channels, and those on the
        rest."""
        new_parts: Delta = self._created_root()
        ops: Delta = []
        graph, path = self.graphs.get(ns), graph_path(ns)
        if graph is None:
            graph = GraphCopy({}, {}, {}, {})
            new_parts.append({"op": "add", "path": path, "value": {"versions": {}, "seen": {}, "channels": {}}})
        follows = bool(graph.checkpoint) and graph.id == draft.parent
        channels, changes = self._changed_channels(ns, graph, draft, new_versions if follows else None)
        ops += _map_change(graph.versions, draft.versions, f"{path}/versions")
        for node in graph.seen.keys() - draft.seen.keys():
            ops.append({"op": "remove", "path": f"{path}/seen/{escape(node)}"})
        for node, seen in draft.seen.items():
            if graph.seen.get(node) != seen:
                ops.append({"op": "add", "path": f"{path}/seen/{escape(node)}", "value": seen})
        ops.append({"op": "add", "path": f"{path}/checkpoint", "value": draft.header})
        self.graphs[ns] = GraphCopy(draft.header, draft.versions, draft.seen, channels)
        ops += self._cleanup(ns, draft, ahead)
        return new_parts, changes, ops

    def _created_root(self) -> Delta:
        if not self.is_new:
            return []
        self.is_new = False
        return [{"op": "add", "path": ROOT, "value": {"v": 1, "graphs": {}, "writes": {}}}]

    def _changed_channels(
        self, ns: str, graph: GraphCopy, draft: CheckpointDraft, new_versions: dict[str, Any] | None
    ) -> tuple[dict[str, ChannelCopy], Delta]:
        channels: dict[str, ChannelCopy] = {}
        changes: Delta = [
            {"op": "remove", "path": channel_path(ns, name)} for name in graph.channels if name not in draft.values
        ]
        for name, value in draft.values.items():
            known = graph.channels.get(name)
            is_old = new_versions is not None and name not in new_versions
            if known is not None and is_old and graph.versions.get(name) == draft.versions.get(name):
                channels[name] = known
                continue
            path, where = channel_path(ns, name), f"channel {name}"
            if known is None:
                channels[name], ops = new_channel(self._codec, value, path, where)
            else:
                channels[name], ops = known.moved_to(value, path, where)
            changes += ops
        return channels, changes

    def _cleanup(self, ns: str, draft: CheckpointDraft, ahead: dict[str, Any]) -> Delta:
        """Removes writes that the checkpoint includes now, and subgraphs of tasks that ended. After a rewind, the
        writes that are ahead are added again."""
        own, parent = checkpoint_key(ns, draft.id), checkpoint_key(ns, draft.parent)
        ops: Delta = []
        self._keep_earlier(parent, self.writes.get(parent, {}))
        for key in [key for key in self.writes if key == parent or not (ns or key == own or key in ahead)]:
            writes = self.writes.pop(key)
            if key in self.earlier_writes:
                self._keep_earlier(key, writes)
            ops.append({"op": "remove", "path": f"{ROOT}/writes/{escape(key)}"})
        for key in ahead.keys() - self.writes.keys():
            self.writes[key] = ahead[key]
            ops.append({"op": "add", "path": f"{ROOT}/writes/{escape(key)}", "value": ahead[key]})
        if not ns:
            for name in [name for name in self.graphs if is_for_one_task(name)]:
                del self.graphs[name]
                ops.append({"op": "remove", "path": graph_path(name)})
        return ops

    def _keep_earlier(self, key: str, writes: dict[str, Any]) -> None:
        self.earlier_writes[key] = {**self.earlier_writes.pop(key, {}), **writes}
        if len(self.earlier_writes) > _EARLIER_MAX:
            del self.earlier_writes[next(iter(self.earlier_writes))]

    def put_writes(self, key: str, task: str, entry: dict[str, Value]) -> Delta:
        """Stores everything that a task has written so far."""
        ops = self._created_root()
        path = f"{ROOT}/writes/{escape(key)}"
        if key not in self.writes:
            ops.append({"op": "add", "path": path, "value": {}})
        self.writes[key] = {**self.writes.get(key, {}), task: entry}
        ops.append({"op": "add", "path": f"{path}/{escape(task)}", "value": entry})
        return ops

    def nodes_of(self, key: str) -> list[str]:
        """The nodes that have written since a checkpoint."""
        paths = [str(entry.get("path", "")).split(", ") for entry in self.writes.get(key, {}).values()]
        return list(dict.fromkeys(p[1] for p in paths if len(p) > 1 and p[0].endswith("pregel_pull")))


def _check_whole(checkpoint: Any) -> None:
    """InvalidInputError if a field is missing; the message names it."""
    if not isinstance(checkpoint, dict) or type(checkpoint.get("id")) is not str:
        named, missing = "what was given as a checkpoint", ["id"]
    else:
        named = f"checkpoint {checkpoint['id']!r}"
        missing = [name for name in ("channel_values", "channel_versions", "versions_seen") if name not in checkpoint]
    if not missing:
        return
    raise InvalidInputError(
        f"{named} has no {' and no '.join(missing)}, so it cannot be stored",
        kind="bad-checkpoint",
        hint="give it as LangGraph makes it: empty_checkpoint() has every field, and get_tuple() gives a whole one",
    )


def added_items(changes: Delta) -> list[Value]:
    """The items that operations on channels add to lists. A new list adds all of its items."""
    found: list[Value] = []
    for op in changes:
        if op["op"] != "remove":
            value = op["value"]
            found += value if type(value) is list else [value]
    return found


def _public(data: dict[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in data.items() if name != HOME}


def _map_change(before: dict[str, Value], after: dict[str, Value], path: str) -> Delta:
    """The changes of a map key by key, or the whole map if that is shorter."""
    ops = diff(before, after, path)
    return ops if len(ops) <= 1 + len(after) // 6 else [{"op": "add", "path": path, "value": dict(after)}]
