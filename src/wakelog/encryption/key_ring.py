"""The key ring: a file outside the store with the key of each fork tree, wrapped by the store's master key.

    {"wakelog_keys":1,"ring":"r_…","by":"m_…","check":base64}          first line
    {"tree":"s_…","id":"k_…","wrapped":base64}                        a tree's key, encrypted by the master key
    {"tree":"s_…","id":"k_…","deleted":microseconds}                  a tree whose key was deleted

The store itself has no key, so a copy or backup of it can be read only with the ring **and** the master key. Taking a
tree's line out of the ring therefore erases the tree wherever its bytes are. Changing the master key writes the ring
anew and no byte of the store.

A key is added by one appended line, synced before anything is encrypted with it. Whatever takes a key away writes the
file whole, under the same lock. A line that was cut off by a crash has no commit that needs it, and is dropped.

A process that runs while the master key is changed goes on with the keys that it has opened, and asks for the new
master key where it had the old one from. Until it gets it, it opens no other key and makes none.

A ring is named after the first master key. Stores that are made with the same key share it, and so do their copies.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from wakelog.atomic_file import atomic_file
from wakelog.codec.envelope import key_id_of
from wakelog.encryption.tree_key import SIZE, TreeKey, _aead
from wakelog.errors import CorruptLogError, InvalidInputError, NotAllowedError, NotFoundError, WakelogError
from wakelog.key_source import HINT, read_secret, shown
from wakelog.model.described import described
from wakelog.model.ids import SessionId

VERSION = 1
_NONCE = 12
_encode = msgspec.json.Encoder().encode


class MasterKey:
    """The key that wraps the others. It comes from outside, and is never written, printed or logged."""

    def __init__(self, secret: bytes, source: str = "") -> None:
        self._secret = secret
        self.source = source
        """Where it was read from, and is looked for again when it no longer opens the ring."""
        self.id = "m_" + self._derived(b"id", 8).hex()
        self.ring = "r_" + self._derived(b"ring", 8).hex()

    @classmethod
    def read(cls, source: str) -> MasterKey:
        """The key that a source gives (key_source.py): 32 bytes, as base64 or hex."""
        if _decoded(source) is not None and not os.path.exists(source):
            raise InvalidInputError(
                "an encryption key was given as an argument, where other users and logs can see it",
                kind="bad-encryption-key",
                hint=f"treat it as known: make a new one. Then {HINT}",
            )
        text = read_secret(source)
        secret = _decoded(text.strip())
        if secret is None:
            raise InvalidInputError(
                f"{shown(source)} does not give an encryption key: 32 random bytes, as base64 or hex",
                kind="bad-encryption-key",
                hint="wakelog store keys new FILE makes one",
            )
        return cls(secret, source)

    @staticmethod
    def new_text() -> str:
        """A new key, as a key file has it."""
        return base64.b64encode(os.urandom(SIZE)).decode()

    def __repr__(self) -> str:
        return f"<master key {self.id}>"

    def wrap(self, value: bytes, bound: str) -> str:
        nonce = os.urandom(_NONCE)
        return base64.b64encode(nonce + self._cipher().encrypt(nonce, value, bound.encode())).decode()

    def unwrap(self, text: str, bound: str) -> bytes | None:
        """What was wrapped by this key and for this place; None when it was not."""
        from cryptography.exceptions import InvalidTag

        try:
            data = base64.b64decode(text, validate=True)
            return bytes(self._cipher().decrypt(data[:_NONCE], data[_NONCE:], bound.encode()))
        except (InvalidTag, ValueError):
            return None

    def _cipher(self) -> Any:
        return _aead()[0](self._derived(b"wrap", SIZE))

    def _derived(self, use: bytes, size: int) -> bytes:
        hkdf = _aead()[2]
        from cryptography.hazmat.primitives.hashes import SHA256

        return bytes(hkdf(SHA256(), size, b"wakelog master key 1 " + use).derive(self._secret))


def _decoded(text: str) -> bytes | None:
    """The 32 bytes of a key as text, or None."""
    for decode in (bytes.fromhex, lambda given: base64.b64decode(given, validate=True)):
        with contextlib.suppress(ValueError, binascii.Error):
            if len(secret := decode(text)) == SIZE:
                return secret
    return None


class _Top(msgspec.Struct, frozen=True):
    wakelog_keys: int
    ring: str
    by: str
    check: str


class RingKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a ring says of one tree: its key, wrapped; or when that was deleted."""

    tree: SessionId
    id: str
    wrapped: str = ""
    deleted: int = 0


