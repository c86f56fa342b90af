"""Asking an index for everything it has."""

from __future__ import annotations

from typing import Any

from wakelog.index import Index
from wakelog.index.sql import VIEWS


def ask(index: Index, sql: str, *params: Any) -> list[Any]:
    return list(index.query_sql(sql, params, max_rows=100_000, timeout_s=60).rows)


def contents(index: Index) -> dict[str, list[Any]]:
    """All rows of all views, in an order that does not depend on how they were made."""
    return {view: sorted(ask(index, f"select * from {view}"), key=repr) for view in VIEWS}
