"""One event as stored: bytes, hashes, and what a newer version may have written."""

import contextlib
import functools
import hashlib
import io
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakelog.codec.chain import hash_body, join_body, link
from wakelog.codec.pack import pack, pack_snapshot, unpack, unpack_snapshot
from wakelog.codec.records import (
    INLINE_MAX,
    PayloadCollector,
    check_event,
    decode_body,
    decode_delta,
    decode_event,
    decode_header,
    encode_event,
)
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import CorruptLogError, InvalidInputError, UnsupportedError
from wakelog.log import Log
from wakelog.log.bundle import export_bundle, import_bundle
from wakelog.log.verify import verify
from wakelog.model import events as ev
from wakelog.model.payloads import Payload, as_ref
from wakelog.model.records import FORMAT_VERSION, Header, Record
from wakelog.testing.builders import CommitWriter, fact, message, new_session, raw_commit, raw_record
from wakelog.testing.strategies import MOVES, knowledge

headers = st.builds(
    Header,
    seq=st.integers(1, 1 << 40),
    kind=st.sampled_from(sorted(ev.KINDS)),
    at=st.integers(0, 1 << 52),
    body_hash=st.just("ab" * 32),
    turn=st.integers(0, 99),
    attempt=st.integers(1, 9),
    actor=st.text(st.characters(exclude_categories=["Cs"])),
    cause=st.integers(0, 99),
    derived_from=st.lists(st.tuples(st.integers(1, 9), st.integers(9, 99)), max_size=3).map(tuple),
    trust=st.sampled_from(["trusted", "unverified", "untrusted"]),
)


@given(headers)
def test_a_header_comes_back_as_it_was(header: Header) -> None:
    assert decode_header(msgspec.json.encode(header)) == header


def test_a_header_leaves_out_what_is_usual() -> None:
    header = Header(seq=1, kind="note.added", at=5, body_hash="00")
    assert set(json.loads(msgspec.json.encode(header))) <= {"seq", "kind", "at", "body_hash", "v"}


@given(knowledge | st.sampled_from(MOVES))
def test_a_body_comes_back_as_the_same_event(event: ev.Event) -> None:
    collector = PayloadCollector({})
    body = join_body(encode_event(check_event(event), collector)[0], b'[{"op":"remove","path":"/facts/a"}]')
    again = decode_event(event.kind, body)
    assert type(again) is type(event)
    assert encode_event(again, PayloadCollector({}))[0] == encode_event(check_event(event), PayloadCollector({}))[0]
    assert decode_delta(body) == [{"op": "remove", "path": "/facts/a"}]
    json.loads(body)


def test_the_hashes_are_what_the_format_says() -> None:
    writer = CommitWriter()
    commit = writer.open(fact("a"), message("b"))
    chain = bytes(32)
    for seq, record in enumerate(commit.records, 1):
        header = json.loads(record.header)
        assert header["seq"] == seq
        assert header["body_hash"] == hashlib.sha256(record.salt + record.body).hexdigest()
        assert len(record.salt) == 16
        chain = hashlib.sha256(chain + record.header).digest()
    assert commit.hash == chain
    assert link(bytes(32), b"x") == hashlib.sha256(bytes(32) + b"x").digest()
    assert hash_body(b"salt", b"body") == hashlib.sha256(b"saltbody").hexdigest()


def test_equal_bodies_have_salts_of_their_own() -> None:
    commit = CommitWriter().open(fact("a"), fact("a"))
    assert len({r.salt for r in commit.records}) == 3
    assert len({json.loads(r.header)["body_hash"] for r in commit.records}) == 3


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[]", b"{", b'{"seq":"1"}', b"\xff", b'{"seq":1,"kind":"x","at":1,"body_hash":"0"', b"[" * 100_000],
)
def test_a_header_that_cannot_be_read_is_told_as_damage(data: bytes) -> None:
    with pytest.raises(CorruptLogError):
        decode_header(data)


@pytest.mark.parametrize("data", [b"[]", b"{", b"\xff", b'"a"', b'{"delta":', b"[" * 100_000])
def test_a_body_that_cannot_be_read_is_told_as_damage(data: bytes) -> None:
    for decode in (decode_body, decode_delta):
        with pytest.raises(CorruptLogError):
            decode(data)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("note.added", b"[]"),
        ("x.mine", b"[]"),
        ("x.mine", b"{"),
        ("note.added", b"{"),
        ("payload.erased", b"{"),
        ("note.added", b"[" * 100_000),
    ],
)
def test_an_event_that_cannot_be_read_is_told_as_damage(kind: str, data: bytes) -> None:
    with pytest.raises(CorruptLogError):
        decode_event(kind, data)


