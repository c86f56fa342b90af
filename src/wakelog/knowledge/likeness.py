"""Finds past sessions that match some words: by what they were asked, the files and tools they used, and the day.

Rare words weigh more than common ones, and a session must share more than a common word. No full-text rank is used, so
the answer is the same on any database. A day in the words (`today`, `yesterday`, `last week`, `3 days ago`) is a
condition, not a word.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec

from wakelog.index.connection import Connection, as_rows
from wakelog.index.questions import IndexQuestion, Number
from wakelog.index.results import AsOf
from wakelog.index.scope import check_limit
from wakelog.index.statements import IndexMoment
from wakelog.knowledge.lines import PastSession, sessions_by_number, trust_of
from wakelog.model.ids import SessionId
from wakelog.model.short_text import one_line
from wakelog.model.trust import Trust

SESSIONS_MAX = 2000
"""How many sessions to compare, the newest first."""
CANDIDATES_MAX = 50
"""For how many of them to compare files and tools too."""
TEXT_MAX = 600
"""Only this much of a longer text counts."""
DAY_US = 86_400_000_000
SCORE_MIN = 0.34
"""The lowest score of a match."""
RARE, NEARLY_ALL = 0.2, 0.8
"""A word is rare if at most this share of the sessions has it. Without a rare word, a match needs nearly all words."""

_STOP = frozenset(
    re.split(
        r"\s+",
        "a an and are as at be by can do does for from fix get has have how i in into is it its job like make me my new"
        " of on or our please run same session so task that the their them then there this to up us use was we were"
        " what when with work would you your add all also change code file files need now out should some want"
        " yesterday today week last ago day",
    )
)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_NONE: frozenset[str] = frozenset()
_SESSIONS = """
select s.no, s.name, s.goal, s.labels from wl_session s
where s.hidden = 0 and (:project is null or s.project = :project)
    and s.last_at >= :since and s.first_at <= :until and s.root <> :besides
order by s.last_at desc, s.id limit :limit
"""
_INPUTS = """
select t.session, t.turn, t.input, t.trust from json_each(:sessions) p
cross join wl_turn t on t.session = cast(p.value ->> 0 as bigint)
where t.input <> '' and t.attempt = 1 and t.turn <= 3 order by t.session, t.turn
"""
_FILES = """
select t.session, t.name from json_each(:sessions) p
cross join wl_touch t on t.session = cast(p.value ->> 0 as bigint) where t.kind = 'file' and t.how <> 'read'
"""
_LABELS = """
select distinct x.session, x.label from json_each(:sessions) p
cross join wl_step x on x.session = cast(p.value ->> 0 as bigint)
"""


class LikeSession(msgspec.Struct, frozen=True):
    """A past session that matches, and why."""

    session: SessionId
    name: str
    project: str
    about: str
    outcome: str
    at: int
    trust: Trust
    """The trust of its first inputs."""
    score: float
    """The share of the words' total weight that it matches, from 0 to 1."""
    why: tuple[str, ...]


class LikeSessions(msgspec.Struct, frozen=True):
    """The past sessions that match some words, the best first."""

    text: str
    sessions: tuple[LikeSession, ...]
    as_of: AsOf


def words_in(text: str) -> list[str]:
    """The words of a text without stop words, case, accents and plural s."""
    found = (word.removesuffix("'s") for word in _WORD.findall(_normalize(text)))
    kept = (_stem(word) for word in found if word not in _STOP and (len(word) > 2 or word.isdecimal()))
    return list(dict.fromkeys(kept))


def _normalize(text: str) -> str:
    lower = text[:TEXT_MAX].lower()
    if lower.isascii():
        return lower
    return "".join(c for c in unicodedata.normalize("NFKD", lower) if not unicodedata.combining(c))


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("s") and not word.endswith("ss") else word


