"""Translates errors of the client and the cluster to ours."""

from __future__ import annotations

import asyncio
import concurrent.futures
import re
import ssl

import nats.errors

from wakelog.errors import InvalidInputError, NotAllowedError, UnavailableError, WakelogError

IN_FLIGHT = 10164
"""Another append of this session, or another opening in this shard, is being stored."""
WRONG_HEAD = frozenset({10071, IN_FLIGHT, 10201})
"""The expected message is not the last one; the same while another append is in flight; the same batch was repeated."""
_IN_PROCESS = 10158
"""The same message was sent before, and whether it will be stored is not decided yet."""
_MAYBE_OURS = frozenset({_IN_PROCESS, IN_FLIGHT, 10201})
"""What is being stored, or is stored, may be what was sent before, for an earlier submit too."""
NO_MESSAGE = frozenset({10037, 10057, 10043})
NO_STREAM = 10059
NO_LEADER = frozenset({10008, 10009})
"""The cluster, or a stream, has no leader: too few of its servers are up, or one is being elected."""
NO_PEERS = 10005
"""The cluster's leader knows too few servers for a stream. More may be starting."""
_FULL = frozenset({10047, 10077, 10023, 10120})
_TEMPORARY_CODES = frozenset({_IN_PROCESS, 10118, 10176, 10199, 10200, 10210, NO_PEERS, NO_STREAM, *NO_LEADER, *_FULL})
_LOST = (
    nats.errors.ConnectionClosedError,
    nats.errors.ConnectionReconnectingError,
    nats.errors.NoRespondersError,
    nats.errors.NoServersError,
    nats.errors.OutboundBufferLimitError,
    nats.errors.StaleConnectionError,
    nats.errors.TimeoutError,
    nats.errors.UnexpectedEOF,
    asyncio.TimeoutError,
    OSError,
    EOFError,
)
_NOT_SENT = (
    nats.errors.ConnectionReconnectingError,
    nats.errors.MaxPayloadError,
    nats.errors.NoRespondersError,
    nats.errors.OutboundBufferLimitError,
    WakelogError,
)
_START = "start its servers, or correct the hosts of the URL; a majority of them is needed"
_AGAIN = "ask again with the same commit id: it is stored once at most"
_FORBIDDEN = re.compile(r"permissions violation for \w+ to \"([^\"]+)\"")
_REFUSED_LOGIN = ("authorization violation", "user authentication", "permissions violation", "account authentication")


class JetStreamRefusal(Exception):
    """A refusal by the server, with its code."""

    def __init__(self, code: int, err_code: int, description: str) -> None:
        super().__init__(f"{description} ({err_code})")
        self.code, self.err_code, self.description = code, err_code, description

    @property
    def is_wrong_head(self) -> bool:
        return self.err_code in WRONG_HEAD

    @property
    def is_missing(self) -> bool:
        return self.err_code in NO_MESSAGE or (self.code == 404 and self.err_code != NO_STREAM)


def is_temporary(exc: BaseException) -> bool:
    """Whether a retry may help: a leader is being elected, a server restarts, or is overloaded."""
    if is_login_refusal(exc) or isinstance(exc, ssl.SSLError):
        return False
    if isinstance(exc, JetStreamRefusal):
        return exc.code in (429, 503) or exc.err_code in _TEMPORARY_CODES
    return isinstance(exc, _LOST)


def may_be_stored(exc: BaseException) -> bool:
    """Whether a message may be stored, now or later, when this was the answer to it."""
    if isinstance(exc, JetStreamRefusal):
        return exc.err_code in _MAYBE_OURS
    return not isinstance(exc, _NOT_SENT)


def closed_meanwhile(*, is_unknown: bool = False) -> UnavailableError:
    if is_unknown:
        return UnavailableError("the store was closed before the cluster answered", kind="answer-unknown", hint=_AGAIN)
    return UnavailableError("the store was closed meanwhile", kind="store-closed", hint="open it again")


def forbidden_subject(exc: BaseException) -> str | None:
    """The subject, in small letters, that the user may not use, if that is the error."""
    found = _FORBIDDEN.search(str(exc))
    return found[1] if found is not None else None


def forbidden(what: str) -> NotAllowedError:
    return NotAllowedError(
        f"the server does not let this user {what}",
        kind="login-refused",
        hint="let the user publish to $JS.API.> and wl.STORE.>, and subscribe to _INBOX.> and wlnews.STORE.>",
    )


def is_login_refusal(exc: BaseException) -> bool:
    return isinstance(exc, nats.errors.AuthorizationError) or any(w in str(exc).lower() for w in _REFUSED_LOGIN)


def translate_error(exc: BaseException, *, is_unknown: bool = False) -> WakelogError:
    """Our error for an error of the client. `is_unknown` says that an append may have been stored; repeating it with
    the same commit finds out."""
    error: WakelogError
    if isinstance(exc, WakelogError) and not is_unknown:
        return exc
    if isinstance(exc, concurrent.futures.CancelledError | asyncio.CancelledError):
        error = closed_meanwhile(is_unknown=is_unknown)
    elif is_unknown:
        error = UnavailableError(
            f"the cluster did not answer: {exc!r}",
            kind="answer-unknown",
            hint=_AGAIN,
        )
    elif is_login_refusal(exc):
        error = NotAllowedError(
            f"the server refused the login: {exc}",
            kind="login-refused",
            hint="check user and password of the URL, or name a credentials file: ?creds=PATH",
        )
    elif isinstance(exc, ssl.SSLError):
        error = UnavailableError(
            f"no secure connection to the server: {exc}",
            kind="tls-failed",
            hint="give every server a certificate that this machine knows: tls { … } in its configuration",
        )
    elif isinstance(exc, JetStreamRefusal):
        error = _translate_refusal(exc)
    elif isinstance(exc, _LOST):
        error = UnavailableError(
            f"the cluster could not be reached, or has no leader: {str(exc) or type(exc).__name__}",
            kind="unreachable",
            hint=_START,
        )
    else:
        error = UnavailableError(f"the server refused: {exc!r}", kind="server-error")
    error.__cause__ = exc
    return error


def _translate_refusal(exc: JetStreamRefusal) -> WakelogError:
    if exc.err_code in _FULL:
        return UnavailableError(
            f"the cluster is full: {exc}", kind="store-full", hint="free some space, or raise limits"
        )
    if exc.err_code in NO_LEADER:
        return UnavailableError(f"the cluster has no leader: {exc}", kind="unreachable", hint=_START)
    if exc.err_code == NO_STREAM:
        return UnavailableError(
            f"a stream of this store is gone: {exc}",
            kind="stream-missing",
            hint="nats stream ls; bring it back from a backup (wakelog store restore)",
        )
    if exc.err_code == 10054:
        return InvalidInputError(f"the cluster cannot store this: {exc}", kind="bad-commit")
    return UnavailableError(f"the server refused: {exc}", kind="server-error")
