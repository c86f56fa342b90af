"""Secrets and signatures, as Standard Webhooks has them: HMAC-SHA256 over id, time and body.

A receiver checks them with any library of that name, and drops what has an id that it knows or a time that is old.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from pathlib import Path

from wakelog.atomic_file import atomic_file
from wakelog.errors import InvalidInputError, NotAllowedError
from wakelog.evidence.key_source import read_secret

PREFIX = "whsec_"
LEAST, MOST = 24, 64
"""Bytes that a secret may have."""


def make_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def write_secret(path: Path) -> None:
    """Keeps a new secret in a file that only its owner reads. An existing file is never replaced."""
    try:
        with atomic_file(path, replace=False, mode=0o600) as out:
            out.write(make_secret().encode() + b"\n")
    except FileExistsError as exc:
        raise NotAllowedError(f"{path} already exists", kind="file-exists", hint="choose another name") from exc
    except OSError as exc:
        raise NotAllowedError(f"{path} cannot be written: {exc.strerror}", kind="not-writable") from exc


def secret_of(source: str) -> bytes:
    """The secret of a file, `env:NAME` or `command:CMD`. Errors name the source, and never what was read."""
    if source.startswith(PREFIX):
        raise InvalidInputError(
            "a secret was given as it is, where other users and logs can see it",
            kind="bad-webhook",
            hint="treat it as known: make a new one, and name a file, env:NAME or command:CMD",
        )
    text = read_secret(source).strip()
    try:
        found = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except (ValueError, binascii.Error):
        found = b""
    if not text.startswith(PREFIX) or not LEAST <= len(found) <= MOST:
        shown = "the command" if source.startswith("command:") else source
        raise InvalidInputError(
            f"{shown} does not hold a secret for webhooks",
            kind="bad-webhook",
            hint=f"it is {PREFIX} and {LEAST} to {MOST} bytes in base64; wakelog webhooks secret makes one",
        )
    return found


def sign(secret: bytes, id: str, at_s: int, body: bytes) -> dict[str, str]:
    """The headers of one message."""
    digest = hmac.new(secret, f"{id}.{at_s}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }
