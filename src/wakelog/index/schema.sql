-- The index: everything here was read from the log and can be read again. Bump SCHEMA_VERSION in database.py with every
-- change, also when the same log should now give other rows: an index of another version is thrown away.
--
-- The tables are called wl_… and are internal. Queries use the views below, described in
-- docs/reference/views.md; sql.py lets them read nothing else. The prefix matters: see there.
--
-- `session` is the session's number in wl_session. Times are microseconds since the epoch; `occurred` is when the
-- caller said that it happened, and else when it was stored.

create table wl_meta (
    one     integer primary key check (one = 1),
    cursor  text not null,      -- where the engine's feed goes on
    session text not null,      -- the newest commit taken in, by which the log is known again after a restart
    seq     integer not null,
    hash    blob not null,
    at      integer not null,   -- the time of the newest event
    made    blob not null,      -- tells this index from the one before, if it was rebuilt
    removed integer not null,   -- how often something was taken out
    clean   integer not null    -- how much of that is known to have left no bytes in the files
) strict;

insert into wl_meta values (1, '', '', 0, x'', 0, randomblob(8), 0, 0);

-- `head` and `hash` are the watermark. `born` is where the session stood when reading it began: erasures up to there
-- were already done in the bytes that were read. `carried` is what the projector must remember (rows.py). A session
-- that was deleted while forks still read through it is `hidden`. `worded` is up to where the words of its events can be
-- searched (word_backlog.py). `marked` is 1 if an event changes what distant ones count for, or is not trusted.
create table wl_session (
    no         integer primary key,
    id         text not null unique,
    name       text not null,
    root       text not null,
    parent     text,
    forked_at  integer,
    spawner    text not null,
    agent      text not null,
    status     text not null,
    outcome    text not null,
    goal       text,
    labels     text not null,
    turn       integer not null,
    turns      integer not null,
    events     integer not null,
    first_at   integer not null,
    last_at    integer not null,
    tokens     integer not null,
    usd_micros integer not null,
    pending    integer not null,
    flags      integer not null,
    last_error text not null,
    head       integer not null,
    hash       blob not null,
    born       integer not null,
    carried    blob not null,
    hidden     integer not null,
    damaged    text not null,
    project    text not null,
    worded     integer not null,
    marked     integer not null
) strict;

create index wl_session_last on wl_session (last_at, id);

create index wl_session_project on wl_session (project);

create index wl_session_damaged on wl_session (no) where damaged <> '';

create index wl_session_worded on wl_session (no) where worded < head;

-- `key`, here and in wl_tool, is the name in a length that any database takes in a key.
create table wl_label (
    session integer not null,
    key     text not null,
    name    text not null,
    value   text not null,
    primary key (session, key)
) strict, without rowid;

-- Who holds which part of a session's history, oldest first; the session itself comes last, with an open end.
create table wl_lineage (
    session integer not null,
    first   integer not null,
    last    integer not null,
    holder  integer not null,
    primary key (session, first)
) strict, without rowid;

create index wl_lineage_holder on wl_lineage (holder);

-- The ranges of a session's history that are in view; what lies between was rewound. The newest has an open end.
create table wl_visible (
    session integer not null,
    first   integer not null,
    last    integer not null,
    primary key (session, first)
) strict, without rowid;

create table wl_rewind (
    session integer not null,
    seq     integer not null,
    back_to integer not null,
    under   integer not null,
    primary key (session, seq)
) strict, without rowid;

create table wl_turn (
    session     integer not null,
    turn        integer not null,
    attempt     integer not null,
    first       integer not null,
    last        integer not null,
    started_at  integer not null,
    ended_at    integer,
    outcome     text not null,
    input       text not null,
    events      integer not null,
    tool_calls  integer not null,
    tool_errors integer not null,
    model_calls integer not null,
    files       integer not null,
    added       integer not null,
    removed     integer not null,
    tokens      integer not null,
    tokens_out  integer not null,
    usd_micros  integer not null,
    trust       integer not null,
    primary key (session, turn, attempt)
) strict, without rowid;

