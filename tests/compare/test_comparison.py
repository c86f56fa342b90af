"""Comparing attempts, forks and sessions: where they diverge, why, and what followed."""

from collections.abc import Callable
from typing import Any

import pytest

import wakelog
from wakelog import InvalidInputError, NotFoundError, events
from wakelog.compare import comparison as comparing
from wakelog.compare.comparison import Pair
from wakelog.compare.divergence import DivergenceFactor
from wakelog.compare.steps import gather
from wakelog.log.removal import erase, prune
from wakelog.model.records import EventDraft
from wakelog.session import Session
from wakelog.store import Store

LARGE = "a long answer " * 100


# What differed


def call(
    session: Session,
    tool: str,
    given_: Any = None,
    output: Any = None,
    *,
    error: str = "",
    model: bool = False,
    header: dict[str, Any] | None = None,
    **fields: Any,
) -> int:
    action = f"{tool}-{session.head.seq}"
    effect: Any = "model" if model else "read"
    asked = events.ActionRequested(action=action, tool=tool, input=given_, effect=effect, **fields)
    session.append(EventDraft(asked, **(header or {})), events.ActionStarted(action=action))
    if error:
        return session.append(events.ActionFailed(action=action, error=events.Failure("error", error))).seq
    return session.append(events.ActionSucceeded(action=action, output=output)).seq


Work = Callable[[Session], object]


def tried(store: Store, first: Work, second: Work, *, prompts: tuple[str, str] = ("go", "go")) -> Pair:
    """Two attempts of one turn."""
    session = store.session("s", data={"n": 0})
    with session.turn(user=prompts[0]):
        first(session)
    with session.turn(user=prompts[1], retry=True):
        second(session)
    return session.history.compare("@1.1", "@1.2").pairs[0]


def behind(pair: Pair, what: str) -> DivergenceFactor:
    assert pair.divergence is not None
    return next(finding for finding in pair.divergence.behind if finding.what == what)


def test_a_different_prompt(store: Store) -> None:
    pair = tried(store, lambda s: None, lambda s: None, prompts=("fix it", "fix the bug"))
    assert pair.divergence is not None
    assert pair.divergence.what == ("prompt",)
    assert [(d.a, d.b) for d in pair.divergence.differences] == [("fix it", "fix the bug")]


def test_a_different_tool_input_is_told_by_its_key(store: Store) -> None:
    pair = tried(
        store,
        lambda s: call(s, "search", {"q": "cors", "limit": 5}, 1),
        lambda s: call(s, "search", {"q": "cors", "limit": 9}, 1),
    )
    assert pair.divergence is not None
    assert pair.divergence.what == ("input",)
    assert pair.divergence.same_before == 1
    assert [(d.pointer, d.a, d.b) for d in pair.divergence.differences] == [("/limit", 5, 9)]


def test_a_different_tool_output_with_the_same_input(store: Store) -> None:
    pair = tried(store, lambda s: call(s, "search", "x", {"hits": 1}), lambda s: call(s, "search", "x", {"hits": 2}))
    assert pair.divergence is not None
    assert pair.divergence.what == ("output",)
    assert [(d.pointer, d.a, d.b) for d in pair.divergence.differences] == [("/hits", 1, 2)]


def test_a_different_error_and_a_call_that_only_failed_once(store: Store) -> None:
    one = tried(store, lambda s: call(s, "f", error="timeout"), lambda s: call(s, "f", error="refused"))
    assert one.divergence is not None
    assert one.divergence.what == ("error",)
    store.delete(store.resume("s"))
    two = tried(store, lambda s: call(s, "f", error="timeout"), lambda s: call(s, "f", output="ok"))
    assert two.divergence is not None
    assert two.divergence.what == ("outcome",)
    assert ("outcome", "failed", "succeeded") in [(d.what, d.a, d.b) for d in two.divergence.differences]


