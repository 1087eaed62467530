"""Texts from outside: what is hidden in them or acts goes, and what a reader sees stays."""

import pytest

from app.core.content.sanitizing import sanitized
from tests.proportion import assert_in_proportion

STRIPPED = [
    ("a <!-- hidden --> b", "a  b", {"html_comment": 1}),
    ('<p style="display:none">x <p>y</p> z</p>ok', "ok", {"hidden_element": 1}),
    ('<span style="font-size:0px">x</span>ok', "ok", {"hidden_element": 1}),
    ('<span style="FONT-SIZE: 0">x</span>ok', "ok", {"hidden_element": 1}),
    ('<div style="visibility : hidden">x</div>ok', "ok", {"hidden_element": 1}),
    ('<div style="opacity:0">x</div>ok', "ok", {"hidden_element": 1}),
    ('<div style="position:absolute;left:-9999px">x</div>ok', "ok", {"hidden_element": 1}),
    ('<font color="white">x</font>ok', "ok", {"hidden_element": 1}),
    ('<b style="color:#ffffff">x</b>ok', "ok", {"hidden_element": 1}),
    ("<div hidden>x</div>ok", "ok", {"hidden_element": 1}),
    ("<script>x</script>ok<style>y</style>", "ok", {"active_element": 2}),
    ("<script>x</script>" * 12 + "ok", "ok", {"active_element": 12}),
    ("<iframe src=//x.example></iframe>ok", "ok", {"active_element": 1}),
    ('<meta http-equiv="refresh" content="0">ok', "ok", {"active_element": 1}),
    ('<b onclick="x()">ok</b>', "<b >ok</b>", {"event_handler": 1}),
    ('<a href="java\nscript:x()">ok</a>', "<a >ok</a>", {"script_url": 1}),
    ('<a href="data:text/html,x">ok</a>', "<a >ok</a>", {"script_url": 1}),
    ('<a href="&#106;avascript:x()">ok</a>', "<a >ok</a>", {"script_url": 1}),
    ("[ok](javascript:x)", "ok", {"script_url": 1}),
    ("![ok](https://x.example/p.png?q=secret)", "ok", {"beacon": 1}),
    ("![a[b]c](https://x.example/p?q=1)", "abc", {"beacon": 1}),
    (
        "a](b) [safe](https://x.example/) ![ok](https://x.example/?q=1)",
        "a](b) [safe](https://x.example/) ok",
        {"beacon": 1},
    ),
    ("](https://x.example/) ![ok](https://x.example/?q=1)", "](https://x.example/) ok", {"beacon": 1}),
    (f"![ok](https://x.example/{'QUJD' * 15})", "ok", {"beacon": 1}),
    ("[ok](https://x.example/s?q={everything})", "ok", {"beacon": 1}),
    ("![ok][1]\n\n[1]: https://x.example/p?q=1\n", "![ok][1]\n\n", {"beacon": 1}),
    ('<img alt="ok" src="https://x.example/p?u=1">', "ok", {"beacon": 1}),
    ("![ok](https&colon;//x.example/p?q=1)", "ok", {"beacon": 1}),
    ("![ok](\\\\x.example/p?q=1)", "ok", {"beacon": 1}),
    ("![ok](https:/x.example/p?q=1)", "ok", {"beacon": 1}),
    ("![ok](https://x.example/{secret}.png)", "ok", {"beacon": 1}),
    ("[ok](java&#115;cript:x)", "ok", {"script_url": 1}),
    ("![ok][1]\n\n[1]:\n  https://x.example/p?q=1\n", "![ok][1]\n\n", {"beacon": 1}),
    ("![ok][1]\n\n> [1]: https://x.example/p?q=1\n", "![ok][1]\n\n", {"beacon": 1}),
    ("```a`b\n![ok](https://x.example/?q=1)\n```", "```a`b\nok\n```", {"beacon": 1}),
    ('<img srcset="https://x.example/?q=1 1x">ok', "<img >ok", {"beacon": 1}),
    ("<video poster=https://x.example/?q=1>ok", "<video >ok", {"beacon": 1}),
    ('<svg><image href="https://x.example/?q=1"/></svg>ok', "<svg><image /></svg>ok", {"beacon": 1}),
    ('<p style="background:url(https://x.example/?q=1)">ok</p>', "<p >ok</p>", {"beacon": 1}),
    ('<p style="d\\69splay:none">x</p>ok', "ok", {"hidden_element": 1}),
    ('<p style="display/**/:none">x</p>ok', "ok", {"hidden_element": 1}),
    ("<dialog>x</dialog><noembed>y</noembed>ok", "ok", {"hidden_element": 1, "active_element": 1}),
    ("[//]: # (hidden)\nok", "ok", {"markdown_comment": 1}),
    ("o\u200bk", "ok", {"invisible_characters": 1}),
    ("ok" + "\U000e0049\U000e0047", "ok", {"invisible_characters": 1}),
    ("ok\U0001f600" + "\ufe01\U000e0101\U000e0102", "ok\U0001f600", {"invisible_characters": 1}),
    ("ok\u202edrawkcab\u202c", "okdrawkcab", {"invisible_characters": 2}),
    ("\x1b[8mhidden\x1b[0mok", "hiddenok", {"terminal_escape": 2}),
    ("a\u200dخ خ\u200cb", "aخ خb", {"invisible_characters": 2}),
]
KEPT = [
    "Plain text, 3 < 4 and 5 > 2; a<b and List<String> x.",
    "# Title\n\n- one\n- [two](https://x.example/search?q=bikes&page=2)\n\n![logo](https://x.example/logo.png)",
    "<p>Hello <b>you</b>, <a href='https://x.example/?a=1'>here</a></p>",
    '<td bgcolor="#003366"><span style="color:#fff">on blue</span></td>',
    '<a style="color:white;background:#1a73e8">button</a>',
    "```html\n<script>alert(1)</script>\n<!-- shown -->\n```\nand `<iframe>` in code",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "\U0001f469\u200d\U0001f4bb ❤\ufe0f 1\ufe0f\u20e3",
    "می\u200cخواهم",
    '<img src="data:image/png;base64,iVBOR" alt="x">',
    "a <!-- that never ends",
    "tabs\tand\r\nlines",
    "- [one]: what it says\n- see ](x: y)",
    '<video src="https://x.example/film.mp4" poster="/a.png"></video><dialog open>seen</dialog>',
]


