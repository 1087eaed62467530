"""Rebuilding a tree piece by piece gives the tree, its roots on the way, and each full tile once."""

from app.core.transparency.hashing import leaf_hash
from app.core.transparency.replay import Replay
from app.core.transparency.tiles import append, edge, root


def test_a_replay_stops_where_asked_and_hands_out_each_full_tile_once():
    hashes = [leaf_hash(number.to_bytes(4, "big")) for number in range(70_000)]
    whole = append(0, {}, hashes)
    replay, full, roots = Replay(), {}, {}
    for start in range(0, len(hashes), 7_000):
        for tiles in replay.stopping(hashes[start : start + 7_000], [1, 255, 256, 7_000, 65_536, 69_999]):
            assert not set(tiles) & set(full)
            full |= tiles
            roots[replay.size] = replay.root
    assert {**full, **replay.tiles} == whole.tiles
    assert set(replay.tiles) == set(edge(70_000))
    assert {1, 255, 256, 7_000, 65_536, 69_999, 70_000} <= set(roots)
    assert all(computed == root(size, whole.tiles) for size, computed in roots.items())
