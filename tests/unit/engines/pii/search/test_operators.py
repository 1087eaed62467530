"""Mask, hash and remove through Presidio's operators."""

import pytest

from app.engines.pii.search.operators import MODES, apply_operator

KEY = b"k" * 32


def test_mask_hides_every_character() -> None:
    assert apply_operator("mask", "123-45-6789", "SSN") == "*" * 11
    assert apply_operator("mask", "", "SSN") == ""


def test_remove_leaves_nothing() -> None:
    assert apply_operator("remove", "123-45-6789", "SSN") == ""


def test_a_hash_is_stable_keyed_and_separate_by_label() -> None:
    once = apply_operator("hash", "123-45-6789", "SSN", KEY)
    assert once == apply_operator("hash", "123-45-6789", "SSN", KEY)
    assert once.startswith("<SSN:")
    assert "6789" not in once
    assert once != apply_operator("hash", "123-45-6789", "SSN", b"j" * 32)
    assert once[5:] != apply_operator("hash", "123-45-6789", "TIN", KEY)[5:]
    assert apply_operator("hash", "\ud800", "SSN", KEY)


@pytest.mark.parametrize("key", [None, b"", b"short"])
def test_a_hash_without_a_real_key_is_refused(key: bytes | None) -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        apply_operator("hash", "x", "SSN", key)


def test_other_modes_are_refused() -> None:
    assert {"mask", "hash", "remove"} == MODES
    with pytest.raises(ValueError, match="unknown"):
        apply_operator("handle", "x", "SSN", KEY)