class KeyRing:
    """The keys of one ring file, as it is now: other processes add to it and delete from it."""

    def __init__(self, path: Path, master: MasterKey) -> None:
        self.path = path
        self.master = master
        self._lock = threading.RLock()
        self._stamp: tuple[int, int, int] | None = None
        self._lines: dict[SessionId, RingKey] = {}
        self._keys: dict[SessionId, TreeKey] = {}
        self._by_id: dict[str, SessionId] = {}
        self._is_open = False
        """Whether the master key opens the ring as it is now."""
        self._load()
        if not self._is_open:
            raise self._wrong_key()

    @classmethod
    def create(cls, path: Path, master: MasterKey) -> KeyRing:
        """The ring of a master key, made if it is not there yet."""
        top = _encode(_Top(VERSION, master.ring, master.id, master.wrap(b"", f"ring {master.ring}"))) + b"\n"
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with contextlib.suppress(FileExistsError), atomic_file(path, replace=False) as out:
                out.write(top)
            _sync_folder(path)
        except OSError as exc:
            raise NotAllowedError(f"{path} cannot be written: {exc.strerror}", kind="not-writable") from exc
        return cls(path, master)

    @property
    def id(self) -> str:
        return self._top.ring

    def lines(self) -> list[RingKey]:
        """All keys, the oldest tree first; also those that were deleted."""
        with self._lock:
            self._refresh()
            return sorted(self._lines.values(), key=lambda key: key.tree)

    def of_tree(self, tree: SessionId) -> TreeKey:
        """The key of a tree, made and stored if it has none yet. NotFoundError when it was deleted."""
        with self._lock:
            if (found := self.found(tree)) is not None:
                return found
            with self._changing() as file:
                if tree not in self._lines:
                    self._add(tree, TreeKey.new(), file)
                return self._opened(self._lines[tree])

    def found(self, tree: SessionId) -> TreeKey | None:
        """The key of a tree, or None when it has none. NotFoundError when it was deleted."""
        with self._lock:
            self._refresh()
            line = self._lines.get(tree)
            return None if line is None else self._opened(line)

    def of_envelope(self, envelope: bytes) -> TreeKey | None:
        """The key that opens an envelope; None when this ring never had it. NotFoundError when it was deleted."""
        with self._lock:
            self._refresh()
            tree = self._by_id.get(key_id_of(envelope))
            return None if tree is None else self._opened(self._lines[tree])

    def delete(self, tree: SessionId, at: int) -> RingKey:
        """Takes the key of a tree away for good."""
        with self._lock, self._changing():
            self._refuse_if_closed()
            line = self._lines.get(tree)
            if line is None:
                raise NotFoundError(f"there is no key for {tree} in {self.path}", kind="secret-not-found")
            if not line.deleted:
                line = self._lines[tree] = RingKey(tree, line.id, deleted=at)
                self._write(self._top)
            return line

    def rotate(self, master: MasterKey) -> int:
        """Wraps every key with another master key; how many there were. The old one opens nothing afterwards."""
        with self._lock, self._changing():
            self._refuse_if_closed()
            kept = [line for line in self._lines.values() if not line.deleted]
            for line in kept:
                wrapped = master.wrap(self._opened(line)._secret, self._bound(line))
                self._lines[line.tree] = RingKey(line.tree, line.id, wrapped)
            check = master.wrap(b"", f"ring {self.id}")
            self.master = master
            self._write(_Top(VERSION, self.id, master.id, check))
            return len(kept)

    # The file

    def _bound(self, line: RingKey) -> str:
        return f"{self._top.ring} {line.tree} {line.id}"

    def _opened(self, line: RingKey) -> TreeKey:
        if line.deleted:
            raise NotFoundError(
                f"the key of {line.tree} was deleted: its content is erased, and nothing can be added to it",
                kind="content-key-deleted",
                hint="open a new session",
            )
        key = self._keys.get(line.tree)
        if key is None:
            self._refuse_if_closed()
            secret = self.master.unwrap(line.wrapped, self._bound(line))
            if secret is None:
                raise CorruptLogError(f"the key of {line.tree} in {self.path} was altered", kind="bad-key-ring")
            key = self._keys[line.tree] = TreeKey(bytes.fromhex(line.id[2:]), secret)
        return key

    def _add(self, tree: SessionId, key: TreeKey, file: int) -> None:
        self._refuse_if_closed()
        bare = RingKey(tree, key.name)
        line = RingKey(tree, key.name, self.master.wrap(key._secret, self._bound(bare)))
        os.ftruncate(file, self._size)  # a line that a crash cut off
        os.lseek(file, 0, os.SEEK_END)
        with _told(self.path):
            data = _encode(line) + b"\n"
            if os.write(file, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file)
            self._stamp = _stamp(os.fstat(file))
        self._size += len(data)
        self._lines[tree], self._by_id[key.name] = line, tree
        self._keys[tree] = key

    def _write(self, top: _Top) -> None:
        with _told(self.path):
            with atomic_file(self.path) as out:
                out.write(b"".join(_encode(each) + b"\n" for each in (top, *self._lines.values())))
            _sync_folder(self.path)
        self._load()

    @contextlib.contextmanager
    def _changing(self) -> Iterator[int]:
        """The file, locked, with this object as new as it: what another process did meanwhile is known here."""
        with _told(self.path):
            file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            while True:
                fcntl.flock(file, fcntl.LOCK_EX)
                if os.fstat(file).st_ino == os.stat(self.path).st_ino:
                    break
                os.close(file)  # written anew while we waited
                file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._refresh()
            yield file
        except BaseException:
            self._stamp = None  # what was half done here is not in the file
            raise
        finally:
            os.close(file)

    def _refresh(self) -> None:
        with _told(self.path):
            found = os.stat(self.path)
        if _stamp(found) != self._stamp:
            self._load()

    def _load(self) -> None:
        with _told(self.path), self.path.open("rb") as file:
            self._stamp = _stamp(os.fstat(file.fileno()))
            data = file.read()
        self._size = data.rfind(b"\n") + 1
        try:
            first, *rest = data[: self._size].splitlines() or [b""]
            top = msgspec.json.decode(first, type=described(_Top))
            lines = [msgspec.json.decode(line, type=described(RingKey)) for line in rest]
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise CorruptLogError(
                f"{self.path} is not a key ring: {exc}", kind="bad-key-ring", hint="restore it from its backup"
            ) from exc
        self._top = top
        self._is_open = self._opens(self.master)
        self._lines = {line.tree: line for line in lines}
        self._by_id = {line.id: line.tree for line in lines}
        kept = {line.tree for line in lines if not line.deleted}
        self._keys = {tree: key for tree, key in self._keys.items() if tree in kept}

    def _opens(self, master: MasterKey) -> bool:
        return master.unwrap(self._top.check, f"ring {self._top.ring}") is not None

    def _refuse_if_closed(self) -> None:
        """Before a key is opened or added: the master key must be the present one. If it was changed, the new one is
        looked for where the old one was, at every call: it may be put there after the ring was changed."""
        if self._is_open:
            return
        with contextlib.suppress(WakelogError):
            if self.master.source and self._opens(found := MasterKey.read(self.master.source)):
                self.master, self._is_open = found, True
                return
        raise self._wrong_key()

    def _wrong_key(self) -> InvalidInputError:
        return InvalidInputError(
            f"this is not the key of {self.path}: it needs {self._top.by}, and {self.master.id} was given",
            kind="wrong-encryption-key",
            hint="name the key that the ring was made with, or was last rotated to",
        )


def _stamp(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as exc:
        raise NotFoundError(
            f"the key ring {path} is not there",
            kind="key-ring-not-found",
            hint="restore it, or name the folder that has it: WAKELOG_KEY_RINGS",
        ) from exc
    except OSError as exc:
        raise NotAllowedError(
            f"the key ring {path} cannot be used: {exc.strerror}", kind="key-ring-not-usable"
        ) from exc


def _sync_folder(path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
