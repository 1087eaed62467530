"""The pages: every block of them is run or says why not, and every link leads somewhere."""

import re

import pytest

from tests.pages import ROOT, Block, blocks_of, invalid, matches, pages, printed_as_shown

PAGES = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in pages()}
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?!https?:|mailto:)([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?)\s*$", re.MULTILINE)
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
LONGEST_README = 150


def anchors(page):
    """Return the anchors of a page's headings, as code hosts make them."""
    bare = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(FENCED.sub("", page))]
    return {heading.replace(" ", "-") for heading in bare}


@pytest.mark.parametrize("name", PAGES)
def test_every_block_of_a_page_is_run_or_says_why_not(name):
    assert not [fault for block in blocks_of(PAGES[name]) if (fault := invalid(block))]


@pytest.mark.parametrize("name", PAGES)
def test_every_link_of_a_page_leads_somewhere(name):
    broken = []
    for link in LINK.findall(FENCED.sub("", PAGES[name])):
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("name", PAGES)
def test_a_block_is_left_to_another_test_only_if_that_test_exists(name):
    reasons = [block.not_run for block in blocks_of(PAGES[name]) if block.not_run]
    named = [path for reason in reasons for path in re.findall(r"tests/[\w/]+\.py", reason)]
    assert not [path for path in named if not (ROOT / path).is_file()]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_only_targets_that_make_has(name):
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"`make ([a-z]+)", PAGES[name])) <= set(targets)


def test_the_readme_is_short_enough_to_be_read_to_the_end():
    assert PAGES["README.md"].count("\n") <= LONGEST_README


def test_every_page_is_reached_from_the_first_page_of_the_documentation():
    reached = {
        (ROOT / "docs" / link.partition("#")[0]).resolve() for link in LINK.findall(PAGES["docs/README.md"])
    }
    own = {(ROOT / name).resolve() for name in PAGES if name.count("/") == 1 and name.startswith("docs/")}
    assert own - reached == {ROOT / "docs/README.md"}


def test_a_block_is_run_unless_a_comment_before_it_says_why_not():
    page = "```sh\necho 1\n```\n\n<!-- not run: needs a network -->\n```sh\necho 2\n```\n"

    assert [block.is_run for block in blocks_of(page)] == [True, False]


@pytest.mark.parametrize(
    "page",
    ["```\nls\n```\n", "```console\nls\n```\n", "<!-- not run: no -->\n```sh\nls\n```\n", "```sh\nls\n"],
)
def test_a_block_without_a_language_a_reason_or_an_end_is_refused(page):
    with pytest.raises(ValueError, match=r"line \d"):
        blocks_of(page)


def test_what_follows_a_block_that_is_run_is_its_output():
    page = "```sh\necho 1\n```\n\n```text\n1\n```\n\nSentence.\n\n```text\nother\n```\n"

    assert [block.output for block in blocks_of(page)] == [False, True, False]


@pytest.mark.parametrize(
    ("shown", "actual", "same"),
    [
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1, "…": "…"}, {"a": 1, "b": 2}, True),
        ({"a": 1, "…": "…"}, {"b": 2}, False),
        ({"a": "x … z"}, {"a": "x y z"}, True),
        ({"a": "x … z"}, {"a": "x y"}, False),
        ({"a": "…"}, {"a": [1]}, True),
        ([1, "…"], [1, 2, 3], True),
        ([1, "…"], [2, 2, 3], False),
        ([1], [1, 2], False),
        ({"a": True}, {"a": 1}, False),
        ({"a": 0.83}, {"a": 0.8331}, True),
        ({"a": 0.83}, {"a": 0.93}, False),
    ],
)
def test_an_ellipsis_stands_for_what_a_page_does_not_show(shown, actual, same):
    assert matches(shown, actual) is same


def test_printed_text_is_compared_line_by_line():
    shown = Block(1, "text", "one\n…\nthree … five\n", output=True)

    assert printed_as_shown(shown, "one\ntwo\n2\nthree four five\n")
    assert not printed_as_shown(shown, "one\ntwo\nthree four\n")
