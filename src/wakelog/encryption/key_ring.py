"""The key ring: a file outside the store with the key of each fork tree, wrapped by the store's master key.

    {"wakelog_keys":1,"ring":"r_…","by":"m_…","check":base64}          first line
    {"tree":"s_…","id":"k_…","wrapped":base64}                        a tree's key, encrypted by the master key
    {"tree":"s_…","id":"k_…","deleted":microseconds}                  a tree whose key was deleted

The store itself has no key, so a copy or backup of it can be read only with the ring **and** the master key. Removing
a tree's key from the ring therefore erases the tree wherever its bytes are. Changing the master key rewrites the ring,
but no byte of the store.

A key is added by appending one line, which is synced before anything is encrypted with the key. Deleting a key rewrites
the file, under the same lock. A line that a crash cut off belongs to no commit, and is dropped.

A process that runs while the master key is changed continues with the keys that it has unwrapped. For others it reads
the new master key from the source of the old one. Until that succeeds, it unwraps and adds no keys.

A ring is named after its first master key. Stores that are created with the same key share it, and so do their copies.
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
from wakelog.encryption.tree_key import KEY_SIZE, TreeKey, aead_classes, derive
from wakelog.errors import CorruptLogError, InvalidInputError, NotAllowedError, NotFoundError, WakelogError
from wakelog.key_source import HINT, describe_source, read_secret
from wakelog.model.described import described
from wakelog.model.ids import SessionId

VERSION = 1
_NONCE = 12
_encode = msgspec.json.Encoder().encode


class MasterKey:
    """The key that wraps the others. It comes from the user, and is never written, printed or logged."""

    def __init__(self, secret: bytes, source: str = "") -> None:
        self._secret = secret
        self.source = source
        """Where it was read from. It is read again if it no longer fits the ring."""
        self.id = "m_" + self._derive(b"id", 8).hex()
        self.ring = "r_" + self._derive(b"ring", 8).hex()

    @classmethod
    def read(cls, source: str) -> MasterKey:
        """Reads the key from a source (key_source.py): 32 bytes, as base64 or hex."""
        if _decode_key(source) is not None and not os.path.exists(source):
            raise InvalidInputError(
                "an encryption key was given as an argument, where other users and logs can see it",
                kind="bad-encryption-key",
                hint=f"it is no longer secret: make a new one. Then {HINT}",
            )
        secret = _decode_key(read_secret(source).strip())
        if secret is None:
            raise InvalidInputError(
                f"{describe_source(source)} does not give an encryption key: 32 random bytes, as base64 or hex",
                kind="bad-encryption-key",
                hint="wakelog store keys new FILE makes one",
            )
        return cls(secret, source)

    @staticmethod
    def new_text() -> str:
        """A new key, in the form of a key file."""
        return base64.b64encode(os.urandom(KEY_SIZE)).decode()

    def __repr__(self) -> str:
        return f"<master key {self.id}>"

    def wrap(self, value: bytes, bound: str) -> str:
        nonce = os.urandom(_NONCE)
        return base64.b64encode(nonce + self._cipher().encrypt(nonce, value, bound.encode())).decode()

    def unwrap(self, text: str, bound: str) -> bytes | None:
        """The value that this key wrapped for this place; None if it did not."""
        from cryptography.exceptions import InvalidTag

        try:
            data = base64.b64decode(text, validate=True)
            return bytes(self._cipher().decrypt(data[:_NONCE], data[_NONCE:], bound.encode()))
        except (InvalidTag, ValueError):
            return None

    def _cipher(self) -> Any:
        return aead_classes()[0](self._derive(b"wrap", KEY_SIZE))

    def _derive(self, use: bytes, size: int) -> bytes:
        return derive(self._secret, b"wakelog master key 1 " + use, size)


def _decode_key(text: str) -> bytes | None:
    """The 32 bytes of a key as text, or None."""
    for decode in (bytes.fromhex, lambda value: base64.b64decode(value, validate=True)):
        with contextlib.suppress(ValueError, binascii.Error):
            if len(secret := decode(text)) == KEY_SIZE:
                return secret
    return None


class _RingHeader(msgspec.Struct, frozen=True):
    wakelog_keys: int
    ring: str
    by: str
    check: str


class RingKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """The entry of one tree: its wrapped key, or when the key was deleted."""

    tree: SessionId
    id: str
    wrapped: str = ""
    deleted: int = 0


class KeyRing:
    """The keys of one ring file. Follows the changes that other processes make."""

    def __init__(self, path: Path, master: MasterKey) -> None:
        self.path = path
        self.master = master
        self._lock = threading.RLock()
        self._stamp: tuple[int, int, int] | None = None
        self._lines: dict[SessionId, RingKey] = {}
        self._keys: dict[SessionId, TreeKey] = {}
        self._by_id: dict[str, SessionId] = {}
        self._is_unlocked = False
        """True if the master key fits the ring."""
        self._load()
        if not self._is_unlocked:
            raise self._wrong_key()

    @classmethod
    def create(cls, path: Path, master: MasterKey) -> KeyRing:
        """The ring of a master key, created if needed."""
        header = _encode(_RingHeader(VERSION, master.ring, master.id, master.wrap(b"", f"ring {master.ring}"))) + b"\n"
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with contextlib.suppress(FileExistsError), atomic_file(path, replace=False) as out:
                out.write(header)
            _sync_folder(path)
        except OSError as exc:
            raise NotAllowedError(f"{path} cannot be written: {exc.strerror}", kind="not-writable") from exc
        return cls(path, master)

    @property
    def id(self) -> str:
        return self._header.ring

    def lines(self) -> list[RingKey]:
        """All entries, the oldest tree first, including those whose key was deleted."""
        with self._lock:
            self._refresh()
            return sorted(self._lines.values(), key=lambda key: key.tree)

    def ensure_key(self, tree: SessionId) -> TreeKey:
        """The key of a tree, created if it has none. NotFoundError if it was deleted."""
        with self._lock:
            if (key := self.find_key(tree)) is not None:
                return key
            with self._locked_file() as file:
                if tree not in self._lines:
                    self._add(tree, TreeKey.new(), file)
                return self._unwrap(self._lines[tree])

    def find_key(self, tree: SessionId) -> TreeKey | None:
        """The key of a tree, or None. NotFoundError if it was deleted."""
        with self._lock:
            self._refresh()
            line = self._lines.get(tree)
            return None if line is None else self._unwrap(line)

    def find_by_envelope(self, envelope: bytes) -> TreeKey | None:
        """The key of an envelope; None if this ring never had it. NotFoundError if it was deleted."""
        with self._lock:
            self._refresh()
            tree = self._by_id.get(key_id_of(envelope))
            return None if tree is None else self._unwrap(self._lines[tree])

    def delete(self, tree: SessionId, at: int) -> RingKey:
        """Deletes the key of a tree. It cannot be restored."""
        with self._lock, self._locked_file():
            self._unlock()
            line = self._lines.get(tree)
            if line is None:
                raise NotFoundError(f"there is no key for {tree} in {self.path}", kind="secret-not-found")
            if not line.deleted:
                line = self._lines[tree] = RingKey(tree, line.id, deleted=at)
                self._write(self._header)
            return line

    def rotate(self, master: MasterKey) -> int:
        """Wraps every key with another master key; returns how many. The old one is useless afterwards."""
        with self._lock, self._locked_file():
            self._unlock()
            keys = [line for line in self._lines.values() if not line.deleted]
            for line in keys:
                wrapped = master.wrap(self._unwrap(line)._secret, self._binding(line))
                self._lines[line.tree] = RingKey(line.tree, line.id, wrapped)
            check = master.wrap(b"", f"ring {self.id}")
            self.master = master
            self._write(_RingHeader(VERSION, self.id, master.id, check))
            return len(keys)

    # The file

    def _binding(self, line: RingKey) -> str:
        return f"{self._header.ring} {line.tree} {line.id}"

    def _unwrap(self, line: RingKey) -> TreeKey:
        if line.deleted:
            raise NotFoundError(
                f"the key of {line.tree} was deleted: its content is erased, and nothing can be added to it",
                kind="content-key-deleted",
                hint="open a new session",
            )
        key = self._keys.get(line.tree)
        if key is None:
            self._unlock()
            secret = self.master.unwrap(line.wrapped, self._binding(line))
            if secret is None:
                raise CorruptLogError(f"the key of {line.tree} in {self.path} was altered", kind="bad-key-ring")
            key = self._keys[line.tree] = TreeKey(bytes.fromhex(line.id[2:]), secret)
        return key

    def _add(self, tree: SessionId, key: TreeKey, file: int) -> None:
        self._unlock()
        bare = RingKey(tree, key.name)
        line = RingKey(tree, key.name, self.master.wrap(key._secret, self._binding(bare)))
        os.ftruncate(file, self._size)  # a line that a crash cut off
        os.lseek(file, 0, os.SEEK_END)
        with _file_errors(self.path):
            data = _encode(line) + b"\n"
            if os.write(file, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file)
            self._stamp = _stamp(os.fstat(file))
        self._size += len(data)
        self._lines[tree], self._by_id[key.name] = line, tree
        self._keys[tree] = key

    def _write(self, header: _RingHeader) -> None:
        with _file_errors(self.path):
            with atomic_file(self.path) as out:
                out.write(b"".join(_encode(line) + b"\n" for line in (header, *self._lines.values())))
            _sync_folder(self.path)
        self._load()

    @contextlib.contextmanager
    def _locked_file(self) -> Iterator[int]:
        """Locks the file, and reads what other processes changed in it."""
        with _file_errors(self.path):
            file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            while True:
                fcntl.flock(file, fcntl.LOCK_EX)
                if os.fstat(file).st_ino == os.stat(self.path).st_ino:
                    break
                os.close(file)  # it was replaced while we waited
                file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._refresh()
            yield file
        except BaseException:
            self._stamp = None  # read the file again: it does not have the unfinished change
            raise
        finally:
            os.close(file)

    def _refresh(self) -> None:
        with _file_errors(self.path):
            stat = os.stat(self.path)
        if _stamp(stat) != self._stamp:
            self._load()

    def _load(self) -> None:
        with _file_errors(self.path), self.path.open("rb") as file:
            self._stamp = _stamp(os.fstat(file.fileno()))
            data = file.read()
        self._size = data.rfind(b"\n") + 1
        try:
            first, *rest = data[: self._size].splitlines() or [b""]
            header = msgspec.json.decode(first, type=described(_RingHeader))
            lines = [msgspec.json.decode(line, type=described(RingKey)) for line in rest]
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise CorruptLogError(
                f"{self.path} is not a key ring: {exc}", kind="bad-key-ring", hint="restore it from its backup"
            ) from exc
        self._header = header
        self._is_unlocked = self._fits(self.master)
        self._lines = {line.tree: line for line in lines}
        self._by_id = {line.id: line.tree for line in lines}
        session_ids = {line.tree for line in lines if not line.deleted}
        self._keys = {tree: key for tree, key in self._keys.items() if tree in session_ids}

    def _fits(self, master: MasterKey) -> bool:
        return master.unwrap(self._header.check, f"ring {self._header.ring}") is not None

    def _unlock(self) -> None:
        """Makes sure that the master key fits the ring, before a key is unwrapped or added. If it was changed, the new
        one is read from the source of the old one. Each call tries again, because it may be put there later."""
        if self._is_unlocked:
            return
        with contextlib.suppress(WakelogError):
            if self.master.source and self._fits(key := MasterKey.read(self.master.source)):
                self.master, self._is_unlocked = key, True
                return
        raise self._wrong_key()

    def _wrong_key(self) -> InvalidInputError:
        return InvalidInputError(
            f"this is not the key of {self.path}: it needs {self._header.by}, and {self.master.id} was given",
            kind="wrong-encryption-key",
            hint="name the key that the ring was created with or last rotated to",
        )


def _stamp(stat: os.stat_result) -> tuple[int, int, int]:
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


@contextlib.contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as exc:
        raise NotFoundError(
            f"the key ring {path} does not exist",
            kind="key-ring-not-found",
            hint="restore it, or set WAKELOG_KEY_RINGS to its folder",
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