def test_the_same_answer_from_somebody_less_trusted(store: Store) -> None:
    said = events.MessageAdded(role="tool", content="page")
    pair = tried(
        store, lambda s: s.append(said), lambda s: s.append(EventDraft(said, source="web:x", trust="untrusted"))
    )
    assert pair.divergence is not None
    assert [(d.what, d.a, d.b) for d in pair.divergence.differences] == [("trust", "trusted", "untrusted (web:x)")]


def test_another_model_and_other_parameters(store: Store) -> None:
    pair = tried(
        store,
        lambda s: call(s, "m", output="a", model=True, params={"model": "one", "temperature": 0}),
        lambda s: call(s, "m", output="b", model=True, params={"model": "two", "temperature": 1}),
    )
    assert pair.divergence is not None
    assert pair.divergence.what == ("model", "parameters", "output")
    assert [(d.a, d.b) for d in behind(pair, "model").differences] == [("one", "two")]
    assert [(d.pointer, d.a, d.b) for d in behind(pair, "parameters").differences] == [("/temperature", 0, 1)]


def test_what_a_model_calls_parameters_say_is_not_said_again(store: Store) -> None:
    def work(seed: int, extra: str) -> Work:
        given_ = {"seed": seed, "shown": f"hash {extra}", "stop": extra}
        return lambda s: call(s, "m", given_, "a", model=True, params={"seed": seed}, context_hash=f"hash {extra}")

    pair = tried(store, work(1, "x"), work(2, "x"))
    assert pair.divergence is not None
    assert pair.divergence.what == ("parameters",)
    store.delete(store.resume("s"))
    pair = tried(store, work(1, "x"), work(1, "y"))
    assert pair.divergence is not None
    assert pair.divergence.what == ("context", "input")
    assert [(d.pointer, d.a, d.b) for d in pair.divergence.differences] == [("/stop", "x", "y")]


def test_the_model_call_behind_a_step_is_the_one_its_cause_names(store: Store) -> None:
    def work(first: bool) -> Work:
        def play(s: Session) -> None:
            calls = [call(s, "m", output="x", model=True, params={"temperature": t}) for t in (0, 7)]
            s.append(EventDraft(events.DecisionMade(choice=str(first)), cause=calls[0] if first else calls[1]))

        return play

    pair = tried(store, work(first=True), work(first=False))
    assert [(d.pointer, d.a, d.b) for d in behind(pair, "parameters").differences] == [("/temperature", 0, 7)]


def test_context_items_are_compared_by_content_wherever_they_stand(store: Store) -> None:
    def work(says: str) -> Work:
        def play(s: Session) -> None:
            first = s.message("user", "look at this")
            s.message("tool", LARGE)
            call(s, "m", output=says, model=True, header={"derived_from": ((first, s.head.seq),)})

        return play

    pair = tried(store, work("left"), work("right"))
    assert pair.divergence is not None
    assert pair.divergence.what == ("output",)
    assert {f.what: f.verdict for f in pair.divergence.behind} == {
        **dict.fromkeys(["prompt", "model", "context", "state"], "same"),
        "parameters": "unknown",
    }


def test_what_only_one_window_held_is_named_with_its_trust(store: Store) -> None:
    session = store.session("s")
    page = session.append(
        EventDraft(events.MessageAdded(role="tool", content=LARGE), source="web:x", trust="untrusted")
    ).seq
    note = session.message("user", "be careful")
    for n, (seqs, says) in enumerate([((page, note), "left"), ((note,), "right")]):
        with session.turn(user="go", retry=n > 0):
            window = {"derived_from": tuple((seq, seq) for seq in seqs)}
            call(session, "m", output=says, model=True, header=window, context_hash=f"hash {n}")
    found = behind(session.history.compare("@1.1", "@1.2").pairs[0], "context")
    assert [(item.seq, item.source, item.trust) for item in found.only_a] == [(page, "web:x", "untrusted")]
    assert found.only_b == ()


