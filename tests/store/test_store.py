"""A store: where it is, and how sessions are found, created, and never created by accident."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import wakelog
from tests.engines.on_postgres import ON_POSTGRES, postgres_url
from wakelog.engine import Engine
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import ConflictError, InvalidInputError, NotFoundError, UnavailableError, UnsupportedError
from wakelog.index.index import Index
from wakelog.model import events as ev
from wakelog.model.ids import root_of
from wakelog.store import Store
from wakelog.store.index_place import open_index
from wakelog.testing.builders import fact, new_session
from wakelog.testing.contract.base import in_parallel


@pytest.fixture(params=["memory", "sqlite", ON_POSTGRES])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    url = postgres_url(request, tmp_path) if request.param == "postgres" else "memory:"
    with wakelog.open(tmp_path / "store" if request.param == "sqlite" else url) as store:
        yield store


# Where it lies


@pytest.mark.parametrize("name", ["agents.db", "agents.sqlite", "agents.sqlite3", "deep/er/agents.db"])
def test_a_path_with_the_ending_of_a_database_is_the_file(tmp_path: Path, name: str) -> None:
    with wakelog.open(tmp_path / name) as store:
        store.session("a")
    assert (tmp_path / name).is_file()


@pytest.mark.parametrize("name", ["agents", "agents.d", ".wakelog", "with space"])
def test_any_other_path_is_a_folder(tmp_path: Path, name: str) -> None:
    with wakelog.open(str(tmp_path / name)) as store:
        store.session("a")
    assert (tmp_path / name / "log.db").is_file()


def test_a_sqlite_url_names_a_path(tmp_path: Path) -> None:
    with wakelog.open(f"sqlite://{tmp_path}/agents.db") as store:
        assert isinstance(store.engine, SqliteEngine)
    assert (tmp_path / "agents.db").is_file()


@pytest.mark.parametrize("url", ["memory:", "memory://"])
def test_a_store_in_memory_is_gone_with_it(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with wakelog.open(url) as store:
        assert isinstance(store.engine, MemoryEngine)
        store.session("a")
    with wakelog.open(url) as store:
        assert list(store.sessions()) == []
    assert list(tmp_path.iterdir()) == []


def test_an_engine_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as refused:
        wakelog.open("kafka://host/topic")
    assert refused.value.kind == "unknown-engine"


def test_without_a_url_the_environment_or_the_nearest_folder_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / "project" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / "project" / ".wakelog").mkdir()
    monkeypatch.delenv("WAKELOG_STORE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(deep)
    wakelog.open().close()
    assert (tmp_path / "project" / ".wakelog" / "log.db").is_file()
    monkeypatch.setenv("WAKELOG_STORE", str(tmp_path / "elsewhere.db"))
    wakelog.open().close()
    assert (tmp_path / "elsewhere.db").is_file()


def test_a_store_is_not_created_when_it_was_said_not_to(tmp_path: Path) -> None:
    for name in ("agents.db", "agents"):
        with pytest.raises(NotFoundError):
            wakelog.open(tmp_path / name, create=False)
    assert list(tmp_path.iterdir()) == []


def test_what_was_written_is_there_when_the_store_is_opened_again(tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "s.db") as store:
        log = store.log("checkout", goal="buy")
        log.append(fact("a"))
    with wakelog.open(tmp_path / "s.db", create=False) as store:
        again = store.resume("checkout")
        assert again.id == log.id
        assert again.log.state()["goal"] == "buy"
        assert set(again.log.state()["facts"]) == {"a"}


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = wakelog.open(tmp_path / "s.db")
    session = store.session("a")
    store.close()
    store.close()
    with pytest.raises(UnavailableError):
        session.log.append(fact("a"))
    with pytest.raises(UnavailableError):
        store.session("b")


# Names


def test_the_same_name_is_the_same_session(store: Store) -> None:
    first = store.session("checkout", goal="buy")
    again = store.session("checkout", goal="something else")
    assert first.id == again.id
    assert again.log.state()["goal"] == "buy"
    assert store.session("other").id != first.id
    assert store.engine.head(first.id).name == "checkout"


@pytest.mark.parametrize("objects", ["one store", "a store each"])
def test_of_many_that_ask_for_a_new_name_at_once_one_creates_it(tmp_path: Path, objects: str) -> None:
    path = tmp_path / "s.db"
    stores = [wakelog.open(path)] * 8 if objects == "one store" else [wakelog.open(path) for _ in range(8)]
    ids = in_parallel(lambda s: s.session("rare").id, stores)
    assert len(set(ids)) == 1
    assert len(list(stores[0].sessions())) == 1
    assert stores[0].engine.head(ids[0]).seq == 1
    for each in stores:
        each.close()


def test_a_name_whose_owner_died_before_opening_is_taken_up(store: Store) -> None:
    promised = new_session()
    store.engine.claim("half", promised)
    assert store.session("half").id == promised
    assert store.resume("half").id == promised


@pytest.mark.parametrize(
    "name", ["", " ", "a ", " a", "-a", ".a", "~a", "a@5", "a\nb", "s_01HF7YAT000000000000000000", "a\n"]
)
def test_a_name_that_could_be_taken_for_something_else_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        store.session(name)
    assert refused.value.kind == "bad-name"
    assert list(store.sessions()) == []


@pytest.mark.parametrize("name", ["\ud800", "a\udfff"])
def test_a_name_that_is_no_text_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InvalidInputError):
        store.session(name)
    with pytest.raises((InvalidInputError, NotFoundError)):
        store.resume(name)
    assert list(store.sessions()) == []


@pytest.mark.parametrize(
    "name", ["a", "checkout-42", "ключ", "with space", "a/b", "\U0001f600", "s_", "e12-fix", "x" * 256]
)
def test_other_names_are_fine(store: Store, name: str) -> None:
    assert store.resume(store.session(name).id).id == store.resume(name).id


def test_a_deleted_session_gives_its_name_to_a_new_one(store: Store) -> None:
    first = store.session("checkout")
    store.delete(first)
    with pytest.raises(NotFoundError):
        store.resume("checkout")
    with pytest.raises(NotFoundError):
        store.resume(first.id)
    assert store.session("checkout").id != first.id


# Resuming


@pytest.mark.parametrize("name", ["never", "", "-", "s_01HF7YAT000000000000000000", "s_01HF7YAT00", "abcd", "a@1"])
def test_resuming_never_creates(store: Store, name: str) -> None:
    store.session("other")
    with pytest.raises(NotFoundError):
        store.resume(name)
    assert len(list(store.sessions())) == 1
    assert store.engine.find(name) is None


def test_a_session_is_found_by_name_by_id_and_by_the_start_of_its_id(store: Store) -> None:
    session = store.session("checkout")
    for name in ("checkout", session.id, session.id[:20], session.id[2:20], session.id[:20].lower()):
        assert store.resume(name).id == session.id, name


def test_the_start_of_several_ids_names_none_of_them(store: Store) -> None:
    one, other = store.session("one"), store.session("other")
    common = "".join(a for a, b in zip(one.id, other.id, strict=True) if a == b)[:6]
    with pytest.raises(NotFoundError) as refused:
        store.resume(common)
    assert refused.value.kind == "ambiguous-session"


# Forks and lists


def test_a_fork_gets_the_name_it_was_given(store: Store) -> None:
    session = store.session("checkout")
    fork = session.fork(name="other way")
    assert store.resume("other way").id == fork.id
    assert root_of(fork.id) == session.id
    with pytest.raises(ConflictError):
        session.fork(name="checkout")
    with pytest.raises(InvalidInputError):
        session.fork(name="a@b")


def test_a_fork_that_came_to_nothing_leaves_its_name_free(store: Store) -> None:
    session = store.session("checkout")
    with pytest.raises(NotFoundError):
        session.fork(99, name="other way")
    fresh = store.session("other way")
    assert root_of(fresh.id) == fresh.id
    assert fresh.log.head().seq == 1


def test_all_sessions_are_listed_oldest_first_however_many_they_are(store: Store) -> None:
    ids = [store.session(f"s{i}").id for i in range(230)]
    assert [head.session for head in store.sessions()] == sorted(ids)
    assert len({head.name for head in store.sessions()}) == 230


def test_the_clock_is_the_one_that_was_passed_in() -> None:
    with wakelog.open("memory:", clock=lambda: 1_234_567) as store:
        log = store.log("a")
        log.append(ev.NoteAdded(text="t"))
        assert {e.header.at for e in log.entries()} == {1_234_567}


def test_threads_that_open_the_index_at_once_share_one_and_the_other_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No lock is held meanwhile: a process that is forked then would wait for it."""
    both, opened, closed, got = threading.Barrier(2, timeout=30), list[Index](), list[Index](), list[Index]()
    close = Index.close

    def note_and_close(index: Index) -> None:
        closed.append(index)
        close(index)

    def open_slowly(engine: Engine) -> Index:
        both.wait()
        opened.append(open_index(engine))
        return opened[-1]

    monkeypatch.setattr("wakelog.store.index_place.open_index", open_slowly)
    monkeypatch.setattr(Index, "close", note_and_close)
    with wakelog.open(tmp_path / "store") as store:
        threads = [threading.Thread(target=lambda: got.append(store.index)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert got == [store.index, store.index]
        assert closed == [index for index in opened if index is not store.index]
    assert len(closed) == len(opened) == 2
