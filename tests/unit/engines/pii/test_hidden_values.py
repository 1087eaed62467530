"""Values behind control characters, in pieces, as numbers of characters and with signs spelled out are found whole."""

import base64
from collections.abc import Callable, Iterator

import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.ground.labels import NAME_LABELS
from app.engines.pii.search.analyzer import Analyzer
from app.engines.views.reading import readings

CARD, MAIL, SSN = "5425233430109903", "ola.berg@example.net", "523-45-6789"
VALUES = {"CARD": CARD, "EMAIL": MAIL, "SSN": SSN}


def each(form: str) -> Callable[[str], str]:
    return lambda value: "".join(form.format(ord(character)) for character in value)


def encoded(value: str, width: int, sign: str) -> str:
    whole = base64.b64encode(f"see {value}".encode()).decode()
    return sign.join(whole[place : place + width] for place in range(0, len(whole), width))


FORMS: dict[str, Callable[[str], str]] = {
    "NUL": "\0".join,
    "bell": "\x07".join,
    "C1 control": "\x9d".join,
    "private use": "\ue123".join,
    "private plane": "\U000f1234".join,
    "colours": lambda value: "".join(f"\x1b[3{place % 8}m{sign}\x1b[0m" for place, sign in enumerate(value)),
    "8-bit colours": "\x9b1m".join,
    "terminal link": lambda value: f"{value[:5]}\x1b]8;;http://x\x07{value[5:]}",
    "written colours": lambda value: f"{value[:5]}\\x1b[31m{value[5:9]}\\u001b[0m{value[9:]}",
    "written octal colours": lambda value: f"{value[:5]}\\033[1;31m{value[5:9]}\\e[0m{value[9:]}",
    "padded entities": each("&#{:09d};"),
    "padded hexadecimal entities": each("&#x{:08x};"),
    "entities padded very far": each("&#{:05000d};"),
    "style sheet": each("\\{:x} "),
    "style sheet of six digits": each("\\{:06x}"),
    "JSON with zeros": each("\\u{{0000{:02x}}}"),
    "u": each("u{:04x}"),
    "U+": each("U+{:04X} "),
    "U+ in a list": each("U+{:04X}, "),
    "U+ joined": each("U+{:04X}"),
    "0x": each("0x{:02x} "),
    "0x in a list": each("0x{:02X}, "),
    "0x joined": each("0x{:02x}"),
    "x": each("x{:02x}"),
    "pairs": lambda value: " ".join(f"{ord(sign):02x}" for sign in value),
    "decimal": lambda value: ", ".join(str(ord(sign)) for sign in value),
    "percent": each("%{:02x}"),
    "base64 in fours": lambda value: encoded(value, 4, " "),
    "base64 in lines": lambda value: encoded(value, 8, "\n"),
    "base64 in a quoted mail": lambda value: encoded(value, 8, "\n> "),
    "base64 with marks between": lambda value: encoded(value, 4, " é "),
    "base64 with lone surrogates between": lambda value: encoded(value, 4, " \ud800"),
    "base64 with dashes": lambda value: encoded(value, 4, "-"),
    "base64 sign by sign": lambda value: encoded(value, 1, " "),
    "square brackets": lambda value: "".join(f"[{sign}]" for sign in value),
    "round brackets": lambda value: " ".join(f"({sign})" for sign in value),
    "array": lambda value: "[" + ",".join(f'"{sign}"' for sign in value) + "]",
    "array with blanks": lambda value: "[" + ",\n  ".join(f"'{sign}'" for sign in value) + "]",
    "sum of strings": lambda value: f'"{value[:4]}" + "{value[4:8]}" + "{value[8:]}"',
    "escaped signs": lambda value: value.replace(".", "\\.").replace("-", "\\-").replace("@", "\\@"),
    "isolate backwards": lambda value: f"\u2067{value[::-1]}\u2069",
}


def placed(hidden: str) -> tuple[str, int, int]:
    return f"Please note {hidden} for later.", 12, 12 + len(hidden)


@pytest.mark.parametrize("form", FORMS)
def test_a_hidden_value_is_found_whole(analyzer: Analyzer, form: str) -> None:
    lost = []
    for label, value in VALUES.items():
        text, start, end = placed(FORMS[form](value))
        spans = [span for span in analyzer.scan(text, DetectionOptions()) if span.label == label]
        # What opens and closes the form, such as a quotation mark or a colour, may stay.
        if not any(span.start <= start + 9 and span.end >= end - 9 for span in spans):
            lost.append((label, text, spans))
    assert lost == []


