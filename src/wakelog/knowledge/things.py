"""What is known about one thing: who touched it, what failed, what was decided, and dead ends.

A thing is a kind and a name: a file by its path in the project, a URL, a fact's key, a commit, an artefact, or the
signature of an error. For sessions without a project, equal file names in different fork trees are different files. If
very many sessions touched a thing, only the newest count.

`project` in a question is the main work tree of a repository; None means all projects. `as_of` and `known_at` select
facts: what held at a time, and what was stored by a time (in microseconds).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.index import search
from wakelog.index.connection import Connection, as_key, as_rows, no_text
from wakelog.index.questions import IndexQuestion, Number
from wakelog.index.scope import check_limit
from wakelog.index.statements import IndexMoment
from wakelog.knowledge.facts import fact_events, fact_lines
from wakelog.knowledge.lines import (
    SOURCES_MAX,
    Known,
    KnownLine,
    KnownThing,
    LineKind,
    PastSession,
    group_by,
    places,
    sessions_by_number,
    source,
    trust_of,
)
from wakelog.model.ids import Seq
from wakelog.model.short_text import one_line

SESSIONS_MAX = 500
MENTIONS_MAX = 200
KINDS = ("file", "url", "resource", "key", "commit", "artefact", "error")
LINES = 12
ORDER = ("fact", "dead_end", "recipe", "error", "decision", "changed", "produced", "committed", "read", "session")
Aspect = Literal["all", "failed", "decisions", "who"]

_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_TOUCHES = """
select t.session, t.how, t.name, t.times, t.first, t.last, t.at, t.trust
from wl_touch t join wl_session s on s.no = t.session and s.hidden = 0
where t.key = :key and t.kind = :kind and (:project is null or s.project = :project)
order by t.at desc, s.id, t.how limit :limit
"""
_KINDS = """
select t.kind, count(*) from wl_touch t join wl_session s on s.no = t.session and s.hidden = 0
where t.key = :key and (:project is null or s.project = :project) group by t.kind
"""
_PROJECTS = """
select distinct s.project from wl_session s
where s.project <> '' and substr(:path, 1, length(s.project) + 1) = s.project || '/'
"""
_STEPS = """
select x.session, x.seq, x.label, x.signature from json_each(:places) p
cross join wl_step x on x.session = cast(p.value ->> 0 as bigint) and x.seq = cast(p.value ->> 1 as bigint)
"""
_DECISIONS = """
select d.session, d.seq, d.choice, d.because from json_each(:places) p
cross join wl_decision d on d.session = cast(p.value ->> 0 as bigint) and d.seq = cast(p.value ->> 1 as bigint)
"""
_SAME_TURN = """
select d.session, d.seq, d.choice, d.because from json_each(:sessions) p
cross join wl_decision d on d.session = cast(p.value ->> 0 as bigint)
join wl_event e on e.session = d.session and e.seq = d.seq
where exists (select 1 from wl_step x where x.session = d.session and x.turn = e.turn and x.attempt = e.attempt
    and x.target = :target and x.act = 'write' and x.outcome = 'succeeded')
    and exists (select 1 from wl_visible v where v.session = d.session and d.seq between v.first and v.last)
"""
_DEAD_ENDS = """
select d.session, d.seq, d.tried, d.learned from json_each(:places) p
cross join wl_dead_end d on d.session = cast(p.value ->> 0 as bigint) and d.seq = cast(p.value ->> 1 as bigint)
"""
_NUMBERS = "select s.id, s.no from wl_session s where s.id in (select value ->> 0 from json_each(:ids))"


class Touch(msgspec.Struct, frozen=True):
    """How a session touched a thing: read it, changed it, failed at it, …"""

    session: PastSession
    how: str
    name: str
    times: int
    first: Seq
    last: Seq
    at: int
    distrust: int

    @property
    def place(self) -> str:
        """The scope in which the thing's name is unique: its project, or else its fork tree."""
        if self.session.project or self.name.startswith("/") or "://" in self.name:
            return self.session.project
        return self.session.root


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


def _without_duplicates(lines: list[KnownLine]) -> list[KnownLine]:
    """Keeps the first of several lines with the same text: a matched one before a derived one."""
    kept: dict[tuple[str, str], KnownLine] = {}
    for line in lines:
        kept.setdefault((line.project, line.text), line)
    return list(kept.values())


