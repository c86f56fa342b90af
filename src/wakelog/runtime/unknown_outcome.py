"""Errors that leave an effect open: the call was sent, perhaps, and no answer came back.

A timeout, a lost connection, a cancellation say nothing about the other side. For a call with effects such an error
makes the call *uncertain*, and it is not sent again by itself. Clients have classes of their own for these; they are
known by the names of the classes an error is made from, so that no client need be imported. An error that carries an
answer of the other side, such as an HTTP status, is an answer.

A tool that knows better says so: `NotSentError`, the effect did not happen; `UncertainError`, nobody can tell.
"""

from __future__ import annotations

import errno


class UncertainError(Exception):
    """Raised by a tool that cannot tell whether its effect happened: the call becomes uncertain, not failed."""


class NotSentError(Exception):
    """Raised by a tool that knows that its effect did not happen: the call failed, and may be sent again."""


OPEN = frozenset(
    {
        *("TimeoutError", "Timeout", "TimeoutException", "TimeoutExpired", "ConnectTimeout", "ReadTimeout"),
        *("ConnectionError", "ConnectError", "NetworkError", "TransportError", "ProtocolError", "SSLError"),
        *("APIConnectionError", "APITimeoutError", "URLError", "gaierror", "herror"),
        *("CancelledError", "Cancelled", "BrokenExecutor", "IncompleteRead", "IncompleteReadError", "BadStatusLine"),
        *("ClientConnectionError", "ClientPayloadError", "ChunkedEncodingError", "ContentDecodingError"),
        *("ConnectionClosed", "ConnectionClosedError", "HTTPClientError", "SMTPServerDisconnected"),
        *("DeadlineExceeded", "ServiceUnavailable", "GatewayTimeout", "AMQPConnectionError", "KafkaTimeoutError"),
    }
)
"""Classes of errors after which nobody knows, in Python and in the usual clients."""
ANSWERS = frozenset({"HTTPError", "HTTPStatusError", "APIStatusError", "ClientResponseError", "SMTPResponseException"})
"""Classes of errors that are an answer of the other side; some are made from one of the above."""
_UNREACHED = frozenset({errno.ENETDOWN, errno.ENETUNREACH, errno.ENETRESET, errno.EHOSTUNREACH, errno.EHOSTDOWN})


def leaves_open(error: BaseException, outer: BaseException | None = None) -> bool:
    """Whether an error says nothing about the effect: by itself, or by the error it was raised from or while handling.
    `outer` is what the caller was handling when it made the call, which is not the tool's."""
    found: BaseException | None = error
    while found is not None and found is not outer:
        each, found = found, found.__cause__ or (None if found.__suppress_context__ else found.__context__)
        if isinstance(each, NotSentError):
            return False
        if isinstance(each, UncertainError) or _is_open(each):
            return True
    return False


def _is_open(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(map(leaves_open, error.exceptions))
    if isinstance(error, OSError) and error.errno in _UNREACHED:
        return True
    for cls in type(error).__mro__:
        if cls.__name__ in ANSWERS:
            return False
        if cls.__name__ in OPEN:
            return True
    return False


def mark_unsure(error: BaseException, action: str) -> None:
    """Notes on an error that it came from a call which is uncertain now."""
    error.__dict__["wakelog_uncertain"] = action


def is_unsure(error: BaseException | None) -> bool:
    """Whether an error came from a call which is uncertain: who lets it pass has stopped, and not failed."""
    while error is not None and "wakelog_uncertain" not in error.__dict__:
        error = error.__cause__
    return error is not None
