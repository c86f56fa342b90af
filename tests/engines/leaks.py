"""Connections to PostgreSQL that nobody closed.

A connection that is collected while open warns then, in whatever test runs at that moment. So they are looked for at
the end of each test that uses a server, and the test that left one fails.
"""

import gc
import sys
from typing import Any


def open_connections() -> list[Any]:
    """Every open connection of this process, held by somebody or not."""
    asyncpg = sys.modules.get("asyncpg")
    if asyncpg is None:
        return []
    return [each for each in gc.get_objects() if type(each) is asyncpg.Connection and not each.is_closed()]
