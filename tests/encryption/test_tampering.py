"""Whoever changes encrypted bytes is found out by the key; and what is encrypted comes back as it was."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wakelog
from tests.encryption.keys import key_file, use_rings
from tests.encryption.tampering import bodies_of, put, put_bodies
from wakelog.codec.envelope import HEAD_SIZE, from_text, is_encrypted, key_id_of, to_text
from wakelog.encryption.tree_key import TreeKey
from wakelog.engine import Engine
from wakelog.engines.sqlite.rows import checksum
from wakelog.errors import CorruptLogError
from wakelog.model.ids import SessionId
from wakelog.model.records import Commit
from wakelog.session import Session
from wakelog.store import Store

ONE, OTHER = SessionId("s_" + "0" * 26), SessionId("s_" + "0" * 25 + "1")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    use_rings(monkeypatch, tmp_path)
    return wakelog.open(tmp_path / "store", encryption_key=key_file(tmp_path))


def below(store: Store) -> Engine:
    state = store.encryption.state
    assert state is not None
    return state.below


@given(value=st.binary(max_size=2000), what=st.sampled_from(["event", "payload"]), place=st.binary(max_size=40))
def test_a_value_comes_back_from_its_own_place_only(value: bytes, what: str, place: bytes) -> None:
    key, other = TreeKey.new(), TreeKey.new()
    envelope = key.encrypt(value, what, ONE, place)
    assert is_encrypted(envelope)
    assert key_id_of(envelope) == key.name
    assert from_text(to_text(envelope)) == envelope
    assert key.decrypt(envelope, what, ONE, place) == value
    for asked in (
        lambda: key.decrypt(envelope, what, OTHER, place),
        lambda: key.decrypt(envelope, what, ONE, place + b"0"),
        lambda: key.decrypt(envelope, "snapshot", ONE, place),
        lambda: other.decrypt(envelope, what, ONE, place),
    ):
        with pytest.raises(CorruptLogError):
            asked()


@given(value=st.binary(min_size=1, max_size=300), data=st.data())
def test_no_bit_can_be_flipped_and_no_byte_cut(value: bytes, data: st.DataObject) -> None:
    key = TreeKey.new()
    envelope = key.encrypt(value, "event", ONE, b"1")
    at = data.draw(st.integers(HEAD_SIZE, len(envelope) - 1))
    flipped = bytearray(envelope)
    flipped[at] ^= 1 << data.draw(st.integers(0, 7))
    for altered in (bytes(flipped), envelope[:at], envelope + b"0"):
        with pytest.raises(CorruptLogError):
            key.decrypt(altered, "event", ONE, b"1")


@given(fingerprint=st.binary(min_size=32, max_size=32))
def test_fingerprints_are_hidden_alike_and_told_again(fingerprint: bytes) -> None:
    key = TreeKey.new()
    hidden = key.encrypt_fingerprint(fingerprint)
    assert hidden == key.encrypt_fingerprint(fingerprint) != TreeKey.new().encrypt_fingerprint(fingerprint)
    assert fingerprint not in hidden
    assert key.decrypt_fingerprint(hidden) == fingerprint


def test_nonces_never_repeat() -> None:
    key = TreeKey.new()
    nonces = {key.encrypt(b"the same", "event", ONE, b"1")[HEAD_SIZE : HEAD_SIZE + 12] for _ in range(2000)}
    assert len(nonces) == 2000


def flip(body: bytes) -> bytes:
    return body[:-3] + bytes([body[-3] ^ 1]) + body[-2:]


@pytest.mark.parametrize(
    "change",
    [
        lambda bodies: {3: flip(bodies[3])},
        lambda bodies: {3: bodies[3][:-1]},
        lambda bodies: {3: bodies[3][:14]},
        lambda bodies: {3: bodies[4], 4: bodies[3]},
        lambda bodies: {3: bodies[3][:4] + os.urandom(8) + bodies[3][12:]},
        lambda bodies: {3: b'{"key":"k","value":"forged"}'},
    ],
    ids=["flipped", "cut", "cut in the nonce", "swapped", "of another key", "replaced by plain content"],
)
def test_changed_bodies_are_refused_and_verification_finds_them(
    store: Store, change: Callable[[dict[int, bytes]], dict[int, bytes]]
) -> None:
    with store:
        session = store.session("s")
        for number in range(4):
            session.fact("k", number)
        put_bodies(below(store), session.id, change(bodies_of(below(store), session.id)))
        with pytest.raises(CorruptLogError) as told:
            list(session.events())
        assert told.value.kind == "ciphertext-altered"
        report = session.verify()
        assert not report.ok
        assert report.integrity[0].seq == 3


def test_a_body_of_another_session_of_the_tree_is_refused(store: Store) -> None:
    with store:
        session = store.session("s")
        session.fact("k", 1)
        fork = session.fork(name="f")
        session.fact("k", 2)
        mine, theirs = session.fact("k", 3), fork.fact("k", 4)
        assert mine == theirs
        put_bodies(below(store), fork.id, {theirs: bodies_of(below(store), session.id)[mine]})
        with pytest.raises(CorruptLogError):
            list(fork.events())


def _payloads(session: Session[Any]) -> None:
    session.message("assistant", "one " * 500)
    session.message("assistant", "two " * 500)


def test_swapped_and_altered_payloads_are_refused(store: Store) -> None:
    with store:
        session = store.session("s")
        _payloads(session)
        engine = below(store)
        (first, one), (second, two) = [p for c in engine.read(session.id, payloads=True) for p in c.payloads]

        def swapped(commit: Commit) -> Commit:
            others = {first: two, second: one}
            return msgspec.structs.replace(commit, payloads=tuple((n, others[n]) for n, _ in commit.payloads))

        put(engine, session.id, swapped)
        with pytest.raises(CorruptLogError):
            session.messages()
        assert not session.verify().ok


def test_an_altered_snapshot_is_passed_by_and_verification_reports_it(store: Store, tmp_path: Path) -> None:
    with store:
        session = store.session("s")
        for number in range(60):
            session.fact(f"k{number}", "v" * 200)
        state = session.state()
    db = apsw.Connection(str(tmp_path / "store" / "log.db"))
    rows: Any = db.execute("select session, seq, data from snapshot").fetchall()
    for number, seq, data in rows:
        altered = flip(data)
        db.execute(
            "update snapshot set data = ?, checksum = ? where session = ? and seq = ?",
            (altered, checksum(session.id, seq, altered), number, seq),
        )
    db.close()
    with wakelog.open(tmp_path / "store", encryption_key=key_file(tmp_path)) as again:
        assert again.resume("s").state() == state
        assert "snapshot" in again.resume("s").verify().integrity[0].what
