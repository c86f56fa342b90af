"""Selectors: one grammar for a place in a session, the same in library, command line, URLs and tools.

    SELECTOR  [SESSION] POINT | [SESSION] POINT..POINT | SESSION
    POINT     @          the head
              @5         turn 5; as a state, the state after it            turn:5
              @-1 @- @~1 one turn before the newest; @-3 three
              @5.2       attempt 2 of turn 5; @5.best the accepted one
              @0         before anything
              e1042      an event                                           event:1042
              c:9f3a     a commit, by the start of its hash or id            commit:9f3a
              t:"2h ago" the last event at or before a time; also t:2026-11-15T18:00, t:today, t:yesterday
              cp:NAME    a checkpoint
              first-error last-error last-user last-tool

If the point after a session does not start with @, put one between them: fix-auth@e12, fix-auth@last-error.
Ranges include both ends: @3..@7 is turns 3, 4, 5, 6 and 7, as people count. For `diff`, a single turn or event means
what it changed, and @3..@7 means what changed from the end of turn 3 to the end of turn 7.
"""

from __future__ import annotations

import datetime as dt
import re

import msgspec

from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.log import Log
from wakelog.log.reader import Entry, read_commits
from wakelog.model.ids import Seq
from wakelog.model.names import PLACE, WORDS
from wakelog.model.records import Head
from wakelog.timeline.points import accepted_attempt, attempts_of, seq_at_time, walk_back

# Patterns are compiled on first use: most commands need none.
_SELECTOR = rf"(?P<session>[^@]*?)(?P<joint>@(?=[a-z]))?(?P<first>{PLACE})(?:\.\.(?P<last>{PLACE}))?"
_HAS_OWN_CHANGE = r"@.*|turn:.*|e\d+|event:.*|(?:c|commit):.*|" + "|".join(WORDS)
"""Positions that are events, as opposed to times and checkpoints, which only name a state."""
_AGO = r"(\d+)\s*(s|m|h|d|w)(?:\s+ago)?"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


class Selector(msgspec.Struct, frozen=True):
    """A parsed selector; parts that are not given are empty strings."""

    session: str
    first: str
    last: str


class Range(msgspec.Struct, frozen=True):
    """Events `first` to `last`, both included."""

    first: Seq
    last: Seq


Point = Range


def parse_selector(text: str) -> Selector:
    """Parses a selector. A text without a point is the name of a session."""
    match = re.fullmatch(_SELECTOR, text)
    if match and (match["joint"] or match["first"].startswith("@") or not match["session"]):
        return Selector(match["session"], match["first"], match["last"] or "")
    if "@" in text or ".." in text:
        raise InvalidInputError(
            f"{text!r} is not a selector",
            kind="bad-selector",
            hint="a position looks like fix-auth@5, @3..@7, e1042 or t:2h",
        )
    return Selector(text, "", "")


def resolve_point(log: Log, text: str) -> Seq:
    """The event that a point means; for a turn, its last one. 0 is before anything."""
    return _resolve(log, text, log.head()).last


def resolve_range(log: Log, text: str) -> Range:
    """The events a point or range covers."""
    first, last = _ends(log, text, log.head())
    return Range(first.first, last.last)


def _ends(log: Log, text: str, head: Head) -> tuple[Range, Range]:
    """The events of the first and of the last point of a range; for a point, both are the same."""
    selector = parse_selector(text)
    if selector.session:
        raise InvalidInputError(
            f"{text!r} names a session where only a position is expected{_suggestion(text)}", kind="bad-selector"
        )
    first = _resolve(log, selector.first or "@", head)
    last = _resolve(log, selector.last, head) if selector.last else first
    if last.last < first.first:
        raise InvalidInputError(f"{text!r} ends before it begins", kind="bad-selector")
    return first, last


def resolve_change(log: Log, where: Seq | str | None) -> tuple[Seq, Seq]:
    """The two points to compare for the question what changed at a position.

    A turn, an attempt, an event or a commit: from before it to its end. A range @2..@5: from the end of the first to
    the end of the last. A time, a checkpoint, or @0: from there to now. None or @: the last turn.
    """
    head, text = log.head(), f"e{where}" if isinstance(where, int) and where else str(where or "@")
    if where == 0:
        text = "@0"
    if text == "@":
        return (attempts_of(log, head.turn, head)[-1].first - 1 if head.turn else 0), head.seq
    selector = parse_selector(text)
    if selector.session or selector.last:
        first, last = _ends(log, text, head)
        return first.last, last.last
    if (turn := _turn_number(text, head)) is not None and turn != 0:
        attempt = attempts_of(log, turn, head)[-1]
        return attempt.first - 1, attempt.last
    extent = _resolve(log, text, head)
    if extent.last == 0 or not re.fullmatch(_HAS_OWN_CHANGE, text):
        return extent.last, head.seq
    return extent.first - 1, extent.last


