"""The server itself: version, health, metrics."""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog import __version__
from wakelog.engines.remote.wire import Info
from wakelog.errors import UnavailableError, WakelogError
from wakelog.http.metrics import CONTENT_TYPE
from wakelog.http.namespaces import DEFAULT
from wakelog.http.problems import stopping
from wakelog.http.routes import Raw, VerbRequest, route


class Health(msgspec.Struct, frozen=True):
    """Always `ok`: a server that is not cannot answer, or answers with an error."""

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
    """Creates the namespace if there is none, and returns what /info does. Any other request that writes creates it
    too."""
    return info(call)  # type: ignore[no-any-return]


@route("GET", "/healthz", reach="anyone")
async def health(call: VerbRequest) -> Health:
    """Checks that the process answers. Needs no key."""
    return Health("ok")


@route("GET", "/readyz", reach="anyone")
def ready(call: VerbRequest) -> Health:
    """Checks that the store can be read and the server is not stopping. Needs no key."""
    if call.server.is_stopping:
        raise stopping()
    try:
        call.server.spaces.get(DEFAULT).engine.sessions(limit=1)
    except WakelogError as exc:
        # Details of the fault are not for everybody.
        raise UnavailableError("the store cannot be read", kind="store-unreadable") from exc
    return Health("ok")


@route("GET", "/v1/namespaces", reach="server")
def namespaces(call: VerbRequest) -> Namespaces:
    """Lists the namespaces; for keys that see all of them."""
    return Namespaces(tuple(call.server.spaces.names()))


@route("GET", "/metrics", reach="server", media=CONTENT_TYPE)
def metrics(call: VerbRequest) -> Raw:
    """Returns metrics for Prometheus, over all namespaces; for keys that see all of them. Sessions and flags are
    counted on request, at most every five seconds."""
    call.server.fleet.refresh(call.server.metrics)
    return Raw(call.server.metrics.text(), CONTENT_TYPE)


@route("GET", "/openapi.json", reach="anyone")
def openapi(call: VerbRequest) -> dict[str, Any]:
    """Returns this interface as an OpenAPI 3.1 document. Needs no key."""
    from wakelog.http.openapi import document

    return document()
