"""Secrets and signatures, as Standard Webhooks has them: HMAC-SHA256 over id, time and body.

A receiver checks them with any library of that name, and drops what has an id that it knows or a time that is old.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets

from wakelog.errors import InvalidInputError
from wakelog.key_source import HINT, read_secret, shown

PREFIX = "whsec_"
LEAST, MOST = 24, 64
"""Bytes that a secret may have."""


def make_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def secret_of(source: str) -> bytes:
    """The secret of a source (key_source.py). Errors name the source, and never what was read."""
    if source.startswith(PREFIX):
        raise InvalidInputError(
            "a secret was given as it is, where other users and logs can see it",
            kind="bad-webhook",
            hint=f"treat it as known: make a new one, and {HINT}",
        )
    text = read_secret(source).strip()
    try:
        found = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except (ValueError, binascii.Error):
        found = b""
    if not text.startswith(PREFIX) or not LEAST <= len(found) <= MOST:
        raise InvalidInputError(
            f"{shown(source)} does not hold a secret for webhooks",
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
