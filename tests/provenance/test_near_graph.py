"""Why, from the turns around an event: the same answer as from the whole graph, and only those turns are read."""

from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.events_read import note_events_read
from tests.seeds import examples
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import WakelogError
from wakelog.log import Log
from wakelog.log.removal import erase, prune
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.provenance import text_matches
from wakelog.provenance import why as asking
from wakelog.provenance.graph import Graph
from wakelog.provenance.targets import find
from wakelog.provenance.why import why
from wakelog.testing.builders import START_US, new_session

NAMES = ("a", "b", "c")
TEXTS = ("see https://x.example/page", "the plan is to retry twice", 'say "no" \\ or\tleave ünder protest', "ok")

_name, _text, _number = st.sampled_from(NAMES), st.sampled_from(TEXTS), st.integers(0, 40)
_trust = st.sampled_from(["trusted"] * 30 + ["untrusted"])
_effect = st.sampled_from(["model", "read", "write"])
_events = st.one_of(
    st.builds(ev.MessageAdded, role=st.sampled_from(["user", "assistant", "tool"]), content=_text, action=st.just("")),
    st.builds(ev.MessageAdded, role=st.just("tool"), content=_text | st.just("long " * 300), action=_name),
    st.builds(ev.ActionRequested, action=_name, tool=_name, effect=_effect, input=_text),
    st.builds(ev.ActionRecorded, action=_name, tool=_name, effect=_effect, input=_text, output=_text),
    st.builds(ev.ActionSucceeded, action=_name, output=_text),
    st.builds(ev.DecisionMade, choice=_text, because=_text, evidence=st.tuples(_number) | st.just(())),
    st.builds(ev.FileChanged, path=_name, change=st.sampled_from(["created", "modified"]), action=_name | st.just("")),
    st.builds(ev.FactRecorded, key=_name, value=_text),
    st.builds(ev.InputRequested, request=_name, prompt=_text),
    st.builds(ev.InputAnswered, request=_name, answer=_text),
    st.builds(ev.NoteAdded, text=_text, on=_number),
)
_turns = st.lists(
    st.tuples(st.none() | _text, st.lists(st.tuples(_events, _trust, _number), max_size=6), st.booleans()), max_size=9
)
_rare = st.sampled_from(["", "", "", "", "rewind", "endorse", "compact", "fork", "erase", "prune", "between"])


def _played(turns: list[Any], rare: str, place: int) -> Log:
    log = Log.create(MemoryEngine(), new_session(), ev.SessionOpened(), clock=lambda: START_US, redact=None)
    for number, (said, events, repeats) in enumerate(turns):
        told = [ev.MessageAdded(role="user", content=said)] if said and repeats else []
        log.append(ev.TurnStarted(input=said), *told)
        for each, trust, cause in events:
            head = log.head().seq
            try:
                log.append(EventDraft(each, trust=trust, source="web" * (trust != "trusted"), cause=cause % head))
            except WakelogError:
                continue
        log.append(ev.TurnEnded())
        if number == len(turns) // 2:
            log = _rarely(log, rare, 1 + place % log.head().seq)
    return log


def _rarely(log: Log, rare: str, at: int) -> Log:
    try:
        if rare == "rewind":
            log.rewind(at)
        elif rare == "endorse":
            log.append(ev.TrustEndorsed(targets=(at,)))
        elif rare == "compact":
            log.append(ev.HistoryCompacted(first=1, last=at, summary="all of it"))
        elif rare == "between":
            log.append(ev.DecisionMade(choice=TEXTS[0]), ev.MessageAdded(role="user", content=TEXTS[1]))
        elif rare == "fork":
            return log.fork(at)
        elif rare == "erase":
            erase(log, [at])
        elif rare == "prune":
            prune(log, at)
    except WakelogError:
        pass
    return log


@settings(max_examples=examples(40))
@given(_turns, _rare, _number)
def test_the_answer_is_that_of_the_whole_graph(turns: list[Any], rare: str, place: int) -> None:
    log = _played(turns, rare, place)
    graph = Graph(log)
    for seq in range(1, log.head().seq + 1):
        near = asking._answer_from_near_turns(log, seq, None, 12, 60, {})
        event(f"from its turns: {near is not None}")
        if near is not None:
            assert near == asking._answer(graph, find(graph, seq), 12, 60)


def test_of_a_long_log_only_the_turn_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log.create(MemoryEngine(), new_session(), ev.SessionOpened(), clock=lambda: START_US, redact=None)
    for n in range(300):
        log.append(
            ev.TurnStarted(),
            ev.MessageAdded(role="user", content=f"question {n} of somebody"),
            ev.ActionRecorded(action=f"a{n}", tool="look", effect="read", output=f"answer {n}"),
            ev.DecisionMade(choice=f"choice number {n} of them all"),
            ev.TurnEnded(),
        )
    decision = log.head().seq - 1
    expected = asking._answer(Graph(log), find(Graph(log), decision), 12, 60)
    opened = note_events_read(monkeypatch)
    assert why(log, decision) == expected
    assert expected.reached > 2
    assert min(set(opened) - {1}) > decision - 200
    assert len(opened) < 200


def test_text_that_first_stood_far_back_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log.create(MemoryEngine(), new_session(), ev.SessionOpened(), clock=lambda: START_US, redact=None)
    said = "the address is https://x.example/page"
    log.append(ev.TurnStarted(), ev.MessageAdded(role="user", content=said), ev.TurnEnded())
    for _ in range(100):
        log.append(ev.TurnStarted(), ev.MessageAdded(role="user", content="go on"), ev.TurnEnded())
    log.append(ev.TurnStarted(), ev.DecisionMade(choice=said), ev.TurnEnded())
    passes: list[int] = []
    look = text_matches._contents_of_likely_commits

    def noted(*args: Any) -> Any:
        passes.append(1)
        return look(*args)

    monkeypatch.setattr(text_matches, "_contents_of_likely_commits", noted)
    decision = log.head().seq - 1
    found = why(log, decision)
    assert [(step.seq, step.edge) for step in found.steps[:2]] == [(decision, None), (3, "match")]
    assert len(passes) == 1
