"""The soak tells slopes: of made-up samples exactly, and of a second's run at all."""

from pathlib import Path

import pytest

import wakelog
from benchmarks.soak import WRITERS, Soak, SoakSample, report, slope


def test_a_slope_is_told_per_hour() -> None:
    assert slope([(0.0, 10.0), (1800.0, 15.0), (3600.0, 20.0)]) == pytest.approx(10.0)
    assert slope([(5.0, 1.0)]) == 0.0


def test_what_grows_is_told_and_what_is_flat_is_flat() -> None:
    samples = [SoakSample(at * 36.0, {"memory, MB": 100.0 + at, "append, ms": 2.0}) for at in range(101)]
    lines = {line.split("|")[1].strip(): line for line in report(samples).splitlines()[2:]}
    assert "+100" in lines["memory, MB"]
    assert "+0 " in lines["append, ms"]


@pytest.mark.slow
def test_a_short_soak_appends_looks_and_samples(tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "store") as store:
        soak = Soak(store)
        samples = soak.run(3.0, 1.0, lambda line: None)
        assert len(list(store.sessions())) >= WRITERS
        assert all(store.resume(head.session).verify().ok for head in store.sessions())
    assert soak.done > WRITERS
    assert samples[-1].values["append, ms of processor"] > 0
    assert "memory, MB" in report(samples)
