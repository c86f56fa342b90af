"""A client without our code: only the standard library and JSON."""

import http.client
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

TIMEOUT_S = 120


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def kind(self) -> str:
        """The kind of the problem; empty if it is not a problem."""
        if self.headers.get("content-type") != "application/problem+json":
            return ""
        return str(self.json["kind"])


class Asker:
    """Asks one server with one key."""

    def __init__(self, url: str, key: str = "", **headers: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._place = parts.hostname, parts.port
        self._base = parts.path
        self._headers = {**({"Authorization": f"Bearer {key}"} if key else {}), **headers}

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> Reply:
        connection = http.client.HTTPConnection(*self._place, timeout=TIMEOUT_S)
        try:
            connection.request(
                method, self._base + _with(path, query), *_sent(body, {**self._headers, **(headers or {})})
            )
            reply = connection.getresponse()
            return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())
        finally:
            connection.close()

    def get(self, path: str, headers: Mapping[str, str] | None = None, **query: Any) -> Reply:
        return self.ask("GET", path, None, headers, **query)

    def post(self, path: str, body: Any = None, **headers: str) -> Reply:
        return self.ask("POST", path, body, headers)


def _with(path: str, query: Mapping[str, Any]) -> str:
    text = urlencode({k: v for k, v in query.items() if v is not None}, doseq=True)
    return f"{path}?{text}" if text else path


def _sent(body: Any, headers: dict[str, str]) -> tuple[bytes | None, dict[str, str]]:
    if body is None or isinstance(body, bytes):
        return body, headers
    return json.dumps(body).encode(), {"Content-Type": "application/json", **headers}


def segment(text: str) -> str:
    """A name as one segment of a path."""
    return quote(text, safe="")


def until(ask: Callable[[], Any], within_s: float = 120) -> Any:
    """The first answer that is true."""
    deadline = time.monotonic() + within_s
    while not (answer := ask()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return answer
