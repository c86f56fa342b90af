"""What checks share: sessions with unique names that are removed in the end, events, and comparing."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from wakelog.conformance.wire import ServerFault, Tail, WireClient, WireReply
from wakelog.errors import WakelogError

Event = dict[str, Any]


def event(kind: str, _header: Mapping[str, Any] | None = None, **body: Any) -> Event:
    return {"kind": kind, "body": body, **(_header or {})}


def message(text: str) -> Event:
    return event("message.added", {"actor": "user"}, role="user", content=text)


def fact(key: str, value: Any) -> Event:
    return event("fact.recorded", key=key, value=value)


def want(expected: object, got: object, what: str, request: str = "") -> None:
    """ServerFault unless both are equal."""
    if expected != got:
        raise ServerFault(f"{what} {expected!r}", repr(got), request)


def _query(query: Mapping[str, Any]) -> str:
    return f"?{urlencode(query)}" if query else ""


class Remote:
    """A session on the server under test."""

    def __init__(self, client: WireClient, head: dict[str, Any]) -> None:
        self.client, self.id, self.name, self.opened = client, str(head["session"]), str(head["name"]), head
        self.path = f"/v1/sessions/{quote(self.id, safe='')}"

    def post(self, verb: str, body: object = None) -> WireReply:
        return self.client.ask("POST", f"{self.path}/{verb}", body)

    def get(self, verb: str, headers: Mapping[str, str] | None = None, **query: Any) -> WireReply:
        return self.client.ask("GET", f"{self.path}/{verb}{_query(query)}", headers=headers)

    def tail(self, headers: Mapping[str, str] | None = None, **query: Any) -> Tail:
        return self.client.tail(f"{self.path}/tail{_query(query)}", headers)

    def append(self, *events: Event, **more: Any) -> WireReply:
        return self.post("events", {"events": list(events), **more})

    def add(self, *events: Event, **more: Any) -> dict[str, Any]:
        """Appends events that must be accepted, and returns the new head."""
        head: dict[str, Any] = self.append(*events, **more).ok()
        return head

    def head(self) -> dict[str, Any]:
        head: dict[str, Any] = self.get("head").ok()
        return head

    def events(self, **query: Any) -> list[dict[str, Any]]:
        """Events, up to 1,000."""
        results: list[dict[str, Any]] = self.get("events", **{"limit": 1000, **query}).ok()["events"]
        return results

    def state(self, **query: Any) -> Any:
        return self.get("state", **query).ok()["value"]

    def check_unchanged(self, head: dict[str, Any], after: WireReply) -> None:
        """ServerFault if something was written since."""
        now = self.head()
        if (now["seq"], now["hash"]) != (head["seq"], head["hash"]):
            raise ServerFault(f"nothing written, head still {head['seq']}", f"head {now['seq']}", after.request)


class Bench:
    """The workplace of one check. Sessions that it opened are deleted in the end, or closed if that is not allowed."""

    def __init__(self, client: WireClient, other: WireClient | None) -> None:
        self.client, self.other = client, other
        self._opened: list[Remote] = []
        self._info: dict[str, Any] | None = None

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        for each in reversed(self._opened):
            with contextlib.suppress(ServerFault, WakelogError):
                if each.client.ask("DELETE", each.path).status >= 400:
                    each.post("close", {})

    @property
    def last(self) -> str:
        """The last request that was sent."""
        return self.client.last

    @property
    def info(self) -> dict[str, Any]:
        if self._info is None:
            self._info = dict(self.client.ask("GET", "/v1/info").ok())
        return self._info

    @property
    def redacts(self) -> bool:
        try:
            return bool(self.info.get("redacts"))
        except ServerFault:
            return False

    def name(self, more: str = "") -> str:
        return f"conformance-{secrets.token_hex(6)}{more}"

    def open(self, name: str = "", *, client: WireClient | None = None, **fields: Any) -> Remote:
        """A new session."""
        client = client or self.client
        reply = client.ask("POST", "/v1/sessions", {"name": name or self.name(), **fields})
        return self.keep(Remote(client, reply.ok()))

    def fork(self, session: Remote, at: str = "", name: str = "") -> Remote:
        reply = session.post("fork", {"at": at, "name": name})
        return self.keep(Remote(session.client, reply.ok(201)))

    def keep(self, session: Remote) -> Remote:
        """Remembers a session, so that it is removed in the end."""
        self._opened.append(session)
        return session
