"""What a file of checkpoints says, wherever a crash or a full disk cut a line off."""

import json

import pytest

from app.engines.anchors.file import checkpoints_in

NOTES = [
    "sluice/ab\n3\ncm9vdA==\n\n\u2014 sluice/ab c2lnbmF0dXJl\n",
    "sluice/ab\n4\nb3RoZXI=\n\n\u2014 sluice/ab bW9yZQ==\n",
]
LINES = [
    json.dumps({"at": "2026-11-23T12:00:00+00:00", "checkpoint": note}, ensure_ascii=False) for note in NOTES
]


def test_a_line_that_was_cut_off_anywhere_is_no_checkpoint_and_no_finding():
    for end in range(1, len(LINES[0])):
        assert checkpoints_in(f"{LINES[0]}\n{LINES[0][:end]}\n{LINES[1]}\n") == NOTES, end
        assert checkpoints_in(f"{LINES[0]}\n{LINES[0][:end]}") == NOTES[:1], end


@pytest.mark.parametrize(
    "written",
    ["no line of it", LINES[1][1:], LINES[1].replace('"checkpoint"', '"checkpoin"'), '{"at": "2026"}', "[1]"],
)
def test_what_nobody_cut_off_is_handed_to_the_verifier_who_names_it(written):
    assert checkpoints_in(f"{LINES[0]}\n{written}\n{LINES[1]}\n") == [NOTES[0], written, NOTES[1]]
