"""The blast radius: what rests on a bad step, and what of the present state stays safe."""

import pytest

from tests.provenance.story import WEB, Story
from wakelog import InvalidInputError, NotFoundError
from wakelog.log.removal import prune
from wakelog.model import events as ev
from wakelog.provenance.blast_radius import Blast, blast, newly_trusted, targets_of


def _names(kept: tuple[object, ...]) -> set[tuple[str, str]]:
    return {(k.part, k.name) for k in kept}  # type: ignore[attr-defined]


def _patch(s: Story, path: str, value: object, **header: object) -> int:
    return s.add(ev.StatePatched(patch=[{"op": "add", "path": path, "value": value}]), **header)


def _world() -> tuple[Story, int, Blast]:
    s = Story(data={"ours": 1, "list": []})
    s.turn("go")
    good = s.call("read", output="ours")
    bad = s.call("fetch", output="evil", **WEB)
    s.fact("safe", derived_from=((good, good),))
    wrong = s.fact("wrong", derived_from=((bad, bad),))
    s.decide("safe", derived_from=((good, good),))
    s.decide("wrong", derived_from=((wrong, wrong),))
    _patch(s, "/data/list/0", "wrong", derived_from=((wrong, wrong),))
    _patch(s, "/data/list/1", "good", derived_from=((good, good),))
    s.add(ev.FileChanged(path="mixed.py"), derived_from=((wrong, wrong),))
    s.add(ev.FileChanged(path="mixed.py"), derived_from=((good, good),))
    s.add(ev.FileChanged(path="good.py"), derived_from=((good, good),))
    s.ask("send", effect="external", derived_from=((wrong, wrong),))
    s.ask("wait", effect="read", derived_from=((good, good),))
    return s, bad, blast(s.log, (bad,))


def test_what_the_state_holds_is_sorted_into_resting_and_safe() -> None:
    s, bad, found = _world()
    decisions = list(s.log.state()["decisions_made"])
    assert _names(found.resting) == {
        ("fact", "wrong"),
        ("decision", f"e{decisions[1]}"),
        ("data", "/data/list"),
        ("file", "mixed.py"),
        ("pending", "send-3"),
    }
    assert _names(found.safe) == {
        ("fact", "safe"),
        ("decision", f"e{decisions[0]}"),
        ("data", "/data/ours"),
        ("file", "good.py"),
        ("pending", "wait-4"),
    }
    assert found.unknown == ()
    assert bad not in [i.seq for i in found.rests]


def test_everything_the_state_holds_is_in_one_of_the_lists() -> None:
    s, _, found = _world()
    state = s.log.state()
    parts = ("facts", "decisions_made", "files_modified", "pending_actions")
    held = sum(len(state[part]) for part in parts) + len(state["data"])
    assert held == len(found.resting) + len(found.safe) + len(found.unknown)


def test_a_file_rests_on_every_change_it_keeps() -> None:
    _, _, found = _world()
    assert ("file", "mixed.py") in _names(found.resting), "the bad lines are still in it"


def test_a_file_made_anew_rests_on_nothing_it_was_before() -> None:
    s = Story()
    s.turn("go")
    good = s.call("read", output="ours")
    bad = s.call("fetch", output="evil", **WEB)
    s.add(ev.FileChanged(path="a.py"), derived_from=((bad, bad),))
    s.add(ev.FileChanged(path="a.py", change="created"), derived_from=((good, good),))
    assert _names(blast(s.log, (bad,)).safe) == {("file", "a.py")}


def test_a_file_whose_earlier_changes_were_pruned_is_not_called_safe() -> None:
    s = Story()
    s.add(ev.FileChanged(path="a.py"))
    prune(s.log, s.head)
    s.turn("go")
    good = s.call("read", output="ours")
    bad = s.call("fetch", output="evil", **WEB)
    s.add(ev.FileChanged(path="a.py"), derived_from=((good, good),))
    assert _names(blast(s.log, (bad,)).unknown) == {("file", "a.py")}


def test_that_nothing_is_known_is_not_passed_off_as_safe() -> None:
    s = Story()
    lonely = s.fact("lonely")
    other = s.fact("other")
    found = blast(s.log, (other,))
    [kept] = found.safe
    assert (kept.seq, kept.known) == (lonely, "unknown")


def test_what_was_written_before_a_prune_is_neither() -> None:
    s = Story(data={"old": 1, "new": 1})
    s.fact("old")
    prune(s.log, s.head)
    s.turn("go")
    bad = s.call("fetch", output="evil", **WEB)
    _patch(s, "/data/new", 2, derived_from=((bad, bad),))
    found = blast(s.log, (bad,))
    assert _names(found.unknown) == {("data", "/data/old")}
    assert _names(found.resting) == {("data", "/data/new")}


def test_targets_are_given_as_events_turns_and_keys() -> None:
    s = Story()
    s.turn("go")
    fact = s.fact("a")
    assert targets_of(s.log, fact) == (fact,)
    assert targets_of(s.log, "/facts/a") == (fact,)
    assert targets_of(s.log, [f"e{fact}", "e1"]) == (1, fact)
    changes = tuple(s.add(ev.FileChanged(path="a.py")) for _ in range(15))
    assert targets_of(s.log, "a.py") == changes
    assert targets_of(s.log, "@1") == tuple(range(2, s.head + 1))
    with pytest.raises(NotFoundError):
        targets_of(s.log, 99)
    with pytest.raises(InvalidInputError):
        targets_of(s.log, [])


def test_what_an_endorsement_would_raise_is_told_before_it_is_made() -> None:
    s = Story()
    s.turn("go")
    page = s.call("fetch", output="fine", **WEB)
    fact = s.fact("f", derived_from=((page, page),), **WEB)
    other = s.call("fetch", output="evil", source="web:evil", trust="untrusted")
    s.fact("both", derived_from=((page, page), (other, other)), **WEB)
    assert newly_trusted(s.log, (page,)) == (page, fact)
