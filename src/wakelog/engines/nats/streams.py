"""The streams of a store: creates them, and checks that servers and streams meet the requirements.

A store that does not meet them is not opened, because it could lose acknowledged appends. Versions and streams are
visible through the connection. How often a server syncs its files is not: only its monitoring port reports it (`http:
…` in the server's configuration, /varz). So every server with a replica is asked there; or the URL says `sync=always`,
and its author is responsible.
"""

from __future__ import annotations

import asyncio
import re
import urllib.request
from collections.abc import Sequence
from typing import Any

import msgspec

from wakelog.engines.nats.connection import NatsConnection
from wakelog.engines.nats.errors import NO_PEERS, NO_STREAM, JetStreamRefusal
from wakelog.engines.nats.subjects import Subjects
from wakelog.errors import UnsupportedError
from wakelog.model.shards import ShardPlacement

OLDEST = (2, 12)
SMALLEST = 64 * 1024
"""What a server must accept in one message, in bytes: a commit is cut into parts, but its columns are in one."""
API_LEVEL = 2
"""The level of JetStream's API, reported by the cluster's leader. Level 2 came with 2.12."""
MONITOR_PORT = "8222"
_MONITOR_S = 3.0
_SILENT_S = 3.0
"""A replica that was silent for this long counts as down. They send something every second."""
_JOIN_S = 2.0
"""How long to wait for more servers, if fewer are known than replicas are wanted: the cluster may just be starting."""
_NOTICED_S = 6.0
"""How long the cluster takes to notice that a server is lost."""


