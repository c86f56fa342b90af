"""RFC 6962: public vectors, the RFC's definition as a second opinion, and every small tree."""

import base64
import hashlib
import json
from pathlib import Path

import pytest

from tests.every import every
from wakelog.evidence.merkle import (
    GrowingTree,
    consistency_proof,
    inclusion_proof,
    is_consistent,
    is_included,
    leaf_hash,
    node_hash,
)

VECTORS = Path(__file__).parents[1] / "vectors" / "merkle"
INCLUSION = sorted((VECTORS / "inclusion").rglob("*.json"))
CONSISTENCY = sorted((VECTORS / "consistency").rglob("*.json"))
LEAVES = [leaf_hash(bytes([n])) for n in range(40)]


def _name(path: Path) -> str:
    return path.relative_to(VECTORS).as_posix()


def _decode(text: str | None) -> bytes:
    return base64.b64decode(text or "")


def test_all_vectors_are_there() -> None:
    assert (len(INCLUSION), len(CONSISTENCY)) == (98, 98)


@every("path", INCLUSION, ids=_name)
def test_inclusion_vector(path: Path) -> None:
    said = json.loads(path.read_text())
    proof = [_decode(each) for each in said["proof"] or ()]
    held = is_included(_decode(said["leafHash"]), said["leafIdx"], said["treeSize"], proof, _decode(said["root"]))
    assert held is not said["wantErr"]


@every("path", CONSISTENCY, ids=_name)
def test_consistency_vector(path: Path) -> None:
    said = json.loads(path.read_text())
    proof = [_decode(each) for each in said["proof"] or ()]
    held = is_consistent(said["size1"], _decode(said["root1"]), said["size2"], _decode(said["root2"]), proof)
    assert held is not said["wantErr"]


def _root(leaves: list[bytes]) -> bytes:
    """The definition of the RFC, word by word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return node_hash(_root(leaves[:split]), _root(leaves[split:]))


@every("size", range(len(LEAVES)))
def test_a_growing_tree_has_the_root_of_the_definition(size: int) -> None:
    tree = GrowingTree(LEAVES[:size])
    assert tree.root == _root(LEAVES[:size])
    assert tree.with_leaves(LEAVES[size:]).root == _root(LEAVES)
    assert tree.root == _root(LEAVES[:size])


def test_our_proofs_hold_for_every_leaf_and_every_size() -> None:
    for size in range(1, len(LEAVES) + 1):
        root = _root(LEAVES[:size])
        for index in range(size):
            proof = inclusion_proof(LEAVES[:size], index)
            assert is_included(LEAVES[index], index, size, proof, root)
            assert not is_included(LEAVES[index], index, size, [*proof, root], root)
            assert not is_included(leaf_hash(b"other"), index, size, proof, root)
        for small in range(1, size + 1):
            proof = consistency_proof(LEAVES[:size], small)
            assert is_consistent(small, _root(LEAVES[:small]), size, root, proof)
            other = _root([leaf_hash(b"other"), *LEAVES[1:small]])
            assert not is_consistent(small, other, size, root, proof)


@pytest.mark.parametrize(("index", "size"), [(-1, 3), (3, 3), (0, 0)])
def test_there_is_no_proof_of_what_is_not_there(index: int, size: int) -> None:
    with pytest.raises(IndexError):
        inclusion_proof(LEAVES[:size], index)
    with pytest.raises(IndexError):
        consistency_proof(LEAVES[:3], 4 if index else 0)
