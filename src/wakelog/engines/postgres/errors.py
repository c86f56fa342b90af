"""Translates the driver's errors to ours.

Three questions are asked about an error of the driver: is it temporary, so that a retry may help (connections.py); may
the statement have been carried out anyway; and which of our errors is it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import ssl

import asyncpg

from wakelog.errors import (
    InvalidInputError,
    NotAllowedError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
    WakelogError,
)

_STOPPING = (asyncpg.CannotConnectNowError, asyncpg.AdminShutdownError, asyncpg.CrashShutdownError)
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.QueryCanceledError,
    OSError,
    EOFError,
    asyncio.TimeoutError,
    asyncio.CancelledError,
)
_NOT_PRIMARY = (asyncpg.ReadOnlySQLTransactionError, asyncpg.TargetServerAttributeNotMatched)
_CROWDED = (asyncpg.TooManyConnectionsError, asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
_CLOSED = (concurrent.futures.CancelledError,)
_PERMANENT = (asyncpg.ClientConfigurationError, ssl.SSLError)


_AGAIN = "ask again with the same commit id: it is stored once at most"


class PoolFullError(Exception):
    """All connections of this process stayed in use until the time ran out."""


def is_temporary(exc: BaseException, *, is_sharded: bool = False) -> bool:
    """Whether a retry may help: the server restarts, fails over, or has no free connection. On a sharded server also if
    a worker does, which is an internal error of the coordinator (XX000)."""
    if isinstance(exc, _PERMANENT) or _is_tls_error(exc):
        return False
    if is_sharded and _is_worker_error(exc):
        return True
    return isinstance(exc, (*_STOPPING, *_LOST, *_NOT_PRIMARY, *_CROWDED))


def is_unknown(exc: BaseException, *, is_sharded: bool = False) -> bool:
    """Whether the statement may have been carried out although no answer arrived. Also true for a cancelled one,
    because a server may stop waiting for its standby after it has committed, and for one whose worker was lost."""
    if is_sharded and _is_worker_error(exc):
        return True
    return isinstance(exc, (*_STOPPING, *_LOST)) and not isinstance(exc, asyncpg.CannotConnectNowError)


def closed_unanswered() -> UnavailableError:
    return UnavailableError("the store was closed before the server answered", kind="answer-unknown", hint=_AGAIN)


def translate_error(exc: BaseException, *, is_unknown: bool = False) -> WakelogError:
    """Our error for an error of the driver. `is_unknown` says that an append may have been stored; repeating it with
    the same commit finds out."""
    if isinstance(exc, WakelogError):
        return exc
    if is_unknown:
        error: WakelogError = UnavailableError(
            f"the server was lost before it answered: {exc!r}",
            kind="answer-unknown",
            hint=_AGAIN,
        )
    else:
        error = _refusal(exc) or _unavailability(exc)
    error.__cause__ = exc
    return error


def _refusal(exc: BaseException) -> WakelogError | None:
    """If the server refused the request."""
    match exc:
        case asyncpg.InvalidAuthorizationSpecificationError():
            hint = "check user and password of the URL, PGPASSWORD or ~/.pgpass, and the server's pg_hba.conf"
            if "no encryption" in str(exc):
                hint = "the server wants TLS: add sslmode=require to the URL"
            return NotAllowedError(f"the server refused the login: {exc}", kind="login-refused", hint=hint)
        case asyncpg.UndefinedTableError():
            return UnsupportedError(
                f"the tables of this store are of an older version: {exc}",
                kind="migration-waits",
                hint="wakelog store migrate",
            )
        case asyncpg.InvalidCatalogNameError():
            return NotFoundError(
                f"the server has no such database: {exc}",
                kind="database-not-found",
                hint="createdb --template template0 --locale C NAME",
            )
        case asyncpg.InsufficientPrivilegeError():
            return NotAllowedError(
                f"the server's user may not do this: {exc}", kind="grant-missing", hint="grant it, or use another user"
            )
        case asyncpg.DiskFullError():
            return UnavailableError(f"the server's disk is full: {exc}", kind="store-full", hint="free some space")
        case asyncpg.TooManyConnectionsError():
            return UnavailableError(
                f"the server has no connection left: {exc}",
                kind="too-many-connections",
                hint="use fewer processes, a connection pooler, or raise max_connections",
            )
        case asyncpg.ReadOnlySQLTransactionError() | asyncpg.TargetServerAttributeNotMatched():
            return UnavailableError(
                f"the server accepts no writes: {exc}",
                kind="read-only-server",
                hint="name the primary, or all hosts with target_session_attrs=primary",
            )
        case asyncpg.DataError() | UnicodeEncodeError():
            return InvalidInputError(f"the server cannot store this: {exc}", kind="bad-commit")
        case asyncpg.ClientConfigurationError():
            return InvalidInputError(
                f"this is not the URL of a PostgreSQL database: {exc}",
                kind="bad-url",
                hint="it looks like postgresql://user@host:5432/database?namespace=team",
            )
        case _:
            return None


def _unavailability(exc: BaseException) -> WakelogError:
    """If the server could not be reached, or failed."""
    if isinstance(exc, PoolFullError):
        return UnavailableError(str(exc), kind="pool-full", hint="ask again, or share the work among more processes")
    if isinstance(exc, _CLOSED):
        return UnavailableError("the store was closed meanwhile", kind="store-closed", hint="open it again")
    if _is_tls_error(exc):
        return UnavailableError(
            f"no secure connection to the server: {exc}",
            kind="tls-failed",
            hint="give the server a certificate that sslrootcert knows, or choose another sslmode",
        )
    if isinstance(exc, _STOPPING):
        return UnavailableError(
            f"the server is starting up or shutting down: {exc}", kind="server-stopping", hint="try again in a moment"
        )
    if _is_worker_error(exc) and "connection" in str(exc):
        return UnavailableError(
            f"a worker of the sharded server could not be reached: {exc}",
            kind="unreachable",
            hint="start it: sessions on other workers can be used meanwhile",
        )
    if isinstance(exc, _LOST):
        return UnavailableError(
            f"the server could not be reached: {str(exc) or type(exc).__name__}",
            kind="unreachable",
            hint="start it, or correct host and port of the URL; pg_isready -d URL checks whether it answers",
        )
    return UnavailableError(f"the server refused: {exc!r}", kind="server-error")


def is_unplanned(exc: BaseException) -> bool:
    """Whether a sharded server has no plan for a statement. It has carried out nothing then."""
    is_internal = type(exc) is asyncpg.InternalServerError and str(exc).startswith("could not create distributed plan")
    return is_internal or isinstance(exc, asyncpg.FeatureNotSupportedError)


def _is_worker_error(exc: BaseException) -> bool:
    """XX000 itself. Its subclasses, such as corrupted data, are something else."""
    return type(exc) is asyncpg.InternalServerError and not is_unplanned(exc)


def _is_tls_error(exc: BaseException) -> bool:
    return isinstance(exc, ssl.SSLError) or (isinstance(exc, ConnectionError) and "SSL" in str(exc))