@pytest.mark.parametrize(("text", "left", "counts"), STRIPPED)
def test_what_is_hidden_or_acts_is_taken_out_and_counted(text, left, counts):
    made = sanitized(text)
    assert made.text == left
    assert made.stripped == counts
    assert sanitized(left).text == left


@pytest.mark.parametrize("text", KEPT)
def test_what_a_reader_sees_stays_as_it_is(text):
    made = sanitized(text)
    assert (made.text, dict(made.stripped)) == (text, {})


def test_code_marks_hide_nothing_in_a_page():
    assert "secret" not in sanitized("<p>```</p><!-- secret --><p>```</p>").text


@pytest.mark.parametrize("depth", [1, 3, 40])
def test_markup_that_comes_forth_is_taken_out_too(depth):
    nested = "<!-" + "<!-- x -->" * depth + "- hidden -->"
    for _ in range(depth):
        nested = nested.replace("<!-- x -->", "<!-<!-- x -->- y -->", 1)
    made = sanitized(nested + "<scr<!-- -->ipt>alert(1)</scr<!-- -->ipt>")
    assert "<script" not in made.text
    assert "<!--" not in made.text
    assert sanitized(made.text).text == made.text


def test_what_was_hidden_is_told_by_its_place():
    for unseen in (
        "<!-- this -->",
        "<p hidden>this</p>",
        '<p style="display:none">this</p>',
        "<script>x</script>",
    ):
        text = f"see {unseen} here"
        assert [text[start:end] for start, end in sanitized(text).hidden] == [unseen]


UNITS = [
    *(
        "<",
        '<a "',
        '<a "">',
        "<script>",
        "<div hidden>",
        "](",
        "![",
        "<!--",
        "![](//a?",
        "```\n",
        "`a",
        "[a]: ",
        "[a]: http://b\n",
        "> - > - ",
        "<p style='/*",
        "<p style='url(",
        "](a&#58",
    ),
    *(
        "a\u200b",
        "<a b=",
        "<scr<script></script>ipt>",
        "<b>",
        "<a ' >",
        "</b>",
        "<!-- -->",
        "<p style=display:none>",
    ),
]


@pytest.mark.parametrize("unit", UNITS)
def test_it_takes_time_that_grows_with_the_length_of_the_text(unit):
    assert_in_proportion(lambda size: sanitized(unit * (size // len(unit)) + ">"), 15_000, 60_000)


def test_what_stands_between_two_blocks_of_code_is_no_code():
    text = "```\n![a](https://x.example/?q=1)\n```\n![b](https://x.example/?q=2)\n```\n![c](https://x.example/?q=3)\n```\n"
    assert sanitized(text).text == text.replace("![b](https://x.example/?q=2)", "b")
