"""A class of a pattern is read to the letter, also where a letter stands for others in the image of a text."""

import pytest

from app.engines.pii.scan.bytesets import members
from app.engines.pii.scan.shapes import Beside, PatternReading, Sequence


@pytest.mark.parametrize(
    ("pattern", "there", "gone"),
    [
        # The Kelvin sign, the long s and the two Turkish letters have the bytes of k, s and i.
        (r"(?<![a-zA-Z])\d", b"ksi", b"abcKSI"),
        (r"(?<![a-zA-Z\u212a])\d", b"si", b"kK"),
        (r"(?<![a-z\u212a\u017f\u0130])\d", b"iKSI", b"ks"),
        (r"(?<![a-z\u0100-\u02ff\u212a])\d", b"KSI", b"ksi"),
        (r"(?<![\u212a\u017f\u0130\u0131])\d", b"ksi", b""),
    ],
)
def test_what_may_stand_before_a_match_is_left_out_where_all_that_it_stands_for_is(pattern, there, gone):
    shape = PatternReading(pattern, 0).shape
    assert isinstance(shape, Sequence) and isinstance(shape.items[0], Beside)
    before = members(shape.items[0].may)

    assert set(there) <= set(before)
    assert not set(gone) & set(before)
