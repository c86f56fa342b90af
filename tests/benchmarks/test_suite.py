"""The benchmarks measure what they say: a tiny form runs here, for its structure and its answers, never its times."""

import os
import platform
import re
from pathlib import Path

import msgspec
import pytest

import wakelog
from benchmarks import compare, pages, suite, tables
from benchmarks.__main__ import main
from benchmarks.check import WrongResult, check_diff, check_files, check_log, check_state
from benchmarks.contenders import Wakelog, WakelogLists
from benchmarks.kinds import BASE, KINDS, OURS, Kind, choose, kind_of
from benchmarks.one_session import Length
from benchmarks.protocol import is_full
from benchmarks.results import NAMES, Results, Sample, Trouble
from benchmarks.targets import TARGETS, caveats, judge
from benchmarks.turns import differences, fold, read_turns
from benchmarks.workload import COMMITS_FULLY_RECORDED, full_recording, make_turns, parts_of, summarise, summary_of

TURNS = 20
TINY = suite.Size(
    rounds=2,
    lengths=(Length(TURNS, 30, rounds_read=1),),
    sessions=(2,),
    together_turns=10,
    together_cap_s=30,
    many=3,
    parts_turns=5,
    same_rounds=1,
)
ONCE = msgspec.structs.replace(TINY, rounds=1)
BARE = [BASE, "bare apsw", "bare file", "bare sqlite3, 8 commits"]
WE = [OURS, "wakelog, messages", "wakelog, all lists", "wakelog, full recording"]


def _run(kinds: list[Kind], folder: Path, size: suite.Size = TINY) -> Results:
    return suite.run(size, kinds, folder, command="tiny", say=lambda what: None)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("bench")
    found = _run([kind_of(name) for name in BARE + WE], folder)
    assert list(folder.iterdir()) == [], "a run leaves nothing behind"
    return found


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """One round of ours beside the base, for every run; `make test-all` looks at the whole form too."""
    size = msgspec.structs.replace(ONCE, sessions=(), same_rounds=0, many=0, parts_turns=0)
    return _run([kind_of(BASE), kind_of(OURS)], tmp_path_factory.mktemp("small"), size)


@pytest.mark.slow
def test_every_contender_is_measured_in_every_round_and_the_base_is_one(results: Results) -> None:
    for name in (*BARE, OURS, "wakelog, full recording"):
        ratio = results.find(name, "one.ratio", TURNS)
        assert ratio is not None
        assert set(ratio.rounds) == {0, 1}
    base = results.sample(BASE, "one.ratio", TURNS)
    assert base is not None
    assert base.values == [1.0, 1.0]
    assert results.rounds == 2


@pytest.mark.slow
def test_every_question_has_a_positive_answer_and_a_meaning(results: Results) -> None:
    counts = {"together.errors", "together.wrong", "same.errors", "same.lost"}
    for finding in results.findings:
        assert finding.what in NAMES or finding.what.startswith("curve.")
        if not finding.what.startswith("start."):  # a difference of two small times may have any sign
            assert all(value > 0 or (finding.what in counts and value == 0) for value in finding.rounds.values())
    asked = {finding.what for finding in results.findings if finding.contender == OURS}
    assert set(NAMES) <= asked


@pytest.mark.slow
def test_what_was_timed_was_checked_and_nothing_is_wrong(results: Results) -> None:
    assert results.troubles == []
    # Both forms of ours, once each.
    turns = make_turns(TURNS)
    with wakelog.open("memory:") as store:
        log = store.log("bench")
        for turn in turns:
            full_recording(log, turn)
        whole = log.head().seq
    assert results.events_verified == whole + 1 + sum(9 + (n % 3 == 0) - (n == 1) for n in range(1, TURNS + 1))


@pytest.mark.slow
def test_readers_of_ours_read_what_ours_wrote(results: Results) -> None:
    for name in ("wakelog, messages", "wakelog, all lists"):
        assert results.find(name, "read.load_ms", TURNS) is not None
        assert results.find(name, "one.ratio", TURNS) is None