def _display_order(line: KnownLine) -> tuple[int, int, str, int]:
    # Contradicting facts stay together: they have the same key, and the newest comes first.
    return ORDER.index(line.kind), -line.at if line.kind != "fact" else 0, line.session, -line.seq


def kind_of(db: Connection, subject: str, project: str | None) -> str:
    """How to interpret a subject: as the kind that sessions touched under that name, else as what it looks like."""
    if "://" in subject:
        return "url"
    results: dict[str, int] = dict(db.execute(_KINDS, {"key": as_key(subject), "project": project}).fetchall())
    if results:
        return max(results, key=lambda kind: (results[kind], -KINDS.index(kind) if kind in KINDS else -99))
    if _COMMIT.fullmatch(subject):
        return "commit"
    return "file" if "/" in subject or re.search(r"\.\w{1,8}$", subject) else "key"


def named_in_project(db: Connection, subject: str, project: str | None) -> tuple[str, str | None]:
    """A file's absolute path made relative to its project, with that project. Other subjects are returned unchanged."""
    if not subject.startswith("/") or db.execute(_KINDS, {"key": as_key(subject), "project": project}).fetchall():
        return subject, project
    results = [row[0] for row in db.execute(_PROJECTS, {"path": subject}).fetchall() if project in (None, row[0])]
    place = max(results, key=len, default="")
    return (subject[len(place) + 1 :], place) if place else (subject, project)


def touches_of(db: Connection, kind: str, name: str, project: str | None) -> list[Touch]:
    """Which sessions touched a thing, and how, the newest first."""
    values = {"key": as_key(name), "kind": kind, "project": project, "limit": SESSIONS_MAX}
    rows = [row for row in db.execute(_TOUCHES, values).fetchall() if row[2] == name]
    sessions = sessions_by_number(db, (row[0] for row in rows))
    return [Touch(sessions[row[0]], *row[1:]) for row in rows if row[0] in sessions]


_VERBS: dict[str, tuple[LineKind, str, Known]] = {
    "changed": ("changed", "changed", "recorded"),
    "wrote": ("changed", "changed", "derived"),
    "read": ("read", "read", "derived"),
    "produced": ("produced", "produced", "recorded"),
    "committed": ("committed", "has work of", "recorded"),
}


def touch_lines(db: Connection, touches: Sequence[Touch]) -> list[KnownLine]:
    """One line per project and kind of touch: how often, by how many sessions, and where last."""
    recorded = {touch.session.no for touch in touches if touch.how == "changed"}
    counted = [t for t in touches if t.how in _VERBS and not (t.how == "wrote" and t.session.no in recorded)]
    out = []
    for group in group_by(counted, lambda t: (t.place, _VERBS[t.how][0])):
        kind, verb, known = _VERBS[group[0].how]
        times = sum(t.times for t in group)
        roots = len({t.session.root for t in group})
        agents = sorted({t.session.agent or t.session.labels.get("agent", "") for t in group} - {""})
        by = f" by {', '.join(agents[:3])}" if agents else ""
        text = f"{verb} {_times(times)} in {_sessions(roots)}{by}"
        out.append(_line(db, kind, text, group, known=known, times=times, roots=roots))
    return out


def failure_lines(db: Connection, touches: Sequence[Touch]) -> list[KnownLine]:
    """What failed at a thing: one line per error, and how often."""
    failed = [t for t in touches if t.how in ("failed", "met")]
    rows = as_rows(sorted({(t.session.no, t.last) for t in failed}))
    steps = {(no, seq): (label, sign) for no, seq, label, sign in db.execute(_STEPS, {"places": rows}).fetchall()}
    named = [(t, *steps.get((t.session.no, t.last), ("", ""))) for t in failed]
    out = []
    for group in group_by(named, lambda item: (item[0].place, item[1], item[2])):
        label, sign = group[0][1:]
        mine = [t for t, _, _ in group]
        roots = len({t.session.root for t in mine})
        times = sum(t.times for t in mine)
        text = f"{label or 'a call'} failed {_times(times)} in {_sessions(roots)}: {sign or 'no message'}"
        out.append(_line(db, "error", text, mine, known="recorded", times=times, roots=roots))
    return out


