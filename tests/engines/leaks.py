"""Connections to PostgreSQL that nobody closed.

A connection that is collected while open warns then, in whatever test runs at that moment. So they are looked for at
the end of each test that uses a server, and the test that left one fails. They are noted as they are made: looking
through everything that lives takes longer than most tests.
"""

import functools
import weakref
from typing import Any

_made: weakref.WeakSet[Any] = weakref.WeakSet()


@functools.cache
def _watch() -> None:
    """Note every connection from now on."""
    import asyncpg

    begin = asyncpg.Connection.__init__

    def noted(self: Any, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        _made.add(self)

    asyncpg.Connection.__init__ = noted


def open_connections() -> list[Any]:
    """Every connection that is open and was made after this was first asked."""
    _watch()
    return [each for each in _made if not each.is_closed()]
