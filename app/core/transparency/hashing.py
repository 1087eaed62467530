"""Hashes of a Merkle tree (RFC 6962, section 2.1), and the check of proofs over them (RFC 9162, 2.1.3 and 2.1.4)."""

import hashlib
from collections.abc import Sequence
from typing import Final

HASH_BYTES: Final = 32
EMPTY_ROOT: Final = hashlib.sha256(b"").digest()
"""The root of a tree without entries."""


def leaf_hash(entry: bytes) -> bytes:
    """Return the hash of an entry."""
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of the node above ``left`` and ``right``."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def perfect_root(hashes: bytes) -> bytes:
    """Return the root of a perfect subtree over concatenated ``hashes``, whose number is a power of two."""
    row = [hashes[start : start + HASH_BYTES] for start in range(0, len(hashes), HASH_BYTES)]
    while len(row) > 1:
        row = [node_hash(left, right) for left, right in zip(row[::2], row[1::2], strict=True)]
    return row[0]


def includes(root: bytes, size: int, index: int, leaf: bytes, proof: Sequence[bytes]) -> bool:
    """Return whether ``proof`` shows that the entry with the hash ``leaf`` stands at ``index`` of a tree."""
    if not 0 <= index < size:
        return False
    position, last, computed = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if position & 1 or position == last:
            computed = node_hash(sibling, computed)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            computed = node_hash(computed, sibling)
        position, last = position >> 1, last >> 1
    return last == 0 and computed == root


def range_root(first: int, size: int, leaves: Sequence[bytes], proof: Sequence[bytes]) -> bytes:
    """Return the root of a tree of ``size`` entries by those from ``first`` on, whose hashes are ``leaves``.

    ``proof`` is a `range_proof`; one that is too short or too long raises ValueError.
    """
    end, beside = first + len(leaves), iter(proof)

    def root_of(start: int, stop: int) -> bytes:
        if stop <= first or end <= start:
            return next(beside)
        if stop - start == 1:
            return leaves[start - first]
        middle = start + (1 << ((stop - start - 1).bit_length() - 1))
        return node_hash(root_of(start, middle), root_of(middle, stop))

    if not 0 <= first < end <= size:
        raise ValueError(f"A tree of {size} entries has none from {first} to {end}.")
    try:
        computed = root_of(0, size)
    except StopIteration:
        raise ValueError("The proof is too short.") from None
    if next(beside, None) is not None:
        raise ValueError("The proof is too long.")
    return computed


def continues(old_root: bytes, old_size: int, root: bytes, size: int, proof: Sequence[bytes]) -> bool:
    """Return whether ``proof`` shows that a tree begins with all entries of an older one."""
    if not 0 <= old_size <= size:
        return False
    if old_size == 0:
        return not proof and old_root == EMPTY_ROOT
    if old_size == size:
        return not proof and old_root == root
    hashes = list(proof) if old_size & (old_size - 1) else [old_root, *proof]
    if not proof:
        return False
    position, last = old_size - 1, size - 1
    while position & 1:
        position, last = position >> 1, last >> 1
    old_computed = computed = hashes[0]
    for sibling in hashes[1:]:
        if last == 0:
            return False
        if position & 1 or position == last:
            old_computed = node_hash(sibling, old_computed)
            computed = node_hash(sibling, computed)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            computed = node_hash(computed, sibling)
        position, last = position >> 1, last >> 1
    return last == 0 and old_computed == old_root and computed == root
