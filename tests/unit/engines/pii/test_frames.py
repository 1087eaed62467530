"""Sentences with slots are filled from lists of the world; lists of names hold no word that texts spell small."""

import gzip
import json
import random
from pathlib import Path
from types import SimpleNamespace

from app.engines.pii.training.examples import Example, plain_words
from app.engines.pii.training.frames import FrameFiller, World
from app.engines.pii.training.markup import FRAMES, Slot, read_written
from app.engines.pii.training.open.names import single_words, world, world_names

WORLD = World(("Qvorst",), {"tr": ("Zelbrin",), "nb": ("Ylvik",)}, ("Faraway",))


def filler(seed: int) -> FrameFiller:
    # The real generator needs Faker, which only the recipe has.
    generator = SimpleNamespace(
        chance=random.Random(seed),
        people=SimpleNamespace(pair=lambda: ("Viggo.", "Quell")),
        organizations=SimpleNamespace(any=lambda: "Acme"),
    )
    return FrameFiller(generator, lambda slot: slot.kind.title(), WORLD)  # type: ignore[arg-type]


def test_each_slot_is_filled_in_its_language() -> None:
    made = [filler(seed) for seed in range(30)]
    assert {fill(Slot("town", "tr")) for fill in made} == {"Zelbrin", "Faraway"}
    assert {fill(Slot("town", "nn")) for fill in made} == {"Ylvik", "Faraway"}
    assert {fill(Slot("town", "fi")) for fill in made} == {"Faraway"}
    assert {fill(Slot("mountain", "id")) for fill in made} <= {
        "Gunung Last",
        "Gunung Faraway",
        "Bukit First",
    }
    assert "Almanya" in {fill(Slot("country", "tr")) for fill in made * 9}
    assert {fill(Slot("foreign_last", "tr")) for fill in made} == {"Qvorst", "Quell"}
    assert {fill(Slot("foreign_first", "tr")) for fill in made} == {"Viggo"}
    assert {fill(Slot("foreign", "tr")) for fill in made} == {"Viggo Qvorst", "Viggo Quell"}
    organizations = {fill(Slot("local", "tr")) for fill in made * 9}
    assert {"Acme", "Last Holding", "First Last Vakfı"} <= organizations
    assert {fill(Slot("full", "tr")) for fill in made} == {"Full"}


def test_every_slot_of_the_frames_has_something_to_fill_it() -> None:
    fill = filler(1)
    texts = [text.example(fill) for text in read_written(FRAMES)]
    assert len(texts) > 400
    assert all(text.text[start:end].strip() for text in texts for start, end, _ in text.spans)


def test_plain_words_are_those_that_texts_spell_outside_names() -> None:
    texts = [
        Example("en kirke og en kirke", ()),
        Example("med frode og frode", ((4, 9, "PERSON"), (13, 18, "PERSON"))),
        Example("en Kirke", ()),
    ]
    assert plain_words(texts) == {"kirke"}


def test_the_lists_of_the_world_are_read(tmp_path: Path) -> None:
    def store(folder: str, file: str, *rows: dict[str, str]) -> None:
        (tmp_path / folder).mkdir()
        lines = "\n".join(json.dumps(row) for row in rows)
        (tmp_path / folder / file).write_bytes(gzip.compress(lines.encode()))

    store("names_by_country", "names.jsonl.gz", {"name": "\u4e00", "romanized": "Ichi", "kind": "given"})
    store(
        "name_databases",
        "names.jsonl.gz",
        {"name": "Qvorst", "kind": "family"},
        {"name": "ab", "kind": "family"},
        {"name": "Viggo", "kind": "given"},
    )
    store(
        "world_cities",
        "cities.jsonl.gz",
        {"name": "Zelbrin", "country": "T\u00fcrkiye"},
        {"name": "Ny By", "country": "Denmark"},
        {"name": "\u4e00", "country": "China"},
        {"name": "Leeds", "country": "United Kingdom"},
    )
    assert world_names(tmp_path) == (["Ichi", "Viggo"], ["Qvorst", "ab"])
    assert world(tmp_path) == World(
        ("Qvorst",), {"tr": ("Zelbrin",), "da": ("Ny By",)}, ("Zelbrin", "Ny By", "Leeds")
    )
    assert single_words(world(tmp_path).towns) == ["Zelbrin"]
