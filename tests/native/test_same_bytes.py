"""The native core and the Python it stands for: any input gives the same bytes from both, or the same error."""

import io
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from tests.golden.test_golden import BUNDLES
from tests.native.core import installed_core
from wakelog.codec import chain, pack
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import WakelogError
from wakelog.log.bundle import import_bundle
from wakelog.log.reader import check_commit
from wakelog.model.records import GENESIS, Commit, Record

core = installed_core()

numbers = st.integers(0, 1 << 40) | st.integers(-(1 << 70), 1 << 70) | st.booleans()
texts = st.sampled_from(["agent", "user", "", "trusted", "untrusted"]) | st.text(st.characters(exclude_categories=[]))
ranges = st.lists(st.tuples(numbers, numbers), max_size=3).map(tuple)
objects = st.sampled_from([b"{}", b'{"why":"so"}', b'{"a":[1,2],"b":"\xc3\xa9"}']) | st.binary(max_size=200)
deltas = st.sampled_from([b"", b'[{"op":"remove","path":"/facts/a"}]']) | st.binary(max_size=80)
items = st.tuples(texts, numbers, numbers, texts, numbers, ranges | st.just([]), texts, texts, objects, deltas)
blobs = st.binary(max_size=400) | st.binary(max_size=50).map(lambda b: b * 300)
records = st.lists(st.builds(Record, header=blobs, salt=st.binary(max_size=16), body=blobs), max_size=20)
payloads = st.lists(st.tuples(st.binary(max_size=32), blobs), max_size=5).map(tuple)
same_zstd = pytest.mark.skipif(
    core.ZSTD_VERSION != zstandard.ZSTD_VERSION, reason="two versions of zstd may choose different frames"
)


def outcome(work: Callable[..., Any], *arguments: Any) -> Any:
    """What a call gives, or the error it ends with."""
    try:
        return work(*arguments)
    except (WakelogError, ValueError, TypeError, OverflowError) as exc:
        return type(exc), str(exc)


def golden_commits() -> list[Commit]:
    found: list[Commit] = []
    for path in BUNDLES:
        engine = MemoryEngine()
        log = import_bundle(engine, io.BytesIO(path.read_bytes()))
        for segment in log.segments:
            found += engine.read(segment.session, payloads=True)
    return found


GOLDEN = golden_commits()


@given(st.binary(max_size=40), numbers, numbers, st.lists(items, max_size=20), st.binary(max_size=40))
@example(
    GENESIS, 1, 2, [('x.\x00\x1f"\\/\x7f\u2028é', 1, 1, "".join(["ag", "ent"]), 0, (), "", "trusted", b"{}", b"")], b""
)
@example(GENESIS, 1, 2, [("x.\ud800", 1, 1, "agent", 0, (), "", "trusted", b"{}", b"")], b"")
def test_sealing_gives_the_same_records_and_the_same_hash(
    prev: bytes, first: int, at: int, given_items: list[Any], odd: bytes
) -> None:
    salts = bytes(range(16)) * len(given_items)
    for each in (salts, salts[:-1], salts + odd):
        arguments = (prev, first, at, each, given_items)
        assert outcome(chain.seal_records, *arguments) == outcome(chain.seal_in_python, *arguments)


@given(st.binary(max_size=40), records)
def test_records_have_the_same_hashes(prev: bytes, given_records: list[Record]) -> None:
    assert chain.hash_records(prev, given_records) == chain.hash_in_python(prev, given_records)


@given(records, payloads)
def test_packed_by_one_is_unpacked_by_the_other(given_records: list[Record], pairs: tuple[tuple[bytes, bytes]]) -> None:
    natively, in_python = core.pack(given_records, pairs), pack.pack_in_python(given_records, pairs)
    for packed in (natively, in_python):
        assert pack.unpack(*packed) == pack.unpack_in_python(*packed) == (tuple(given_records), pairs)