def days_in(text: str, now: int, offset_us: int = 0) -> tuple[int, int, str] | None:
    """The days that a text names: start, end, and the words for it; None if it names none."""
    today = (now + offset_us) // DAY_US * DAY_US - offset_us
    lower = text.lower()
    if "yesterday" in lower:
        return today - DAY_US, today - 1, "yesterday"
    if re.search(r"\btoday\b", lower):
        return today, today + DAY_US - 1, "today"
    if "last week" in lower:
        return today - 7 * DAY_US, today - 1, "last week"
    if ago := re.search(r"\b(\d{1,3}) days? ago\b", lower):
        start = today - int(ago[1]) * DAY_US
        return start, start + DAY_US - 1, ago[0]
    return None


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
        check_limit(self.limit)
        return LikeSessions(self.text, tuple(self.find(reading.db, self.now or reading.as_of.at)), reading.as_of)

    def find(self, db: Connection, now: int) -> list[LikeSession]:
        """The sessions, the best match first."""
        day = days_in(self.text, now, self.offset_us)
        words = words_in(self.text)
        if not words and day is None:
            return []
        since, until = (day[0], day[1]) if day else (0, 1 << 62)
        besides = self.session.partition(".")[0]
        values = {"project": self.project, "since": since, "until": until, "besides": besides, "limit": SESSIONS_MAX}
        rows: Any = db.execute(_SESSIONS, values).fetchall()
        if not words:
            inputs = _first_inputs(db, rows[: self.limit])
            why = (day[2],) if day else ()
            return [_like_session(s, inputs.get(s.no, []), 1.0, why) for s in _sessions(db, rows[: self.limit])]
        inputs = _first_inputs(db, rows)
        find_words = _word_finder(words)
        asked = {row[0]: find_words(_request_text(row, inputs.get(row[0], ()))) for row in rows}
        counts = Counter(word for found in asked.values() for word in found)
        weight = {word: math.log(1 + (len(rows) + 1) / (1 + counts[word])) for word in words}
        rows.sort(key=lambda row: -_sum(weight, asked[row[0]]))  # of equals, the newest stays first
        candidates = _sessions(db, rows[:CANDIDATES_MAX])
        used = _words_used(db, candidates, find_words)
        out = []
        for session in candidates:
            mine = [word for word in words if word in asked[session.no]]
            by_use = {w: what for w in words if w not in mine and (what := used.get(session.no, {}).get(w))}
            score = (_sum(weight, mine) + _sum(weight, by_use) / 2) / sum(weight.values())
            rare = [word for word in (*mine, *by_use) if counts[word] <= max(2, RARE * len(rows))]
            if (
                score < SCORE_MIN
                or (not rare and score < NEARLY_ALL)
                or (len(words) > 2 and len(mine) + len(by_use) < 2)
            ):
                continue
            reasons = [f"asked: {', '.join(mine)}"] if mine else []
            reasons += sorted(set(by_use.values())) + ([day[2]] if day else [])
            out.append(_like_session(session, inputs.get(session.no, []), round(score, 3), tuple(reasons)))
        return sorted(out, key=lambda s: (-s.score, -s.at, s.session))[: self.limit]


def _word_finder(words: Sequence[str]) -> Callable[[str], frozenset[str]]:
    """A function that finds which of the words a text has. For speed, it only looks at words with the same start."""
    first = "|".join(map(re.escape, words))
    begin = re.compile(rf"(?<![^\W_])(?<![^\W_]')(?:{first})[^\W_]*(?:'[^\W_]+)?")
    wanted = frozenset(words)

    def find(text: str) -> frozenset[str]:
        results = begin.findall(_normalize(text))
        return wanted.intersection(_stem(word.removesuffix("'s")) for word in results) if results else _NONE

    return find


def _sum(weight: dict[str, float], words: Collection[str]) -> float:
    return sum(weight[word] for word in weight if word in words) if words else 0.0


def _like_session(
    session: PastSession, inputs: Sequence[tuple[str, int]], score: float, why: tuple[str, ...]
) -> LikeSession:
    first = next((text for text, _ in inputs), "")
    about = one_line(session.goal or session.labels.get("title") or first, 160)
    trust = trust_of(distrust for _, distrust in inputs)
    return LikeSession(
        session.id, session.name, session.project, about, session.outcome, session.last_at, trust, score, why
    )


def _request_text(row: Sequence[Any], inputs: Sequence[tuple[str, int]]) -> str:
    """What a session was asked: its goal, title and first inputs, and its name unless an importer made it up."""
    _, name, goal, labels = row
    title, goal = "", goal or ""
    if '"title"' in labels or '"origin"' in labels:
        decoded = msgspec.json.decode(labels, type=dict[str, str])
        title, name = decoded.get("title", ""), name if "origin" not in decoded else ""
    return " ".join((goal, title, *(text for text, _ in inputs if text != goal), name))


def _first_inputs(db: Connection, sessions: Sequence[Any]) -> dict[int, list[tuple[str, int]]]:
    """The inputs of the first turns, each with its distrust."""
    out: dict[int, list[tuple[str, int]]] = {}
    rows: Any = db.execute(_INPUTS, {"sessions": as_rows((row[0],) for row in sessions)}).fetchall()
    for session, _, text, distrust in rows:
        out.setdefault(session, []).append((text, distrust))
    return out


def _sessions(db: Connection, rows: Sequence[Any]) -> list[PastSession]:
    results = sessions_by_number(db, (row[0] for row in rows))
    return [results[row[0]] for row in rows]


def _words_used(
    db: Connection, sessions: Sequence[PastSession], find_words: Callable[[str], frozenset[str]]
) -> dict[int, dict[str, str]]:
    """For each session, the words that its files and steps contain, and where."""
    values = {"sessions": as_rows((s.no,) for s in sessions)}
    out: dict[int, dict[str, str]] = {}
    for statement, verb in ((_FILES, "changed"), (_LABELS, "ran")):
        rows: Any = db.execute(statement, values).fetchall()
        words = {name: find_words(name.replace("_", " ")) for name in {name for _, name in rows}}
        for session, name in sorted(row for row in rows if words[row[1]]):
            for word in words[name]:
                out.setdefault(session, {}).setdefault(word, f"{verb} {name}")
    return out
