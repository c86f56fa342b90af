"""Sessions of pi."""

from pathlib import Path

import pytest

import wakelog
from tests.importers.growth import check_growth, prefixes, seen_once
from tests.importers.samples import pi, pi_message, write_lines
from wakelog.importers.discovery import find_transcripts
from wakelog.importers.formats import detect_format
from wakelog.importers.transcript_import import import_transcript


def test_messages_calls_and_costs_are_there(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "pi.jsonl", pi())
    assert detect_format(path).NAME == "pi"
    seen = seen_once(path)
    assert seen.prompts() == ["Change a.txt", "Thanks"]
    assert seen.said() == ["I edit it.", "Done."]
    assert {id: (c.tool, c.outcome) for id, c in seen.calls.items()} == {
        "t1": ("edit", "succeeded"),
        "t2": ("bash", "failed"),
    }
    assert seen.files == [("/srv/a.txt", "modified", 2, 1)]
    assert seen.cost == {"tokens_in": 300, "tokens_out": 15, "usd_micros": 3000}


def test_what_the_person_ran_and_what_was_summed_up_is_there(tmp_path: Path) -> None:
    seen = seen_once(write_lines(tmp_path / "pi.jsonl", pi()))
    assert seen.named("command") == ["!cat a.txt\ny\nz"]
    assert seen.named("summary") == ["a.txt was changed."]


def test_going_back_in_the_tree_leaves_a_branch_out_of_view(tmp_path: Path) -> None:
    def answer(id: str, parent: str, text: str) -> dict[str, object]:
        return pi_message(id, parent, 2, role="assistant", content=[{"type": "text", "text": text}], stopReason="stop")

    lines = [
        pi()[0],
        pi_message("a", None, 1, role="user", content="One"),
        answer("b", "a", "One!"),
        pi_message("c", "b", 3, role="user", content="Two"),
        answer("d", "c", "Two!"),
        {"type": "branch_summary", "id": "e", "parentId": "b", "fromId": "d", "summary": "Two was tried."},
        pi_message("f", "e", 5, role="user", content="Three"),
        answer("g", "f", "Three!"),
    ]
    store = wakelog.open("memory:")
    report = import_transcript(store, write_lines(tmp_path / "pi.jsonl", lines))
    texts = [m.text for m in store.resume(report.sessions[0].name).messages()]
    assert texts == ["One", "One!", "Two was tried.", "Three", "Three!"]


def test_a_fork_has_its_own_entries_only(tmp_path: Path) -> None:
    header = pi()[0] | {
        "id": "pi-2",
        "timestamp": "2026-01-06T10:00:00.000Z",
        "parentSession": "/home/me/.pi/agent/sessions/--work--/2026-01-05_pi-1.jsonl",
    }
    own = pi_message("z", "m4", 0, role="user", content="Another way") | {"timestamp": "2026-01-06T10:00:01.000Z"}
    seen = seen_once(write_lines(tmp_path / "fork.jsonl", [header, *pi()[2:6], own]))
    assert seen.prompts() == ["Another way"]
    assert seen.cost["tokens_out"] == 0
    assert seen.named("fork") == ["This session goes on from pi-1: 4 entries of that one come first."]


def test_an_answer_that_was_stopped_ends_its_turn(tmp_path: Path) -> None:
    stopped = pi_message(
        "m2", "m1", 2, role="assistant", content=[], stopReason="aborted", errorMessage="Request was aborted."
    )
    seen = seen_once(write_lines(tmp_path / "pi.jsonl", [*pi()[:3], stopped]))
    assert seen.turns == ["interrupted"]
    assert seen.named("error") == ["Request was aborted."]


def test_entries_without_ids_are_read_in_their_order(tmp_path: Path) -> None:
    lines = [{k: v for k, v in line.items() if k not in ("id", "parentId")} for line in pi()[2:]]
    seen = seen_once(write_lines(tmp_path / "pi.jsonl", [pi()[0], *lines]))
    assert seen.prompts() == ["Change a.txt", "Thanks"]
    assert list(seen.calls) == ["t1", "t2"]


def test_a_session_that_grows_is_seen_as_if_it_was_imported_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_growth(prefixes(pi()), tmp_path / "pi.jsonl", "pi", monkeypatch)


def test_sessions_are_found_where_pi_keeps_them(tmp_path: Path) -> None:
    folder = tmp_path / ".pi" / "agent" / "sessions" / "--work--"
    folder.mkdir(parents=True)
    write_lines(folder / "2026-01-05_pi-1.jsonl", pi())
    assert [f.format for f in find_transcripts(tmp_path)] == ["pi"]
