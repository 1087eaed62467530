"""The embedded judge: its features, its weights and how they are made."""

import asyncio
import hashlib
import json
import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import app.engines.grounding
from app.core.contracts.engines import Claim
from app.engines.grounding.evidence import Evidence
from app.engines.grounding.features import NAMES, features_of
from app.engines.grounding.judge import LexicalJudge, Weights
from app.engines.grounding.stemming import stem
from app.engines.grounding.training.sets import Example, TrainingSet
from app.engines.grounding.training.train import fitted, write
from app.engines.grounding.words import sentences_of, words_of

WEIGHTS = Path(app.engines.grounding.__file__).with_name("weights")
SOURCE = "The museum was founded in 1887 and shows 300 paintings. It is not open on Mondays."


def features(claim, *evidence):
    return dict(zip(NAMES, features_of(claim, Evidence(evidence)), strict=True))


@pytest.mark.parametrize(
    ("word", "root"),
    [
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("agreed", "agre"),
        ("hopping", "hop"),
        ("filing", "file"),
        ("relational", "relat"),
        ("vietnamization", "vietnam"),
        ("sensitivity", "sensit"),
        ("adjustable", "adjust"),
        ("controll", "control"),
        ("sky", "sky"),
        ("n't", "n't"),
        ("1887", "1887"),
        ("caf\u00e9", "caf\u00e9"),
    ],
)
def test_stems_are_porters(word, root):
    assert stem(word) == root


def test_sentences_end_where_readers_end_them():
    text = "Dr. J. Smith paid $1.50 e.g. for tea. Did he? Yes!\n- One item\n\nThe U.S. team won."
    assert [text[start:end] for start, end in sentences_of(text)] == [
        "Dr. J. Smith paid $1.50 e.g. for tea.",
        "Did he?",
        "Yes!",
        "- One item",
        "The U.S. team won.",
    ]


def test_a_contraction_denies():
    assert [word.stem for word in words_of("don't can\u2019t it's")] == ["do", "n't", "can", "n't", "it"]


def test_features_say_what_differs():
    same = features("The museum was founded in 1887.", SOURCE)
    assert set(same.values()) == {0.0}
    other = features("The museum was founded in 1878.", SOURCE)
    assert (other["new_number"], other["new_words"], other["far_content"]) == (1.0, 1 / 6, 1 / 3)
    assert features("It is never open on Sundays.", "It opens on Sundays.")["adds_negation"] == 1.0
    assert features("It never opens on Sundays.", "It is never open on Sundays.")["adds_negation"] == 0.0
    assert features("The wall is low.", "The wall is high.")["opposite"] == 1.0
    assert features("It was painted by Claude Monet.", SOURCE)["new_names"] == 1.0
    assert set(features("", SOURCE).values()) == {0.0}


def test_a_word_of_the_same_family_is_no_new_content():
    assert features("The museum is a foundation.", SOURCE)["far_content"] == 0.0
    assert features("The museum is a factory.", SOURCE)["far_content"] == 0.5


def test_sentences_count_by_their_words_not_by_their_number():
    both = features("The museum was founded in 1887. Elephants sing loudly.", SOURCE)
    assert both["new_words"] == 3 / 9
    again = features("The museum was founded in 1887. Elephants sing loudly. " * 4, SOURCE)
    assert again == pytest.approx(both)


def test_what_the_evidence_says_in_the_first_person_is_no_talk():
    said = features("I love my garden, do you?", "I love my garden, she said. Do you?")
    own = features("I love my garden, do you?", SOURCE)
    assert (said["personal"], said["first_person"], said["asks"]) == (0.0, 0.0, 0.0)
    assert own["personal"] > 0 and (own["first_person"], own["asks"]) == (1.0, 1.0)


def test_new_is_what_the_whole_evidence_lacks_and_far_what_its_nearest_parts_lack():
    sentences = [
        f"In {1600 + year} the town built a {word} and a road near the river."
        for year, word in enumerate(WORDS)
    ]
    claim = "In 1600 the town built a lighthouse and a windmill and a granary and a chapel near the river."
    found = features(claim, " ".join(sentences))
    assert found["new_words"] == 0.0
    assert found["far_words"] > 0.0 and found["far_content"] > 0.0


WORDS = (
    *(
        "lighthouse",
        "bridge",
        "windmill",
        "school",
        "granary",
        "market",
        "chapel",
        "prison",
        "harbour",
        "mint",
    ),
    *(
        "theatre",
        "library",
        "hospital",
        "museum",
        "station",
        "stadium",
        "fountain",
        "archive",
        "brewery",
        "forge",
    ),
)


async def test_less_support_never_lowers_the_score():
    judge = LexicalJudge()
    source = " ".join(
        f"The {one} of the town was built beside the old {other}." for one, other in pairwise(WORDS)
    )
    draw = random.Random(11)
    for length in (1, 4, len(WORDS) - 1):
        evidence = " ".join(source.split(". ")[:length])
        said = evidence.split()[: draw.randint(6, 20)]
        before = 0.0
        for place in draw.sample(range(len(said)), len(said)):
            said[place] = f"{draw.choice(('zor', 'Mel', '91'))}{place}"
            [score] = (await judge.judge([Claim(" ".join(said), (evidence,))])).scores
            assert score >= before - 0.02
            before = max(before, score)
        assert before > 0.95


async def test_who_says_it_does_not_make_a_short_statement_unsupported():
    judge = LexicalJudge()
    texts = ["You said: The team has 14 engineers.", "You said: The crew lost 41 lawyers."]
    true, false = (
        await judge.judge([Claim(text, ("The team of Jane has 14 engineers.",)) for text in texts])
    ).scores
    assert true < 0.5 < false