create table wl_event (
    session     integer not null,
    seq         integer not null,
    turn        integer not null,
    attempt     integer not null,
    kind        text not null,
    at          integer not null,
    occurred    integer not null,
    actor       text not null,
    tool        text not null,
    model       text not null,
    effect      text not null,
    action      text not null,
    path        text not null,
    key         text not null,
    outcome     text not null,
    summary     text not null,
    cause       integer not null,
    trust       integer not null,
    source      text not null,
    tokens      integer not null,
    tokens_out  integer not null,
    usd_micros  integer not null,
    duration_us integer not null,
    commit_id   text not null,
    gone        text not null,
    primary key (session, seq)
) strict, without rowid;

create table wl_file (
    session integer not null,
    seq     integer not null,
    path    text not null,
    change  text not null,
    added   integer not null,
    removed integer not null,
    primary key (session, seq)
) strict, without rowid;

create index wl_file_path on wl_file (path);

create table wl_decision (
    session      integer not null,
    seq          integer not null,
    choice       text not null,
    because      text not null,
    alternatives text not null,
    primary key (session, seq)
) strict, without rowid;

create table wl_fact (
    session   integer not null,
    seq       integer not null,
    key       text not null,
    value     text,
    retracted integer not null,
    primary key (session, seq)
) strict, without rowid;

create table wl_error (
    session integer not null,
    seq     integer not null,
    tool    text not null,
    type    text not null,
    message text not null,
    primary key (session, seq)
) strict, without rowid;

create table wl_message (
    session integer not null,
    seq     integer not null,
    role    text not null,
    primary key (session, seq)
) strict, without rowid;

create table wl_tool (
    session integer not null,
    key     text not null,
    tool    text not null,
    calls   integer not null,
    errors  integer not null,
    last    integer not null,
    primary key (session, key)
) strict, without rowid;

-- What was spent, one row for an event that cost something. `call` names a call by its own account of when it was made,
-- so that one that was imported twice is known again; `sub` is the sub-agent whose cost is repeated here. What pruned
-- events had cost is one row at the last of them. `unpriced` are the tokens whose money is not known.
create table wl_cost (
    session     integer not null,
    seq         integer not null,
    turn        integer not null,
    occurred    integer not null,
    tool        text not null,
    model       text not null,
    call        text not null,
    sub         text not null,
    tokens      integer not null,
    tokens_out  integer not null,
    usd_micros  integer not null,
    duration_us integer not null,
    unpriced    integer not null,
    primary key (session, seq)
) strict, without rowid;

create index wl_cost_sub on wl_cost (sub) where sub <> '';

-- Which sub-agents a session started or heard from, by their ids.
create table wl_spawn (
    session integer not null,
    seq     integer not null,
    turn    integer not null,
    child   text not null,
    primary key (session, seq)
) strict, without rowid;

-- The steps of turns: one row for each time that a call of a tool came to an end, by the event that says so. `asked` is
-- the event that asked for it. Labels, targets and signatures are those of model/call_subject.py and error_signature.py;
-- `input` is the beginning of the hash of what it was given.
create table wl_step (
    session     integer not null,
    seq         integer not null,
    asked       integer not null,
    turn        integer not null,
    attempt     integer not null,
    label       text not null,
    target      text not null,
    act         text not null,
    outcome     text not null,
    input       text not null,
    signature   text not null,
    duration_us integer not null,
    at          integer not null,
    trust       integer not null,
    primary key (session, seq)
) strict, without rowid;

-- Calls that ended, summed by turn, phase and duration (model/totals.py says what these are). Pruned calls are in it too.
create table wl_sum (
    session     integer not null,
    turn        integer not null,
    attempt     integer not null,
    phase       integer not null,
    bucket      integer not null,
    phases      integer not null,
    calls       integer not null,
    errors      integer not null,
    duration_us integer not null,
    primary key (session, turn, attempt, phase, bucket)
) strict, without rowid;

