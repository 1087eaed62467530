"""The page about the wire says what the code does."""

import re
from pathlib import Path

from app.edge.problems import PROBLEMS
from app.protocol.wire.errors import WIRE_ERRORS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "wire.md").read_text()
ROW = re.compile(r"^\| `([a-z_]+)` \| (\d+) \| (-?\d+) \| (\d+) \|", re.MULTILINE)


def test_the_table_of_errors_is_that_of_both_surfaces() -> None:
    table = PAGE.partition("<!-- errors: begin -->")[2].partition("<!-- errors: end -->")[0]
    documented = {code: tuple(map(int, numbers)) for code, *numbers in ROW.findall(table)}

    assert documented == {
        code: (status, WIRE_ERRORS[code].code, WIRE_ERRORS[code].status)
        for code, (status, _) in PROBLEMS.items()
    }