# Payloads


@pytest.mark.parametrize("size", [INLINE_MAX - 10, INLINE_MAX + 1, 100_000])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: "x" * n,
        lambda n: ["x" * n],
        lambda n: {"x": "é" * n},
        lambda n: b"\x00" * n,
        lambda n: Payload(b"\x00" * n),
    ],
)
def test_large_values_become_payloads_and_small_ones_stay(size: int, make: Any) -> None:
    value = make(size)
    collector = PayloadCollector({})
    body = json.loads(encode_event(check_event(message(value)), collector)[0])
    ref = as_ref(body["content"])
    if size <= INLINE_MAX and not isinstance(value, bytes | Payload | dict):
        assert body["content"] == value
        assert not collector.new
    elif size > INLINE_MAX:
        assert ref is not None
        [(digest, content)] = collector.new.items()
        assert ref.hash == digest.hex() == hashlib.sha256(content).hexdigest()
        assert ref.size == len(content)


def test_a_large_tuple_becomes_a_payload_as_a_list_would() -> None:
    collector = PayloadCollector({})
    encode_event(check_event(message(("x" * 1000,))), collector)
    assert collector.new


def test_equal_content_is_brought_once_and_mentioned_after_that() -> None:
    text = "y" * 2000
    digest = hashlib.sha256(text.encode()).digest()
    collector = PayloadCollector({})
    first, second = (json.loads(encode_event(check_event(message(text)), collector)[0]) for _ in range(2))
    assert list(collector.new) == [digest]
    assert "at" not in first["content"]
    assert "at" not in second["content"]
    later = PayloadCollector({digest: 7})
    mention = json.loads(encode_event(check_event(message(text)), later)[0])["content"]
    assert mention["at"] == 7
    assert not later.new


# Kinds


def test_own_kinds_start_with_x() -> None:
    log = Log.create(MemoryEngine(), new_session(), ev.SessionOpened())
    log.append(ev.Foreign(foreign_kind="x.mine.deep", data={"a": [1, {"b": None}]}))
    entry = log.entry(2)
    assert entry.kind == "x.mine.deep"
    assert isinstance(entry.event, ev.Foreign)
    assert entry.event.data == {"a": [1, {"b": None}]}
    assert verify(log).ok


