"""Names of members are read as words, and those that say what a value is are told from all others."""

import pytest

from app.core.content.telling_names import cue_of, names_words, telling, words_of
from tests.pii_member_names import TELLING


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("dateOfBirth", "date of birth"),
        ("date_of-birth", "date of birth"),
        ("Date of birth?", "date of birth"),
        ("patientID", "patient id"),
        ("SSNNumber", "ssn number"),
        ("HTTPServer2Name", "http server2 name"),
        ("d.o.b", "dob"),
        ("driver's license", "drivers license"),
        ("d'identité", "d identité"),
        ("x", "x"),
        ("", ""),
        ("__", ""),
    ],
)
def test_a_name_is_read_as_words(name: str, words: str) -> None:
    assert words_of(name) == words


@pytest.mark.parametrize(
    "name", [*TELLING, "phones", "PASSPORTNUMBER", "teléfono", "マイナンバー", "prénom", "Straße"]
)
def test_a_usual_name_of_personal_data_tells_something(name: str) -> None:
    assert telling(name)
    assert telling(name.upper() if "_" in name else f"x_{name}")


@pytest.mark.parametrize(
    "name",
    [
        *(
            "id",
            "name",
            "number",
            "date",
            "created_at",
            "status",
            "state",
            "price",
            "order_number",
            "sku",
            "count",
        ),
        *("url", "version", "description", "uuid", "timestamp", "", "🙂", "a" * 65, "dob " * 9),
    ],
)
def test_an_ordinary_name_tells_nothing(name: str) -> None:
    assert telling(name) == ""


def test_a_name_is_spelled_as_detectors_know_it() -> None:
    assert [telling(name) for name in ("contrasena", "PRENOM", "ein", "cardNumber")] == [
        "contraseña",
        "prénom",
        "tax id",
        "card number",
    ]


@pytest.mark.parametrize(
    ("steps", "cue"),
    [
        (["0", "input", "dob"], "dob"),
        (["0", "input", "phones", "12"], "phones"),
        (["passport", "number"], "passport number"),
        (["order", "number"], ""),
        (["patient", "id"], "patient id"),
        (["patients", "3", "id"], ""),
        (["user", "id"], ""),
        (["account", "id"], ""),
        (["ssn", "value"], "ssn"),
        (["name", "0", "given", "1"], "given name"),
        (["position", "first"], "first"),
        (["date"], ""),
        (["birth", "date"], "birth date"),
        (["0", "1"], ""),
        ([], ""),
    ],
)
def test_a_name_that_says_nothing_alone_is_read_with_the_one_around_it(steps: list[str], cue: str) -> None:
    assert cue_of(steps) == cue


@pytest.mark.parametrize(
    ("cue", "words"), [("first name", True), ("bic", True), ("dob", False), ("生年月日", True)]
)
def test_only_values_of_some_names_may_be_words(cue: str, words: bool) -> None:
    assert names_words(cue) is words
