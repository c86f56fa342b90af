"""Finds connections to PostgreSQL that nobody closed.

A connection that is garbage-collected while open warns in whatever test runs at that moment. So each test that uses a
server checks for them at its end, and fails if it left one. Connections are recorded when they are made, because
searching all live objects takes longer than most tests.
"""

import functools
import weakref
from typing import Any

_made: weakref.WeakSet[Any] = weakref.WeakSet()


@functools.cache
def _watch() -> None:
    """Records every connection from now on."""
    import asyncpg

    original_init = asyncpg.Connection.__init__

    def recording_init(self: Any, *args: Any, **options: Any) -> None:
        original_init(self, *args, **options)
        _made.add(self)

    asyncpg.Connection.__init__ = recording_init


def open_connections() -> list[Any]:
    """Every open connection that was made after the first call."""
    _watch()
    return [each for each in _made if not each.is_closed()]