@pytest.mark.slow
def test_contenders_told_their_settings(results: Results) -> None:
    said = {about.name: about.is_full for about in results.about}
    assert said[BASE] is said[OURS] is said["bare file"] is True
    assert is_full({"synchronous": 1}) is False
    assert is_full({"synchronous_commit": "off"}) is False
    assert is_full({}) is None


@pytest.mark.slow
def test_results_survive_being_written_and_read(results: Results) -> None:
    assert msgspec.json.decode(msgspec.json.encode(results), type=Results) == results


@pytest.mark.slow
def test_results_name_neither_the_machine_nor_its_folders(results: Results) -> None:
    text = msgspec.json.encode(results).decode()
    assert platform.node() not in text or len(platform.node()) < 4
    assert str(Path(pages.__file__).parents[1]) not in text
    assert os.sep + "tmp" not in text


@pytest.mark.slow
def test_tables_show_every_section_and_tell_what_was_not_measured(results: Results) -> None:
    text = tables.render(results)
    titles = ("Targets", "Appending", "Size", "Reading", "Asking", "Sessions at once", "One session, four writers")
    for title in (*titles, "Starting", "Durability", "Looking", "Parts"):
        assert f"### {title}" in text
    verdicts = judge(results)
    assert len(verdicts) == len(TARGETS)
    assert {v.verdict for v in verdicts if "1,000" in v.name} == {"not measured"}
    assert "wrong*" not in text


@pytest.mark.slow
def test_the_whole_form_asks_what_targets_are_about(results: Results) -> None:
    """A tiny run stands for the whole one: with its places renamed, every question of a target has an answer."""
    where = {f"{TURNS:,} turns": "10,000 turns", f"{TINY.many:,} sessions": f"{suite.FULL.many:,} sessions"}
    asked = [msgspec.structs.replace(row, where=where[row.where]) for row in results.looking]
    looked = judge(msgspec.structs.replace(results, looking=asked, findings=[]))
    assert {v.name.split(",")[0] for v in looked if v.verdict != "not measured"} == {
        *("diff of the last two turns", "why", "100 messages", "context", "brief", "index catch-up"),
        *("size of the index", "files of the last 5 turns", "status", "completion", "ls", "ps"),
    }


def test_the_whole_form_has_the_lengths_of_plots_and_targets() -> None:
    assert [length.turns for length in suite.FULL.lengths] == [100, 1_000, 10_000, 100_000]
    assert {length.only for length in suite.FULL.lengths if length.turns > 10_000} == {(BASE, OURS)}
    assert suite.FULL.many == 20_000
    assert set(suite.FULL.sessions) == {8, 64}


@pytest.mark.slow
def test_a_run_on_a_busy_machine_says_so(results: Results) -> None:
    quiet = msgspec.structs.replace(results, load=0.2, sync_us=Sample([200.0]))
    busy = msgspec.structs.replace(results, load=5.0, sync_us=Sample([4000.0]))
    assert caveats(quiet) == []
    assert len(caveats(busy)) == tables.render(busy).count("**Caution.**") == 2


# Wrong answers


def _liar(name: str) -> Kind:
    return Kind(name, "peer", f"tests.benchmarks.liars:{name}", "lies")


@pytest.mark.slow
def test_a_wrong_contender_is_reported_as_wrong_and_not_timed(tmp_path: Path) -> None:
    # Its state is asked for once in the process that wrote it, and once in another.
    for read, where in ((0, "one"), (1, "read.load")):
        size = msgspec.structs.replace(ONCE, lengths=(Length(TURNS, 30, rounds_read=read),))
        lied = _run([kind_of(BASE), _liar("Forgetful"), _liar("Presentist")], tmp_path, size)
        assert ("Forgetful", where) in {(each.contender, each.what) for each in lied.wrong()}
    wrong = {(each.contender, each.what) for each in lied.wrong()}
    assert ("Forgetful", "together") in wrong
    assert ("Presentist", "read.middle") in wrong
    assert lied.find("Forgetful", "read.load_ms", TURNS) is None
    assert lied.find("Presentist", "read.load_ms", TURNS) is not None
    assert lied.find("Presentist", "read.middle_ms", TURNS) is None
    row = next(line for line in tables.render(lied).splitlines() if line.startswith("| Presentist") and "wrong" in line)
    assert "*wrong*" in row
    lost = lied.sample("Forgetful", "same.lost", 4)
    assert lost is not None
    assert lost.values == [13.0], "every third of forty acknowledged turns"


