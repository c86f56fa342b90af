"""API keys: who may do what, in which namespaces.

A key is shown once, when it is made. The file beside the store keeps only its SHA-256. The secret has 256 random bits,
so it cannot be guessed from a plain hash, and checking one costs a microsecond. The part before the second underscore
is the key's id. It is not secret, and appears in lists and logs.

A scope includes the ones before it: `read`, `write` (append, rewind, fork), `admin` (remove content, or bypass the
rules).

The file is changed under a lock and replaced as a whole, so a server can read it at any time. The server checks before
every request whether the file changed, so a revoked key is refused at once. For a store in a database, the keys are in
the database (shared_keys.py).
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from wakelog.atomic_file import atomic_file
from wakelog.errors import ConflictError, CorruptLogError, InvalidInputError, NotAllowedError, NotFoundError
from wakelog.model.described import described

Scope = Literal["read", "write", "admin"]
SCOPES: tuple[Scope, ...] = ("read", "write", "admin")
ANY = "*"
"""Means every namespace."""
PREFIX = "wlk"
FILE = "keys.json"

_NAMESPACE = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_VERSION = 1


class Key(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stored key. Times are microseconds since the epoch."""

    id: str
    name: str
    sha256: str
    scope: Scope
    namespaces: tuple[str, ...]
    created: int
    expires: int = 0
    """0: never."""
    last_used: int = 0
    """Accurate to a minute; 0: never."""

    def is_expired(self, now: int) -> bool:
        return 0 < self.expires <= now

    def may(self, scope: Scope) -> bool:
        return SCOPES.index(self.scope) >= SCOPES.index(scope)

    def sees(self, namespace: str) -> bool:
        return ANY in self.namespaces or namespace in self.namespaces

    @property
    def sees_all(self) -> bool:
        return ANY in self.namespaces


class _Content(msgspec.Struct, frozen=True):
    version: int
    keys: tuple[Key, ...]


def check_namespace(name: str) -> str:
    """`name`, or InvalidInputError: it becomes the name of a folder and a part of addresses."""
    if not _NAMESPACE.fullmatch(name) or ".." in name:
        raise InvalidInputError(
            f"{name!r} cannot name a namespace",
            kind="bad-namespace",
            hint="use lower-case letters, digits, dots, hyphens and underscores, such as team-a",
        )
    return name


def make_key(name: str, scope: Scope, namespaces: tuple[str, ...], *, now: int, expires: int = 0) -> tuple[Key, str]:
    """A new key and its token, which is stored nowhere."""
    ident = base64.b32encode(os.urandom(5)).decode().lower()
    token = f"{PREFIX}_{ident}_{secrets.token_urlsafe(32)}"
    return Key(ident, name, _hash(token), scope, namespaces, now, expires), token


def id_in(token: str) -> str:
    """The id of the key that a token belongs to; empty if it is not such a token."""
    parts = token.split("_", 2)
    return parts[1] if len(parts) == 3 and parts[0] == PREFIX else ""


def name_taken(key: Key) -> ConflictError:
    return ConflictError(
        f"there is a key {key.name!r} already",
        kind="name-taken",
        hint=f"choose another name, or wakelog key revoke {key.name}",
    )


def no_such_key(name_or_id: str) -> NotFoundError:
    return NotFoundError(f"there is no key {name_or_id!r}", kind="key-not-found", hint="wakelog key ls shows them")


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


class Keys:
    """The keys of one store, in a file. `launch` is this process's own key, which is not in the file."""

    def __init__(self, path: Path | None, launch: tuple[Key, str] | None = None) -> None:
        self.path = path
        self._launch = {launch[0].id: launch[0]} if launch else {}
        self._seen: tuple[int, int, int] = (0, 0, 0)
        self._keys: dict[str, Key] = {}
        self._used: dict[str, int] = {}

    def needs_refresh(self, token: str, arrived: float) -> bool:
        """Whether to `refresh` before looking up a token that arrived at a time. Never for a file: its changes are seen
        at once."""
        return False

    def refresh(self) -> None:
        """Reads what others have changed. May block."""

    def close(self) -> None:
        """Closes the connection, if there is one."""

    def find(self, token: str, now: int) -> Key | None:
        """The key a token belongs to, if it is valid now."""
        if not (id := id_in(token)):
            return None
        key = self._launch.get(id) or self._current().get(id)
        if key is None or not hmac.compare_digest(key.sha256, _hash(token)) or key.is_expired(now):
            return None
        self._used[key.id] = now
        return key

    def is_valid(self, key: Key, now: int) -> bool:
        """Whether a key found before is still valid. For long streams."""
        if key.id in self._launch:
            return True
        return key.id in self._current() and not key.is_expired(now)

    def _current(self) -> dict[str, Key]:
        if self.path is None:
            return {}
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            self._seen, self._keys = (0, 0, 0), {}
            return self._keys
        seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if seen != self._seen:
            self._keys = {key.id: key for key in _read(self.path)}
            self._seen = seen
        return self._keys

    def all(self) -> list[Key]:
        return list(self._current().values())

    def add(self, key: Key) -> None:
        """ConflictError when the name is taken."""
        with self._changing() as keys:
            if any(each.name == key.name for each in keys):
                raise name_taken(key)
            keys.append(key)

    def revoke(self, name_or_id: str) -> Key:
        """Removes a key. It is refused from the next request on."""
        with self._changing() as keys:
            results = [key for key in keys if name_or_id in (key.name, key.id)]
            if not results:
                raise no_such_key(name_or_id)
            keys.remove(results[0])
            return results[0]

    def note_use(self) -> None:
        """Stores when keys were last used. Call it from time to time."""
        used, self._used = self._used, {}
        known = set(self._current())
        if not known.intersection(used):
            return
        with contextlib.suppress(NotAllowedError), self._changing() as keys:
            keys[:] = [msgspec.structs.replace(key, last_used=max(key.last_used, used.get(key.id, 0))) for key in keys]

    @contextlib.contextmanager
    def _changing(self) -> Iterator[list[Key]]:
        """Yields the keys to change, and writes the list back if the block succeeds."""
        if self.path is None:
            raise NotAllowedError("a store in memory keeps no keys", kind="no-key-file", hint="use a store on disk")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path.with_name(f"{self.path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as exc:
            raise NotAllowedError(f"{self.path} cannot be written: {exc.strerror}", kind="not-writable") from exc
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            keys = _read(self.path) if self.path.exists() else []
            yield keys
            _write(self.path, keys)
        finally:
            os.close(lock)


def _read(path: Path) -> list[Key]:
    try:
        content = msgspec.json.decode(path.read_bytes(), type=described(_Content))
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise CorruptLogError(
            f"{path} cannot be read: {exc}", kind="bad-key-file", hint="repair it, or remove it"
        ) from exc
    return list(content.keys)


def _write(path: Path, keys: list[Key]) -> None:
    content = msgspec.json.encode(_Content(_VERSION, tuple(keys)))
    try:
        with atomic_file(path) as out:
            out.write(msgspec.json.format(content, indent=2) + b"\n")
    except OSError as exc:
        raise NotAllowedError(f"{path} cannot be written: {exc.strerror}", kind="not-writable") from exc
