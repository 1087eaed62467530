"""What makes the scan of ordinary texts cheap never changes what is found in any text."""

import base64
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.contracts.engines import SecretOptions, Span
from app.engines.secrets import scanner
from app.engines.secrets.scanner import RuleScanner
from app.engines.secrets.views import places_of_views
from app.engines.views import gates
from app.engines.views.reading import disguises
from tests.benchmarks.speed.corpora import dense, prose, records
from tests.hostile_texts import HOSTILE

SCANNER = RuleScanner()
VALUES = ("AKIA5KJ7QWERTZU2MNB3", "password=Tr0ub4dor&3x", "postgres://u:s3cretpw@host/db", "kim@example.org")
ORDINARY = (
    "We met the auditors at the library on Thursday; nothing was decided, as usual.",
    "2026-11-01T10:11:00Z",
    "123e4567-e89b-12d3-a456-426614174000",
    '{"score": 0.5406858855321425, "metrics": [6, 1, 3]}',
    "/srv/app/data/version-12",
    "Die Prüfung läuft – für heute – weiter.",
    "open",
    "?",
    "",
)


def ways(value: str) -> Iterator[str]:
    """Yield spellings of a value; the first is the plain one."""
    data = value.encode()
    code = base64.b64encode(data).decode()
    yield from (
        value,
        code,
        code.rstrip("="),
        data.hex(),
        data.hex(" "),
        base64.b64encode(code.encode()).decode(),
    )
    yield from (
        " ".join(code[at : at + 4] for at in range(0, len(code), 4)),
        value[:6] + "\x1b[0m" + value[6:],
    )
    yield from (
        "\n".join(code[at : at + 16] for at in range(0, len(code), 16)),
        value[:9] + "\n> " + value[9:],
    )
    yield from ("".join(f"%{byte:02x}" for byte in data), "".join(f"&#{byte};" for byte in data))
    yield from ("".join(f"\\u{byte:04x}" for byte in data), "".join(f"={byte:02X}" for byte in data))
    yield from (" ".join(map(str, data)), ", ".join(f"0x{byte:02x}" for byte in data), "U+0041" + value)
    yield from ('["' + '", "'.join(value) + '"]', '" + "'.join((value[:5], value[5:])), "\u200b".join(value))
    yield "[" + "][".join(value) + "]"


WRITTEN = [way for value in VALUES for way in ways(value)]
TEXTS = st.lists(st.sampled_from([*WRITTEN, *ORDINARY, " ", "\n", ", ", "key: ", '"']), max_size=6).map(
    "".join
)


def scanned(texts: list[str]) -> list[list[Span]]:
    return SCANNER._scan(texts, SecretOptions())


def scanned_without_gates(texts: list[str]) -> list[list[Span]]:
    """Return the findings where every text is scanned by itself, and no gate stands before a decoder."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(gates, "passed", lambda _data, _gate: True)
        patched.setattr(scanner, "places_of_views", lambda texts: range(len(texts)))
        return [findings for text in texts for findings in scanned([text])]


@settings(deadline=None)  # the first example loads what scans
@given(st.lists(TEXTS, max_size=8))
def test_the_gates_hide_no_finding(texts: list[str]) -> None:
    assert scanned(texts) == scanned_without_gates(texts)


def test_the_gates_hide_no_finding_in_long_and_hostile_texts() -> None:
    texts = [written(size) for written in HOSTILE.values() for size in (17, 400)]
    texts += [make(6_000, 5) + way + make(500, 6) for make in (prose, dense, records) for way in WRITTEN]
    assert scanned(texts) == scanned_without_gates(texts)


def test_every_spelling_of_a_key_is_found_among_other_texts() -> None:
    among = [text for way in ways(VALUES[0]) if not way.startswith("U+") for text in (ORDINARY[0], way, "5")]
    findings = scanned(among)
    assert [bool(spans) for spans in findings] == [bool(number % 3 == 1) for number in range(len(among))]
    assert all(
        0 <= span.start < span.end <= len(text)
        for text, spans in zip(among, findings, strict=True)
        for span in spans
    )


def test_no_text_hides_a_finding_in_the_next_one() -> None:
    for first in WRITTEN:
        texts = [text for way in WRITTEN for text in (first, way)]
        assert scanned(texts) == [findings for text in texts for findings in scanned([text])]


def test_ordinary_texts_are_read_once() -> None:
    texts = [
        "We met on Thursday; nothing was decided.",
        "2026-11-01T10:11:00Z",
        "open",
        "",
        "7",
        "a-1",
        "5.25",
    ]
    assert places_of_views(texts * 50) == set()
    assert places_of_views([prose(40_000, 7, 0)]) == set()


def test_the_texts_with_another_reading_are_named_wherever_they_stand() -> None:
    texts = ["open", "%41%42", "", "café", "a", base64.b64encode(b"hello, world").decode(), "ab\ncd", "x"]
    assert {1, 3, 5, 6} <= places_of_views(texts) <= {0, 1, 2, 3, 4, 5, 6}


CALM_LINE = "GET /items status=200 bytes=4096 ip=10.0.3.7 id=92d051474c10ff03 since=2024-05-06 pid=42\n"
KEY_BODY = "\n".join(base64.b64encode(bytes(range(48))).decode() for _ in range(90))


def found(text: str) -> list[str]:
    [spans] = SCANNER._scan([text], SecretOptions())
    return [text[span.start : span.end] for span in spans]


@pytest.mark.parametrize("way", ["AKIA\\u0035KJ7QWERTZU2MNB3", "AKIA5KJ7QW\nERTZUXMNBH"])
@pytest.mark.parametrize("lines", [0, 3, 40, 2_000])
def test_a_disguised_key_is_found_wherever_it_stands_among_lines_of_a_log(way: str, lines: int) -> None:
    text = CALM_LINE * lines + f"key {way} end\n" + CALM_LINE * lines
    assert found(text) == [way]
    assert found(CALM_LINE * lines) == []


def test_a_long_key_is_found_as_a_whole_if_only_its_first_line_is_disguised() -> None:
    key = f"-----BEGIN&#32;PRIVATE KEY-----\n{KEY_BODY}\n-----END PRIVATE KEY-----"
    assert found(f"before\n{key}\nafter") == [key]


def test_lines_of_a_log_have_no_other_reading() -> None:
    assert disguises(CALM_LINE) == []
    assert places_of_views(["GET /items status=200 bytes=4096 ip=10.0.3.7 pid=42"] * 3) == set()
    assert disguises("kim=40example.org") != [] != disguises("card 4111=1011111111")


@pytest.mark.parametrize("name", ["other", "note"])
def test_a_key_that_is_encoded_twice_is_found_beside_bytes_that_only_look_like_text(name: str) -> None:
    inner = base64.b64encode(VALUES[0].encode()).decode()
    twice = base64.b64encode(f"x {inner} y".encode()).decode()
    members = ", ".join(f'"{name}": "v{number}"' for number in range(400))
    # The dash becomes a plain one in a view of its own.
    foreign = "call – now or then".encode().hex()
    for text in (f'{{"a": "{foreign}", {members}, "b": "{twice}"}}', f'{{"b": "{twice}", {members}}}'):
        assert found(text) == [twice]