@pytest.mark.slow
def test_what_a_contender_raises_is_counted_and_told(tmp_path: Path) -> None:
    found = _run([kind_of(BASE), _liar("Refusing")], tmp_path, ONCE)
    failed = found.trouble("Refusing", "one", TURNS, ("failed",))
    assert failed is not None
    assert "RuntimeError" in failed.text
    errors = found.sample("Refusing", "together.errors", 2)
    assert errors is not None
    assert errors.values == [4.0]
    assert "busy with turn" in tables.render(found)


@pytest.mark.slow
def test_a_contender_whose_time_is_up_is_shown_as_far_as_it_came(tmp_path: Path) -> None:
    lengths = (Length(15, -1.0), Length(TURNS, 30))
    size = msgspec.structs.replace(TINY, rounds=1, lengths=lengths, many=0, parts_turns=0, sessions=())
    found = _run([kind_of(BASE), kind_of("bare file")], tmp_path, size)
    stopped = found.trouble("bare file", "one", 15, ("stopped",))
    assert stopped is not None
    assert "at turn 1 " in stopped.text
    assert stopped.text in tables.render(found)
    assert found.find("bare file", "one.ratio", TURNS) is None, "it is not sent to a longer one"
    base = found.sample(BASE, "one.done", 15)
    assert base is not None
    assert base.values == [15], "the base is never stopped"


def test_a_run_that_is_stopped_keeps_what_it_has_and_says_so(tmp_path: Path) -> None:
    said: list[str] = []

    def say(what: str) -> None:
        said.append(what)
        if what.startswith("round 2"):
            raise KeyboardInterrupt

    size = msgspec.structs.replace(TINY, sessions=(), same_rounds=0)
    found = suite.run(size, [kind_of(BASE)], tmp_path, command="tiny", say=say, known={})
    assert found.is_cut
    assert found.rounds == 1
    assert found.find(BASE, "one.ratio", TURNS) is not None
    assert "stopped early" in tables.render(found)
    assert any("min left" in each for each in said), "after one round it is known how long a round takes"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_an_error_after_the_rounds_costs_nothing_that_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("benchmarks.profiling.break_down", break_down)
    kept: list[int] = []
    size = msgspec.structs.replace(TINY, rounds=1, sessions=(), same_rounds=0, many=0)
    kinds = [kind_of(BASE), kind_of(OURS)]
    found = suite.run(
        size, kinds, tmp_path, command="tiny", say=lambda what: None, keep=lambda results: kept.append(results.rounds)
    )
    assert kept == [1]
    assert found.find(OURS, "one.ratio", TURNS) is not None
    assert [each.text for each in found.troubles] == ["ZeroDivisionError:"]


def test_no_round_begins_that_would_end_too_late(tmp_path: Path) -> None:
    size = msgspec.structs.replace(TINY, sessions=(), same_rounds=0, minutes=0.0)
    found = suite.run(size, [kind_of(BASE)], tmp_path, command="tiny", say=lambda what: None)
    assert (found.rounds, found.is_cut) == (1, False)


def test_checks_find_a_wrong_state_diff_file_or_turn(tmp_path: Path) -> None:
    turns = make_turns(6)
    ours = Wakelog(tmp_path)
    for turn in turns:
        ours.append(turn)
    check_state(ours, ours.load(), turns)
    lists = WakelogLists(tmp_path)
    assert lists.load() == fold(turns)
    assert lists.load(3) == fold(turns[:3])
    with pytest.raises(WrongResult, match="turn differs"):
        check_state(ours, ours.load(), turns[:5])
    with pytest.raises(WrongResult, match="messages differ"):
        check_state(ours, {**ours.load(), "messages": []}, turns)
    check_diff(ours, ours.diff(5, 6), turns[5])
    with pytest.raises(WrongResult, match="turn 5"):
        check_diff(ours, ours.diff(5, 6), turns[4])
    check_files(ours.recent_files(5), turns[-5:])
    with pytest.raises(WrongResult, match="last 4"):
        check_files(ours.recent_files(5), turns[-4:])
    with pytest.raises(WrongResult, match="does not come back"):
        check_log(ours.log, [*turns[:5], {**turns[5], "file": "other.py"}])
    lists.close()
    ours.close()


