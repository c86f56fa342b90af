"""The signed texts about heads, readable from any language.

A **leaf** is one head: `wakelog-head/1 SESSION SEQ HASH AT`. A **receipt** is a signed note over all leaves up to a
point, in the form of C2SP's tlog-checkpoint: who keeps the log, how many leaves, the Merkle root, the signer's time.

    ci.example
    3
    9LnM…=
    time 2026-11-17T02:20:03Z

    — ci.example mQeV…

A **proof** is a file about one head: its leaf, its index, the path to the root, and the receipt. A head that is signed
alone is a log with one leaf, under the name `NAME/head`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from wakelog.errors import CorruptLogError, InvalidInputError
from wakelog.evidence.merkle import GrowingTree, is_included, leaf_hash
from wakelog.evidence.signed_note import PrivateKey, PublicKey, open_note
from wakelog.model.ids import SessionId
from wakelog.model.records import Anchor

PROOF = "wakelog-anchor/1"
ALONE_SUFFIX = "/head"
_LEAF = re.compile(r"wakelog-head/1 (\S+) (0|[1-9][0-9]*) ([0-9a-f]{64}) (0|[1-9][0-9]*)")
_HASH = re.compile(r"[A-Za-z0-9+/]{43}=")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class AnchorReceipt(msgspec.Struct, frozen=True):
    """A signed claim about the size and the root of the log at a time. `at` is in microseconds."""

    origin: str
    size: int
    root: bytes
    at: int
    signer: str


class SignedHead(msgspec.Struct, frozen=True):
    """A head, and who signed it when."""

    anchor: Anchor
    signer: str
    at: int


def leaf_text(anchor: Anchor) -> str:
    return f"wakelog-head/1 {anchor.session} {anchor.seq} {anchor.hash} {anchor.at}"


def parse_leaf(text: str) -> Anchor:
    match = _LEAF.fullmatch(text)
    if match is None:
        raise CorruptLogError(f"{text[:80]!r} is not a head", kind="bad-anchor")
    return Anchor(SessionId(match[1]), int(match[2]), match[3], int(match[4]))


def hash_of(anchor: Anchor) -> bytes:
    """The hash of a leaf."""
    return leaf_hash(leaf_text(anchor).encode())


def sign_receipt(key: PrivateKey, size: int, root: bytes, at: int, *, alone: bool = False) -> str:
    """Signs a note. `at` is in microseconds; the note has seconds."""
    origin = key.public.name + (ALONE_SUFFIX if alone else "")
    time = (_EPOCH + timedelta(microseconds=at)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return key.sign(f"{origin}\n{size}\n{encode_hash(root)}\ntime {time}\n")


def open_receipt(note: str, keys: Sequence[PublicKey]) -> AnchorReceipt:
    """The claim of a receipt. CorruptLogError if none of the keys signed it."""
    text, signer = open_note(note, keys)
    lines = text.splitlines()
    if len(lines) < 4 or not re.fullmatch(r"[1-9][0-9]{0,15}", lines[1]) or not lines[3].startswith("time "):
        raise CorruptLogError("the signed text is not a receipt of heads", kind="bad-note")
    if lines[0].removesuffix(ALONE_SUFFIX) != signer.name:
        raise CorruptLogError(f"{signer.name} signed in the name of {lines[0]!r}", kind="bad-note")
    try:
        at = datetime.strptime(lines[3], "time %Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError as exc:
        raise CorruptLogError(f"{lines[3]!r} is not the time of a receipt", kind="bad-note") from exc
    micros = (at - _EPOCH) // timedelta(microseconds=1)
    return AnchorReceipt(lines[0], int(lines[1]), decode_hash(lines[2]), micros, signer.name)


def sign_head(key: PrivateKey, anchor: Anchor, at: int) -> str:
    """Signs one head. The proof needs no log."""
    tree = GrowingTree([hash_of(anchor)])
    return write_proof(anchor, 0, [], sign_receipt(key, 1, tree.root, at, alone=True))


def write_proof(anchor: Anchor, index: int, proof: Sequence[bytes], note: str) -> str:
    lines = [PROOF, leaf_text(anchor), f"index {index}", *map(encode_hash, proof)]
    return "\n".join(lines) + "\n\n" + note


def open_proof(text: str, keys: Sequence[PublicKey]) -> SignedHead:
    """The head of a proof, after checking its signature, root and path."""
    if not keys:
        raise InvalidInputError(
            "this anchor is signed, but no signer was given to check it against",
            kind="no-signer",
            hint="pass --signer NAME+ID+KEY, which you got from the signer",
        )
    content, _, note = text.partition("\n\n")
    lines = content.split("\n")
    if len(lines) < 3 or lines[0] != PROOF or not re.fullmatch(r"index (0|[1-9][0-9]{0,15})", lines[2]):
        raise CorruptLogError("it is not a signed anchor, or it was cut off", kind="bad-anchor")
    anchor = parse_leaf(lines[1])
    proof = [decode_hash(line) for line in lines[3:]]
    receipt = open_receipt(note, keys)
    index = int(lines[2].split(" ")[1])
    if not is_included(hash_of(anchor), index, receipt.size, proof, receipt.root):
        raise CorruptLogError("the head does not belong to the signed root: one of them was altered", kind="bad-proof")
    return SignedHead(anchor, receipt.signer, receipt.at)


def encode_hash(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


def decode_hash(text: str) -> bytes:
    try:
        if _HASH.fullmatch(text):
            return base64.b64decode(text, validate=True)
    except binascii.Error:
        pass
    raise CorruptLogError(f"{text[:60]!r} is not a hash", kind="bad-note")