def _resolve(log: Log, text: str, head: Head) -> Range:
    if text == "@":
        return Range(head.seq, head.seq)
    if text in WORDS:
        return _search(log, text)
    scheme, colon, rest = text.partition(":")
    if colon and scheme in ("t", "cp", "c", "commit", "event", "turn"):
        return _resolve_scheme(log, scheme, rest, head)
    if re.fullmatch(r"e\d+", text):
        return _event(log, int(text[1:]), head)
    if re.fullmatch(r"[0-9a-f]{6,}", text):
        return _commit(log, text)
    if (turn := _turn_number(text, head)) is not None:
        return _turn(log, turn, head)
    if match := re.fullmatch(r"@(\d+)\.(\d+|best)", text):
        return _turn(log, int(match[1]), head, match[2])
    raise InvalidInputError(
        f"{text!r} is not a valid position{_suggestion(text)}",
        kind="bad-selector",
        hint="positions look like @5, @-1, e1042, t:2h, cp:NAME, last-error",
    )


def _suggestion(text: str) -> str:
    return f"; did you mean @{text} or e{text}?" if text.isdecimal() else ""


def _turn_number(text: str, head: Head) -> int | None:
    """The turn that `@5`, `turn:5`, `@-` or `@~1` means; None for other positions."""
    if match := re.fullmatch(r"@(?:-|~)(\d*)", text):
        return head.turn - int(match[1] or 1)
    match = re.fullmatch(r"(?:@|turn:)(\d+)", text)
    return int(match[1]) if match else None


def _resolve_scheme(log: Log, scheme: str, rest: str, head: Head) -> Range:
    if scheme == "t":
        seq = seq_at_time(log, parse_time(rest, log.clock()))
        return Range(seq, seq)
    if scheme == "cp":
        checkpoints = log.state()["checkpoints"]
        if rest not in checkpoints:
            known = ", ".join(checkpoints) or "none"
            raise NotFoundError(
                f"no checkpoint {rest!r} in {log.head()} (it has: {known})", kind="checkpoint-not-found"
            )
        return Range(checkpoints[rest], checkpoints[rest])
    if scheme in ("c", "commit"):
        return _commit(log, rest)
    if not rest.isdigit():
        raise InvalidInputError(f"{scheme}:{rest} needs a number", kind="bad-selector")
    return _event(log, int(rest), head) if scheme == "event" else _turn(log, int(rest), head)


def _event(log: Log, seq: Seq, head: Head) -> Range:
    if not 0 < seq <= head.seq:
        raise NotFoundError(f"no event e{seq} in {log.head()} (it has e1..e{head.seq})", kind="event-not-found")
    return Range(seq, seq)


def _turn(log: Log, turn: int, head: Head, attempt: str = "") -> Range:
    if turn == 0 and not attempt:
        return Range(0, 0)
    spans = attempts_of(log, turn, head)
    if attempt and attempt != "best":
        chosen = [s for s in spans if s.attempt == int(attempt)]
        if not chosen:
            raise NotFoundError(
                f"no attempt @{turn}.{attempt} in {log.head()} (it has @{turn}.1..@{turn}.{spans[-1].attempt})",
                kind="attempt-not-found",
            )
        return Range(chosen[0].first, chosen[0].last)
    if attempt == "best":
        best = accepted_attempt(log, spans)
        return Range(best.first, best.last)
    return Range(spans[0].first, spans[-1].last)


def _commit(log: Log, prefix: str) -> Range:
    for commit, _ in read_commits(log.engine, log.segments):
        if commit.hash.hex().startswith(prefix) or commit.commit_id.startswith(prefix):
            return Range(commit.first, commit.last)
    # A diff shows the hash of a point. It may be inside of a commit: an import writes many turns in one.
    for entry in log.entries():
        if entry.hash.hex().startswith(prefix):
            return Range(entry.seq, entry.seq)
    raise NotFoundError(f"no commit c:{prefix} in {log.head()}", kind="commit-not-found")


def _search(log: Log, word: str) -> Range:
    what = word.partition("-")[2]
    for entry in log.entries() if word.startswith("first") else walk_back(log):
        if _matches_word(entry, what):
            return Range(entry.seq, entry.seq)
    raise NotFoundError(f"there is no {word.replace('-', ' ')} in {log.head()}", kind="event-not-found")


def _matches_word(entry: Entry, what: str) -> bool:
    if what == "error":
        return entry.kind in ("action.failed", "action.timed_out") or "error" in entry.body
    if what == "user":
        # A prompt is a message, or the input of a turn.
        is_input = entry.kind == "turn.started" and entry.header.actor == "user" and entry.body.get("input")
        return bool(is_input) or (entry.kind == "message.added" and entry.body.get("role") == "user")
    return entry.kind.startswith("action.")


def parse_time(text: str, now_us: int) -> int:
    """A time in microseconds: "2h ago", "10m", "today", "yesterday", "now", or ISO 8601 (local when it has no zone)."""
    text = text.strip().strip("\"'")
    if match := re.fullmatch(_AGO, text):
        return now_us - int(match[1]) * _SECONDS[match[2]] * 1_000_000
    local = dt.datetime.fromtimestamp(now_us / 1e6).astimezone()
    if text == "now":
        return now_us
    if text in ("today", "yesterday"):
        day = local.replace(hour=0, minute=0, second=0, microsecond=0) - dt.timedelta(days=text == "yesterday")
        return int(day.timestamp() * 1e6)
    try:
        when = dt.datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(
            f"{text!r} is not a time", kind="bad-time", hint="use 2h, 3d, today, yesterday or 2026-11-15T18:00"
        ) from None
    return int((when if when.tzinfo else when.astimezone()).timestamp() * 1e6)
