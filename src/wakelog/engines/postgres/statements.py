"""Every statement that the engine sends, with explicit casts. Each is about one shard, or clearly about all of them."""

from __future__ import annotations

from pathlib import Path

from wakelog.engines.postgres.distribution import HAS_EXTENSION

COLUMNS = (
    "first, last, at, epoch, status, turn, turn_first, turn_last, kinds, paths, commit_id, fingerprint, prev, hash"
)
_NAMES = COLUMNS.split(", ")
_TYPES = ["bigint"] * 4 + ["text"] + ["bigint"] * 3 + ["text"] * 3 + ["bytea"] * 3


def micros(time: str) -> str:
    return f"(extract(epoch from {time}) * 1000000)::bigint"


NOW = micros("clock_timestamp()")
# On a sharded server, a volatile function would prevent that the statement is passed to the worker.
ROUTED_NOW = micros("statement_timestamp()")

# The commits of many sessions in one statement and one sync, one commit of each. A row is inserted if it follows its
# session's newest commit, the session is open, its epoch matches, its id was not used, and no concurrent append was
# first, which the key decides. Rows that were not inserted are judged again, one by one.
_BATCH = ["root", "session", *_NAMES, "records", "payloads", "snapshot", "guard", "late"]
_BATCH_TYPES = ["text", "text", *_TYPES, "bytea", "bytea", "bytea", "bigint", "boolean"]
_ARRAYS = ", ".join(f"${i + 2}::{kind}[]" for i, kind in enumerate(_BATCH_TYPES))
_FLOOR = f"${len(_BATCH) + 2}::bigint"
_SAME = "{0}.ns = $1::text and {0}.root = g.root and {0}.session = g.session"
APPEND = f"""
with given as (
    select * from unnest({_ARRAYS}) as g ({", ".join(_BATCH)})
), stored as (
    insert into wl_commit (ns, root, session, {COLUMNS}, records, payloads, stored_at)
    select $1::text, g.root, g.session, {", ".join("g." + n for n in _NAMES)}, g.records, g.payloads,
        greatest({NOW}, {_FLOOR} + 1)
    from given g
    cross join lateral (
        select p.last, p.hash, p.status, p.epoch from wl_commit p
        where {_SAME.format("p")} order by p.first desc limit 1
    ) h
    where h.last = g.first - 1 and h.hash = g.prev and h.status <> 'deleted'
        and (g.late or h.status not in ('closed', 'archived'))
        and (g.guard < 0 or h.epoch = g.guard)
        and not exists (
            select 1 from wl_commit_id k where {_SAME.format("k")} and k.commit_id = g.commit_id and g.fingerprint <> ''
        )
    on conflict (ns, root, session, first) do nothing
    returning root, session, first
), ids as (
    insert into wl_commit_id (ns, root, session, commit_id, first)
    select $1::text, g.root, g.session, g.commit_id, g.first
    from given g join stored s on s.root = g.root and s.session = g.session
    where g.fingerprint <> ''
    on conflict (ns, root, session, commit_id) do nothing
), snapshots as (
    insert into wl_snapshot (ns, root, session, seq, data)
    select $1::text, g.root, g.session, g.last, g.snapshot
    from given g join stored s on s.root = g.root and s.session = g.session
    where g.snapshot is not null
    on conflict (ns, root, session, seq) do nothing
)
select g.session, s.parent, s.fork_at, s.fork_hash, coalesce(t.name, '') as name
from stored g
join wl_session s on s.ns = $1::text and s.root = g.root and s.session = g.session
left join wl_title t on t.ns = $1::text and t.root = g.root and t.session = g.session
"""

_VALUES = ", ".join(f"${i + 4}::{kind}" for i, kind in enumerate([*_TYPES, "bytea", "bytea"]))
_INSERT = f"insert into wl_commit (ns, root, session, {COLUMNS}, records, payloads, stored_at)"
_INSERT_FLOOR = f"${len(_TYPES) + 6}::bigint"
INSERT = f"{_INSERT} values ($1::text, $2::text, $3::text, {_VALUES}, greatest({NOW}, {_INSERT_FLOOR} + 1))"
ROUTED_INSERT = INSERT.replace(NOW, ROUTED_NOW)