def decision_lines(db: Connection, name: str, touches: Sequence[Touch], project: str | None) -> list[KnownLine]:
    """Decisions that name a thing, and decisions made in a turn that changed it."""
    lines = _lines_naming(db, "decision", "decision.made", _DECISIONS, name, project)
    return lines + _turn_decisions(db, name, touches)


def dead_end_lines(db: Connection, name: str, project: str | None) -> list[KnownLine]:
    """Dead ends that name a thing."""
    return _lines_naming(db, "dead_end", "dead_end.noted", _DEAD_ENDS, name, project)


def _lines_naming(
    db: Connection, kind: LineKind, event_kind: str, statement: str, name: str, project: str | None
) -> list[KnownLine]:
    """The events of a kind, in view, whose text names a thing: by its whole name, or a file by its last part."""
    short = name.rstrip("/").rpartition("/")[2] if "://" not in name else name
    if not any(c.isalnum() for c in short):
        return []
    phrase = '"' + short.replace('"', " ") + '"'
    hits = search.find(db, phrase, None, event_kind, 0, MENTIONS_MAX, no_text)
    results = sorted((hit.session, hit.seq) for hit in hits if hit.in_view)
    if not results:
        return []
    ids = as_rows((session,) for session, _ in results)
    numbers = dict(db.execute(_NUMBERS, {"ids": ids}).fetchall())
    pairs = [(numbers[session], seq) for session, seq in results if session in numbers]
    rows = db.execute(statement, {"places": as_rows(pairs)}).fetchall()
    whole_name = re.compile(rf"(?<![\w.-]){re.escape(short)}(?![\w-])")
    rows = [row for row in rows if whole_name.search(f"{row[2]} {row[3]}")]
    return _text_lines(db, kind, rows, project, "matched")


def _turn_decisions(db: Connection, name: str, touches: Sequence[Touch]) -> list[KnownLine]:
    changed = sorted({t.session.no for t in touches if t.how in ("changed", "wrote")})
    if not changed:
        return []
    values = {"sessions": as_rows((no,) for no in changed), "target": name}
    return _text_lines(db, "decision", db.execute(_SAME_TURN, values).fetchall(), None, "derived")


def _text_lines(
    db: Connection, kind: LineKind, rows: Sequence[Any], project: str | None, known: Known
) -> list[KnownLine]:
    """One line per text; a repeated text is counted, not repeated."""
    sessions = sessions_by_number(db, (row[0] for row in rows))
    results = places(db, ((row[0], row[1]) for row in rows))
    items = []
    for no, seq, first, second in rows:
        session, where = sessions.get(no), results.get((no, seq))
        if session is None or where is None or (project is not None and session.project != project):
            continue
        text = one_line(": ".join(filter(None, (str(first), str(second)))))
        items.append((session, seq, text, *where))
    items.sort(key=lambda item: (-item[4], item[0].id, -item[1]))
    out = []
    for group in group_by(items, lambda item: (item[0].project, item[2])):
        session, seq, text, turn, at, _ = group[0]
        out.append(
            KnownLine(
                kind=kind,
                text=text,
                session=session.id,
                name=session.name,
                seq=seq,
                turn=turn,
                at=at,
                trust=trust_of(item[5] for item in group),
                known=known,
                project=session.project,
                times=len(group),
                roots=len({item[0].root for item in group}),
                sources=tuple(source(item[0].id, item[1]) for item in group[:SOURCES_MAX]),
            )
        )
    return out


def _line(
    db: Connection, kind: LineKind, text: str, touches: Sequence[Touch], *, known: Known, times: int, roots: int
) -> KnownLine:
    newest = max(touches, key=lambda t: (t.at, t.session.id))
    turn, at, _ = places(db, [(newest.session.no, newest.last)]).get(
        (newest.session.no, newest.last), (0, newest.at, 0)
    )
    return KnownLine(
        kind=kind,
        text=one_line(text),
        session=newest.session.id,
        name=newest.session.name,
        seq=newest.last,
        turn=turn,
        at=at,
        trust=trust_of(t.distrust for t in touches),
        known=known,
        project=newest.session.project,
        times=times,
        roots=roots,
        sources=tuple(source(t.session.id, t.last) for t in touches[:SOURCES_MAX]),
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _sessions(count: int) -> str:
    return "1 session" if count == 1 else f"{count} sessions"
