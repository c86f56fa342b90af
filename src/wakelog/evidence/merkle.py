"""Merkle trees as in RFC 6962: a root over a growing list, and short proofs about it.

A leaf's hash is SHA-256(0x00 ‖ content), a node's is SHA-256(0x01 ‖ left ‖ right), and the left side of a node is the
largest full tree that leaves something for the right. An *inclusion* proof shows that a leaf is in a tree with a known
root. A *consistency* proof shows that a larger tree starts with a smaller one: nothing in that was changed, removed or
moved. A check of a bad proof returns False and never raises.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence


def leaf_hash(content: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + content).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


class GrowingTree:
    """A tree that grows. It keeps only the roots of its full subtrees, so adding a leaf is cheap."""

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self.size = 0
        self._full: list[bytes] = []
        """Roots of full trees, largest first: one for each bit of the size."""
        for leaf in leaves:
            self.add(leaf)

    def add(self, leaf: bytes) -> None:
        """Adds a leaf by its hash."""
        carried, size = leaf, self.size
        while size & 1:
            carried, size = node_hash(self._full.pop(), carried), size >> 1
        self._full.append(carried)
        self.size += 1

    def with_leaves(self, leaves: Iterable[bytes]) -> GrowingTree:
        """A copy with more leaves."""
        tree = GrowingTree()
        tree.size, tree._full = self.size, self._full.copy()
        for leaf in leaves:
            tree.add(leaf)
        return tree

    @property
    def root(self) -> bytes:
        """The root; for an empty tree, the hash of nothing."""
        if not self._full:
            return hashlib.sha256(b"").digest()
        *rest, root = self._full
        for left in reversed(rest):
            root = node_hash(left, root)
        return root


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The proof that the leaf at `index` is in the tree of these leaf hashes."""
    if not 0 <= index < len(leaves):
        raise IndexError(index)
    if len(leaves) == 1:
        return []
    split = _split(len(leaves))
    if index < split:
        return [*inclusion_proof(leaves[:split], index), GrowingTree(leaves[split:]).root]
    return [*inclusion_proof(leaves[split:], index - split), GrowingTree(leaves[:split]).root]


def consistency_proof(leaves: Sequence[bytes], size: int) -> list[bytes]:
    """The proof that the tree of all leaves starts with the tree of the first `size`."""
    if not 0 < size <= len(leaves):
        raise IndexError(size)
    return _consistency(leaves, size, True)


def _consistency(leaves: Sequence[bytes], size: int, is_known: bool) -> list[bytes]:
    """`is_known`: the reader has the smaller tree's root, so the proof leaves it out."""
    if size == len(leaves):
        return [] if is_known else [GrowingTree(leaves).root]
    split = _split(len(leaves))
    if size <= split:
        return [*_consistency(leaves[:split], size, is_known), GrowingTree(leaves[split:]).root]
    return [*_consistency(leaves[split:], size - split, False), GrowingTree(leaves[:split]).root]


def _split(size: int) -> int:
    """The largest power of two below a size of two or more."""
    return 1 << ((size - 1).bit_length() - 1)


def is_included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """True if a proof shows that a leaf (its hash) is at `index` in the tree with this size and root."""
    if not 0 <= index < size or len(leaf) != hashlib.sha256().digest_size:
        return False
    at, last, found = index, size - 1, leaf
    for sibling in proof:
        if not last:
            return False
        if at & 1 or at == last:
            found = node_hash(sibling, found)
            at, last = _to_right_child(at, last)
        else:
            found = node_hash(found, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and found == root


def is_consistent(size1: int, root1: bytes, size2: int, root2: bytes, proof: Sequence[bytes]) -> bool:
    """True if a proof shows that the second tree starts with the first. False for an empty first tree, because every
    tree starts with it."""
    if not 0 < size1 <= size2:
        return False
    if size1 == size2:
        return not proof and root1 == root2
    path = [root1, *proof] if size1 & (size1 - 1) == 0 else list(proof)
    if not path:
        return False
    at, last = size1 - 1, size2 - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    first = second = path[0]
    for sibling in path[1:]:
        if not last:
            return False
        if at & 1 or at == last:
            first, second = node_hash(sibling, first), node_hash(sibling, second)
            at, last = _to_right_child(at, last)
        else:
            second = node_hash(second, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and first == root1 and second == root2


def _to_right_child(at: int, last: int) -> tuple[int, int]:
    """Goes up while the node has no sibling on its right."""
    while at and not at & 1:
        at, last = at >> 1, last >> 1
    return at, last
