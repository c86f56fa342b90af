"""An append-only log of heads, in a folder or an S3-compatible store: one object for each round of anchoring.

    00000001.heads   the leaves of the round, one per line; an empty line; the signed receipt
    00000002.heads   …

An object is never replaced. So if two processes anchor at the same time, the second one reads again and retries; and
somebody who may add objects but not replace them cannot change earlier ones. Every receipt covers all leaves before it.
A log whose end was cut off looks complete: check it against a receipt that was kept elsewhere.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from wakelog.atomic_file import atomic_file
from wakelog.engines.object_storage import Objects, is_url
from wakelog.errors import ConflictError, CorruptLogError, NotAllowedError, NotFoundError, WakelogError
from wakelog.evidence.head_notes import (
    AnchorReceipt,
    hash_of,
    leaf_text,
    open_receipt,
    parse_leaf,
    sign_receipt,
    write_proof,
)
from wakelog.evidence.merkle import GrowingTree, consistency_proof, inclusion_proof, is_consistent
from wakelog.evidence.signed_note import PrivateKey, PublicKey
from wakelog.model.ids import SessionId
from wakelog.model.records import Anchor

_KEY = re.compile(r"(\d{8})\.heads")
TRIES = 20


class AnchorRound(msgspec.Struct, frozen=True):
    """One round of anchoring: the new heads, and the receipt that covers everything up to them."""

    number: int
    at: int
    size: int
    signer: str
    heads: tuple[Anchor, ...]
    note: str


class _Place(Protocol):
    def put(self, key: str, content: bytes) -> bool: ...
    def get(self, key: str) -> bytes: ...
    def names(self) -> Iterable[str]: ...


class AnchorLog:
    """The rounds of a log. Each is checked when it is read: signature, leaves, root. After the first bad one nothing is
    read; `fault` says why."""

    def __init__(self, place: str, keys: Sequence[PublicKey], *, create: bool = False) -> None:
        self.place = place
        self.keys = tuple(keys)
        self._place: _Place = _ObjectPlace(place) if is_url(place) else _Folder(Path(place), create=create)
        self.rounds: list[AnchorRound] = []
        self.fault = ""
        self._leaves: list[bytes] = []
        self._tree = GrowingTree()
        self.refresh()

    @property
    def anchors(self) -> dict[SessionId, list[tuple[AnchorRound, Anchor]]]:
        """The anchors of each session, oldest first."""
        results: dict[SessionId, list[tuple[AnchorRound, Anchor]]] = {}
        for round in self.rounds:
            for anchor in round.heads:
                results.setdefault(anchor.session, []).append((round, anchor))
        return results

    def refresh(self) -> None:
        """Reads the new rounds."""
        numbers = sorted(int(match[1]) for key in self._place.names() if (match := _KEY.fullmatch(key)))
        for number in numbers:
            if self.fault or number <= len(self.rounds):
                continue
            try:
                if number != len(self.rounds) + 1:
                    raise CorruptLogError(f"round {len(self.rounds) + 1} is missing", kind="bad-anchor-log")
                self._add_round(self._read(number))
            except (CorruptLogError, NotFoundError) as exc:
                self.fault = f"round {number} of {self.place} does not hold: {exc.message}"

    def add(self, heads: Iterable[Anchor], key: PrivateKey, at: int) -> AnchorRound | None:
        """Appends the heads that differ from the newest ones in the log; None if there are none."""
        heads = list(heads)
        for _ in range(TRIES):
            if self.fault:
                raise CorruptLogError(
                    f"this log of anchors is damaged, so nothing is added: {self.fault}",
                    kind="bad-anchor-log",
                    hint="keep it as evidence, and start a new one in another place",
                )
            newest = {s: anchors[-1][1] for s, anchors in self.anchors.items()}
            new = tuple(h for h in heads if newest.get(h.session) != h)
            if not new:
                return None
            number = len(self.rounds) + 1
            tree = self._tree.with_leaves(map(hash_of, new))
            # The log's time never goes back, even if the clock does.
            note = sign_receipt(key, tree.size, tree.root, max(at, self.rounds[-1].at if self.rounds else 0))
            text = "\n".join(map(leaf_text, new)) + "\n\n" + note
            if self._place.put(_name(number), text.encode()):
                self._add_round(self._parse(number, text))
                return self.rounds[-1]
            self.refresh()
        raise ConflictError(
            f"other processes kept adding to {self.place}; nothing was added", kind="conflict", hint="try again"
        )

    def proof(self, session: SessionId) -> str:
        """A proof of a session's newest head: leaf, path to the root, receipt."""
        heads = [anchor for round in self.rounds for anchor in round.heads]
        index = max((i for i, anchor in enumerate(heads) if anchor.session == session), default=None)
        if index is None:
            raise NotFoundError(f"{self.place} has no anchor of {session}", kind="anchor-not-found")
        return write_proof(heads[index], index, inclusion_proof(self._leaves, index), self.rounds[-1].note)

    def proof_since(self, size: int) -> list[bytes]:
        """The consistency proof that the log still starts with its first `size` leaves."""
        return consistency_proof(self._leaves, size)

    def check_kept(self, note: str) -> AnchorReceipt:
        """Checks the log against a receipt that was kept elsewhere. CorruptLogError if the log does not start with what
        was signed then."""
        receipt = open_receipt(note, self.keys)
        if not self.rounds or receipt.size > self._tree.size:
            raise CorruptLogError(
                f"the log has {self._tree.size} heads, but had {receipt.size} when the receipt was signed: "
                "its end was cut off",
                kind="anchor-log-cut-off",
            )
        proof = self.proof_since(receipt.size)
        if not is_consistent(receipt.size, receipt.root, self._tree.size, self._tree.root, proof):
            raise CorruptLogError(
                f"the first {receipt.size} heads of the log are not those that were signed: it was rewritten",
                kind="anchor-log-rewritten",
            )
        return receipt

    def _add_round(self, round: AnchorRound) -> None:
        self.rounds.append(round)
        for anchor in round.heads:
            self._leaves.append(hash_of(anchor))
            self._tree.add(self._leaves[-1])

    def _read(self, number: int) -> AnchorRound:
        try:
            text = self._place.get(_name(number)).decode()
        except UnicodeDecodeError as exc:
            raise CorruptLogError("it is not text", kind="bad-anchor-log") from exc
        except FileNotFoundError as exc:
            raise NotFoundError("it was removed", kind="bad-anchor-log") from exc
        return self._parse(number, text)

    def _parse(self, number: int, text: str) -> AnchorRound:
        leaves, _, note = text.partition("\n\n")
        heads = tuple(map(parse_leaf, leaves.split("\n")))
        receipt = open_receipt(note, self.keys)
        tree = self._tree.with_leaves(map(hash_of, heads))
        if (receipt.size, receipt.root) != (tree.size, tree.root):
            raise CorruptLogError("its heads are not those that were signed", kind="bad-anchor-log")
        if self.rounds and receipt.at < self.rounds[-1].at:
            raise CorruptLogError("it was signed earlier than the round before it", kind="bad-anchor-log")
        return AnchorRound(number, receipt.at, tree.size, receipt.signer, heads, note)


