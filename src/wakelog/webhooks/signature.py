"""Secrets and signatures as in Standard Webhooks: HMAC-SHA256 over id, time and body.

A receiver checks them with any Standard Webhooks library, and drops messages with a known id or an old time.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets

from wakelog.errors import InvalidInputError
from wakelog.key_source import HINT, describe_source, read_secret

PREFIX = "whsec_"
SECRET_MIN, SECRET_MAX = 24, 64
"""How many bytes a secret may have."""


def make_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def secret_of(source: str) -> bytes:
    """Reads the secret from a source (key_source.py). Errors name the source, never the secret."""
    if source.startswith(PREFIX):
        raise InvalidInputError(
            "the secret itself was given, where other users and logs can see it",
            kind="bad-webhook",
            hint=f"it is no longer secret: make a new one, and {HINT}",
        )
    text = read_secret(source).strip()
    try:
        found = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except (ValueError, binascii.Error):
        found = b""
    if not text.startswith(PREFIX) or not SECRET_MIN <= len(found) <= SECRET_MAX:
        raise InvalidInputError(
            f"{describe_source(source)} does not hold a secret for webhooks",
            kind="bad-webhook",
            hint=f"it is {PREFIX} and {SECRET_MIN} to {SECRET_MAX} bytes in base64; wakelog webhooks secret makes one",
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