# One commit that brings no id of the caller and no snapshot, by the same conditions: for a lone writer the usual case.
# Without arrays and joins it costs the server half as much. It tells the session's name; a fork point never changes.
_OPEN_FOR = """{0}.status <> 'deleted' and (${2}::boolean or {0}.status not in ('closed', 'archived'))
    and (${1}::bigint < 0 or {0}.epoch = ${1}::bigint)"""
_FIRST, _PREV = "$4::bigint", f"${_NAMES.index('prev') + 4}::bytea"
APPEND_ONE = f"""
{_INSERT}
select $1::text, $2::text, $3::text, {_VALUES}, greatest({NOW}, $22::bigint + 1)
from (
    select p.last, p.hash, p.status, p.epoch from wl_commit p
    where p.ns = $1::text and p.root = $2::text and p.session = $3::text order by p.first desc limit 1
) h
where h.last = {_FIRST} - 1 and h.hash = {_PREV} and {_OPEN_FOR.format("h", 20, 21)}
on conflict (ns, root, session, first) do nothing
returning coalesce((
    select t.name from wl_title t where t.ns = $1::text and t.root = $2::text and t.session = $3::text
), '') as name
"""

# The append of one session on a sharded server, passed as a whole to the worker that has the session. So nothing in it
# may look like a query to all workers: one table, the root as a value and as the source column, no limit.
ROUTED_APPEND = f"""
{_INSERT}
select p.ns, p.root, p.session, {_VALUES}, greatest({ROUTED_NOW}, $22::bigint + 1)
from wl_commit p
where p.ns = $1::text and p.root = $2::text and p.session = $3::text and p.last = {_FIRST} - 1 and p.hash = {_PREV}
    and {_OPEN_FOR.format("p", 20, 21)}
on conflict (ns, root, session, first) do nothing
returning first
"""
# The same with an id that the caller chose, or a snapshot. The coordinator runs it in steps, so it is slower.
_ROUTED_ID, _ROUTED_PRINT = f"${_NAMES.index('commit_id') + 4}::text", f"${_NAMES.index('fingerprint') + 4}::bytea"
ROUTED_APPEND_WHOLE = f"""
with stored as (
    {_INSERT}
    select $1::text, $2::text, $3::text, {_VALUES}, greatest({ROUTED_NOW}, $23::bigint + 1)
    from (
        select p.last, p.hash, p.status, p.epoch from wl_commit p
        where p.ns = $1::text and p.root = $2::text and p.session = $3::text order by p.first desc limit 1
    ) h
    where h.last = {_FIRST} - 1 and h.hash = {_PREV} and {_OPEN_FOR.format("h", 21, 22)}
        and not exists (
            select 1 from wl_commit_id k
            where k.ns = $1::text and k.root = $2::text and k.session = $3::text and k.commit_id = {_ROUTED_ID}
                and {_ROUTED_PRINT} <> ''::bytea
        )
    on conflict (ns, root, session, first) do nothing
    returning first
), ids as (
    insert into wl_commit_id (ns, root, session, commit_id, first)
    select $1::text, $2::text, $3::text, {_ROUTED_ID}, s.first from stored s where {_ROUTED_PRINT} <> ''::bytea
    on conflict (ns, root, session, commit_id) do nothing
), snapshots as (
    insert into wl_snapshot (ns, root, session, seq, data)
    select $1::text, $2::text, $3::text, $5::bigint, $20::bytea from stored s where $20::bytea is not null
    on conflict (ns, root, session, seq) do nothing
)
select first from stored
"""
# Locks a session's row until the transaction ends. Workers may not be serializable, and then a fork and the deletion of
# its parent would not conflict.
TOUCH = "update wl_session set parent = parent where ns = $1::text and root = $2::text and session = $3::text"
# The worker that has a tree, or a name. Only the coordinator knows.
WORKER = """
select n.nodename || ':' || n.nodeport as worker from pg_dist_placement p
join pg_dist_node n on n.groupid = p.groupid and n.noderole = 'primary'
where p.shardid = get_shard_id_for_distribution_column('wl_commit'::regclass, $1::text)
order by n.nodename, n.nodeport limit 1
"""
NAME_WORKER = WORKER.replace("wl_commit", "wl_name")

