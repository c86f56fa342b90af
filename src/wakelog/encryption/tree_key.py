"""The key of one fork tree, and its uses.

Values are encrypted with AES-256-GCM, each with a random nonce of 96 bits. Different uses of the secret must not
interfere, so HKDF-SHA-256 derives a separate key for each:

    content   AES-256-GCM     bodies with their salts, payloads, snapshots, paths
    name      HMAC-SHA-256    the names of payloads: their plain SHA-256 would confirm a guess
    print     AES-SIV         fingerprints: equal ones stay equal, so that an engine recognises a repeated append

The associated data has the kind of value, its session, its place and its key. A value that is moved, swapped or put
under another key cannot be decrypted.

A random nonce is safe for 2^32 values of one key (NIST SP 800-38D); each tree has its own key, and stays far below.
"""

from __future__ import annotations

import hmac
import os
import threading
from collections.abc import Callable
from typing import Any

import zstandard

from wakelog.codec.envelope import HEAD_SIZE, ID_SIZE, MAGIC, NONCE_SIZE, key_id_of
from wakelog.errors import CorruptLogError, missing_extra
from wakelog.model.ids import SessionId
from wakelog.model.late_value import LateValue

KEY_SIZE = 32
_PLAIN, _ZSTD = b"\x00", b"\x01"
_COMPRESS_MIN = 128
"""Shorter values are not compressed. Values are compressed here because encrypted bytes cannot be."""
_VALUE_MAX = 1 << 31
_LEVEL = -1
_START = HEAD_SIZE + NONCE_SIZE
_local = threading.local()


class TreeKey:
    """Encrypts and decrypts what belongs to one fork tree."""

    def __init__(self, id: bytes, secret: bytes) -> None:
        assert (len(id), len(secret)) == (ID_SIZE, KEY_SIZE)
        self.id = id
        self._secret = secret
        self._head = MAGIC + id

    @classmethod
    def new(cls) -> TreeKey:
        return cls(os.urandom(ID_SIZE), os.urandom(KEY_SIZE))

    @property
    def name(self) -> str:
        """The key's id in records and messages."""
        return key_id_of(self._head)

    def __repr__(self) -> str:
        return f"<key {self.name}>"

    def encrypt(self, value: bytes, what: str, session: SessionId, place: bytes) -> bytes:
        """The envelope of a value. It can be decrypted only with the same `what` and `place`."""
        return self.encryptor(what, session)(value, place)

    def decrypt(self, envelope: bytes, what: str, session: SessionId, place: bytes) -> bytes:
        """The value in an envelope. CorruptLogError if it was altered or belongs elsewhere."""
        return self.decryptor(what, session)(envelope, place)

    def encryptor(self, what: str, session: SessionId) -> Callable[[bytes, bytes], bytes]:
        """`encrypt` for many values of a session: the common part is computed once."""
        head, bound = self._head, self._bound(what, session)
        aes, compress, random = self._cipher.encrypt, _zstd()[0], os.urandom

        def encrypt(value: bytes, place: bytes) -> bytes:
            packed = _ZSTD + compress(value) if len(value) > _COMPRESS_MIN else b""
            if not packed or len(packed) > len(value):
                packed = _PLAIN + value
            nonce = random(NONCE_SIZE)
            return head + nonce + bytes(aes(nonce, packed, bound + place))

        return encrypt

    def decryptor(self, what: str, session: SessionId) -> Callable[[bytes, bytes], bytes]:
        """`decrypt` for many values of a session: the common part is computed once."""
        from cryptography.exceptions import InvalidTag

        bound, aes, decompress = self._bound(what, session), self._cipher.decrypt, _zstd()[1]

        def decrypt(envelope: bytes, place: bytes) -> bytes:
            try:
                packed = aes(envelope[HEAD_SIZE:_START], envelope[_START:], bound + place)
                if packed[:1] == _ZSTD:
                    return bytes(decompress(packed[1:], max_output_size=_VALUE_MAX))
                return bytes(packed[1:])
            except (InvalidTag, ValueError, zstandard.ZstdError) as exc:
                raise CorruptLogError(
                    f"the encrypted {what} of {session} was altered or moved here from elsewhere",
                    kind="ciphertext-altered",
                    hint=f"wakelog verify {session}",
                    session=session,
                ) from exc

        return decrypt

    def payload_name(self, digest: bytes) -> bytes:
        """The name under which the payload with this SHA-256 is stored."""
        return hmac.digest(self._derive(b"name", KEY_SIZE), digest, "sha256")

    def encrypt_fingerprint(self, fingerprint: bytes) -> bytes:
        return bytes(self._siv.encrypt(fingerprint, None)) if fingerprint else b""

    def decrypt_fingerprint(self, encrypted: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            return bytes(self._siv.decrypt(encrypted, None)) if encrypted else b""
        except (InvalidTag, ValueError) as exc:
            raise CorruptLogError("an encrypted fingerprint was altered", kind="ciphertext-altered") from exc

    def _bound(self, what: str, session: SessionId) -> bytes:
        """The associated data without the place. Session ids have no zero byte and the rest has a fixed form, so the
        bytes are unambiguous."""
        return b"%b\0%b\0%b\0" % (self._head, what.encode(), session.encode())

    def _derive(self, use: bytes, size: int) -> bytes:
        return derive(self._secret, b"wakelog tree key 1 " + use, size)

    @LateValue
    def _cipher(self) -> Any:
        return aead_classes()[0](self._derive(b"content", KEY_SIZE))

    @LateValue
    def _siv(self) -> Any:
        return aead_classes()[1](self._derive(b"print", 2 * KEY_SIZE))


def derive(secret: bytes, label: bytes, size: int) -> bytes:
    """A key for one use of a secret (HKDF-SHA-256)."""
    from cryptography.hazmat.primitives.hashes import SHA256

    return bytes(aead_classes()[2](SHA256(), size, label).derive(secret))


def _zstd() -> tuple[Any, Any]:
    """The functions to compress and to decompress, one pair for each thread: zstd contexts cannot be shared, and cost
    more to create than to use."""
    found: tuple[Any, Any] | None = getattr(_local, "zstd", None)
    if found is None:
        found = zstandard.ZstdCompressor(level=_LEVEL).compress, zstandard.ZstdDecompressor().decompress
        _local.zstd = found
    return found


def aead_classes() -> tuple[Any, Any, Any]:
    """AES-GCM, AES-SIV and HKDF. Imported when they are first needed, because that takes 40 ms."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
        from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
    except ImportError as exc:
        raise missing_extra("an encrypted store needs cryptography", "encryption") from exc
    return AESGCM, AESSIV, HKDFExpand