async def test_a_longer_summary_of_the_same_words_is_supported_as_well():
    judge = LexicalJudge()
    sentences = [f"The {one} was built beside the old {other}." for one, other in pairwise(WORDS)]
    texts = [" ".join(sentences[:count]) for count in (1, 3, 12)]
    scores = (await judge.judge([Claim(text, (" ".join(sentences),)) for text in texts])).scores
    assert max(scores) - min(scores) < 0.01
    assert max(scores) < 0.1


async def test_turning_a_sentence_round_raises_its_score():
    judge = LexicalJudge()
    claims = [
        "The museum was founded in 1887 and shows 300 paintings.",
        "The museum was founded in 1987 and shows 300 paintings.",
        "The museum was burnt down in 1887 and sold 300 horses.",
    ]
    scores = (await judge.judge([Claim(text, (SOURCE,)) for text in claims])).scores
    assert scores == sorted(scores)
    assert scores[0] < 0.2


async def test_distant_evidence_does_not_hide_the_sentence_that_supports():
    judge = LexicalJudge()
    shuffle = random.Random(7)
    words = ["lamp", "river", "stone", "window", "garden", "paper", "train", "coffee", "market", "winter"]
    noise = [" ".join(shuffle.choices(words, k=12)).capitalize() + "." for _ in range(300)]
    claim = "The museum was founded in 1887 and shows 300 paintings."
    near, far = (
        await judge.judge(
            [Claim(claim, (SOURCE,)), Claim(claim, (" ".join([*noise[:150], SOURCE, *noise[150:]]),))]
        )
    ).scores
    assert far < 0.3
    assert abs(near - far) < 0.3


def test_the_weights_are_those_of_the_manifest():
    manifest = json.loads((WEIGHTS / "manifest.json").read_text(encoding="utf-8"))
    assert set(manifest) == {path.name for path in WEIGHTS.iterdir()} - {"manifest.json"}
    for name, entry in manifest.items():
        raw = (WEIGHTS / name).read_bytes()
        assert (hashlib.sha256(raw).hexdigest(), len(raw)) == (entry["sha256"], entry["bytes"])
        assert entry["licence"]
        assert all({"name", "sha256", "licence", "url"} <= set(data) for data in entry["data"])
        assert (WEIGHTS.parents[3] / entry["recipe"] / "README.md").is_file()


def made_up_sets():
    draw = random.Random(3)
    words = ["red", "green", "blue", "cat", "dog", "sun", "moon", "tree", "house", "road"]
    examples = []
    for number in range(60):
        context = f"The {' '.join(draw.choices(words, k=9))} was seen in {1900 + number}."
        lie = f"A {' '.join(draw.choices(words, k=3))} I think was never there!"
        examples.append(Example(context if number % 2 else lie, context, number % 2 == 0))
    source = {"name": "made up", "sha256": "0", "licence": "CC0", "url": "https://example.org"}
    return [TrainingSet(2.0, examples[:40], source), TrainingSet(1.0, examples[40:], source)]


def test_the_recipe_gives_the_same_bytes_twice(tmp_path):
    made = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        write(made_up_sets(), folder)
        made.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert made[0] == made[1]
    assert set(made[0]) == {"judge.json", "manifest.json"}
    assert [data["name"] for data in json.loads(made[0]["manifest.json"])["judge.json"]["data"]] == [
        "made up"
    ]
    assert min(json.loads(made[0]["judge.json"])["weights"]) >= 0
    judge = LexicalJudge(tmp_path / "one" / "judge.json")
    context = made_up_sets()[0].examples[1].context
    scores = asyncio.run(
        judge.judge([Claim(context, (context,)), Claim("I think never!", (context,))])
    ).scores
    assert scores[0] < 0.5 < scores[1]


def test_a_feature_that_points_the_wrong_way_gets_no_weight():
    draw = np.random.default_rng(5)
    labels = draw.integers(0, 2, 400).astype(float)
    right = labels + draw.normal(size=400)
    found = fitted(np.column_stack([right, -right, np.ones(400)]), labels, np.ones(400), 2)
    assert found[0] > 0.5 and found[1] == 0.0
    free = fitted(np.column_stack([-right, np.ones(400)]), labels, np.ones(400), 0)
    assert free[0] == pytest.approx(-found[0], abs=0.1)


def test_a_feature_that_helps_only_against_its_direction_gets_no_weight():
    draw = np.random.default_rng(6)
    common, own, noise = draw.normal(size=(3, 2_000))
    columns = np.column_stack([common + own, common, np.ones(2_000)])
    labels = (own + 0.2 * common + noise > 0).astype(float)
    # Alone the second column goes with the labels; beside the first it would get a negative weight.
    free = fitted(columns, labels, np.ones(2_000), 0)
    found = fitted(columns, labels, np.ones(2_000), 2)
    assert free[1] < -1.0
    assert found[0] > 0.5 and found[1] == 0.0


def test_weights_of_other_features_are_refused(tmp_path):
    path = tmp_path / "judge.json"
    given = json.loads((WEIGHTS / "judge.json").read_text(encoding="utf-8"))
    path.write_text(json.dumps(given | {"features": given["features"][1:]}), encoding="utf-8")
    with pytest.raises(ValueError, match="train them again"):
        Weights.read(path)


def test_a_weight_that_would_let_support_raise_a_score_is_refused(tmp_path):
    path = tmp_path / "judge.json"
    given = json.loads((WEIGHTS / "judge.json").read_text(encoding="utf-8"))
    path.write_text(json.dumps(given | {"weights": [-0.1, *given["weights"][1:]]}), encoding="utf-8")
    with pytest.raises(ValueError, match="negative"):
        Weights.read(path)
