"""Sends documents of spans to a collector over OTLP/HTTP, in batches.

If the collector is busy (429, 502, 503, 504), the sender retries a few times, after the delay that the collector asks
for. Spans have the same ids in every export, so sending them again is safe. Headers may contain a key, so no message
shows them.
"""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

import msgspec

from wakelog import otlp
from wakelog.engines.remote.connection import Connections, NoReplyError, Reply, parse_address
from wakelog.errors import InvalidInputError, UnavailableError
from wakelog.model.json_fields import as_dict, as_text, text_in

PATH = "/v1/traces"
BATCH = 512
TRIES = 5
TIMEOUT_S = 10.0
WAIT_MAX_S = 30.0
_BUSY = (429, 502, 503, 504)
_PROTOCOLS = {"http/json": otlp.JSON, "http/protobuf": otlp.PROTOBUF}


class SentSpans(msgspec.Struct, frozen=True):
    """The result of sending spans."""

    spans: int
    rejected: int
    message: str
    """Why the collector rejected some, as it says."""


class SpanSender:
    """Sends to one collector. The address is the collector's, or that of its path for traces."""

    def __init__(
        self,
        url: str,
        *,
        protocol: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        address = parse_address(url)
        self._path = "" if (address.path or "/") != "/" else PATH
        protocol = protocol or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http/json"
        if protocol not in _PROTOCOLS:
            raise InvalidInputError(
                f"{protocol!r} is not a supported protocol for spans", hint="use http/json or http/protobuf"
            )
        self._media = _PROTOCOLS[protocol]
        if self._media == otlp.PROTOBUF:
            otlp.require_protobuf()
        self._url, self._sleep = url, sleep
        self._connections = Connections(url, _environment_headers())

    def send(self, document: dict[str, Any]) -> SentSpans:
        """Sends all spans of a document. UnavailableError if the collector cannot be reached or stays busy."""
        count = rejected = 0
        message = ""
        for batch in _batches(document):
            result = self._post(batch)
            count += sum(1 for _ in otlp.spans_in(batch))
            rejected += result.rejected
            message = message or result.message
        return SentSpans(count, rejected, message)

    def close(self) -> None:
        self._connections.close()

    def _post(self, batch: dict[str, Any]) -> SentSpans:
        body = otlp.as_json(batch) if self._media == otlp.JSON else otlp.as_protobuf(batch)
        headers = {"Content-Type": self._media, "Content-Encoding": "gzip"}
        packed = gzip.compress(body, mtime=0)
        why = ""
        for attempt in range(TRIES):
            try:
                reply = self._connections.ask("POST", self._path, packed, TIMEOUT_S, headers)
            except NoReplyError as exc:
                reply, why = None, str(exc)
            if reply is not None and reply.status < 300:
                return self._accepted(reply)
            if reply is not None and reply.status not in _BUSY:
                raise InvalidInputError(
                    f"the collector at {self._url} refused the spans: {reply.status} {_error_message(reply)}".rstrip(),
                    kind="otlp-refused",
                    hint="check the address, and OTEL_EXPORTER_OTLP_HEADERS for a key",
                )
            if attempt + 1 < TRIES:
                self._sleep(_wait_s(reply, attempt))
            why = f"it is busy ({reply.status})" if reply is not None else why
        raise UnavailableError(f"the collector at {self._url} did not accept the spans: {why}", kind="otlp-unreachable")

    def _accepted(self, reply: Reply) -> SentSpans:
        partial = {}
        if reply.headers.get("content-type", "").startswith(otlp.JSON) and reply.content:
            try:
                partial = as_dict(as_dict(msgspec.json.decode(reply.content)).get("partialSuccess"))
            except msgspec.DecodeError:
                partial = {}
        elif self._media == otlp.PROTOBUF and reply.content:
            partial = otlp.read_partial_success(reply.content)
        rejected = str(partial.get("rejectedSpans", "0"))
        return SentSpans(0, int(rejected) if rejected.isdigit() else 0, text_in(partial, "errorMessage")[:500])


def _batches(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            spans = scope["spans"]
            for start in range(0, len(spans), BATCH):
                part = {**scope, "spans": spans[start : start + BATCH]}
                yield {"resourceSpans": [{**resource, "scopeSpans": [part]}]}


def _wait_s(reply: Reply | None, attempt: int) -> float:
    retry_after = reply.headers.get("retry-after", "") if reply is not None else ""
    return min(WAIT_MAX_S, float(retry_after) if retry_after.isdigit() else 0.5 * 2**attempt)


def _error_message(reply: Reply) -> str:
    """The collector's error message."""
    try:
        return as_text(as_dict(msgspec.json.decode(reply.content)).get("message"))[:300]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def _environment_headers() -> dict[str, str]:
    """The headers in `OTEL_EXPORTER_OTLP_HEADERS`: key=value, separated by commas."""
    found = {}
    for pair in os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "").split(","):
        name, equals, value = pair.partition("=")
        if equals and name.strip():
            found[name.strip()] = unquote(value.strip())
    return found
