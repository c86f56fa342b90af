"""Whatever happened: every window is one its provider accepts, nothing durable is lost, nothing is written twice."""

from typing import Any, get_args
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.context.histories import histories, histories_with_removals, new_log, play
from tests.context.validity import check
from tests.seeds import examples
from wakelog.context import window
from wakelog.context.brief import make_brief
from wakelog.context.compaction import compact, compactions, expand
from wakelog.context.eviction import evict, restore
from wakelog.context.ledger import Context, make_context
from wakelog.context.provider_formats import Shape
from wakelog.context.token_count import estimate
from wakelog.context.window import read_window
from wakelog.errors import InvalidInputError, NotAllowedError, WakelogError
from wakelog.log import Log
from wakelog.log.verify import verify
from wakelog.model.document import empty_document
from wakelog.model.events import HistoryCompacted
from wakelog.state.patch import equal
from wakelog.timeline.message_page import read_message_page

SHAPES = [shape for shape in get_args(Shape) if shape != "items"]
DURABLE = sorted(set(empty_document()) - {"evicted_keys", "view"})
many = settings(max_examples=examples(40))


def _contexts(log: Log, budget: int | None, **how: Any) -> list[Context]:
    try:
        return [make_context(log, budget, shape=shape, **how) for shape in SHAPES]
    except NotAllowedError as exc:
        if exc.kind != "window-too-small":
            raise
        return []


@many
@given(histories_with_removals, st.integers(1, 3000), st.booleans())
def test_every_window_of_any_history_is_valid_for_its_provider(
    history: list[tuple[Any, ...]], budget: int, is_long: bool
) -> None:
    log = play(new_log(), history)
    # A long history is first looked through without fetching what is large.
    with patch.object(window, "MANY", 0 if is_long else window.MANY):
        for context in (*_contexts(log, None), *_contexts(log, budget, record=False), *_contexts(log, budget)):
            check(context)
            assert context.budget is None or context.tokens <= context.budget
    read_message_page(log)
    assert verify(log).ok


@many
@given(histories, st.integers(0, 10**6))
def test_a_window_in_the_past_is_valid_too_and_writes_nothing(history: list[tuple[Any, ...]], place: int) -> None:
    log = play(new_log(), history)
    head = log.head().seq
    for context in _contexts(log, None, at=1 + place % head):
        check(context)
    assert log.head().seq == head


@many
@given(histories_with_removals, st.integers(100, 2000))
def test_the_same_state_and_budget_give_the_same_window_and_no_event(
    history: list[tuple[Any, ...]], budget: int
) -> None:
    log = play(new_log(), history)
    before = [(c.hash, c.tokens, c.exposure, c.ranges) for c in _contexts(log, budget, record=False)]
    first = [(c.hash, c.tokens, c.exposure, c.ranges) for c in _contexts(log, budget)]
    head = log.head().seq
    assert [(c.hash, c.tokens, c.exposure, c.ranges) for c in _contexts(log, budget)] == first
    assert log.head().seq == head
    if head > 0 and before and first:
        assert before == first, "what is offered does not depend on whether it was recorded"


@many
@given(histories, st.integers(50, 1000), st.integers(0, 10**6), st.integers(0, 10**6))
def test_nothing_durable_is_lost_by_eviction_or_compaction(
    history: list[tuple[Any, ...]], budget: int, one: int, two: int
) -> None:
    log = play(new_log(), history)
    before = log.state()
    head = log.head().seq
    for doing in (
        lambda: make_context(log, budget),
        lambda: evict(log, 1 + one % head),
        lambda: compact(log, min(one % head, two % head) + 1, max(one % head, two % head) + 1, "all of it"),
    ):
        try:
            doing()
        except WakelogError:
            continue
    after = log.state()
    assert all(equal(before[part], after[part]) for part in DURABLE if part != "trust")
    known = make_context(log, record=False).known
    for fact in after["facts"].values():
        assert fact["seq"] in _seqs(make_context(log, record=False))
    assert len(after["decisions_made"]) == 0 or "## Decisions" in known


def _seqs(context: Context) -> set[int]:
    return {seq for first, last in context.ranges for seq in range(first, last + 1)}


@many
@given(histories, st.integers(0, 10**6))
def test_evict_and_restore_give_the_same_window_back(history: list[tuple[Any, ...]], place: int) -> None:
    log = play(new_log(), history)
    before = read_window(log)
    if not before.items:
        return
    item = before.items[place % len(before.items)]
    try:
        evict(log, item.key)
    except NotAllowedError as exc:
        if exc.kind != "not-evictable":
            raise
        return
    without = read_window(log)
    assert item.key not in {i.key for i in without.items}
    assert [i.key for i in without.items] == [i.key for i in before.items if i.key != item.key]
    assert restore(log, item.key).items
    after = read_window(log)
    assert [(i.key, i.text, i.status) for i in after.items if i.key != item.key] == [
        (i.key, i.text, i.status) for i in before.items if i.key != item.key
    ]
    [back] = [i for i in after.items if i.key == item.key]
    # With the whole call its answer comes back as well, if that had left before.
    assert back.text == item.text or item.status == "evicted"


@many
@given(histories, st.integers(0, 10**6), st.integers(0, 10**6))
@example(
    [("turn", None, [], False, False), ("append", HistoryCompacted(first=4, last=4, summary=""), "trusted", 0)], 0, 8
)
def test_a_compaction_reversed_gives_the_very_same_messages(history: list[tuple[Any, ...]], one: int, two: int) -> None:
    log = play(new_log(), history)
    head = log.head().seq
    messages, raw, before = read_message_page(log), read_message_page(log, compacted=False), read_window(log)
    first, last = sorted((1 + one % head, 1 + two % head))
    try:
        seq = compact(log, first, last, "all of it")
    except (NotAllowedError, InvalidInputError):
        return
    assert read_message_page(log, compacted=False) == raw
    assert "all of it" in [m.text for m in read_message_page(log) if m.role == "summary"]
    assert [c.seq for c in compactions(log)][-1] == seq
    expand(log, seq)
    assert read_message_page(log) == messages
    assert [(i.key, i.text) for i in read_window(log).items] == [(i.key, i.text) for i in before.items]


@many
@given(histories_with_removals, st.integers(60, 4000))
def test_a_brief_of_any_history_fits_its_budget_and_counts_what_it_leaves_out(
    history: list[tuple[Any, ...]], budget: int
) -> None:
    log = play(new_log(), history)
    try:
        brief = make_brief(log, budget)
    except InvalidInputError as exc:
        if exc.kind != "budget-too-small":
            raise
        return
    assert brief.tokens == estimate(brief.text.rstrip("\n")) <= budget
    assert make_brief(log, budget) == brief, "the same session gives the same text"
    for section in brief.sections:
        missing = section.total - len(section.lines)
        if section.lines and missing:
            assert f"+{missing:,} more: {section.rest}" in brief.text
        elif missing:
            assert f"{section.title.lower()} ({section.total:,})" in brief.text.partition("Not shown: ")[2]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_session_in_which_nothing_was_said_has_a_valid_window(shape: Shape) -> None:
    check(make_context(new_log(), shape=shape))
