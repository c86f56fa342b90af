"""The selector grammar, and what each position means."""

import pytest

from tests.session.conftest import START_US
from wakelog import InvalidInputError, NotFoundError, events
from wakelog.model.records import EventDraft
from wakelog.session import Session
from wakelog.store import Store
from wakelog.timeline.selectors import Selector, parse_selector, parse_time


@pytest.mark.parametrize(
    ("text", "session", "first", "last"),
    [
        ("fix-auth@5", "fix-auth", "@5", ""),
        ("@3..@7", "", "@3", "@7"),
        ("fix-auth@3..@7", "fix-auth", "@3", "@7"),
        (".@-1", ".", "@-1", ""),
        ("@5.2", "", "@5.2", ""),
        ("@5.best", "", "@5.best", ""),
        ("@~2", "", "@~2", ""),
        ("@-", "", "@-", ""),
        ("@", "", "@", ""),
        ("e1042", "", "e1042", ""),
        ("event:7", "", "event:7", ""),
        ("turn:5", "", "turn:5", ""),
        ("cp:good", "", "cp:good", ""),
        ("t:2h ago", "", "t:2h ago", ""),
        ("last-error", "", "last-error", ""),
        ("fix-auth", "fix-auth", "", ""),
        ("e3..e9", "", "e3", "e9"),
        ("fix-auth@e12", "fix-auth", "e12", ""),
        ("fix-auth@last-error", "fix-auth", "last-error", ""),
        ("fix-auth@t:2h ago", "fix-auth", "t:2h ago", ""),
        ("fix-auth@cp:good", "fix-auth", "cp:good", ""),
        ("fix-auth@c:9f3a", "fix-auth", "c:9f3a", ""),
    ],
)
def test_a_selector_is_taken_apart(text: str, session: str, first: str, last: str) -> None:
    assert parse_selector(text) == Selector(session, first, last)


@pytest.mark.parametrize("text", ["a@b", "@x", "@1..", "fix@@3"])
def test_what_is_not_a_selector_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InvalidInputError, match="not a selector") as caught:
        parse_selector(text)
    assert "@3..@7" in caught.value.hint


@pytest.fixture
def session(store: Store) -> Session:
    session = store.session("s")
    for n in (1, 2, 3):
        with session.turn(user=f"turn {n}"):
            session.fact("n", n)
            if n == 2:
                call = events.ActionRequested(action="a", tool="grep", effect="read")
                session.append(call, events.ActionFailed(action="a", error=events.Failure("boom")))
        session.note("between turns")
    session.checkpoint("good", "@2")
    return session


def test_a_turn_as_a_state_is_the_state_after_it(session: Session) -> None:
    for n in (1, 2, 3):
        assert session.state(f"@{n}").facts["n"].value == n
    assert session.state("@-1").facts["n"].value == 2
    assert session.state("@~2").facts["n"].value == 1
    assert session.state("cp:good").facts["n"].value == 2


def test_ranges_include_both_ends(session: Session) -> None:
    turns = {e.header.turn for e in session["@1..@2"]} - {0}
    assert turns == {1, 2}
    assert [e.seq for e in session["e3..e5"]] == [3, 4, 5]


def test_words_find_errors_users_and_tools(session: Session) -> None:
    assert session.log.entry(session.seq("last-error")).kind == "action.failed"
    assert session.log.entry(session.seq("last-user")).body["content"] == "turn 3"
    assert session.log.entry(session.seq("last-tool")).kind == "action.failed"


def test_the_last_user_is_also_the_input_of_a_turn(session: Session) -> None:
    session.append(EventDraft(events.TurnStarted(input="turn 4"), actor="user"), events.TurnEnded())
    session.append(events.TurnStarted(input="the timer"), events.TurnEnded())
    assert session.log.entry(session.seq("last-user")).body["input"] == "turn 4"


def test_a_point_inside_a_commit_is_found_by_its_hash(session: Session) -> None:
    """An import writes many turns in one commit, and a diff shows the hash of the point."""
    first = session.append(*(events.FactRecorded(key=str(n), value=n) for n in range(3))).seq - 2
    assert session.seq(f"c:{session.log.entry(first).hash.hex()[:8]}") == first


def test_a_commit_is_found_by_the_start_of_its_hash(session: Session) -> None:
    entries = list(session.log.entries())
    assert len({e.commit_id for e in entries}) < len(entries), "some commits have several events"
    for entry in entries:
        last = max(e.seq for e in entries if e.commit_id == entry.commit_id)
        assert session.seq(f"c:{entry.commit_id[:8]}") == session.seq(f"c:{entry.commit_id}") == last


def test_a_time_stands_for_the_last_event_at_or_before_it(session: Session) -> None:
    entries = list(session.log.entries())
    for at in {e.header.at for e in entries}:
        last = max(e.seq for e in entries if e.header.at <= at)
        assert session.seq(f"t:{_iso(at)}") == last
    assert session.seq("t:2001-01-01") == 0


@pytest.mark.parametrize("where", ["@9", "e999", "cp:none", "@2.5", "c:ffffffffffff"])
def test_a_place_that_is_not_there_says_what_is(session: Session, where: str) -> None:
    with pytest.raises(NotFoundError):
        session.seq(where)


def test_missing_turns_name_the_range_there_is(session: Session) -> None:
    with pytest.raises(NotFoundError, match=r"@1\.\.@3"):
        session.seq("@14")


def test_times_are_read_as_people_write_them() -> None:
    assert parse_time("2h ago", START_US) == START_US - 7_200_000_000
    assert parse_time("10m", START_US) == START_US - 600_000_000
    assert parse_time("now", START_US) == START_US
    assert parse_time("2023-11-14T22:13:20+00:00", START_US) == START_US
    assert parse_time("yesterday", START_US) < parse_time("today", START_US) <= START_US
    with pytest.raises(InvalidInputError, match="not a time"):
        parse_time("soon", START_US)


def _iso(at_us: int) -> str:
    import datetime as dt

    return dt.datetime.fromtimestamp(at_us / 1e6, tz=dt.UTC).isoformat()