@same_zstd
@given(records, payloads)
@example([Record(b"h" * 70_000, b"s" * 16, bytes(range(256)) * 2000)] * 17, ((b"d" * 32, b"x" * 300_000),))
def test_packing_gives_the_same_bytes(given_records: list[Record], pairs: tuple[tuple[bytes, bytes]]) -> None:
    assert core.pack(given_records, pairs) == pack.pack_in_python(given_records, pairs)


@given(records, payloads, st.data())
def test_damaged_bytes_have_the_same_values_or_the_same_error(
    given_records: list[Record], pairs: tuple[tuple[bytes, bytes]], data: st.DataObject
) -> None:
    first, second = map(bytearray, pack.pack_in_python(given_records, pairs))
    for packed in (first, second):
        if packed and data.draw(st.booleans()):
            packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    damaged = bytes(first), bytes(second)
    assert outcome(pack.unpack, *damaged) == outcome(pack.unpack_in_python, *damaged)


@given(st.binary(max_size=60), st.sampled_from([b"", b"\x00", b"\x01"]))
@example(b"\x91\xc4\x01a", b"\x00")
@example(b"\x91\x93\xc4\x01a\xc4\x00\xa1b", b"\x00")
def test_any_bytes_have_the_same_values_or_the_same_error(data: bytes, prefix: bytes) -> None:
    framed = b"\x01" + zstandard.ZstdCompressor().compress(data)
    for blob in (prefix + data, framed):
        for arguments in ((blob,), (pack.pack_in_python((), ())[0], blob)):
            assert outcome(pack.unpack, *arguments) == outcome(pack.unpack_in_python, *arguments)


def test_the_golden_logs_are_packed_and_hashed_by_the_core_as_by_python() -> None:
    assert GOLDEN
    for commit in GOLDEN:
        packed = core.pack(commit.records, commit.payloads)
        assert pack.unpack_in_python(*packed) == (commit.records, commit.payloads)
        assert core.unpack(*packed)[1] == commit.payloads
        hashes = core.hash_records(commit.prev, commit.records)
        assert hashes == chain.hash_in_python(commit.prev, commit.records)
        assert hashes[-1][1] == commit.hash


@given(st.data())
def test_the_core_checks_the_golden_logs_as_python_does(data: st.DataObject) -> None:
    """What it lets pass, whole or altered and chained anew, has the hashes that decoding the headers gives."""
    commit = data.draw(st.sampled_from(GOLDEN))
    parts = [[bytearray(r.header), bytearray(r.salt), bytearray(r.body)] for r in commit.records]
    if data.draw(st.booleans()):
        part = data.draw(st.sampled_from([part for record in parts for part in record if part]))
        part[data.draw(st.integers(0, len(part) - 1))] = data.draw(st.sampled_from(b'0a"\\,}{v\xff'))
    records = tuple(Record(*map(bytes, record)) for record in parts)
    hashes = [after for _, after in chain.hash_in_python(commit.prev, records)]
    altered = msgspec.structs.replace(commit, records=records, hash=hashes[-1])
    assert chain.check_records is not None
    found = chain.check_records(commit.prev, commit.first, records)
    if found is not None:
        assert found == hashes == check_commit(altered)[1]


def test_the_core_checks_by_itself_what_a_session_usually_holds() -> None:
    assert chain.check_records is not None
    usual = [each for each in GOLDEN if all(r.salt for r in each.records)]
    checked = [each for each in usual if chain.check_records(each.prev, each.first, each.records)]
    assert len(checked) > len(usual) / 2


def test_the_core_seals_by_itself_what_a_session_usually_holds() -> None:
    usual = ("action.started", 3, 1, "agent", 7, ((1, 2), (4, 4)), "web", "untrusted", b'{"action":"a"}', b"[]")
    arguments: Any = (GENESIS, 8, 1_700_000_000_000_000, bytes(16), [usual])
    sealed, *rest = core.seal_records(*arguments)
    assert (tuple(Record(*each) for each in sealed), *rest) == chain.seal_in_python(*arguments)
