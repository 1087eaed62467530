"""Signed notes and checkpoints against vectors computed elsewhere and the examples of the text."""

import json
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from app.core.transparency.notes import (
    COSIGNATURE,
    ED25519,
    MOST_SIGNATURES,
    Checkpoint,
    Note,
    NoteError,
    VerifierKey,
    cosigned,
    cosigned_message,
)

VECTORS = json.loads((Path(__file__).parent / "checkpoint-vectors.json").read_text("utf-8"))
LOG, WITNESS = VECTORS["log"], VECTORS["witness"]
LOG_KEY, WITNESS_KEY = VerifierKey.parse(LOG["vkey"]), VerifierKey.parse(WITNESS["vkey"])
EXAMPLE_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
EXAMPLE = (
    "This is an example message.\n\n"
    "— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
)


def check_with(key):
    def check(message, signature):
        try:
            Ed25519PublicKey.from_public_bytes(key.public).verify(signature, message)
        except InvalidSignature:
            return False
        return True

    return check


def signer(seed):
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(seed)).sign


def test_the_example_of_the_text_is_signed_by_its_key():
    key = VerifierKey.parse(EXAMPLE_KEY)
    note = Note.parse(EXAMPLE)
    assert note.text == "This is an example message.\n"
    assert note.is_signed(key, check_with(key))
    assert str(note) == EXAMPLE
    assert str(key) == EXAMPLE_KEY
    changed = Note("This is another message.\n", note.signatures)
    assert not changed.is_signed(key, check_with(key))
    assert not note.is_signed(LOG_KEY, check_with(LOG_KEY))


def test_keys_are_written_as_the_vectors_say():
    log_key = VerifierKey(LOG["origin"], ED25519, bytes.fromhex(LOG["public_key_hex"]))
    assert (str(log_key), log_key.id.hex()) == (LOG["vkey"], LOG["key_id_hex"])
    witness_key = VerifierKey(WITNESS["name"], COSIGNATURE, bytes.fromhex(WITNESS["public_key_hex"]))
    assert (str(witness_key), witness_key.id.hex()) == (WITNESS["vkey"], WITNESS["key_id_hex"])


def test_a_checkpoint_is_signed_and_cosigned_as_the_vectors_say():
    head = Checkpoint.parse(VECTORS["checkpoint_note"])
    assert (head.origin, head.size, head.text()) == (LOG["origin"], 8, VECTORS["checkpoint_note"])
    signed = Note(head.text()).signed(LOG_KEY, signer(LOG["seed_hex"]))
    assert str(signed) == VECTORS["checkpoint_signed"]
    moment = WITNESS["timestamp"]
    assert cosigned_message(head.text(), moment).decode() == VECTORS["cosigned_message"]
    made = cosigned(signed, WITNESS_KEY, signer(WITNESS["seed_hex"]), moment)
    both = Note(signed.text, (*signed.signatures, made))
    assert str(both) == VECTORS["checkpoint_cosigned"]
    assert Note.parse(str(both)).cosigned_at(WITNESS_KEY, check_with(WITNESS_KEY)) == moment


def test_a_cosignature_of_another_time_or_text_does_not_count():
    note = Note.parse(VECTORS["checkpoint_cosigned"])
    own, witnessed = note.signatures
    moved = bytes(7) + b"\x01" + witnessed.signature[8:]
    for forged in (
        Note(note.text, (own, witnessed._replace(signature=moved))),
        Note(note.text.replace("\n8\n", "\n9\n"), note.signatures),
        Note(note.text, (own,)),
    ):
        assert forged.cosigned_at(WITNESS_KEY, check_with(WITNESS_KEY)) is None


def test_a_wrong_signature_of_a_trusted_key_spoils_a_right_one():
    note = Note.parse(VECTORS["checkpoint_signed"])
    (right,) = note.signatures
    wrong = right._replace(signature=bytes(64))
    assert note.is_signed(LOG_KEY, check_with(LOG_KEY))
    assert not Note(note.text, (right, wrong)).is_signed(LOG_KEY, check_with(LOG_KEY))


def test_a_text_with_empty_lines_ends_at_the_last_of_them():
    text = "Ognuno sta solo\n\ned è subito sera.\n"
    note = Note(text).signed(LOG_KEY, signer(LOG["seed_hex"]))
    assert Note.parse(str(note)).text == text


@pytest.mark.parametrize(
    ("whole", "reason"),
    [
        ("no signature\n", "empty line"),
        ("text\n\n— name AAAAAAAA", "newline"),
        ("text\n\n- name AAAAAAAA\n", "signature line"),
        ("text\n\n— AAAAAAAA\n", "signature line"),
        ("text\n\n— name AAAA\n", "signature line"),
        ("text\n\n— name AAAAAA==\n", "signature line"),
        ("text\n\n— name !!!!\n", "base64"),
        ("text\t\n\n— name AAAAAAAA\n", "control"),
        ("text\n\n" + "— name AAAAAAAA\n" * (MOST_SIGNATURES + 1), "at most"),
    ],
)
def test_what_is_no_note_is_refused(whole, reason):
    with pytest.raises(NoteError, match=reason):
        Note.parse(whole)


@pytest.mark.parametrize(
    "text",
    [
        "origin\n8\n",
        "origin\n08\nAA==\n",
        "origin\n+8\nAA==\n",
        "origin\n8\nAA==\n",
        "\n8\nAA==\n",
        "origin\n8\n!\n",
    ],
)
def test_what_is_no_checkpoint_is_refused(text):
    with pytest.raises(NoteError):
        Checkpoint.parse(text)


def test_lines_that_extend_a_checkpoint_are_left_out():
    assert Checkpoint.parse(VECTORS["checkpoint_note"] + "an extension\n").size == 8


@pytest.mark.parametrize(
    "text",
    ["example.com/foo+00000000+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k", "no key", "a b+00000000+AA=="],
)
def test_a_verifier_key_that_does_not_fit_itself_is_refused(text):
    with pytest.raises(NoteError):
        VerifierKey.parse(text)
