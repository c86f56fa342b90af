"""Signed notes: a short text with Ed25519 signatures below it, in the format of C2SP's signed-note, which other tools
read.

    <text, of one or more lines>
    <an empty line>
    — <name of the key> <base64 of the key's id (4 bytes) and the signature (64 bytes)>

A public key is `name+id+base64`, with the id in hex and 0x01 before the 32 bytes; a private one is the same with
`PRIVATE+KEY+` before it and the seed instead. A private key is never in a message, a `repr` or an error.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from wakelog.errors import CorruptLogError, InvalidInputError, missing_extra

PRIVATE = "PRIVATE+KEY+"
SIZE_MAX = 1 << 20
SIGNATURES_MAX = 100
_ED25519 = b"\x01"
_NAME = re.compile(r"[^\s+\x00-\x1f\x7f]+")
_LINE = re.compile(r"— ([^\s+]+) ([A-Za-z0-9+/]+={0,2})")


class PublicKey(msgspec.Struct, frozen=True):
    """A signer: a name and its public key."""

    name: str
    public: bytes

    @property
    def id(self) -> bytes:
        return hashlib.sha256(self.name.encode() + b"\n" + _ED25519 + self.public).digest()[:4]

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{_base64(_ED25519 + self.public)}"

    @classmethod
    def parse(cls, text: str) -> PublicKey:
        """Reads a public key in the form that `wakelog anchor-key` prints."""
        if text.strip().startswith(PRIVATE):
            raise InvalidInputError(
                "this is a private key, but a public one is needed",
                kind="bad-anchor-key",
                hint="wakelog anchor-key --of SOURCE prints the public one",
            )
        name, public = _parse(text.strip(), "a public key")
        return cls(name, public)

    def has_signed(self, text: str, signature: bytes) -> bool:
        ed25519 = _ed25519()
        from cryptography.exceptions import InvalidSignature

        try:
            ed25519.Ed25519PublicKey.from_public_bytes(self.public).verify(signature, text.encode())
        except InvalidSignature:
            return False
        return True


class PrivateKey:
    """A key that signs. Only its name and its public half are ever shown."""

    def __init__(self, name: str, seed: bytes) -> None:
        _check_name(name)
        self._key = _ed25519().Ed25519PrivateKey.from_private_bytes(seed)
        self.public = PublicKey(name, self._key.public_key().public_bytes_raw())

    def __repr__(self) -> str:
        return f"<private key of {self.public}>"

    def __reduce__(self) -> str:
        raise TypeError("a private key is not copied or pickled")

    @classmethod
    def new(cls, name: str) -> PrivateKey:
        """A new key. Its name says who signs: a host, a team, a service."""
        _check_name(name)
        return cls(name, _ed25519().Ed25519PrivateKey.generate().private_bytes_raw())

    @classmethod
    def parse(cls, text: str) -> PrivateKey:
        """Reads a private key in the form of `to_text`. Errors do not contain it."""
        if not text.startswith(PRIVATE):
            raise InvalidInputError(
                "what was read is not a private key", kind="bad-anchor-key", hint="wakelog anchor-key NAME makes one"
            )
        name, seed = _parse(text.removeprefix(PRIVATE), "a private key", check_id=False)
        key = cls(name, seed)
        if key.public.id.hex() != text.removeprefix(PRIVATE).split("+", 2)[1]:
            raise _not_a_key("a private key")
        return key

    def to_text(self) -> str:
        """The key itself, to be stored in a safe place."""
        seed = self._key.private_bytes_raw()
        return f"{PRIVATE}{self.public.name}+{self.public.id.hex()}+{_base64(_ED25519 + seed)}"

    def sign(self, text: str) -> str:
        """Makes a note: the text with a signature below it."""
        if not text.endswith("\n") or text.endswith("\n\n") or text == "\n":
            raise InvalidInputError(
                "the text of a note must be complete lines, and the last one not empty", kind="bad-note"
            )
        signature = self._key.sign(text.encode())
        return f"{text}\n— {self.public.name} {_base64(self.public.id + signature)}\n"


def open_note(note: str, keys: Sequence[PublicKey]) -> tuple[str, PublicKey]:
    """The text of a note, and which of the keys signed it. CorruptLogError if none did, or if a signature of one of
    these keys is wrong. Signatures of other keys are ignored."""
    text, signatures = _split(note)
    signer = None
    for name, id, signature in signatures:
        key = next((k for k in keys if (k.name, k.id) == (name, id)), None)
        if key is None:
            continue
        if not key.has_signed(text, signature):
            raise CorruptLogError(
                f"the signature of {name} does not match the text: it was altered", kind="bad-signature"
            )
        signer = signer or key
    if signer is None:
        named = ", ".join(dict.fromkeys(name for name, _, _ in signatures))
        raise CorruptLogError(
            f"it is signed by {named}, but by none of the given keys",
            kind="bad-signature",
            hint="pass the signer's public key, which you got from them and not from the store",
        )
    return text, signer


def _split(note: str) -> tuple[str, list[tuple[str, bytes, bytes]]]:
    text, empty, below = note.rpartition("\n\n")
    lines = below.split("\n")
    if not empty or not text or lines[-1] or len(note) > SIZE_MAX or not 0 < len(lines) - 1 <= SIGNATURES_MAX:
        raise _not_a_note()
    if re.search(r"[\x00-\x09\x0b-\x1f\x7f]", note):
        raise _not_a_note()
    signatures = []
    for line in lines[:-1]:
        match = _LINE.fullmatch(line)
        content = _bytes_of(match[2]) if match else None
        if not match or not content or len(content) < 5:
            raise _not_a_note()
        signatures.append((match[1], content[:4], content[4:]))
    return text + "\n", signatures


def _parse(text: str, what: str, *, check_id: bool = True) -> tuple[str, bytes]:
    parts = text.split("+", 2)
    content = _bytes_of(parts[2]) if len(parts) == 3 else None
    if content is None or len(content) != 33 or content[:1] != _ED25519 or not _NAME.fullmatch(parts[0]):
        raise _not_a_key(what)
    if check_id and PublicKey(parts[0], content[1:]).id.hex() != parts[1]:
        raise _not_a_key(what)
    return parts[0], content[1:]


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or not name.isprintable():
        raise InvalidInputError(
            f"{name!r} cannot name a key",
            kind="bad-anchor-key",
            hint="use letters, digits, dots and -, such as ci.example",
        )


def _not_a_key(what: str) -> InvalidInputError:
    return InvalidInputError(
        f"what was read is not {what}", kind="bad-anchor-key", hint="it looks like NAME+1a2b3c4d+AW5…; was it cut off?"
    )


def _not_a_note() -> CorruptLogError:
    return CorruptLogError("it is not a signed note, or it was cut off", kind="bad-note")


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _bytes_of(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as exc:
        raise missing_extra("signatures need cryptography", "sign") from exc
    return ed25519
