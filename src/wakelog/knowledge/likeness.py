"""Past sessions that are like some words: by what they were asked, the files and tools they used, and the day.

Words count by how rare they are among the sessions looked at, and a session must share more than a common word. The
same sessions give the same answer in any database: no full-text rank is used. A day named in the words (`today`,
`yesterday`, `last week`, a date) is a condition, not a word.
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
from wakelog.index.results import AsOf
from wakelog.knowledge.lines import PastSession, in_one_line, sessions_by_number, trust_of
from wakelog.model.ids import SessionId
from wakelog.model.trust import Trust

LOOKED_AT = 2000
"""So many sessions are looked at, the newest first."""
DEEPER = 50
"""Of so many, also the files and tools."""
TEXT_MAX = 600
"""Of a longer text its beginning counts."""
DAY_US = 86_400_000_000
LEAST = 0.34
"""A session must have words of at least this part of the weight that was asked for."""
RARE, NEARLY_ALL = 0.2, 0.8
"""Words that more than this part of the sessions have decide only when nearly all words are there."""

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
    """A past session that is like what was asked for, and why."""

    session: SessionId
    name: str
    project: str
    about: str
    outcome: str
    at: int
    trust: Trust
    """Of the turns in which it was asked."""
    score: float
    """What part of the weight of the words it has: from 0 to 1."""
    why: tuple[str, ...]


class LikeSessions(msgspec.Struct, frozen=True):
    """The past sessions that are like some words, the likest first."""

    text: str
    sessions: tuple[LikeSession, ...]
    as_of: AsOf


def words_in(text: str) -> list[str]:
    """The words of a text that say something, without case, accents and plural s."""
    found = (word.removesuffix("'s") for word in _WORD.findall(_plain(text)))
    kept = (_stem(word) for word in found if word not in _STOP and (len(word) > 2 or word.isdecimal()))
    return list(dict.fromkeys(kept))


def _plain(text: str) -> str:
    plain = text[:TEXT_MAX].lower()
    if plain.isascii():
        return plain
    return "".join(c for c in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(c))


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("s") and not word.endswith("ss") else word


def days_in(text: str, now: int, offset_us: int = 0) -> tuple[int, int, str] | None:
    """The time that words name: from, to, and the words; None when they name none."""
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


def like(
    db: Connection,
    text: str,
    project: str | None,
    *,
    now: int,
    offset_us: int = 0,
    besides: str = "",
    limit: int = 5,
) -> list[LikeSession]:
    """The past sessions that are like some words."""
    day = days_in(text, now, offset_us)
    words = words_in(text)
    if not words and day is None:
        return []
    since, until = (day[0], day[1]) if day else (0, 1 << 62)
    values = {"project": project, "since": since, "until": until, "besides": besides, "limit": LOOKED_AT}
    rows: Any = db.execute(_SESSIONS, values).fetchall()
    if not words:
        inputs = _inputs(db, rows[:limit])
        return [_like(s, inputs.get(s.no, []), 1.0, (day[2],) if day else ()) for s in _sessions(db, rows[:limit])]
    inputs = _inputs(db, rows)
    said_in = _finder(words)
    said = {row[0]: said_in(_asked(row, inputs.get(row[0], ()))) for row in rows}
    seen = Counter(word for each in said.values() for word in each)
    weight = {word: math.log(1 + (len(rows) + 1) / (1 + seen[word])) for word in words}
    rows.sort(key=lambda row: -_sum(weight, said[row[0]]))  # of equals, the newest stays first
    near = _sessions(db, rows[:DEEPER])
    used = _used(db, near, said_in)
    out = []
    for session in near:
        mine = [word for word in words if word in said[session.no]]
        by_use = {w: what for w in words if w not in mine and (what := used.get(session.no, {}).get(w))}
        share = _sum(weight, mine) + _sum(weight, by_use) / 2
        score = share / sum(weight.values())
        rare = [word for word in (*mine, *by_use) if seen[word] <= max(2, RARE * len(rows))]
        if score < LEAST or (not rare and score < NEARLY_ALL) or (len(words) > 2 and len(mine) + len(by_use) < 2):
            continue
        why = [f"asked: {', '.join(mine)}"] if mine else []
        why += sorted(set(by_use.values())) + ([day[2]] if day else [])
        out.append(_like(session, inputs.get(session.no, []), round(score, 3), tuple(why)))
    return sorted(out, key=lambda s: (-s.score, -s.at, s.session))[:limit]


def _finder(words: Sequence[str]) -> Callable[[str], frozenset[str]]:
    """Finds which of the words a text has. Only what begins like one of them is looked at."""
    first = "|".join(map(re.escape, words))
    begin = re.compile(rf"(?<![^\W_])(?<![^\W_]')(?:{first})[^\W_]*(?:'[^\W_]+)?")
    wanted = frozenset(words)

    def find(text: str) -> frozenset[str]:
        found = begin.findall(_plain(text))
        return wanted.intersection(_stem(word.removesuffix("'s")) for word in found) if found else _NONE

    return find


def _sum(weight: dict[str, float], words: Collection[str]) -> float:
    return sum(weight[word] for word in weight if word in words) if words else 0.0


def _like(session: PastSession, inputs: Sequence[tuple[str, int]], score: float, why: tuple[str, ...]) -> LikeSession:
    said = next((text for text, _ in inputs), "")
    told = in_one_line(session.goal or session.labels.get("title") or said, 160)
    trust = trust_of(distrust for _, distrust in inputs)
    return LikeSession(
        session.id, session.name, session.project, told, session.outcome, session.last_at, trust, score, why
    )


def _asked(row: Sequence[Any], inputs: Sequence[tuple[str, int]]) -> str:
    """What a session was asked: its goal, title and first inputs; its name, unless an importer made it up."""
    _, name, goal, labels = row
    title, goal = "", goal or ""
    if '"title"' in labels or '"origin"' in labels:
        decoded = msgspec.json.decode(labels, type=dict[str, str])
        title, name = decoded.get("title", ""), name if "origin" not in decoded else ""
    return " ".join((goal, title, *(said for said, _ in inputs if said != goal), name))


def _inputs(db: Connection, sessions: Sequence[Any]) -> dict[int, list[tuple[str, int]]]:
    """What the first turns were asked, and how far each is distrusted."""
    out: dict[int, list[tuple[str, int]]] = {}
    rows: Any = db.execute(_INPUTS, {"sessions": as_rows((row[0],) for row in sessions)}).fetchall()
    for session, _, said, distrust in rows:
        out.setdefault(session, []).append((said, distrust))
    return out


def _sessions(db: Connection, rows: Sequence[Any]) -> list[PastSession]:
    found = sessions_by_number(db, (row[0] for row in rows))
    return [found[row[0]] for row in rows]


def _used(
    db: Connection, sessions: Sequence[PastSession], said_in: Callable[[str], frozenset[str]]
) -> dict[int, dict[str, str]]:
    """For each session, which of the words are in its files and steps, and in what."""
    asked = {"sessions": as_rows((s.no,) for s in sessions)}
    out: dict[int, dict[str, str]] = {}
    for statement, verb in ((_FILES, "changed"), (_LABELS, "ran")):
        rows: Any = db.execute(statement, asked).fetchall()
        words = {name: said_in(name.replace("_", " ")) for name in {name for _, name in rows}}
        for session, name in sorted(row for row in rows if words[row[1]]):
            for word in words[name]:
                out.setdefault(session, {}).setdefault(word, f"{verb} {name}")
    return out
