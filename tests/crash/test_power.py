"""Power loss, by a disk that drops, reorders and tears whatever was not synced (wakelog.testing.faults).

One run is cut several times at random moments, while it goes on; each cut leaves a folder as the machine could find it.
"""

import random
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.crash.workload import Journal, append, check_survived, check_whole, logs_of, named, opened, work_in_threads
from tests.seeds import some
from wakelog.engines.sqlite import SqliteEngine
from wakelog.log.log import Log
from wakelog.log.removal import delete, erase
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.testing.faults import FaultyDisk, Operation, failing


class Cuts:
    """A hook that cuts the power now and then, and keeps what was known at each cut."""

    def __init__(
        self, disk: FaultyDisk, folder: Path, journal: Journal, seed: str, *, chance: float, most: int
    ) -> None:
        self.made: list[tuple[Path, Journal, str]] = []
        self.journal = journal
        self._disk, self._folder, self._chance, self._most = disk, folder, chance, most
        self._seed, self._rng = seed, random.Random(seed)

    def __call__(self, operation: Operation) -> None:
        if len(self.made) < self._most and self._rng.random() < self._chance:
            seed = self._rng.getrandbits(32)
            image = self._folder.with_name(f"{self._folder.name}-cut-{len(self.made)}")
            self._disk.power_cut(self._folder, image, seed)
            why = f"{self._seed}, cut {seed} before {operation.kind} {operation.number} of {operation.file}"
            self.made.append((image, self.journal.copy(), why))


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    disk = FaultyDisk("power")
    yield disk
    disk.unregister()


def _writer(engine: SqliteEngine) -> apsw.Connection:
    writer = engine._pool._writer
    assert writer is not None
    return writer


def _run(
    disk: FaultyDisk,
    folder: Path,
    seed: str,
    journal: Journal,
    *,
    threads: int = 1,
    commits: int = 25,
    most: int = 5,
    synchronous: str = "",
) -> list[tuple[Path, Journal, str]]:
    """A run on the store in `folder`, cut several times. Small write-ahead logs, so that checkpoints are cut too."""
    rng = random.Random(seed)
    cuts = Cuts(disk, folder, journal, seed, chance=most / (commits * 14), most=most)
    with opened(folder, vfs=disk.name) as engine:
        _writer(engine).pragma("wal_autocheckpoint", rng.choice([2, 5, 20, 2000]))
        if synchronous:
            _writer(engine).pragma("synchronous", synchronous)
        disk.before = cuts
        work_in_threads(engine, journal, seed, threads=threads, commits=commits // threads)
    disk.before = None
    return cuts.made


def _check_power_loss(disk: FaultyDisk, folder: Path, seed: str, threads: int) -> None:
    for image, journal, why in _run(disk, folder, seed, Journal(), threads=threads):
        check_survived(image, journal, why)


@pytest.mark.parametrize("number", some(range(36), 5))
def test_acknowledged_appends_survive_power_loss(disk: FaultyDisk, tmp_path: Path, number: int) -> None:
    _check_power_loss(disk, tmp_path / "store", f"power-{number}", threads=1 + number % 3)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(100, 500))
def test_acknowledged_appends_survive_power_loss_many_times(disk: FaultyDisk, tmp_path: Path, number: int) -> None:
    _check_power_loss(disk, tmp_path / "store", f"power-{number}", threads=1 + number % 3)


@pytest.mark.parametrize("number", some(range(6), 2))
def test_power_that_fails_again_and_again_takes_nothing(disk: FaultyDisk, tmp_path: Path, number: int) -> None:
    """Each run begins with what the last cut left, so recovery itself is cut too."""
    folder, journal = tmp_path / "0", Journal()
    for generation in range(1, 5):
        made = _run(disk, folder, f"again-{number}-{generation}", journal.copy(), commits=8, most=2)
        if made:
            folder, journal, why = made[-1]
            with opened(folder) as engine:
                check_whole(engine, journal, why)


