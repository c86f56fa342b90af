"""What each kind of event does to the state, one row a kind. A kind that is missing here fails the last test."""

from copy import deepcopy
from typing import Any

from tests.every import every
from wakelog.codec.records import PayloadCollector, check_event, decode_event, decode_ops, encode_delta, encode_event
from wakelog.model import events as ev
from wakelog.model.document import REWOUND_PARTS, empty_document
from wakelog.state.effects import EventPlace, effect_of
from wakelog.state.fold import Fold
from wakelog.state.patch import equal
from wakelog.state.rewind import restore, rewind_delta

Doc = dict[str, Any]

COST = ev.Cost(tokens_in=2, tokens_out=3, usd_micros=7, duration_us=11)
SPENT = {"tokens": 5, "usd_micros": 7, "duration_us": 11}
REQUESTED = ev.ActionRequested(action="a/1", tool="search", key="k", input_hash="h")
PENDING = {
    **{"tool": "search", "status": "requested", "effect": "external", "seq": 1, "turn": 3},
    **{"key": "k", "input_hash": "h"},
}


def after(*events: ev.Event, doc: Doc | None = None, turn: int = 3, **place: str) -> Doc:
    """The state after events at 1, 2, 3 …"""
    doc = empty_document() if doc is None else deepcopy(doc)
    fold = Fold(doc)
    for seq, event in enumerate(events, 1):
        fold.apply(deepcopy(effect_of(fold.doc, event, EventPlace(seq, turn, **place))))
    return fold.doc


def changed(doc: Doc, before: Doc | None = None) -> Doc:
    """The top-level parts that are not what they were."""
    before = empty_document() if before is None else before
    return {part: value for part, value in doc.items() if not equal(value, before[part])}


