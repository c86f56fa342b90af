"""What the page is measured on is what the benchmark says it is."""

from pathlib import Path

import wakelog
from benchmarks.page import fill


def test_it_fills_a_store_with_many_small_sessions_a_long_and_a_short_one(tmp_path: Path) -> None:
    fill(tmp_path / "much", sessions=7, events=350)
    with wakelog.open(tmp_path / "much") as store:
        rows = {row.name: row for row in store.index.sessions(limit=100)}
        assert len(rows) == 9
        assert rows["long"].events == 350
        assert rows["short"].events == 100
        assert all(store.resume(name).verify().ok for name in ("long", "short"))
        assert store.resume(rows["small-00003"].id).verify().ok
        assert store.index.search("file07", limit=1).rows
