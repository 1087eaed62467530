"""Further open sets to learn from: answers to hate, hate with emoji, sexism, mentions of groups."""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from app.core.contracts.moderation import POLICIES
from app.engines.moderation.training.examples import Example, Labels, labelled


class OpenSet(NamedTuple):
    """Where a set's rows lie, every how-many-th is used, and how a row is labelled; None leaves it out."""

    source: str
    file: str
    every: int
    labels: Callable[[Mapping[str, Any]], Labels | None]


def _only(policy: str, label: int) -> Labels:
    """Return the labels of a text of which one policy alone is known."""
    return labelled([policy]) if label else {**dict.fromkeys(POLICIES), policy: 0}


def _sexism(row: Mapping[str, Any]) -> Labels | None:
    # What is not sexist may be hateful otherwise.
    return _only("hate", 1) if str(row["category"]).startswith(("1", "2")) else None


_TAGS: Final[Mapping[str, str]] = {
    "Terrorism & organized crime": "violence",
    "Violence & incitement": "violence",
    "Weapons": "violence",
    "Animal abuse": "violence",
    "Self-harm": "self_harm",
    "Hate speech & offensive language": "hate",
    "Bullying & harassment": "harassment",
    "Theft": "illicit",
    "Property crime & vandalism": "illicit",
    "Fraud & deception": "illicit",
    "Substance abuse & banned substances": "illicit",
    "Sexual exploitation & human trafficking": "illicit",
    "Child abuse": "illicit",
    "Soliciting personally identifiable information": "illicit",
}
"""The policy of a tag of MultiJail; a question with none of these is left out, as some of them are harmless."""


def multijail_policy(row: Mapping[str, Any]) -> str | None:
    """Return the policy of a question of MultiJail; every third group is for judging and left out."""
    policies = [_TAGS[tag] for tag in row["tags"] if tag in _TAGS]
    return policies[0] if policies and int(row["group"]) % 3 else None


def _question(row: Mapping[str, Any]) -> Labels | None:
    policy = multijail_policy(row) if row["lang"] == "en" else None
    return None if policy is None else labelled([policy])


SETS: Final = (
    OpenSet("crowdcounter", "crowdcounter/train", 1, lambda _: labelled([])),
    OpenSet("hatemoji", "hatemoji_build/train", 1, lambda row: _only("hate", int(row["hate"]))),
    OpenSet("edos", "edos_sexism/train", 2, _sexism),
    OpenSet("bbq", "bbq_group_mentions/all", 3, lambda _: labelled([])),
    OpenSet("multijail", "multijail/all", 1, _question),
)


def read_more(folder: Path) -> Iterator[Example]:
    """Yield the examples of the sets in ``folder``; a set that is missing raises OSError."""
    for one in SETS:
        with gzip.open(folder / f"{one.file}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                row = json.loads(line)
                labels = one.labels(row) if number % one.every == 0 else None
                if labels is not None and row["text"].strip():
                    yield Example(row["text"], labels, one.source, f"{one.source} {row.get('pair', number)}")
