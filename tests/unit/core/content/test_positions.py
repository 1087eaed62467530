"""Originals never come to stand where a reader or a browser acts on them."""

import pytest

from app.core.content.positions import LEFT_CONTEXT, in_active_position


@pytest.mark.parametrize(
    "left",
    [
        "see https://x.test/?q=",
        "[a](https://x.test/",
        "[a](/b(c)/",
        "[a](/b\\)/",
        "![a](/b(c)(d",
        "[![i](/a)](/b(c)/",
        '<a href="',
        "<img alt='a>b' title=",
        '<img alt=">" title="',
        '<img alt = ">" title="',
        '<img alt="< b" title="',
        "<img alt='",
        '<p>ok</p><img alt=">',
        '<img a" b=">" title=',
        "x" * LEFT_CONTEXT,
    ],
)
def test_urls_targets_and_tags_are_active(left: str) -> None:
    assert in_active_position(left)


@pytest.mark.parametrize(
    "left",
    [
        "",
        "plain text ",
        "[a](https://x.test/) ",
        "[a](/b(c)) ",
        "[a](/b\n\n",
        "f(x) [",
        "a < b and c > d ",
        '<img alt=">"> ',
        "<b>it's ",
        '<a href="x">',
        "2 <3 ",
        "https://x.test/ ",
    ],
)
def test_text_beside_them_is_not(left: str) -> None:
    assert not in_active_position(left)
