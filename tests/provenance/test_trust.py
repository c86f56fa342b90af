"""Effective trust: what the stamps say after everything that was endorsed and invalidated, and what a model was exposed
to."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.provenance.story import WEB, Story
from tests.seeds import examples
from wakelog.model import events as ev
from wakelog.provenance.effective_trust import TrustByEvent, effective_trust, exposure
from wakelog.provenance.graph import Graph


def _endorse(s: Story, *targets: int) -> int:
    return s.add(ev.TrustEndorsed(targets=targets, by="ada"), actor="user")


def _invalidate(s: Story, *targets: int) -> int:
    return s.add(ev.StepInvalidated(targets=targets, by="ada"), actor="user")


def test_trust_is_the_minimum_over_the_recorded_flow_even_where_nobody_stamped_it() -> None:
    s = Story()
    s.turn("go")
    page = s.call("fetch", output="evil", **WEB)
    docs = s.call("docs", output="so so", source="web:docs", trust="unverified")
    both = s.fact("both", derived_from=((page, docs),))
    one = s.fact("one", derived_from=((docs, docs),))
    own = s.fact("own")
    assert [effective_trust(s.graph, q) for q in (both, one, own)] == ["untrusted", "unverified", "trusted"]


def test_trust_goes_through_summaries() -> None:
    s = Story()
    s.turn("go")
    page = s.call("fetch", output="evil", **WEB)
    summed = s.add(ev.HistoryCompacted(first=1, last=page, summary="we read a page"), actor="runtime")
    model = s.model("ok", derived_from=((summed, summed),))
    sent = s.ask("send", effect="external", cause=model)
    assert effective_trust(s.graph, sent) == "untrusted"


def test_a_result_has_the_trust_of_its_tool_not_of_whoever_asked() -> None:
    s = Story()
    s.turn("go")
    page = s.call("fetch", output="evil", **WEB)
    asked = s.ask("read_file", effect="read", derived_from=((page, page),), **WEB)
    computed = s.ask("sort", effect="pure", derived_from=((page, page),), **WEB)
    assert effective_trust(s.graph, s.answer(asked, "our own file")) == "trusted"
    assert effective_trust(s.graph, s.answer(computed, "live")) == "untrusted"


def test_what_rests_only_on_the_endorsed_is_trusted_too() -> None:
    s = Story()
    s.turn("go")
    page = s.call("fetch", output="fine after all", **WEB)
    other = s.call("fetch", output="evil", source="web:evil.example", trust="untrusted")
    only = s.fact("only", derived_from=((page, page),), **WEB)
    on_that = s.decide("on that", derived_from=((only, only),), **WEB)
    both = s.fact("both", derived_from=((page, page), (other, other)), **WEB)
    _endorse(s, page)
    assert [effective_trust(s.graph, q) for q in (page, only, on_that)] == ["trusted"] * 3
    assert [effective_trust(s.graph, q) for q in (other, both)] == ["untrusted"] * 2


def test_a_stamp_of_its_own_outlives_the_endorsement_of_what_came_before() -> None:
    s = Story()
    s.turn("go")
    page = s.call("fetch", output="fine after all", **WEB)
    asked = s.ask("fetch", effect="read", derived_from=((page, page),), **WEB)
    second = s.answer(asked, "another page", **WEB)
    marked = s.fact("typed in", derived_from=((page, page),), source="web:other.example", trust="untrusted")
    _endorse(s, page)
    assert [effective_trust(s.graph, q) for q in (asked, second, marked)] == ["trusted", "untrusted", "untrusted"]


def test_the_later_word_counts() -> None:
    s = Story()
    s.turn("go")
    page = s.call("fetch", output="?", **WEB)
    fact = s.fact("f", derived_from=((page, page),), **WEB)
    at = [_endorse(s, page), _invalidate(s, page), _endorse(s, page)]
    for seq, expected in zip(at, ("trusted", "untrusted", "trusted"), strict=True):
        graph = Graph(s.log, seq)
        assert [effective_trust(graph, q) for q in (page, fact)] == [expected] * 2


def test_an_endorsement_does_not_outlive_a_later_invalidation_below_it() -> None:
    s = Story()
    s.turn("go")
    step = s.decide("wrong")
    fact = s.fact("f", derived_from=((step, step),))
    first = _endorse(s, fact)
    _invalidate(s, step)
    last = _endorse(s, fact)
    assert effective_trust(Graph(s.log, first), fact) == "trusted"
    assert effective_trust(Graph(s.log, last - 1), fact) == "untrusted"
    assert effective_trust(s.graph, fact) == "trusted"
    assert effective_trust(s.graph, step) == "untrusted"


def test_the_result_of_an_invalid_call_is_untrusted() -> None:
    s = Story()
    s.turn("go")
    asked = s.ask("read", effect="read")
    got = s.answer(asked, "x")
    _invalidate(s, asked)
    assert effective_trust(s.graph, got) == "untrusted"


def test_what_people_say_about_events_is_not_tainted_by_them() -> None:
    s = Story()
    s.turn("go")
    page = s.call("fetch", output="evil", **WEB)
    note = s.add(ev.NoteAdded(text="look", on=page), actor="user")
    assert [effective_trust(s.graph, q) for q in (note, _endorse(s, page), _invalidate(s, page))] == ["trusted"] * 3


def test_a_rewind_takes_back_no_word_about_trust() -> None:
    s = Story()
    s.turn("go")
    page = s.call("fetch", output="fine", **WEB)
    _endorse(s, page)
    s.add(ev.TurnEnded())
    s.log.rewind(page)
    assert effective_trust(s.graph, page) == "trusted"


# Exposure


def test_exposure_is_the_minimum_over_the_recorded_window() -> None:
    s = Story()
    user = s.turn("go")
    page = s.call("fetch", output="evil", **WEB)
    clean = s.model("a", derived_from=((user, user),))
    exposed = s.model("b", derived_from=((1, page),))
    sent = s.ask("send", effect="external", cause=exposed)
    assert exposure(s.graph, clean).trust == "trusted"
    found = exposure(s.graph, sent)
    assert (found.trust, found.known, found.call, found.worst) == ("untrusted", "recorded", exposed - 1, (page,))


def test_exposure_without_a_recorded_window_is_everything_in_view() -> None:
    s = Story()
    s.turn("earlier")
    page = s.call("fetch", output="evil", **WEB)
    s.turn("go")
    model = s.model("b")
    found = exposure(s.graph, model)
    assert (found.trust, found.known, found.worst) == ("untrusted", "derived", (page,))
    s.add(ev.TurnEnded())
    s.log.rewind(1)
    s.turn("again")
    assert exposure(s.graph, s.model("c")).trust == "trusted"


def test_endorsing_lowers_exposure() -> None:
    s = Story()
    s.turn("go")
    page = s.call("fetch", output="fine", **WEB)
    model = s.model("b", derived_from=((1, page),), **WEB)
    _endorse(s, page)
    assert exposure(s.graph, model).trust == "trusted"
    assert effective_trust(s.graph, model) == "trusted"


# Against the obvious way

_TRUSTS = ("trusted", "unverified", "untrusted")


@st.composite
def _sessions(draw: st.DrawFn) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for seq in range(2, 2 + draw(st.integers(1, 30))):
        kind = draw(st.sampled_from(["step", "step", "step", "endorse", "invalidate"]))
        if kind != "step":
            events.append({"kind": kind, "target": draw(st.integers(1, seq - 1))})
            continue
        ends = [draw(st.integers(1, seq - 1)) for _ in range(draw(st.integers(0, 4)))]
        ranges = tuple((min(pair), max(pair)) for pair in zip(ends[::2], ends[1::2], strict=False))
        events.append({"kind": kind, "ranges": ranges, "trust": draw(st.sampled_from(_TRUSTS))})
    return events


@settings(max_examples=examples(100))
@given(_sessions())
def test_trust_is_what_a_plain_recursion_says(events: list[dict[str, Any]]) -> None:
    s = Story()
    marks: dict[int, tuple[str, int]] = {}
    for seq, event in enumerate(events, 2):
        if event["kind"] == "step":
            s.add(ev.Foreign(foreign_kind="x.step", data={}), derived_from=event["ranges"], trust=event["trust"])
        else:
            (_endorse if event["kind"] == "endorse" else _invalidate)(s, event["target"])
            marks[event["target"]] = (event["kind"], seq)
    trusts = TrustByEvent(s.graph)
    rank: dict[int, int] = {}
    bad: dict[int, int] = {}
    for seq in range(1, s.head + 1):
        event = events[seq - 2] if seq > 1 else {"kind": "opened"}
        below = {q for low, high in event.get("ranges", ()) for q in range(low, high + 1)}
        stamp = _TRUSTS.index(event.get("trust", "trusted"))
        inherited = any(_stamp(events, q) >= stamp for q in below)
        rank[seq] = max([0 if inherited else stamp, *(rank[q] for q in below)])
        bad[seq] = max([0, *(bad[q] for q in below)])
        word, said_at = marks.get(seq, ("", 0))
        if word == "invalidate":
            bad[seq] = max(bad[seq], said_at)
        elif word == "endorse" and bad[seq] < said_at:
            rank[seq] = bad[seq] = 0
        if bad[seq]:
            rank[seq] = 2
        assert trusts.rank(seq) == rank[seq], seq


def _stamp(events: list[dict[str, Any]], seq: int) -> int:
    return _TRUSTS.index(events[seq - 2].get("trust", "trusted")) if seq > 1 else 0


@pytest.mark.parametrize("trust", _TRUSTS)
def test_with_nothing_said_since_the_effective_trust_is_the_stamp(trust: Any) -> None:
    s = Story()
    fact = s.fact("a", trust=trust)
    assert effective_trust(s.graph, fact) == trust
