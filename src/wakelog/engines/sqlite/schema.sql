-- Rows have a checksum over their other columns (rows.py), with the session's id in place of its number.

-- One row per session; `no` stands for the id in the other tables, because it is shorter.
create table session (
    no        integer primary key,
    id        text not null unique,
    parent    text,
    fork_at   integer,
    fork_hash blob,
    checksum  integer not null
) strict;

create index session_parent on session (parent) where parent is not null;

-- A twin is a second way to the same rows. What is not found one way is looked for the other: so damage to an index is not
-- taken for absence, and the newest commit of a session cannot be hidden by one flipped byte.
create index session_twin on session (length(id), id);

create index session_parent_twin on session (length(parent), parent) where parent is not null;

create table name (
    name     text primary key,
    session  text not null,
    checksum integer not null
) strict, without rowid;

create index name_session on name (session);

create index name_twin on name (length(name), name);

create index name_session_twin on name (length(session), session);

-- One row per commit, in the order they were stored: `id` is the cursor of the store-wide feed. `records` stands before
-- `payloads`, so that reading the one does not touch the pages of the other. `kinds` and `paths` are JSON lists. `checksum`
-- covers the columns between `first` and `hash`; the blobs have their own.
create table log (
    id          integer primary key,
    session     integer not null,
    first       integer not null,
    last        integer not null,
    at          integer not null,
    epoch       integer not null,
    status      text not null,
    turn        integer not null,
    turn_first  integer not null,
    turn_last   integer not null,
    kinds       text not null,
    paths       text not null,
    commit_id   text not null,
    fingerprint blob not null,
    prev        blob not null,
    hash        blob not null,
    checksum    integer not null,
    records     blob not null,
    payloads    blob not null
) strict;

create unique index log_place on log (session, last);

create unique index log_twin on log (session, first);

-- Only ids that callers chose are indexed: a generated id tells its own place.
create table commit_id (
    session  integer not null,
    id       text not null,
    last     integer not null,
    checksum integer not null,
    primary key (session, id)
) strict, without rowid;

create index commit_id_twin on commit_id (session, length(id), id);

create table snapshot (
    session  integer not null,
    seq      integer not null,
    data     blob not null,
    checksum integer not null,
    primary key (session, seq)
) strict;

create table heartbeat (
    session  integer primary key,
    epoch    integer not null,
    holder   text not null,
    until    integer not null,
    checksum integer not null
) strict;

-- What was begun and must be completed by the next process: "scrub" while removed bytes may still be in the files.
create table chore (
    name text primary key
) strict, without rowid;

-- The steps that brought the tables here (migrations.py); a store without this table is of version 1.
create table migration (
    version integer primary key,
    at      integer not null
) strict;

-- Notes about the care of the store: how far a scrub has come.
create table mark (
    name     text primary key,
    value    text not null,
    checksum integer not null
) strict, without rowid;
