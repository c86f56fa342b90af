"""A stand-in for the Citus extension in a plain database: the functions and catalog tables that wakelog uses.

They record what was distributed, but distribute nothing. With it the engine takes its sharded code path on a real
PostgreSQL, and its statements can be checked (routing_rules.py). It cannot show what a real cluster's planner accepts.
"""

SQL = """
create table pg_dist_partition (
    logicalrelid regclass primary key, partkey text, colocationid int not null, shards int
);
create type noderole as enum ('primary', 'secondary', 'unavailable');
create table pg_dist_node (
    groupid int not null, nodename text not null, nodeport int not null, noderole noderole not null default 'primary'
);
create table pg_dist_shard (logicalrelid regclass, shardid bigint);
create table pg_dist_placement (shardid bigint primary key, groupid int not null);
insert into pg_dist_node values (1, 'w1', 5432), (2, 'w2', 5432);
insert into pg_dist_node values (1, 'standby-of-w1', 5432, 'secondary'), (2, 'a-standby-of-w2', 5432, 'secondary');
insert into pg_dist_placement select n, 1 + n % 2 from generate_series(0, 31) n;
create sequence colocation_ids;

create function create_distributed_table(table_name regclass, distribution_column text,
    distribution_type text default 'hash', colocate_with text default 'default', shard_count int default null)
returns void language plpgsql as $$
begin
    if exists (select 1 from pg_dist_partition where logicalrelid = table_name) then
        raise exception 'table % is already distributed', table_name using errcode = '42P16';
    end if;
    if exists (select 1 from pg_index i where i.indrelid = table_name and i.indisunique and not exists (
        select 1 from pg_attribute a
        where a.attrelid = table_name and a.attname = distribution_column and a.attnum = any(i.indkey))) then
        raise exception 'cannot create constraint on %', table_name using errcode = '0A000';
    end if;
    insert into pg_dist_shard select table_name, n from generate_series(0, 31) n;
    insert into pg_dist_partition values (table_name, distribution_column, case when colocate_with = 'none'
        then nextval('colocation_ids')
        else (select d.colocationid from pg_dist_partition d where d.logicalrelid = colocate_with::regclass) end,
        shard_count);
end $$;

create function create_reference_table(table_name regclass) returns void language sql as $$
    insert into pg_dist_partition values (table_name, null, 0, 1)
$$;
create function citus_total_relation_size(logicalrelid regclass, fail_on_error boolean default true)
returns bigint language sql stable as $$ select pg_total_relation_size(logicalrelid) $$;
create function get_shard_id_for_distribution_column(table_name regclass, distribution_value anyelement)
returns bigint language sql stable as $$ select abs(hashtext(distribution_value::text))::bigint % 32 $$;
create table worker_setting (synchronous_commit text not null);
insert into worker_setting values ('on');
create function run_command_on_workers(command text)
returns table (nodename text, nodeport int, success boolean, result text) language sql as $$
    select nodename, nodeport, true, case when command = 'show synchronous_commit'
        then (select synchronous_commit from worker_setting) else 'VACUUM' end
    from pg_dist_node where noderole = 'primary'
$$;
"""