def test_context_that_was_not_recorded_is_unknown_and_not_the_same(store: Store) -> None:
    pair = tried(store, lambda s: call(s, "m", output=1, model=True), lambda s: call(s, "m", output=2, model=True))
    assert behind(pair, "context").verdict == "unknown"
    assert behind(pair, "parameters").verdict == "unknown"
    assert behind(pair, "prompt").verdict == behind(pair, "state").verdict == "same"


def test_if_one_window_is_known_what_it_lacks_of_its_own_history_is_named(store: Store) -> None:
    sides = []
    for name in ("all", "cut"):
        session = store.session(name)
        with session.turn("only above 20 euros"):
            pass
        with session.turn("refund it"):
            last = session.message("user", "now")
            window = {"derived_from": ((last, last),)} if name == "cut" else {}
            call(session, "m", output=name, model=True, header=window)
        sides.append(session)
    found = behind(sides[0].history.compare(sides[1]).pairs[0], "context")
    assert found.verdict == "unknown"
    assert found.held_back_a == ()
    assert [(item.name, item.content) for item in found.held_back_b] == [
        ("user", "only above 20 euros"),
        ("user", "refund it"),
    ]


def test_a_window_with_the_start_of_a_turn_has_what_the_user_said_there(store: Store) -> None:
    session = store.session("s")
    rule = session.append(events.TurnStarted(input="an early rule")).seq
    session.append(events.TurnEnded())
    for n in range(2):
        with session.turn("go", retry=n > 0):
            first = (rule, session.head.seq)[n]
            window = {"derived_from": ((first, first),)}
            call(session, "m", output=str(n), model=True, header=window, context_hash=f"hash {n}")
    found = behind(session.history.compare("@2.1", "@2.2").pairs[0], "context")
    assert [item.content for item in found.only_a] == ["an early rule"]
    assert [item.content for item in found.only_b] == ["go"]


def test_the_same_window_under_other_ids_is_no_difference(store: Store) -> None:
    def work(number: int) -> Work:
        def play(s: Session) -> None:
            said = s.message("tool", f"call_{number}abcdefghijklmnop1 answered at 2026-01-0{number}T10:00:00Z")
            call(s, "m", output="ok", model=True, header={"derived_from": ((said, said),)}, context_hash=f"h{number}")

        return play

    pair = tried(store, work(1), work(2))
    assert pair.divergence is None
    assert pair.minor == 2


def test_many_windows_that_differ_in_nothing_are_looked_into_up_to_a_limit(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "WINDOWS_MAX", 2)

    def work(number: int) -> Work:
        def play(s: Session) -> None:
            said = s.message("user", "same")
            for n in range(4):
                header = {"derived_from": ((said, said),)}
                call(s, "m", output="ok", model=True, header=header, context_hash=f"h{number}{n}")

        return play

    pair = tried(store, work(1), work(2))
    assert pair.divergence is not None
    assert pair.divergence.same_before == 4
    assert any("taken to differ" in note for note in pair.notes)


def test_what_the_state_held_is_compared_without_positions(store: Store) -> None:
    """The first attempt noted a dead end. A rewind keeps dead ends, so the second attempt could read it."""

    def first(s: Session) -> None:
        s.fact("seen", 1)
        s.decide("look around", because="why not")
        s.dead_end("ask the cache", learned="it is empty")

    def second(s: Session) -> None:
        s.fact("seen", 1)
        s.decide("look around", because="why not")
        s.files.record("query.sql")

    pair = tried(store, first, second)
    assert pair.divergence is not None
    assert pair.divergence.what == ("step",)
    changes = behind(pair, "state").changes
    assert [(c.part, c.how, c.after["learned"]) for c in changes] == [("dead ends", "added", "it is empty")]