_SET = zip([*_NAMES, "records", "payloads"], [*_TYPES, "bytea", "bytea"], strict=True)
UPDATE = f"""
update wl_commit set {", ".join(f"{n} = ${i + 4}::{t}" for i, (n, t) in enumerate(_SET))}
where ns = $1::text and root = $2::text and session = $3::text and last = $5::bigint
"""
INSERT_ID = """
insert into wl_commit_id (ns, root, session, commit_id, first)
values ($1::text, $2::text, $3::text, $4::text, $5::bigint)
"""
INSERT_SNAPSHOT = """
insert into wl_snapshot (ns, root, session, seq, data) values ($1::text, $2::text, $3::text, $4::bigint, $5::bytea)
on conflict (ns, root, session, seq) do nothing
"""
INSERT_SESSION = """
insert into wl_session (ns, root, session, parent, fork_at, fork_hash)
values ($1::text, $2::text, $3::text, $4::text, $5::bigint, $6::bytea)
"""

_OF = "ns = $1::text and root = $2::text and session = $3::text"
# The name is a subquery for each row returned. A join would read all names up to the page.
_HEADS = f"""
select s.session, s.parent, s.fork_at, s.fork_hash, c.*, coalesce((
    select t.name from wl_title t where t.ns = s.ns and t.root = s.root and t.session = s.session
), '') as name
from wl_session s
cross join lateral (
    select {COLUMNS} from wl_commit p
    where p.ns = s.ns and p.root = s.root and p.session = s.session order by p.first desc limit 1
) c
where s.ns = $1::text
"""
HEAD = f"{_HEADS} and s.root = $2::text and s.session = $3::text"
SESSIONS = f"""{_HEADS} and (s.root, s.session) > ($2::text, $3::text)
and c.status <> 'deleted' order by s.root, s.session limit $4::bigint"""
CHILDREN = f"{_HEADS} and s.root = $2::text and s.parent = $3::text order by s.session"

# The commit that holds event $4 + 1, or the first after it, up to the one that holds $5.
READ = f"""
select {COLUMNS}, records, case when $6::boolean then payloads else ''::bytea end as payloads from wl_commit
where {_OF} and last > $4::bigint and first <= $5::bigint and first >= coalesce((
    select max(b.first) from wl_commit b
    where b.ns = $1::text and b.root = $2::text and b.session = $3::text and b.first <= $4::bigint + 1
), 0)
order by first limit $7::bigint
"""
AT = f"select {COLUMNS} from wl_commit where {_OF} and first = $4::bigint"
BY_ID = f"""
select {", ".join("c." + n for n in _NAMES)} from wl_commit_id k
join wl_commit c on c.ns = k.ns and c.root = k.root and c.session = k.session and c.first = k.first
where k.ns = $1::text and k.root = $2::text and k.session = $3::text and k.commit_id = $4::text
"""
# A row without a snapshot if the session has none, and no row if there is no such session. Both tables name the root as
# a value, so that a sharded server finds the worker of each without following it through the join.
SNAPSHOT = """
select p.seq, p.data from wl_session s left join (
    select n.seq, n.data from wl_snapshot n
    where n.ns = $1::text and n.root = $2::text and n.session = $3::text and n.seq <= $4::bigint
    order by n.seq desc limit 1
) p on true
where s.ns = $1::text and s.root = $2::text and s.session = $3::text
"""
DROP_SNAPSHOTS = f"delete from wl_snapshot where {_OF} and seq >= $4::bigint and seq < $5::bigint"
DROP_COMMITS = f"delete from wl_commit where {_OF} and last < $4::bigint"
DROP_IDS = f"delete from wl_commit_id where {_OF} and first < $4::bigint"
DROP_BEAT = f"delete from wl_heartbeat where {_OF}"

