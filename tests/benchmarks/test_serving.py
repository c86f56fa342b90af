"""The benchmark of the server measures what it says: a tiny form runs here, for its structure, never its times."""

from pathlib import Path

from benchmarks.serving import CONTENDERS, measure_appends, measure_tail


def test_every_contender_appends_and_is_verified(tmp_path: Path) -> None:
    rows = measure_appends((2,), 10, 1, tmp_path)
    assert [row[1] for row in rows] == list(CONTENDERS)
    assert rows[0][3] == "1.00"
    assert list(tmp_path.iterdir()) == []


def test_every_watcher_is_waited_for(tmp_path: Path) -> None:
    watchers, rate, _ = measure_tail(3, 10, 1, tmp_path)
    assert watchers == "3"
    assert float(rate.replace(",", "")) > 0
