"""A first page without an index: the most recently written sessions, in a small index in memory.

Building the index of a large store takes a while, and a question about its newest sessions should not wait for that.
The same projector makes the same rows, so the answer is what the full index would say.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any

from wakelog.engine import Engine, FeedChange
from wakelog.index.index import FEED_PAGE, Index
from wakelog.model.records import Head

FAR = 100
"""So many sessions in the first page of news, and a list is better answered without waiting for all of them."""


def is_far_behind(index: Index) -> bool:
    """Whether an index kept here has so much to catch up with that it takes a while. Costs a page of the feed."""
    if type(index) is not Index:
        return False  # whoever keeps it elsewhere keeps it warm
    page = index.peek()
    return len(page) >= FEED_PAGE and len({change.session for change in page}) > FAR


def newest_index(engine: Engine, heads: Iterable[Head], most: int) -> Index:
    """An index of the sessions written last, `most` at most. Close it."""
    chosen = heapq.nlargest(most, heads, key=lambda head: (head.at, head.session))
    few: Any = _Few(engine, chosen)
    return Index(few, None)


class _Few:
    """An engine whose feed tells of some sessions only."""

    def __init__(self, engine: Engine, heads: Sequence[Head]) -> None:
        self._engine = engine
        self._heads = heads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def changes(self, cursor: str = "", limit: int = 100) -> Sequence[FeedChange]:
        begin = int(cursor) if cursor else 0
        some = self._heads[begin : begin + limit]
        return [FeedChange(session=h.session, seq=h.seq, cursor=str(begin + n)) for n, h in enumerate(some, 1)]
