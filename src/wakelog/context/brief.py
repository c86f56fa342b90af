"""The brief: the handoff that the next run, machine or agent reads.

It has the goal, the current position, pending calls and what to do about them, then what is known, the most useful
first. It is read from the state and the end of the last turn, so its cost does not depend on the length of the session,
and the same session at the same point gives the same text. What does not fit is counted, with the command that shows
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from wakelog.context.quotes import one_line
from wakelog.context.sections import StateWriter
from wakelog.context.token_budget import Part, Section, SectionLine, fit
from wakelog.context.token_count import Count, estimate
from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.insight.derivation import make_insight
from wakelog.insight.items import InsightItem
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.agent_words import is_aside
from wakelog.model.call_acts import act_of_call
from wakelog.model.ids import Seq, SessionId
from wakelog.model.json_fields import as_list, as_text, text_in
from wakelog.model.parts import Asked, flat, parts_of
from wakelog.model.trust import Trust, least_trusted
from wakelog.model.values import Value
from wakelog.timeline.messages import content_of

_CODE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
"""Code blocks, which are unreadable on one line among prose."""

DEFAULT_BUDGET = 2000
TURNS_READ = 3
"""In how many of the last turns the agent's words are searched for decisions that it did not record."""
_DERIVED = {"answer": "the user chose", "decision": "decision", "approach_change": "change", "dead_end": "dead end"}
TAIL = 400
"""How many events at the end are searched for the last words."""


class Brief(msgspec.Struct, frozen=True):
    """The handoff, as text and in parts."""

    session: SessionId
    name: str
    at: Seq
    status: str
    turn: int
    goal: Value
    text: str
    tokens: int
    budget: int
    exposure: Trust
    """The least trust among its lines."""
    sections: tuple[Section, ...]

    def __str__(self) -> str:
        return self.text


def make_brief(
    log: Log,
    budget: int = DEFAULT_BUDGET,
    *,
    at: Seq | None = None,
    count: Count = estimate,
    wanted: Sequence[tuple[str, str]] = (),
) -> Brief:
    """The brief of a session at a point, or now, in at most `budget` tokens. `wanted` are its preferences, each with
    its source."""
    head = log.head()
    at, state = log.now() if at is None else (at, log.state(at))
    writer = StateWriter(log, state)
    opening = _head(writer, at, max(80, budget))
    parts = [
        writer.pending(),
        _state_part(writer, at, opening),
        *([writer.last_error()] if state["last_error"] and not _is_error_over(writer, at) else ()),
        writer.flags(),
        _preferences(wanted),
        writer.decisions(),
        writer.facts(),
        writer.dead_ends(),
        _derived(writer, at),
        writer.data(),
        writer.files(),
        writer.artefacts(),
        writer.subagents(),
        writer.budget(),
        writer.working_set(),
        writer.evicted(),
    ]
    fitted = fit(opening, parts, budget, count, rest=f"`wakelog state -s {writer.handle}`")
    if fitted.tokens > budget:
        raise InvalidInputError(
            f"a brief of {writer.handle} does not fit into {budget} tokens: its head alone takes {count(opening)}",
            kind="budget-too-small",
            hint=f"give it at least {fitted.tokens}",
        )
    lines = [line for section in fitted.sections for line in section.lines]
    text = fitted.text.rstrip()
    return Brief(
        session=log.id,
        name=head.name,
        at=at,
        status=state["status"],
        turn=state["turn"]["number"],
        goal=state["goal"],
        text=text + "\n",
        tokens=count(text),
        budget=budget,
        exposure=least_trusted((line.trust, line.source) for line in [*lines, *_goal_lines(writer)])[0],
        sections=fitted.sections,
    )


def _preferences(wanted: Sequence[tuple[str, str]]) -> Part:
    lines = (SectionLine(f"- {one_line(text, 300)} ({source})") for text, source in wanted)
    return Part("preferences", "Preferences", len(wanted), lines, "`wakelog preferences`")


