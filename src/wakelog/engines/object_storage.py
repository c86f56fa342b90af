"""Objects in a folder or an S3-compatible store: written once, never overwritten.

A put is conditional ("only if nothing is there"). The store itself decides, so of two concurrent puts one fails.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

import msgspec

from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError, UnavailableError, missing_extra

CHUNK = 1 << 20


class Object(msgspec.Struct, frozen=True):
    """An object's metadata."""

    key: str
    size: int
    at: datetime


class Objects:
    """One place for objects: a folder, or what obstore opens, such as `s3://bucket/prefix`."""

    def __init__(self, url: str, options: dict[str, Any] | None = None, *, create: bool = True) -> None:
        """`options` are obstore's own (`config`, `client_options`); the rest comes from the environment."""
        self.url = url
        self._store = _open(url, options or {}, create)

    def put(self, key: str, content: bytes | IO[bytes]) -> bool:
        """Writes an object, completely or not at all; False if there is one of that name, which is left unchanged."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        try:
            with _translated_errors(self.url):
                obstore.put(self._store, key, content, mode="create", use_multipart=False)
        except AlreadyExistsError:
            return False
        return True

    def get(self, key: str) -> bytes:
        """FileNotFoundError when there is none."""
        import obstore

        with _translated_errors(self.url):
            return bytes(obstore.get(self._store, key).bytes())

    def chunks(self, key: str) -> Iterator[bytes]:
        """Like `get`, in pieces, for objects that may be large."""
        import obstore

        with _translated_errors(self.url):
            for chunk in obstore.get(self._store, key).stream(min_chunk_size=CHUNK):
                yield bytes(chunk)

    def drop(self, key: str) -> None:
        """Removes an object, if it is there."""
        import obstore

        with contextlib.suppress(FileNotFoundError), _translated_errors(self.url):
            obstore.delete(self._store, key)

    def list(self, prefix: str = "") -> Iterator[Object]:
        """All objects below a prefix, in no order."""
        import obstore

        with _translated_errors(self.url):
            for batch in obstore.list(self._store, prefix or None):
                for meta in batch:
                    yield Object(meta["path"], meta["size"], meta["last_modified"])


def is_url(place: str) -> bool:
    """Whether a place is a URL rather than a path."""
    return "://" in place


def split_url(url: str) -> tuple[str, str]:
    """`s3://bucket/a/b.wakelog` as the place `s3://bucket/a` and the key in it."""
    place, _, key = url.rpartition("/")
    if "://" not in place or place.endswith("/") or not key:
        raise InvalidInputError(
            f"{url!r} does not name an object", kind="bad-url", hint="it looks like s3://bucket/folder/name.wakelog"
        )
    return place, key


def _open(url: str, options: dict[str, Any], create: bool) -> Any:
    try:
        from obstore.exceptions import BaseError
        from obstore.store import LocalStore, from_url
    except ImportError as exc:
        raise missing_extra("a blob store needs obstore", "blobs") from exc
    if not is_url(url) or url.startswith("file://"):
        folder = Path(unquote(url.removeprefix("file://")))
        if not create and not folder.is_dir():
            raise NotFoundError(f"there is no folder {folder}", kind="folder-not-found")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return LocalStore(prefix=folder)
        except OSError as exc:
            raise NotAllowedError(
                f"{folder} cannot be created or opened: {exc.strerror or exc}",
                kind="not-writable",
                hint="choose another",
            ) from exc
    try:
        return from_url(url, **options)
    except (BaseError, ValueError) as exc:
        raise InvalidInputError(
            f"{url!r} cannot be opened as a blob store: {_first_line(exc)}",
            kind="bad-url",
            hint="use a folder, or s3://bucket/prefix",
        ) from exc


@contextlib.contextmanager
def _translated_errors(url: str) -> Iterator[None]:
    """Translates obstore's errors to UnavailableError."""
    from obstore.exceptions import AlreadyExistsError, BaseError

    try:
        yield
    except (FileNotFoundError, AlreadyExistsError):
        raise
    except (BaseError, OSError) as exc:
        raise UnavailableError(
            f"the blob store {url} failed: {_first_line(exc)}",
            kind="blobs-unreachable",
            hint="check its address and the credentials in the environment",
        ) from exc


def _first_line(exc: Exception) -> str:
    """obstore's message without the debug details that follow it."""
    return str(exc).strip().splitlines()[0] if str(exc).strip() else type(exc).__name__
