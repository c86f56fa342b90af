"""The SQL behind the typed questions, and how rows become answers.

Every list can be about one session or all; the two differ only in where the rows come from. A page in order of time
continues after (time, session, seq), so that rows of the same moment are neither lost nor repeated.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from wakelog.engine import Engine
from wakelog.errors import InvalidInputError
from wakelog.index.connection import Connection, as_rows
from wakelog.index.results import AsOf, EventInfo, Page, SessionInfo
from wakelog.index.scope import Scope, check_limit, scope_of
from wakelog.model.described import described

R = TypeVar("R", bound=msgspec.Struct)

TRUST_NAME = "case e.trust when 0 then 'trusted' when 1 then 'unverified' else 'untrusted' end"
BEGINNING = (1 << 62, "~", 1 << 62)

# `x` is the queried table, `e` the event of its row. Both forms return a session's id as `sid`.
SPANS = """
(select cast(value ->> 0 as bigint) as holder, cast(value ->> 1 as bigint) as a, cast(value ->> 2 as bigint) as b,
    :session as sid
from json_each(:spans)) r
"""
_OF_ONE = f"""
{SPANS}
cross join {{0}} x on x.session = r.holder and x.seq between r.a and r.b
join wl_event e on e.session = x.session and e.seq = x.seq
where e.occurred >= :since
"""
_OF_ALL = """
{0} x join (select s.no, s.id as sid from wl_session s where s.hidden = 0) r on r.no = x.session
join wl_event e on e.session = x.session and e.seq = x.seq
where e.occurred >= :since and (
    :rewound = 1
    or exists (select 1 from wl_visible v where v.session = x.session and x.seq between v.first and v.last))
"""
FILES = """
select sid, path, change, changes, cast(added as bigint), cast(removed as bigint), seq, turn, occurred from (
    select sid, x.path, x.change, x.seq, e.turn, e.occurred, count(*) over same as changes,
        sum(x.added) over same as added, sum(x.removed) over same as removed,
        row_number() over (partition by sid, x.path order by x.seq desc) as age
    from {0} window same as (partition by sid, x.path)
) changed
where age = 1 and (:path = '' or path = :path or :path like '%/' || path
    or substr(path, length(path) - length(:path)) = '/' || :path)
order by occurred desc, seq desc, path limit :limit
"""
_PAGED = "and (e.at, sid, x.seq) < (:at, :sid, :seq) order by e.at desc, sid desc, x.seq desc limit :limit"
DECISIONS = (
    f"select sid, x.seq, e.turn, e.attempt, e.occurred, x.choice, x.because, x.alternatives, e.at from {{0}} {_PAGED}"
)
ERRORS = f"select sid, x.seq, e.turn, e.attempt, e.occurred, x.tool, x.type, x.message, e.at from {{0}} {_PAGED}"
TOOLS = """
select sid, e.tool,
    count(case when e.kind in ('action.requested', 'action.recorded') then 1 end) as calls,
    count(case when e.kind in ('action.failed', 'action.timed_out')
        or (e.kind = 'action.recorded' and e.outcome in ('failed', 'timed_out')) then 1 end) as errors,
    max(case when e.kind in ('action.requested', 'action.recorded') then e.seq else 0 end)
from {0} and e.tool <> '' and e.gone <> 'pruned'
    and e.kind in ('action.requested', 'action.recorded', 'action.failed', 'action.timed_out')
group by sid, e.tool order by calls desc, sid, e.tool limit :limit
"""
_CHOSEN = """s.hidden = 0
    and (:status is null or s.status = :status)
    and (:agent is null or s.agent = :agent)
    and (:parent is null or s.parent = :parent)
    and (:name_glob is null or s.name glob :name_glob)
    and (:prefix is null or substr(s.id, 1, length(:prefix)) = :prefix)
    and (:label is null or exists (select 1 from wl_label l
        where l.session = s.no and l.name = :label and (:value is null or l.value = :value)))
    and (:failed is null or case when s.outcome = 'failed' then 1 else 0 end = :failed)
    and (:live is null or case when s.status in ('open', 'active', 'paused') then 1 else 0 end = :live)
    and (:pending is null or case when s.pending > 0 then 1 else 0 end = :pending)
    and (:flagged is null or case when s.flags > 0 then 1 else 0 end = :flagged)
    and (:text is null or has_text(s.name, :text) or has_text(s.id, :text) or has_text(coalesce(s.goal, ''), :text)
        or exists (select 1 from wl_turn u where u.session = s.no and has_text(u.input, :text)))
    and s.last_at >= :since"""
_AT_REST = "s.status <> 'paused' and s.pending = 0 and s.flags = 0 and (s.turn = 0 or s.outcome <> '')"
_NAMED = "s.id in (select value ->> 0 from json_each(:busy))"
SESSIONS = f"""
select id, name, root, parent, forked_at, spawner, agent, status, outcome, goal, labels, turn, turns, events, first_at,
    last_at, tokens, usd_micros, pending, flags, last_error, head, damaged,
    (select t.input from wl_turn t where t.session = s.no and t.input <> '' order by t.turn, t.attempt limit 1)
from wl_session s
where {_CHOSEN}
    and (:busy is null or not ({_AT_REST}) or {_NAMED})
    and (last_at, id) < (:at, :sid)
order by last_at desc, id desc limit :limit
"""
RESTING = f"""
select count(*) from wl_session s
where s.hidden = 0 and s.status in ('open', 'active') and {_AT_REST} and not {_NAMED}
    and s.last_at >= :since and (s.last_at, s.id) < (:at, :sid)
