"""What can go wrong with a server, told as errors a caller can act on."""

from __future__ import annotations

import asyncio

import asyncpg

from wakelog.errors import InvalidInputError, UnavailableError, WakelogError

_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.QueryCanceledError,
    OSError,
    EOFError,
    asyncio.TimeoutError,
    asyncio.CancelledError,
)


def translated(exc: BaseException, *, is_append: bool = False) -> WakelogError:
    """Our error for a driver's. If the connection failed, the answer to an append is unknown, and asking again with the
    same commit settles it."""
    if isinstance(exc, WakelogError):
        return exc
    if isinstance(exc, asyncpg.TooManyConnectionsError):
        error: WakelogError = UnavailableError(
            f"the server has no connection left: {exc}",
            kind="too-many-connections",
            hint="try again, or use fewer processes",
        )
    elif isinstance(exc, asyncpg.ReadOnlySQLTransactionError):
        error = UnavailableError(
            f"the server takes no writes: {exc}", kind="read-only-server", hint="point the store at the primary"
        )
    elif isinstance(exc, _LOST) and is_append:
        error = UnavailableError(f"the server was lost before it answered: {exc!r}", kind="answer-unknown")
    elif isinstance(exc, _LOST):
        error = UnavailableError(f"the server could not be reached: {exc!r}", kind="unreachable")
    elif isinstance(exc, (asyncpg.DataError, UnicodeEncodeError)):
        error = InvalidInputError(f"the server cannot store this: {exc}", kind="bad-commit")
    else:
        error = UnavailableError(f"the server refused: {exc!r}", kind="server-error")
    error.__cause__ = exc
    return error
