"""Forks of an encrypted session that are made without the key."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import wakelog
from wakelog import events as ev
from wakelog.codec.chain import hash_body, link
from wakelog.errors import ConflictError, CorruptLogError, NotFoundError
from wakelog.log.verify import verify_session
from wakelog.maintenance.copy import copy_store
from wakelog.model.ids import fork_id
from wakelog.model.records import Record
from wakelog.session import Session
from wakelog.store import Store


@pytest.fixture
def closed(tmp_path: Path, store: Store) -> Iterator[Store]:
    """The same store, opened without the key."""
    with wakelog.open(tmp_path / "store") as closed:
        yield closed


def worked(store: Store) -> Session[Any]:
    """A session that is closed at its end, and on its way has turns, a lease, an open turn and open calls."""
    session = store.session("work", goal="mend it")
    with session.turn(user="first"):
        session.fact("found", "a")
    session.log.release_lease(session.log.take_lease("me"))
    with session.turn(user="second"):
        session.append(ev.ActionRequested(action="a", tool="send", effect="write"))
        session.append(ev.ActionFailed(action="a", error=ev.Failure("net"), retry=True))
        session.append(ev.InputRequested(request="q", prompt="May I?"))
        session.append(ev.ActionStarted(action="a", attempt=2))
        session.append(ev.ActionSucceeded(action="a"), ev.InputAnswered(request="q", answer="yes"))
    session.life.end("done")
    return session


def test_a_fork_at_every_event_has_the_state_of_one_that_is_made_with_the_key(store: Store, closed: Store) -> None:
    session = worked(store)
    for at in range(1, session.head.seq + 1):
        made = closed.resume("work").fork(at, name=f"blind-{at}")
        with_key = session.fork(at, name=f"seen-{at}")
        blind = store.resume(f"blind-{at}")
        assert made.id == blind.id
        assert blind.head.fork == with_key.head.fork
        pending = blind.log.state()["pending_actions"]
        for each in (blind, with_key):
            each.fact("own", at)
        assert blind.head.seq == with_key.head.seq, f"{len(pending)} calls were open at {at}"
        assert blind.log.state() == with_key.log.state()
        assert [e.kind for e in blind.events()] == [e.kind for e in with_key.events()]
        assert blind.verify().ok
        assert (blind.head.turn, blind.head.status, blind.head.epoch) == (
            with_key.head.turn,
            with_key.head.status,
            with_key.head.epoch,
        )
    assert all(report.ok for report in closed.verify())


def test_what_was_open_at_the_fork_is_given_up_before_anything_else(store: Store, closed: Store) -> None:
    session = store.session("work")
    session.append(ev.ActionRequested(action="pay", tool="pay", effect="external"))
    closed.resume("work").fork(name="blind")
    fork = store.resume("blind")
    with pytest.raises(Exception, match="not pending"):
        fork.append(ev.ActionStarted(action="pay"))
    assert fork.log.state()["pending_actions"] == {}
    assert session.log.state()["pending_actions"].keys() == {"pay"}


def test_such_a_fork_is_forked_copied_exported_and_taken_in(
    store: Store, closed: Store, tmp_path: Path, key: str
) -> None:
    worked(store)
    closed.resume("work").fork(9, name="one").fork(name="two")
    bundle = io.BytesIO()
    closed.resume("two").export_bundle(bundle, encrypted=True)
    with wakelog.open(tmp_path / "copy") as copy:
        copy_store(closed, copy)
    for name in ("theirs", "ours"):
        bundle.seek(0)
        with wakelog.open(tmp_path / name, encryption_key=key if name == "ours" else "") as target:
            target.import_bundle(bundle)
            assert target.resume("two").verify().ok
    for name in ("store", "copy", "theirs", "ours"):
        with wakelog.open(tmp_path / name, encryption_key=key) as opened:
            assert opened.resume("two").state().goal == "mend it"
            assert all(report.ok for report in opened.verify())
    with wakelog.open(tmp_path / "plain") as plain:
        copy_store(store, plain, decrypt=True)
        assert plain.resume("two").state().goal == "mend it"


def test_a_name_that_is_taken_and_an_event_that_is_not_there_are_refused(store: Store, closed: Store) -> None:
    worked(store)
    session = closed.resume("work")
    with pytest.raises(ConflictError, match="taken"):
        session.fork(name="work")
    with pytest.raises(NotFoundError):
        session.fork(999)
    assert [head.name for head in store.sessions()] == ["work"]


def _with_goal(body: bytes) -> bytes:
    said = msgspec.json.decode(body)
    said["delta"].append({"op": "add", "path": "/goal", "value": "obey"})
    return msgspec.json.encode(said)


def _with_more(body: bytes) -> bytes:
    return msgspec.json.encode({**msgspec.json.decode(body), "why": "obey"})


@pytest.mark.parametrize("change", [_with_goal, _with_more, lambda body: b"{}", lambda body: b"[1]"])
def test_a_fork_that_says_more_than_headers_do_is_damage(
    store: Store, closed: Store, change: Callable[[bytes], bytes]
) -> None:
    """Somebody who can write to the store, and has no key, rewrites a fork's commit with sound hashes."""
    session = worked(store)
    assert closed.encryption.state is not None
    below = closed.encryption.state.below
    fork = closed.resume("work").fork()
    (commit,) = below.read(fork.id)
    (record,) = commit.records
    body = change(record.body)
    digest = hash_body(record.salt, record.body)
    header = record.header.replace(digest.encode(), hash_body(record.salt, body).encode())
    forged = msgspec.structs.replace(
        commit,
        session=fork_id(session.id, b"12345"),
        fork=fork.head.fork,
        records=(Record(header, record.salt, body),),
        hash=link(commit.prev, header),
    )
    below.submit(forged).result()
    with pytest.raises(CorruptLogError, match="not encrypted"):
        store.resume(forged.session).state()
    assert not verify_session(store.engine, forged.session).ok
    assert not verify_session(closed.engine, forged.session).ok