-- What deleted sessions came to, where that was to be kept: JSON lists of numbers, as their tombstones have them.
create table wl_kept (
    id     text not null,
    totals text not null,
    calls  text not null,
    primary key (id)
) strict, without rowid;

-- What sessions had to do with: one row for a thing, a session and a way. A thing is its kind and its name, and nothing
-- more: so no thing is left over when its last session is gone. `first` and `last` are events, `at` the time of the last,
-- `trust` the worst of all.
create table wl_touch (
    session integer not null,
    key     text not null,
    kind    text not null,
    how     text not null,
    name    text not null,
    times   integer not null,
    first   integer not null,
    last    integer not null,
    at      integer not null,
    trust   integer not null,
    primary key (session, key, kind, how)
) strict, without rowid;

create index wl_touch_key on wl_touch (key, kind);

create table wl_dead_end (
    session integer not null,
    seq     integer not null,
    tried   text not null,
    learned text not null,
    primary key (session, seq)
) strict, without rowid;

-- What a session was shown of others, by their events: `source` is `session@seq`.
create table wl_shown (
    session integer not null,
    seq     integer not null,
    no      integer not null,
    source  text not null,
    primary key (session, seq, no)
) strict, without rowid;

-- What rules found in a turn's words (insight): places only, never words. Written when it was asked for, and not by the
-- projector. `no` 0 says that the turn was read, by which rules; what they found counts from 1. A span is `start` to
-- `stop` in the text `block` of the event `seq`; `calls` are events, as a JSON list.
create table wl_finding (
    session      integer not null,
    turn         integer not null,
    attempt      integer not null,
    no           integer not null,
    rules        integer not null,
    kind         text not null,
    seq          integer not null,
    block        integer not null,
    start        integer not null,
    stop         integer not null,
    reason_seq   integer not null,
    reason_block integer not null,
    reason_start integer not null,
    reason_stop  integer not null,
    score        integer not null,
    detail       text not null,
    calls        text not null,
    primary key (session, turn, attempt, no)
) strict, without rowid;

-- What events say, where a view shows it or the log does not have it any more; what can be searched is more than that,
-- and read from the log (words.py). `id` is the session's number and the event's seq in one integer (number * 2^32 +
-- seq), because full-text rows have an integer for a name.
create table wl_text (
    id   integer primary key,
    body text not null
) strict;

create virtual table wl_words using fts5 (
    body, content = '', contentless_delete = 1, tokenize = "unicode61 remove_diacritics 2"
);

-- Segments are merged when there are many, and all at the end of a long backlog (word_backlog.py); to merge some with
-- every transaction would take a third of the time that words take.
insert into wl_words (wl_words, rank) values ('automerge', 0);

-- Events of which a model could read more than their words tell (word_places.py).
create table wl_partly_worded (
    session integer not null,
    seq     integer not null,
    primary key (session, seq)
) strict, without rowid;

-- The views. A session that is hidden has no rows in them.

create view sessions as
select
    id, name, root, parent, forked_at, spawner, agent, status, outcome, goal, labels, turn, turns, events,
    strftime('%Y-%m-%dT%H:%M:%fZ', first_at / 1e6, 'unixepoch') as first_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', last_at / 1e6, 'unixepoch') as last_at,
    first_at as first_us, last_at as last_us,
    tokens, usd_micros, pending, flags, last_error, head, damaged
from wl_session where not hidden;

create view turns as
select
    s.id as session, t.turn, t.attempt, t.first, t.last,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.started_at / 1e6, 'unixepoch') as started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.ended_at / 1e6, 'unixepoch') as ended_at,
    t.started_at as started_us, t.ended_at as ended_us,
    t.outcome, t.input, t.events, t.tool_calls, t.tool_errors, t.model_calls, t.files, t.added, t.removed,
    t.tokens, t.tokens_out, t.usd_micros,
    iif(t.trust = 0, 'trusted', iif(t.trust = 1, 'unverified', 'untrusted')) as trust,
    exists (select 1 from wl_visible v where v.session = t.session and v.first <= t.last and v.last >= t.first)
        as in_view
