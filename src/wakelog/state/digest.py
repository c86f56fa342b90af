"""`state_hash`: equal for equal states, however they were reached, at a cost in proportion to the change.

The document is a set of leaves. Each leaf is expanded to 4096 bits and the state's sum is their sum modulo 2^4096;
`state_hash` is SHA-256 of the sum. Changing a leaf subtracts the old and adds the new, so the order of changes does not
matter. The width is what makes it safe: sums of ordinary 256-bit hashes can be forged by a generalised birthday search
in about 2^32 steps, at 4096 bits the same search takes about 2^128. Integrity does not depend on it, but on the chain.

    leaf      RFC 8785 of [pointer, value]
    expanded  SHAKE-256(leaf), 512 bytes, little-endian

Which values are leaves: `view` is none, because it says where the session looks and not what is there: a rewind and its
undo lead to the same hash. `status`, `turn`, `lease`, `goal` and `last_error` are one leaf each. An entry of any
other top-level map is one leaf, whatever is inside (`/facts/deploy`); in `working_set` entries are one level deeper.
Below `/data`, which is the user's and can be any shape, objects are opened at every depth. Lists are always one
leaf. An object that is opened counts as the leaf [pointer, {}], so that an empty object and no object differ.
"""

from __future__ import annotations

import hashlib

import msgspec

from wakelog.codec.canonical import canonical
from wakelog.model.values import Value
from wakelog.state.patch import MISSING, escape

WIDTH_BYTES = 512
OPEN = "data"
_MASK = (1 << (WIDTH_BYTES * 8)) - 1
_UNLIMITED = 1 << 30
DEPTHS = {
    "status": 1,
    "turn": 1,
    "view": 1,
    "lease": 1,
    "goal": 1,
    "last_error": 1,
    "working_set": 3,
    OPEN: _UNLIMITED,
}
_NO_LEAF = "/view"
_CACHE_MAX = 512
_encode = msgspec.json.Encoder().encode
_shake = hashlib.shake_256


def entry_depth(part: str) -> int:
    """How many tokens name a leaf in this top-level part of the document."""
    return DEPTHS.get(part, 2)


class Digest:
    """The running sum of a document's leaves, brought up to date when it is asked for.

    Leaves outside `/data` are entries that are never changed in place (fold.py), so a reference to the old value is
    enough, and many changes of one entry cost one leaf. Recent expansions are cached: what is added now is subtracted
    at its next change. Everything else is counted leaf by leaf.
    """

    __slots__ = ("_cache", "_counts", "_total", "touched")

    def __init__(self, total: int = 0) -> None:
        self._total = total
        self.touched: dict[str, tuple[dict[str, Value], str, Value]] = {}
        """Entries changed since the last settling: pointer → the map it is in, its key, its old value."""
        self._counts: dict[bytes, int] = {}
        self._cache: dict[str, tuple[Value, int]] = {}

    def count(self, doc: dict[str, Value], tokens: list[str], sign: int) -> None:
        """Adds (+1) or takes away (-1) all leaves at and below `tokens`."""
        counts = self._counts
        for leaf in leaves_at(doc, tokens):
            counts[leaf] = counts.get(leaf, 0) + sign

    def total(self) -> int:
        self.settle()
        return self._total

    def settle(self) -> None:
        """Brings the sum up to date."""
        total = self._total
        for pointer, (parent, key, old) in self.touched.items():
            new = parent.get(key, MISSING)
            if old is not new and pointer != _NO_LEAF:
                if old is not MISSING:
                    total -= self._expanded(pointer, old)
                if new is not MISSING:
                    total += self._expanded(pointer, new)
        self.touched.clear()
        for leaf, times in self._counts.items():
            if times:
                total += times * expand(leaf)
        self._counts.clear()
        self._total = total & _MASK

    def _expanded(self, pointer: str, value: Value) -> int:
        found = self._cache.get(pointer)
        if found is not None and found[0] is value:
            return found[1]
        number = expand(_leaf(pointer, value))
        if len(self._cache) >= _CACHE_MAX:
            self._cache.clear()
        self._cache[pointer] = (value, number)
        return number


def expand(leaf: bytes) -> int:
    return int.from_bytes(_shake(leaf).digest(WIDTH_BYTES), "little")


def total_of(doc: dict[str, Value]) -> int:
    """The sum from scratch."""
    return sum(map(expand, leaves_at(doc, []))) & _MASK


def hash_total(total: int) -> str:
    return hashlib.sha256(total.to_bytes(WIDTH_BYTES, "little")).hexdigest()


def state_hash(doc: dict[str, Value]) -> str:
    """The hash of a whole state document."""
    return hash_total(total_of(doc))


def leaves_at(doc: Value, tokens: list[str]) -> list[bytes]:
    """All leaves at and below `tokens`; if a list is on the way there, that list. Nothing there: no leaves."""
    node = doc
    pointer = ""
    for token in tokens:
        if type(node) is list:
            break
        if type(node) is not dict or token not in node:
            return []
        node = node[token]
        pointer = f"{pointer}/{escape(token)}"
    out: list[bytes] = []
    depth = pointer.count("/")
    _collect(node, pointer, depth, entry_depth(tokens[0]) if depth else 1, out)
    return out


def _collect(node: Value, pointer: str, depth: int, limit: int, out: list[bytes]) -> None:
    if pointer == _NO_LEAF:
        return
    if type(node) is not dict or depth >= limit:
        out.append(_leaf(pointer, node))
        return
    out.append(_leaf(pointer, {}))
    for key, value in node.items():
        _collect(value, f"{pointer}/{escape(key)}", depth + 1, limit if depth else entry_depth(key), out)


def _leaf(pointer: str, value: Value) -> bytes:
    # RFC 8785 of [pointer, value], put together: a string's canonical form never needs the slow path.
    return b"[%b,%b]" % (_encode(pointer), canonical(value))
