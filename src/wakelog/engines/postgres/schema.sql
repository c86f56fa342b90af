-- The shard key, namespace and root of the fork tree, comes first in every key. So one tree is on one shard, and a
-- statement about a session needs no other shard. Other databases that speak PostgreSQL's protocol accept all of this: no
-- sequences, triggers, foreign keys, locks, partial constraints, or types of an extension. Bodies are bytes.

create table if not exists wl_version (
    version bigint not null primary key
);

create table if not exists wl_session (
    ns        text not null,
    root      text not null,
    session   text not null,
    parent    text,
    fork_at   bigint,
    fork_hash bytea,
    primary key (ns, root, session)
);

create index if not exists wl_session_parent on wl_session (ns, root, parent);

-- One row per commit. Two writers that saw the same head use the same `first`, and the key admits one of them.
create table if not exists wl_commit (
    ns          text not null,
    root        text not null,
    session     text not null,
    first       bigint not null,
    last        bigint not null,
    at          bigint not null,
    epoch       bigint not null,
    status      text not null,
    turn        bigint not null,
    turn_first  bigint not null,
    turn_last   bigint not null,
    kinds       text not null,
    paths       text not null,
    commit_id   text not null,
    fingerprint bytea not null,
    prev        bytea not null,
    hash        bytea not null,
    records     bytea not null,
    payloads    bytea not null,
    stored_at   bigint not null,
    primary key (ns, root, session, first)
);

create index if not exists wl_commit_feed on wl_commit (ns, stored_at);

-- Only ids that callers chose. A generated id is found by its position.
create table if not exists wl_commit_id (
    ns        text not null,
    root      text not null,
    session   text not null,
    commit_id text not null,
    first     bigint not null,
    primary key (ns, root, session, commit_id)
);

create table if not exists wl_snapshot (
    ns      text not null,
    root    text not null,
    session text not null,
    seq     bigint not null,
    data    bytea not null,
    primary key (ns, root, session, seq)
);

create table if not exists wl_heartbeat (
    ns      text not null,
    root    text not null,
    session text not null,
    epoch   bigint not null,
    holder  text not null,
    until   bigint not null,
    primary key (ns, root, session)
);

-- A name is looked up without its session, so it is sharded by itself. wl_title has the name in the session's shard.
create table if not exists wl_name (
    ns      text not null,
    name    text not null,
    session text not null,
    primary key (ns, name)
);

-- What the servers on one database share, outside any namespace: API keys, and the names of namespaces.
create table if not exists wl_note (
    kind    text not null,
    name    text not null,
    content bytea not null,
    primary key (kind, name)
);

create table if not exists wl_title (
    ns      text not null,
    root    text not null,
    session text not null,
    name    text not null,
    primary key (ns, root, session)
);

-- Notes about a namespace's maintenance, such as the progress of a scrub.
create table if not exists wl_mark (
    ns    text not null,
    name  text not null,
    value text not null,
    primary key (ns, name)
);

-- The migrations that were taken (migrations.py). A store without this table has version 1.
create table if not exists wl_migration (
    version bigint not null primary key
);

insert into wl_migration (version) values (2) on conflict (version) do nothing;