class StoreStreams:
    """The streams of one store."""

    def __init__(self, connection: NatsConnection, subjects: Subjects) -> None:
        self._connection, self._subjects = connection, subjects

    # Creating

    async def create_shard(self, shard: int, replicas: int) -> None:
        source, target = self._subjects.republish(shard)
        await self._create(
            self._subjects.stream(shard),
            shard,
            replicas,
            allow_atomic=True,
            republish={"src": source, "dest": target, "headers_only": True},
        )

    async def create_names(self, replicas: int) -> None:
        await self._create(self._subjects.names_stream, "names", replicas, max_msgs_per_subject=1, discard="old")
        await self._create(
            self._subjects.beats_stream, "beats", replicas, max_msgs_per_subject=1, discard="old", storage="memory"
        )

    async def _create(self, stream: str, place: int | str, replicas: int, **more: Any) -> None:
        """Creates a stream. Repeating it with the same configuration changes nothing."""
        config = {
            "name": stream,
            "subjects": [self._subjects.all_of(place)],
            "storage": "file",
            "retention": "limits",
            "discard": "new",
            "num_replicas": replicas,
            "allow_direct": True,
            **more,
        }
        clock = asyncio.get_running_loop().time
        until = clock() + _JOIN_S

        async def attempt() -> None:
            try:
                await self._connection.api(f"STREAM.CREATE.{stream}", config, patience_s=0.0)
            except JetStreamRefusal as exc:
                count = self._connection.server_count
                if exc.err_code == NO_PEERS and count < replicas and clock() > until:
                    raise _too_few(replicas, f"it has {_count(count, 'server')}") from exc
                raise

        try:
            await self._connection.retry(attempt)
        except JetStreamRefusal as exc:
            if exc.err_code == 10058:  # it exists with another configuration: the checks report what is wrong
                return
            if exc.err_code in (NO_PEERS, 10074, 10023):
                raise _too_few(replicas, exc.description) from exc
            raise

    # Checking

    async def exists(self) -> bool:
        try:
            await self._connection.api(f"STREAM.INFO.{self._subjects.names_stream}", patience_s=0.0)
        except JetStreamRefusal as exc:
            return exc.err_code != NO_STREAM and await self._exists_with_retry()
        except Exception:
            return await self._exists_with_retry()
        return True

    async def _exists_with_retry(self) -> bool:
        """Like `exists`, with retries, because a cluster that just started has no leader yet."""
        found = await self._connection.api("STREAM.NAMES", {"subject": self._subjects.layout})
        return bool(found.get("streams"))

    async def check_version(self) -> None:
        info = self._connection.server_info
        version = str(info.get("version", "0"))
        if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST:
            raise _too_old(f"the server {info.get('server_name', '')} is version {version}")
        if not info.get("jetstream"):
            raise UnsupportedError(
                f"the server {info.get('server_name', '')} has no JetStream",
                kind="no-jetstream",
                hint="add to its configuration: jetstream { store_dir: …, sync_interval: always }",
            )
        if (most := self._connection.max_bytes) < SMALLEST:
            raise UnsupportedError(
                f"the server {info.get('server_name', '')} accepts messages of {most} bytes, and {SMALLEST} are needed",
                kind="too-big",
                hint="set `max_payload: 1MB` on every server, which is also the default",
            )
        level = (await self._connection.api("INFO")).get("api", {}).get("level", 0)
        if level < API_LEVEL:
            raise _too_old(f"the cluster's leader has level {level} of JetStream's API")

    async def check_streams(self, shards: int, replicas: int) -> None:
        """Checks that no stream drops messages or has too few replicas."""
        for name, info in (await self._infos(shards)).items():
            _check_replicas(name, info["config"], replicas)
            is_shard = name != self._subjects.names_stream
            _check_limits(name, info["config"], 0 if is_shard else 1)
            _check_abilities(name, info["config"], ("allow_atomic", "allow_direct") if is_shard else ("allow_direct",))

    async def check_sync(self, shards: int, monitors: Sequence[str]) -> None:
        """Checks that every server with a replica syncs each message. A server that is down is skipped if a majority of
        all does: the store must work when a server is lost. Without shards, only the connected server is asked."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + _NOTICED_S
        while True:
            infos = (await self._infos(shards)).values() if shards else ()
            wanted = {name for each in infos for name in _servers_of(each)} or {self._own_name}
            silent = {name for each in infos for name in _silent(each)}
            places = _places(monitors, self._connection.servers)
            seen = await self._synced(places)
            missing = wanted - seen
            if missing <= silent and 2 * len(wanted & seen) > len(wanted):
                return
            if clock() >= deadline or not (shards and wanted & seen):
                raise _unseen(missing, places)
            await asyncio.sleep(0.3)  # the cluster may not have noticed yet that it is down

    @property
    def _own_name(self) -> str:
        return str(self._connection.server_info.get("server_name", ""))

    async def _infos(self, shards: int) -> dict[str, dict[str, Any]]:
        names = [*(self._subjects.stream(s) for s in range(shards)), self._subjects.names_stream]
        found = await asyncio.gather(*(self._connection.api(f"STREAM.INFO.{name}") for name in names))
        return dict(zip(names, found, strict=True))

    async def _synced(self, places: Sequence[str]) -> set[str]:
        """The names of the servers that sync each message; UnsupportedError if one reports that it does not."""
        answers = await asyncio.gather(*(asyncio.to_thread(_ask_monitor, place) for place in places))
        seen = {each["server_name"]: each for each in answers if each is not None}
        for name, each in seen.items():
            if not ((each.get("jetstream") or {}).get("config") or {}).get("sync_always"):
                raise UnsupportedError(
                    f"the server {name} does not sync each message: a power cut can lose what was acknowledged",
                    kind="not-synced",
                    hint="set in its configuration: jetstream { …, sync_interval: always }",
                )
        return set(seen)

    async def placement(self, shards: int) -> list[ShardPlacement]:
        """Where each shard is, and how far its replicas are."""
        found = await asyncio.gather(
            *(self._connection.api(f"STREAM.INFO.{self._subjects.stream(s)}") for s in range(shards))
        )
        return [_placement(shard, each) for shard, each in enumerate(found)]


def _placement(shard: int, info: dict[str, Any]) -> ShardPlacement:
    cluster, state = info.get("cluster") or {}, info["state"]
    replicas = cluster.get("replicas") or []
    return ShardPlacement(
        shard=shard,
        leader=cluster.get("leader", ""),
        replicas=tuple(sorted(_servers_of(info))),
        lag={r["name"]: r.get("lag", 0) for r in replicas},
        away=tuple(sorted(_silent(info))),
        messages=state["messages"],
        bytes=state["bytes"],
    )


def _servers_of(info: dict[str, Any]) -> set[str]:
    cluster = info.get("cluster") or {}
    return {n for n in (cluster.get("leader"), *(r["name"] for r in cluster.get("replicas") or [])) if n}


def _silent(info: dict[str, Any]) -> set[str]:
    """The replicas that do not follow, or were silent for some seconds."""
    replicas = (info.get("cluster") or {}).get("replicas") or []
    return {
        r["name"]
        for r in replicas
        if r.get("offline") or not r.get("current", True) or r.get("active", 0) > _SILENT_S * 1e9
    }


def _unseen(missing: set[str], places: Sequence[str]) -> UnsupportedError:
    return UnsupportedError(
        f"how {', '.join(sorted(missing))} syncs cannot be seen: no answer from its monitoring port"
        f" (asked: {', '.join(places)})",
        kind="sync-unseen",
        hint="set `http: 8222` on every server, or name the ports with ?monitor=host:8222,…;"
        " or, if you know that each has sync_interval: always, say ?sync=always",
    )


def _check_limits(name: str, config: dict[str, Any], per_subject: int) -> None:
    """Checks that the stream keeps every message, or with `per_subject` the last so many of each subject."""
    drops = [
        f"{key}={config[key]}"
        for key, unlimited in (("max_msgs", -1), ("max_bytes", -1), ("max_age", 0), ("retention", "limits"))
        if config.get(key, unlimited) not in (unlimited, 0)
    ]
    # A size limit is fine if a full stream refuses new messages, because then it drops nothing.
    if config["discard"] == "new":
        drops = [each for each in drops if not each.startswith(("max_msgs=", "max_bytes="))]
    if max(0, config.get("max_msgs_per_subject", 0)) != per_subject:
        drops.append(f"max_msgs_per_subject={config.get('max_msgs_per_subject')}")
    if drops:
        limits = f"--max-age=0 --max-msgs=-1 --max-bytes=-1 --max-msgs-per-subject={per_subject or -1}"
        raise UnsupportedError(
            f"the stream {name} would drop messages: {', '.join(drops)}",
            kind="stream-drops",
            hint=f"nats stream edit {name} {limits}",
        )


def _check_abilities(name: str, config: dict[str, Any], needed: Sequence[str]) -> None:
    wrong = [f"{key} is off" for key in needed if not config.get(key)]
    wrong += [f"{key} is on" for key in ("deny_delete", "sealed", "no_ack") if config.get(key)]
    wrong += [f"it has {key}" for key in ("mirror", "sources", "subject_transform") if config.get(key)]
    wrong += ["it is stored in memory"] if config.get("storage") != "file" else []
    wrong += ["it acknowledges before it syncs"] if config.get("persist_mode") == "async" else []
    if wrong:
        raise UnsupportedError(
            f"the stream {name} is not as this store needs it: {', '.join(wrong)}",
            kind="stream-drops",
            hint="create the streams with wakelog store create",
        )


def _check_replicas(name: str, config: dict[str, Any], replicas: int) -> None:
    if config["num_replicas"] < replicas:
        raise UnsupportedError(
            f"the stream {name} has {_count(config['num_replicas'], 'replica')}, and {replicas} are needed",
            kind="too-few-replicas",
            hint=f"nats stream edit {name} --replicas={replicas}; or say ?replicas=1, and a lost disk is a lost store",
        )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _too_few(replicas: int, why: str) -> UnsupportedError:
    return UnsupportedError(
        f"the cluster cannot keep {replicas} replicas of a stream: {why}",
        kind="too-few-servers",
        hint=f"start {max(3, replicas)} servers as one cluster; or say ?replicas=1, and a lost disk is a lost store",
    )


def _too_old(what: str) -> UnsupportedError:
    oldest = ".".join(map(str, OLDEST))
    return UnsupportedError(f"{what}, and {oldest} is needed", kind="server-too-old", hint="upgrade nats-server")


def _places(monitors: Sequence[str], servers: Sequence[str]) -> list[str]:
    """The monitoring addresses. Each monitor is a port on every server, or a host and a port."""
    hosts = dict.fromkeys(server.rpartition(":")[0] for server in servers)
    found = [f"{host}:{m}" for m in monitors for host in hosts if m.isdigit()]
    return [*found, *(m for m in monitors if not m.isdigit())]


def _ask_monitor(place: str) -> dict[str, Any] | None:
    try:
        with urllib.request.urlopen(f"http://{place}/varz", timeout=_MONITOR_S) as answer:
            found: dict[str, Any] = msgspec.json.decode(answer.read())
    except (OSError, ValueError, msgspec.DecodeError):
        return None
    return found if "server_name" in found else None
