"""Own rules: a function, a class, an object; in this process or by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.monitors.play import Play
from wakelog.errors import InvalidInputError
from wakelog.log.reader import Entry
from wakelog.model import events as ev
from wakelog.monitors.monitor import Monitor, built_in
from wakelog.monitors.rules import RuleFinding, load_rules, new_rule
from wakelog.monitors.session_view import SessionView


class Greedy:
    """More than one file in a turn."""

    name = "greedy"

    def __init__(self) -> None:
        self.files = 0

    def look(self, entry: Entry, seen: SessionView) -> RuleFinding | None:
        self.files += entry.kind == "file.changed"
        return RuleFinding("greedy", f"{self.files} files") if self.files == 2 else None


def no_secrets_file(entry: Entry, seen: SessionView) -> RuleFinding | None:
    if entry.kind == "file.changed" and entry.body["path"].endswith(".env"):
        return RuleFinding("secrets-file", entry.body["path"], "error", (entry.seq,), pause=True)
    return None


def test_functions_classes_and_objects_are_rules() -> None:
    play = Play()
    play.add(ev.FileChanged(path="a.env"))
    play.add(ev.FileChanged(path="b.py"))
    assert play.flags(no_secrets_file, Greedy) == ["secrets-file", "greedy"]
    assert play.flags(Greedy(), no_secrets_file) == ["secrets-file", "greedy"]
    assert new_rule(no_secrets_file).name == "no-secrets-file"


def test_a_rule_that_is_given_twice_has_two_memories() -> None:
    rule = Greedy()
    first, second = Play(), Play()
    for play in (first, second):
        play.add(ev.FileChanged(path="a"))
    assert first.flags(rule) == second.flags(rule) == []
    assert rule.files == 0


def test_an_own_rule_may_pause_when_it_is_named() -> None:
    play = Play()
    play.add(ev.FileChanged(path="a.env"))
    Monitor(play.log, [no_secrets_file], pause=("no-secrets-file",)).catch_up()
    assert play.log.head().status == "paused"


def test_what_a_rule_is_shown_is_the_state_around_the_event() -> None:
    shown: list[tuple[int, str, str, int]] = []

    def spy(entry: Entry, seen: SessionView) -> None:
        before = seen.before.turn.get("status", "")
        shown.append((entry.seq, before, seen.state["turn"]["status"], len(seen.open)))

    play = Play()
    play.add(ev.TurnStarted())
    action = play.request("search")
    play.add(ev.ActionSucceeded(action=action))
    play.add(ev.TurnEnded())
    play.flags(spy)
    assert shown == [
        (1, "", "", 0),
        (2, "", "open", 0),
        (3, "open", "open", 1),
        (4, "open", "open", 1),
        (5, "open", "open", 0),
        (6, "open", "completed", 0),
    ]


def test_the_view_is_the_one_that_the_log_tells() -> None:
    views: dict[int, list[tuple[int, int]]] = {}

    def spy(entry: Entry, seen: SessionView) -> None:
        views[entry.seq] = seen.view()

    play = Play()
    for number in range(4):
        play.add(ev.FactRecorded(key="k", value=number))
    play.log.rewind(2)
    play.add(ev.FactRecorded(key="k", value=9))
    play.log.rewind(6)
    play.log.rewind(4, mode="undo")
    play.add(ev.FactRecorded(key="k", value=10))
    play.flags(spy)
    assert views == {seq: play.log.view(seq) for seq in range(1, play.log.head().seq + 1)}


def test_rules_are_loaded_by_name_from_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("wl_house_rules.py").write_text(
        "from wakelog.monitors.rules import RuleFinding\n"
        "def first(entry, seen):\n    return RuleFinding('first') if entry.seq == 1 else None\n"
        "class Second:\n    name = 'second'\n    def look(self, entry, seen):\n        return None\n"
        "both = [first, Second]\nnothing = 7\n"
    )
    assert len(load_rules("wl_house_rules:both")) == 2
    [rule] = load_rules("wl_house_rules:first")
    assert Play().flags(rule) == ["first"]
    for place in ("wl_house_rules:missing", "wl_no_such_module:x", "wl_house_rules", ":x", "wl_house_rules:nothing"):
        with pytest.raises(InvalidInputError) as refused:
            load_rules(place)
        assert refused.value.kind == "bad-rule"


def test_every_rule_that_is_built_in_has_a_name_of_its_own() -> None:
    names = [rule.name for rule in built_in()]
    assert len(set(names)) == len(names) == 9