"""
_ONE_OF = "select '{0}' as facet, {1} as value, count(*) as n from wl_session s where {2} and {3}{4}"
COUNTS = "\nunion all\n".join(
    _ONE_OF.format(facet, value, _CHOSEN, having, f" group by {value}" if value.startswith("s.") else "")
    for facet, value, having in (
        ("status", "s.status", "1 = 1"),
        ("outcome", "s.outcome", "s.outcome <> ''"),
        ("agent", "s.agent", "s.agent <> ''"),
        ("needs", "'pending'", "pending > 0"),
        ("needs", "'flagged'", "flags > 0"),
        ("needs", "'failed'", "outcome = 'failed'"),
        ("needs", "'damaged'", "damaged <> ''"),
        ("is", "'fork'", "parent is not null"),
        ("is", "'sub-agent'", "spawner <> ''"),
    )
)
LABEL_COUNTS = f"""
select l.name, l.value, count(*) as n from wl_session s join wl_label l on l.session = s.no
where {_CHOSEN} group by l.name, l.value order by n desc, l.name, l.value limit :limit
"""
_EVENTS = f"""
select :session, e.seq, e.turn, e.attempt, e.kind, e.at, e.occurred, e.actor, e.tool, e.model, e.effect, e.action,
    e.path, e.key, e.outcome, e.summary, e.cause, {TRUST_NAME}, e.source, e.tokens, e.tokens_out, e.usd_micros,
    e.duration_us, e.commit_id, e.gone,
    exists (select 1 from wl_visible v where v.session = :number and e.seq between v.first and v.last)
from {SPANS}
cross join wl_event e on e.session = r.holder and e.seq between r.a and r.b
where e.occurred >= :since and (:tool is null or e.tool = :tool) and e.turn between :from_turn and :to_turn
    and (:kinds is null or exists (
        select 1 from json_each(:kinds) k
        where e.kind = k.value ->> 0 or substr(e.kind, 1, length(k.value ->> 0) + 1) = (k.value ->> 0) || '.'))
    and e.seq {{0}} :after order by e.seq {{1}} limit :limit
"""
EVENTS_UP, EVENTS_DOWN = _EVENTS.format(">", "asc"), _EVENTS.format("<", "desc")


_LABELS, _GOAL, _ABOUT = map(SessionInfo.__struct_fields__.index, ("labels", "goal", "about"))


class IndexMoment(msgspec.Struct, frozen=True):
    """A moment of the index: all queries through `db` are about it."""

    db: Connection
    as_of: AsOf
    engine: Engine
    """For texts that only the log has."""


def source_of(
    reading: IndexMoment,
    table: str,
    session: str | None,
    last_turns: int | None,
    since: int | None,
    rewound: bool,
    lineage: bool,
) -> tuple[str, dict[str, Any]]:
    """The part of a statement that selects the rows, and its values."""
    if session is None:
        if last_turns is not None:
            raise InvalidInputError(
                "last_turns needs a session, and none was named",
                kind="no-session",
                hint="name a session, or use since",
            )
        return _OF_ALL.format(table), {"rewound": rewound, "since": since or 0}
    scope = scope_of(reading.db, session, last_turns=last_turns, rewound=rewound, lineage=lineage)
    return _OF_ONE.format(table), {"since": since or 0, **values_of(scope)}


def values_of(scope: Scope) -> dict[str, Any]:
    return {"session": scope.session, "spans": as_rows(scope.spans)}


def page_of(reading: IndexMoment, kind: type[R], sql: str, values: dict[str, Any]) -> Page[R]:
    rows: Any = reading.db.execute(sql, values).fetchall()
    return Page(tuple(kind(*row) for row in rows), reading.as_of)


def list_of(reading: IndexMoment, kind: type[R], sql: str, values: dict[str, Any], after: str, limit: int) -> Page[R]:
    """A page of rows, the newest first. The last column is the time they are ordered by."""
    at, sid, seq = BEGINNING
    if after:
        parts = after.split(":")
        if len(parts) != 3:
            raise bad_place(after)
        at, sid, seq = as_number(parts[0]), parts[1], as_number(parts[2])
    values |= {"at": at, "sid": sid, "seq": seq, "limit": check_limit(limit) + 1}
    found: Any = reading.db.execute(sql, values).fetchall()
    rows = found[:limit]
    names = kind.__struct_fields__
    struct = described(kind)
    made = tuple(msgspec.convert(dict(zip(names, _opened(names, row), strict=True)), struct) for row in rows)
    token = f"{rows[-1][-1]}:{rows[-1][0]}:{rows[-1][1]}" if len(found) > limit else ""
    return Page(made, reading.as_of, token)


def _opened(names: tuple[str, ...], row: tuple[Any, ...]) -> list[Any]:
    return [
        msgspec.json.decode(value) if name == "alternatives" else value
        for name, value in zip(names, row[:-1], strict=True)
    ]


def event_of(row: list[Any]) -> EventInfo:
    row[-1] = bool(row[-1])
    return EventInfo(*row)


def session_of(row: tuple[Any, ...]) -> SessionInfo:
    fields = list(row)
    labels = fields[_LABELS] = {} if row[_LABELS] == "{}" else msgspec.json.decode(row[_LABELS])
    fields[_ABOUT] = row[_GOAL] or labels.get("title") or row[_ABOUT] or ""
    return SessionInfo(*fields)


def place_in_sessions(after: str) -> dict[str, Any]:
    """Where a list of sessions continues: the time and the id of its last one."""
    at, _, sid = after.partition(":")
    return {"at": as_number(at), "sid": sid} if after else {"at": BEGINNING[0], "sid": BEGINNING[1]}


def as_number(text: str | int) -> int:
    try:
        return int(text)
    except ValueError:
        raise bad_place(str(text)) from None


def bad_place(after: str) -> InvalidInputError:
    return InvalidInputError(
        f"{after!r} is not a valid page position", kind="bad-cursor", hint="pass the `next` of the previous page"
    )
