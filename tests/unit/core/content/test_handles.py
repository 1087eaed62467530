"""Handles are recognised as models spell them, put back in one pass, and never inside URLs unless asked."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.content.handles import (
    Handle,
    Original,
    StreamingRestoration,
    StreamScanner,
    find_handles,
    restore_text,
)
from tests.sampling import examples

JANE = {Handle("PERSON", 1): Original("Jane Smith"), Handle("EMAIL", 1): Original("jane@example.com")}


@pytest.mark.parametrize(
    "spelling",
    [
        "[PERSON_1]",
        "PERSON_1",
        "Person_1",
        "[person_1]",
        "[Person_1]",
        "(PERSON_1)",
        "{PERSON_1}",
        "<PERSON_1>",
        r"[PERSON\_1]",
        r"PERSON\_1",
        r"\[PERSON\_1\]",
        r"\[PERSON_1\]",
        "[ PERSON_1 ]",
        "[PERSON 1]",
        "[PERSON-1]",
        "[`PERSON_1`]",
    ],
)
def test_spellings_that_models_make_are_restored(spelling: str) -> None:
    assert restore_text(f"Dear {spelling}, hello", JANE) == "Dear Jane Smith, hello"


@pytest.mark.parametrize(
    "text",
    [
        "PERSON_10",
        "XPERSON_1",
        "PERSON_1_2",
        "PERSON_12",
        "[PERSON_01]",
        "person_1",
        "[PERSONS_1]",
        "PERSON_1x",
    ],
)
def test_a_handle_never_matches_inside_another_word(text: str) -> None:
    assert restore_text(text, JANE) == text


def test_backticks_and_stars_around_a_handle_stay() -> None:
    assert restore_text("`[PERSON_1]` **PERSON_1**", JANE) == "`Jane Smith` **Jane Smith**"


def test_exact_takes_only_the_canonical_spelling() -> None:
    text = "[PERSON_1] PERSON_1 [person_1]"
    assert restore_text(text, JANE, exact=True) == "Jane Smith PERSON_1 [person_1]"


def test_inserted_values_are_never_scanned_again() -> None:
    originals = {Handle("PERSON", 1): Original("[EMAIL_1]"), Handle("EMAIL", 1): Original("secret")}
    assert restore_text("[PERSON_1]", originals) == "[EMAIL_1]"


def test_unknown_handles_stay_verbatim_and_are_counted() -> None:
    stream = StreamingRestoration(JANE.get)
    assert stream.feed("[SSN_9] and [PERSON_1]") + stream.finish() == "[SSN_9] and Jane Smith"
    assert (stream.restored, stream.unresolved) == (1, 1)


@pytest.mark.parametrize(
    "text",
    [
        "https://evil.example/?q=[EMAIL_1]",
        "see http://evil.example/[EMAIL_1]/x",
        "www.evil.example/[EMAIL_1]",
        "evil.example/collect?[EMAIL_1]",
        "![x](https://evil.example/[EMAIL_1])",
        "[click]( /relative/[EMAIL_1] )",
        '<img src="https://evil.example/[EMAIL_1]">',
        "<a title='[EMAIL_1]'>",
        "mailto:[EMAIL_1]",
        "data:text/html,[EMAIL_1]",
        "//evil.example/[EMAIL_1]",
    ],
)
def test_safe_positions_keep_originals_out_of_links_and_tags(text: str) -> None:
    assert restore_text(text, JANE, safe_positions=True) == text
    assert "jane@example.com" in restore_text(text, JANE)


@pytest.mark.parametrize(
    "text",
    ["Write to [EMAIL_1].", "(see [EMAIL_1])", "a < b, [EMAIL_1]", "E-mail:[EMAIL_1]", "[x](y) [EMAIL_1]"],
)
def test_safe_positions_restore_ordinary_text(text: str) -> None:
    assert "jane@example.com" in restore_text(text, JANE, safe_positions=True)


FRAGMENTS = st.sampled_from(
    [
        *(
            "[PERSON_1]",
            "PERSON_1",
            "[person 1]",
            "(EMAIL_1)",
            r"\[PERSON\_1\]",
            "[EMAIL_1~abcd]",
            "[LITERAL_3]",
        ),
        *(
            "[",
            "]",
            "(",
            "<",
            "PER",
            "SON_",
            "_1",
            "1",
            "\\",
            "`",
            " ",
            "Person",
            "https://a.b/",
            "](",
            "<a ",
            ">",
        ),
    ]
)
TEXTS = st.lists(FRAGMENTS | st.text(max_size=4), max_size=14).map("".join)


@settings(max_examples=examples(2_000, 150), deadline=None)
@given(TEXTS, st.data(), st.booleans(), st.booleans())
def test_any_chunking_gives_the_same_text(text: str, data: st.DataObject, exact: bool, safe: bool) -> None:
    whole = restore_text(text, JANE, exact=exact, safe_positions=safe)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    stream = StreamingRestoration(JANE.get, exact=exact, safe_positions=safe)
    chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert "".join(map(stream.feed, chunks)) + stream.finish() == whole


@settings(max_examples=examples(500, 100), deadline=None)
@given(TEXTS)
def test_one_character_at_a_time_gives_the_same_text(text: str) -> None:
    stream = StreamingRestoration(JANE.get)
    assert "".join(map(stream.feed, text)) + stream.finish() == restore_text(text, JANE)


@pytest.mark.parametrize(
    "text", ["Hello there", "the quick (brown", "a [see below", "x < y", "3 * (4", "[1, 2"]
)
def test_only_an_open_handle_is_held_back(text: str) -> None:
    scanner = StreamScanner()
    assert "".join(piece for piece, _, _ in scanner.feed(text)) == text


@pytest.mark.parametrize(
    "held", ["[", "[PER", "[PERSON_1", "PERSON_1", "PERS", r"\[PERSON", "(PERSON_", "[person 1"]
)
def test_an_open_handle_is_held_back_until_it_is_settled(held: str) -> None:
    scanner = StreamScanner()
    assert "".join(piece for piece, _, _ in scanner.feed("Hi " + held)) == "Hi "
    assert "".join(piece for piece, _, _ in scanner.finish()) == held


@settings(max_examples=300, deadline=None)
@given(st.text(), st.text() | st.none(), st.integers(1, 8))
def test_an_original_survives_its_encoding(text: str, spelling: str | None, depth: int) -> None:
    original = Original(text, spelling, depth if spelling is not None else 0)
    assert Original.decode(original.encode()) == original


def test_originals_that_differ_in_bytes_encode_differently() -> None:
    forms = [Original("é"), Original("e\u0301"), Original("é", "\\u00e9", 1), Original("é", "\\u00e9", 2)]
    assert len({form.encode() for form in forms}) == len(forms)


def test_a_handle_is_written_and_parsed_the_same() -> None:
    for handle in (Handle("PERSON", 1), Handle("SECRET_AWS", 12), Handle("EMAIL", 3, "k3fq")):
        assert Handle.parse(str(handle)) == Handle.parse(handle.name) == handle
        assert [match.handle for match in find_handles(str(handle))] == [handle]
    assert Handle.parse("no handle") is None


SECRETS = {Handle("SECRET_AWS", 1): Original("k1"), Handle("SECRET_PRIVATE_KEY", 2): Original("k2")}


@pytest.mark.parametrize(
    "spelling",
    [
        *(
            "[SECRET_AWS_1]",
            "SECRET_AWS_1",
            "Secret_Aws_1",
            "[secret_aws_1]",
            "(SECRET_AWS_1)",
            "[SECRET AWS 1]",
        ),
        *(r"[SECRET\_AWS\_1]", r"SECRET\_AWS\_1", r"\[SECRET\_AWS\_1\]"),
    ],
)
def test_altered_spellings_of_secrets_handles_are_restored_whole_and_streaming(spelling: str) -> None:
    for text, kept in ((spelling, "k1"), (spelling.replace("_1", "_2").replace(" 1", " 2"), None)):
        stream = StreamingRestoration(SECRETS.get)
        streamed = "".join(map(stream.feed, f"a {text} b")) + stream.finish()
        assert streamed == restore_text(f"a {text} b", SECRETS) == f"a {kept or text} b"
    private = (
        spelling.replace("AWS", "PRIVATE_KEY").replace("Aws", "Private_Key").replace("aws", "private_key")
    )
    private = private.replace("1", "2")
    assert restore_text(private, SECRETS) == "k2"


def test_half_of_a_surrogate_pair_is_shown_as_a_replacement_character() -> None:
    stream = StreamingRestoration({Handle("PERSON", 1): Original("Jane \ud83d")}.get)
    assert stream.feed("I am [PERSON_1].") + stream.finish() == "I am Jane \ufffd."
