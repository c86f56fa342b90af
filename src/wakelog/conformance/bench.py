"""What checks have in common: sessions under names of their own, which are gone in the end; events; comparing."""

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
    """A Fault unless both are the same."""
    if expected != got:
        raise ServerFault(f"{what} {expected!r}", repr(got), request)


class Remote:
    """A session on the server under test."""

    def __init__(self, client: WireClient, head: dict[str, Any]) -> None:
        self.client, self.id, self.name, self.opened = client, str(head["session"]), str(head["name"]), head
        self.path = f"/v1/sessions/{quote(self.id, safe='')}"

    def post(self, verb: str, body: object = None) -> WireReply:
        return self.client.ask("POST", f"{self.path}/{verb}", body)

    def get(self, verb: str, headers: Mapping[str, str] | None = None, **query: Any) -> WireReply:
        asked = f"?{urlencode(query)}" if query else ""
        return self.client.ask("GET", f"{self.path}/{verb}{asked}", headers=headers)

    def tail(self, headers: Mapping[str, str] | None = None, **query: Any) -> Tail:
        asked = f"?{urlencode(query)}" if query else ""
        return self.client.tail(f"{self.path}/tail{asked}", headers)

    def append(self, *events: Event, **more: Any) -> WireReply:
        return self.post("events", {"events": list(events), **more})

    def add(self, *events: Event, **more: Any) -> dict[str, Any]:
        """Appends what must be accepted; the head after it."""
        head: dict[str, Any] = self.append(*events, **more).ok()
        return head

    def head(self) -> dict[str, Any]:
        head: dict[str, Any] = self.get("head").ok()
        return head

    def events(self, **query: Any) -> list[dict[str, Any]]:
        """Events, up to 1,000."""
        found: list[dict[str, Any]] = self.get("events", **{"limit": 1000, **query}).ok()["events"]
        return found

    def state(self, **query: Any) -> Any:
        return self.get("state", **query).ok()["value"]

    def unmoved(self, head: dict[str, Any], after: WireReply) -> None:
        """A Fault when something was written since."""
        now = self.head()
        if (now["seq"], now["hash"]) != (head["seq"], head["hash"]):
            raise ServerFault(f"nothing written, head still {head['seq']}", f"head {now['seq']}", after.request)


class Bench:
    """Where one check does its work. What it opened is deleted in the end, or closed where it may not be deleted."""

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
        """Remembers a session, to be removed in the end."""
        self._opened.append(session)
        return session
