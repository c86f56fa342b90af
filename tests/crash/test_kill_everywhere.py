"""Death before each operation of the disk while a store is made, imported into, erased from, pruned or deleted from.

After it everything is as it was or as it was to be, every session verifies, and doing it again completes it.
"""

import io
import random
from pathlib import Path
from typing import Any

import pytest

from tests.crash.processes import run
from tests.crash.traces import Traces
from tests.crash.workload import Journal, append, events_of, logs_of, named, opened
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import NotFoundError
from wakelog.log.bundle import export_bundle, import_bundle
from wakelog.log.log import Log
from wakelog.log.removal import delete, erase, prune
from wakelog.log.verify import verify
from wakelog.model import events as ev

SAMPLE = 6
SEED = 20
both_sizes = pytest.mark.parametrize("sample", [SAMPLE, pytest.param(0, marks=pytest.mark.slow)])


def _deaths(tmp_path: Path, task: str, sample: int, base: Path, **arguments: Any) -> list[tuple[int, Path]]:
    """(operation, the folder as that death left it) for some or all operations of a task."""
    copies = tmp_path / "copies"
    lines = run("die_everywhere", task=task, base=str(base), copies=str(copies), sample=sample, seed=SEED, **arguments)
    deaths = [int(line.split()[1]) for line in lines if line.startswith("died ")]
    assert len(deaths) == (min(sample, int(lines[0].split()[1])) if sample else int(lines[0].split()[1]))
    return [(number, copies / str(number)) for number in deaths]


def _verify_all(engine: SqliteEngine, why: str) -> None:
    for log in logs_of(engine):
        report = verify(log)
        assert report.ok, f"{why}: {log.id}: {report.integrity} {report.completeness}"
    assert engine.check() == [], why


@both_sizes
def test_a_store_whose_making_was_cut_short_is_made_by_whoever_comes_next(tmp_path: Path, sample: int) -> None:
    base = tmp_path / "base"
    base.mkdir()
    for number, folder in _deaths(tmp_path, "create", sample, base):
        with opened(folder) as engine:
            log = named(engine, "alpha")
            log.append(ev.NoteAdded(text="again"))
            _verify_all(engine, f"died at operation {number}")
            assert [head.name for head in engine.sessions()] == ["alpha"], number


@both_sizes
def test_an_import_that_was_cut_short_took_in_everything_or_nothing(tmp_path: Path, sample: int) -> None:
    base, bundle = tmp_path / "base", tmp_path / "bundle"
    with opened(tmp_path / "origin") as engine:
        log = named(engine, "brought")
        for i in range(12):
            append(log, Journal(), f"origin-{i}")
        fork = log.fork(at=4)
        append(fork, Journal(), "origin-fork")
        with bundle.open("wb") as out:
            wanted = export_bundle(fork, out)
    with opened(base) as engine:
        append(named(engine, "alpha"), Journal(), "already-there")
    for number, folder in _deaths(tmp_path, "import", sample, base, bundle=str(bundle)):
        with opened(folder) as engine:
            _verify_all(engine, f"died at operation {number}")
            known = {head.session: head for head in engine.sessions()}
            assert len(known) in (1, 3), number
            if len(known) == 3:
                assert (known[fork.id].seq, known[fork.id].hash) == (wanted.seq, wanted.hash), number
            again = import_bundle(engine, io.BytesIO(bundle.read_bytes()))
            assert again.head().hash == wanted.hash, number
            assert engine.find("brought") == log.id, number
            _verify_all(engine, f"died at operation {number}, imported again")


def _store_with_secrets(folder: Path) -> tuple[list[int], Traces, Log]:
    """A session "secrets" with a fork; the events that hold secrets; and their traces, in the files and in words."""
    rng = random.Random(SEED)
    words = [f"sesame-{rng.getrandbits(64):x}" for _ in range(3)]
    with opened(folder) as engine:
        log = named(engine, "secrets")
        append(log, Journal(), "before")
        first = log.head().seq + 1
        log.append(ev.FactRecorded(key="password", value=words[0]), commit_id="chosen")
        log.append(
            ev.MessageAdded(role="user", content=rng.randbytes(900) + words[1].encode()),
            ev.FileChanged(path="notes.txt", after=words[2] * 200),
        )
        last = log.head().seq
        traces = Traces(folder, words)  # taken now: what comes later holds nothing secret
        append(log, Journal(), "after")
        fork = log.fork()
        append(fork, Journal(), "in-the-fork")
    assert traces.found(folder), "the secrets cannot be seen even where they are"
    return list(range(first, last + 1)), traces, fork


@both_sizes
def test_an_erasure_that_was_cut_short_can_be_completed_and_leaves_no_trace(tmp_path: Path, sample: int) -> None:
    base = tmp_path / "base"
    seqs, traces, _ = _store_with_secrets(base)
    for number, folder in _deaths(tmp_path, "erase", sample, base, seqs=seqs):
        with opened(folder) as engine:
            _verify_all(engine, f"died at operation {number}")
            for log in logs_of(engine):
                assert len({log.entry(seq).is_intact for seq in seqs}) == 1, f"{number}: erased in part"
            if not log.entry(seqs[0]).is_intact:
                assert traces.found(folder) == [], f"died at operation {number}, and opening did not scrub"
            erase(named(engine, "secrets"), seqs)
            _verify_all(engine, f"died at operation {number}, erased again")
        assert traces.found(folder) == [], f"died at operation {number}, erased again"


@both_sizes
def test_a_prune_that_was_cut_short_can_be_completed_and_leaves_no_trace(tmp_path: Path, sample: int) -> None:
    base = tmp_path / "base"
    seqs, traces, fork = _store_with_secrets(base)
    with opened(base) as engine:
        delete(Log(engine, fork.id))
        log = named(engine, "secrets")
        log.append(ev.FactRetracted(key="password"))
        state = log.state()
    upto = seqs[-1] + len(events_of("after"))
    for number, folder in _deaths(tmp_path, "prune", sample, base, upto=upto):
        with opened(folder) as engine:
            _verify_all(engine, f"died at operation {number}")
            log = named(engine, "secrets")
            bodies = {bool(entry.record.body) for entry in log.entries(upto=upto)}
            assert len(bodies) == 1, f"{number}: pruned in part"
            assert log.state() == state, number
            prune(log, log.head().seq)
            _verify_all(engine, f"died at operation {number}, pruned again")
            assert log.state() == state, number
        assert traces.found(folder) == [], f"died at operation {number}, pruned again"


@both_sizes
def test_a_deletion_that_was_cut_short_can_be_completed_and_leaves_no_trace(tmp_path: Path, sample: int) -> None:
    base = tmp_path / "base"
    _, traces, fork = _store_with_secrets(base)
    with opened(base) as engine:
        append(named(engine, "alpha"), Journal(), "bystander")
        secrets = engine.find("secrets")
    for number, folder in _deaths(tmp_path, "delete", sample, base, sessions=[secrets, fork.id]):
        with opened(folder) as engine:
            _verify_all(engine, f"died at operation {number}")
            for session in (secrets, fork.id):
                _delete_again(engine, session)
            assert [head.name for head in engine.sessions()] == ["alpha"], number
            _verify_all(engine, f"died at operation {number}, deleted again")
        assert traces.found(folder) == [], f"died at operation {number}, deleted again"


def _delete_again(engine: SqliteEngine, session: Any) -> None:
    try:
        log = Log(engine, session)
    except NotFoundError:
        return
    delete(log)
