"""Stored bytes rewritten at random through SQL: who reads them gets an answer or a WakelogError, and changes nothing.

Three kinds of forgers: one who damages bytes, one who puts other records in place, and one who also makes all hashes
and checksums fit, so that what is inside is decoded and folded.
"""

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.crash.answers import Questions, small_store
from tests.crash.workload import opened
from tests.seeds import some
from wakelog.codec.pack import pack, pack_snapshot, unpack
from wakelog.engines.sqlite.rows import checksum
from wakelog.model.records import Record

SEED = 11
ROUNDS = some(range(600), 4)
COLUMNS = (
    "first, last, at, epoch, status, turn, turn_first, turn_last, kinds, paths, commit_id, fingerprint, prev, hash"
)
ODD: list[Any] = [
    *(None, True, False, 0, -1, 1, 2**53, 2**63, 2**64, 2**70, 0.5, 1e308, "", "x", "\0", "é", "\U0001f600"),
    *([], [[]], {}, {"": ""}, [None], {"$payload": "zz"}, {"$payload": "00" * 32, "at": 1}, {"$erased": 1}, "/data"),
    {"$payload": 5, "size": "x"},
]
_NESTED = "nested too deeply"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Questions]:
    folder = tmp_path_factory.mktemp("whole")
    with opened(folder) as engine:
        small_store(engine)
    with opened(folder) as engine:
        questions = Questions(engine)
    return (folder / "log.db").read_bytes(), questions


def _damage(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data or b"x")
    for _ in range(rng.choice([1, 1, 2, 8])):
        at = rng.randrange(len(out))
        match rng.randrange(4):
            case 0:
                out[at] ^= 1 << rng.randrange(8)
            case 1:
                out[at:at] = rng.randbytes(rng.randrange(1, 5))
            case 2:
                del out[at : at + rng.randrange(1, 9)]
                out = out or bytearray(b"x")
            case _:
                out[at] = rng.choice(b'{}[]",:0-\\')
    return bytes(out)


def _mutate(rng: random.Random, value: Any) -> Any:
    """The same JSON with something in it changed, removed, added or nested."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        match rng.randrange(5):
            case 0:
                return {k: v for k, v in value.items() if k != key}
            case 1:
                return {**value, rng.choice(["extra", "op", "path", "value", "delta", "to", "$payload"]): _odd(rng)}
            case _:
                return {**value, key: _mutate(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        match rng.randrange(4):
            case 0:
                return value[:at] + value[at + 1 :]
            case 1:
                return [*value, value[at]]
            case _:
                return [*value[:at], _mutate(rng, value[at]), *value[at + 1 :]]
    if isinstance(value, str) and value and rng.random() < 0.3:
        return value[: rng.randrange(len(value))] + rng.choice(["~", "/", "~2", "-", "01", ""])
    return _odd(rng)


def _odd(rng: random.Random) -> Any:
    return _NESTED if rng.random() < 0.02 else rng.choice(ODD)


def _mutated_json(rng: random.Random, data: bytes) -> bytes:
    try:
        value = json.loads(data)
    except ValueError:
        return _damage(rng, data)
    text = json.dumps(_mutate(rng, value), separators=(",", ":"))
    return text.replace(f'"{_NESTED}"', "[" * 3000 + "]" * 3000).encode()


def _forge_records(rng: random.Random, records: tuple[Record, ...], *, fitting: bool) -> tuple[Record, ...]:
    at = rng.randrange(len(records))
    header, salt, body = records[at].header, records[at].salt, records[at].body
    change = _mutated_json if rng.random() < 0.8 else _damage
    match rng.randrange(4):
        case 0:
            header = change(rng, header)
        case 1:
            body = change(rng, body)
        case 2:
            salt, body = b"", rng.choice([b"", change(rng, body)])
        case _:
            salt = rng.choice([b"", b"x", rng.randbytes(16)])
    if fitting and salt:
        old = hashlib.sha256(records[at].salt + records[at].body).hexdigest().encode()
        header = header.replace(old, hashlib.sha256(salt + body).hexdigest().encode())
    return (*records[:at], Record(header, salt, body), *records[at + 1 :])


def _rewrite(file: Path, rng: random.Random, kind: str) -> str:
    """Changes one stored commit or snapshot; says which."""
    db = apsw.Connection(str(file))
    rows: list[Any] = db.execute(
        f"select log.id, s.id, {COLUMNS}, records from log join session s on s.no = log.session order by log.id"
    ).fetchall()
    row = rng.choice(rows)
    key, session, plain, blob = row[0], row[1], list(row[2:16]), row[16]
    if kind == "damaged":
        column = rng.choice(["records", "payloads"])
        old: Any = db.execute(f"select {column} from log where id = ?", (key,)).get
        db.execute(f"update log set {column} = ? where id = ?", (_damage(rng, old), key))
    elif rng.random() < 0.15:
        packed = rng.choice([pack_snapshot(b"{}"), pack_snapshot(_damage(rng, b'{"a":1}')), b""])
        number: Any = db.execute("select session from log where id = ?", (key,)).get
        stored = (number, plain[1], packed, checksum(session, plain[1], packed))
        db.execute("insert or replace into snapshot (session, seq, data, checksum) values (?, ?, ?, ?)", stored)
    else:
        records = _forge_records(rng, unpack(blob)[0], fitting=kind == "fitting")
        if kind == "fitting":
            chain = plain[12]
            for record in records:
                chain = hashlib.sha256(chain + record.header).digest()
            plain[13] = chain
        values = (*plain, checksum(session, *plain), pack(records, ())[0], key)
        names = ", ".join(f"{name} = ?" for name in f"{COLUMNS}, checksum, records".split(", "))
        db.execute(f"update log set {names} where id = ?", values)
    db.close()
    return f"commit {plain[0]}..{plain[1]} of {session}"


@pytest.mark.parametrize("kind", ["damaged", "replaced", "fitting"])
@pytest.mark.parametrize("number", ROUNDS)
def test_forged_bytes_give_an_answer_or_a_wakelog_error(
    tmp_path: Path, whole: tuple[bytes, Questions], number: int, kind: str
) -> None:
    data, questions = whole
    file = tmp_path / "log.db"
    for attempt in range(4):
        rng = random.Random(f"{SEED} {number} {kind} {attempt}")
        file.write_bytes(data)
        where = _rewrite(file, rng, kind)
        before = file.read_bytes()
        with opened(tmp_path, create=False) as engine:
            try:
                for _question in questions.ask(engine):
                    pass
            except Exception as exc:
                raise AssertionError(f"{kind} {number} {attempt}: {where}: {exc!r}") from exc
        assert file.read_bytes() == before, f"{kind} {number} {attempt}: reading changed the store"
