"""The embedded judge: its features, its weights and how they are made."""

import asyncio
import hashlib
import json
import random
from pathlib import Path

import pytest

import app.engines.grounding
from app.core.contracts.engines import Claim
from app.engines.grounding.evidence import Evidence
from app.engines.grounding.features import NAMES, features_of
from app.engines.grounding.judge import LexicalJudge, Weights
from app.engines.grounding.stemming import stem
from app.engines.grounding.training.train import write
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
    assert same["words"] == same["pairs"] == same["content"] == 1.0
    other = features("The museum was founded in 1878.", SOURCE)
    assert (same["number"], other["number"]) == (0.0, 1.0)
    turned = features("It is open on Mondays.", "It is never closed on Mondays. It is not shut.")
    assert turned["opposite"] == 0.0 or turned["other_negation"] == 1.0
    assert features("The wall is low.", "The wall is high.")["opposite"] == 1.0
    assert features("Claude Monet painted it.", SOURCE)["names"] > 0
    assert set(features("", SOURCE).values()) == {0.0}


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


def test_the_recipe_gives_the_same_bytes_twice(tmp_path):
    shuffle = random.Random(3)
    rows = []
    for number in range(60):
        words = shuffle.choices(
            ["red", "green", "blue", "cat", "dog", "sun", "moon", "tree", "house", "road"], k=9
        )
        context = f"The {' '.join(words)} was seen in {1900 + number}."
        response = (
            context if number % 2 else f"A {' '.join(shuffle.choices(words, k=3))} I think was never there!"
        )
        rows.append(
            json.dumps({"context": context, "response": response, "unsupported": int(number % 2 == 0)})
        )
    data = tmp_path / "made_up.jsonl"
    data.write_text("\n".join(rows), encoding="utf-8")
    made = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        write(data, folder)
        made.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert made[0] == made[1]
    assert set(made[0]) == {"judge.json", "manifest.json"}
    judge = LexicalJudge(tmp_path / "one" / "judge.json")
    context = json.loads(rows[1])["context"]
    scores = asyncio.run(
        judge.judge([Claim(context, (context,)), Claim("I think never!", (context,))])
    ).scores
    assert scores[0] < 0.5 < scores[1]


def test_weights_of_other_features_are_refused(tmp_path):
    path = tmp_path / "judge.json"
    given = json.loads((WEIGHTS / "judge.json").read_text(encoding="utf-8"))
    path.write_text(json.dumps(given | {"features": given["features"][1:]}), encoding="utf-8")
    with pytest.raises(ValueError, match="train them again"):
        Weights.read(path)