@pytest.mark.parametrize("number", some(range(6), 2))
def test_power_loss_while_a_store_is_made_leaves_one_that_can_be_used(
    disk: FaultyDisk, tmp_path: Path, number: int
) -> None:
    journal = Journal()
    cuts = Cuts(disk, tmp_path / "store", journal, f"make-{number}", chance=0.1, most=9)
    disk.before = cuts
    with opened(tmp_path / "store", vfs=disk.name) as engine:
        append(named(engine, "alpha"), journal, "first")
    assert cuts.made
    for image, known, why in cuts.made:
        check_survived(image, known, why)


@pytest.mark.parametrize("number", some(range(4), 2))
def test_power_loss_during_removals_leaves_them_done_or_not_begun(
    disk: FaultyDisk, tmp_path: Path, number: int
) -> None:
    seed = f"removal-{number}"
    with opened(tmp_path / "store", vfs=disk.name) as engine:
        log = named(engine, "alpha")
        for i in range(6):
            append(log, Journal(), f"{seed}-{i}")
        fork = log.fork()
        fork.append(ev.NoteAdded(text="in the fork"))
        doomed = named(engine, "doomed")
        cuts = Cuts(disk, tmp_path / "store", Journal(), seed, chance=0.03, most=6)
        disk.before = cuts
        erase(log, [3, 4])
        append(log, cuts.journal, f"{seed}-between")
        delete(doomed)
        append(fork, cuts.journal, f"{seed}-after")
    for image, known, why in cuts.made:
        with opened(image) as engine:
            check_whole(engine, known, why)
            for session in (log.id, fork.id):
                assert len({Log(engine, session).entry(seq).is_intact for seq in (3, 4)}) == 1, why
            erase(Log(engine, log.id), [3, 4])
            for each in logs_of(engine):
                report = verify(each)
                assert report.ok, f"{why}: {report}"


@pytest.mark.parametrize("number", some(range(6), 2))
def test_appends_after_a_failed_sync_are_as_durable_as_any(disk: FaultyDisk, tmp_path: Path, number: int) -> None:
    """The failed sync has lost its writes for good, whatever a later one says. Nothing may rest on them."""
    seed, journal = f"failed-{number}", Journal()
    with opened(tmp_path / "store", vfs=disk.name) as engine:
        log = named(engine, "alpha")
        _writer(engine).pragma("wal_autocheckpoint", 4)
        for i in range(10):
            disk.before = failing("sync", random.Random(f"{seed}{i}").choice(["-wal", "log.db"]))
            append(log, journal, f"{seed}-{i}")  # asks again by itself
            disk.before = None
            disk.power_cut(tmp_path / "store", image := tmp_path / f"cut-{i}", i)
            check_survived(image, journal.copy(), f"{seed}, cut {i}")


# The harness bites: what is not synced is lost, and the checks above say so.


def _losses(disk: FaultyDisk, folder: Path, synchronous: str = "") -> int:
    lost = 0
    for number in range(4):
        made = _run(disk, folder / str(number), f"control-{number}", Journal(), commits=30, synchronous=synchronous)
        for image, journal, why in made:
            try:
                check_survived(image, journal, why)
            except Exception:
                lost += 1
    return lost


def test_without_waiting_for_the_disk_acknowledged_appends_are_lost(disk: FaultyDisk, tmp_path: Path) -> None:
    assert _losses(disk, tmp_path, "off")


def test_with_normal_synchronisation_the_newest_appends_are_lost(disk: FaultyDisk, tmp_path: Path) -> None:
    assert _losses(disk, tmp_path, "normal")


def test_on_a_disk_that_lies_about_syncing_appends_are_lost(disk: FaultyDisk, tmp_path: Path) -> None:
    disk.lies = True
    assert _losses(disk, tmp_path)


def test_a_cut_with_the_same_seed_leaves_the_same_files(disk: FaultyDisk, tmp_path: Path) -> None:
    with opened(tmp_path / "store", vfs=disk.name) as engine:
        _writer(engine).pragma("synchronous", "off")
        named(engine, "alpha").append(ev.NoteAdded(text="x" * 5000))
        images = [_image(disk, tmp_path / f"{i}", seed) for i, seed in enumerate([1, 1, 2])]
    assert images[0] == images[1] != images[2]


def _image(disk: FaultyDisk, folder: Path, seed: int) -> dict[str, bytes]:
    disk.power_cut(folder.with_name("store"), folder, seed)
    return {file.name: file.read_bytes() for file in folder.iterdir()}
