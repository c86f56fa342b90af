"""A store on PostgreSQL, through the library and the command line: the same as any other."""

import subprocess
import sys
from pathlib import Path

import pytest

import wakelog
from tests.engines.postgres_server import Server
from wakelog.maintenance.copy import copy_sessions


@pytest.fixture
def url(postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("WAKELOG_CACHE", str(tmp_path / "cache"))
    return f"{postgres.url}?namespace={tmp_path.name}"


def test_a_session_lives_on_a_server(url: str) -> None:
    with wakelog.open(url) as store:
        session = store.session("shared", goal="be the same")

        @session.tool(effect="write")
        def save(path: str) -> str:
            return "saved"

        with session.turn("go") as turn:
            save("a.txt")
            session.files.record("a.txt", added=3)
            turn.data["done"] = True
        assert session.diff().of("data")
    with wakelog.open(url) as again:
        session = again.resume("shared")
        assert session.state().tools_used["save"].calls == 1
        assert [f.path for f in again.index.files_modified()] == ["a.txt"]
        assert again.index.search("saved").rows
        assert session.verify().ok


def test_answers_of_the_index_are_those_of_an_embedded_store(url: str, tmp_path: Path) -> None:
    from wakelog.cli.demo import build

    with wakelog.open(tmp_path / "here") as here, wakelog.open(url) as there:
        build("fix-bug", here.engine)
        copy_sessions(here.engine, there.engine)
        for ask in (
            lambda s: s.index.files_modified().rows,
            lambda s: s.index.decisions().rows,
            lambda s: s.index.tools().rows,
            lambda s: s.index.errors().rows,
            lambda s: s.index.sessions().rows,
            lambda s: {(hit.session, hit.seq) for hit in s.index.search("refresh").rows},  # each ranks in its own way
            lambda s: s.index.query_sql("select * from turns order by 1, 2").rows,
        ):
            assert ask(there) == ask(here)


def test_two_processes_see_each_others_news(url: str) -> None:
    code = f"import wakelog; wakelog.open({url!r}).session('news').fact('from', 'elsewhere')"
    with wakelog.open(url) as store:
        session = store.session("news")
        follow = session.follow(after=session.head.seq)
        subprocess.run([sys.executable, "-c", code], check=True, timeout=180)
        assert next(follow).body["value"] == "elsewhere"


def test_the_command_line_reads_it(url: str) -> None:
    with wakelog.open(url) as store:
        store.session("seen").fact("a", 1)
    for words in (["ls"], ["state", "/facts", "-s", "seen"], ["log", "seen"], ["verify", "seen"], ["store", "info"]):
        done = subprocess.run(
            [sys.executable, "-m", "wakelog", "--store", url, *words],
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(wakelog.UnavailableError) as caught:
        wakelog.open("postgresql://postgres@127.0.0.1:9/nothing?patience=0.1")
    assert caught.value.kind == "unreachable"
    assert "pg_isready" in caught.value.hint
    with pytest.raises(wakelog.InvalidInputError):
        wakelog.open("postgresql://postgres@127.0.0.1:9/nothing?patience=long")
