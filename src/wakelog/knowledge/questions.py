"""Questions about what is known, as values: each is answered from one moment of an index, here or on a server.

`project` is the main work tree of a repository; None means all projects. `as_of` and `known_at` select facts: what held
at a time, and what was stored by a time (in microseconds).
"""

from __future__ import annotations

from typing import Any, Literal

from wakelog.errors import InvalidInputError
from wakelog.index.questions import IndexQuestion, Number
from wakelog.index.scope import check_limit
from wakelog.index.statements import IndexMoment
from wakelog.knowledge.connections import ThingPath, connect, thing
from wakelog.knowledge.facts import fact_events, fact_lines
from wakelog.knowledge.likeness import LikeSessions, like
from wakelog.knowledge.lines import KnownLine, KnownThing
from wakelog.knowledge.recall import TOKENS, PastLines, fit_lines, recall_lines
from wakelog.knowledge.things import (
    KINDS,
    dead_end_lines,
    decision_lines,
    failure_lines,
    kind_of,
    named_in_project,
    touch_lines,
    touches_of,
)

ORDER = ("fact", "dead_end", "recipe", "error", "decision", "changed", "produced", "committed", "read", "session")
LINES = 12
Aspect = Literal["all", "failed", "decisions", "who"]


class AskKnown(IndexQuestion, frozen=True):
    """What is known about a file, a key, a URL, a commit, an artefact or an error: facts, dead ends, failures,
    decisions, and who touched it. `aspect` selects one of these."""

    subject: str
    aspect: Aspect = "all"
    kind: str = ""
    project: str | None = None
    as_of: Number | None = None
    known_at: Number | None = None
    limit: Number = LINES

    def __call__(self, reading: IndexMoment) -> KnownThing:
        check_limit(self.limit)
        if self.kind and self.kind not in KINDS:
            raise InvalidInputError(
                f"there are no things of the kind {self.kind!r}", kind="bad-kind", hint=f"use {', '.join(KINDS)}"
            )
        db = reading.db
        name, project = named_in_project(db, self.subject, self.project)
        kind = self.kind or kind_of(db, name, project)
        lines = sorted(self._lines(db, kind, name, project), key=_display_order)
        return KnownThing(
            self.subject, kind, tuple(lines[: self.limit]), reading.as_of, max(0, len(lines) - self.limit)
        )

    def _lines(self, db: Any, kind: str, name: str, project: str | None) -> list[KnownLine]:
        touches = touches_of(db, kind, name, project)
        lines: list[KnownLine] = []
        if self.aspect in ("all", "failed"):
            lines += failure_lines(db, touches)
            lines += dead_end_lines(db, name, project)
        if self.aspect in ("all", "decisions") and kind != "error":
            lines += _without_duplicates(decision_lines(db, name, touches, project))
        if self.aspect in ("all", "who"):
            lines += touch_lines(db, touches)
        if self.aspect == "all" and kind == "key":
            lines += fact_lines(fact_events(db, name, project, as_of=self.as_of, known_at=self.known_at))
        return lines


class AskFacts(IndexQuestion, frozen=True):
    """The facts that hold, for one key or all keys, each with its sources. With `conflicts`, only those that contradict
    each other, side by side."""

    key: str | None = None
    project: str | None = None
    conflicts: bool = False
    as_of: Number | None = None
    known_at: Number | None = None
    limit: Number = 50

    def __call__(self, reading: IndexMoment) -> KnownThing:
        check_limit(self.limit)
        events = fact_events(reading.db, self.key, self.project, as_of=self.as_of, known_at=self.known_at)
        lines = [line for line in fact_lines(events) if line.conflicts or not self.conflicts]
        more = max(0, len(lines) - self.limit)
        return KnownThing(self.key or "", "key", tuple(lines[: self.limit]), reading.as_of, more)


class AskConnections(IndexQuestion, frozen=True):
    """How two things are connected: the shortest path of sessions and things between them."""

    a: str
    b: str
    project: str | None = None

    def __call__(self, reading: IndexMoment) -> ThingPath:
        db = reading.db
        a, b = (thing(kind_of(db, name, self.project), name) for name in (self.a, self.b))
        return ThingPath(self.a, self.b, tuple(connect(db, a, b, self.project)), reading.as_of)


def _without_duplicates(lines: list[KnownLine]) -> list[KnownLine]:
    """Keeps the first of several lines with the same text: a matched one before a derived one."""
    kept: dict[tuple[str, str], KnownLine] = {}
    for line in lines:
        kept.setdefault((line.project, line.text), line)
    return list(kept.values())


def _display_order(line: KnownLine) -> tuple[int, int, str, int]:
    # Contradicting facts stay together: they have the same key, and the newest comes first.
    return ORDER.index(line.kind), -line.at if line.kind != "fact" else 0, line.session, -line.seq


class AskRecall(IndexQuestion, frozen=True):
    """The few lines from the past that are relevant to the current files, error text and goal. `session` is the asking
    session: nothing comes from its own fork tree. `tokens` is about how much room there is."""

    files: tuple[str, ...] = ()
    error: str = ""
    goal: str = ""
    project: str | None = None
    session: str = ""
    tokens: Number = TOKENS
    now: Number = 0

    def __call__(self, reading: IndexMoment) -> PastLines:
        lines, signature = recall_lines(
            reading.db,
            files=self.files,
            error=self.error,
            goal=self.goal,
            project=self.project,
            besides=self.session.partition(".")[0],
            now=self.now or reading.as_of.at,
        )
        kept = fit_lines(lines, self.tokens)
        return PastLines(tuple(kept), reading.as_of, len(lines) - len(kept), signature)


class AskLike(IndexQuestion, frozen=True):
    """Past sessions that match some words: by what they were asked, the files and tools they used, and the day that the
    words name. `now` and `offset_us` (the time zone) say when the asker's day begins."""

    text: str
    project: str | None = None
    session: str = ""
    now: Number = 0
    offset_us: Number = 0
    limit: Number = 5

    def __call__(self, reading: IndexMoment) -> LikeSessions:
        found = like(
            reading.db,
            self.text,
            self.project,
            now=self.now or reading.as_of.at,
            offset_us=self.offset_us,
            besides=self.session.partition(".")[0],
            limit=check_limit(self.limit),
        )
        return LikeSessions(self.text, tuple(found), reading.as_of)


KNOWLEDGE: dict[str, tuple[type[IndexQuestion], Any]] = {
    "known": (AskKnown, KnownThing),
    "facts": (AskFacts, KnownThing),
    "connections": (AskConnections, ThingPath),
    "recall": (AskRecall, PastLines),
    "like": (AskLike, LikeSessions),
}
"""Each question and its type of answer, by its name in a server's routes."""
