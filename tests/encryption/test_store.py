"""An encrypted store: nothing readable at rest, everything readable with the key, and what is left without it."""

import base64
import hashlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.encryption.keys import key_file
from tests.encryption.tampering import put_bodies
from tests.residue import residue
from wakelog import events as ev
from wakelog.errors import (
    CorruptLogError,
    InvalidInputError,
    NotAllowedError,
    NotFoundError,
    UnsupportedError,
)
from wakelog.log.removal import erase, prune
from wakelog.maintenance.archive import backup, restore
from wakelog.maintenance.copy import copy_store
from wakelog.maintenance.holds import place_hold
from wakelog.session import Session
from wakelog.store import Store

CANARY = "kingfisher"


def filled(store: Store) -> Session[Any]:
    """A session that has the canary wherever content can be; the name is the only text that is not encrypted."""
    session = store.session("work", goal=f"{CANARY} goal", labels={CANARY: CANARY}, data={CANARY: CANARY})
    with session.turn(user=f"{CANARY} asks"):
        session.decide(CANARY, because=CANARY)
        session.fact(CANARY, CANARY)
        session.files.record(f"{CANARY}.py", added=3)
        session.append(ev.ActionRecorded(action="a", tool=CANARY, effect="read", output=f"{CANARY} " * 200))
        session.message("assistant", f"{CANARY} " * 300)
    session.append(ev.NoteAdded(text=f"{CANARY} noted"), commit_id="mine")
    session.checkpoint(CANARY)
    for number in range(30):
        session.fact(f"{CANARY} {number}", CANARY * 40)  # enough for snapshots
    return session


@pytest.mark.parametrize("encrypted", [True, False])
def test_nothing_that_was_said_is_in_the_files_of_an_encrypted_store(
    tmp_path: Path, key: str, *, encrypted: bool
) -> None:
    folder = tmp_path / "store"
    blobs = str(folder / "blobs")
    with wakelog.open(folder, encryption_key=key if encrypted else "", blobs=blobs) as store:
        session = filled(store)
        fork = session.fork(name="other")
        fork.message("assistant", f"{CANARY} big " * 40_000)
        erase(session.log, [3], why=CANARY)
        prune(session.log, 9, why=CANARY)
        assert store.index.search(CANARY).rows  # so there is an index
        assert (len(residue(folder, CANARY)) == 0) == encrypted
    assert (len(residue(folder, CANARY)) == 0) == encrypted
    assert (folder / "index.db").exists() != encrypted


def test_everything_is_as_in_a_plain_store(store: Store, tmp_path: Path) -> None:
    session = filled(store)
    assert session.messages()[1].content == f"{CANARY} " * 300
    assert session.state().goal == f"{CANARY} goal"
    assert store.index.files_modified()[0].path == f"{CANARY}.py"
    assert session.append(ev.NoteAdded(text=f"{CANARY} noted"), commit_id="mine").seq < session.head.seq
    with pytest.raises(InvalidInputError, match="used before"):
        session.append(ev.NoteAdded(text="another"), commit_id="mine")
    assert session.verify().ok
    with wakelog.open(tmp_path / "plain") as plain:
        copy_store(store, plain, decrypt=True)
        assert plain.resume("work").head.hash == session.head.hash
        assert plain.resume("work").verify().scope == session.verify().scope
        assert [e.body for e in plain.resume("work").events()] == [e.body for e in session.events()]


def test_a_plain_store_is_encrypted_by_copying_it_and_keeps_its_hashes(tmp_path: Path, store: Store) -> None:
    with wakelog.open(tmp_path / "plain") as plain:
        session = filled(plain)
        session.fork(name="other").fact("k", CANARY)
        copy_store(plain, store)
        assert store.resume("work").head.hash == session.head.hash
        assert store.resume("work").verify(session.anchor()).ok
        assert store.resume("other").state().facts["k"].value == CANARY
    assert not residue(tmp_path / "store", CANARY)


# Without the key


