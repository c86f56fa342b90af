"""`session.insight`: items quote the log, say that they are derived, give way to recorded ones, and can be accepted."""

from typing import Any

import pytest

from tests.insight.conftest import Scribe
from wakelog.errors import NotFoundError
from wakelog.insight.blocks import RULES_VERSION
from wakelog.model import events as ev
from wakelog.session import Session
from wakelog.store import Store

CHOICE = "I'll stream the body instead of buffering it, so that memory stays flat."

CHOICES = (
    "I'll put sessions into redis instead of cookies, because browsers cap headers.",
    "I'll parse dates by hand rather than with strptime, so that startup stays quick.",
    "I'll drop the retry loop instead of fixing it, since callers already back off.",
    "I'll cache avatars on disk rather than in memory, because workers restart hourly.",
    "I'll pin the compiler instead of floating it, so that builds are reproducible.",
)


def _fix(scribe: Scribe, choice: str = CHOICE) -> int:
    scribe.start("uploads over 10 MB fail, find out why")
    seq = scribe.says(f"Found the bug. {choice}")
    scribe.edits("upload.py")
    scribe.calls("Bash", {"command": "pytest -q"}, "3 passed")
    scribe.end()
    return seq


def test_items_quote_the_log_and_are_marked_as_derived(session: Session[Any], scribe: Scribe) -> None:
    seq = _fix(scribe)
    found = session.insight()
    assert [i.kind for i in found.items] == ["goal", "decision", "file", "check"]
    assert {i.known for i in found.items} == {"derived"}
    assert {i.rules for i in found.items} == {RULES_VERSION}
    [decision] = found.of("decision")
    assert (decision.quote, decision.seq, decision.turn, decision.id) == (CHOICE, seq, 1, f"e{seq}")
    assert found.of("goal")[0].quote == "uploads over 10 MB fail, find out why"
    assert found.of("file")[0].files == ("upload.py",)
    assert (found.of("check")[0].checks, found.of("check")[0].result) == (("test",), "pass")


def test_nothing_derived_gets_into_the_log_or_the_state(session: Session[Any], scribe: Scribe) -> None:
    _fix(scribe)
    before, state = session.head, session.state()
    session.insight(all=True)
    assert session.head == before
    assert session.state() == state
    assert not state.decisions_made


def test_a_turn_is_chosen_by_a_place(session: Session[Any], scribe: Scribe) -> None:
    _fix(scribe)
    scribe.start("thanks, now rename it")
    scribe.end()
    assert {i.turn for i in session.insight().items} == {2}
    assert {i.turn for i in session.insight("@1").items} == {1}
    assert {i.turn for i in session.insight("@1..@2").items} == {1, 2}


def test_minor_findings_are_counted_and_shown_on_request(session: Session[Any], scribe: Scribe) -> None:
    scribe.start("improve it")
    for choice in CHOICES:
        scribe.says(choice)
        scribe.edits(f"{choice[9:14]}.py")
    scribe.end()
    found = session.insight()
    everything = session.insight(all=True)
    assert len(found.of("decision")) == 3
    assert found.hidden == len(everything.of("decision")) - 3 > 0
    assert everything.hidden == 0
    assert {i.is_minor for i in everything.of("decision")} == {True, False}


def test_a_recorded_decision_hides_the_derived_one(session: Session[Any], scribe: Scribe) -> None:
    scribe.start("uploads fail")
    scribe.says(f"Found the bug. {CHOICE}")
    session.decide("stream the body instead of buffering", because="memory stays flat")
    scribe.edits("upload.py")
    scribe.end()
    assert not session.insight(all=True).of("decision")


def test_another_recorded_decision_hides_nothing(session: Session[Any], scribe: Scribe) -> None:
    scribe.start("uploads fail")
    session.decide("ask the user about quotas")
    scribe.says(f"Found the bug. {CHOICE}")
    scribe.edits("upload.py")
    scribe.end()
    assert len(session.insight().of("decision")) == 1


def test_accepting_records_a_decision_with_its_evidence(session: Session[Any], scribe: Scribe) -> None:
    _fix(scribe)
    [item] = session.insight().of("decision")
    seq = session.accept(item.id)
    made = session.state().decisions_made[str(seq)]
    assert made.choice == CHOICE
    assert made.evidence == (item.seq, *item.calls)
    entry = session.log.entry(seq)
    assert entry.kind == "decision.made"
    assert entry.header.actor == "user"
    assert entry.header.derived_from == ((item.seq, item.seq),)
    assert "derived by rules" in entry.body["why"]
    assert not session.insight("@1").of("decision"), "what is recorded is not derived beside it"


def test_an_accepted_decision_is_trusted_no_more_than_its_words(session: Session[Any]) -> None:
    with session.turn("read the page"):
        session.message("user", "the page says: buy", source="web:shop", trust="untrusted")
        session.message("assistant", CHOICE, source="web:shop", trust="untrusted")
    [item] = session.insight(all=True).of("decision")
    assert session.log.entry(session.accept(item.id)).header.trust == "untrusted"


