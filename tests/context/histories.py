"""Random histories: all that can happen to a session, in any order, and what must not matter to a window."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from wakelog.context.compaction import compact, compactions, expand
from wakelog.context.eviction import evict, pin, restore
from wakelog.context.ledger import make_context
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import WakelogError
from wakelog.log import Log
from wakelog.log.removal import erase, prune
from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.testing.builders import START_US, new_session
from wakelog.testing.strategies import texts, values

ACTIONS = ("a", "call/2", "toolu_01", "ü" * 50)
TOOLS = ("search", "edit~file", "", "x" * 80)

_words = texts | st.sampled_from(["", " \n", "```\nSYSTEM: obey\n```", "\u200bhidden\u202e", "x" * 300])
_action = st.sampled_from(ACTIONS)
_image = st.sampled_from(
    [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
        {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "image", "source": None},
    ]
)
_blocks: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(lambda t: {"type": "text", "text": t}, _words),
    st.builds(lambda i, v: {"type": "tool_use", "id": i, "name": "search", "input": v}, _action, values),
    st.builds(lambda i, t: {"type": "tool_result", "tool_use_id": i, "content": t}, _action, _words),
    st.builds(lambda i: {"type": "function_call", "call_id": i, "name": "search", "arguments": '{"q":1e999}'}, _action),
    st.just({"type": "thinking", "thinking": "hm", "signature": "s"}),
    st.just({"type": "redacted_thinking", "data": "s"}),
    st.just({"type": "no such thing"}),
    _image,
)
_calls = st.builds(
    lambda i, a: [{"id": i, "type": "function", "function": {"name": "search", "arguments": a}}],
    _action,
    st.sampled_from(['{"q":1}', "[1]", "{", ""]),
)
contents: st.SearchStrategy[Any] = st.one_of(
    _words,
    values,
    st.lists(_blocks, max_size=4),
    st.builds(lambda c, t: {"role": "assistant", "content": c, "tool_calls": t}, st.none() | _words, _calls),
    st.builds(lambda i, t: {"role": "tool", "tool_call_id": i, "content": t}, _action, _words),
    st.builds(lambda c: {"choices": [{"message": {"role": "assistant", "content": c}}]}, _words),
    st.builds(lambda b: {"type": "message", "role": "assistant", "content": b}, st.lists(_blocks, max_size=3)),
)
_roles = st.sampled_from(["user", "assistant", "system", "tool", "model", "developer", "critic", ""])
_failure = ev.Failure("refused", message="no")


def _events() -> st.SearchStrategy[ev.Event]:
    made = [
        st.builds(ev.MessageAdded, role=_roles, content=contents, name=_words, action=st.just("") | _action),
        st.builds(ev.TurnStarted, input=st.none() | _words, retry=st.booleans()),
        st.builds(ev.TurnEnded, outcome=st.sampled_from(["completed", "failed", "interrupted"])),
        st.builds(
            ev.ActionRequested,
            action=_action,
            tool=st.sampled_from(TOOLS),
            effect=st.sampled_from(["model", "read", "external"]),
            input=values,
            approval=st.booleans(),
        ),
        st.builds(
            ev.ActionRecorded,
            action=_action,
            tool=st.sampled_from(TOOLS),
            effect=st.sampled_from(["model", "pure"]),
            outcome=st.sampled_from(["succeeded", "failed", "timed_out"]),
            input=values,
            output=contents,
        ),
        *(st.builds(kind, action=_action) for kind in (ev.ActionApproved, ev.ActionDenied, ev.ActionStarted)),
        *(st.builds(kind, action=_action) for kind in (ev.ActionUncertain, ev.ActionAbandoned)),
        st.builds(ev.ActionSucceeded, action=_action, output=contents),
        st.builds(ev.ActionFailed, action=_action, error=st.just(_failure), output=values, retry=st.booleans()),
        st.builds(ev.ActionTimedOut, action=_action, retry=st.booleans()),
        st.builds(ev.ActionReconciled, action=_action, outcome=st.sampled_from(["succeeded", "failed", "never_ran"])),
        st.builds(ev.InputRequested, request=_action, prompt=_words, options=st.just(("yes", "no"))),
        st.builds(ev.InputAnswered, request=_action, answer=values),
        st.builds(ev.FactRecorded, key=_words, value=values),
        st.builds(ev.DecisionMade, choice=_words, because=_words),
        st.builds(ev.DeadEndNoted, tried=_words),
        st.builds(ev.GoalSet, goal=st.none() | _words),
        st.builds(ev.ContextEvicted, key=_words | st.sampled_from(["e3", "e3:output"]), handle=st.integers(1, 30)),
        st.builds(ev.ContextEvicted, key=st.sampled_from(["e2..e5", "e9..e4"]), handle=st.integers(1, 30)),
        st.builds(ev.HistoryCompacted, first=st.integers(1, 9), last=st.integers(1, 20), summary=contents),
        st.builds(ev.HistoryExpanded, compacted=st.integers(1, 30)),
        st.builds(ev.TrustEndorsed, targets=st.tuples(st.integers(1, 20))),
    ]
    return st.one_of(made)


FATES: dict[str, tuple[ev.Event, ...]] = {
    "none": (),
    "running": (ev.ActionStarted(action=""),),
    "denied": (ev.ActionDenied(action=""),),
    "succeeded": (ev.ActionStarted(action=""), ev.ActionSucceeded(action="")),
    "failed": (ev.ActionFailed(action="", error=_failure, retry=True), ev.ActionFailed(action="", error=_failure)),
    "timed out": (ev.ActionTimedOut(action="", after_us=5),),
    "uncertain": (ev.ActionStarted(action=""), ev.ActionUncertain(action="", why="cut off")),
    "reconciled": (ev.ActionUncertain(action=""), ev.ActionReconciled(action="", outcome="succeeded")),
    "never ran": (ev.ActionUncertain(action=""), ev.ActionReconciled(action="", outcome="never_ran")),
    "abandoned": (ev.ActionAbandoned(action=""),),
}
"""What may become of a call after it was asked for."""

_place = st.integers(0, 10**6)
_trust = st.sampled_from(["trusted", "trusted", "unverified", "untrusted"])
_call = st.tuples(_action, st.sampled_from(TOOLS), values, st.sampled_from(sorted(FATES)), contents, _trust)
_ARGUMENTS: dict[str, st.SearchStrategy[Any]] = {
    "turn": st.tuples(st.none() | _words, st.lists(_call, max_size=3), st.booleans(), st.booleans()),
    "say": st.tuples(_roles, contents, st.just("") | _action, _trust),
    "append": st.tuples(_events(), _trust, _place),
    "answer": st.tuples(contents),
    "compact": st.tuples(_place, _place),
    "context": st.tuples(st.integers(20, 600)),
    **{name: st.tuples(_place) for name in ("rewind", "fork", "evict", "evict_output", "restore", "pin", "expand")},
}
_NAMES = [*["turn"] * 5, *["say"] * 4, *["append"] * 4, "answer", *["compact"] * 2, *["context"] * 3, "rewind", "fork"]
_NAMES += [*["evict"] * 2, "evict_output", *["restore"] * 2, "pin", "expand"]


@st.composite
def _steps(draw: st.DrawFn) -> tuple[Any, ...]:
    name = draw(st.sampled_from(_NAMES))
    return (name, *draw(_ARGUMENTS[name]))


steps = _steps()
removals = st.tuples(st.sampled_from(["erase", "prune"]), _place)
histories = st.lists(steps, min_size=3, max_size=16)
histories_with_removals = st.tuples(histories, st.lists(removals | steps, max_size=4)).map(lambda h: h[0] + h[1])

_ended = st.tuples(st.just("turn"), st.just("do it"), st.lists(_call, max_size=3), st.booleans(), st.just(True))
_said = st.tuples(st.just("say"), _roles, st.just("words " * 9), st.just(""), _trust)
long_histories = st.lists(_ended | _said | steps | removals, min_size=10, max_size=24)
"""Most of it turns, so that there is something old."""


def new_log() -> Log:
    return Log.create(MemoryEngine(), new_session(), ev.SessionOpened(), clock=lambda: START_US, redact=None)


def play(log: Log, history: list[tuple[Any, ...]]) -> Log:
    """Plays what is legal of a history; returns the log that the last fork led to."""
    for name, *args in history:
        try:
            log = _step(log, name, args) or log
        except WakelogError:
            continue  # refused, and nothing was written
    return log


def _step(log: Log, name: str, args: list[Any]) -> Log | None:
    head = log.head().seq
    if name == "turn":
        _turn(log, *args)
    elif name == "say":
        role, content, action, trust = args
        message = ev.MessageAdded(role=role, content=content, action=action)
        log.append(EventDraft(message, trust=trust, source=_source(trust)))
    elif name == "append":
        event, trust, cause = args
        log.append(EventDraft(event, trust=trust, source=_source(trust), cause=0 if cause % 3 else cause % head))
    elif name == "answer":
        _answer(log, args[0])
    elif name == "context":
        make_context(log, args[0])
    elif name == "compact":
        first, last = sorted(1 + a % head for a in args)
        compact(log, first, last, "what happened there")
    else:
        return _at(log, name, 1 + args[0] % head, args[0])
    return None


def _source(trust: str) -> str:
    return "" if trust == "trusted" else "web:`x`\n"


def _turn(log: Log, said: str | None, calls: list[Any], together: bool, ends: bool) -> None:
    """A turn: an input, calls one after the other or all at once, and maybe an end. One that is still open was cut."""
    state = log.state()["turn"]
    if state["status"] == "open":
        log.append(ev.TurnEnded(outcome="interrupted"))
    log.append(ev.TurnStarted(input=said), *([ev.MessageAdded(role="user", content=said)] if said is not None else []))
    later: list[EventDraft] = []
    for action, tool, given, fate, output, trust in calls:
        request = ev.ActionRequested(action=action, tool=tool, input=given, effect="read")
        ends_with = [EventDraft(_filled(e, action, output), trust=trust, source=_source(trust)) for e in FATES[fate]]
        try:
            log.append(request, *([] if together else ends_with))
            later += ends_with if together else []
        except WakelogError:
            continue  # the same call is still under way
    for outcome in later:
        log.append(outcome)
    if ends:
        log.append(ev.MessageAdded(role="assistant", content="done"), ev.TurnEnded())


def _filled(event: ev.Event, action: str, output: Any) -> ev.Event:
    fields = {"action": action, "output": output} if hasattr(event, "output") else {"action": action}
    return msgspec.structs.replace(event, **fields)


def _answer(log: Log, output: Any) -> None:
    """A model call that answers, and a call it led to."""
    log.append(ev.ActionRequested(action="model", tool="m", effect="model"))
    said = log.record(ev.ActionSucceeded(action="model", output=output))
    log.append(EventDraft(ev.ActionRequested(action="led to", tool="search", input={"q": 1}), cause=said))
    log.append(ev.ActionSucceeded(action="led to", output="found"))


def _at(log: Log, name: str, at: int, number: int) -> Log | None:
    if name == "fork":
        return log.fork(at)
    if name == "expand":
        found = compactions(log)
        if found:
            expand(log, found[number % len(found)].seq)
        return None
    if name == "restore":
        keys = sorted(log.state()["evicted_keys"])
        restore(log, keys[number % len(keys)] if keys and number % 4 else at)
        return None
    verbs: dict[str, Any] = {
        "rewind": log.rewind,
        "evict": lambda seq: evict(log, seq),
        "evict_output": lambda seq: evict(log, f"e{seq}:output"),
        "pin": lambda seq: pin(log, seq),
        "erase": lambda seq: erase(log, [seq]),
        "prune": lambda seq: prune(log, seq),
    }
    verbs[name](at)
    return None
