"""Trees in tiles against vectors computed elsewhere and against the recursive definition of RFC 6962."""

import hashlib
import json
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.transparency.hashing import EMPTY_ROOT, continues, includes, leaf_hash, range_root
from app.core.transparency.tiles import (
    TilePlace,
    append,
    consistency_proof,
    edge,
    inclusion_proof,
    range_proof,
    root,
    wanted,
)

VECTORS = json.loads((Path(__file__).parent / "rfc6962-vectors.json").read_text("utf-8"))
LEAVES = [bytes.fromhex(text) for text in VECTORS["leaves_hex"]]


def tree_of(entries, sizes=()):
    """Return the size and the tiles of a tree to which the entries were added in parts of the given sizes."""
    hashes, tiles, size = [leaf_hash(entry) for entry in entries], {}, 0
    for count in (*sizes, len(hashes)):
        part = hashes[size : min(size + count, len(hashes))]
        appended = append(size, {place: tiles[place] for place in edge(size)}, part)
        size = appended.size
        tiles.update(appended.tiles)
    assert size == len(hashes)
    return size, tiles


def defined_root(hashes):
    """Return the root as the RFC defines it, by recursion over hashes of entries."""
    if not hashes:
        return hashlib.sha256(b"").digest()
    if len(hashes) == 1:
        return hashes[0]
    middle = 1
    while middle * 2 < len(hashes):
        middle *= 2
    both = defined_root(hashes[:middle]) + defined_root(hashes[middle:])
    return hashlib.sha256(b"\x01" + both).digest()


def unhex(proof):
    return [bytes.fromhex(text) for text in proof]


def test_leaves_hash_as_the_vectors_say():
    assert [leaf_hash(leaf).hex() for leaf in LEAVES] == VECTORS["leaf_hashes"]


@pytest.mark.parametrize("size", range(len(LEAVES) + 1))
def test_roots_are_those_of_the_vectors(size):
    _, tiles = tree_of(LEAVES)
    assert root(size, tiles).hex() == VECTORS["roots_by_size"][str(size)]


def test_proofs_are_those_of_the_vectors():
    _, tiles = tree_of(LEAVES)
    assert len(VECTORS["inclusion"]) > 30
    for vector in VECTORS["inclusion"]:
        assert inclusion_proof(vector["index"], vector["size"], tiles) == unhex(vector["proof"])
    assert len(VECTORS["consistency"]) > 30
    for vector in VECTORS["consistency"]:
        assert consistency_proof(vector["first"], vector["second"], tiles) == unhex(vector["proof"])


def test_the_proofs_of_the_vectors_hold_and_no_other_does():
    roots = {int(size): bytes.fromhex(text) for size, text in VECTORS["roots_by_size"].items()}
    for vector in VECTORS["inclusion"]:
        index, size, proof = vector["index"], vector["size"], unhex(vector["proof"])
        leaf = leaf_hash(LEAVES[index])
        assert includes(roots[size], size, index, leaf, proof)
        assert not includes(roots[size], size, index, leaf_hash(b"another"), proof)
        assert not includes(roots[size], size, index, leaf, [*proof, leaf])
        assert not includes(roots[size], size, index, leaf, proof[:-1]) or not proof
        assert not includes(roots[size], size, index + size, leaf, proof)
    for vector in VECTORS["consistency"]:
        first, second, proof = vector["first"], vector["second"], unhex(vector["proof"])
        assert continues(roots[first], first, roots[second], second, proof)
        assert not continues(roots[first], first, leaf_hash(b"another"), second, proof) or first == 0
        assert not continues(leaf_hash(b"another"), first, roots[second], second, proof)
        assert not continues(roots[first], first, roots[second], second, [*proof, roots[second]])
        if proof:
            assert not continues(roots[first], first, roots[second], second, proof[:-1])
        if first < second:
            assert not continues(roots[second], second, roots[first], first, proof), "the log became shorter"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 700), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_a_tree_that_grows_in_parts_is_the_tree_of_all_entries(parts, random):
    entries = [number.to_bytes(4, "big") for number in range(sum(parts))]
    hashes = [leaf_hash(entry) for entry in entries]
    size, tiles = tree_of(entries, parts)
    older = random.randint(0, size)
    assert root(size, tiles) == defined_root(hashes)
    assert root(older, tiles) == defined_root(hashes[:older])
    index = random.randrange(size)
    proof = inclusion_proof(index, size, tiles)
    assert includes(root(size, tiles), size, index, hashes[index], proof)
    assert not includes(root(size, tiles), size, (index + 1) % (size + 1), hashes[index], proof) or size == 1
    proof = consistency_proof(older, size, tiles)
    assert continues(root(older, tiles), older, root(size, tiles), size, proof)
    forged = [leaf_hash(b"forged"), *hashes[1:older]]
    if older:
        assert not continues(defined_root(forged), older, root(size, tiles), size, proof)