# The workload


def test_turns_are_the_same_however_they_are_asked_for(tmp_path: Path) -> None:
    assert read_turns(3, 5) == make_turns(5)[2:]
    assert read_turns(99, 101, tmp_path) == make_turns(101, tmp_path)[98:]


def test_a_plain_diff_of_two_states_tells_what_a_turn_changed() -> None:
    turns = make_turns(3)
    found = differences(fold(turns[:2]), fold(turns))
    assert found["files_modified"] == {"added": [turns[2]["file"]]}
    assert found["decisions"] == {"added": [turns[2]["decision"]]}
    pending = found["pending_actions"]
    assert [action["id"] for action in pending["removed"] + pending["added"]] == ["act_000002", "act_000003"]


def test_full_recording_commits_as_often_as_the_bare_loop_and_leads_to_the_same_state() -> None:
    turns = make_turns(3)
    with wakelog.open("memory:") as store:
        log = store.log("bench")
        for turn in turns:
            full_recording(log, turn)
        commits = {entry.commit_id for entry in log.entries(after=1)}
        assert summary_of(log.state()) == summarise(fold(turns))
    assert len(commits) == COMMITS_FULLY_RECORDED * len(turns)
    assert all(len(parts_of(turn)) == COMMITS_FULLY_RECORDED for turn in turns)


# Beside a saved run


@pytest.mark.slow
def test_a_run_beside_itself_shows_no_change(results: Results) -> None:
    compared = compare.compare(results, results)
    assert compared
    assert {each.verdict for each in compared} == {""}
    assert "Nothing is worse" in compare.render(compared, results)


@pytest.mark.slow
def test_a_change_beyond_the_spread_is_told_in_its_direction(results: Results) -> None:
    worse = msgspec.json.decode(msgspec.json.encode(results), type=Results)
    for finding in worse.findings:
        if finding.contender == OURS:
            factor = 0.1 if finding.what in ("one.ratio", "together.turns_per_s") else 10
            finding.rounds = {number: value * factor for number, value in finding.rounds.items()}
    down = {each.what for each in compare.compare(worse, results) if each.contender == OURS and each.verdict}
    assert {"one.ratio", "one.bytes", "one.cpu_us", "together.turns_per_s"} <= down
    assert all(e.verdict in ("", "**worse**") for e in compare.compare(worse, results))
    assert all(e.verdict in ("", "better") for e in compare.compare(results, worse))
    assert re.search(r"\d+ of \d+ are worse", compare.render(compare.compare(worse, results), results))


# The command and the page


@pytest.mark.parametrize("run", ["small", pytest.param("results", marks=pytest.mark.slow)])
def test_a_kept_run_is_shown_and_a_wrong_one_fails(
    request: pytest.FixtureRequest, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results: Results = request.getfixturevalue(run)
    kept = tmp_path / "kept.json"
    kept.write_bytes(msgspec.json.encode(results))
    assert main(["--read", str(kept), "--json", str(tmp_path / "again" / "kept.json")]) == 0
    assert "### Appending" in capsys.readouterr().out
    assert (tmp_path / "again" / "kept.json").exists()
    lied = msgspec.structs.replace(
        results, troubles=[Trouble("Presentist", "read.middle", TURNS, "wrong", "turn differs")]
    )
    kept.write_bytes(msgspec.json.encode(lied))
    assert main(["--read", str(kept)]) == 1
    assert "wrong: Presentist, read.middle" in capsys.readouterr().err


def test_contenders_are_chosen_by_how_they_begin() -> None:
    assert [kind.name for kind in choose(["bare f"])] == [BASE, "bare file"]
    assert choose([]) == list(KINDS)
    with pytest.raises(SystemExit, match="no contender"):
        choose(["nobody"])


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
