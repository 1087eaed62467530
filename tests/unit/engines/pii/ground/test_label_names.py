"""Types are chosen by their public labels or by Presidio's own names."""

from app.engines.pii.ground.labels import LABELS, RULES, label_of


def test_every_label_and_every_type_of_presidio_is_known() -> None:
    assert all(label_of(label) == label for label in LABELS)
    assert all(label_of(name) == (name if name in LABELS else rule.label) for name, rule in RULES.items())
    assert label_of("EMAIL_ADDRESS") == "EMAIL"
    assert label_of("US_SSN") == "SSN"


def test_an_unknown_name_is_not_guessed() -> None:
    assert label_of("SHOE_SIZE") is None
