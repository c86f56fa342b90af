"""No answer is stale, whoever writes and whoever else projects."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import wakelog
from tests.index.asking import ask, contents
from wakelog.engine import Engine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.index import Index
from wakelog.index.sharded_index import ShardedIndex
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.ids import SessionId
from wakelog.testing.builders import new_session

WRITER = """
import sys
from pathlib import Path
from wakelog.engines.sqlite import SqliteEngine
from wakelog.log import Log
from wakelog.model import events as ev

log = Log(SqliteEngine(Path(sys.argv[1]) / "log.db"), sys.argv[2])
for _ in sys.stdin:
    print(log.append(ev.NoteAdded(text="from the other process")).seq, flush=True)
"""

PROJECTOR = """
import sys
from pathlib import Path
from wakelog.engines.sqlite import SqliteEngine
from wakelog.index import Index
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.testing.builders import new_session

folder = Path(sys.argv[1])
engine = SqliteEngine(folder / "log.db")
log = Log.create(engine, new_session(), ev.SessionOpened())
sys.stdin.readline()
with Index(engine, folder / "index.db") as index:
    for i in range(30):
        head = log.append(ev.TurnStarted(input=f"turn {i}"), ev.FileChanged(path=f"f{i}.py"), ev.TurnEnded())
        assert index.turns(log.id)[0].last == head.seq
        assert len(index.files_modified(log.id)) == i + 1
print("done", flush=True)
"""


def start(program: str, *arguments: str | Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(wakelog.__file__).parents[1])}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def newest(index: Index, session: SessionId) -> int:
    return index.events(session, newest_first=True, limit=1)[0].seq


def test_what_was_appended_is_answered_at_once(engine: Engine, index: Index) -> None:
    log = Log.create(engine, new_session(), ev.SessionOpened())
    for _ in range(10):
        head = log.append(ev.NoteAdded(text="x"))
        page = index.events(log.id)
        assert page[-1].seq == head.seq
        assert page.as_of.at == head.at


def test_what_another_process_appended_is_answered_at_once(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path / "log.db")
    log = Log.create(engine, new_session(), ev.SessionOpened())
    with Index(engine, tmp_path / "index.db") as index, start(WRITER, tmp_path, log.id) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        for _ in range(20):
            print(file=writer.stdin, flush=True)
            acknowledged = int(writer.stdout.readline())
            assert newest(index, log.id) == acknowledged
        writer.stdin.close()
    engine.close()


def test_several_processes_project_at_once(tmp_path: Path) -> None:
    engine = SqliteEngine(tmp_path / "log.db")
    children = [start(PROJECTOR, tmp_path) for _ in range(3)]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        out, _ = child.communicate(timeout=120)
        assert (out, child.returncode) == ("done\n", 0)
    with Index(engine, tmp_path / "index.db") as index:
        before = contents(index)
        assert len(before["sessions"]) == 3
        assert len(before["events"]) == 3 * 91
        index.rebuild()
        assert contents(index) == before
    engine.close()


def test_threads_share_an_index(engine: Engine, index: Index) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            log = Log.create(engine, new_session(), ev.SessionOpened())
            for i in range(15):
                head = log.append(ev.NoteAdded(text=f"note {i}"))
                assert newest(index, log.id) == head.seq
                assert len(index.search("note", session=log.id, limit=100)) == i + 1
                assert ask(index, "select max(seq) from events where session = ?", log.id) == [(head.seq,)]
        except BaseException as exc:
            failures.append(exc)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_an_index_works_on_both_sides_of_a_fork(engine: Engine, index: Index) -> None:
    log = Log.create(engine, new_session(), ev.SessionOpened())
    index.catch_up()
    child = os.fork()
    if not child:
        try:
            head = log.append(ev.NoteAdded(text="in the child"))
            fine = newest(index, log.id) == head.seq and ask(index, "select count(*) from events") == [(head.seq,)]
            os._exit(0 if fine else 1)
        except BaseException:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    head = log.append(ev.NoteAdded(text="in the parent"))
    assert newest(index, log.id) == head.seq
    assert ask(index, "select count(*) from events") == [(head.seq,)]


def test_catching_up_tells_how_far_it_is(engine: Engine, index: Index) -> None:
    for _ in range(3):
        Log.create(engine, new_session(), ev.SessionOpened())
    told: list[tuple[int, int]] = []
    index.catch_up(lambda done, total: told.append((done, total)))
    behind = told[-1][1] if isinstance(index, ShardedIndex) else 3  # shards, which share three sessions as it comes
    assert told[-1] == (behind, behind)
    told.clear()
    index.catch_up(lambda done, total: told.append((done, total)))
    assert told == []


def test_catching_up_goes_on_where_it_was_cut_off(
    engine: Engine, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wakelog.index.rows.BATCH_EVENTS", 5)
    logs = [Log.create(engine, new_session(), ev.SessionOpened()) for _ in range(3)]
    for log in logs:
        for _ in range(12):
            log.append(ev.NoteAdded(text="x"))

    class Cut(Exception):
        pass

    def cut(done: int, total: int) -> None:
        raise Cut

    cuts = 0
    while True:
        try:
            index.catch_up(cut)
            break
        except Cut:
            cuts += 1
    assert cuts >= (1 if isinstance(index, ShardedIndex) else 6)  # which tells of whole shards
    assert [(info.events, info.head) for info in index.sessions()] == [(13, 13)] * 3
    before = contents(index)
    index.rebuild()
    assert contents(index) == before


def test_an_index_made_anew_by_another_in_between_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wakelog.index.rows.BATCH_EVENTS", 5)
    engine = SqliteEngine(tmp_path / "log.db")
    for _ in range(4):
        Log.create(engine, new_session(), ev.SessionOpened(), *(ev.NoteAdded(text="x") for _ in range(6)))
    with Index(engine, tmp_path / "index.db") as index, Index(engine, tmp_path / "index.db") as other:
        resets = [other._database.reset]
        index.catch_up(lambda done, total: resets.pop()() if resets and done == 2 else None)
        assert resets == []
        assert [info.events for info in index.sessions()] == [7] * 4
    engine.close()