def _name(number: int) -> str:
    return f"{number:08}.heads"


class _ObjectPlace(Objects):
    """A log in an object store."""

    def names(self) -> Iterable[str]:
        return [found.key.rpartition("/")[2] for found in self.list()]


class _Folder:
    """A log in a folder. It needs no extra package."""

    def __init__(self, folder: Path, *, create: bool) -> None:
        self._folder = folder
        if create and not folder.exists():
            with _folder_errors(folder):
                folder.mkdir(parents=True, exist_ok=True)
        if folder.exists() and not folder.is_dir():
            raise NotAllowedError(f"{folder} is not a folder", kind="not-a-folder", hint="name a folder for the log")
        if not folder.is_dir():
            raise NotFoundError(
                f"there is no log of anchors at {folder}", kind="folder-not-found", hint="wakelog anchor --to makes one"
            )

    def put(self, key: str, content: bytes) -> bool:
        try:
            with _folder_errors(self._folder), atomic_file(self._folder / key, replace=False, mode=0o644) as out:
                out.write(content)
        except FileExistsError:
            return False
        return True

    def get(self, key: str) -> bytes:
        with _folder_errors(self._folder):
            return (self._folder / key).read_bytes()

    def names(self) -> Iterable[str]:
        with _folder_errors(self._folder):
            return [path.name for path in self._folder.iterdir()]


@contextlib.contextmanager
def _folder_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except (FileExistsError, FileNotFoundError, WakelogError):
        raise
    except OSError as exc:
        raise NotAllowedError(
            f"the log of anchors at {folder} cannot be used: {exc.strerror or exc}", kind="not-writable"
        ) from exc
