"""Errors of the server: one table from errors to HTTP statuses, and one shape for all of them (RFC 9457).

The class of an error decides its status, except for a few kinds that have their own HTTP status.
"""

from __future__ import annotations

from wakelog import errors
from wakelog.engines.remote.wire import Problem, problem_of
from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError, UnavailableError, WakelogError

STATUSES: dict[type[WakelogError], int] = {
    errors.NotFoundError: 404,
    errors.ConflictError: 409,
    errors.NotAllowedError: 409,
    errors.InvalidInputError: 400,
    errors.UnsupportedError: 501,
    errors.CorruptLogError: 500,
    errors.DivergenceError: 409,
    errors.UnavailableError: 503,
}
KINDS = {
    "key-missing": 401,
    "key-refused": 401,
    "scope-missing": 403,
    "wrong-host": 403,
    "wrong-origin": 403,
    "no-such-method": 405,
    "body-too-slow": 408,
    "not-encrypted": 409,
    "body-too-large": 413,
    "body-too-complex": 413,
    "bundle-too-large": 413,
    "wrong-media": 415,
    "query-too-big": 422,
    "query-too-slow": 422,
    "too-many-requests": 429,
    "head-too-large": 431,
}


def status_of(error: WakelogError) -> int:
    by_class = (status for cls, status in STATUSES.items() if isinstance(error, cls))
    return KINDS.get(error.kind) or next(by_class, 500)


def problem(error: WakelogError) -> Problem:
    return problem_of(error, status_of(error))


def no_route(path: str) -> NotFoundError:
    return NotFoundError(f"there is nothing at {path}", kind="no-such-route", hint="GET /openapi.json lists the routes")


def no_method(method: str, path: str, allowed: str) -> InvalidInputError:
    return InvalidInputError(f"{path} does not support {method}, only {allowed}", kind="no-such-method")


def key_missing() -> NotAllowedError:
    return NotAllowedError(
        "this needs a key: send it as `Authorization: Bearer KEY`", kind="key-missing", hint="wakelog key new makes one"
    )


def key_refused() -> NotAllowedError:
    """The same for unknown, revoked and expired keys, so that a caller cannot find out which keys exist."""
    return NotAllowedError("this key is not valid here", kind="key-refused", hint="wakelog key new makes another")


def scope_missing(scope: str, held: str, space: str) -> NotAllowedError:
    """`space` is the namespace that the key is for; empty: all of them."""
    needed, yours = (scope, held) if space else (f"{scope} for all namespaces", f"{held} for some")
    reach = "--all-namespaces" if not space else f"--namespace {space}"
    return NotAllowedError(
        f"this needs a key of scope {needed}; yours has {yours}",
        kind="scope-missing",
        hint=f"wakelog key new NAME --scope {scope} {reach}",
    )


def no_space(name: str) -> NotFoundError:
    """Also for a namespace that exists but that the key may not see."""
    return NotFoundError(f"there is no namespace {name!r} for this key", kind="namespace-not-found")


def too_many(wait_s: float) -> NotAllowedError:
    return NotAllowedError(
        f"too many requests with this key; wait {wait_s:.1f} s", kind="too-many-requests", hint="send fewer at a time"
    )


def busy() -> UnavailableError:
    return UnavailableError("the server is overloaded", kind="server-busy", hint="ask again")


def share_used(what: str, whose: str, most: int) -> UnavailableError:
    return UnavailableError(
        f"{whose} already has {most:,} {what}, which is its limit",
        kind="server-busy",
        hint="ask again when some of them have ended",
    )


def too_many_connections(most: int) -> UnavailableError:
    return UnavailableError(
        f"your address has {most:,} connections open, as many as one may have",
        kind="server-busy",
        hint="close some, or share them between requests; wakelog serve --connections N allows more",
    )


def stopping() -> UnavailableError:
    return UnavailableError("the server is stopping", kind="server-stopping", hint="ask again")


def too_slow(limit_s: float) -> UnavailableError:
    """The verb may still finish after its caller has stopped waiting."""
    return UnavailableError(
        f"no answer within {limit_s:g} s; whether it was done is unknown",
        kind="answer-unknown",
        hint="ask again with the same commit id",
    )
