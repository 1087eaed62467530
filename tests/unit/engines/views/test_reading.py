"""What is encoded is read wherever it stands, however long the text around it; what only looks so is left alone."""

import base64
import random
from urllib.parse import quote

import pytest

from app.engines.views.reading import readings
from tests.proportion import assert_in_proportion

FILLER = "several words that say nothing stand here, line by line\n" * 400
VALUE = "write to john.smith@example.com today"


def wrapped(times: int) -> str:
    """Return the value in base64, that many times over itself, with the padding escaped as in an address."""
    value = VALUE
    for _ in range(times):
        value = base64.b64encode(value.encode()).decode()
    return quote(value)


def shown(text: str) -> list[str]:
    return [view.text for view in readings(text).views]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_what_is_encoded_several_times_is_read_in_a_long_text_as_in_a_short_one(times: int) -> None:
    short = f"see {wrapped(times)} now"
    assert VALUE in shown(short)[-1]
    assert shown(f"{FILLER}{short}\n{FILLER}") == [f"{FILLER}{view}\n{FILLER}" for view in shown(short)]


def test_several_places_of_a_long_text_are_read_to_the_end() -> None:
    text = FILLER.join(f"see {wrapped(times)} now" for times in (3, 1, 2, 0, 3))
    assert shown(text)[-1].count(VALUE) == text.count("see ")


def test_what_is_wrapped_once_too_often_is_sealed_in_a_long_text_too() -> None:
    short = f"see {wrapped(4)} now"
    (low, high), *more = readings(short).sealed
    assert readings(FILLER + short + FILLER).sealed == [(len(FILLER) + low, len(FILLER) + high)]
    assert not more


@pytest.mark.parametrize(
    "sign", ["[at]", "(AT)", "{ät}", "<@>", "[snabel]", "( klammeraffe )", "[a commercial]"]
)
def test_an_address_spelled_out_is_read_whatever_else_the_text_holds(sign: str) -> None:
    assert shown(f"Write to john.smith {sign} example.com") == ["Write to john.smith@example.com"]


@pytest.mark.parametrize(
    "run",
    [
        base64.b64encode(b"john.smith@example.com").decode(),
        base64.urlsafe_b64encode("Grüße: zoe?>@x.de".encode()).decode().rstrip("="),
        base64.b64encode(b"a@bcd.de").decode(),
        b"john@example.com".hex(),
        b"john@example.com".hex().upper(),
        "0x" + b"john@example.com".hex(),
    ],
)
@pytest.mark.parametrize("frame", ["{}", "{} x", "x {}", "/path/{}/x", "é {}", '"{}"'])
def test_an_encoded_run_is_read_wherever_it_stands(run: str, frame: str) -> None:
    assert any("@" in view for view in shown(frame.format(run)))


@pytest.mark.parametrize(
    "run",
    [
        "f2803e7e-637a-44e1-a207-26639d5e7e1b",
        "2018-08-02T03:16:02Z",
        "0.5616996995517071",
        "src/components/understanding",
        "Internationalization",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "----------------------------",
        "THE_QUICK_BROWN_FOX",
    ],
)
def test_identifiers_times_hashes_and_words_are_no_encoded_text(run: str) -> None:
    assert shown(f"see {run} now") == []


def test_lines_of_base64_are_one_text_also_behind_a_line_that_is_none() -> None:
    mail = base64.encodebytes(f"{'-' * 40} {VALUE} {VALUE} {'-' * 40}".encode()).decode()
    digest = "0123456789ABCDEF+/zy" * 4
    assert any(VALUE in view for view in shown(f"{digest[:76]}\n{mail}"))


def test_an_image_in_a_mail_does_not_keep_the_reader_busy() -> None:
    """Each line was once taken for the first of all that follow."""
    noise = random.Random(1).randbytes(300_000)

    def read(size: int) -> None:
        mail = base64.encodebytes(noise[:size]).decode()
        assert shown(f"Content-Transfer-Encoding: base64\n\n{mail}\n") == []

    assert_in_proportion(read, 75_000, 300_000)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("no NTU1NTU1NTU1NTU1NDQ0NA== here", "no  5555555555554444  here"),
        ("R0Iy OU5X Qks2 MDE2 MTMz MTky Njgx OQ==", " GB29NWBK60161331926819 "),
        ("- item 3\n- Mzcx NDQ5 NjM1 Mzk4 NDMx\n- item 4", "- item 3\n-  371449635398431 \n- item 4"),
        ("no 52 49 49 49 49 49 49 49 here", "no 41111111 here"),
        ("no 72 65 71 75 65 73 74 21 here", "no request! here"),
        ('["n", "o", " ", "4", "1", "1"]', "[no 411]"),
    ],
)
def test_what_is_written_with_few_kinds_of_characters_is_read(text: str, seen: str) -> None:
    assert shown(text)[0] == seen


@pytest.mark.parametrize(
    "text", ["ORDER7H2K9QX4M1P== here", "INV20240115ABCDEF in 2024", "52 49 12 07 49 49 49 49"]
)
def test_what_only_looks_written_so_is_left_alone(text: str) -> None:
    assert shown(text) == []


@pytest.mark.parametrize("size", [3, 4, 5, 6, 8])
def test_base64_with_blanks_is_read_whatever_its_letters(size: int) -> None:
    draw = random.Random(size)
    signs = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@ "
    texts = (
        "{}",
        "my value {} here it is now",
        "- item 3\n- {}\n- item 4",
        "that this code {} with that what this",
    )
    lost = 0
    for number in range(200):
        value = "x".join(("".join(draw.choices(signs, k=draw.randint(24, 60))), ""))
        code = base64.b64encode(value.encode()).decode()
        spaced = " ".join(code[start : start + size] for start in range(0, len(code), size))
        seen = shown(texts[number % len(texts)].format(spaced))
        lost += not any(value[:-8] in view for view in seen)
    assert lost <= 4  # a short rest, or a row of tokens all of which may be words
