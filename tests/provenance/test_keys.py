"""Who wrote a key of the state, through lists that move, rewinds and pruning."""

import pytest

from tests.provenance.story import Story
from wakelog import NotFoundError
from wakelog.log.removal import prune
from wakelog.model import events as ev
from wakelog.provenance.key_writers import data_writers, key_writer


def _patch(s: Story, *ops: tuple[str, str, object]) -> int:
    return s.add(ev.StatePatched(patch=[{"op": op, "path": path, "value": value} for op, path, value in ops]))


def _writer(s: Story, pointer: str) -> int:
    return key_writer(s.log, pointer, s.head)


def test_the_last_event_that_wrote_at_in_or_around_a_key_wrote_it() -> None:
    s = Story(data={"a": {"b": 1}})
    assert _writer(s, "/data/a/b") == 1
    inside = _patch(s, ("add", "/data/a/c", 2))
    assert (_writer(s, "/data/a/b"), _writer(s, "/data/a"), _writer(s, "/data/a/c")) == (1, inside, inside)
    around = _patch(s, ("replace", "/data/a", {"b": 1}))
    assert (_writer(s, "/data/a/b"), _writer(s, "/data")) == (around, around)


def test_places_in_a_list_are_followed_as_they_move() -> None:
    s = Story(data={"plan": []})
    first = _patch(s, ("add", "/data/plan/0", "one"))
    second = _patch(s, ("add", "/data/plan/1", "two"))
    third = _patch(s, ("add", "/data/plan/0", "zero"))
    assert [_writer(s, f"/data/plan/{n}") for n in range(3)] == [third, first, second]
    _patch(s, ("remove", "/data/plan/0", None))
    assert [_writer(s, f"/data/plan/{n}") for n in range(2)] == [first, second]


def test_keys_that_look_like_numbers_are_not_places_in_a_list() -> None:
    s = Story(data={"by_id": {"1": "a"}})
    other = _patch(s, ("add", "/data/by_id/0", "b"))
    assert (_writer(s, "/data/by_id/1"), _writer(s, "/data/by_id/0")) == (1, other)


def test_what_a_rewind_brought_back_was_written_by_whoever_wrote_it_first() -> None:
    s = Story(data={"a": 1})
    first = _patch(s, ("replace", "/data/a", 2))
    s.fact("f", "old")
    kept = s.head
    _patch(s, ("replace", "/data/a", 3))
    s.fact("f", "new")
    s.log.rewind(kept)
    assert (_writer(s, "/data/a"), _writer(s, "/facts/f")) == (first, kept)


def test_what_a_rewind_does_not_touch_is_followed_through_everything() -> None:
    s = Story()
    kept = s.fact("f")
    raised = s.add(ev.FlagRaised(flag="x"))
    s.log.rewind(kept)
    assert _writer(s, "/flags/x") == raised


def test_a_key_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFoundError) as caught:
        _writer(Story(), "/facts/nothing")
    assert caught.value.kind == "key-not-found"


def test_what_was_pruned_is_written_by_nobody_known() -> None:
    s = Story(data={"a": 1})
    s.fact("f")
    prune(s.log, s.head)
    later = s.fact("g")
    assert (_writer(s, "/facts/f"), _writer(s, "/facts/g")) == (0, later)


def test_a_value_is_made_of_every_event_whose_part_is_still_in_it() -> None:
    s = Story(data={"a": 1, "plan": [], "deep": {"x": 1, "y": 2}})
    one = _patch(s, ("add", "/data/plan/0", "one"))
    two = _patch(s, ("add", "/data/plan/0", "zero"))
    three = _patch(s, ("replace", "/data/deep/x", 5))
    held = dict(data_writers(s.log, s.head))
    assert held["/data/a"] == {1}
    assert held["/data/plan"] == {1, one, two}
    assert held["/data/deep/x"] == {three}
    assert held["/data/deep/y"] == {1}
    anew = _patch(s, ("replace", "/data/plan", ["all new"]))
    assert dict(data_writers(s.log, s.head))["/data/plan"] == {anew}


def test_what_was_rewound_is_in_no_value() -> None:
    s = Story(data={"a": 1})
    _patch(s, ("replace", "/data/a", 2))
    s.log.rewind(1)
    assert dict(data_writers(s.log, s.head)) == {"/data/a": {1}}


def test_what_was_pruned_is_told_apart() -> None:
    s = Story(data={"a": 1, "b": 1})
    prune(s.log, s.head)
    later = _patch(s, ("replace", "/data/b", 2))
    assert dict(data_writers(s.log, s.head)) == {"/data/a": {0}, "/data/b": {later}}
