"""SQL reads the documented views and can do nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.every import every
from tests.index.conftest import ENGINES
from wakelog.errors import InvalidInputError, NotAllowedError, WakelogError
from wakelog.index import Index
from wakelog.index.sql import VALUE_MAX, VIEWS
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.testing.builders import new_session

RUNAWAY = "with recursive r(x) as (select 1 union all select x + 1 from r) select "


@pytest.fixture(scope="module", params=["memory", "sqlite"])
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """One index for all tests here: none of them can change it."""
    folder = tmp_path_factory.mktemp("sql")
    engine = ENGINES[request.param](folder)
    opened = ev.SessionOpened(name="demo", goal="the goal")
    Log.create(engine, new_session(), opened, ev.NoteAdded(text="first"), ev.NoteAdded(text="second"))
    with Index(engine, folder / "index.db" if request.param == "sqlite" else None) as made:
        yield made
    engine.close()


def test_a_query_answers_with_columns_and_rows(index: Index) -> None:
    table = index.query_sql("select name, goal as wanted from sessions where name = ?", ("demo",))
    assert table.columns == ("name", "wanted")
    assert table.rows == (("demo", "the goal"),)
    assert not table.truncated
    assert table.as_of == index.catch_up()


def test_columns_are_told_even_without_rows(index: Index) -> None:
    assert index.query_sql("select seq, kind from events where seq < 0").columns == ("seq", "kind")


def test_parameters_go_by_name_too(index: Index) -> None:
    assert index.query_sql("select :a || :b", {"a": "x", "b": "y"}).rows == (("xy",),)


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_can_be_read(index: Index, view: str) -> None:
    index.query_sql(f"select * from {view}")
    index.query_sql(f"select count(*) from {view} as v where exists (select 1 from {view})")
    index.query_sql(
        f"with a as (select * from {view}), b as (select * from a) select * from b union all select * from a"
    )


def test_the_usual_sql_works(index: Index) -> None:
    table = index.query_sql(
        "select e.kind, count(*) over (partition by e.kind), json_extract(s.labels, '$.team'), l.value"
        " from events e join sessions s on s.id = e.session left join json_each(s.labels) l"
        " where e.summary like '%fir%' and date(e.at) > '2000-01-01' order by 1 limit 3; -- with a remark"
    )
    assert [row[0] for row in table.rows] == ["note.added"]


def test_there_are_never_more_rows_than_allowed(index: Index) -> None:
    table = index.query_sql("select seq from events order by seq", max_rows=2)
    assert (table.rows, table.truncated) == (((1,), (2,)), True)
    table = index.query_sql("select seq from events order by seq", max_rows=3)
    assert (len(table.rows), table.truncated) == (3, False)


@every(
    "sql",
    [
        "attach ':memory:' as x",
        "attach 'file:/tmp/x?mode=ro' as x",
        "detach main",
        "pragma user_version",
        "pragma query_only = 0",
        "pragma writable_schema = 1",
        "select * from pragma_table_info('events')",
        "select * from pragma_database_list",
        "vacuum",
        "vacuum into '/tmp/wakelog-stolen.db'",
        "create table t (x)",
        "create temp table t (x)",
        "create temp view v as select 1",
        "create temp trigger t instead of insert on sessions begin select 1; end",
        "create virtual table t using fts5 (x)",
        "insert into sessions (id) values ('x')",
        "update sessions set name = 'x'",
        "delete from events",
        "drop view sessions",
        "alter table sessions rename to x",
        "reindex",
        "analyze",
        "begin",
        "begin immediate",
        "savepoint s",
        "commit",
        "select load_extension('x')",
        "select * from sqlite_master",
        "select * from sqlite_schema",
        "select * from main.sqlite_schema",
        "select * from sqlite_temp_schema",
        "select count(*) from sqlite_master",
        "select * from dbstat",
        "select fts5(1)",
    ],
)
def test_all_else_is_refused(index: Index, sql: str) -> None:
    before = index.query_sql("select * from events").rows
    with pytest.raises(NotAllowedError) as refused:
        index.query_sql(sql)
    assert refused.value.kind == "not-a-view"
    assert "sessions" in refused.value.hint
    assert index.query_sql("select * from events").rows == before


@every(
    "sql",
    [
        "select * from wl_event",
        "select * from main.wl_event",
        'select * from "WL_Event"',
        "select * from [wl_event]",
        "select * from `wl_event`",
        "select count(*) from wl_event",
        "select 1 from events where exists (select 1 from wl_session)",
        # Through these SQLite would tell the authoriser that a view is being read.
        "with events as (select * from wl_event) select * from events",
        "with events as materialized (select * from wl_session) select * from events",
        "select * from (select * from wl_event) as events",
        "select * from wl_words where wl_words match 'first'",
        "select * from wl_words_data",
        "select highlight(wl_words, 0, '', '') from wl_words",
    ],
)
def test_the_tables_behind_the_views_cannot_be_read(index: Index, sql: str) -> None:
    with pytest.raises(NotAllowedError) as refused:
        index.query_sql(sql)
    assert refused.value.kind == "not-a-view"


def test_a_word_that_only_looks_like_a_table_is_no_matter(index: Index) -> None:
    assert index.query_sql("select 'my_wl_event', 1 as owl_x").rows == (("my_wl_event", 1),)


@pytest.mark.parametrize("sql", ["select 1; select 2", "select 1; drop view events", "select 1;;select 2", ";select 1"])
def test_one_statement_is_all_that_is_run(index: Index, sql: str) -> None:
    if sql.startswith(";"):
        assert index.query_sql(sql).rows == ((1,),)
        return
    with pytest.raises(InvalidInputError, match="one statement"):
        index.query_sql(sql, max_rows=1)


@pytest.mark.parametrize("sql", ["", " ", ";", "-- nothing", "/* nothing */ ;"])
def test_no_statement_is_told_apart(index: Index, sql: str) -> None:
    with pytest.raises(InvalidInputError, match="no statement"):
        index.query_sql(sql)


@pytest.mark.parametrize(
    ("sql", "params", "says"),
    [
        ("selec 1", (), "syntax error"),
        ("select * from nowhere", (), "no such table: nowhere"),
        ("select missing from events", (), "no such column: missing"),
        ('select * from sessions where name = "demo"', (), "single-quotes"),
        ("select ?", (), "parameters do not fit"),
        ("select 1", (1,), "parameters do not fit"),
        ("select nofunction()", (), "no such function"),
        ("select 1" + "+1" * 2000, (), "too large"),
        ("select '" + "x" * 200_000 + "'", (), "longer than"),
    ],
)
def test_a_wrong_statement_is_told_what_is_wrong(index: Index, sql: str, params: tuple[int, ...], says: str) -> None:
    with pytest.raises(InvalidInputError, match=says) as told:
        index.query_sql(sql, params)
    assert told.value.kind == "bad-sql"


@pytest.mark.parametrize(
    "sql",
    [
        RUNAWAY + "count(*) from r",
        RUNAWAY + "x from r where x < 0",
        "select count(*) from events a, events b, events c, events d, events e, events f, events g, events h, events i,"
        " events j, events k, events l, events m, events n, events o, events p",
    ],
)
def test_a_runaway_query_is_stopped(index: Index, sql: str) -> None:
    with pytest.raises(NotAllowedError) as stopped:
        index.query_sql(sql, timeout_s=0.05)
    assert stopped.value.kind == "query-too-slow"
    assert index.query_sql("select 1").rows == ((1,),), "the connection can be used again"


@pytest.mark.parametrize(
    "sql",
    [
        "select zeroblob(2000000000)",
        f"select length(zeroblob({VALUE_MAX + 1}))",
        "select hex(randomblob(200000))",
        "select printf('%.*c', 1000000, 'x')",
        RUNAWAY.replace("1 union", "'x' union").replace("x + 1", "x || x") + "x from r",
        "select group_concat(e.summary || zeroblob(200000)) from events e",
    ],
)
def test_huge_values_are_refused(index: Index, sql: str) -> None:
    with pytest.raises(NotAllowedError) as refused:
        index.query_sql(sql, timeout_s=60)
    assert refused.value.kind == "query-too-big"


def test_a_query_that_hoards_memory_is_stopped(index: Index) -> None:
    with pytest.raises(NotAllowedError) as refused:
        index.query_sql(RUNAWAY + "x, zeroblob(200000) from r order by 2 desc, 1 desc", timeout_s=60)
    assert refused.value.kind == "query-too-big"


def test_the_rows_together_are_limited(index: Index) -> None:
    table = index.query_sql(RUNAWAY + "zeroblob(200000) from r limit 1000", max_rows=1000, timeout_s=60)
    assert table.truncated
    assert 10 < len(table.rows) < 100


@pytest.mark.parametrize(
    ("max_rows", "timeout_s"), [(0, 1.0), (-1, 1.0), (10**9, 1.0), (1, 0.0), (1, -1.0), (1, 1e9), (1, float("nan"))]
)
def test_limits_must_make_sense(index: Index, max_rows: int, timeout_s: float) -> None:
    with pytest.raises(InvalidInputError) as refused:
        index.query_sql("select 1", max_rows=max_rows, timeout_s=timeout_s)
    assert refused.value.kind == "bad-limit"


def test_every_refusal_is_one_of_ours(index: Index) -> None:
    for sql in (
        "\0",
        "select \0",
        "\ufeff",
        "select 'a\0b'",
        "select ?1000000",
        "explain select 1",
        "values (1)",
        "select $",
    ):
        with contextlib.suppress(WakelogError):
            index.query_sql(sql)
