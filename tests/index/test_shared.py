"""An index in the database that has the log: the answers of one in SQLite, made once for all who ask."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import wakelog
from tests.engines.postgres_server import Server
from tests.engines.test_postgres_statements import REFUSED
from tests.index.asking import contents
from tests.index.conftest import Viewed
from tests.index.play import Player
from tests.index.test_fresh import start
from tests.seeds import examples
from wakelog.engines.postgres import PostgresEngine
from wakelog.errors import InvalidInputError, UnsupportedError
from wakelog.index import Index, dialect
from wakelog.index.comparison import differences
from wakelog.index.connection import Keep, as_rows, no_text
from wakelog.index.costs import BY
from wakelog.index.database import SCHEMA_VERSION
from wakelog.index.shared_index import SharedDatabase, SharedIndex
from wakelog.index.words import TOKENIZER
from wakelog.log import Log
from wakelog.log.removal import delete, erase, prune
from wakelog.model import events as ev
from wakelog.testing.builders import new_session

SECRET = "hunter2walrus"

PROJECTOR = """
import sys
from wakelog.engines.postgres import PostgresEngine
from wakelog.index.shared_index import SharedIndex
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.testing.builders import new_session

engine = PostgresEngine(sys.argv[1], ns=sys.argv[2])
log = Log.create(engine, new_session(), ev.SessionOpened())
sys.stdin.readline()
with SharedIndex(engine, None) as index:
    for i in range(15):
        head = log.append(ev.TurnStarted(input=f"turn {i}"), ev.FileChanged(path=f"f{i}.py"), ev.TurnEnded())
        assert index.turns(log.id)[0].last == head.seq
        assert len(index.files_modified(log.id)) == i + 1
        assert len(index.search("turn", session=log.id, limit=100)) == i + 1
print("done", flush=True)
"""


@pytest.fixture
def engine(postgres: Server) -> Iterator[PostgresEngine]:
    made = PostgresEngine(postgres.url, ns=uuid.uuid4().hex)
    yield made
    made.close()


@pytest.fixture
def index(engine: PostgresEngine) -> Iterator[Index]:
    with Viewed(engine, None) as made:
        yield made


def answers(index: Index, sessions: Sequence[str]) -> dict[str, Any]:
    """What an index says about everything that the player does. Where it stands in the feed is left out: a cursor
    depends on what other transactions were at work when it was made."""
    out: dict[str, Any] = {"contents": contents(index)}
    for text in (
        "deploy",
        "cors login",
        '"run sql"',
        "run_sql",
        "arg*",
        "naive",
        "日本*",
        "x",
        "y token",
        "«q»",
        "-",
        "a",
    ):
        out[f"find {text}"] = index.search(text, limit=1000)
        out[f"find {text} in messages"] = index.search(text, kind="message", limit=1000)
    for by in (*BY, "label:team", "label:x"):
        out[f"costs by {by}"] = index.costs(by=by)
    for asked in (
        {"label": "team"}, {"label": "team=a"}, {"name_glob": "n[0-3]*"}, {"name_glob": "?*"}, {"failed": True},
        {"live": False}, {"agent": "coder"}, {"prefix": "s_0"}, {"status": "open"},
        {"pending": True}, {"flagged": False}, {"text": "N1"}, {"text": "deploy"},
    ):  # fmt: skip
        out[f"sessions {asked}"] = index.sessions(**asked)
    for session in (None, *sessions):
        for rewound in (False, True):
            for question in (index.files_modified, index.decisions, index.errors, index.tools):
                out[f"{question.__name__} {session} {rewound}"] = question(session, rewound=rewound)
    for session in sessions:
        out[f"turns {session}"] = index.turns(session, rewound=True)
        out[f"last turns {session}"] = index.files_modified(session, last_turns=2)
        out[f"events {session}"] = index.events(session, kinds=["action", "note.added"], limit=20)
        out[f"find in {session}"] = index.search("deploy", session=session, limit=1000)
        for by in ("turn", "session", "tool"):
            out[f"costs {session} by {by}"] = index.costs(session, by=by)
    return {
        asked: _found(answer) if asked.startswith("find ") else _without_cursor(answer) for asked, answer in out.items()
    }


def _found(hits: Any) -> Any:
    """What was found; in which order is each database's own."""
    return {msgspec.structs.replace(hit, rank=0.0) for hit in hits}


