"""A transcript that is looked at again: it grew, was cut, was written anew, or holds what the log refuses. Nothing is
lost, nothing comes twice, and how often it was looked at does not show."""

import copy
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wakelog
from tests.importers.claude import (
    FOLDER,
    NAME,
    SESSION,
    START,
    Lines,
    bring_in,
    call,
    calls,
    events,
    imported,
    live_store,
    seen,
    text,
    thinking,
    told_of,
)
from tests.importers.corpus import records_of
from wakelog.errors import WakelogError
from wakelog.importers.transcript_import import import_transcript
from wakelog.log.removal import prune

FILE = f"{SESSION}.jsonl"
HOUR = 3_600_000_000


def story() -> Lines:
    """A bit of everything."""
    lines = Lines()
    lines.add("file-history-snapshot", snapshot={"trackedFileBackups": {}})
    lines.prompt("Begin.")
    lines.reply("m1", thinking("Hm."), text("I'll look."), call("t1", "Read", file_path="a"), tokens=40)
    lines.reply("m1", call("t2", "Bash", command="make"), tokens=60)
    lines.result("t2", "Exit code 2", is_error=True)
    lines.result("t1", "     1→x = 1", {"type": "text", "file": {"filePath": "a", "content": "x = 1", "numLines": 1}})
    lines.reply("m2", call("t3", "Edit", file_path=f"{FOLDER}/a", old_string="1", new_string="2"), tokens=10)
    change = {"filePath": f"{FOLDER}/a", "oldString": "1", "newString": "2", "originalFile": "x = 1"}
    lines.result("t3", "updated", change)
    done = lines.reply("m3", text("Done."), tokens=7)
    lines.prompt("Wrong way.")
    lines.reply("m4", call("t4", "Task", prompt="Look deeper."), tokens=9)
    lines.prompt("Look deeper.", parent=None, isSidechain=True)
    lines.reply("c1", text("Deep."), isSidechain=True, tokens=3)
    lines.result("t4", "Deep.", parent=lines.lines[-3]["uuid"])
    lines.reply("m5", text("So it is."))
    lines.prompt("Another way.", parent=done)
    lines.reply("m6", call("t5", "Write", file_path=f"{FOLDER}/b", content="new\n"))
    lines.result("t5", "created", {"type": "create", "filePath": f"{FOLDER}/b", "content": "new\n"})
    lines.reply("m7", text("There."), tokens=2)
    return lines


