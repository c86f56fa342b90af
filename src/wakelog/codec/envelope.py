"""Encrypted bytes as they are stored: which they are, and which key opens them. This needs no key and no cryptography;
encryption/ makes and opens them.

    envelope  =  "WLE1" ‖ id of the tree's key (8 bytes) ‖ nonce (12 bytes) ‖ ciphertext and tag

A body is a JSON object, so it starts with `{`: an envelope is never taken for one. Where text is wanted, as in a
bundle, an envelope is `wle1:` and its base64. An envelope that ends after the id of its key stands for content whose
key was deleted.
"""

from __future__ import annotations

import base64

from wakelog.errors import NotFoundError, UnsupportedError, WakelogError

MAGIC = b"WLE1"
NOT_AT_HAND, DELETED = "content-encrypted", "content-key-deleted"
"""The kinds of the errors for content whose key is not available, or was deleted."""
ENCRYPTED, ERASED = "this content is encrypted", "this content was erased"
"""How their messages begin."""
HINT = "name the store's key: WAKELOG_ENCRYPTION_KEY=file:PATH, env:NAME, keyring:SERVICE/NAME or command:CMD"
ID_SIZE, NONCE_SIZE = 8, 12
HEAD_SIZE = len(MAGIC) + ID_SIZE
TEXT = "wle1:"


def is_encrypted(data: bytes) -> bool:
    """Whether these are encrypted bytes, as opposed to the JSON of a body."""
    return data[:4] == MAGIC


def key_id_of(envelope: bytes) -> str:
    """The id of the key that opens it, as records and messages name it."""
    return f"k_{envelope[len(MAGIC) : HEAD_SIZE].hex()}"


def without_content(envelope: bytes) -> bytes:
    """What stands for content whose key was deleted."""
    return envelope[:HEAD_SIZE]


def has_content(envelope: bytes) -> bool:
    return len(envelope) > HEAD_SIZE


def to_text(envelope: bytes) -> str:
    return TEXT + base64.b64encode(envelope).decode()


def from_text(text: str) -> bytes:
    """The envelope of a text; ValueError when it is none."""
    envelope = base64.b64decode(text.removeprefix(TEXT), validate=True)
    if not text.startswith(TEXT) or not is_encrypted(envelope):
        raise ValueError("an encrypted value is cut or altered")
    return envelope


def refusal(envelope: bytes) -> WakelogError:
    """Why encrypted content cannot be read here, and what to do."""
    if not has_content(envelope):
        return NotFoundError(
            f"{ERASED}: its key {key_id_of(envelope)} was deleted",
            kind="content-key-deleted",
            hint="it cannot be read any more; wakelog verify still checks the chain",
        )
    return UnsupportedError(
        f"{ENCRYPTED} with the key {key_id_of(envelope)}, which is not available",
        kind="content-encrypted",
        hint=HINT,
    )


def no_key(what: str) -> UnsupportedError:
    """The error when something in an encrypted store needs its key."""
    return UnsupportedError(
        f"{what}: this store is encrypted, and was opened without its key", kind="content-encrypted", hint=HINT
    )