def test_timing_alone_is_no_difference(store: Store) -> None:
    def work(took: int) -> Work:
        def play(s: Session) -> None:
            cost = events.Cost(duration_us=took, tokens_out=took)
            s.append(events.ActionRecorded(action=f"a{took}", tool="t", output="x", cost=cost))

        return play

    pair = tried(store, work(5), work(5_000_000))
    assert pair.divergence is None
    assert (pair.a.cost.duration_us, pair.b.cost.duration_us) == (5, 5_000_000)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("at 2026-11-15T18:00:01Z", "at 2026-11-16T09:30:00.125+01:00"),
        ("id 0b3ac1f6-58cc-4372-a567-0e02b2c3d479", "id 9c858901-8a57-4791-81fe-4c455b099bc9"),
        ("/tmp/tmpab12cd_9/x", "/tmp/tmpzzzz0000/x"),
        ("toolu_01A09q90qw90lq917835lq9", "toolu_01B19x91xx91xy927835lq8"),
        ("s_01JCX4M0E8Z6Y4T2R0N8K6H4F2", "s_01JCX4M0E8Z6Y4T2R0N8K6H4F3.8F3K2M9Q"),
    ],
)
def test_what_is_different_every_time_is_told_apart_and_does_not_count(store: Store, a: str, b: str) -> None:
    pair = tried(store, lambda s: call(s, "t", {"x": a}, LARGE + a), lambda s: call(s, "t", {"x": b}, LARGE + b))
    assert pair.divergence is None
    assert [row.minor for row in pair.rows] == [(), ("ids or times",), ()]
    store.delete(store.resume("s"))
    pair = tried(store, lambda s: call(s, "t", [LARGE, a]), lambda s: call(s, "t", [LARGE, b]))
    assert pair.divergence is None
    assert [row.minor for row in pair.rows] == [(), ("ids or times",), ()]


@pytest.mark.parametrize(
    ("a", "b"), [("2026-11-15", "2026-11-16"), ("1700000000", "1700000001"), ("a" * 40, "b" * 40), ("10:00", "11:00")]
)
def test_what_may_mean_something_is_never_taken_out(store: Store, a: str, b: str) -> None:
    assert tried(store, lambda s: call(s, "t", a), lambda s: call(s, "t", b)).divergence is not None


def test_tries_of_one_call_are_kept_and_do_not_make_it_another(store: Store) -> None:
    def flaky(s: Session) -> None:
        s.append(events.ActionRequested(action="x", tool="fetch", effect="read"), events.ActionStarted(action="x"))
        s.append(events.ActionFailed(action="x", error=events.Failure("timeout"), retry=True))
        s.append(events.ActionStarted(action="x", attempt=2), events.ActionSucceeded(action="x", output="page"))

    pair = tried(store, flaky, lambda s: call(s, "fetch", output="page"))
    assert pair.divergence is None
    step = pair.a.steps[1]
    assert [(t.number, t.outcome) for t in step.tries] == [(1, "failed"), (2, "succeeded")]
    assert (step.outcome, step.output) == ("succeeded", "page")
    assert pair.rows[1].minor == ("tries",)


def test_a_call_that_waits_for_its_next_try_says_so(store: Store) -> None:
    session = store.session("s")
    session.append(events.ActionRequested(action="x", tool="fetch"), events.ActionStarted(action="x"))
    session.append(events.ActionFailed(action="x", error=events.Failure("timeout"), retry=True))
    (step,) = gather(session.log, session.log.entries()).steps
    assert (step.outcome, [t.outcome for t in step.tries]) == ("retried", ["failed"])


def test_large_values_are_compared_whole_and_told_where_they_part(store: Store) -> None:
    pair = tried(store, lambda s: call(s, "t", output=LARGE + "A"), lambda s: call(s, "t", output=LARGE + "B"))
    assert pair.divergence is not None
    (found,) = pair.divergence.differences
    assert (found.a, found.b, found.by_hash) == (LARGE + "A", LARGE + "B", False)


