"""OTLP, the wire format of OpenTelemetry: documents of spans, as JSON and as protobuf.

Inside wakelog a document has the form of OTLP's JSON: names in camelCase, ids in hex, 64-bit numbers as text. Protobuf
is converted here with OpenTelemetry's message classes (the extra `otel`); JSON needs no extra.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from wakelog.errors import InvalidInputError, UnsupportedError
from wakelog.model.json_fields import as_dict, as_list

JSON = "application/json"
PROTOBUF = "application/x-protobuf"
_IDS = ("traceId", "spanId", "parentSpanId")
_DEPTH = "the document is nested too deeply"


def attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Converts attributes to OTLP. None and empty texts are left out."""
    return [{"key": k, "value": _value(v)} for k, v in values.items() if v is not None and v != ""]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [_value(v) for v in value]}}
    return {"stringValue": str(value)}


def as_json(document: dict[str, Any]) -> bytes:
    return msgspec.json.encode(document)


def read_json(body: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise InvalidInputError(f"the body is not JSON: {exc}", kind="bad-otlp") from exc
    except RecursionError as exc:
        raise InvalidInputError(_DEPTH, kind="bad-otlp") from exc
    if not isinstance(value, dict) or not isinstance(value.get("resourceSpans", []), list):
        raise InvalidInputError("the body is not an export of traces: it has no list of resourceSpans", kind="bad-otlp")
    return value


def as_protobuf(document: dict[str, Any]) -> bytes:
    request = _message()
    from google.protobuf import json_format

    json_format.ParseDict(_with_ids(document, _to_base64), request)
    return bytes(request.SerializeToString())


def read_protobuf(body: bytes) -> dict[str, Any]:
    request = _message()
    from google.protobuf import json_format
    from google.protobuf.message import DecodeError

    try:
        request.ParseFromString(body)
        document = json_format.MessageToDict(request, use_integers_for_enums=True)
    except DecodeError as exc:
        raise InvalidInputError("the body is not an export of traces in protobuf", kind="bad-otlp") from exc
    except (RecursionError, ValueError) as exc:
        raise InvalidInputError(f"the body cannot be read as JSON: {exc}", kind="bad-otlp") from exc
    return _with_ids(document, _to_hex)


def read_partial_success(body: bytes) -> dict[str, Any]:
    """Reads from a collector's protobuf answer which spans it rejected; empty if it accepted all."""
    _message()
    from google.protobuf import json_format
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    response = ExportTraceServiceResponse()
    try:
        response.ParseFromString(body)
    except DecodeError:
        return {}
    return as_dict(json_format.MessageToDict(response).get("partialSuccess"))


def accepted_body(media: str, rejected: int = 0, why: str = "") -> bytes:
    """Returns the answer to an export that was accepted, completely or in part."""
    if media == JSON:
        partial = {"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": why}} if rejected else {}
        return msgspec.json.encode(partial)
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    response = ExportTraceServiceResponse()
    if rejected:
        response.partial_success.rejected_spans = rejected
        response.partial_success.error_message = why
    return bytes(response.SerializeToString())


def status_body(media: str, code: int, message: str) -> bytes:
    """Returns the answer to an export that was rejected: a google.rpc.Status, in the format of the request."""
    if media == JSON:
        return msgspec.json.encode({"code": code, "message": message})
    # Encoded by hand (fields code = 1, message = 2), because its class is in a package we do not need otherwise.
    text = message[:250].encode()
    return bytes([0x08, code, 0x12]) + _varint(len(text)) + text


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def require_protobuf() -> None:
    """Raises UnsupportedError if the extra is missing."""
    _message()


def _message() -> Any:
    try:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError as exc:
        raise UnsupportedError(
            "OTLP in protobuf needs the package opentelemetry-proto",
            kind="missing-extra",
            hint="pip install 'wakelog[otel]', or use OTLP's JSON: OTEL_EXPORTER_OTLP_PROTOCOL=http/json",
        ) from exc
    return ExportTraceServiceRequest()


def spans_in(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the spans of a document, from all resources and scopes."""
    for resource in as_list(document.get("resourceSpans")):
        for scope in as_list(as_dict(resource).get("scopeSpans")):
            yield from (span for span in as_list(as_dict(scope).get("spans")) if isinstance(span, dict))


def _with_ids(document: dict[str, Any], convert: Callable[[str], str]) -> dict[str, Any]:
    """Returns a copy with converted ids. That is the only difference between OTLP's JSON and protobuf's JSON."""
    copy: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
    for span in spans_in(copy):
        for owner in (span, *(as_dict(link) for link in as_list(span.get("links")))):
            for name in _IDS:
                if isinstance(owner.get(name), str):
                    owner[name] = convert(owner[name])
    return copy


def _to_hex(text: str) -> str:
    return base64.b64decode(text).hex()


def _to_base64(text: str) -> str:
    try:
        return base64.b64encode(bytes.fromhex(text)).decode()
    except (ValueError, binascii.Error) as exc:
        raise InvalidInputError(f"{text!r} is not an id in hex", kind="bad-otlp") from exc