# kind → (events of which the last is of that kind, the parts that differ from an empty state in the end)
ROWS: dict[str, tuple[tuple[ev.Event, ...], Doc]] = {
    "session.paused": ((ev.SessionPaused(),), {"status": "paused"}),
    "session.resumed": ((ev.SessionPaused(), ev.SessionResumed(host="h")), {"status": "active"}),
    "session.closed": ((ev.SessionClosed(),), {"status": "closed"}),
    "session.reopened": ((ev.SessionClosed(), ev.SessionReopened()), {"status": "active"}),
    "session.archived": ((ev.SessionClosed(), ev.SessionArchived()), {"status": "archived"}),
    "session.deleted": ((ev.SessionDeleted(),), {"status": "deleted"}),
    "session.forked": (
        (
            ev.TurnStarted(),
            ev.LeaseTaken(epoch=4, holder="w"),
            ev.SessionForked(parent="s", at=2, hash="00"),
        ),
        {"turn": {"number": 3, "attempt": 1, "status": "interrupted"}},
    ),
    "lease.taken": ((ev.LeaseTaken(epoch=4, holder="w"),), {"lease": {"epoch": 4, "holder": "w"}}),
    "lease.released": (
        (ev.LeaseTaken(epoch=4, holder="w"), ev.LeaseReleased(epoch=4)),
        {"lease": {"epoch": 4, "holder": ""}},
    ),
    "goal.set": ((ev.GoalSet(goal="g"),), {"goal": "g"}),
    "labels.set": (
        (ev.LabelsSet(labels={"a/b": "1", "c": "2"}), ev.LabelsSet(labels={"c": None, "d": "3", "e": None})),
        {"labels": {"a/b": "1", "d": "3"}},
    ),
    "turn.started": (
        (ev.TurnStarted(),),
        {"status": "active", "turn": {"number": 3, "attempt": 1, "status": "open"}},
    ),
    "turn.ended": (
        (ev.TurnStarted(), ev.TurnEnded(outcome="failed", error=ev.Failure("io", message="m"))),
        {
            "status": "active",
            "turn": {"number": 3, "attempt": 1, "status": "failed"},
            "last_error": {"type": "io", "message": "m", "tool": "", "seq": 2},
        },
    ),
    "message.added": ((ev.MessageAdded(role="user", content="hello"),), {}),
    "action.requested": (
        (REQUESTED,),
        {"pending_actions": {"a/1": PENDING}, "tools_used": {"search": {"calls": 1, "errors": 0, "last": 1}}},
    ),
    "action.recorded": (
        (
            ev.ActionRecorded(action="a", tool="search", cost=COST),
            ev.ActionRecorded(action="b", tool="search", outcome="failed", error=ev.Failure("io", message="m")),
            ev.ActionRecorded(action="c", tool="search", outcome="timed_out"),
        ),
        {
            "tools_used": {"search": {"calls": 3, "errors": 2, "last": 3}},
            "last_error": {"type": "timeout", "message": "", "tool": "search", "seq": 3},
            "budget": {"limits": {}, "spent": SPENT},
        },
    ),
    "action.approved": (
        (ev.ActionRequested(action="a", tool="t", approval=True, effect="write"), ev.ActionApproved(action="a")),
        {
            "pending_actions": {"a": {"tool": "t", "status": "requested", "effect": "write", "seq": 1, "turn": 3}},
            "tools_used": {"t": {"calls": 1, "errors": 0, "last": 1}},
        },
    ),
    "action.denied": (
        (REQUESTED, ev.ActionDenied(action="a/1")),
        {"tools_used": {"search": {"calls": 1, "errors": 0, "last": 1}}},
    ),
    "action.started": (
        (REQUESTED, ev.ActionStarted(action="a/1", attempt=2)),
        {
            "pending_actions": {"a/1": {**PENDING, "status": "running", "attempt": 2}},
            "tools_used": {"search": {"calls": 1, "errors": 0, "last": 1}},
        },
    ),
    "action.succeeded": (
        (REQUESTED, ev.ActionSucceeded(action="a/1", output="o", cost=COST)),
        {
            "tools_used": {"search": {"calls": 1, "errors": 0, "last": 1}},
            "budget": {"limits": {}, "spent": SPENT},
        },
    ),
    "action.failed": (
        (
            REQUESTED,
            ev.ActionFailed(action="a/1", error=ev.Failure("x"), retry=True, cost=COST),
            ev.ActionFailed(action="a/1", error=ev.Failure("io", message="m")),
        ),
        {
            "tools_used": {"search": {"calls": 1, "errors": 2, "last": 1}},
            "last_error": {"type": "io", "message": "m", "tool": "search", "seq": 3},
            "budget": {"limits": {}, "spent": SPENT},
        },
    ),
    "action.timed_out": (
        (REQUESTED, ev.ActionStarted(action="a/1"), ev.ActionTimedOut(action="a/1", retry=True)),
        {
            "pending_actions": {"a/1": {**PENDING, "attempt": 1}},
            "tools_used": {"search": {"calls": 1, "errors": 1, "last": 1}},
            "last_error": {"type": "timeout", "message": "", "tool": "search", "seq": 3},
        },
    ),
    "action.uncertain": (
        (REQUESTED, ev.ActionUncertain(action="a/1")),
        {
            "pending_actions": {"a/1": {**PENDING, "status": "uncertain"}},
            "tools_used": {"search": {"calls": 1, "errors": 0, "last": 1}},
        },
    ),
    "action.reconciled": (
        (REQUESTED, ev.ActionUncertain(action="a/1"), ev.ActionReconciled(action="a/1", outcome="succeeded")),
        {"tools_used": {"search": {"calls": 1, "errors": 0, "last": 1}}},
    ),
    "action.abandoned": (
        (REQUESTED, ev.ActionAbandoned(action="a/1", inherited=True)),
        {"tools_used": {"search": {"calls": 1, "errors": 0, "last": 1}}},
    ),
    "action.evidence": ((ev.ActionEvidence(action="a/1", outcome="succeeded"),), {}),
    "input.requested": (
        (ev.InputRequested(request="q", prompt="sure?"),),
        {
            "pending_actions": {
                "q": {
                    "tool": "input",
                    "status": "waiting",
                    "effect": "read",
                    "seq": 1,
                    "turn": 3,
                    "prompt": "sure?",
                }
            }
        },
    ),
    "input.answered": (
        (ev.InputRequested(request="q", prompt="sure?"), ev.InputAnswered(request="q", answer="yes")),
        {},
    ),
    "decision.made": (
        (
            ev.DecisionMade(choice="c", because="b", alternatives=("x",), evidence=(1, "url")),
            ev.DecisionMade(choice="d"),
        ),
        {
            "decisions_made": {
                "1": {"choice": "c", "turn": 3, "because": "b", "alternatives": ["x"], "evidence": [1, "url"]},
                "2": {"choice": "d", "turn": 3},
            }
        },
    ),
    "fact.recorded": (
        (ev.FactRecorded(key="a/b", value=[1]), ev.FactRecorded(key="a/b", value={"x": None})),
        {"facts": {"a/b": {"value": {"x": None}, "seq": 2}}},
    ),
    "fact.retracted": (
        (ev.FactRecorded(key="a/b", value=1), ev.FactRetracted(key="a/b"), ev.FactRetracted(key="never")),
        {},
    ),
    "dead_end.noted": (
        (ev.DeadEndNoted(tried="t", learned="l"),),
        {"dead_ends": {"1": {"tried": "t", "learned": "l", "turn": 3}}},
    ),
    "artefact.recorded": (
        (ev.ArtefactRecorded(name="n", uri="u", media="m", content="c"),),
        {"artefacts": {"n": {"uri": "u", "media": "m", "seq": 1}}},
    ),
    "file.changed": (
        (ev.FileChanged(path="/x/y.py", change="created"), ev.FileChanged(path="/x/y.py")),
        {
            "files_modified": {"/x/y.py": {"changes": 2, "last": 2, "change": "modified"}},
            "working_set": {"files": {"/x/y.py": 2}, "apps": {}, "data_sources": {}},
        },
    ),
    "resource.touched": (
        (
            ev.ResourceTouched(resource="f", category="file"),
            ev.ResourceTouched(resource="a", category="app"),
            ev.ResourceTouched(resource="u", mode="write"),
        ),
        {"working_set": {"files": {"f": 1}, "apps": {"a": 2}, "data_sources": {"u": 3}}},
    ),
    "subagent.spawned": (
        (ev.SubagentSpawned(session="s", task="t"),),
        {"subagents": {"s": {"task": "t", "status": "running", "seq": 1}}},
    ),
    "subagent.returned": (
        (ev.SubagentSpawned(session="s", task="t"), ev.SubagentReturned(session="s", cost=COST)),
        {
            "subagents": {"s": {"task": "t", "status": "completed", "seq": 2}},
            "budget": {"limits": {}, "spent": SPENT},
        },
    ),
    "context.evicted": (
        (ev.ContextEvicted(key="k", handle=7, tokens=9),),
        {"evicted_keys": {"k": {"handle": 7, "tokens": 9, "seq": 1}}},
    ),
    "context.restored": (
        (ev.ContextEvicted(key="k", handle=7), ev.ContextRestored(key="k"), ev.ContextRestored(key="never")),
        {},
    ),
    "state.patched": (
        (ev.StatePatched(patch=[{"op": "add", "path": "/data/x", "value": [1]}]),),
        {"data": {"x": [1]}},
    ),
    "budget.set": (
        (ev.BudgetSet(limits={"tokens": 5, "usd_micros": 6}), ev.BudgetSet(limits={"tokens": None, "duration_us": 1})),
        {"budget": {"limits": {"usd_micros": 6, "duration_us": 1}, "spent": {}}},
    ),
    "budget.spent": (
        (ev.BudgetSpent(cost=COST), ev.BudgetSpent(cost=COST)),
        {"budget": {"limits": {}, "spent": {k: 2 * v for k, v in SPENT.items()}}},
    ),
    "budget.reached": ((ev.BudgetReached(limit="tokens"),), {}),
    "trust.endorsed": ((ev.TrustEndorsed(targets=(1,)),), {}),
    "step.invalidated": ((ev.StepInvalidated(targets=(1,)),), {}),
    "flag.raised": (
        (ev.FlagRaised(flag="f", rule="r", message="m", severity="error"),),
        {"flags": {"f": {"rule": "r", "message": "m", "severity": "error", "seq": 1}}},
    ),
    "flag.cleared": ((ev.FlagRaised(flag="f"), ev.FlagCleared(flag="f"), ev.FlagCleared(flag="never")), {}),
    "history.compacted": (
        (ev.HistoryCompacted(first=1, last=2, summary="s"),),
        {"evicted_keys": {"e1:e1..e2": {"handle": 1, "tokens": 0, "seq": 1}}},
    ),
    "history.expanded": (
        (
            ev.HistoryCompacted(first=1, last=2, summary="s"),
            ev.HistoryCompacted(first=4, last=5, summary="s"),
            ev.ContextEvicted(key="k", handle=1),
            ev.HistoryExpanded(compacted=1),
            ev.HistoryExpanded(compacted=9),
        ),
        {
            "evicted_keys": {
                "e2:e4..e5": {"handle": 2, "tokens": 0, "seq": 2},
                "k": {"handle": 1, "tokens": 0, "seq": 3},
            }
        },
    ),
    "payload.redacted": ((ev.PayloadRedacted(target=1, markers=("key",)),), {}),
    "payload.erased": ((ev.PayloadErased(erased=()),), {}),
    "range.pruned": ((ev.RangePruned(upto=1, last_hash="", base=None),), {}),
    "checkpoint.named": (
        (
            ev.CheckpointNamed(name="a", at=1),
            ev.CheckpointNamed(name="b/c", at=2),
            ev.CheckpointNamed(name="a", at=1, remove=True),
            ev.CheckpointNamed(name="never", at=1, remove=True),
        ),
        {"checkpoints": {"b/c": 2}},
    ),
    "note.added": ((ev.NoteAdded(text="t"),), {}),
    "gap.noted": ((ev.GapNoted(missed="m"),), {}),
    "knowledge.recalled": ((ev.KnowledgeRecalled(sources=("s_x@1",), lines=("fact",)),), {}),
    "git_commit.linked": ((ev.GitCommitLinked(commit="c", turn=1),), {}),
    "items.kept": ((ev.ItemsKept(format="f", counts=(2,)),), {}),
    "records.imported": ((ev.RecordsImported(format="f", ids=("1",), counts=(2,)),), {}),
}
# Told by tests of their own: these need more than an event and an empty state.
ELSEWHERE = {"session.opened", "history.rewound", "history.adopted"}