def _without_cursor(answer: Any) -> Any:
    if not hasattr(answer, "as_of"):
        return answer
    return msgspec.structs.replace(answer, as_of=msgspec.structs.replace(answer.as_of, cursor=""))


@settings(max_examples=examples(3))
@given(seed=st.integers(0, 2**32))
@example(seed=140)  # it failed when another transaction was at work between the two
def test_both_places_give_the_same_answers(postgres: Server, seed: int) -> None:
    engine = PostgresEngine(postgres.url, ns=uuid.uuid4().hex)
    with Viewed(engine, None) as shared, Index(engine, None) as local:
        player = Player(engine, seed)
        for surgery in (player.erase, player.prune, player.delete):
            player.play(25)
            shared.catch_up()
            local.catch_up()
            if len(player.logs) > 1:
                surgery(player.dice.choice(player.logs))
            asked = [log.id for log in player.logs]
            assert answers(shared, asked) == answers(local, asked)
        assert list(differences(shared, engine)) == []
    engine.close()


FORGED = {
    "session": "update wi_session set goal = 'world peace' where ns = $1",
    "event": "update wi_event set summary = 'nothing happened' where ns = $1 and seq = 2",
    "decision": "delete from wi_decision where ns = $1",
    "text": "update wi_text set body = 'all is well' where ns = $1",
    "cost": "insert into wi_cost select ns, session, 1, 1, 1, 'x', 'x', '', '', 1, 1, 1, 1, 0 from wi_event"
    " where ns = $1 and seq = 2",
    "lineage": "update wi_lineage set last = 1 where ns = $1",
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_row_is_found_by_the_log(engine: PostgresEngine, what: str) -> None:
    log = Log.create(
        engine, new_session(), ev.SessionOpened(goal="tidy up"), ev.DecisionMade(choice="sweep", because="dust")
    )
    with SharedIndex(engine, None) as index:
        assert list(differences(index, engine)) == []  # nobody has asked it yet
        index.catch_up()
        assert list(differences(index, engine)) == []
        _forge(engine, FORGED[what])
        assert list(differences(index, engine)) == [(log.id, what)]
        index.rebuild()
        assert list(differences(index, engine)) == []


def test_a_session_that_the_log_does_not_have_is_found(engine: PostgresEngine) -> None:
    Log.create(engine, new_session(), ev.SessionOpened())
    with SharedIndex(engine, None) as index:
        index.catch_up()
        columns = ", ".join(c for c in dialect.TABLES["wl_session"].columns if c not in ("no", "id"))
        _forge(
            engine,
            f"insert into wi_session (ns, no, id, {columns})"
            f" select ns, 99, 's_made_up', {columns} from wi_session where ns = $1",
        )
        assert list(differences(index, engine)) == [("s_made_up", "session")]


def _forge(engine: PostgresEngine, statement: str) -> None:
    async def run() -> None:
        db = await asyncpg.connect(engine.url)
        try:
            assert await db.execute(statement, engine.ns) not in ("UPDATE 0", "DELETE 0", "INSERT 0 0")
        finally:
            await db.close()

    asyncio.run(run())


@pytest.mark.parametrize("how", [erase, prune])
def test_both_places_give_the_same_answers_while_another_transaction_is_at_work(
    postgres: Server, engine: PostgresEngine, index: Index, how: Any
) -> None:
    log = Log.create(engine, new_session(), ev.SessionOpened(name="n"), ev.NoteAdded(text="deploy"))

    async def hold(meanwhile: Callable[[], None]) -> None:
        db = await asyncpg.connect(postgres.url)
        try:
            async with db.transaction():
                await db.fetchval("select 1")
                await asyncio.to_thread(meanwhile)
        finally:
            await db.close()

    def meanwhile() -> None:
        how(log, [2] if how is erase else 2)
        index.catch_up()

    with Index(engine, None) as local:
        asyncio.run(hold(meanwhile))
        assert answers(index, [log.id]) == answers(local, [log.id])
        assert not index.search("deploy").rows


def fts5(texts: list[str]) -> apsw.Connection:
    db = apsw.Connection(":memory:")
    db.execute(f'create virtual table t using fts5 (body, tokenize = "{" ".join(TOKENIZER)}")')
    db.executemany("insert into t (rowid, body) values (?, ?)", list(enumerate(texts)))
    return db


FOUND = "select {seq}, {found} from {source} where {matches} limit :limit"

WORDS = st.sampled_from(("a", "b", "ab", "abc", "Ä", "ß", "run_sql", "日本", "x" * 300, "x" * 301, "é", "1"))
TEXTS = st.one_of(
    st.lists(WORDS, max_size=30).map(" ".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    st.just("a b " * 300),
)


@settings(max_examples=examples(40))
@given(texts=st.lists(TEXTS, min_size=1, max_size=8), data=st.data())
def test_words_are_found_as_in_sqlite(postgres: Server, texts: list[str], data: st.DataObject) -> None:
    said = sorted({word for text in texts for word in text.replace("\0", " ").split() if '"' not in word}) or ["a"]
    phrase = st.lists(st.sampled_from(said), min_size=1, max_size=3).map(" ".join)
    terms = data.draw(st.lists(st.tuples(phrase, st.booleans()), min_size=1, max_size=3))
    query = " ".join(f'"{words}"' + "*" * star for words, star in terms)
    wanted = fts5(texts).execute("select rowid from t where t match ? order by rowid", (query,)).fetchall()
    place = SharedDatabase(postgres.url, uuid.uuid4().hex)
    with place.writing() as db:
        db.words.add([(id_, text, Keep.NOTHING) for id_, text in enumerate(texts)])
    with place.reading() as db:
        found = db.words.find(FOUND, terms, {"low": 0, "high": 1 << 40}, 100, no_text)
        assert sorted((row[0],) for row in found) == wanted
        assert [row[-1] for row in found] == sorted(row[-1] for row in found)
    with place.writing() as db:
        db.words.remove(0, 255)
        assert db.execute("select t.id from wl_text t").fetchall() == []
    place.close()


@pytest.fixture(scope="module")
def patterns(postgres: Server) -> Iterator[SharedDatabase]:
    place = SharedDatabase(postgres.url, "patterns")
    with place.reading():
        pass  # its connection is this fixture's, not that of the first test
    yield place
    place.close()


@given(st.text("ab*?[]^-c\n\\.(é", max_size=8), st.lists(st.text("abc-]^\n.é", max_size=5), max_size=8))
def test_a_pattern_of_names_matches_as_in_sqlite(patterns: SharedDatabase, pattern: str, names: list[str]) -> None:
    db = apsw.Connection(":memory:")
    wanted = [name for name in names if db.execute("select ? glob ?", (name, pattern)).get]
    with patterns.reading() as shared:
        found = shared.execute(
            "select r.value ->> 0 from json_each(:names) r join wl_meta m on m.one = 1"
            " where r.value ->> 0 glob :pattern",
            {"names": as_rows((name,) for name in names), "pattern": pattern},
        )
        assert [name for (name,) in found.fetchall()] == wanted


@given(st.lists(st.text(st.sampled_from("\0\1\2ab\x7f"), max_size=6), max_size=6))
def test_texts_come_back_as_they_were_and_in_their_order(texts: list[str]) -> None:
    kept = [dialect.to_stored(text) for text in texts]
    assert [dialect.from_stored(text) for text in kept] == texts
    assert [dialect.from_stored(text) for text in sorted(kept)] == sorted(texts)
    assert not any("\0" in text for text in kept)


def test_names_of_any_length_are_taken_in(engine: PostgresEngine, index: Index) -> None:
    long = "".join(uuid.uuid4().hex for _ in range(400))
    log = Log.create(engine, new_session(), ev.SessionOpened(name=long, agent=long, labels={long: long}))
    log.append(ev.FileChanged(path=long), ev.ActionRecorded(action=long, tool=long), ev.NoteAdded(text=long))
    log.append(ev.SubagentReturned(session=long, cost=ev.Cost(1, 1, 1, 1)), ev.FactRecorded(key=long, value=long))
    assert index.tools()[0].tool == index.files_modified()[0].path == long
    assert index.sessions(label=long)[0].labels == {long: long}
    assert index.search(long).rows
    assert index.search(long[:100] + "*").rows


def test_several_processes_bring_one_index_forward(postgres: Server, engine: PostgresEngine) -> None:
    children = [start(PROJECTOR, postgres.url, engine.ns) for _ in range(3)]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        out, _ = child.communicate(timeout=120)
        assert (out, child.returncode) == ("done\n", 0)
    with Viewed(engine, None) as shared, Index(engine, None) as local:
        assert len(shared.sessions()) == 3
        assert contents(shared) == contents(local)
        found = {(hit.session, hit.seq) for hit in shared.search("turn", limit=100)}
        assert found == {(hit.session, hit.seq) for hit in local.search("turn", limit=100)}
        shared.rebuild()
        assert contents(shared) == contents(local)


def test_a_question_that_cannot_be_asked_leaves_the_index_alone(engine: PostgresEngine, index: Index) -> None:
    Log.create(engine, new_session(), ev.SessionOpened())
    made = index.catch_up()
    with pytest.raises(InvalidInputError):
        index.sessions(since=1 << 70)
    assert index.catch_up() == made


def test_what_one_has_taken_in_the_next_finds(engine: PostgresEngine, index: Index) -> None:
    Log.create(engine, new_session(), ev.SessionOpened(), ev.NoteAdded(text="x"))
    index.catch_up()
    told: list[int] = []
    with SharedIndex(engine, None) as other:
        other.catch_up(lambda done, total: told.append(done))
        assert told == []
        assert len(other.search("x")) == 1


def holding(postgres: Server, engine: PostgresEngine, secret: str) -> list[str]:
    """The tables of the index with a row that holds `secret` in any way."""
    found = f"x where x.ns = '{engine.ns}' and x::text like '%{secret}%'"
    tables = [dialect.table_name(table) for table in dialect.TABLES]
    return [table for table in tables if postgres.ask(f"select count(*) from {table} {found}") != "0"]


def is_in_the_index_of_words(postgres: Server, secret: str) -> bool:
    """Whether the file of the GIN index holds `secret`: an entry outlives the last row that it leads to."""
    postgres.sql("checkpoint")
    content = f"pg_read_binary_file(pg_relation_filepath('{dialect.WORDS_INDEX}'))"
    return postgres.ask(f"select position('{secret}'::bytea in {content})") != "0"


@pytest.mark.parametrize("how", ["erase", "prune", "delete"])
def test_what_is_removed_is_gone_for_everybody_at_once(postgres: Server, engine: PostgresEngine, how: str) -> None:
    log = Log.create(engine, new_session(), ev.SessionOpened())
    said = ev.MessageAdded(role="user", content=SECRET), ev.ActionRecorded(action="a", tool="t", output=SECRET)
    seq = log.append(ev.TurnStarted(input=SECRET), *said, ev.NoteAdded(text=SECRET), ev.TurnEnded()).seq
    log.append(ev.NoteAdded(text="what stays"))
    with SharedIndex(engine, None) as index, SharedIndex(engine, None) as other:
        assert index.search(SECRET).rows
        assert len(holding(postgres, engine, SECRET)) == 3
        assert is_in_the_index_of_words(postgres, SECRET)
        if how == "erase":
            erase(log, list(range(2, seq)))
        elif how == "prune":
            prune(log, seq)
        else:
            delete(log)
        other.scrub()
        assert holding(postgres, engine, SECRET) == []
        assert not is_in_the_index_of_words(postgres, SECRET)
        assert not index.search(SECRET).rows
        assert len(index.search("what stays")) == (how != "delete")


def test_an_index_that_nobody_asked_is_not_made_to_be_scrubbed(engine: PostgresEngine) -> None:
    log = Log.create(engine, new_session(), ev.SessionOpened(), ev.NoteAdded(text=SECRET))
    with SharedIndex(engine, None) as index:
        erase(log, [2])
        index.scrub()
        with index._database.reading() as db:
            assert db.execute("select s.id from wl_session s").fetchall() == []


def test_namespaces_do_not_see_each_other(postgres: Server, engine: PostgresEngine, index: Index) -> None:
    Log.create(engine, new_session(), ev.SessionOpened(name="mine"), ev.NoteAdded(text="walrus"))
    other = PostgresEngine(postgres.url, ns=uuid.uuid4().hex)
    Log.create(other, new_session(), ev.SessionOpened(name="theirs"), ev.NoteAdded(text="walrus walrus"))
    with Viewed(other, None) as theirs:
        assert [hit.name for hit in theirs.search("walrus")] == ["theirs"]
        assert [hit.name for hit in index.search("walrus")] == ["mine"]
        theirs.rebuild()
        assert [info.name for info in index.sessions()] == ["mine"]
        with Index(engine, None) as local:
            assert _found(index.search("walrus")) == _found(local.search("walrus"))
    other.close()


@pytest.mark.usefixtures("cures")
def test_an_index_that_lost_a_table_is_made_anew(tmp_path: Path) -> None:
    server = Server().create().start(fsync="off")
    try:
        engine = PostgresEngine(server.url)
        log = Log.create(engine, new_session(), ev.SessionOpened(), ev.NoteAdded(text="walrus"))
        with SharedIndex(engine, None) as index:
            assert index.search("walrus").rows
            server.sql("drop table wi_event")
            assert index.search("walrus").rows
            server.sql("delete from wi_meta")
            assert index.search("walrus").rows
            server.sql("update wi_version set version = version - 1")
            with SharedIndex(engine, None) as newer:
                assert newer.search("walrus").rows
            assert index.events(log.id).rows
            server.sql(f"update wi_version set version = {SCHEMA_VERSION + 1}")
            with pytest.raises(UnsupportedError) as refused:
                SharedIndex(engine, None)
            assert refused.value.kind == "index-newer"
        engine.close()
    finally:
        server.stop()


def test_a_store_keeps_its_index_where_its_url_says(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKELOG_CACHE", str(tmp_path))
    url = f"{postgres.url}?namespace={uuid.uuid4().hex}"
    with wakelog.open(url) as store:
        store.session("one").note("walrus")
        assert isinstance(store.index, SharedIndex)
        assert len(store.index.search("walrus")) == 1
        assert list(tmp_path.rglob("index.db")) == []
        assert store.index.query_sql("select name from sessions").rows == (("one",),)
        assert len(list(tmp_path.rglob("index.db"))) == 1
    with wakelog.open(f"{url}&index=local") as store:
        assert not isinstance(store.index, SharedIndex)
        assert len(store.index.search("walrus")) == 1
    with pytest.raises(InvalidInputError):
        wakelog.open(f"{url}&index=nowhere")


# The rule for statements (docs/explanation/scale.md). Reading may use JSON, windows and common table expressions.

READING = {"jsonb in the write path", "partitions and inheritance", "materialised views"}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Every statement that the index sends."""
    out: set[str] = set()
    bound = dialect.bind_values

    def noted(*given: Any) -> Any:
        text, values = bound(*given)
        out.add(text)
        return text, values

    monkeypatch.setattr(dialect, "bind_values", noted)
    return out


def test_the_schema_and_every_statement_keep_to_the_rule(engine: PostgresEngine, index: Index, sent: set[str]) -> None:
    player = Player(engine, 3)
    player.play(40)
    answers(index, [log.id for log in player.logs])
    for surgery in (player.erase, player.prune, player.delete):
        surgery(player.logs[0])
        index.scrub()
    assert len(sent) > 60
    for text in sent:
        assert "ns = $1::text" in text or text.startswith("insert into"), text
        for place in re.finditer(r"\$\d+(?!\d)", text):
            assert text[place.end() : place.end() + 2] == "::", text
        for what, pattern in REFUSED.items():
            assert (what in READING and text.startswith(("select", "with"))) or not re.search(
                pattern, re.sub(r"json_array_elements\(\S+?::json\)", "", text), re.IGNORECASE
            ), (what, text)
    for statement in dialect.schema():
        assert re.search(r"primary key \(ns, |create index .* (\(ns, |using gin)", statement), statement
        assert not any(re.search(pattern, statement, re.IGNORECASE) for pattern in REFUSED.values())
