"""The graph of a session: which edges an event has, how each is known, and what can be reached over them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.provenance.story import Story
from tests.seeds import examples
from wakelog.log.removal import erase, prune
from wakelog.model import events as ev
from wakelog.provenance.graph import Graph
from wakelog.provenance.graph_walk import walk_back, walk_on
from wakelog.provenance.range_maximum import RangeMaxima

# Recorded


def test_cause_and_ranges_of_the_header_are_recorded() -> None:
    s = Story()
    first, second, third = s.fact("a"), s.fact("b"), s.fact("c")
    last = s.decide("d", cause=third, derived_from=((first, second),))
    assert s.edges(last) == [(third, third, "cause", "recorded"), (first, second, "content", "recorded")]


def test_an_outcome_answers_its_request() -> None:
    s = Story()
    asked = s.ask("grep")
    assert s.edges(s.answer(asked)) == [(asked, asked, "answers", "recorded")]


def test_a_model_call_has_its_recorded_window() -> None:
    s = Story()
    user = s.turn("hello")
    asked = s.ask("m-1", None, "model", derived_from=((1, user),))
    assert s.edges(asked) == [(1, user, "window", "recorded")]


def test_evidence_is_recorded_by_number_and_by_name() -> None:
    s = Story()
    seen = s.call("read", output="x")
    chosen = s.decide("y", evidence=[seen, f"e{seen - 1}", "https://elsewhere.example", "e999", 999])
    assert s.edges(chosen)[:2] == [(seen, seen, "evidence", "recorded"), (seen - 1, seen - 1, "evidence", "recorded")]


def test_a_message_of_an_action_is_what_the_action_gave() -> None:
    s = Story()
    asked = s.ask("fetch")
    got = s.answer(asked, "page")
    told = s.add(ev.MessageAdded(role="tool", content="page", action="fetch-1"), actor="tool")
    assert s.edges(told) == [(got, got, "says", "recorded")]


def test_a_file_is_made_by_its_action() -> None:
    s = Story()
    wrote = s.call("write_file", effect="write")
    changed = s.add(ev.FileChanged(path="a.py", action="write_file-1"))
    assert s.edges(changed) == [(wrote, wrote, "made", "recorded")]


def test_a_summary_sums_up_what_models_read_in_its_range() -> None:
    s = Story()
    user = s.turn("hello")
    fact = s.fact("a")
    said = s.add(ev.MessageAdded(role="assistant", content="hi"))
    summed = s.add(ev.HistoryCompacted(first=1, last=said, summary="greetings"), actor="runtime")
    assert s.edges(summed) == [(1, said, "sums up", "recorded")]
    assert list(s.graph.sources(summed)) == [user, said]
    assert fact not in s.graph.sources(summed)


def test_a_repeated_result_repeats_the_first() -> None:
    s = Story()
    got = s.call("charge", effect="external")
    again = s.add(ev.ActionRecorded(action="charge-9", tool="charge", reused=got), derived_from=((got, got),))
    assert (got, got, "repeats", "recorded") in s.edges(again)


def test_flags_and_notes_are_about_their_events() -> None:
    s = Story()
    fact = s.fact("a")
    assert s.edges(s.add(ev.FlagRaised(flag="f", targets=(fact,)))) == [(fact, fact, "about", "recorded")]
    assert s.edges(s.add(ev.NoteAdded(text="n", on=fact))) == [(fact, fact, "about", "recorded")]


def test_answers_and_returns_name_what_asked() -> None:
    s = Story()
    asked = s.add(ev.InputRequested(request="r", prompt="which?"))
    assert s.edges(s.add(ev.InputAnswered(request="r", answer="this"))) == [(asked, asked, "answers", "recorded")]
    sent = s.add(ev.SubagentSpawned(session="s_x", task="t"))
    assert s.edges(s.add(ev.SubagentReturned(session="s_x"))) == [(sent, sent, "answers", "recorded")]


# Derived


def test_without_a_recorded_edge_it_is_the_newest_model_call_of_the_turn() -> None:
    s = Story()
    s.turn("go")
    s.model("first")
    newest = s.model("second")
    for seq in (s.fact("a"), s.decide("b"), s.ask("grep"), s.add(ev.MessageAdded(role="assistant", content="c"))):
        assert s.edges(seq) == [(newest, newest, "model", "derived")]


def test_without_a_model_call_it_is_the_window_of_the_turn() -> None:
    s = Story()
    s.turn("earlier")
    user = s.turn("go")
    got = s.call("read")
    fact = s.fact("a")
    [(first, last, kind, known)] = s.edges(fact)
    assert (kind, known) == ("window", "derived")
    assert set(s.graph.sources(fact)) == {user, got}
    assert first > user - 2
    assert last == fact - 1


def test_a_model_call_without_a_recorded_window_had_that_of_the_turn() -> None:
    s = Story()
    s.turn("earlier")
    user = s.turn("go")
    got = s.call("read")
    asked = s.ask("m-1", None, "model")
    assert set(s.graph.sources(asked)) == {user, got}


def test_a_second_model_call_had_the_first_ones_answer_and_what_came_since() -> None:
    s = Story()
    user = s.turn("go")
    first = s.model("look there")
    got = s.call("read")
    asked = s.ask("m-1", None, "model")
    assert set(s.graph.sources(asked)) == {user, first, got}


def test_with_wide_windows_earlier_turns_in_view_count_too() -> None:
    s = Story()
    early = s.turn("earlier")
    s.turn("forget this")
    s.add(ev.TurnEnded())
    s.log.rewind(early)
    user = s.turn("go")
    asked = s.ask("m-1", None, "model")
    assert set(s.graph.sources(asked)) == {user}
    assert set(s.graph.widen().sources(asked)) == {early, user}


def test_an_attempt_has_only_its_own_window() -> None:
    s = Story()
    s.turn("go")
    failed = s.call("read", output="from the first try")
    s.add(ev.TurnEnded(outcome="failed"))
    s.log.rewind(failed - 3, mode="retry")
    user = s.turn("go", retry=True)
    assert set(s.graph.sources(s.fact("a"))) == {user}


def test_what_the_model_gives_as_evidence_does_not_hide_what_it_had_read() -> None:
    s = Story()
    s.turn("go")
    page = s.call("fetch", output="do evil", source="web:x", trust="untrusted")
    model = s.model("ok", derived_from=((page, page),))
    harmless = s.call("read", output="fine")
    chosen = s.decide("evil", evidence=[harmless])
    assert (model, model, "model", "derived") in s.edges(chosen)
    assert page in walk_back(s.graph, [chosen]).reached


def test_a_changed_file_keeps_what_earlier_changes_left() -> None:
    s = Story()
    s.turn("go")
    first = s.add(ev.FileChanged(path="a.py"))
    other = s.add(ev.FileChanged(path="b.py"))
    second = s.add(ev.FileChanged(path="a.py"))
    assert (first, first, "earlier", "derived") in s.edges(second)
    assert not [e for e in s.edges(other) if e[2] == "earlier"]
    anew = s.add(ev.FileChanged(path="a.py", change="created"))
    assert not [e for e in s.edges(anew) if e[2] == "earlier"]


# Unknown


def test_outside_a_turn_nothing_is_known() -> None:
    s = Story()
    s.turn("go")
    s.add(ev.TurnEnded())
    assert s.edges(s.fact("a")) == []


def test_a_turns_input_counts_once() -> None:
    s = Story()
    user = s.turn("hello")
    assert list(s.graph.tracks.carriers) == [user]
    s.add(ev.TurnEnded())
    alone = s.add(ev.TurnStarted(input="a timer"))
    assert list(s.graph.tracks.carriers) == [user, alone]


# Removal and forks


def test_erasing_keeps_the_edges() -> None:
    s = Story()
    s.turn("go")
    read = s.call("read", output="secret")
    chosen = s.decide("x", evidence=[read], derived_from=((read, read),))
    told = s.add(ev.MessageAdded(role="tool", content="secret", action="read-1"))
    summed = s.add(ev.HistoryCompacted(first=1, last=told, summary="secret"))
    changed = s.add(ev.FileChanged(path="a.py", action="read-1", after="secret"))
    seqs = (read, chosen, told, summed, changed)
    before = [s.edges(seq) for seq in seqs]
    erase(s.log, list(seqs), why="asked")
    assert [s.edges(seq) for seq in seqs] == before
    assert [s.graph.condition(seq) for seq in seqs] == ["erased"] * 5
    assert list(s.graph.tracks.files) == ["a.py"]


def test_pruning_keeps_what_headers_name() -> None:
    s = Story()
    user = s.turn("go")
    read = s.call("read", output="x")
    chosen = s.decide("x", derived_from=((read, read),))
    later = s.fact("a", cause=chosen)
    s.add(ev.TurnEnded())
    prune(s.log, s.head)
    s.add(ev.TurnStarted())
    assert s.graph.condition(read) == "pruned"
    assert set(walk_back(s.graph, [later]).reached) == {later, chosen, read, read - 1, user}


def test_a_fork_has_its_parents_events_and_its_own() -> None:
    s = Story()
    s.turn("go")
    read = s.call("read", output="x")
    s.fact("only in the parent", derived_from=((read, read),))
    child = Story(s.log.fork(read))
    fact = child.fact("only in the fork", derived_from=((read, read),))
    assert set(walk_on(child.graph, [read]).reached) == {read, fact}
    assert [child.graph.tracks.kinds[q] for q in range(1, read + 1)] == [
        s.graph.tracks.kinds[q] for q in range(1, read + 1)
    ]


# Walks, against the obvious way


@st.composite
def _edges(draw: st.DrawFn) -> list[tuple[int, list[tuple[int, int]]]]:
    """For each event its cause and the ranges it was derived from; the first stands at seq 2."""
    out = []
    for seq in range(2, 2 + draw(st.integers(1, 40))):
        cause = draw(st.sampled_from([0, 0, draw(st.integers(1, seq - 1))]))
        ends = [
            sorted((draw(st.integers(1, seq - 1)), draw(st.integers(1, seq - 1))))
            for _ in range(draw(st.integers(0, 2)))
        ]
        out.append((cause, [(low, high) for low, high in ends]))
    return out


@given(_edges(), st.data())
def test_walks_are_the_transitive_closure(edges: list[tuple[int, list[tuple[int, int]]]], data: st.DataObject) -> None:
    s = Story()
    direct: dict[int, set[int]] = {1: set()}
    for seq, (cause, ranges) in enumerate(edges, 2):
        s.add(ev.Foreign(foreign_kind="x.step", data={}), cause=cause, derived_from=tuple(ranges))
        direct[seq] = {cause} - {0} | {q for low, high in ranges for q in range(low, high + 1)}
    closure: dict[int, set[int]] = {}
    for seq in sorted(direct):
        closure[seq] = direct[seq].union(*(closure[q] for q in direct[seq]))
    starts = data.draw(st.sets(st.sampled_from(sorted(direct)), min_size=1, max_size=3))
    graph = s.graph
    assert set(walk_back(graph, starts).reached) == starts.union(*(closure[q] for q in starts))
    assert set(walk_on(graph, starts).reached) == starts | {q for q in closure if closure[q] & starts}
    stops = frozenset(data.draw(st.sets(st.sampled_from(sorted(direct)), max_size=3)))
    assert set(walk_on(graph, starts, None, stops).reached) == _spread(direct, starts, stops)


def _spread(direct: dict[int, set[int]], starts: set[int], stops: frozenset[int]) -> set[int]:
    reached: set[int] = set()
    for seq in sorted(direct):
        if seq not in stops and (seq in starts or direct[seq] & reached):
            reached.add(seq)
    return reached


@given(st.lists(st.integers(0, 30), max_size=12))
def test_the_view_is_the_logs_own(moves: list[int]) -> None:
    s = Story()
    for move in moves:
        s.fact("a")
        s.log.rewind(1 + move % s.head)
    view = [seq for first, last in s.log.view() for seq in range(first, last + 1)]
    assert [seq for seq in range(1, s.head + 1) if s.graph.in_view(seq)] == view
    at = 1 + s.head // 2
    before = [seq for first, last in s.log.view(at) for seq in range(first, last + 1)]
    assert sorted(q for first, last in s.graph.tracks.view_at(at + 1) for q in range(first, last + 1)) == before


_STEPS: dict[str, Any] = {
    "turn": lambda s: s.turn(f"input {s.head}"),
    "call": lambda s: s.call("read", output=s.head),
    "model": lambda s: s.model(),
    "window": lambda s: s.model(derived_from=((max(1, s.head - 6), s.head),)),
    "fact": lambda s: s.fact("a"),
    "decide": lambda s: s.decide("b", evidence=[s.head // 2 + 1]),
    "derived": lambda s: s.fact("c", derived_from=((s.head // 2 + 1, s.head),)),
    "file": lambda s: s.add(ev.FileChanged(path="a.py")),
    "compact": lambda s: s.add(ev.HistoryCompacted(first=1, last=s.head, summary="…")),
    "note": lambda s: s.add(ev.NoteAdded(text="n", on=s.head)),
    "rewind": lambda s: s.log.rewind(max(1, s.head // 2)),
}


@given(st.lists(st.sampled_from(sorted(_STEPS)), min_size=1, max_size=25), st.booleans(), st.data())
def test_every_event_is_reached_over_the_strongest_way(steps: list[str], wide: bool, data: st.DataObject) -> None:
    s = Story()
    for step in steps:
        _STEPS[step](s)
    graph = Graph(s.log, wide=wide)
    start = data.draw(st.integers(1, graph.head))
    direct = {
        seq: [(q, e.strength) for e in graph.edges(seq) for q in range(e.first, e.last + 1) if _counts(graph, e, q)]
        for seq in range(1, graph.head + 1)
    }
    back, on = walk_back(graph, [start]), walk_on(graph, [start])
    assert {q: r.strength for q, r in back.reached.items()} == _strengths_back(direct, start)
    assert {q: r.strength for q, r in on.reached.items()} == _strengths_on(direct, start)
    for walk in (back, on):
        for seq, reach in walk.reached.items():
            path = walk.path(seq)
            assert (path[0].seq, path[-1].seq) == (start, seq)
            assert min([r.edge.strength for r in path if r.edge] or [4]) == reach.strength
            assert len(path) == reach.hops + 1


def _counts(graph: Graph, edge: Any, seq: int) -> bool:
    return graph.counts(seq, edge.scope)


def _strengths_back(direct: dict[int, list[tuple[int, int]]], start: int) -> dict[int, int]:
    best = {start: 4}
    for seq in range(start, 0, -1):
        for source, strength in direct[seq] if seq in best else ():
            best[source] = max(best.get(source, 0), min(strength, best[seq]))
    return best


def _strengths_on(direct: dict[int, list[tuple[int, int]]], start: int) -> dict[int, int]:
    best = {start: 4}
    for seq in range(start + 1, max(direct) + 1):
        found = max((min(strength, best[q]) for q, strength in direct[seq] if q in best), default=0)
        if found:
            best[seq] = found
    return best


@settings(max_examples=examples(50))
@given(st.lists(st.integers(0, 9), min_size=1, max_size=900), st.data())
def test_maxima_are_those_of_the_list(values: list[int], data: st.DataObject) -> None:
    run = RangeMaxima()
    skipped = data.draw(st.integers(0, 600))
    run.skip(skipped)
    for value in values:
        run.append(value)
    plain = [0] * (skipped + 1) + values
    for _ in range(20):
        first = data.draw(st.integers(1, len(plain) - 1))
        last = data.draw(st.integers(first, len(plain) - 1))
        top = max(plain[first : last + 1])
        assert run.top(first, last) == top
        wanted = data.draw(st.integers(1, 9))
        places = [p for p in range(first, last + 1) if plain[p] >= wanted]
        assert run.newest(first, last, wanted) == max(places, default=0)
    assert len(run) == len(plain)


@pytest.mark.parametrize("length", [255, 256, 257, 511, 512])
def test_a_skip_to_the_edge_of_a_block_is_no_edge_case(length: int) -> None:
    run = RangeMaxima()
    run.skip(length)
    run.append(7)
    assert run.top(1, length + 1) == 7
    assert run.newest(1, length + 1, 1) == length + 1
