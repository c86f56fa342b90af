"""What is older than the budget is not made into items, and the window is the one that weighing everything gives."""

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.context.histories import long_histories, new_log, play
from tests.context.validity import check
from tests.events_read import note_events_read
from tests.seeds import examples
from wakelog.context import ledger, older_part, window
from wakelog.context.ledger import Context, make_context
from wakelog.context.token_count import estimate
from wakelog.errors import NotAllowedError
from wakelog.log import Log
from wakelog.model import events as ev


def _exactly(text: str) -> int:
    """Another count than the built-in: so everything is weighed."""
    return estimate(text)


def _window(log: Log, budget: int, **how: Any) -> Context | None:
    try:
        return make_context(log, budget, record=False, **how)
    except NotAllowedError as exc:
        if exc.kind != "window-too-small":
            raise
        return None


def _told(context: Context | None) -> Any:
    return context and ([i.key for i in context.items], [e.key for e in context.evicted])


@settings(max_examples=examples(12))
@given(long_histories, st.integers(60, 900))
def test_the_window_of_a_long_history_is_that_of_weighing_every_item(
    history: list[tuple[Any, ...]], budget: int
) -> None:
    log = play(new_log(), history)
    expected = _window(log, budget, count=_exactly)
    cut: list[Any] = []

    def noted(*args: Any) -> Any:
        cut.append(older_part.older_part(*args))
        return cut[-1]

    with (
        patch.object(window, "MANY", 0),
        patch.object(older_part, "FIRST_BATCH", 4),
        patch.object(ledger, "older_part", noted),
    ):
        found = _window(log, budget)
    if cut[0] is not None:
        assert _told(found) == _told(expected)
    event(f"all of it was weighed: {cut[0] is None}")
    if found is not None:
        check(found)


def _worked(turns: int, *first: ev.Event) -> Log:
    log = new_log()
    if first:
        log.append(*first)
    for n in range(turns):
        log.append(
            ev.TurnStarted(),
            ev.MessageAdded(role="user", content=f"do {n} " * 20),
            ev.ActionRecorded(action=f"a{n}", tool="look", effect="read", output="seen " * 50),
            ev.FactRecorded(key=str(n % 5), value=n),
            ev.ActionRequested(action=f"b{n}", tool="plan", effect="read"),
            *([ev.ActionSucceeded(action=f"b{n - 1}")] if n else []),
            ev.TurnEnded(),
        )
    return log


def test_a_window_reads_the_turns_that_fill_it_and_makes_items_of_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    log = _worked(800)
    read = note_events_read(monkeypatch)
    context = make_context(log, 2000)
    check(context)
    assert 1500 < context.tokens <= 2000
    assert log.head().seq > window.MANY
    assert len(read) < log.head().seq / 2
    assert len(set(read)) < 2 * older_part.FIRST_BATCH
    [range_, *_] = context.evicted
    exact = make_context(_worked(800), 2000, record=False, count=_exactly).evicted[0]
    assert (range_.key, range_.handle) == (exact.key, exact.handle)
    assert exact.tokens / 1.5 < range_.tokens < exact.tokens * 1.5


@pytest.mark.parametrize("role", ["system", "developer"])
def test_what_the_system_said_long_ago_stays(role: str) -> None:
    context = make_context(_worked(800, ev.MessageAdded(role=role, content="never give up")), 2000)
    assert [i.text for i in context.items if i.role == "system"] == ["never give up"]
    check(context)


def test_what_is_pinned_or_pending_stays_however_old_it_is() -> None:
    log = new_log()
    log.append(ev.ActionRequested(action="slow", tool="wait", effect="read"))
    log.append(ev.MessageAdded(role="user", content="remember this"))
    said, rest = log.head().seq, _worked(800)
    log.append(*(entry.event for entry in rest.entries(after=1)))
    context = make_context(log, 2000, pinned=[f"e{said}"])
    assert {f"e{said}", f"e{said - 1}"} <= {i.key for i in context.items}
    check(context)
