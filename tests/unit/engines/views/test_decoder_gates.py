"""A gate before a decoder is quick, and never closed where its decoder reads something."""

import base64
from collections.abc import Callable, Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engines.views import gates
from app.engines.views.codepoints import codepoints
from app.engines.views.encoded import encoded_runs
from app.engines.views.escaped import escapes
from app.engines.views.pieces import numbers, strings
from app.engines.views.spelled import spelled
from tests.hostile_texts import HOSTILE

DECODERS: dict[str, tuple[str, Callable[[str], Iterable[object]]]] = {
    "escapes": (gates.ESCAPES, escapes),
    "codepoints": (gates.CODEPOINTS, codepoints),
    "encoded": (gates.ENCODED, encoded_runs),
    "spelled": (gates.SPELLED, spelled),
    "strings": (gates.STRINGS, strings),
    "numbers": (gates.NUMBERS, numbers),
}
VALUES = (
    "kim.vega@example.org",
    "4539578763621486",
    "219-09-9999",
    "AKIA5KJ7QWERTZU2MNB3",
    "Ann",
    "at",
    "dot",
    "com",
)
FRAGMENTS = (
    *VALUES,
    *("_at_", " AT ", " at ", " DOT ", "_dot_", "[at]", "(dot)", "example", ".org", "-dot-", "=at=", "@"),
    *("é", "ät", "[ät]", "\u00a0", "–", "·", "\u2003", "ſ", "4·1", "1\u00a02"),
    *("&#64;", "%40", "\\u0040", "\\x40", "=40", "\\40 ", "U+0040", "u0040", "x40", "0x40", "40", "64"),
    *(
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        ", ",
        ",",
        ";",
        "/",
        "|",
        "-",
        "_",
        ".",
        "=",
        '"',
        "'",
        '" + "',
        '", "',
        "[",
        "]",
        "(",
        ")",
    ),
    *(
        "DE89",
        "3704",
        "0440",
        "4",
        "1",
        "12",
        "123",
        "1234",
        "a",
        "B",
        "aB1",
        "Zm9v",
        "YmFy",
        "lower",
        "Word",
        "UPPER",
    ),
)


def ways(value: str) -> Iterator[str]:
    """Yield spellings of a value that a decoder reads."""
    code = base64.b64encode(value.encode()).decode()
    yield "\n> ".join(code[at : at + 8] for at in range(0, len(code), 8))
    yield from (code, code.rstrip("="), " ".join(code[at : at + 4] for at in range(0, len(code), 4)))
    yield from (value.encode().hex(), value.encode().hex(" "), " ".join(str(ord(char)) for char in value))
    yield from (
        " ".join(value),
        "/".join(value),
        '["' + '", "'.join(value) + '"]',
        "[" + "][".join(value) + "]",
    )
    yield from (
        "".join(f"x{ord(char):02x}" for char in value),
        ", ".join(f"0x{ord(char):02X}" for char in value),
    )
    yield "\n".join(value[at : at + 4] for at in range(0, len(value), 4))


def check(text: str) -> None:
    data = text.encode("ascii", "replace")
    shut = {name for name, (gate, _) in DECODERS.items() if not gates.passed(data, gate)}
    decoded = {name: list(decode(text)) for name, (_, decode) in DECODERS.items()}
    with pytest.MonkeyPatch.context() as patched:
        # Decoders have gates of their own before their slow parts.
        patched.setattr(gates, "passed", lambda _data, _gate: True)
        patched.setattr(gates, "place", lambda data, _gate, start=0: start if start < len(data) else -1)
        assert {name: list(decode(text)) for name, (_, decode) in DECODERS.items()} == decoded, text
    assert {name for name in shut if decoded[name]} == set(), text


@pytest.mark.parametrize("text", ["cGxlYXNlIGhlbHAgbWU=", "34353339353738373633363231343836"])
def test_text_encoded_in_letters_alone_or_in_digits_alone_is_read(text: str) -> None:
    assert list(encoded_runs(f"It says {text} there."))
    check(f"It says {text} there.")


PARTS = st.sampled_from([*FRAGMENTS, *(way for value in VALUES for way in ways(value))])


@given(st.lists(PARTS, max_size=24))
def test_no_gate_is_shut_where_its_decoder_reads_something(parts: list[str]) -> None:
    check("".join(parts))


SIGNS = ("@", " at ", "_at_", " _at_ ", " ~=AT-- ", "#*at=", " arroba ", "-_ät__", " ät ", "at ")
HOSTS = ("example.org", "example_dot_org", "a dot b-c =punkt= de", "me.", "at")


@given(st.lists(st.sampled_from(["j.roe", "mail kim", " ", ".", *SIGNS, *HOSTS]), max_size=12))
def test_no_sign_is_passed_over(parts: list[str]) -> None:
    check("".join(parts))


@pytest.mark.parametrize("host", HOSTS[:3])
@pytest.mark.parametrize("sign", SIGNS[1:-1])
def test_every_sign_is_read_behind_others_that_have_no_host(sign: str, host: str) -> None:
    found = list(spelled(f"at at them, {'at ' * 3}arroba j.roe{sign}{host} at last"))
    assert [each.plain for each in found][:1] == ["@"]
    assert len({(each.start, each.end) for each in found}) == len(found)
    assert found == list(dict.fromkeys(found))
    check(f"at j.roe{sign}{host} at last")


def test_no_gate_is_shut_for_a_hostile_text() -> None:
    for written in HOSTILE.values():
        for size in (17, 400):
            check(written(size))


@pytest.mark.parametrize("name", DECODERS)
def test_every_gate_is_shut_for_ordinary_words(name: str) -> None:
    text = "We met the auditors at the library on Thursday; nothing was decided, as usual."
    assert not gates.passed(text.encode(), DECODERS[name][0])


@pytest.mark.parametrize("name", DECODERS)
def test_every_gate_opens_for_something_that_its_decoder_reads(name: str) -> None:
    gate, decode = DECODERS[name]
    written = [way for value in VALUES for way in ways(value)] + [
        "kim_at_example_dot_org",
        "kim&#64;example.org",
    ]
    assert [text for text in written if list(decode(text)) and gates.passed(text.encode(), gate)]