def test_a_call_without_an_answer_is_pending_until_the_file_has_it(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Make it.")
    lines.reply("m1", call("t1", "Bash", command="make"))
    session = bring_in(lines, tmp_path)
    assert list(session.log.part("pending_actions")) == ["t1"]
    lines.result("t1", "made")
    store, _ = imported(lines.write(tmp_path / FILE), live_store())
    first = live_store()
    import_transcript(first, lines.write(tmp_path / FILE, upto=2))
    import_transcript(first, lines.write(tmp_path / FILE))
    session = first.resume(NAME)
    assert session.log.part("pending_actions") == {}
    assert calls(session) == calls(store.resume(NAME))


def test_a_turn_that_was_left_is_ended_when_its_file_is_cold_though_nothing_was_added(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Make it.")
    lines.reply("m1", call("t1", "Bash", command="make"))
    now = [START]
    store = wakelog.open("memory:", clock=lambda: now[0])
    session = bring_in(lines, tmp_path, store)
    assert session.log.part("turn")["status"] == "open"
    now[0] += 48 * HOUR
    import_transcript(store, tmp_path / FILE)
    assert [e["outcome"] for e in events(session, "turn.ended")] == ["interrupted"]
    assert session.log.part("pending_actions") == {}


def test_a_broken_line_is_kept_as_it_is_and_told(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Begin.")
    lines.reply("m1", text("Yes."))
    path = lines.write(tmp_path / FILE)
    good = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(good[0] + b'{"type": "user", "mess\n' + b"[1, 2]\n" + b"\xff\xfe\n" + good[1])
    store, report = imported(path)
    assert report.broken_count == 3
    assert report.broken[0].startswith("line 2 is not JSON")
    rests = [rest for _, _, rest in records_of(store.resume(NAME))]
    assert rests[1:4] == ['{"type": "user", "mess', "[1, 2]", {"base64": "//4="}]
    assert seen(store.resume(NAME)) == ["Begin.", "Yes."]


def test_a_half_written_last_line_is_left_until_it_is_whole(tmp_path: Path) -> None:
    lines = story()
    path = lines.write(tmp_path / FILE)
    whole = path.read_bytes()
    store = live_store()
    path.write_bytes(whole[:-30])
    assert import_transcript(store, path).broken_count == 0
    path.write_bytes(whole)
    assert import_transcript(store, path).broken_count == 0
    assert told_of(store) == told_of(imported(path)[0])
    assert len(records_of(store.resume(NAME))) == len(lines.lines) - 2  # two are the side chain's


def test_a_half_written_last_line_that_nobody_finishes_is_kept_when_the_file_is_quiet(tmp_path: Path) -> None:
    path = story().write(tmp_path / FILE)
    path.write_bytes(path.read_bytes()[:-30])
    now = [START]
    store = wakelog.open("memory:", clock=lambda: now[0])
    assert import_transcript(store, path).broken_count == 0
    now[0] += HOUR
    assert import_transcript(store, path).broken_count == 1
    assert import_transcript(store, path).new_records == 0


def test_a_file_that_was_rotated_adds_only_what_is_new(tmp_path: Path) -> None:
    lines = story()
    store, _ = imported(lines.write(tmp_path / FILE))
    before = told_of(store)
    lines.lines = lines.lines[-3:]
    lines.prompt("And on.")
    lines.reply("m8", text("On."))
    report = import_transcript(store, lines.write(tmp_path / FILE))
    assert report.new_records == 2
    after = told_of(store)[NAME]
    assert after["said"][: len(before[NAME]["said"])] == before[NAME]["said"]
    assert seen(store.resume(NAME))[-2:] == ["And on.", "On."]


def test_a_file_that_was_written_anew_adds_nothing(tmp_path: Path) -> None:
    lines = story()
    store, _ = imported(lines.write(tmp_path / FILE))
    before = told_of(store)
    anew = "".join(json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n" for line in lines.lines)
    (tmp_path / FILE).write_text(anew)
    assert import_transcript(store, tmp_path / FILE).new_records == 0
    assert told_of(store) == before


@given(st.lists(st.integers(0, 100), min_size=1, max_size=6))
@settings(max_examples=25)
def test_how_often_a_file_is_looked_at_while_it_grows_does_not_show(cuts: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = story().write(Path(folder) / FILE)
        whole = path.read_bytes()
        at_once, _ = imported(path)
        store = live_store()
        for cut in sorted(cuts):
            if path.write_bytes(whole[: len(whole) * cut // 100]):
                import_transcript(store, path, format="claude-code")
        path.write_bytes(whole)
        import_transcript(store, path)
        assert told_of(store) == told_of(at_once)


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "odd",
    [
        2**60,
        2**70,
        10**400,
        -(2**64),
        1e300,
        deep(80),
        deep(300),
        {"$payload": "x", "$erased": 3},
        "\ud800 half",
        {"\udc00": 1},
    ],
    ids=str,
)
def test_values_that_the_log_refuses_lose_no_record(odd: Any, tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Begin.")
    lines.reply("m1", text("Look."), call("t1", "Odd", given=odd))
    lines.result("t1", [{"type": "odd", "value": odd}], {"odd": odd})
    lines.prompt([{"type": "odd", "value": odd}, text("And?")], odd=odd)
    lines.reply("m2", text("Yes."), odd=odd)
    session = bring_in(lines, tmp_path)
    assert len(records_of(session)) == len(lines.lines)
    assert [c["action"] for c in calls(session)] == ["t1"]
    assert seen(session)[-1] == "Yes."
    assert len(events(session, "turn.started")) == 2


def test_what_came_twice_loses_no_record(tmp_path: Path) -> None:
    lines = Lines()
    lines.prompt("Begin.")
    lines.reply("m1", call("t1", "Bash", command="a"), call("t1", "Bash", command="b"))
    lines.result("t1", "one")
    lines.result("t1", "two")
    lines.result("never asked", "three")
    lines.lines.append(lines.lines[-1])
    session = bring_in(lines, tmp_path)
    assert len(records_of(session)) == len(lines.lines)
    assert {c["output"] for c in calls(session)} >= {"one", "two", "three"}


def test_what_was_pruned_does_not_come_back_with_the_next_import(tmp_path: Path) -> None:
    lines = story()
    now = [START + HOUR]
    store = wakelog.open("memory:", clock=lambda: now[0])
    session = bring_in(lines, tmp_path, store)
    prune(session.log, session.head.seq)
    lines.prompt("After that.")
    lines.reply("m9", text("Fine."))
    for line in lines.lines[-2:]:
        line["timestamp"] = "2026-01-01T00:00:00.000Z"
    report = import_transcript(store, lines.write(tmp_path / FILE))
    assert report.sessions[0].records == 2
    assert "I'll look." not in str(told_new(session))


def told_new(session: Any) -> list[Any]:
    return [entry.body for entry in session.log.entries() if entry.record.body and entry.kind != "range.pruned"]


def mutate(value: Any, dice: random.Random) -> Any:
    """Something is missing, of another type, or somewhere else."""
    odd: list[Any] = [
        None,
        0,
        -1,
        2**80,
        1.5,
        "",
        "x",
        [],
        {},
        [None],
        {"type": None},
        True,
        [{"type": "text"}],
        "\ud834",
    ]
    if dice.random() < 0.05:
        return dice.choice(odd)
    if isinstance(value, dict):
        return {k: mutate(v, dice) for k, v in value.items() if dice.random() > 0.03}
    if isinstance(value, list):
        found = [mutate(v, dice) for v in value]
        return found + found if dice.random() < 0.05 else found
    return value


@pytest.mark.parametrize("seed", range(30))
def test_whatever_a_file_holds_its_records_are_all_there(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    lines = story()
    lines.lines = [mutate(copy.deepcopy(line), dice) for line in lines.lines]
    path = lines.write(tmp_path / FILE)
    store = live_store()
    try:
        report = import_transcript(store, path, format="claude-code")
    except WakelogError as exc:
        pytest.fail(f"refused: {exc}")
    kept = sum(len(records_of(store.resume(s.name))) for s in report.sessions)
    assert kept == len(path.read_text().splitlines())
    assert import_transcript(store, path, format="claude-code").new_records == 0
    json.dumps(told_of(store))
