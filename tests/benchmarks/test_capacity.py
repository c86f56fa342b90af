"""The arithmetic of the capacity page: more load needs more, what is asked for fits, the smallest limit is first."""

import msgspec
import pytest

from benchmarks.capacity import SAVED, Assumptions, limits, load, main, needs, play

RUN = load(SAVED)


def count(part: str, **given: int) -> int:
    return next(need.count for need in needs(Assumptions(**given), RUN) if need.part.startswith(part))


@pytest.mark.parametrize("part", ["streams", "NATS", "projectors", "PostgreSQL", "archivers", "archive"])
def test_ten_times_the_events_need_about_ten_times_as_much(part: str) -> None:
    once, often = count(part, events_a_day=10**9), count(part, events_a_day=10**10)
    assert 8 * once <= often <= 10 * once


def test_each_part_is_enough_for_what_is_asked() -> None:
    given = Assumptions()
    able = {limit.part: limit.events_a_day for limit in limits(given, RUN)}
    assert count("streams") * able["one shard"] >= given.events_a_day
    assert count("projectors") * able["one projector"] >= given.events_a_day
    assert count("archivers") * able["one archiver"] >= given.events_a_day
    assert count("NATS") / 3 * able["disks of three NATS servers"] >= given.events_a_day
    assert count("PostgreSQL") * able["disk of one index server"] >= given.events_a_day


def test_what_breaks_first_is_first_and_assumptions_change_it() -> None:
    found = limits(Assumptions(), RUN)
    assert [each.events_a_day for each in found] == sorted(each.events_a_day for each in found)
    long_kept = limits(Assumptions(keep_days=365), RUN)[0]
    assert long_kept.part == "disk of one index server"


def test_a_small_store_has_its_replicas_and_no_more() -> None:
    assert count("NATS", events_a_day=1000, sessions=10) == 3
    assert count("PostgreSQL", events_a_day=1000) == 1


def test_memory_decides_where_there_are_very_many_sessions() -> None:
    [nats] = [need for need in needs(Assumptions(sessions=10**9), RUN) if need.part == "NATS servers"]
    assert nats.because == "memory"


def test_projectors_that_are_away_put_the_index_behind_and_it_catches_up() -> None:
    usual, worse = (play(Assumptions(lost=lost), RUN) for lost in (0.0, 0.5))
    assert (usual.behind_events, usual.caught_up) == (0.0, True)
    assert worse.behind_min > 0
    assert worse.caught_up
    assert not play(Assumptions(), msgspec.structs.replace(RUN, index_client_us=0.0001)).behind_events


def test_every_assumption_is_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    main(
        ["--events-a-day", "1000000", "--sessions", "10", "--busy", "0.9", "--core-month", "0", "--archive-years", "0"]
    )
    assert "10 live sessions, 1,000,000 events a day" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    for field in msgspec.structs.fields(Assumptions):
        assert f"--{field.name.replace('_', '-')}" in said
    assert "share of the projectors" in said