def _head(writer: StateWriter, at: Seq, budget: int) -> str:
    """What every brief says, however short: which session, its position, and the goal."""
    state, head = writer.state, writer.log.head()
    turn = state["turn"]
    place = [str(writer.log.id), state["status"], f"e{at}"]
    if turn["number"]:
        tries = f" (attempt {turn['attempt']})" if turn["attempt"] > 1 else ""
        place.append(f"turn @{turn['number']} {turn['status']}{tries}")
    if head.fork:
        place.append(f"fork of {head.fork.parent} at e{head.fork.at}")
    goal = "none was set" + _asked_for(writer, at)
    if state["goal"] is not None:
        goal = writer.goal_line(budget).text.removeprefix("- goal, ").removeprefix("- ")
    return f"# Brief of {one_line(str(head), 80)}\n{' · '.join(place)}\n\nGoal: {goal}"


def _asked_for(writer: StateWriter, at: Seq) -> str:
    """If no goal was recorded: what the user asked for in the last turn, if that can be derived."""
    turn = writer.state["turn"]["number"]
    if not turn or writer.state["goal"] is not None:
        return ""
    items = make_insight(writer.log, [turn], at=at).of("goal")
    if not items:
        return ""
    item = items[0]
    # "go on" carries what was asked earlier: those words, from their own event and as trusted as that is.
    words, seq = (item.reason, item.reason_seq) if item.reason else (item.quote, item.seq)
    return f"; ~ {writer.said(words, seq, what='asked', lead='asked: ').text.removeprefix('- ')}"


def _goal_lines(writer: StateWriter) -> list[SectionLine]:
    return [writer.goal_line()] if writer.state["goal"] is not None else []


def _is_error_over(writer: StateWriter, at: Seq) -> bool:
    """Whether the last error no longer matters: the same call was repeated with success, or the agent did other things
    in a later turn. A failed look, or a failed step in a turn that completed, is over after any success; a failed check
    is not. Only the end of the log is searched; an older error is over."""
    error, turn = writer.state["last_error"], writer.state["turn"]
    try:
        failed = writer.log.entry(error["seq"])
    except NotFoundError:
        return True
    act = _act(writer.log, failed)
    ended_well = turn["number"] == failed.header.turn and turn["status"] == "completed"
    is_minor = act == "look" or (ended_well and act != "check")
    for entry in _tail(writer, at):
        if entry.seq <= failed.seq:
            return False
        if entry.kind not in ("action.recorded", "action.succeeded") or not _went_well(entry):
            continue
        if is_minor or entry.header.turn != failed.header.turn:
            return True
        if _attempted(writer.log, entry) == _attempted(writer.log, failed):
            return True
    return True


def _act(log: Log, entry: Entry) -> str:
    """What a call did: look, check, change or run something."""
    if entry.kind != "action.recorded" and entry.header.cause:
        entry = log.entry(entry.header.cause)
    tool, effect = as_text(entry.body.get("tool")), as_text(entry.body.get("effect"))
    return act_of_call(tool, effect, content_of(log, entry, "input"))


def _went_well(entry: Entry) -> bool:
    return entry.kind == "action.succeeded" or entry.body.get("outcome", "succeeded") == "succeeded"


def _attempted(log: Log, entry: Entry) -> tuple[str, str]:
    """What a call tried: its tool, with the first words of a command or the file of an edit."""
    if entry.kind != "action.recorded" and entry.header.cause:
        entry = log.entry(entry.header.cause)
    given = content_of(log, entry, "input")
    if not isinstance(given, dict):
        return as_text(entry.body.get("tool")), ""
    command = next((given[k] for k in ("command", "cmd", "script") if given.get(k)), "")
    words = command.split() if isinstance(command, str) else [str(w) for w in as_list(command)]
    if len(words) > 2 and words[1] in ("-c", "-lc"):
        words = words[2].split()  # a shell was asked to run it
    about = " ".join(words[:3]) or next((text_in(given, k) for k in ("file_path", "path") if given.get(k)), "")
    return as_text(entry.body.get("tool")), about


