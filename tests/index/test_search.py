"""Words are found wherever they were said, and nothing that can be typed is an error."""

from __future__ import annotations

import pytest

from wakelog.engine import Engine
from wakelog.index import Index
from wakelog.index.facets import TEXT_MAX
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.testing.builders import new_session

LONG = "filler " * 200

SAID: list[ev.Event] = [
    ev.MessageAdded(role="user", content="say walrus"),
    ev.MessageAdded(role="user", content=[{"type": "text", "text": "in a block: walrus"}]),
    ev.MessageAdded(role="user", content=LONG + "walrus"),
    ev.ActionRequested(action="a", tool="shell", input={"cmd": "find walrus\nand more"}),
    ev.ActionRequested(action="b", tool="walrus"),
    ev.ActionRecorded(action="c", tool="t", output={"lines": [LONG, "walrus"]}),
    ev.ActionRecorded(action="d", tool="t", output_summary="1 walrus"),
    ev.ActionRecorded(action="e", tool="t", outcome="failed", error=ev.Failure("io", "no walrus")),
    ev.DecisionMade(choice="walrus"),
    ev.DecisionMade(choice="x", because="of the walrus"),
    ev.DecisionMade(choice="x", alternatives=("a walrus",)),
    ev.FactRecorded(key="walrus", value=1),
    ev.FactRecorded(key="k", value={"animal": ["walrus"]}),
    ev.GoalSet(goal="feed the walrus"),
    ev.NoteAdded(text="walrus?"),
    ev.DeadEndNoted(tried="a", learned="walrus"),
    ev.FileChanged(path="src/walrus/main.py"),
    ev.InputRequested(request="q", prompt="which walrus"),
    ev.FlagRaised(flag="f", message="walrus seen"),
    ev.ArtefactRecorded(name="walrus.pdf"),
    ev.ResourceTouched(resource="https://walrus.example/x"),
    ev.SubagentSpawned(session="s", task="walrus care"),
    ev.HistoryCompacted(first=1, last=2, summary="all about a walrus"),
    ev.StatePatched(patch=[{"op": "add", "path": "/data/x", "value": "walrus"}]),
    ev.TurnStarted(input="the walrus"),
    ev.GapNoted(missed="a walrus"),
    ev.Foreign(foreign_kind="x.own", data={"at": "walrus"}),
]


@pytest.fixture
def log(engine: Engine) -> Log:
    return Log.create(engine, new_session(), ev.SessionOpened(name="zoo"))


def test_a_word_is_found_in_every_kind_that_says_something(log: Log, index: Index) -> None:
    said = {log.append(event).seq: event for event in SAID}
    hits = {hit.seq: hit for hit in index.search("walrus", limit=100)}
    assert [event for seq, event in said.items() if seq not in hits] == []
    assert hits.keys() == said.keys()
    assert all((hit.session, hit.name) == (log.id, "zoo") and "«walrus»" in hit.snippet for hit in hits.values())


def test_the_reason_is_found_too(log: Log, index: Index) -> None:
    head = log.append(ev.FileChanged(path="a.py", why="the walrus asked for it"))
    assert [hit.seq for hit in index.search("walrus")] == [head.seq]


def test_what_a_file_holds_is_not_searched(log: Log, index: Index) -> None:
    log.append(ev.FileChanged(path="a.py", before="walrus", after=LONG + "walrus"))
    assert not index.search("walrus").rows


def test_only_the_beginning_of_a_long_text_is_searched(log: Log, index: Index) -> None:
    log.append(ev.NoteAdded(text="early " + "x " * TEXT_MAX + "late"))
    assert index.search("early").rows
    assert not index.search("late").rows


def test_the_same_payload_again_is_found_again(log: Log, index: Index) -> None:
    for _ in range(2):
        log.append(ev.MessageAdded(role="user", content=LONG + "walrus"))
    assert {hit.seq for hit in index.search("walrus")} == {2, 3}


def test_all_words_must_occur_in_any_order_and_case(log: Log, index: Index) -> None:
    log.append(ev.NoteAdded(text="Le Château à la plage"))
    log.append(ev.NoteAdded(text="la plage"))
    assert [hit.seq for hit in index.search("PLAGE chateau")] == [2]


