"""Each byte of a store's file, changed: either the answers are the same, or somebody is told. Never anything else."""

import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.crash.answers import Questions, is_complaint, small_store
from tests.crash.workload import opened
from tests.seeds import some
from wakelog.engines.sqlite import SqliteEngine
from wakelog.errors import WakelogError
from wakelog.state import fold

SEED = 7
PAGE = 4096
CHUNKS = 6  # `make test` does the first of them
PER_PAGE = 20


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Questions, dict[str, Any]]:
    """The file of a small store at rest, what to ask it, and the right answers."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold, "FLOOR_BYTES", 300)
        with opened(folder) as engine:
            small_store(engine)
    with opened(folder) as engine:
        questions = Questions(engine)
        answers = dict(questions.ask(engine))
        assert not any(map(is_complaint, answers.values()))
        assert any(engine.snapshot(session, upto=99) for session in questions.sessions)
    assert not (folder / "log.db-wal").exists()
    return (folder / "log.db").read_bytes(), questions, answers


@pytest.fixture
def _no_hanging() -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise AssertionError("a damaged store makes its reader hang")

    before = signal.signal(signal.SIGALRM, give_up)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _offsets(data: bytes, chunk: int) -> list[int]:
    """Some of each page (the long run takes every byte), rather where there is something than in the empty middle."""
    rng = random.Random(SEED)
    chosen: list[int] = []
    for page in range(0, len(data), PAGE):
        inside = range(page, page + PAGE)
        weights = [4 if data[at] or at - page < 108 else 1 for at in inside]
        chosen += rng.choices(inside, weights, k=PER_PAGE)
    return sorted(set(chosen))[chunk::CHUNKS]


def _check_flip(folder: Path, whole: tuple[bytes, Questions, dict[str, Any]], at: int, mask: int) -> None:
    data, questions, right = whole
    signal.alarm(300)
    file = folder / "log.db"
    file.write_bytes(data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :])
    for name in ("log.db-wal", "log.db-shm"):
        (folder / name).unlink(missing_ok=True)
    where = f"byte {at} (page {at // PAGE + 1}, {at % PAGE}) of {len(data)} changed by {mask:#x}, seed {SEED}"
    try:
        complaints, wrong = _ask(file, questions, right)
    except Exception as exc:
        raise AssertionError(f"{where}: {exc!r}") from exc
    assert complaints or not wrong, f"{where}: nobody was told that these answers are wrong: {wrong}"


def _ask(file: Path, questions: Questions, right: dict[str, Any]) -> tuple[list[str], list[str]]:
    try:
        engine = SqliteEngine(file, create=False)
    except WakelogError:
        return ["open"], []
    try:
        answers = dict(questions.ask(engine))
        complaints = [question for question, answer in answers.items() if is_complaint(answer)]
        wrong = [question for question, answer in answers.items() if answer != right.get(question)]
        # A sign of life may be lost: that is part of what it promises.
        wrong = [question for question in wrong if not question.startswith("beat ") or answers[question] is not None]
        return complaints, wrong
    finally:
        engine.close()


@pytest.mark.usefixtures("_no_hanging")
@pytest.mark.parametrize("chunk", some(range(CHUNKS)))
def test_a_changed_byte_is_found_or_changes_nothing(
    tmp_path: Path, whole: tuple[bytes, Questions, dict[str, Any]], chunk: int
) -> None:
    rng = random.Random(SEED + chunk)
    for at in _offsets(whole[0], chunk):
        _check_flip(tmp_path, whole, at, 1 << rng.randrange(8) if rng.random() < 0.7 else rng.randrange(1, 256))


@pytest.mark.slow
@pytest.mark.usefixtures("_no_hanging")
@pytest.mark.parametrize("chunk", range(64))
def test_every_changed_byte_is_found_or_changes_nothing(
    tmp_path: Path, whole: tuple[bytes, Questions, dict[str, Any]], chunk: int
) -> None:
    rng = random.Random(SEED - chunk)
    for at in range(len(whole[0]))[chunk::64]:
        _check_flip(tmp_path, whole, at, 1 << rng.randrange(8))


@pytest.mark.usefixtures("_no_hanging")
@pytest.mark.parametrize(("table", "bit"), [("log", 1), ("commit_id", 4)])
def test_a_column_that_changes_its_type_is_found(
    tmp_path: Path, whole: tuple[bytes, Questions, dict[str, Any]], table: str, bit: int
) -> None:
    """One bit makes a number a null, which equals nothing and differs from nothing, or a text."""
    offsets = list(_types_of_columns(tmp_path, whole[0], table))
    assert offsets
    for at in offsets:
        _check_flip(tmp_path, whole, at, 1 << bit)


def _types_of_columns(folder: Path, data: bytes, table: str) -> Iterator[int]:
    """Where a row says of which type its first columns are, for each row of a table (SQLite's file format, 2.1)."""
    (folder / "log.db").write_bytes(data)
    db = apsw.Connection(str(folder / "log.db"))
    pages = [n for (n,) in db.execute("select pageno from dbstat where name = ? and pagetype = 'leaf'", (table,))]
    db.close()
    for start in (PAGE * (number - 1) for number in pages):
        has_rowid = data[start] == 13
        for cell in range(int.from_bytes(data[start + 3 : start + 5])):
            pointer = start + 8 + 2 * cell
            at = start + int.from_bytes(data[pointer : pointer + 2])
            for _ in range(2 if has_rowid else 1):  # the row's length, and its number
                while data[at] & 0x80:
                    at += 1
                at += 1
            yield from range(at + 1, at + 5)