def test_values_too_large_to_fetch_say_so(store: Store) -> None:
    big = "x" * (1 << 20)
    pair = tried(store, lambda s: call(s, "t", output=big + "A"), lambda s: call(s, "t", output=big + "B"))
    assert pair.divergence is not None
    assert [d.by_hash for d in pair.divergence.differences] == [True]


# What followed


def test_what_followed_says_whether_anything_recorded_links_it(store: Store) -> None:
    def work(choice: str) -> Work:
        def play(s: Session) -> None:
            decided = s.decide(choice)
            s.append(EventDraft(events.FactRecorded(key="caused", value=choice), cause=decided))
            window = {"derived_from": ((decided, decided),)}
            call(s, "m", output=f"on {choice}", model=True, header=window)
            s.fact("apart", choice)
            s.fact("same", 1)

        return play

    pair = tried(store, work("left"), work("right"))
    assert pair.divergence is not None
    names = [(pair.b.steps[f.step].name, f.rests) for f in pair.divergence.followed_b]
    assert names == [("caused", "cause"), ("m", "derived"), ("apart", "after")]


def test_a_call_follows_from_the_answer_that_requested_it(store: Store) -> None:
    def work(says: str) -> Work:
        def play(s: Session) -> None:
            s.append(events.ActionRecorded(action=f"reply-{says}", tool="m", effect="model", output=says))
            call(s, "pay", {"to": says}, "done", group=f"reply-{says}")

        return play

    pair = tried(store, work("left"), work("right"))
    assert pair.divergence is not None
    assert [(pair.b.steps[f.step].name, f.rests) for f in pair.divergence.followed_b] == [("pay", "cause")]


# Where they lie


def test_a_fork_is_compared_from_where_it_left(store: Store) -> None:
    session = store.session("s")
    with session.turn(user="shared"):
        call(session, "t", 1, 1)
    fork = session.fork("@1", name="f")
    with session.turn(user="next"):
        session.decide("left")
    with fork.turn(user="next"):
        fork.decide("right")
    pair = session.history.compare(fork).pairs[0]
    assert pair.shared == session.seq("@1")
    assert pair.divergence is not None
    assert (pair.divergence.same_before, pair.divergence.what) == (1, ("choice",))
    assert [c.after["choice"] for c in pair.ends if c.part == "decisions" and c.after] == ["right"]


def test_a_parent_that_was_rewound_below_the_fork_point_shares_only_what_both_have_in_view(store: Store) -> None:
    session = store.session("s")
    for n in range(3):
        with session.turn(user=f"turn {n}"):
            session.fact("n", n)
    fork = session.fork("@3", name="f")
    session.rewind("@1")
    pair = session.history.compare(fork).pairs[0]
    assert pair.shared == session.seq("@1")
    assert len(pair.a.steps) == 0
    assert [s.kind for s in pair.b.steps] == ["input", "fact", "end"] * 2


def test_sessions_in_two_stores_are_compared_step_by_step() -> None:
    with wakelog.open("memory:") as here, wakelog.open("memory:") as there:
        one, two = here.session("s"), there.session("s")
        for session, found in ((one, LARGE), (two, LARGE + "!")):
            with session.turn(user="go"):
                call(session, "t", {"q": LARGE}, found)
        pair = one.history.compare(other=two).pairs[0]
        assert pair.divergence is not None
        assert pair.divergence.what == ("output",)
        assert pair.shared == 0
        assert one.history.compare("@1", other=two).pairs[0].divergence is not None


def test_a_part_of_a_course_is_not_the_whole_of_it(store: Store) -> None:
    session = store.session("s")
    for n in (1, 2, 3):
        with session.turn(user=str(n)):
            session.fact("n", n)
    pair = session.history.compare("@2", "@1..@3").pairs[0]
    assert pair.shared == 0
    assert pair.divergence is not None
    assert (len(pair.a.steps), len(pair.b.steps)) == (3, 9)