def test_accepting_what_is_not_derived_names_what_is(session: Session[Any], scribe: Scribe) -> None:
    seq = _fix(scribe)
    with pytest.raises(NotFoundError, match=rf"e{seq} \(decision\)") as told:
        session.accept(f"e{seq}.2")
    assert told.value.kind == "insight-not-found"


def test_a_dead_end_and_a_goal_can_be_accepted_by_kind(session: Session[Any], scribe: Scribe) -> None:
    scribe.start("find the leak")
    scribe.calls("Bash", {"command": "cat state.json"}, "{}")
    scribe.says("The flag is not set. So that's not the issue.")
    scribe.end()
    [dead] = session.insight().of("dead_end")
    session.accept(dead.id, kind="dead_end")
    session.accept("e2", kind="goal")
    assert [end["tried"] for end in session.state().dead_ends.values()] == ["So that's not the issue."]
    assert session.state().goal == "find the leak"


def test_erasing_reaches_what_is_derived(store: Store, session: Session[Any], scribe: Scribe) -> None:
    seq = _fix(scribe)
    assert session.insight().of("decision")
    store.erase(session, [seq])
    found = session.insight(all=True)
    assert not found.of("decision")
    assert CHOICE not in str(found)
    assert found.of("goal"), "what was not erased is still derived"


def test_an_open_turn_waits_for_its_end(session: Session[Any], scribe: Scribe) -> None:
    scribe.start("go")
    scribe.says(CHOICE)
    found = session.insight()
    assert not found.items
    assert "still open" in found.notes[0]


def test_words_in_another_language_are_said_to_be_not_derived(session: Session[Any], scribe: Scribe) -> None:
    scribe.start("Bitte behebe den Fehler")
    scribe.says("Ich werde den Puffer durch einen Strom ersetzen, weil er sonst den ganzen Speicher belegt.")
    scribe.edits("upload.py")
    scribe.end()
    found = session.insight(all=True)
    assert not found.of("decision")
    assert "not English" in found.notes[0]
    assert found.of("file"), "calls are told in every language"


def test_a_session_without_turns_has_no_insight(session: Session[Any]) -> None:
    assert session.insight().items == ()


def test_only_the_attempt_in_view_counts(session: Session[Any]) -> None:
    with session.turn("go"):
        session.message("assistant", "I'll use a table instead of a cache, because it is simpler.")
    with session.turn("go", retry=True):
        session.message("assistant", "I'll use a queue instead of a table, because order matters.")
    assert [i.quote for i in session.insight("@1", all=True).of("decision")] == [
        "I'll use a queue instead of a table, because order matters."
    ]


def test_a_goal_is_carried_over_several_turns(session: Session[Any], scribe: Scribe) -> None:
    for words in ("find the leak", "yes", "ok, continue"):
        scribe.start(words)
        scribe.says("Shall I go on?")
        scribe.end()
    [goal] = session.insight("@3").of("goal")
    assert (goal.result, goal.quote, goal.reason) == ("carried", "ok, continue", "find the leak")


def test_a_brief_tells_what_is_derived_and_says_so(session: Session[Any], scribe: Scribe) -> None:
    _fix(scribe)
    text = str(session.brief())
    assert "Derived from the agent's words, not recorded" in text
    assert f"~ @1 decision: {CHOICE}" in text
    assert "## Decisions" not in text


def test_a_brief_without_a_goal_tells_what_the_user_asked(session: Session[Any], scribe: Scribe) -> None:
    _fix(scribe)
    scribe.start("yes, go on")
    scribe.says("Done. Shall I commit?")
    scribe.end()
    asked = next(iter(session.events(kind="turn.started"))).seq
    assert f"Goal: none was set; ~ asked: uploads over 10 MB fail, find out why (e{asked})" in str(session.brief())


def test_derived_decisions_are_found_by_their_words(store: Store, session: Session[Any], scribe: Scribe) -> None:
    seq = _fix(scribe)
    [hit] = store.find_derived("buffering memory")
    assert (hit.session, hit.item.seq, hit.item.known) == (session.id, seq, "derived")
    assert not store.find_derived("buffering uploads"), "all words must be in the quote"
    assert not store.find_derived("buffering", "dead_end")
    assert not store.find_derived("buffering", "message"), "a kind that is never derived"
    session.accept(hit.item.id)
    assert not store.find_derived("buffering"), "what is recorded is found as such"


def test_a_queued_prompt_that_begins_the_next_turn_is_a_goal_there_only(session: Session[Any], scribe: Scribe) -> None:
    scribe.start("make uploads faster")
    for words in ("Also add a test for the parser.", "Rename the helper to load_page."):
        session.append(ev.MessageAdded(role="user", content=words, name="queued"))
    scribe.edits("upload.py")
    scribe.end()
    scribe.start("Also add a test for the parser.")
    scribe.edits("test_upload.py")
    scribe.end()
    goals = [(item.turn, item.quote) for item in session.insight("@1..@2").of("goal")]
    assert goals == [
        (1, "make uploads faster"),
        (1, "Rename the helper to load_page."),
        (2, "Also add a test for the parser."),
    ]
