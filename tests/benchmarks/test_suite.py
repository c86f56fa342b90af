"""The benchmarks measure what they say: a tiny form runs here, for its structure and its answers, never its times."""

import os
import platform
from pathlib import Path

import msgspec
import pytest

import wakelog
from benchmarks import pages, suite, tables
from benchmarks.check import WrongResult, check_log, check_state
from benchmarks.contenders import BASE, FOR_SESSIONS, LOOPS, OURS, Wakelog
from benchmarks.results import Appending, Recording, Results, Sample, Together
from benchmarks.targets import TARGETS, caveats, judge
from benchmarks.workload import COMMITS_FULLY_RECORDED, fold, full_recording, make_turns, parts_of, summary_of

TINY = suite.Size(
    rounds=1,
    lengths=(20,),
    sessions=(1, 4),
    together_turns=20,
    recording_turns=5,
    starts=1,
    many=5,
    parts_turns=10,
    short_factor=1,
)
NAMES = [kind.name for kind in LOOPS]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("bench")
    said: list[str] = []
    found = suite.run(TINY, folder, command="tiny", parts=True, say=said.append)
    assert list(folder.iterdir()) == [], "a run leaves nothing behind"
    assert said
    return found


def test_every_contender_is_in_every_table(results: Results) -> None:
    assert [row.contender for row in results.appending] == NAMES
    assert [row.contender for row in results.reading] == NAMES
    assert [row.contender for row in results.recording] == NAMES
    assert [(row.sessions, row.contender) for row in results.together] == [
        (count, kind.name) for count in TINY.sessions for kind in FOR_SESSIONS
    ]


def test_every_measure_has_one_value_a_round_and_the_base_is_one(results: Results) -> None:
    for row in (*results.appending, *results.reading, *results.together, *results.recording):
        samples = [getattr(row, name) for name in row.__struct_fields__ if hasattr(getattr(row, name), "values")]
        assert samples
        assert all(len(sample.values) == TINY.rounds and sample.low >= 0 for sample in samples)
    compared: list[Appending | Together | Recording] = [*results.appending, *results.together, *results.recording]
    assert all(row.ratio.values == [1.0] for row in compared if row.contender == BASE)


def test_what_was_timed_was_checked(results: Results) -> None:
    # Ours once per round for one session and for full recording, and every session of those at once.
    assert results.checked.logs == 2 + sum(TINY.sessions)
    # After appending, at the middle and in the fork; and every session of those at once.
    assert results.checked.states == 3 * len(LOOPS) + len(FOR_SESSIONS) * sum(TINY.sessions)


def test_results_survive_being_written_and_read(results: Results) -> None:
    assert msgspec.json.decode(msgspec.json.encode(results), type=Results) == results


def test_results_name_neither_the_machine_nor_its_folders(results: Results) -> None:
    text = msgspec.json.encode(results).decode()
    assert platform.node() not in text or len(platform.node()) < 4
    assert str(Path(pages.__file__).parents[1]) not in text
    assert os.sep + "tmp" not in text


def test_tables_show_every_section_and_tell_what_was_not_measured(results: Results) -> None:
    text = tables.render(results)
    for title in ("Targets", "Appending", "Size", "Reading", "Sessions at once", "Full recording", "Starting", "Parts"):
        assert f"### {title}" in text
    verdicts = judge(results)
    assert len(verdicts) == len(TARGETS)
    assert {v.verdict for v in verdicts if "1,000" in v.name} == {"not measured"}
    assert OURS in text


def test_a_run_on_a_busy_machine_says_so(results: Results) -> None:
    quiet = msgspec.structs.replace(results, load=0.2, sync_us=Sample([200.0]))
    busy = msgspec.structs.replace(results, load=5.0, sync_us=Sample([4000.0]))
    assert caveats(quiet) == []
    assert len(caveats(busy)) == tables.render(busy).count("**Caution.**") == 2


def test_pages_are_filled_between_their_markers_only(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{pages.BEGIN}\nold\n{pages.END}\n\nafter\n", encoding="utf-8")
    for _ in range(2):
        pages.write("new", page)
        assert page.read_text(encoding="utf-8") == f"before\n\n{pages.BEGIN}\n\nnew\n\n{pages.END}\n\nafter\n"
    page.write_text("no markers", encoding="utf-8")
    with pytest.raises(SystemExit):
        pages.write("new", page)


def test_the_page_has_a_place_for_the_tables() -> None:
    text = pages.PAGE.read_text(encoding="utf-8")
    assert text.count(pages.BEGIN) == 1
    assert pages.END in text.partition(pages.BEGIN)[2]


def test_a_wrong_state_is_not_timed_as_if_it_were_right(tmp_path: Path) -> None:
    turns = make_turns(6)
    contender = Wakelog(tmp_path)
    for turn in turns[:5]:
        contender.append(turn)
    assert check_state(contender, turns[:5]).states == 1
    with pytest.raises(WrongResult, match="turn differs"):
        check_state(contender, turns)
    with pytest.raises(WrongResult, match="does not come back"):
        check_log(contender.log, [*turns[:4], {**turns[4], "file": "other.py"}])
    contender.close()


def test_full_recording_commits_as_often_as_the_bare_loop_and_leads_to_the_same_state() -> None:
    turns = make_turns(3)
    with wakelog.open("memory:") as store:
        log = store.log("bench")
        for turn in turns:
            full_recording(log, turn)
        commits = {entry.commit_id for entry in log.entries(after=1)}
        assert summary_of(log.state()) == fold(turns)
    assert len(commits) == COMMITS_FULLY_RECORDED * len(turns)
    assert all(len(parts_of(turn)) == COMMITS_FULLY_RECORDED for turn in turns)