def test_tiles_have_the_widths_that_the_text_computes():
    size, tiles = tree_of([number.to_bytes(4, "big") for number in range(70_000)], [1, 255, 256, 10_000])
    widths = {place: len(content) // 32 for place, content in tiles.items()}
    assert sum(width == 256 for place, width in widths.items() if place.level == 0) == 273
    assert {place: width for place, width in widths.items() if width < 256} == {
        TilePlace(0, 273): 112,
        TilePlace(1, 1): 17,
        TilePlace(2, 0): 1,
    }
    assert edge(size) == [TilePlace(0, 273), TilePlace(1, 1), TilePlace(2, 0)]


@pytest.mark.parametrize(("size", "places"), [(0, []), (256, [TilePlace(1, 0)]), (65_536, [TilePlace(2, 0)])])
def test_a_tree_of_full_tiles_needs_those_above_only(size, places):
    assert edge(size) == places


def test_only_the_tiles_that_a_proof_reads_are_wanted():
    size, tiles = tree_of([number.to_bytes(4, "big") for number in range(70_000)])
    places = wanted(partial(inclusion_proof, 300, size))
    assert places == [TilePlace(0, 1), TilePlace(0, 273), TilePlace(1, 0), TilePlace(1, 1)]
    some = {place: tiles[place] for place in places}
    assert inclusion_proof(300, size, some) == inclusion_proof(300, size, tiles)


def test_a_tile_with_too_few_hashes_is_named_and_nothing_is_computed():
    size, tiles = tree_of(LEAVES)
    tiles[TilePlace(0, 0)] = tiles[TilePlace(0, 0)][:-32]
    with pytest.raises(LookupError, match=r"tile/0/000 has 7 hashes"):
        root(size, tiles)
    assert root(7, tiles).hex() == VECTORS["roots_by_size"]["7"]


@pytest.mark.parametrize(
    ("place", "width", "path"),
    [
        (TilePlace(0, 0), 256, "tile/0/000"),
        (TilePlace(0, 1_234_067), 256, "tile/0/x001/x234/067"),
        (TilePlace(3, 999), 17, "tile/3/999.p/17"),
        (TilePlace(1, 1_000), 1, "tile/1/x001/000.p/1"),
    ],
)
def test_paths_are_written_as_the_text_says(place, width, path):
    assert place.path(width) == path


def test_what_no_tree_has_is_refused():
    size, tiles = tree_of(LEAVES)
    for index in (-1, size):
        with pytest.raises(ValueError, match="has none at"):
            inclusion_proof(index, size, tiles)
    with pytest.raises(ValueError, match="does not continue"):
        consistency_proof(size + 1, size, tiles)
    assert root(0, {}) == EMPTY_ROOT


@given(st.data())
def test_a_range_with_what_lies_beside_it_makes_the_root(data):
    size = data.draw(st.integers(1, 1000))
    first = data.draw(st.integers(0, size - 1))
    end = data.draw(st.integers(first + 1, size))
    _, tiles = tree_of([b"%d" % number for number in range(size)])
    hashes = [leaf_hash(b"%d" % number) for number in range(size)]
    prove = partial(range_proof, first, end, size)
    proof = prove({place: tiles[place] for place in wanted(prove)})
    assert range_root(first, size, hashes[first:end], proof) == root(size, tiles) == defined_root(hashes)
    if end - first == 1:
        assert sorted(proof) == sorted(inclusion_proof(first, size, tiles))
    if proof:
        with pytest.raises(ValueError, match="short"):
            range_root(first, size, hashes[first:end], proof[:-1])
    with pytest.raises(ValueError, match="long"):
        range_root(first, size, hashes[first:end], [*proof, b""])
    with pytest.raises(ValueError, match="has none"):
        range_proof(first, size + 1, size, tiles)
    with pytest.raises(ValueError, match="has none"):
        range_root(end, end - 1, [b""], [])
