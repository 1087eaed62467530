"""Logs that prove themselves: Merkle trees, tiles, signed notes and checkpoints, as bytes in and bytes out.

Trees hash as RFC 6962 says (SHA-256). They are kept in tiles of 256 hashes, signed as checkpoints and cosigned by
witnesses as the C2SP texts tlog-tiles, signed-note, tlog-checkpoint, tlog-cosignature and tlog-proof say. Nothing here
reads or stores: whoever calls brings the tiles.
"""
