"""N-grams of several texts at once."""

import numpy as np
import pytest

from app.engines.hashing import char_ngrams, char_ngrams_of, word_ngrams, word_ngrams_of

TEXTS = [
    "Good morning, Maria.",
    "",
    "a",
    "Zahlung f\u00e4llig \u65e5\u672c",
    "half \ud800 a character",
    "one two",
]


@pytest.mark.parametrize(
    ("together", "alone"), [(char_ngrams_of, char_ngrams), (word_ngrams_of, word_ngrams)]
)
def test_texts_read_together_have_the_ngrams_that_they_have_alone(together, alone):
    hashes, owners = together(TEXTS, (1, 2, 3))
    for number, text in enumerate(TEXTS):
        assert np.array_equal(hashes[owners == number], alone(text, (1, 2, 3)))


def test_no_texts_have_no_ngrams():
    for read in (char_ngrams_of, word_ngrams_of):
        hashes, owners = read([])
        assert len(hashes) == len(owners) == 0