def test_without_the_key_the_content_is_refused_and_the_error_says_what_to_do(store: Store, tmp_path: Path) -> None:
    filled(store)
    with wakelog.open(tmp_path / "store") as closed:
        session = closed.resume("work")
        for ask in (
            session.messages,
            session.state,
            lambda: session.fact("k", 1),
            lambda: session.fork(why="a reason is content"),
            lambda: prune(session.log, 5),
            lambda: erase(session.log, [3]),
            lambda: closed.delete(session),
            lambda: closed.session("another"),
            lambda: closed.index.search(CANARY),
            lambda: session.export_bundle(io.BytesIO()),
            closed.encryption.tree_keys,
        ):
            with pytest.raises(UnsupportedError) as told:
                ask()
            assert told.value.kind == "content-encrypted"
            assert "WAKELOG_ENCRYPTION_KEY" in told.value.hint
        assert [info.name for info in closed.encryption.sessions()] == ["work"]


def test_without_the_key_the_chain_is_verified_and_the_report_says_what_was_not(store: Store, tmp_path: Path) -> None:
    session = filled(store)
    fork = session.fork(name="other")
    fork.fact("k", 1)
    erase(session.log, [3])
    prune(session.log, 5)
    reports = {report.session: report for report in store.verify()}
    anchor = session.anchor()
    with wakelog.open(tmp_path / "store") as closed:
        for report in closed.verify():
            known = reports[report.session]
            assert report.ok
            assert (report.events, report.head_hash) == (known.events, known.head_hash)
            assert report.scope["pruned"] == known.scope["pruned"]
            assert report.scope["encrypted"] == report.events - report.scope["pruned"]
        assert closed.resume("work").verify(anchor).ok


def test_without_the_key_a_copy_and_a_backup_are_made_and_the_key_opens_them(
    store: Store, tmp_path: Path, key: str
) -> None:
    session = filled(store)
    session.fork(name="other").fact("k", CANARY)
    erase(session.log, [3])
    prune(session.log, 5)
    with wakelog.open(tmp_path / "store") as closed:
        with wakelog.open(tmp_path / "copy") as copy:
            copy_store(closed, copy)
            assert all(report.ok for report in copy.verify())
        backup(closed, str(tmp_path / "archive"))
    with wakelog.open(tmp_path / "restored") as restored:
        assert restore(restored, str(tmp_path / "archive")).problems == {}
    for name in ("copy", "restored"):
        assert not residue(tmp_path / name, CANARY)
        with wakelog.open(tmp_path / name, encryption_key=key) as opened:
            assert opened.resume("work").state() == session.state()
            assert opened.resume("other").state().facts["k"].value == CANARY
            assert all(report.ok for report in opened.verify())
    assert not residue(tmp_path / "archive", CANARY)


def test_what_came_later_is_copied_too_and_so_is_what_was_erased(store: Store, tmp_path: Path, key: str) -> None:
    session = filled(store)
    with wakelog.open(tmp_path / "copy") as copy:
        copy_store(store, copy)
        session.fact("later", "now")
        erase(session.log, [3])
        copy_store(store, copy)
    with wakelog.open(tmp_path / "copy", encryption_key=key) as copy:
        again = copy.resume("work")
        assert again.head.hash == session.head.hash
        assert not again.log.entry(3).is_intact
        assert again.verify().ok


def test_an_encrypted_store_is_not_copied_into_a_plain_one_by_accident(store: Store, tmp_path: Path) -> None:
    filled(store)
    with wakelog.open(tmp_path / "plain") as plain:
        plain.session("mine")
        with pytest.raises(NotAllowedError) as told:
            copy_store(store, plain)
        assert told.value.kind == "copy-not-encrypted"


# Bundles


def bundle_of(session: Session[Any], *, encrypted: bool) -> io.BytesIO:
    out = io.BytesIO()
    session.export_bundle(out, encrypted=encrypted)
    out.seek(0)
    return out


def test_a_bundle_stays_encrypted_for_somebody_without_the_key(store: Store, tmp_path: Path, key: str) -> None:
    session = filled(store)
    fork = session.fork(name="other")
    fork.fact("k", CANARY)
    with wakelog.open(tmp_path / "store") as closed:
        bundle = bundle_of(closed.resume("other"), encrypted=True)
    assert CANARY.encode() not in bundle.getvalue()
    with wakelog.open(tmp_path / "theirs") as theirs:
        assert theirs.import_bundle(bundle, dry_run=True).new_events == fork.head.seq
        bundle.seek(0)
        assert theirs.import_bundle(bundle).head.hash == fork.head.hash
        assert theirs.resume("other").verify(fork.anchor()).ok
        bundle.seek(0)
        assert theirs.import_bundle(bundle).new_events == 0
        with pytest.raises(UnsupportedError):
            theirs.resume("other").state()
    with wakelog.open(tmp_path / "theirs", encryption_key=key) as opened:
        assert opened.resume("other").state().facts["k"].value == CANARY