@pytest.mark.parametrize("kind", ["", "mine", "note.added", "future.kind", "X.mine"])
def test_other_kinds_are_not_written(kind: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        check_event(ev.Foreign(foreign_kind=kind, data={}))
    assert refused.value.kind == "unknown-kind"


def test_own_kinds_do_not_touch_the_state() -> None:
    with pytest.raises(InvalidInputError):
        check_event(ev.Foreign(foreign_kind="x.mine", data={"delta": []}))


# What a newer version may have written


def _with_future(**header: Any) -> tuple[Log, list[Record]]:
    """A session with an unknown kind, unknown fields of a known kind, and unknown fields of a header."""
    writer = CommitWriter()
    opened = writer.open()
    records = [
        raw_record(
            2, "future.thing", b'{ "z": 1.50, "a":"\\u00e9", "delta":[{"op":"add","path":"/goal","value":"set"}]}'
        ),
        raw_record(3, "note.added", {"text": "t", "unknown": {"deep": [1, 2.5, None]}}),
        raw_record(4, "note.added", {"text": 5, "on": "not a number"}),
        raw_record(5, "fact.recorded", {"nothing": "that fits"}, mood="curious", **header),
    ]
    engine = MemoryEngine()
    engine.submit(opened, raw_commit(writer.session, records, prev=opened.hash)).result()
    return Log(engine, writer.session), records


def test_unknown_kinds_and_fields_are_kept_as_they_came() -> None:
    log, records = _with_future()
    entries = list(log.entries(after=1))
    assert [e.record for e in entries] == records
    assert isinstance(entries[0].event, ev.Foreign)
    assert entries[0].event.data["z"] == 1.5
    assert entries[1].event == ev.NoteAdded(text="t")
    assert entries[1].body["unknown"] == {"deep": [1, 2.5, None]}
    assert isinstance(entries[2].event, ev.Foreign)
    assert isinstance(entries[3].event, ev.Foreign)
    assert log.state()["goal"] == "set"
    assert verify(log).ok


def test_unknown_kinds_and_fields_travel_byte_by_byte() -> None:
    log, _ = _with_future()
    first, second = io.BytesIO(), io.BytesIO()
    export_bundle(log, first)
    again = import_bundle(MemoryEngine(), io.BytesIO(first.getvalue()))
    export_bundle(again, second)
    assert second.getvalue() == first.getvalue()
    assert [e.record for e in again.entries()] == [e.record for e in log.entries()]


def test_a_session_goes_on_after_what_it_does_not_know() -> None:
    log, _ = _with_future()
    log.append(fact("more"))
    log.rewind(2)
    assert log.fork(4).state()["goal"] == "set"
    assert verify(log).ok


def test_a_newer_format_is_refused_and_not_misread() -> None:
    log, _ = _with_future(v=FORMAT_VERSION + 1)
    with pytest.raises(UnsupportedError) as refused:
        list(log.entries())
    assert refused.value.kind == "newer-format"
    assert refused.value.hint
    assert not verify(log).ok
    with pytest.raises(UnsupportedError):
        decode_header(msgspec.json.encode({"seq": 1, "kind": "k", "at": 1, "body_hash": "0", "v": FORMAT_VERSION + 1}))


def test_a_bundle_of_a_newer_format_is_refused() -> None:
    log, _ = _with_future()
    out = io.BytesIO()
    export_bundle(log, out)
    lines = out.getvalue().splitlines(keepends=True)
    lines[0] = lines[0].replace(b'"wakelog":1', b'"wakelog":2')
    body = b"".join(lines[:-1])
    end = json.dumps({"end": len(lines) - 1, "sha256": hashlib.sha256(body).hexdigest()}).encode()
    with pytest.raises(UnsupportedError) as refused:
        import_bundle(MemoryEngine(), io.BytesIO(body + end))
    assert refused.value.kind == "newer-format"


# Packing


@given(st.lists(st.builds(Record, header=st.binary(), salt=st.binary(max_size=16), body=st.binary()), max_size=5))
def test_packed_records_come_back(records: list[Record]) -> None:
    assert unpack(*pack(records, ())) == (tuple(records), ())


@given(st.lists(st.tuples(st.binary(), st.binary()), max_size=5), st.binary())
def test_packed_payloads_and_snapshots_come_back(pairs: list[tuple[bytes, bytes]], state: bytes) -> None:
    assert unpack(*pack((), pairs)) == ((), tuple(pairs))
    assert unpack_snapshot(pack_snapshot(state)) == state


@given(st.binary(max_size=300), st.data())
def test_damaged_packing_is_told_as_damage(body: bytes, data: st.DataObject) -> None:
    packed = bytearray(pack((Record(b"header", b"salt", body),), ())[0])
    at = data.draw(st.integers(0, len(packed) - 1))
    packed[at] ^= data.draw(st.integers(1, 255))
    try:
        again, _ = unpack(bytes(packed))
    except CorruptLogError:
        return
    assert again == (Record(b"header", b"salt", body),)


@given(st.binary(max_size=200))
def test_any_bytes_are_unpacked_or_told_as_damage(data: bytes) -> None:
    sound, _ = pack((), ())
    for each in (unpack, functools.partial(unpack, sound), unpack_snapshot):
        for prefix in (b"", b"\x00", b"\x01"):
            with contextlib.suppress(CorruptLogError):
                each(prefix + data)
