"""The key of one fork tree, and what is done with it.

AES-256-GCM encrypts, with a nonce of 96 random bits for each value. Four more uses of the same secret must not touch
each other, so HKDF-SHA-256 makes a key of its own for each:

    content   AES-256-GCM     bodies with their salts, payloads, snapshots, paths
    name      HMAC-SHA-256    what a payload is stored under: its plain SHA-256 would confirm a guess
    print     AES-SIV         fingerprints: equal ones stay equal, so that an engine tells a repeated append

The associated data names what a value is, its session, its place and its key. A value that is moved, swapped or put
under another key does not open.

A random nonce is safe for 2^32 values of one key (NIST SP 800-38D); a tree has a key of its own and stays far below.
"""

from __future__ import annotations

import hmac
import os
import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any

import zstandard

from wakelog.codec.envelope import HEAD_SIZE, ID_SIZE, MAGIC, NONCE_SIZE, key_id_of
from wakelog.errors import CorruptLogError, UnsupportedError
from wakelog.model.ids import SessionId

SIZE = 32
_PLAIN, _ZSTD = b"\x00", b"\x01"
_WORTH = 128
"""Shorter values are not compressed. What is encrypted cannot be compressed later."""
_LARGEST = 1 << 31
_LEVEL = -1
_START = HEAD_SIZE + NONCE_SIZE
_local = threading.local()


class TreeKey:
    """Encrypts and decrypts what belongs to one fork tree."""

    def __init__(self, id: bytes, secret: bytes) -> None:
        assert (len(id), len(secret)) == (ID_SIZE, SIZE)
        self.id = id
        self._secret = secret
        self._head = MAGIC + id

    @classmethod
    def new(cls) -> TreeKey:
        return cls(os.urandom(ID_SIZE), os.urandom(SIZE))

    @property
    def name(self) -> str:
        """How records and messages call it."""
        return key_id_of(self._head)

    def __repr__(self) -> str:
        return f"<key {self.name}>"

    def encrypt(self, value: bytes, what: str, session: SessionId, place: bytes) -> bytes:
        """The envelope of a value. `what` and `place` say where it belongs: it opens nowhere else."""
        return self.sealer(what, session)(value, place)

    def decrypt(self, envelope: bytes, what: str, session: SessionId, place: bytes) -> bytes:
        """The value in an envelope; CorruptLogError when it was altered, or belongs elsewhere."""
        return self.opener(what, session)(envelope, place)

    def sealer(self, what: str, session: SessionId) -> Callable[[bytes, bytes], bytes]:
        """`encrypt` for many values of a session: what they share is made once."""
        head, bound = self._head, self._bound(what, session)
        seal, compress, random = self._cipher.encrypt, _zstd()[0], os.urandom

        def sealed(value: bytes, place: bytes) -> bytes:
            packed = _ZSTD + compress(value) if len(value) > _WORTH else b""
            if not packed or len(packed) > len(value):
                packed = _PLAIN + value
            nonce = random(NONCE_SIZE)
            return head + nonce + bytes(seal(nonce, packed, bound + place))

        return sealed

    def opener(self, what: str, session: SessionId) -> Callable[[bytes, bytes], bytes]:
        """`decrypt` for many values of a session: what they share is made once."""
        from cryptography.exceptions import InvalidTag

        bound, decrypt, decompress = self._bound(what, session), self._cipher.decrypt, _zstd()[1]

        def opened(envelope: bytes, place: bytes) -> bytes:
            try:
                packed = decrypt(envelope[HEAD_SIZE:_START], envelope[_START:], bound + place)
                if packed[:1] == _ZSTD:
                    return bytes(decompress(packed[1:], max_output_size=_LARGEST))
                return bytes(packed[1:])
            except (InvalidTag, ValueError, zstandard.ZstdError) as exc:
                raise CorruptLogError(
                    f"the encrypted {what} of {session} was altered, or was put here from elsewhere",
                    kind="ciphertext-altered",
                    hint=f"wakelog verify {session}",
                    session=session,
                ) from exc

        return opened

    def payload_name(self, digest: bytes) -> bytes:
        """What the payload with this SHA-256 is stored under."""
        return hmac.digest(self._derived(b"name", SIZE), digest, "sha256")

    def hide_print(self, fingerprint: bytes) -> bytes:
        return bytes(self._siv.encrypt(fingerprint, None)) if fingerprint else b""

    def show_print(self, hidden: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            return bytes(self._siv.decrypt(hidden, None)) if hidden else b""
        except (InvalidTag, ValueError) as exc:
            raise CorruptLogError("an encrypted fingerprint was altered", kind="ciphertext-altered") from exc

    def _bound(self, what: str, session: SessionId) -> bytes:
        """The associated data, up to the place. Session ids have no zero byte and the rest has a fixed form, so no two
        places give the same bytes."""
        return b"%b\0%b\0%b\0" % (self._head, what.encode(), session.encode())

    def _derived(self, use: bytes, size: int) -> bytes:
        hkdf = _aead()[2]
        from cryptography.hazmat.primitives.hashes import SHA256

        return bytes(hkdf(SHA256(), size, b"wakelog tree key 1 " + use).derive(self._secret))

    @cached_property
    def _cipher(self) -> Any:
        return _aead()[0](self._derived(b"content", SIZE))

    @cached_property
    def _siv(self) -> Any:
        return _aead()[1](self._derived(b"print", 2 * SIZE))


def _zstd() -> tuple[Any, Any]:
    """To compress and to decompress. Contexts of zstd are not for several threads, and cost more to make than to
    use."""
    found: tuple[Any, Any] | None = getattr(_local, "zstd", None)
    if found is None:
        found = zstandard.ZstdCompressor(level=_LEVEL).compress, zstandard.ZstdDecompressor().decompress
        _local.zstd = found
    return found


def _aead() -> tuple[Any, Any, Any]:
    """AES-GCM, AES-SIV and HKDF of the library that has them. Imported when first needed: it takes 40 ms."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
        from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
    except ImportError as exc:
        raise UnsupportedError(
            "an encrypted store needs cryptography", kind="missing-extra", hint="pip install 'wakelog[encryption]'"
        ) from exc
    return AESGCM, AESSIV, HKDFExpand