def test_with_the_key_an_encrypted_bundle_is_opened_and_verified_whole(store: Store, tmp_path: Path, key: str) -> None:
    session = filled(store)
    bundle = bundle_of(session, encrypted=True)
    with wakelog.open(tmp_path / "second", encryption_key=key) as second:
        assert second.import_bundle(bundle).head.hash == session.head.hash
        erase(session.log, [3])
        second.import_bundle(bundle_of(session, encrypted=True))
        assert not second.resume("work").log.entry(3).is_intact
        assert second.resume("work").verify().ok
    with wakelog.open(tmp_path / "plain") as plain:
        plain.session("mine")
        with pytest.raises(NotAllowedError, match="not encrypted"):
            plain.import_bundle(bundle_of(session, encrypted=True))
        plain.import_bundle(bundle_of(session, encrypted=False))
        assert plain.resume("work").state() == session.state()


def test_an_altered_bundle_is_refused_with_the_key(store: Store, tmp_path: Path, key: str) -> None:
    session = filled(store)
    lines = [json.loads(line) for line in bundle_of(session, encrypted=True)]
    body = bytearray(base64.b64decode(lines[1]["records"][0][2].removeprefix("wle1:")))
    body[-1] ^= 1
    lines[1]["records"][0][2] = "wle1:" + base64.b64encode(body).decode()
    text = b"".join(json.dumps(line).encode() + b"\n" for line in lines[:-1])
    end = {"end": len(lines) - 1, "sha256": hashlib.sha256(text).hexdigest()}
    altered = text + json.dumps(end).encode() + b"\n"
    with wakelog.open(tmp_path / "second", encryption_key=key) as second, pytest.raises(CorruptLogError):
        second.import_bundle(io.BytesIO(altered))


# Keys


def test_a_wrong_key_and_a_missing_ring_are_told_apart(store: Store, tmp_path: Path, key: str) -> None:
    filled(store)
    with pytest.raises(InvalidInputError) as told:
        wakelog.open(tmp_path / "store", encryption_key=key_file(tmp_path, "another.key"))
    assert told.value.kind == "wrong-encryption-key"
    store.encryption.ring_path.unlink()
    with pytest.raises(NotFoundError) as lost:
        wakelog.open(tmp_path / "store", encryption_key=key)
    assert lost.value.kind == "key-ring-not-found"


def test_rotation_changes_the_ring_and_no_byte_of_the_store(store: Store, tmp_path: Path, key: str) -> None:
    hash = filled(store).head.hash
    store.close()
    log = tmp_path / "store" / "log.db"
    before, after = log.read_bytes(), key_file(tmp_path, "next.key")
    with wakelog.open(tmp_path / "store", encryption_key=key) as opened:
        assert opened.encryption.rotate(after) == 1
        assert opened.resume("work").messages()
    assert log.read_bytes() == before
    with pytest.raises(InvalidInputError, match="not the key"):
        wakelog.open(tmp_path / "store", encryption_key=key)
    with wakelog.open(tmp_path / "store", encryption_key=after) as opened:
        assert opened.resume("work").head.hash == hash
        assert opened.session("new", goal=CANARY).verify().ok
        with pytest.raises(InvalidInputError, match="in use"):
            opened.encryption.rotate(after)


def test_a_program_that_runs_while_the_key_is_changed_goes_on_and_takes_the_new_one_from_where_the_old_one_was(
    store: Store, tmp_path: Path, key: str
) -> None:
    session, other = filled(store), store.session("other")
    next_key = key_file(tmp_path, "next.key")
    with wakelog.open(tmp_path / "store", encryption_key=key) as running:
        mine = running.resume("work")
        mine.fact("before", 1)
        store.encryption.rotate(next_key)
        mine.fact("between", 2)  # with the tree's key, which it has
        for needs_another_key in (lambda: running.session("new"), running.resume("other").state):
            with pytest.raises(InvalidInputError) as told:
                needs_another_key()
            assert told.value.kind == "wrong-encryption-key"
        store.encryption.delete("other")
        with pytest.raises(NotFoundError):  # a deleted key is known as such meanwhile
            running.resume("other")
        (tmp_path / "next.key").rename(tmp_path / "master.key")
        assert running.session("new", goal="works").verify().ok
        mine.fact("after", 3)
    assert {name: session.state().facts[name].value for name in ("before", "between", "after")} == {
        "before": 1,
        "between": 2,
        "after": 3,
    }
    assert other.id not in {head.session for head in store.sessions()}