def test_attempts_that_were_rewound_inside_are_read_as_they_ended(store: Store) -> None:
    def work(s: Session) -> None:
        before = s.head.seq
        s.fact("wrong", 1)
        s.log.rewind(before)
        s.fact("right", 1)

    pair = tried(store, work, lambda s: s.fact("right", 1))
    assert pair.divergence is None
    assert [step.name for step in pair.a.steps if step.kind == "fact"] == ["right"]


def test_more_than_two_are_each_held_against_the_first(store: Store) -> None:
    session = store.session("s")
    for n, q in enumerate(("a", "a", "b")):
        with session.turn(user="go", retry=n > 0):
            call(session, "t", q)
    found = session.history.compare("@1.1", "@1.2", "@1.3")
    assert [pair.divergence is None for pair in found.pairs] == [True, False]
    assert bool(found)
    assert len(str(found).splitlines()) == 2
    assert [course.name for course in found.courses] == ["s@1.1", "s@1.2", "s@1.3"]


def test_without_sides_the_newest_turn_that_was_tried_again_is_meant(store: Store) -> None:
    session = store.session("s")
    with pytest.raises(NotFoundError, match="more than once"):
        session.history.compare()
    with session.turn(user="go"):
        pass
    with session.turn(user="go", retry=True):
        session.fact("k", 1)
    with session.turn(user="on"):
        pass
    assert [course.name for course in session.history.compare().courses] == ["s@1.1", "s@1.2"]


def test_a_session_by_name_is_refused_with_the_way_to_do_it(store: Store) -> None:
    session = store.session("s")
    with pytest.raises(InvalidInputError, match="another session") as caught:
        session.history.compare("other@1", "@1")
    assert "store.resume" in caught.value.hint
    with pytest.raises(InvalidInputError, match="two sides"):
        session.history.compare("s")


# What is no longer there


def test_erased_steps_are_shown_as_such_and_never_called_the_same_or_different(store: Store) -> None:
    session = store.session("s")
    secret = []
    for n in range(2):
        with session.turn(user="go", retry=n > 0):
            said = session.message("assistant", "secret")
            secret += [call(session, "t", "x", "secret too"), said]
            session.fact("k", n)
    erase(session.log, secret[::2] + secret[-1:])  # the outputs of both calls, and the second message
    pair = session.history.compare("@1.1", "@1.2").pairs[0]
    assert [(row.verdict, row.a, row.b) for row in pair.rows][:3] == [
        ("same", 0, 0),
        ("unknown", 1, 1),
        ("unknown", 2, 2),
    ]
    assert [pair.b.steps[n].gone for n in (1, 2)] == ["erased", "erased"]
    assert (pair.unknown, pair.a.gone, pair.b.gone) == (2, 1, 2)
    assert pair.divergence is not None
    assert pair.divergence.what == ("value",)
    assert any("erased or pruned" in note for note in pair.notes)
    assert session.history.compare("@1.2", "@1.2").pairs[0].divergence is None


def test_pruned_attempts_do_not_stop_a_comparison(store: Store) -> None:
    session = store.session("s")
    for n in range(2):
        with session.turn(user="go", retry=n > 0):
            call(session, "t", n, LARGE)
            session.fact("k", n)
    first = session.history.attempts(1)[0]
    prune(session.log, first.last)
    pair = session.history.compare("@1.1", "@1.2").pairs[0]
    assert {step.gone for step in pair.a.steps} == {"pruned"}
    assert {row.verdict for row in pair.rows} <= {"unknown", "only a", "only b"}


def test_an_outcome_whose_request_lies_before_still_names_its_tool(store: Store) -> None:
    session = store.session("s")
    session.append(events.ActionRequested(action="a", tool="mail", input={"to": "x"}))
    before = session.head.seq
    session.append(events.ActionSucceeded(action="a", output="sent"))
    (step,) = gather(session.log, session.log.entries(after=before)).steps
    assert (step.kind, step.name, step.input, step.output) == ("tool", "mail", {"to": "x"}, "sent")
