"""The URL of a store on a NATS cluster:

    nats://user:password@host:4222,host:4222,host:4222/store?namespace=team&shards=4

`tls://` connects with TLS. The path names the store, by default `wakelog`. `PARAMETERS` lists the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from wakelog.errors import InvalidInputError, missing_extra

if TYPE_CHECKING:
    from wakelog.engines.nats import NatsEngine

PARAMETERS = {
    "namespace": "the namespace; by default `default`",
    "replicas": "how many servers store each message: 1, 3 or 5; by default 3",
    "shards": "how many shards a new store gets",
    "monitor": "the servers' monitoring ports, or host:port, separated by commas; by default 8222",
    "sync": "`always`: skips the check, because you know that every server has sync_interval: always",
    "patience": "how many seconds to wait for a cluster that does not answer",
    "creds": "the path of a credentials file",
    "index": "`postgresql://…`: a shared database for the index; by default `local`: one index per machine",
}
_LIMITS = {"replicas": (1, 5), "shards": (1, 1024)}


def open_nats(url: str, create: bool, *, shards: int | None = None, replicas: int | None = None) -> NatsEngine:
    """Opens the engine that a URL names. `shards` and `replicas` override the URL."""
    try:
        from wakelog.engines.nats import NatsEngine
        from wakelog.engines.nats.connection import PATIENCE_S
        from wakelog.engines.nats.streams import MONITOR_PORT
    except ImportError as exc:
        raise missing_extra("a NATS store needs nats-py", "nats") from exc
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(set(query) - set(PARAMETERS)):
        raise _bad(f"{unknown[0]!r} is not a parameter", f"the parameters are {', '.join(PARAMETERS)}")
    sync = query.get("sync", "")
    if sync not in ("", "always"):
        raise _bad(f"sync cannot be {sync!r}", "sync=always says that every server syncs each message")
    options: dict[str, Any] = {"user_credentials": _readable(query["creds"])} if "creds" in query else {}
    index = query.get("index", "local")
    if index != "local" and not index.startswith(("postgresql://", "postgres://")):
        raise _bad(f"the index cannot be {index!r}", "index=postgresql://user@host/database, or index=local")
    engine = NatsEngine(
        _servers(parts.scheme, parts.netloc),
        store=unquote(parts.path.strip("/")) or "wakelog",
        ns=query.get("namespace", "default"),
        replicas=replicas or _number(query, "replicas", 3),
        shards=shards or _number(query, "shards", 1),
        create=create,
        monitors=[m for m in query.get("monitor", MONITOR_PORT).split(",") if m],
        vouched=sync == "always",
        patience_s=_seconds(query, PATIENCE_S),
        options=options,
    )
    engine.index_url = "" if index == "local" else index
    return engine


def _servers(scheme: str, netloc: str) -> list[str]:
    """Returns the URL of each server. The client encodes user and password itself."""
    user, at, hosts = netloc.rpartition("@")
    return [f"{scheme}://{user}{at}{_address(host)}" for host in hosts.split(",")]


def _address(text: str) -> str:
    """A host and its port."""
    example = "nats://host:4222,host:4222,host:4222/store"
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _bad(f"{text!r} is not a host and a port", example) from None
    if not host:
        raise _bad("it names no server", example)
    return text if port is not None else f"{text.removesuffix(':')}:4222"


def _readable(path: str) -> str:
    try:
        with open(path, "rb"):
            return path
    except OSError as exc:
        raise _bad(f"the credentials file {path!r} cannot be read: {exc.strerror}", "creds=PATH") from exc


def _number(query: dict[str, str], name: str, default: int) -> int:
    least, most = _LIMITS[name]
    text = query.get(name, str(default))
    if not text.isdigit() or not least <= int(text) <= most:
        raise _bad(f"{name} cannot be {text!r}", f"{name} is a number from {least} to {most}")
    return int(text)


def _seconds(query: dict[str, str], default: float) -> float:
    text = query.get("patience", str(default))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise _bad(f"patience cannot be {text!r}", "patience=20 is twenty seconds")
    return seconds


def _bad(what: str, hint: str) -> InvalidInputError:
    return InvalidInputError(f"this is not the URL of a NATS store: {what}", kind="bad-url", hint=hint)
