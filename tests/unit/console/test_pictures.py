"""The pictures of the console's page: one of each page of the console, small, and none that nobody sees."""

import re
import struct
from pathlib import Path

from app.console.visits import NAVIGATION

DOCS = Path(__file__).parents[3] / "docs"
SHOWN = re.compile(r"!\[([^\]:]+): [^\]]+\]\(pictures/([a-z]+\.png)\)")
MOST_BYTES = 100_000
PALETTE = 3


def test_every_page_has_a_small_picture() -> None:
    shown = SHOWN.findall((DOCS / "console.md").read_text(encoding="utf-8"))
    assert {entry.name for entry in NAVIGATION} <= {name for name, _ in shown}
    files = {file.name: file.read_bytes() for file in (DOCS / "pictures").iterdir()}
    assert files.keys() == {file for _, file in shown}
    for name, data in files.items():
        width, height, depth, colours = struct.unpack(">IIBB", data[16:26])
        assert data.startswith(b"\x89PNG\r\n\x1a\n"), name
        assert (colours, depth) == (PALETTE, 8), name
        assert width == 1200 >= height, name
        assert len(data) <= MOST_BYTES, name