def test_deleting_a_trees_key_erases_it_in_a_backup_too(store: Store, tmp_path: Path, key: str) -> None:
    session = filled(store)
    session.fork(name="other").fact("k", 1)
    kept = store.session("kept", goal="stays")
    with wakelog.open(tmp_path / "copy") as copy:
        copy_store(store, copy)
    gone = store.encryption.delete("work", why="asked for")
    assert set(gone.sessions) == {"work", "other"}
    assert [head.name for head in store.sessions()] == ["kept"]
    assert kept.state().goal == "stays"
    assert [(each.tree, bool(each.deleted_at)) for each in store.encryption.tree_keys()] == [
        (session.id, True),
        (kept.id, False),
    ]
    with wakelog.open(tmp_path / "copy", encryption_key=key) as restored:
        old = restored.resume("work")
        with pytest.raises(NotFoundError) as told:
            old.messages()
        assert told.value.kind == "content-key-deleted"
        report = old.verify()
        assert report.ok
        assert report.scope["key_deleted"] == report.events
        assert restored.resume("kept").state().goal == "stays"
        assert [row.name for row in restored.index.sessions() if row.damaged] == ["other", "work"]
        with pytest.raises(NotFoundError):
            old.fact("k", 1)
        copy_store(restored, store)  # a restored backup does not bring it back
        with pytest.raises(NotFoundError):
            store.resume("work").messages()
        again = restored.encryption.delete(session.id)
        assert again.deleted_at == gone.deleted_at


def test_a_held_tree_keeps_its_key(store: Store) -> None:
    session = filled(store)
    fork = session.fork(name="other")
    place_hold(fork, "the lawyers asked")
    with pytest.raises(NotAllowedError, match="hold"):
        store.encryption.delete("work")
    assert session.messages()
    assert not store.encryption.tree_keys()[0].deleted_at


def test_a_store_with_plain_sessions_is_not_made_an_encrypted_one(tmp_path: Path, key: str) -> None:
    with wakelog.open(tmp_path / "plain") as plain:
        plain.session("s")
        with pytest.raises(NotAllowedError) as told:
            plain.encryption.tree_keys()
        assert told.value.kind == "not-encrypted"
    with pytest.raises(NotAllowedError, match="not encrypted"):
        wakelog.open(tmp_path / "plain", encryption_key=key)
    with pytest.raises(NotFoundError):
        wakelog.open(tmp_path / "new", encryption_key=f"file:{tmp_path}/none.key")
    assert not (tmp_path / "new").exists()


def test_the_key_of_the_settings_opens_encrypted_stores_and_leaves_others_plain(
    tmp_path: Path, key: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(store)
    monkeypatch.setenv("WAKELOG_ENCRYPTION_KEY", key)
    with wakelog.open(tmp_path / "store") as opened:
        assert opened.resume("work").messages()
    with wakelog.open(tmp_path / "plain") as plain:
        plain.session("s", goal=CANARY)
        assert plain.encryption.state is None
    assert residue(tmp_path / "plain", CANARY)


def test_a_torn_line_of_the_ring_is_dropped_and_the_next_key_is_kept(store: Store, tmp_path: Path, key: str) -> None:
    filled(store)
    with store.encryption.ring_path.open("ab") as ring:
        ring.write(b'{"tree":"s_01')
    store.session("second", goal=CANARY)
    with wakelog.open(tmp_path / "store", encryption_key=key) as again:
        assert again.resume("second").state().goal == CANARY
        assert again.resume("work").messages()


# What somebody changed


def test_a_body_put_into_a_plain_store_as_if_it_were_encrypted_is_found(tmp_path: Path) -> None:
    with wakelog.open(tmp_path / "plain") as plain:
        session = plain.session("s")
        seq = session.fact("k", "v")
        put_bodies(plain.engine, session.id, {seq: b"WLE1" + bytes(60)})
        assert not session.verify().ok


def test_a_store_folder_that_was_moved_is_read_as_before(store: Store, tmp_path: Path, key: str) -> None:
    filled(store)
    store.close()
    shutil.move(tmp_path / "store", tmp_path / "elsewhere")
    with wakelog.open(tmp_path / "elsewhere", encryption_key=key) as moved:
        assert moved.resume("work").messages()