def _state_part(writer: StateWriter, at: Seq, opening: str) -> Part:
    # Lines that the opening has already, as the goal, are not repeated.
    lines = [line for line in _last_words(writer, at) if line.text.removeprefix("- ") not in opening]
    rest = f"`wakelog log {writer.handle}`"
    return Part("standing", "Where it stands", len(lines), iter(lines), rest, weight=2)


def _derived(writer: StateWriter, at: Seq) -> Part:
    """What can be derived from the agent's words in the last turns, if it recorded nothing itself."""
    last = writer.state["turn"]["number"]
    turns = range(max(1, last - TURNS_READ + 1), last + 1)
    insight = make_insight(writer.log, turns, goals=False, at=at) if last else None
    items = [item for item in insight.items if item.kind in _DERIVED and item.quote][::-1] if insight else []
    lines = (_derived_line(writer, item) for item in items)
    rest = f"`wakelog insight {writer.handle}`"
    return Part("derived", "Derived from the agent's words, not recorded", len(items), lines, rest, weight=2)


def _derived_line(writer: StateWriter, item: InsightItem) -> SectionLine:
    kind = _DERIVED[item.kind]
    lead = f"~ @{item.turn} {kind}: "
    beside = item.asked or item.reason
    reason = f" ({one_line(beside, 200)})" if beside and beside != item.quote else ""
    return writer.said(f"{item.quote}{reason}", item.seq, what=f"~ {kind} @{item.turn}", lead=lead)


def _last_words(writer: StateWriter, at: Seq) -> Iterator[SectionLine]:
    """The user's last request and the agent's last words, if the end of the log has them."""
    results: dict[str, Entry] = {}
    is_over = False
    for entry in _tail(writer, at):
        is_over = is_over or entry.kind == "turn.started"
        if entry.kind == "history.rewound" and not is_over and entry.body.get("mode", "rewind") != "retry":
            yield SectionLine(f"- rewound to e{entry.body.get('to')} since the last turn (e{entry.seq})", entry.seq)
        who = _speaker(writer, entry)
        if who and who not in results and _words(writer.log, entry):
            results[who] = entry
        if len(results) == 2:
            break
    is_unanswered = len(results) == 2 and results["assistant"].seq < results["user"].seq
    said = "before that, the agent said: " if is_unanswered else "the agent said: "
    for who, lead in (("user", "asked: "), ("assistant", said)):
        if who in results:
            entry = results[who]
            words = _words(writer.log, entry)
            prose = _CODE.sub(" (code) ", words) if who == "assistant" else words
            yield writer.said(prose, entry.seq, lead=lead)


def _speaker(writer: StateWriter, entry: Entry) -> str:
    """Who spoke in an event: "user", "assistant", or empty."""
    body = entry.body
    if entry.kind == "turn.started":
        return "user" if body.get("input") is not None else ""
    if entry.kind == "message.added":
        if is_aside(body):
            return ""  # not a request
        role = str(body.get("role", ""))
        return "user" if role == "user" else "assistant" if role in ("assistant", "model") else ""
    if entry.kind == "action.recorded" and body.get("effect") == "model" and body.get("output") is not None:
        return "assistant"
    if entry.kind == "action.succeeded" and body.get("output") is not None and entry.header.cause:
        asked = writer.entry(entry.header.cause)
        return "assistant" if asked is not None and asked.body.get("effect") == "model" else ""
    return ""


def _words(log: Log, entry: Entry) -> str:
    """The text of an event; empty for an answer that only requests calls."""
    field = {"message.added": "content", "turn.started": "input"}.get(entry.kind, "output")
    return flat(part for part in parts_of(content_of(log, entry, field)) if not isinstance(part, Asked)).strip()


def _tail(writer: StateWriter, at: Seq) -> Iterator[Entry]:
    """The last events in view, newest first."""
    left = TAIL
    for first, last in reversed(writer.log.view(at, state=writer.state)):
        begin = max(first, last - left + 1)
        yield from reversed(writer.entries(begin, last))
        left -= last - begin + 1
        if left <= 0:
            return