@every("kind", sorted(ROWS))
def test_an_event_changes_these_parts_of_the_state_and_no_others(kind: str) -> None:
    events, parts = ROWS[kind]
    assert events[-1].kind == kind
    assert changed(after(*events)) == parts


def test_every_kind_has_its_row() -> None:
    assert set(ROWS) | ELSEWHERE == set(ev.KINDS)


def test_opening_gives_the_whole_initial_state() -> None:
    opened = ev.SessionOpened(goal="g", labels={"l": "1"}, limits={"tokens": 9}, data={"d": [1]})
    fold = Fold()
    fold.apply(deepcopy(effect_of({}, opened, EventPlace(1, 0))))
    assert changed(fold.doc) == {
        "goal": "g",
        "labels": {"l": "1"},
        "budget": {"limits": {"tokens": 9}, "spent": {}},
        "data": {"d": [1]},
    }


def test_a_retried_turn_keeps_its_number_and_counts_its_attempts() -> None:
    turn = after(
        ev.TurnStarted(), ev.TurnEnded(), ev.TurnStarted(retry=True), ev.TurnEnded(), ev.TurnStarted(retry=True)
    )
    assert turn["turn"] == {"number": 3, "attempt": 3, "status": "open"}


def test_distrust_is_kept_with_the_fact_and_by_source() -> None:
    doc = after(ev.FactRecorded(key="k", value=1), trust="untrusted", source="web/page")
    assert doc["facts"]["k"] == {"value": 1, "seq": 1, "trust": "untrusted"}
    assert doc["trust"] == {"web/page": {"trust": "untrusted", "seq": 1}}


