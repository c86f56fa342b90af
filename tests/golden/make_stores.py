"""Writes the golden stores of the present schema: what an engine's own files and tables look like in this version.

    python -m tests.golden.make_stores

A store that is there is left alone: every later version must open it as it is, and bring it forward. `sqlite-N.db` is a
store of one file, `postgres-N.sql` a dump, `stores.json` what both must always tell."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.engines.postgres_server import Server, _binaries
from wakelog.engines.memory import MemoryEngine
from wakelog.engines.postgres import PostgresEngine
from wakelog.engines.sqlite import SqliteEngine
from wakelog.log.removal import erase, prune
from wakelog.maintenance.copy import copy_sessions
from wakelog.model import events as ev
from wakelog.model.records import Heartbeat
from wakelog.store import Store

FOLDER = Path(__file__).parent / "stores"
TOLD = FOLDER / "stores.json"
START_US = 1_790_000_000_000_000


def source() -> Store:
    """Forks, a deleted parent, erased and pruned content, chosen ids, a lease's beat, payloads, a snapshot."""
    ticks = iter(range(START_US, START_US + 10**12, 1_000_000))
    store = Store(MemoryEngine(), clock=lambda: next(ticks))
    for name in ("plain", "closed", "erased", "pruned", "parent"):
        session = store.session(name, goal="stay readable", labels={"team": "a"})
        for turn in range(3):
            with session.turn(f"turn {turn}"):
                session.fact(f"k{turn}", f"value {turn} " * 20)
                session.message("assistant", "a long text " * 100)
                session.files.record("src/a.py", added=1)
        session.append(ev.NoteAdded(text="with an id of its own"), commit_id=f"chosen-{name}")
    store.resume("closed").life.end()
    erased = store.resume("erased")
    erase(erased.log, [5], why="asked for", by="ada")
    pruned = store.resume("pruned")
    prune(pruned.log, pruned.head.seq - 2)
    parent = store.resume("parent")
    parent.fork("@2", name="fork").fact("in the fork", 1)
    store.delete(parent, why="over")
    store.engine.beat(store.resume("plain").id, Heartbeat(epoch=0, holder="someone", until=START_US))
    return store


def told_by(store: Store) -> dict[str, Any]:
    """What must never change: heads, hashes, states, names."""
    out: dict[str, Any] = {}
    for head in store.sessions():
        session = store.resume(head.session)
        report = session.verify()
        out[head.session] = {
            "name": head.name,
            "seq": head.seq,
            "hash": head.hash.hex(),
            "status": head.status,
            "state_hash": session.log.state_hash(),
            "faults": [f.what for f in (*report.integrity, *report.completeness)],
        }
    return out


def main() -> None:
    version = sys.argv[1]
    FOLDER.mkdir(exist_ok=True)
    original: Store = source()
    if TOLD.exists():
        with Store(SqliteEngine(_copy_of(sorted(FOLDER.glob("sqlite-*.db"))[0]))) as older:
            original = Store(MemoryEngine())
            copy_sessions(older.engine, original.engine)
    else:
        TOLD.write_text(json.dumps(told_by(original), indent=1, sort_keys=True) + "\n")
    file, dump = FOLDER / f"sqlite-{version}.db", FOLDER / f"postgres-{version}.sql"
    if not file.exists():
        with Store(SqliteEngine(file)) as target:
            copy_sessions(original.engine, target.engine)
            assert told_by(target) == json.loads(TOLD.read_text())
    if not dump.exists():
        server = Server().create().start(fsync="off")
        try:
            with Store(PostgresEngine(server.url)) as target:
                copy_sessions(original.engine, target.engine)
                assert told_by(target) == json.loads(TOLD.read_text())
            command = [str(_binaries() / "pg_dump"), "--inserts", "--no-owner", "-d", server.url]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            dump.write_text("\n".join(line for line in text.splitlines() if not line.startswith("\\")) + "\n")
        finally:
            server.stop()


def _copy_of(file: Path) -> Path:
    return Path(shutil.copy(file, Path(tempfile.mkdtemp()) / "log.db"))


if __name__ == "__main__":
    main()
