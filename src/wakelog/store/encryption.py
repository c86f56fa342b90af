"""Creates and opens encrypted stores. `store.encryption` manages their keys.

A mark in the store says that it is encrypted, and names the key ring. The ring is a file in a folder of the user
(`encryption.rings`), outside every store. The master key that opens the ring comes from the setting `encryption.key` or
the argument of `open`. Neither is in the store, and both are needed to read it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from wakelog.codec.envelope import ENCRYPTED, no_key
from wakelog.config.settings import user_setting
from wakelog.encryption.engine import EncryptedEngine
from wakelog.encryption.key_ring import KeyRing, MasterKey
from wakelog.encryption.mark import HINT, mark_encrypted, ring_of
from wakelog.engine import Encryption, Engine
from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError
from wakelog.index.results import SessionInfo
from wakelog.key_source import write_secret
from wakelog.log.removal import refuse_if_held
from wakelog.model.ids import SessionId, is_session_id, root_of
from wakelog.model.records import Head

if TYPE_CHECKING:
    from wakelog.store import Store


def with_encryption(engine: Engine, master: MasterKey | None = None) -> Engine:
    """Wraps the engine if the store is encrypted. With a master key, a store without sessions becomes encrypted. The
    default key is the user's `encryption.key`."""
    ring = ring_of(engine)
    if ring is None and master is not None:
        made = KeyRing.create(ring_path(master.ring), master)
        mark_encrypted(engine, made.id)
        return EncryptedEngine(engine, made, made.id)
    if ring is None:
        return engine
    if master is None and (source := user_setting("encryption.key")):
        master = MasterKey.read(source)
    return EncryptedEngine(engine, _open_ring(ring, master) if master is not None else None, ring)


def new_key_file(path: Path) -> str:
    """Creates a master key in a file that only its owner can read. Returns its id, not the key."""
    text = MasterKey.new_text()
    write_secret(text, path)
    return MasterKey.read(f"file:{path}").id


def hold_encrypted(engine: Engine, ring: str) -> Engine:
    """Returns an engine for encrypted content from elsewhere. A store without sessions becomes encrypted."""
    if engine.abilities.encryption is not None:
        return engine
    mark_encrypted(engine, ring)
    return with_encryption(engine)


def ring_path(ring: str) -> Path:
    """Returns the file of a key ring."""
    from wakelog.config.folders import data_folder

    return Path(user_setting("encryption.rings") or Path(data_folder()) / "keys").expanduser() / f"{ring}.keys"


def _open_ring(ring: str, master: MasterKey) -> KeyRing:
    found = KeyRing(path := ring_path(ring), master)
    if found.id != ring:
        raise InvalidInputError(f"{path} is the key ring {found.id}, not {ring}", kind="wrong-key-ring")
    return found


def key_for_another(store: Store) -> str:
    """Returns where the key is for a related store, such as a server's namespace; empty if this store is not
    encrypted."""
    if store.encryption.state is None:
        return ""
    source = user_setting("encryption.key")
    if not source:
        raise no_key("a related store cannot be created")
    return source


class TreeKeyInfo(msgspec.Struct, frozen=True):
    """The key of one fork tree, without the key itself."""

    tree: SessionId
    key_id: str
    sessions: tuple[str, ...]
    """Names of the tree's sessions in this store, or ids if they have no name."""
    deleted_at: int = 0
    """When it was deleted; 0 if it was not."""


class StoreEncryption:
    """Manages the keys of an encrypted store: tree_keys, rotate, delete."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def state(self) -> Encryption | None:
        """The state of the store's encryption; None if it is not encrypted."""
        return self._store.engine.abilities.encryption

    @property
    def ring_path(self) -> Path:
        """The file of the key ring. Back it up apart from the store. A backup of the ring can undo a deleted key, so
        keep it no longer than the content."""
        return self._ring().path

    def sessions(self) -> list[SessionInfo]:
        """Lists what is known of the sessions without the key, from their heads; the last written first."""
        heads = sorted(self._store.sessions(), key=lambda head: head.at, reverse=True)
        return [_info_without_key(head) for head in heads]

    def tree_keys(self) -> list[TreeKeyInfo]:
        """Lists the keys of the ring, one for each fork tree, including deleted ones."""
        here: dict[SessionId, list[str]] = {}
        for head in self._store.sessions():
            here.setdefault(root_of(head.session), []).append(str(head))
        return [
            TreeKeyInfo(key.tree, key.id, tuple(here.get(key.tree, ())), key.deleted) for key in self._ring().lines()
        ]

    def rotate(self, source: str) -> int:
        """Encrypts every key of the ring with the master key of `source`, and returns how many there are. The old
        master key opens nothing afterwards. The store itself does not change. Processes that have it open look for the
        new key where they found the old one."""
        ring, master = self._ring(), MasterKey.read(source)
        if master.id == ring.master.id:
            raise InvalidInputError(
                "this is the key that is in use",
                kind="same-encryption-key",
                hint="wakelog store keys new FILE makes another",
            )
        return ring.rotate(master)

    def delete(self, name_or_id: str, *, why: str = "") -> TreeKeyInfo:
        """Erases a fork tree everywhere: deletes its sessions in this store, then its key. Copies and backups of it can
        no longer be read, unless somebody kept a copy of the key ring and the master key."""
        ring = self._ring()
        tree = self._tree(name_or_id)
        heads = [head for head in self._store.sessions() if root_of(head.session) == tree]
        if any(key.tree == tree and not key.deleted for key in ring.lines()):
            for head in heads:
                refuse_if_held(self._store.engine, head.session)
            for head in sorted(heads, key=_depth, reverse=True):
                self._store.delete(self._store.resume(head.session), why=why)
        gone = ring.delete(tree, self._store.clock())
        return TreeKeyInfo(tree, gone.id, tuple(map(str, heads)), gone.deleted)

    def _tree(self, name_or_id: str) -> SessionId:
        """Returns the fork tree of a session. A session that is not in this store must be named by its id."""
        try:
            return root_of(self._store.find(name_or_id))
        except NotFoundError:
            if not is_session_id(name_or_id):
                raise
            return root_of(SessionId(name_or_id))

    def _ring(self) -> KeyRing:
        engine = self._store.engine
        if not isinstance(engine, EncryptedEngine):
            raise NotAllowedError(
                "this store is not encrypted, so it has no keys", kind="not-encrypted", hint=f"copy it: {HINT}"
            )
        if engine.ring is None:
            raise no_key("its keys cannot be listed")
        return engine.ring


def _info_without_key(head: Head) -> SessionInfo:
    own = head.seq - (head.fork.at if head.fork is not None else 0)
    return SessionInfo(
        id=head.session,
        name=head.name,
        root=root_of(head.session),
        parent=head.fork.parent if head.fork is not None else None,
        forked_at=head.fork.at if head.fork is not None else None,
        spawner="",
        agent="",
        status=head.status,
        outcome="",
        goal=None,
        labels={},
        turn=head.turn,
        turns=head.turn,
        events=own,
        first_at=head.at,
        last_at=head.at,
        tokens=0,
        usd_micros=0,
        pending=0,
        flags=0,
        last_error="",
        head=head.seq,
        damaged=ENCRYPTED,
    )


def _depth(head: Head) -> int:
    """Sorts forks after what they were forked from."""
    return head.fork.at + 1 if head.fork is not None else 0
