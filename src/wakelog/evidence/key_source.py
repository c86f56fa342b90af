"""The keys that sign anchors, and where they come from (wakelog/key_source.py)."""

from __future__ import annotations

import os
from pathlib import Path

from wakelog import key_source
from wakelog.errors import InvalidInputError, NotFoundError, UnavailableError
from wakelog.evidence.signed_note import PRIVATE, PrivateKey, PublicKey
from wakelog.key_source import HINT, SIZE_MAX, describe_source, write_secret


def read_key(source: str) -> PrivateKey:
    """Reads a private key from `PATH`, `file:PATH`, `env:NAME`, `keyring:SERVICE/NAME` or `command:CMD`. A command runs
    without a shell and prints the key."""
    if PRIVATE in source:
        raise InvalidInputError(
            "a private key was given as an argument, where other users and logs can see it",
            kind="bad-anchor-key",
            hint=f"it is no longer secret: make a new one. Then {HINT}",
        )
    text = read_secret(source)
    try:
        return PrivateKey.parse(text.strip())
    except InvalidInputError as exc:
        raise InvalidInputError(
            f"{describe_source(source)} does not give a private key", kind=exc.kind, hint=exc.hint
        ) from None


def read_secret(source: str) -> str:
    """Reads a secret. Errors have the kinds of anchor keys."""
    try:
        return key_source.read_secret(source)
    except NotFoundError as exc:
        if exc.kind != "secret-not-found":
            raise
        raise NotFoundError(exc.message, kind="anchor-key-not-found", hint=exc.hint) from exc
    except UnavailableError as exc:
        if exc.kind != "secret-not-found":
            raise
        raise UnavailableError(exc.message, kind="anchor-key-not-found", hint=exc.hint) from exc
    except InvalidInputError as exc:
        raise InvalidInputError(exc.message, kind="bad-anchor-key", hint=exc.hint) from exc


def write_key(key: PrivateKey, path: Path) -> None:
    """Writes a new key to a file that only its owner can read. Never replaces a file."""
    write_secret(key.to_text(), path)


def read_public_key(given: str) -> PublicKey:
    """A public key from its text, or from a file."""
    if "+" in given and not os.path.exists(given):
        return PublicKey.parse(given)
    try:
        return PublicKey.parse(Path(given).expanduser().read_text(encoding="utf-8")[:SIZE_MAX])
    except (OSError, UnicodeDecodeError) as exc:
        raise NotFoundError(
            f"there is no public key in {given}: {getattr(exc, 'strerror', None) or 'it is not text'}",
            kind="anchor-key-not-found",
            hint="pass NAME+ID+KEY as wakelog anchor-key prints it, or a file with it",
        ) from exc
