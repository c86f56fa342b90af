"""The benchmark of recorded calls."""

from pathlib import Path

from benchmarks.calls import Size, measure_openings, render_openings


def test_a_turn_that_a_dead_process_left_is_continued(tmp_path: Path) -> None:
    found = measure_openings(Size(rounds=1, calls=1, openings=2), past=20, folder=tmp_path)
    assert list(found) == [
        "10 calls, in the cut turn",
        "20 calls, 10 of them in the cut turn",
        "20 calls, all in the cut turn",
    ]
    assert all(parts["turn"].median > 0 for parts in found.values())
    assert "20 calls, all in the cut turn" in render_openings(found)