def test_effects_change_nothing_they_are_given() -> None:
    for events, _ in ROWS.values():
        doc = after(*events[:-1])
        before = deepcopy(doc)
        effect_of(doc, events[-1], EventPlace(9, 3))
        assert equal(doc, before)


@every("kind", sorted(ROWS))
def test_a_delta_is_what_is_read_from_its_bytes(kind: str) -> None:
    """It is folded as it is, by whoever appends; everybody else folds what was stored."""
    events, _ = ROWS[kind]
    event = decode_event(kind, encode_event(check_event(events[-1]), PayloadCollector({}))[0])
    delta = effect_of(after(*events[:-1]), event, EventPlace(9, 3, trust="untrusted", source="web"))
    assert equal(decode_ops(encode_delta(delta)), delta)


def _lived() -> Doc:
    """A state with something in every part."""
    return after(
        ev.TurnStarted(),
        ev.GoalSet(goal="g"),
        ev.LabelsSet(labels={"l": "1"}),
        REQUESTED,
        ev.ActionRequested(action="b", tool="t"),
        ev.ActionFailed(action="b", error=ev.Failure("io")),
        ev.FileChanged(path="f"),
        ev.DecisionMade(choice="c"),
        ev.FactRecorded(key="k", value=1),
        ev.DeadEndNoted(tried="t"),
        ev.ArtefactRecorded(name="n"),
        ev.SubagentSpawned(session="s"),
        ev.ContextEvicted(key="k", handle=1),
        ev.BudgetSpent(cost=COST),
        ev.FlagRaised(flag="f"),
        ev.CheckpointNamed(name="c", at=1),
        ev.LeaseTaken(epoch=1, holder="w"),
        ev.StatePatched(patch=[{"op": "add", "path": "/data/x", "value": 1}]),
        trust="unverified",
    )


def test_a_rewind_brings_back_what_can_be_brought_back_and_nothing_else() -> None:
    now, then = _lived(), empty_document()
    fold = Fold(deepcopy(now))
    fold.apply(rewind_delta(now, then, seq=20, to=1))
    for part, value in fold.doc.items():
        if part == "view":
            assert value == {"rewound": 20, "to": 1}
        elif part in REWOUND_PARTS:
            assert equal(value, then[part]), part
        else:
            assert equal(value, now[part]), part


def test_what_is_never_brought_back() -> None:
    kept = set(empty_document()) - set(REWOUND_PARTS)
    assert kept == {
        *("status", "turn", "view", "lease", "pending_actions", "dead_ends", "subagents"),
        *("budget", "flags", "checkpoints", "trust"),
    }


def test_going_back_to_where_one_is_changes_nothing() -> None:
    assert restore(_lived(), _lived()) == []