CHANGES = """
select root, session, first, last, stored_at from wl_commit
where ns = $1::text and (stored_at, root, session, first) > ($2::bigint, $3::text, $4::text, $5::bigint)
order by stored_at, root, session, first limit $6::bigint
"""
# When the oldest transaction began that may have stored a commit that is not visible yet; without one, the start of
# this statement. A writer holds the table's lock from before a commit gets its time until the transaction ends, so
# readers and writers of other tables do not count. Not available (`is_told`) on servers that only speak the protocol,
# on a standby, or if this user may not see the activity of a lock's holder. On a sharded server a commit gets its time
# before its writer has the lock (ROUTED_NOW), and a writer may use another coordinator: then it is only the latest
# time that the horizon may have.
HORIZON = f"""
select {NOW} as now, {micros("least(now(), min(a.xact_start))")} as oldest,
    {HAS_EXTENSION} as is_sharded,
    version() like 'PostgreSQL %' and version() not like '%-YB-%' and not pg_is_in_recovery()
    and to_regclass('wl_commit') is not null and count(*) = count(a.xact_start) as is_told
from pg_locks l left join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'relation' and l.relation = to_regclass('wl_commit') and l.granted
    and l.database = (select oid from pg_database where datname = current_database())
    and l.mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock')
"""
NEWEST_TIME = "select max(stored_at) from wl_commit where ns = $1::text"
NEWEST = "select session, last, stored_at from wl_commit where ns = $1::text order by stored_at desc limit 1"

CLAIM = (
    "insert into wl_name (ns, name, session) values ($1::text, $2::text, $3::text) on conflict (ns, name) do nothing"
)
FIND = "select session from wl_name where ns = $1::text and name = $2::text"
TITLE = """
insert into wl_title (ns, root, session, name) values ($1::text, $2::text, $3::text, $4::text)
on conflict (ns, root, session) do nothing
"""
TITLE_OF = f"select name from wl_title where {_OF}"
DROP_TITLE = f"delete from wl_title where {_OF}"
DROP_NAME = "delete from wl_name where ns = $1::text and name = $2::text and session = $3::text"

BEAT = """
insert into wl_heartbeat (ns, root, session, epoch, holder, until)
values ($1::text, $2::text, $3::text, $4::bigint, $5::text, $6::bigint)
on conflict (ns, root, session) do update set epoch = excluded.epoch, holder = excluded.holder, until = excluded.until
"""
HEARD = "select session from wl_heartbeat where ns = $1::text and until >= $2::bigint"
LAST_BEAT = f"select epoch, holder, until from wl_heartbeat where {_OF}"

NOTES = "select name, content from wl_note where kind = $1::text"
ADD_NOTE = """
insert into wl_note (kind, name, content) values ($1::text, $2::text, $3::bytea)
on conflict (kind, name) do nothing returning name
"""
CHANGE_NOTE = """
update wl_note set content = $3::bytea
where kind = $1::text and name = $2::text and content = $4::bytea returning name
"""
DROP_NOTE = "delete from wl_note where kind = $1::text and name = $2::text and content = $3::bytea returning name"
NEXT_SPACE = "select min(ns) from wl_session where ns > $1::text"  # plainly about all shards

NOTIFY = "select pg_notify($1::text, $2::text)"
VERSION = "select max(version) from wl_version"
SET_VERSION = "insert into wl_version (version) values ($1::bigint) on conflict (version) do nothing"
MIGRATED = "select max(version) from wl_migration"
SET_MIGRATED = "insert into wl_migration (version) values ($1::bigint) on conflict (version) do nothing"
MARK = "select value from wl_mark where ns = $1::text and name = $2::text"
SET_MARK = """
insert into wl_mark (ns, name, value) values ($1::text, $2::text, $3::text)
on conflict (ns, name) do update set value = excluded.value
"""
ORDER = "select 's_A.B'::text < 's_AA'::text and 'B'::text < 'a'::text"


# Every statement reads a few rows by an index, so its plan does not depend on the values. Planning an append each time
# costs about as much as running it, and a plan made while a table was small must not scan it when it has grown. A
# process that hangs in a transaction must not hold back the feed (feed.py). An answered append has been synced, even if
# the server or the user is configured otherwise. A sharded server cannot use generic plans: the values decide which
# worker runs them.
SETTINGS = (
    f"select set_config('plan_cache_mode', 'force_generic_plan', false) where not ({HAS_EXTENSION})",
    "set enable_seqscan = off",
    "set idle_in_transaction_session_timeout = '60s'",
    "select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'",
)


def schema() -> list[str]:
    """The statements of schema.sql."""
    lines = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--"))
    return [statement for statement in text.split(";") if statement.strip()]