def test_quoted_words_stand_together(log: Log, index: Index) -> None:
    log.append(ev.NoteAdded(text="time out of mind"))
    assert index.search('"out of"').rows
    assert not index.search('"time mind"').rows
    assert index.search('"out of').rows, "a quote that is never closed"


def test_a_star_ends_the_beginning_of_a_word(log: Log, index: Index) -> None:
    log.append(ev.NoteAdded(text="migrations of run_sql"))
    assert index.search("migr*").rows
    assert not index.search("migr").rows
    assert index.search('"migrations o"*').rows
    assert index.search("run_sql").rows
    assert index.search("sql").rows


TYPED = (
    *('"', '""', "*", "**", "a*b*", "AND", "OR NOT", "NEAR(a b)", "-a", "a:b", "^a", "{a b}:c", "(", ")", "a\0b", "'"),
    *("", " ", "!!!", '"a" OR "b', "wl_words MATCH", "a" * 100_000, "a " * 5000, "\ufffd", "日本", "a\nb", "%", "\\"),
)


def test_nothing_that_can_be_typed_is_an_error(log: Log, index: Index) -> None:
    log.append(ev.NoteAdded(text="something"))
    for typed in TYPED:
        index.search(typed)
        index.search(typed, session=log.id, kind=typed)


def test_what_is_no_word_is_passed_over(log: Log, index: Index) -> None:
    log.append(ev.NoteAdded(text="hello !!!"))
    assert index.search("hello !!!").rows


def test_search_is_narrowed_by_session_kind_and_time(engine: Engine, log: Log, index: Index) -> None:
    other = Log.create(engine, new_session(), ev.SessionOpened())
    log.append(ev.NoteAdded(text="walrus", occurred_at=1_000))
    log.append(ev.MessageAdded(role="user", content="walrus"))
    other.append(ev.NoteAdded(text="walrus"))
    assert {(hit.session, hit.seq) for hit in index.search("walrus")} == {(log.id, 2), (log.id, 3), (other.id, 2)}
    assert {hit.seq for hit in index.search("walrus", session=log.id)} == {2, 3}
    assert {hit.seq for hit in index.search("walrus", session=log.id, kind="note")} == {2}
    assert {hit.seq for hit in index.search("walrus", session=log.id, kind="message.added")} == {3}
    assert {hit.seq for hit in index.search("walrus", session=log.id, since=1_001)} == {3}
    assert len(index.search("walrus", limit=1)) == 1


def test_a_hit_tells_where_it_is_and_what_to_think_of_it(log: Log, index: Index) -> None:
    log.append(ev.TurnStarted(), EventDraft(ev.NoteAdded(text="walrus"), trust="untrusted"), ev.TurnEnded())
    log.rewind(1)
    [hit] = index.search("walrus")
    assert (hit.turn, hit.attempt, hit.kind, hit.trust, hit.in_view) == (1, 1, "note.added", "untrusted", False)


def test_a_better_match_comes_first(log: Log, index: Index) -> None:
    log.append(ev.NoteAdded(text="walrus " + LONG))
    log.append(ev.NoteAdded(text="walrus walrus"))
    assert [hit.seq for hit in index.search("walrus")] == [3, 2]


def test_what_very_many_texts_say_is_not_weighed_and_the_newest_come_first(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log.create(engine, new_session(), ev.SessionOpened(name="s"))
    log.append(*(ev.NoteAdded(text="again and again" if n % 2 else f"again {n}") for n in range(12)))
    with Index(engine, None) as index:
        weighed = [hit.seq for hit in index.search("again")]
        monkeypatch.setattr("wakelog.index.words.BROAD", 11)
        assert [hit.seq for hit in index.search("again")] == sorted(weighed, reverse=True)
        assert len(weighed) == 12
        assert index.search("again 4").rows, "few match, and are weighed"
        monkeypatch.setattr("wakelog.index.words.BROAD", 12)
        assert [hit.seq for hit in index.search("again")] == weighed
