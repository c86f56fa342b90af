"""The server itself: version, health, metrics."""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog import __version__
from wakelog.engines.remote.wire import Info
from wakelog.errors import UnavailableError, WakelogError
from wakelog.http.metrics import CONTENT_TYPE
from wakelog.http.namespaces import DEFAULT
from wakelog.http.routes import Raw, VerbRequest, route


class Health(msgspec.Struct, frozen=True):
    """`ok`, always: who could not answer would not."""

    status: str


class Namespaces(msgspec.Struct, frozen=True):
    namespaces: tuple[str, ...]


@route("GET", "/info")
def info(call: VerbRequest) -> Info:
    """Shows the version, how durable an acknowledged append is, and what this key may do."""
    store = call.space.store
    return Info(__version__, store.engine.durability, call.space.name, (call.key.scope,), store.redact is not None)


@route("POST", "/namespace", scope="write")
def make_namespace(call: VerbRequest) -> Info:
    """Creates the namespace if there is none, and shows the same. Any other request that writes creates it too."""
    return info(call)  # type: ignore[no-any-return]


@route("GET", "/healthz", reach="anyone")
async def health(call: VerbRequest) -> Health:
    """Checks that the process answers. Needs no key."""
    return Health("ok")


@route("GET", "/readyz", reach="anyone")
def ready(call: VerbRequest) -> Health:
    """Checks that the store can be read and the server is not stopping. Needs no key."""
    if call.server.is_stopping:
        raise UnavailableError("the server is stopping", kind="server-stopping")
    try:
        call.server.spaces.get(DEFAULT).engine.sessions(limit=1)
    except WakelogError as exc:
        # What is wrong with the store is not for everybody.
        raise UnavailableError("the store cannot be read", kind="store-unreadable") from exc
    return Health("ok")


@route("GET", "/v1/namespaces", reach="server")
def namespaces(call: VerbRequest) -> Namespaces:
    """Lists the namespaces; for keys that see all of them."""
    return Namespaces(tuple(call.server.spaces.names()))


@route("GET", "/metrics", reach="server", media=CONTENT_TYPE)
def metrics(call: VerbRequest) -> Raw:
    """Returns metrics for Prometheus, over all namespaces; for keys that see all of them. Sessions and flags are
    counted when it is asked for, at most every five seconds."""
    call.server.fleet.refresh(call.server.metrics)
    return Raw(call.server.metrics.text(), CONTENT_TYPE)


@route("GET", "/openapi.json", reach="anyone")
def openapi(call: VerbRequest) -> dict[str, Any]:
    """Returns this interface as an OpenAPI 3.1 document. Needs no key."""
    from wakelog.http.openapi import document

    return document()
