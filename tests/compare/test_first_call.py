"""The first call that differs: found after mere differences of wording, with the words that led to it."""

import itertools
from typing import Any

from wakelog import events
from wakelog.compare.comparison import compare
from wakelog.compare.first_call import FirstCall
from wakelog.compare.trajectory import read_course, select_extent
from wakelog.engines.memory import MemoryEngine
from wakelog.log import Log
from wakelog.testing.builders import new_session

Made = tuple[str, Any]


def course(*made: Made) -> Log:
    """A session of one turn: what was asked, said and done in it, in order."""
    ticks = itertools.count(1_000_000, 1_000)
    log = Log.create(MemoryEngine(), new_session(), events.SessionOpened(), clock=lambda: next(ticks))
    for number, (kind, given) in enumerate(made):
        action = f"a{number}"
        if kind == "asked":
            log.append(events.TurnStarted(input=given))
        elif kind == "said":
            content = [{"type": "text", "text": given}, {"type": "tool_use", "id": "x", "name": "look"}]
            answer = {"type": "message", "role": "assistant", "content": content}
            log.append(events.ActionRecorded(action=action, tool="model", effect="model", output=answer))
        else:
            log.append(events.ActionRecorded(action=action, tool=kind, effect="read", input=given, output="ok"))
    return log


def first(a: Log, b: Log) -> FirstCall | None:
    return compare(select_extent(a), select_extent(b)).pairs[0].first_call


def test_words_alone_are_no_call() -> None:
    assert first(course(("asked", "Hi"), ("look", 1)), course(("asked", "Hello"), ("look", 1))) is None


def test_it_is_found_after_the_courses_part_with_the_sentence_before_it() -> None:
    a = course(("asked", "Hi"), ("said", "I look.\n```\nlook 1\n```"), ("look", 1), ("said", "Done."))
    b = course(("asked", "Hello"), ("said", "I look twice."), ("look", 2))
    found = first(a, b)
    assert found is not None
    assert (found.a.said, found.a.by, found.b.said) == ("I look.", "model", "I look twice.")
    assert (found.a.step, found.b.step) == (2, 2)


def test_a_call_that_was_made_instead_stands_beside_it() -> None:
    found = first(
        course(("asked", "Hi"), ("said", "Now."), ("look", 1)), course(("asked", "Hi"), ("said", "Now."), ("write", 1))
    )
    assert found is not None
    assert (found.a.step, found.b.step) == (2, 2)


def test_where_nothing_was_said_the_users_words_led_to_it() -> None:
    a, b = course(("asked", "Hi"), ("said", "")), course(("asked", "Look!"), ("said", ""), ("look", 1))
    found = first(a, b)
    assert found is not None
    assert (found.a.step, found.a.said) == (None, "Hi")
    assert (found.b.step, found.b.said, found.b.by) == (2, "Look!", "user")


def test_a_session_that_was_closed_with_a_verdict_came_out_so() -> None:
    log = course(("asked", "Hi"))
    log.append(events.TurnEnded(), events.SessionClosed(outcome="failed"))
    assert read_course(select_extent(log)).outcome == "failed"


def test_a_session_made_of_a_transcript_without_times_has_no_duration() -> None:
    log = course(("asked", "Hi"), ("look", 1))
    assert read_course(select_extent(log)).duration_us > 0
    log.append(events.RecordsImported(format="x"))
    assert read_course(select_extent(log)).duration_us == 0


def test_a_transcript_with_times_takes_as_long_as_it_says() -> None:
    log = course(("asked", "Hi"))
    for at in (5_000_000, 8_000_000):
        log.append(events.MessageAdded(role="user", content="x", occurred_at=at))
    log.append(events.RecordsImported(format="x"))
    assert read_course(select_extent(log)).duration_us == 3_000_000