from wl_turn t join wl_session s on s.no = t.session where not s.hidden;

create view events as
select
    s.id as session, e.seq, e.turn, e.attempt, e.kind,
    strftime('%Y-%m-%dT%H:%M:%fZ', e.at / 1e6, 'unixepoch') as at,
    strftime('%Y-%m-%dT%H:%M:%fZ', e.occurred / 1e6, 'unixepoch') as occurred_at,
    e.at as at_us, e.occurred as occurred_us,
    e.actor, e.tool, e.model, e.effect, e.action, e.path, e.key, e.outcome, e.summary, e.cause,
    iif(e.trust = 0, 'trusted', iif(e.trust = 1, 'unverified', 'untrusted')) as trust,
    e.source, e.tokens, e.tokens_out, e.usd_micros, e.duration_us, e.commit_id, e.gone,
    exists (select 1 from wl_visible v where v.session = e.session and e.seq between v.first and v.last) as in_view
from wl_event e join wl_session s on s.no = e.session where not s.hidden;

create view files as
select
    s.id as session, f.path, f.seq, e.turn, e.attempt,
    strftime('%Y-%m-%dT%H:%M:%fZ', e.occurred / 1e6, 'unixepoch') as at, e.occurred as at_us,
    f.change, f.added, f.removed,
    exists (select 1 from wl_visible v where v.session = f.session and f.seq between v.first and v.last) as in_view
from wl_file f join wl_session s on s.no = f.session join wl_event e on e.session = f.session and e.seq = f.seq
where not s.hidden;

create view decisions as
select
    s.id as session, d.seq, e.turn, e.attempt,
    strftime('%Y-%m-%dT%H:%M:%fZ', e.occurred / 1e6, 'unixepoch') as at, e.occurred as at_us,
    d.choice, d.because, d.alternatives,
    exists (select 1 from wl_visible v where v.session = d.session and d.seq between v.first and v.last) as in_view
from wl_decision d join wl_session s on s.no = d.session join wl_event e on e.session = d.session and e.seq = d.seq
where not s.hidden;

create view facts as
select
    s.id as session, f.seq, e.turn, e.attempt,
    strftime('%Y-%m-%dT%H:%M:%fZ', e.occurred / 1e6, 'unixepoch') as at, e.occurred as at_us,
    f.key, f.value, f.retracted,
    exists (select 1 from wl_visible v where v.session = f.session and f.seq between v.first and v.last) as in_view
from wl_fact f join wl_session s on s.no = f.session join wl_event e on e.session = f.session and e.seq = f.seq
where not s.hidden;

create view errors as
select
    s.id as session, x.seq, e.turn, e.attempt,
    strftime('%Y-%m-%dT%H:%M:%fZ', e.occurred / 1e6, 'unixepoch') as at, e.occurred as at_us,
    x.tool, x.type, x.message,
    exists (select 1 from wl_visible v where v.session = x.session and x.seq between v.first and v.last) as in_view
from wl_error x join wl_session s on s.no = x.session join wl_event e on e.session = x.session and e.seq = x.seq
where not s.hidden;

create view messages as
select
    s.id as session, m.seq, e.turn, e.attempt,
    strftime('%Y-%m-%dT%H:%M:%fZ', e.occurred / 1e6, 'unixepoch') as at, e.occurred as at_us,
    m.role, coalesce((select body from wl_text where id = m.session << 32 | m.seq), '') as text,
    exists (select 1 from wl_visible v where v.session = m.session and m.seq between v.first and v.last) as in_view
from wl_message m join wl_session s on s.no = m.session join wl_event e on e.session = m.session and e.seq = m.seq
where not s.hidden;

create view tools as
select s.id as session, t.tool, t.calls, t.errors, t.last
from wl_tool t join wl_session s on s.no = t.session where not s.hidden;