@pytest.mark.parametrize("form", ["colours", "padded entities", "U+", "0x", "base64 in fours", "array"])
def test_the_text_as_it_is_would_hide_them(analyzer: Analyzer, form: str) -> None:
    """The negative control."""
    texts = [placed(FORMS[form](value))[0] for value in VALUES.values()]
    found = [
        finding.label for text in texts for finding in analyzer._search.findings(text, DetectionOptions())
    ]
    assert not VALUES.keys() & set(found)


PIECES = [
    "5425/2334/3010/9903",
    "5425\n2334\n3010\n9903",
    "54252334\n30109903",
    "5425 2334 3010\r\n9903",
    "5425\\n2334\\n3010\\n9903",
    "5425_2334_3010_9903",
    "5425*2334*3010*9903",
    "5425 / 2334 / 3010 / 9903",
    "[5425, 2334, 3010, 9903]",
    '["5425","2334","3010","9903"]',
    "[5,4,2,5,2,3,3,4,3,0,1,0,9,9,0,3]",
    "5-4-2-5-2-3-3-4-3-0-1-0-9-9-0-3",
    "523/45/6789",
    "523-45-\n6789",
    "523_45_6789",
    "ola.berg@\nexample.net",
    "ola.berg\n@example.net",
    "DE89 3704 0044\n0532 0130 00",
    "ola.berg_at_example.net",
    "ola_dot_berg_at_example_dot_net",
    "ola.berg -at- example.net",
    "ola.berg at example dot net",
    "ola.berg@example dot net",
    "OLA.BERG AROBASE EXAMPLE POINT NET",
    "192\\.168\\.10\\.41",
]


@pytest.mark.parametrize("pieces", PIECES)
def test_a_value_in_pieces_is_found_whole(analyzer: Analyzer, pieces: str) -> None:
    text, start, end = placed(pieces)
    spans = analyzer.scan(text, DetectionOptions())
    assert any(span.start <= start + 2 and span.end >= end - 2 for span in spans)


ORDINARY = [
    "00000010: 4c46 7f45 and 7f 45 4c 46 with sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "sizes = [1024, 2048, 4096, 8192]; x = [1,2,3,4,5,6,7,8,9,10,11,12,13]; ages = [45, 67, 89, 34, 56, 78, 90]",
    "year,a,b,c\n2019,4000,5100,6200\n2020,4100,5200,6300\n2021,4200,5300,6400",
    "①+②=③, ⑤×④=⑳, (a)(b)(c) and [1][2][3], (1) (2) (3) (4) (5) (6)",
    "updated_at_utc created_at_ms row.created_at_local.id look_at_me.py moved_at_example.js",
    "We met at noon at the station; look at the dot product of a dot b at example.com",
    "re.compile(r'\\d{3}\\.\\d{2}\\-\\w+\\.py') a\\.b \\_x\\_",
    "U+0041 LATIN CAPITAL LETTER A, U+1F600, U+00E9 and U+200B",
    "0x7ffd3c2a1b40 0xdeadbeef 0x00 0xff 0x41 flags=0x1f",
    "colors: \\e[0m reset, \\x1b[31m red \\033[1m bold ^[[A",
    "See pages 10/12/14, 3/4/5 and 1/2; ratios 20/20/20 and 1000/500/2000, 100, 50, 2000",
    "Total\n1234\n5678\n9012\n3456\n7890",
    "a = 'foo' + 'bar' + baz",
    "fooBar bazQux getHTTPResponse parseXML2JSON toString2 camelCase aB cD",
    "Icons \ue0b0 main \ue0b2",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_dumps_tables_code_and_mathematics_stay_unchanged(analyzer: Analyzer, text: str) -> None:
    found = [span for span in analyzer.scan(text, DetectionOptions()) if span.label not in NAME_LABELS]
    assert found == []


def every_view() -> Iterator[str]:
    for form in FORMS.values():
        yield from (f"a {form(value)} b" for value in VALUES.values())
    yield from (f"a {text} b" for text in PIECES)


def test_every_part_of_a_view_stands_for_a_part_of_the_text() -> None:
    for text in every_view():
        other = readings(text)
        for view in (*other.views, *other.glued):
            assert view.original_span(0, len(view.text)) == (0, len(text))
            spans = [view.original_span(place, place + 1) for place in range(len(view.text))]
            assert all(0 <= low <= high <= len(text) for low, high in spans)
